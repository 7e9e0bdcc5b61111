//! Wrong input of `sapwood mpi`: one line that names it, exit code 2, and nothing left behind.
//! What needs an installed MPI is tried in `bindings/mpi/tests/failures.py`.

use crate::cli::clean_command;

/// The one line that a command line gets.
fn refused(words: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .arg("mpi")
        .args(words)
        .current_dir(folder.path())
        .env("SAPWOOD_LIB_DIR", folder.path())
        .output()
        .expect("the command was built");
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with("sapwood: "), "{line}");
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 0, "{line}");
    line
}

fn refused_because(words: &str, reason: &str) {
    let line = refused(&words.split_whitespace().collect::<Vec<_>>());
    assert!(line.contains(reason), "{words}: {line}");
}

#[test]
fn programs_that_cannot_be_watched_are_named() {
    refused_because("--out out -- ls", "ls' is not an MPI program");
    refused_because("-- ./nothing", "'./nothing' does not exist");
    refused_because("-- no-such-program-anywhere", "is in no folder of PATH");
    refused_because("-- /", "it is a folder");
    refused_because("-- sh run.sh", "name it with --mpi");
}

#[test]
fn commands_without_a_program_or_number_are_refused() {
    refused_because("", "a COMMAND is missing");
    refused_because("--", "a COMMAND is missing");
    refused_because("-- mpirun -np 4", "names no program");
    refused_because("-- mpirun -np many ./a", "'-np many' names no number of ranks");
    refused_because("-- mpirun -np", "lacks its argument");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    refused_because("--interval 0s -- ls", "a time from 10 ms");
    refused_because("--ranks-per-leaf 0 -- ls", "--ranks-per-leaf");
    refused_because("--fan-out 1 -- ls", "--fan-out");
    refused_because("--topology 2x -- ls", "topology");
    refused_because("--topology 2 --fan-out 4 -- ls", "cannot be used with");
    refused_because("--mpi other -- ls", "openmpi");
    refused_because("--json - -- ls", "standard output is the program's");
    refused_because("--interval 2h -- ls", "a time from 10 ms");
    refused_because("--histogram MPI_Send:foo -- ls", "there is no metric 'foo'");
    refused_because("--interfaces zzz0 -- ls", "'zzz0' chooses no interface of this machine");
}

#[test]
fn the_help_that_is_named_is_that_of_the_command() {
    refused_because("--fan-out 1 -- ls", "see 'sapwood mpi --help'");
    refused_because("export --to nothing x", "see 'sapwood mpi export --help'");
    refused_because("replay --bad x", "see 'sapwood mpi replay --help'");
    refused_because("attach --bad", "see 'sapwood mpi attach --help'");
    refused_because("control --bad", "see 'sapwood mpi control --help'");
}

#[test]
fn the_help_lists_attach_and_control_whose_usage_is_theirs() {
    let help = |words: &[&str]| {
        let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood"));
        let output = command.arg("mpi").args(words).arg("--help").output();
        String::from_utf8(output.expect("the command was built").stdout).expect("text")
    };
    for name in ["attach", "control"] {
        assert!(help(&[]).contains(&format!("sapwood mpi {name} ")), "{name}");
        assert!(help(&[name]).contains(&format!("Usage: sapwood mpi {name} ")), "{name}");
    }
}
