//! Wrong input of `sapwood mpi` and `sapwood trace`: one line that names it, exit code 2, and
//! nothing left behind.
//! What needs an installed MPI is tried in `bindings/mpi/tests/failures.py`.

use crate::cli::clean_command;

/// The one line that a command line gets.
fn refused(command: &str, words: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = clean_command(env!("CARGO_BIN_EXE_sapwood"))
        .arg(command)
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
    let line = refused("mpi", &words.split_whitespace().collect::<Vec<_>>());
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
    refused_because("--quiet --live -- ls", "cannot be used with");
    refused_because("--series-max 100 -- ls", "--listen");
    refused_because("--page-listen nowhere:x -- ls", "--page-listen");
    refused_because("--connect-timeout -1 -- ls", "a negative number has no meaning here");
    refused_because("--waits-when never -- ls", "--waits-when");
    refused_because("--waits-cpu 2000% -- ls", "--waits-cpu");
    refused_because("replay --page-listen nowhere:x run", "--page-listen");
    refused_because("replay --live --page run", "cannot be used with");
    refused_because("replay --color sometimes run", "[possible values: ");
    refused_because("--unknown -- ls", "unexpected argument '--unknown' found; see 'sapwood mpi ");
    refused_because("--mpi other -- ls", "openmpi");
    refused_because("--json - -- ls", "standard output is the program's");
    refused_because("--interval 2h -- ls", "a time from 10 ms");
    refused_because("--histogram MPI_Send:foo -- ls", "there is no metric 'foo'");
    refused_because("--interfaces zzz0 -- ls", "'zzz0' chooses no interface of this machine");
}

#[test]
fn options_of_traces_that_need_a_program_are_refused_without_one() {
    let needing = [
        ["why", "--ranks", "4"],
        ["why", "--interval", "1s"],
        ["why", "--mpi", "openmpi"],
        ["why", "--waits-when", "any"],
        ["why", "--waits-cpu", "5%"],
        ["scope", "--processes", "4"],
        ["scope", "--mpi", "openmpi"],
        ["scope", "--events-folder", "events"],
        ["freeze", "--processes", "4"],
        ["freeze", "--mpi", "openmpi"],
        ["freeze", "--deadline", "2s"],
        ["freeze", "--interval", "1s"],
    ];
    for words in needing {
        let line = refused("trace", &words);
        assert!(line.contains("a COMMAND is missing"), "{words:?}: {line}");
    }
    for (words, reason) in [
        (&["why", "--deadline", "1ms"][..], "a time from 500 ms"),
        (&["scope", "--plain"], "--group"),
        (&["freeze", "--parquet", "calls", "--svg", "calls"], "is named for two outputs"),
    ] {
        let line = refused("trace", words);
        assert!(line.contains(reason), "{words:?}: {line}");
    }
}

#[test]
fn options_of_a_program_that_is_started_are_refused_for_one_that_runs() {
    for option in ["--ranks 4", "--in-world 1", "--mpi openmpi", "--hosts n1"] {
        let name = option.split(' ').next().expect("the option");
        refused_because(&format!("{option} attach"), &format!("{name} is for a program that is"));
    }
    refused_because("--every 10:MPI_Barrier attach", "set SAPWOOD_MPI_EVERY");
    refused_because("--events-folder events attach", "--events-folder is for a program that is");
    refused_because("attach --stacks 1ms", "--stacks");
    refused_because("attach --deadline soon", "--deadline");
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
