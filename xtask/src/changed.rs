//! `cargo xtask check --changed`: the quick loop for what differs from a commit.
//!
//! Owns which packages a changed file concerns: its own, and all that depend on that one, for their
//! tests too. What lies outside of packages is with [`crate::areas`]. Looks at the repository are
//! made as always, for they take seconds.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::areas;
use crate::command::output_of;
use crate::gate;
use crate::steps::{Selection, Step};

/// What concerns all packages.
const FOR_ALL: [&str; 5] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/", "xtask/"];
/// Files outside of packages, or of another package, that tests read or compile, and the package by
/// which they do.
const READ_BY: [(&str, &str); 5] = [
    ("docs/schema/", "sapwood-schema"),
    ("bindings/mpi/functions.table", "sapwood-profile"),
    ("tools/trace/src/scope_text.rs", "sapwood-fuzz"),
    ("tools/trace/src/scope_keys.rs", "sapwood-fuzz"),
    ("tools/trace/src/hop_scope_text.rs", "sapwood-fuzz"),
];

/// A package of the workspace.
struct Package {
    name: String,
    /// From the repository's root, with a stroke at its end.
    folder: String,
    /// Packages that it or its tests depend on.
    needs: Vec<String>,
}

/// The steps of `check` for what differs from a commit, with files that no commit knows.
///
/// # Errors
/// One line, if git does not know the commit or cargo the workspace.
pub fn steps(root: &Path, since: &str) -> Result<Vec<Step>, String> {
    let differ = output_of(root, "git", &["diff", "--name-only", since])?;
    let new = output_of(root, "git", &["ls-files", "--others", "--exclude-standard"])?;
    let files: Vec<&str> = differ.lines().chain(new.lines()).collect();
    let metadata =
        output_of(root, "cargo", &["metadata", "--no-deps", "--offline", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let concerned = concerned(&packages(root, &metadata), &files);
    match &concerned {
        None => println!("check: {} changed files concern all packages", files.len()),
        Some(names) => {
            println!("check: {} changed files concern {} packages", files.len(), names.len());
        }
    }
    let work = areas::work(&files);
    for line in &work.by_hand {
        println!("check: what takes longer is left to you: {line}");
    }
    let of_packages = concerned.map_or_else(gate::check_steps, |names| package_steps(&names));
    Ok(with_areas(of_packages, work.steps))
}

/// The steps for some packages.
fn package_steps(names: &BTreeSet<String>) -> Vec<Step> {
    let mut steps = gate::looks();
    if names.is_empty() {
        return steps;
    }
    let chosen: String = names.iter().map(|name| format!(" -p {name}")).collect();
    steps.extend([
        Step::program("lints", format!("cargo clippy{chosen} --all-targets -- -D warnings"), 20),
        build(),
        Step::program(
            "tests",
            format!("env SAPWOOD_TESTS_BUILT=1 cargo test --no-fail-fast{chosen}"),
            30,
        )
        .after(&[gate::BUILD])
        .with_tests(Selection::Instead(" -p ")),
    ]);
    steps
}

/// Tests run programs of other packages than their own.
fn build() -> Step {
    Step::program(gate::BUILD, "cargo build --workspace --bins --examples", 20)
}

/// Steps of packages, then those of areas, before which is built what they need.
fn with_areas(mut steps: Vec<Step>, of_areas: Vec<Step>) -> Vec<Step> {
    let is_built = steps.iter().any(|step| step.name == gate::BUILD);
    if !is_built && of_areas.iter().any(|step| step.needs.contains(&gate::BUILD)) {
        steps.push(build());
    }
    steps.extend(of_areas);
    steps
}

fn packages(root: &Path, metadata: &Value) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let package = |one: &Value| {
        let manifest = text(&one["manifest_path"]);
        let folder = Path::new(&manifest).parent()?.strip_prefix(root).ok()?.to_str()?.to_owned();
        let needs = list(&one["dependencies"]).iter().map(|one| text(&one["name"])).collect();
        Some(Package { name: text(&one["name"]), folder: folder + "/", needs })
    };
    list(&metadata["packages"]).iter().filter_map(package).collect()
}

/// The packages that files concern; none for all.
fn concerned(packages: &[Package], files: &[&str]) -> Option<BTreeSet<String>> {
    if files.iter().any(|file| FOR_ALL.iter().any(|all| file.starts_with(all))) {
        return None;
    }
    let own = |file: &&str| {
        let inside = packages.iter().filter(|package| file.starts_with(&package.folder));
        let nearest = inside.max_by_key(|package| package.folder.len());
        let reader = READ_BY.iter().find(|(folder, _)| file.starts_with(folder));
        let reader = reader.map(|(_, name)| (*name).to_owned());
        nearest.map(|package| package.name.clone()).into_iter().chain(reader)
    };
    let mut names: BTreeSet<String> = files.iter().flat_map(own).collect();
    loop {
        let needs_one = |package: &&Package| package.needs.iter().any(|need| names.contains(need));
        let more: Vec<String> = packages
            .iter()
            .filter(needs_one)
            .map(|package| package.name.clone())
            .filter(|name| !names.contains(name))
            .collect();
        if more.is_empty() {
            return Some(names);
        }
        names.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Vec<Package> {
        let package = |name: &str, folder: &str, needs: &[&str]| Package {
            name: name.into(),
            folder: folder.into(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        };
        vec![
            package("packet", "crates/packet/", &[]),
            package("wire", "crates/wire/", &["packet", "random"]),
            package("node", "crates/node/", &["wire"]),
            package("sapwood-schema", "tools/schema/", &[]),
            package("report", "tools/report/", &["sapwood-schema"]),
            package("nested", "crates/node/inner/", &[]),
            package("sapwood-profile", "crates/profile/", &[]),
            package("trace-tool", "tools/trace/", &[]),
        ]
    }

    fn names(files: &[&str]) -> Option<String> {
        let names = concerned(&workspace(), files)?;
        Some(names.into_iter().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_file_concerns_its_package_and_those_that_depend_on_it() {
        assert_eq!(names(&["crates/wire/src/lib.rs"]).as_deref(), Some("node wire"));
        assert_eq!(names(&["crates/packet/Cargo.toml"]).as_deref(), Some("node packet wire"));
        assert_eq!(names(&["crates/node/inner/src/lib.rs"]).as_deref(), Some("nested"));
        assert_eq!(names(&["docs/schema/a.json"]).as_deref(), Some("report sapwood-schema"));
        let table = "bindings/mpi/functions.table";
        assert_eq!(names(&[table]).as_deref(), Some("sapwood-profile"));
        let parser = "tools/trace/src/scope_text.rs";
        assert_eq!(names(&[parser]).as_deref(), Some("sapwood-fuzz trace-tool"));
    }

    fn step_names(of_packages: Vec<Step>, files: &[&str]) -> Vec<&'static str> {
        let looks = gate::looks().len();
        let steps = with_areas(of_packages, areas::work(files).steps);
        steps.iter().skip(looks).map(|step| step.name).collect()
    }

    #[test]
    fn steps_of_areas_follow_those_of_packages_and_what_they_need_is_built_once() {
        let shim = ["bindings/mpi/region/region.c"];
        assert_eq!(step_names(gate::looks(), &shim), ["counts under the MPI shims"]);
        let hosts = ["testbed/testbed"];
        let last = "a tree over hosts of the test bed";
        assert_eq!(step_names(gate::looks(), &hosts), [gate::BUILD, last]);
        let node = package_steps(&BTreeSet::from(["node".to_owned()]));
        assert_eq!(step_names(node, &hosts), ["lints", gate::BUILD, "tests", last]);
        assert_eq!(step_names(gate::check_steps(), &hosts), ["lints", gate::BUILD, "tests", last]);
    }

    #[test]
    fn documents_concern_none_and_the_workspace_all() {
        assert_eq!(names(&["docs/trace.md", "README.md"]).as_deref(), Some(""));
        assert_eq!(names(&["docs/trace.md", "Cargo.lock"]), None);
        assert_eq!(names(&["xtask/src/main.rs"]), None);
    }
}
