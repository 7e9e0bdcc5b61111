//! The command line as a user meets it: help, versions, and one line for what is wrong.

use std::process::Output;

use crate::cli::{assert_refused, clean_command, program, run, text};
use crate::cli_manual::commands;

#[test]
fn help_names_every_command_in_a_line() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for command in ["mpi", "topology", "run", "doctor", "status"] {
        let line = help.lines().find(|line| line.trim_start().starts_with(command));
        assert!(line.is_some_and(|line| line.len() > 20), "{command} in {help}");
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn every_command_has_a_version_and_help() {
    for command in ["topology", "bench", "doctor"] {
        let version = run(&[command, "--version"]);
        assert!(text(&version.stdout).contains(env!("CARGO_PKG_VERSION")), "{command}");
        assert_eq!(run(&[command, "--help"]).status.code(), Some(0), "{command}");
    }
}

#[test]
fn a_wrong_command_line_gives_one_line_and_exit_code_2() {
    let wrong: [&[&str]; 26] = [
        &[],
        &["bensh"],
        &["--speed"],
        &["topology"],
        &["topology", "print"],
        &["topology", "paint", "8"],
        &["topology", "cost", "8", "--loggp", "1,2,-3,4"],
        &["topology", "cost", "8", "--loggp", "1,2"],
        &["topology", "print", "8", "--hosts", "-a"],
        &["bench", "tree", "--topology", "4x"],
        &["bench", "tree", "--topology", "99999"],
        &["bench", "tree", "--bytes", "9"],
        &["bench", "tree", "--runs", "0"],
        &["bench", "tree", "--only", "sleep"],
        &["bench", "tree", "--transport", "pipe"],
        &["bench", "scale", "--transport", "pipe"],
        &["bench", "clocks", "--transport", "pipe"],
        &["bench", "flood", "--transport", "pipe"],
        &["bench", "flood", "--elements", "x"],
        &["bench", "bulk", "--transport", "pipe"],
        &["bench", "bulk", "--only", "sleep"],
        &["bench", "recovery", "--transport", "pipe"],
        &["bench", "recovery", "--silence-ms", "x"],
        &["bench", "scale", "--seed", "x"],
        &["bench", "group", "--seed", "x"],
        &["doctor", "--topology", "0"],
    ];
    for arguments in wrong {
        assert_refused(&run(arguments), "", arguments);
    }
}

#[test]
fn each_command_names_its_own_help() {
    for (words, _) in commands() {
        let name = [&["sapwood".to_owned()], &words[..]].concat().join(" ");
        let call: Vec<&str> =
            words.iter().map(String::as_str).chain(["--no-such-option"]).collect();
        assert_refused(&run(&call), &format!("see '{name} --help'\n"), &call);
    }
}

/// Runs a small command with this limit on its address space, in KiB.
fn run_within(limit: u64) -> Output {
    let script = format!("ulimit -c 0; ulimit -v {limit}; exec '{}' nodeset count n1", program());
    clean_command("sh").args(["-c", &script]).output().unwrap()
}

#[test]
fn too_small_an_address_space_is_told_in_one_line_with_what_is_needed() {
    // The smallest limit that is enough, which depends on how large the program is.
    let (mut too_small, mut enough) = (1 << 10, 4 << 20);
    assert!(run_within(enough).status.success());
    while too_small + 1 < enough {
        let limit = u64::midpoint(too_small, enough);
        match run_within(limit).status.success() {
            true => enough = limit,
            false => too_small = limit,
        }
    }
    let output = run_within(enough - (2 << 10));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.starts_with("sapwood: the limit on the address space (ulimit -v "), "{said}");
    assert!(said.lines().count() == 1 && output.stdout.is_empty(), "{said}");
    let needed: u64 = said.trim().rsplit(' ').next().unwrap().parse().unwrap();
    // Where the system puts the stack costs some pages more or less each time.
    assert!(run_within(needed + 64).status.success(), "{said}");
}

