//! The project's checks, as code: `cargo xtask check` is the quick loop, `cargo xtask ci` is all.
//!
//! Owns the list of commands. The steps of `check` and `ci` are in [`gate`], how they are run in
//! [`steps`], which of them beside which in [`company`], the search for faults that no gate knows
//! in [`hunt`]. What a step looks for is in the module of its name: [`alone`] for crates built by
//! themselves, [`layers`], [`module_order`], [`method_order`] and [`io_line`] for what may use
//! what, [`tidy`] for the house style, [`packages`] for what is published, [`duplicates`] for
//! packages in several versions, [`one_build`] for what would be built twice, [`packet_path`] for
//! the names in that page, [`fuzz`] and [`demo`] for the longer runs; [`areas`] has the quick tests
//! of what is in no package.

mod alone;
mod areas;
mod changed;
mod command;
mod company;
mod demo;
mod duplicates;
mod environment;
mod failures;
mod files;
mod finding;
mod functions;
mod fuzz;
mod gate;
mod hunt;
mod io_line;
mod layers;
mod licence;
mod limit_values;
mod looks;
mod method_order;
mod module_order;
mod one_build;
mod packages;
mod packet_path;
mod repeat;
mod source;
mod steps;
mod test_code;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use steps::Look;

const USAGE: &str = "\
cargo xtask COMMAND

  check        format, layers, house style, lints, unit tests: the quick loop
  check --changed [COMMIT]
               the same for the packages that differ from a commit (HEAD), and those above them;
               quick tests of the MPI shims, the bypass and the test bed where they differ
  ci           check, then each crate alone, documentation, release build, conformance, simulated
               faults, a short storm and soak, tests of a scraper, of exports, of MPI programs, of
               MRNet's interface, of the Python package, of launchers, of the tools of examples, of
               the page and of the guide, a short demo
  repeat [--times N] [--load N] STEP [TEST]
               one of these steps, or one test of it, N times (20) beside N busy loops (0); what
               names no step is a pattern for the tests of all crates
  hunt [--minutes N] [--seed N]
               new schedules, new inputs of the fuzz targets and new storms, for N minutes (30)
  layers       only: which crate may use which, and what may touch the world
  tidy         only: the house style
  packages     only: packs the published crates, and looks at the licences and versions of
               foreign packages
  one-build    only: whether the programs of a release share one build of what is below them
  packet-path  only: the names in docs/packet-path.md
  alone        only: every crate of crates/ built by itself
  fuzz         only: build the fuzz targets with coverage and run each on its kept inputs
  fuzz --search SECONDS [TARGET...]
               only: have each of the fuzz targets, or these, search for new inputs for that time
  steps        the names of the steps
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check"] => code(steps::run_all("check", &root, &gate::check_steps())),
        ["check", "--changed"] => check_changed(&root, "HEAD"),
        ["check", "--changed", since] => check_changed(&root, since),
        ["ci"] => code(steps::run_all("ci", &root, &gate::ci_steps())),
        ["layers"] => say(looks::layers(&root)),
        ["tidy"] => say(looks::tidy(&root)),
        ["packages"] => say(packages::look(&root)),
        ["one-build"] => say(one_build::look(&root)),
        ["packet-path"] => say(looks::packet_path(&root)),
        ["alone"] => say(alone::look(&root)),
        ["fuzz"] => say(fuzz::kept_inputs(&root)),
        ["fuzz", "--search", ref words @ ..] => match fuzz::Search::read(words) {
            Ok(search) => say(fuzz::search(&root, &search)),
            Err(why) => judge(Err(why)),
        },
        ["steps"] => {
            gate::ci_steps().iter().for_each(|step| println!("{}", step.name));
            ExitCode::SUCCESS
        }
        ["repeat", ref words @ ..] => judge(
            repeat::Request::read(words)
                .and_then(|request| repeat::run(&root, repeatable_steps(), &request)),
        ),
        ["hunt", ref words @ ..] => {
            judge(hunt::Request::read(words).and_then(|request| hunt::run(&root, &request)))
        }
        [] | ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("xtask: unknown command `{}`\n\n{USAGE}", arguments.join(" "));
            ExitCode::from(2)
        }
    }
}

/// The steps of the gate, and those of `check --changed` that are not among them.
fn repeatable_steps() -> Vec<steps::Step> {
    let mut steps = gate::ci_steps();
    steps.extend(areas::all_steps());
    steps
}

fn check_changed(root: &Path, since: &str) -> ExitCode {
    judge(changed::steps(root, since).map(|steps| steps::run_all("check", root, &steps)))
}

fn code(has_passed: bool) -> ExitCode {
    if has_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a look's answer.
fn say(answer: Look) -> ExitCode {
    match answer {
        Ok(line) => println!("{line}"),
        Err(findings) => {
            findings.iter().for_each(|finding| println!("{finding}"));
            println!("findings: {}", findings.len());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The code of what ran, or of words that could not be understood.
fn judge(ran: Result<bool, String>) -> ExitCode {
    match ran {
        Ok(has_passed) => code(has_passed),
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::from(2)
        }
    }
}

/// Where cargo builds, from the repository's root.
fn target() -> String {
    std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into())
}

/// The repository's root: the folder above this package.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}
