//! The manual pages and the completions are of the commands that the help names, with all options.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cli::{run, text};

/// Commands that their parents' help does not list, since other parsers read their arguments.
const OWN_PARSER: [[&str; 2]; 2] = [["mpi", "attach"], ["mpi", "control"]];

/// Letters that users know from different programs, with what each means in the commands that are
/// like these.
const LETTERS_OF_OTHERS: [(char, &[&str]); 2] = [
    // The number of processes, as of mpirun; no standard input, as of clush.
    ('n', &["--members", "--nostdin", "--processes", "--ranks"]),
    // What stands between names, as of ClusterShell's nodeset; the largest exit code, as of clush.
    ('S', &["--maxrc", "--separator"]),
];

/// The sub-commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // The description of a command goes on below it, further to the right.
    let names =
        lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The long options that a help describes.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| {
        line.split([' ', ',', '=', '[']).take_while(|word| word.is_empty() || word.starts_with('-'))
    });
    // Further names of an option stand in brackets, which may begin a line.
    let words = words.filter(|word| word.starts_with("--") && !word.ends_with(']'));
    words.filter(|word| word.len() > 2).map(str::to_owned).collect()
}

/// The letters of options that a help describes, each with the name of its option.
fn letters(help: &str) -> Vec<(char, String)> {
    let of_line = |line: &str| {
        let (name, option) = line.trim_start().strip_prefix('-')?.split_once(", ")?;
        let mut name = name.chars();
        let (Some(letter), None) = (name.next(), name.next()) else { return None };
        let option = option.split([' ', '=', '[']).next()?;
        option.starts_with("--").then(|| (letter, option.to_owned()))
    };
    help.lines().filter_map(of_line).collect()
}

/// Every command that can be called, as its words with its help, from the top.
pub(crate) fn commands() -> Vec<(Vec<String>, String)> {
    let own = OWN_PARSER.map(|words| words.map(str::to_owned).to_vec());
    let (mut found, mut open) = (Vec::new(), own.to_vec());
    open.push(Vec::new());
    while let Some(words) = open.pop() {
        let mut call: Vec<&str> = words.iter().map(String::as_str).collect();
        call.push("--help");
        let output = run(&call);
        assert_eq!(output.status.code(), Some(0), "{call:?}: {}", text(&output.stderr));
        let help = text(&output.stdout).to_owned();
        for name in listed(&help) {
            open.push(words.iter().cloned().chain([name]).collect());
        }
        found.push((words, help));
    }
    found
}

fn write_pages(folder: &Path) {
    let output = run(&["manual", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_letter_has_one_meaning_in_all_commands() {
    let mut meanings: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for (_, help) in commands() {
        for (letter, option) in letters(&help) {
            meanings.entry(letter).or_default().insert(option);
        }
    }
    assert!(meanings.len() > 20, "too few are found: {meanings:?}");
    assert!(meanings[&'q'].contains("--quiet") && meanings[&'w'].contains("--nodes"));
    for (letter, options) in meanings {
        let others = LETTERS_OF_OTHERS.iter().find(|(other, _)| *other == letter);
        match others {
            Some((_, allowed)) => {
                let found: Vec<&str> = options.iter().map(String::as_str).collect();
                assert_eq!(found, *allowed, "-{letter}");
            }
            None => assert_eq!(options.len(), 1, "-{letter} is {options:?}"),
        }
    }
}

#[test]
fn every_command_has_a_manual_page_with_all_its_options() {
    let folder = tempfile::tempdir().unwrap();
    write_pages(folder.path());
    let commands = commands();
    let has = |wanted: &[&str]| commands.iter().any(|(words, _)| words == wanted);
    assert!(
        has(&["run"]) && has(&["mpi", "export"]) && has(&["trace", "why"]),
        "too few are found"
    );
    for (words, help) in &commands {
        let name = [&["sapwood".to_owned()], &words[..]].concat().join("-");
        let file = folder.path().join(format!("{name}.1"));
        let page = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}.1: {error}"));
        let page = page.replace('\\', "");
        assert!(page.contains(&format!("\n{name} - ")), "{name}.1 does not begin with its name");
        for option in options(help) {
            assert!(page.contains(&option), "{name}.1 lacks {option}");
        }
    }
    assert!(folder.path().join("sapwood-node.1").is_file());
}

#[test]
fn pages_that_cannot_be_written_are_named() {
    let output = run(&["manual", "/proc/no-folder"]);
    assert_eq!(output.status.code(), Some(125));
    let said = text(&output.stderr);
    assert!(said.starts_with("sapwood: cannot write /proc/no-folder/sapwood.1: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// What bash offers for the last of these words.
fn offered_by_bash(script: &Path, words: &[&str]) -> BTreeSet<String> {
    let previous = words[words.len() - 2];
    let last = words[words.len() - 1];
    let code = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={}; _sapwood sapwood '{last}' '{previous}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
    );
    let output = Command::new("bash").args(["--norc", "-c", &code]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("sapwood");
    fs::write(&script, run(&["completions", "bash"]).stdout).unwrap();
    let offered = offered_by_bash(&script, &["sapwood", "co"]);
    assert!(offered.contains("copy") && offered.contains("completions"), "{offered:?}");
    assert!(!offered.contains("run"), "{offered:?}");
    for (words, help) in commands() {
        let typed = words.iter().map(String::as_str);
        let typed: Vec<&str> = ["sapwood"].into_iter().chain(typed).chain(["--"]).collect();
        let offered = offered_by_bash(&script, &typed);
        let lacking: Vec<_> = options(&help).difference(&offered).cloned().collect();
        assert!(lacking.is_empty(), "{words:?} lack {lacking:?}");
    }
}

#[test]
fn zsh_and_fish_have_every_command_and_other_shells_are_refused() {
    let zsh = run(&["completions", "zsh"]).stdout;
    let fish = run(&["completions", "fish"]).stdout;
    assert!(text(&zsh).starts_with("#compdef sapwood\n"), "{}", text(&zsh));
    for name in commands().iter().filter_map(|(words, _)| words.last()) {
        assert!(text(&zsh).contains(&format!("'{name}:")), "{name}");
        let fish = text(&fish);
        assert!(fish.contains(&format!("-a \"{name}\"")), "{name}");
    }
    crate::cli::assert_refused(&run(&["completions", "tcsh"]), "tcsh", &["completions", "tcsh"]);
}