#[test]
fn a_node_without_a_parent_says_so_in_one_line() {
    for arguments in [&["node"][..], &["bench", "bench-back-end"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{arguments:?}");
    }
}

#[test]
fn a_name_that_is_no_tool_runs_a_program_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let script = "#!/bin/sh\necho \"$@\"\nexit 7\n";
    crate::cli::write_program(&folder.path().join("sapwood-greet"), script);
    let call = |arguments: &[&str]| {
        let mut command = crate::cli::command();
        command.args(arguments).env("PATH", folder.path()).output().unwrap()
    };
    let output = call(&["greet", "--to", "a b"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "--to a b\n");
    assert_refused(&call(&["meet"]), "meet", &["meet"]);
}

#[test]
fn a_node_with_further_arguments_is_refused() {
    let arguments = ["node", "--port", "80"];
    assert_refused(&run(&arguments), "--port", &arguments);
}

/// The exit code and the standard error of the command where its output goes there.
fn with_output(arguments: &str, place: &str) -> (Option<i32>, String) {
    let line = format!("exec '{}' {arguments} {place}", crate::cli::program());
    let mut shell = crate::cli::clean_command("sh");
    let output = shell.arg("-c").arg(line).env("SAPWOOD_LAUNCHER", "local").output().unwrap();
    (output.status.code(), text(&output.stderr).to_owned())
}

#[test]
fn output_that_cannot_be_written_is_a_failure_in_every_command() {
    let commands = [
        "--help",
        "--version",
        "run --help",
        "completions bash",
        "nodeset expand 'n[1-3]'",
        "topology draw 4",
        "doctor",
        "run --new-tree -n -w 'n[1-2]' echo x",
        "run --new-tree -n -b -w 'n[1-2]' echo x",
        "run --new-tree -n --json -w 'n[1-2]' echo x",
        "top --once -w n1",
    ];
    for command in commands {
        let closed = "sapwood: cannot write to standard output: it is closed\n".to_owned();
        assert_eq!(with_output(command, ">&-"), (Some(125), closed), "{command}");
        let (code, said) = with_output(command, ">/dev/full");
        assert_eq!((code, said.lines().count()), (Some(125), 1), "{command}: {said}");
    }
    // What writes nothing needs no output.
    let quiet = "run --new-tree -n -w n1 true";
    assert_eq!(with_output(quiet, ">&-"), (Some(0), String::new()));
}

#[test]
fn a_standard_error_that_takes_no_more_changes_neither_exit_code_nor_output() {
    // Each writes on standard error: the outputs of hosts, their states, hosts that are missing, an
    // error of its own; and all write their log there.
    let commands = [
        "run --new-tree -n -w 'n[1-2]' 'echo x; echo y >&2; exit 3'",
        "run --new-tree -n -b -w 'n[1-2]' 'echo x; echo y >&2; exit 3'",
        "run --new-tree -n -w 'n[1-2]' --json 'echo y >&2; exit 3'",
        "run --new-tree -n --launcher=ssh --remote-shell=false -w 'n[1-2]' true",
        "top --once --launcher=ssh --remote-shell=false -w n1",
        "up --launcher=ssh --remote-shell=false -w n1",
        "copy -w n1 /no/such/file /no/such/folder/",
        "status",
        "mpi -- ./no-such-program",
    ];
    let folder = tempfile::tempdir().unwrap();
    let without_times = |text: &str| {
        text.chars().filter(|character| !character.is_ascii_digit()).collect::<String>()
    };
    for command in commands {
        let with = |errors| {
            let line = format!("'{}' {command} 2>{errors}", crate::cli::program());
            let mut shell = crate::cli::clean_command("sh");
            shell.arg("-c").arg(line).env("SAPWOOD_LAUNCHER", "local").env("SAPWOOD_LOG", "debug");
            shell.env("XDG_RUNTIME_DIR", folder.path());
            let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
            (output.status.code(), without_times(text(&output.stdout)))
        };
        assert_eq!(with("/dev/full"), with("/dev/null"), "{command}");
    }
}

#[test]
fn a_reader_that_has_gone_ends_a_command_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    for command in
        ["nodeset expand -S '\\n' 'n[1-1000000]'", "run --new-tree -w 'n[1-2]' seq 1000000"]
    {
        let line =
            format!("{{ '{}' {command}; echo $? >code; }} 2>said | head -1", crate::cli::program());
        let mut shell = crate::cli::clean_command("sh");
        shell.arg("-c").arg(line).env("SAPWOOD_LAUNCHER", "local").current_dir(folder.path());
        shell.stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(std::fs::read_to_string(&said).unwrap(), "", "{command}");
        let code = std::fs::read_to_string(folder.path().join("code")).unwrap();
        assert_eq!(code, "141\n", "{command}");
    }
}
