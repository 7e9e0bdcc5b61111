//! What `make install` leaves is what a user's build finds: by CMake, and by pkg-config.
//!
//! Everything is installed below DESTDIR, as a package builder does, and never where it will be
//! used.

#[allow(dead_code, reason = "each test needs a part of it")]
mod harness;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{C11, built, command, package, succeed, text};

/// Where a package would be used from.
const PREFIX: &str = "/opt/sapwood";

/// The library as programs ask for it: each minor version before 1.0 has a name of its own.
const NAME: &str = concat!(
    "libsapwood.so.",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

/// What the programs of the pages print.
const SAYS: &str = "4 processes: 2 4 6\n";

/// Installs below a folder; gives the prefix there.
fn install(folder: &Path, further: &[&str]) -> PathBuf {
    let places = [format!("PREFIX={PREFIX}"), format!("DESTDIR={}", folder.display())];
    install_to(&places, further);
    folder.join(PREFIX.trim_start_matches('/'))
}

fn install_to(places: &[String], further: &[&str]) {
    let mut make = Command::new("make");
    make.arg("-C").arg(package("")).arg("install").args(places);
    make.arg(format!("BUILT={}", built().folder.display()));
    make.arg(format!("NODE={}", Path::new(&built().node).display())).args(further);
    succeed(&mut make);
}

/// The programs of the pages, as files.
fn write_pages(folder: &Path) {
    let pages = [("c-interface.md", "c", ["back_end.c", "front_end.c"])];
    let cpp = ("cpp.md", "cpp", ["back_end.cpp", "front_end.cpp"]);
    for (page, language, names) in pages.into_iter().chain([cpp]) {
        let page = fs::read_to_string(package("../../docs").join(page)).expect("the page is there");
        for name in names {
            let start = format!("```{language} {name}\n");
            let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no block {name}"));
            let code = rest.split_once("```").expect("a block ends").0;
            fs::write(folder.join(name), code).expect("a source can be written");
        }
    }
}

#[test]
fn all_files_are_installed_below_destdir() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prefix = install(folder.path(), &["LIBDIR=/opt/sapwood/lib/arch"]);
    for file in [
        "bin/sapwood",
        "bin/sapwood-node",
        "include/sapwood.h",
        "include/sapwood.hpp",
        "include/sapwood/answer.hpp",
        "include/sapwood/sketch.hpp",
        "include/sapwood/values.hpp",
        "lib/arch/libsapwood.so",
        &format!("lib/arch/{NAME}"),
        "lib/arch/libsapwood.a",
        "lib/arch/pkgconfig/sapwood.pc",
        "lib/arch/cmake/sapwood/sapwood-config.cmake",
        "lib/arch/cmake/sapwood/sapwood-config-version.cmake",
    ] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    let package = fs::read_to_string(prefix.join("lib/arch/pkgconfig/sapwood.pc")).expect("read");
    assert!(package.contains("prefix=/opt/sapwood\nlibdir=/opt/sapwood/lib/arch\n"), "{package}");
    assert!(!package.contains('@') && !package.contains(&*folder.path().to_string_lossy()));
}

#[test]
fn a_project_finds_the_package_by_cmake() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (pages, build) = (folder.path().join("pages"), folder.path().join("build"));
    fs::create_dir(&pages).expect("a folder");
    write_pages(&pages);
    for libraries in ["/opt/sapwood/lib", "/opt/sapwood/lib/x86_64-linux-gnu"] {
        let place = folder.path().join("root");
        let prefix = install(&place, &[&format!("LIBDIR={libraries}")]);
        let mut cmake = Command::new("cmake");
        cmake.arg("-S").arg(package("tests/cmake")).arg("-B").arg(&build);
        cmake.arg(format!("-Dpages={}", pages.display()));
        let config = place.join(libraries.trim_start_matches('/')).join("cmake/sapwood");
        cmake.arg(format!("-Dsapwood_DIR={}", config.display()));
        cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
        succeed(&mut cmake);
        succeed(Command::new("cmake").arg("--build").arg(&build));
        succeed(Command::new("ctest").arg("--output-on-failure").current_dir(&build));
        fs::remove_dir_all(&build).expect("the build can be removed");
        fs::remove_dir_all(&place).expect("the package can be removed");
    }
}

