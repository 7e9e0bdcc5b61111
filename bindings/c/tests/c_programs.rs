//! C programs against the header and the library: what they do in `tests/programs`, how they are
//! built and run in `harness`.

mod harness;
#[path = "../../../crates/launch/tests/written/mod.rs"]
mod written;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use harness::{
    C11, FAULTS, Programs, built, command, compile, compile_library, finish, package, run, source,
    start, succeed, text,
};

const TOPOLOGIES: [(&str, u32); 3] = [("1x1", 1), ("4", 4), ("2x4", 8)];

/// How long a test waits for a file of another process.
const FILE_DEADLINE: Duration = Duration::from_secs(60);

fn os(text: &str) -> &OsStr {
    OsStr::new(text)
}

#[test]
fn the_header_is_c11_and_cpp17() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let object = folder.path().join("header.o");
    let compilers: [(&str, &[&str]); 2] =
        [("cc", &["-std=c11"]), ("c++", &["-x", "c++", "-std=c++17"])];
    for (compiler, flags) in compilers {
        let mut command = Command::new(compiler);
        command.args(flags).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]);
        command.arg("-I").arg(package("include")).arg(source("header.c")).arg("-o").arg(&object);
        succeed(&mut command);
    }
}

#[test]
fn the_library_exports_the_functions_of_the_header_and_nothing_else() {
    let header = fs::read_to_string(package("include/sapwood.h")).expect("the header is there");
    let mut is_comment = false;
    let mut declared = BTreeSet::new();
    for line in header.lines() {
        is_comment |= line.trim_start().starts_with("/*");
        if let Some((before, _)) = line.split_once('(').filter(|_| !is_comment) {
            let name = before.rsplit([' ', '*']).next().unwrap_or_default();
            if name.starts_with("sapwood_") {
                declared.insert(name.to_owned());
            }
        }
        is_comment &= !line.trim_end().ends_with("*/");
    }
    let library = built().folder.join("libsapwood.so");
    let output = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let exported: BTreeSet<String> = text(&output.stdout)
        .lines()
        .filter_map(|line| line.rsplit(' ').next().map(str::to_owned))
        .collect();
    assert!(declared.len() > 40, "{declared:?}");
    assert_eq!(exported, declared);
}

#[test]
fn every_directive_goes_both_ways_over_every_shape_and_link() {
    let programs = Programs::new(&["front_end", "back_end"]);
    let back_end = programs.path("back_end");
    for transport in ["unix", "tcp"] {
        for (topology, back_ends) in TOPOLOGIES {
            let said = programs.run("front_end", &[os(topology), os(transport), &back_end]);
            assert_eq!(said, format!("{topology}: {back_ends} back-ends\n"));
        }
    }
}

#[test]
fn a_back_end_that_ends_is_named_in_the_answer() {
    let programs = Programs::new(&["death", "back_end"]);
    let said = programs.run("death", &[&programs.path("back_end")]);
    assert!(said.starts_with("missing 2: "), "{said}");
}

#[test]
fn each_question_has_its_own_answer() {
    let programs = Programs::new(&["asking", "back_end"]);
    for (topology, _) in TOPOLOGIES {
        programs.run("asking", &[os(topology), &programs.path("back_end")]);
    }
}

#[test]
fn a_send_ends_when_no_back_end_is_left() {
    let programs = Programs::new(&["gone", "back_end"]);
    programs.run("gone", &[&programs.path("back_end")]);
}

#[test]
fn misuse_is_an_error_code_and_changes_nothing() {
    let programs = Programs::new(&["misuse", "back_end"]);
    programs.run("misuse", &[&programs.path("back_end")]);
}

/// Memory of a communication process that one packet of 48 MB is too long for, in KiB.
const NODE_KIB: u32 = 110_000;

#[test]
fn a_packet_that_there_is_no_memory_for_is_an_error_and_small_ones_go_on() {
    let programs = Programs::new(&["memory"]);
    for who in ["front", "back"] {
        programs.run("memory", &[os(who)]);
    }
    // Its limit is that of the shell that becomes it.
    let node = programs.folder.path().join("node");
    let program = built().node.to_str().expect("its path is a text");
    let script = format!("#!/bin/sh\nulimit -v {NODE_KIB}\nexec '{program}' \"$@\"\n");
    written::write_program(&node, &script);
    let mut limited = command(&[&programs.path("memory"), os("node")]);
    let said = text(&succeed(limited.env("SAPWOOD_NODE", &node)).stdout);
    assert!(said.contains("(at rank 5)") || said.contains("(at rank 6)"), "{said}");
}

#[test]
fn a_program_whose_files_may_not_grow_lives_on_with_its_own_answer_to_the_signal() {
    let programs = Programs::new(&["file_limit", "back_end"]);
    let library = compile_library(&source("quorum.c"), programs.folder.path());
    programs.run("file_limit", &[&programs.path("back_end"), library.as_os_str()]);
}

#[test]
fn the_filter_classes_is_the_same_in_front_ends_and_communication_processes() {
    let programs = Programs::new(&["classes", "back_end"]);
    for topology in ["4", "1x4", "2x4"] {
        programs.run("classes", &[os(topology), &programs.path("back_end")]);
    }
}

#[test]
fn handles_that_are_closed_forked_or_on_another_thread_are_refused() {
    let programs = Programs::new(&["wrong_use"]);
    programs.run("wrong_use", &[&programs.path("wrong_use")]);
}

/// Filters of a file that is gone from its folder once it is shipped.
fn run_filters(programs: &Programs) {
    let folder = programs.folder.path().join("shipped");
    fs::create_dir(&folder).expect("a folder for the library");
    let library = compile_library(&source("quorum.c"), &folder);
    let faults = compile_library(&package(FAULTS), programs.folder.path());
    let module = package("../../crates/extension/filters/sums.wasm");
    let back_end = programs.path("back_end");
    let faults = faults.as_os_str();
    let words = [&back_end, library.as_os_str(), folder.as_os_str(), module.as_os_str(), faults];
    programs.run("filters", &words);
}

#[test]
fn filters_and_rules_of_ones_own_are_found_and_shipped() {
    run_filters(&Programs::new(&["filters", "back_end"]));
}

/// `make library-test` runs this with the released library and program, too.
#[test]
fn loops_in_webassembly_take_no_stack_in_library_and_program() {
    let programs = Programs::new(&["loops", "back_end"]);
    let faults = package("../../crates/extension/tests/filters/faults.wasm");
    let mean = package("../../crates/extension/filters/mean.wasm");
    programs.run("loops", &[&programs.path("back_end"), faults.as_os_str(), mean.as_os_str()]);
}

#[test]
fn sketches_are_asked_for_all_that_they_know() {
    let programs = Programs::new(&["sketches"]);
    programs.run("sketches", &[&programs.path("sketches")]);
}

#[test]
fn back_ends_attach_by_a_file() {
    let programs = Programs::new(&["attach", "back_end"]);
    let folder = programs.folder.path().as_os_str();
    let front_end = start(&[&programs.path("attach"), folder]);
    attach_and_finish(front_end, &programs, 4, &[]);
}

/// Waits for the attach file, attaches back-ends, and waits for the good end of all.
fn attach_and_finish(
    front_end: std::process::Child,
    programs: &Programs,
    count: u32,
    before: &[OsString],
) {
    let file = programs.folder.path().join("points");
    let deadline = Instant::now() + FILE_DEADLINE;
    while !file.is_file() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let back_end = programs.path("back_end");
    let attach = |rank: u32| {
        let rank = OsString::from(rank.to_string());
        let mut words: Vec<&OsStr> = before.iter().map(OsString::as_os_str).collect();
        words.extend([back_end.as_os_str(), file.as_os_str(), rank.as_os_str()]);
        start(&words)
    };
    let back_ends: Vec<_> = (0..count).map(attach).collect();
    finish(front_end);
    back_ends.into_iter().for_each(finish);
}

/// The C part of the library is built into the programs, under the sanitizers; the Rust part
/// allocates from the same guarded heap.
#[test]
fn the_sanitizers_find_nothing() {
    let flags =
        ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DSAPWOOD_VARARGS_EXPORTED"];
    let names = ["front_end", "back_end", "misuse", "death", "wrong_use", "filters", "sketches"];
    let programs = Programs::with(&names, &[package("src/varargs.c")], &flags);
    let back_end = programs.path("back_end");
    programs.run("front_end", &[os("2x2"), os("unix"), &back_end]);
    programs.run("misuse", &[&back_end]);
    programs.run("death", &[&back_end]);
    programs.run("wrong_use", &[&programs.path("wrong_use")]);
    programs.run("sketches", &[&programs.path("sketches")]);
    run_filters(&programs);
}

fn valgrind() -> Vec<OsString> {
    let words = [
        "valgrind",
        "--quiet",
        "--error-exitcode=99",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,possible",
        "--show-leak-kinds=definite,possible",
    ];
    words.iter().map(OsString::from).collect()
}