#[test]
fn a_program_finds_the_package_by_pkg_config() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_pages(folder.path());
    let prefix = install(folder.path(), &[]);
    let flags = |asked: &[&str]| -> Vec<String> {
        let mut tool = Command::new("pkg-config");
        tool.args(asked).arg("sapwood").env("PKG_CONFIG_SYSROOT_DIR", folder.path());
        tool.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        text(&succeed(&mut tool).stdout).split_whitespace().map(str::to_owned).collect()
    };
    let version = flags(&["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
    let program = |name: &str| folder.path().join(name).into_os_string();
    let compile = |compiler: &mut Command, source: &str, made: &str, flags: &[String]| {
        compiler.arg(folder.path().join(source)).args(flags).arg("-o").arg(program(made));
        succeed(compiler);
    };
    let shared = flags(&["--cflags", "--libs"]);
    compile(Command::new("cc").args(C11), "front_end.c", "front_end", &shared);
    compile(Command::new("g++").arg("-std=c++17"), "back_end.cpp", "back_end", &shared);
    let (front_end, back_end) = (program("front_end"), program("back_end"));
    let mut example = command(&[&front_end, &back_end]);
    let output = succeed(example.env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert_eq!(text(&output.stdout), SAYS);
}

#[test]
fn a_program_runs_where_its_library_lies_in_no_folder_of_the_system() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_pages(folder.path());
    let prefix = folder.path().join("own");
    install_to(&[format!("PREFIX={}", prefix.display())], &[]);
    let mut tool = Command::new("pkg-config");
    tool.args(["--cflags", "--libs", "sapwood"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = text(&succeed(&mut tool).stdout);
    let program = |name: &str| folder.path().join(name).into_os_string();
    for name in ["front_end", "back_end"] {
        let mut compiler = Command::new("cc");
        compiler.args(C11).arg(folder.path().join(format!("{name}.c")));
        succeed(compiler.args(flags.split_whitespace()).arg("-o").arg(program(name)));
    }
    let mut example = command(&[&program("front_end"), &program("back_end")]);
    assert_eq!(text(&succeed(example.env_remove("LD_LIBRARY_PATH")).stdout), SAYS);
    let needed = succeed(Command::new("readelf").arg("-d").arg(program("front_end")));
    let needed = text(&needed.stdout);
    assert!(needed.contains(&format!("[{NAME}]")), "{needed}");
}

/// All files, links and folders below a folder, with what files and links have.
fn listing(folder: &Path) -> BTreeMap<PathBuf, String> {
    let (mut found, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(inside) = open.pop() {
        for entry in fs::read_dir(&inside).expect("a folder can be read") {
            let path = entry.expect("an entry").path();
            let content = if path.is_symlink() {
                fs::read_link(&path).expect("a link").display().to_string()
            } else if path.is_dir() {
                open.push(path.clone());
                String::new()
            } else {
                format!("{} bytes", fs::metadata(&path).expect("a file").len())
            };
            found.insert(path.strip_prefix(folder).expect("it is below").to_owned(), content);
        }
    }
    found
}

#[test]
fn what_is_uninstalled_is_what_was_installed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (stage, system) = (folder.path().join("stage"), folder.path().join("system"));
    install(&stage, &[]);
    let foreign =
        [system.join("opt/sapwood/bin/other"), system.join("opt/sapwood/lib/libother.so")];
    for file in &foreign {
        fs::create_dir_all(file.parent().expect("it has a folder")).expect("a folder");
        fs::write(file, "of another package").expect("a file");
    }
    let before = listing(&system);
    let place = |words: &[&Path]| {
        let mut script = Command::new(package("../../packaging/place"));
        succeed(script.args(words).arg(PREFIX));
    };
    // A second installation, of fewer files, forgets none of the first.
    place(&[Path::new("install"), &stage, &system]);
    let missing = |path: &PathBuf| !listing(&system).contains_key(path);
    assert!(!listing(&stage).keys().any(missing), "{:?}", listing(&system));
    fs::remove_dir_all(stage.join("opt/sapwood/include")).expect("it was staged");
    place(&[Path::new("install"), &stage, &system]);
    place(&[Path::new("uninstall"), &system]);
    assert_eq!(listing(&system), before);
    let mut again = Command::new(package("../../packaging/place"));
    let again = again.arg("uninstall").arg(&system).arg(PREFIX).output().expect("it runs");
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(text(&again.stderr).lines().count(), 1, "{}", text(&again.stderr));
}