/// Back-ends that the tree starts, each under valgrind. A back-end with an error ends with code 99,
/// but its starter does not report the code: each writes valgrind's findings into a file of its
/// own.
#[test]
fn valgrind_finds_nothing_in_back_ends() {
    let programs = Programs::new(&["front_end", "back_end"]);
    let found = programs.folder.path().join("found");
    fs::create_dir(&found).expect("a folder for what is found");
    let log = OsString::from(format!("--log-file={}/%p", found.display()));
    let (front_end, back_end) = (programs.path("front_end"), programs.path("back_end"));
    let checked = valgrind();
    let mut words: Vec<&OsStr> = vec![&front_end, os("2x2"), os("unix")];
    words.extend(checked.iter().map(OsString::as_os_str));
    words.extend([log.as_os_str(), back_end.as_os_str()]);
    run(&words);
    let logs: Vec<String> = fs::read_dir(&found)
        .expect("the folder is there")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a log"))
        .collect();
    assert_eq!(logs.len(), 4, "each back-end runs under valgrind");
    assert!(logs.iter().all(String::is_empty), "{logs:?}");
}

/// Valgrind of Debian 12 does not know the system call that watches a child, so a front-end that
/// starts processes cannot run in it; one whose back-ends attach by themselves does all but that.
#[test]
fn valgrind_finds_nothing_in_a_front_end() {
    let programs = Programs::new(&["front_end", "back_end"]);
    let front_end = programs.path("front_end");
    let checked = valgrind();
    let mut words: Vec<&OsStr> = checked.iter().map(OsString::as_os_str).collect();
    let folder = programs.folder.path().as_os_str();
    words.extend([&front_end, os("3"), os("unix"), os("attach"), folder, os("3")]);
    attach_and_finish(start(&words), &programs, 3, &checked);
}

/// The code of a page's block that begins with "```c NAME".
fn block(page: &str, name: &str) -> String {
    let start = format!("```c {name}\n");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no block {name}"));
    rest.split_once("```").expect("a block ends").0.to_owned()
}

fn write_examples(folder: &Path) {
    let page = fs::read_to_string(package("../../docs/c-interface.md")).expect("the page is there");
    for name in ["back_end.c", "front_end.c"] {
        fs::write(folder.join(name), block(&page, name)).expect("a source can be written");
    }
}

const EXAMPLE_SAYS: &str = "4 processes: 2 4 6\n";

#[test]
fn the_programs_of_the_page_do_what_it_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_examples(folder.path());
    let program = |name: &str| folder.path().join(name);
    for name in ["back_end", "front_end"] {
        compile(&program(name), &[program(&format!("{name}.c"))], &[]);
    }
    let (front_end, back_end) = (program("front_end"), program("back_end"));
    assert_eq!(run(&[front_end.as_os_str(), back_end.as_os_str()]), EXAMPLE_SAYS);
}

/// What pkg-config makes of a file: the words of some fields, with variables replaced.
fn package_flags(file: &str, fields: &[&str]) -> Vec<String> {
    let lines = || file.lines();
    let replace = |mut text: String| {
        while let Some((before, rest)) = text.split_once("${") {
            let (name, after) = rest.split_once('}').expect("a variable ends");
            let value = lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            text = format!("{before}{}{after}", value.expect("a variable is set"));
        }
        text
    };
    fields
        .iter()
        .filter_map(|field| lines().find_map(|line| line.strip_prefix(&format!("{field}: "))))
        .flat_map(|words| words.split(' ').map(str::to_owned).map(replace).collect::<Vec<_>>())
        .collect()
}

/// Installs into a folder, and builds the page's programs with what is there: dynamically and
/// statically, as the pkg-config file says.
#[test]
fn an_installed_library_is_found_and_linked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_examples(folder.path());
    let prefix = folder.path().join("installed");
    let mut make = Command::new("make");
    make.arg("-C").arg(package("")).arg("install");
    make.arg(format!("PREFIX={}", prefix.display()));
    make.arg(format!("BUILT={}", built().folder.display()));
    make.arg(format!("PROGRAM={}", Path::new(&built().node).display()));
    succeed(&mut make);
    let flags = |fields: &[&str]| {
        let file = prefix.join("lib/pkgconfig/sapwood.pc");
        package_flags(&fs::read_to_string(file).expect("a pkg-config file"), fields)
    };
    let build = |name: &str, flags: &[String]| {
        let program = folder.path().join(name);
        let mut compiler = Command::new("cc");
        compiler.args(C11).arg(folder.path().join(format!("{name}.c"))).args(flags);
        succeed(compiler.arg("-o").arg(&program));
        program.into_os_string()
    };
    let front_end = build("front_end", &flags(&["Cflags", "Libs"]));
    let mut fixed = flags(&["Cflags", "Libs", "Libs.private"]);
    fixed.iter_mut().filter(|flag| *flag == "-lsapwood").for_each(|flag| {
        *flag = "-l:libsapwood.a".to_owned();
    });
    let back_end = build("back_end", &fixed);
    let mut example = command(&[&front_end, &back_end]);
    let output = succeed(example.env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert_eq!(text(&output.stdout), EXAMPLE_SAYS);
    let needed = succeed(Command::new("ldd").arg(&back_end));
    assert!(!text(&needed.stdout).contains("libsapwood"), "the back-end needs no library");
}
