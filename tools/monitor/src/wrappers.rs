//! Programs that start another one with something changed, such as `nice` and `env`: how many words
//! of a command are theirs.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A program that runs the rest of its command line.
struct Wrapper {
    name: &'static str,
    /// Its options whose argument is a word of its own.
    with_argument: &'static [&'static str],
    /// Words before the program that are no options.
    operands: usize,
    /// Whether NAME=VALUE may stand before the program.
    has_assignments: bool,
}

const fn wrapper(name: &'static str, with_argument: &'static [&'static str]) -> Wrapper {
    Wrapper { name, with_argument, operands: 0, has_assignments: false }
}

const WRAPPERS: [Wrapper; 9] = [
    Wrapper { has_assignments: true, ..wrapper("env", &["-u", "--unset", "-C", "--chdir"]) },
    wrapper("ionice", &["-c", "--class", "-n", "--classdata"]),
    wrapper("nice", &["-n", "--adjustment"]),
    wrapper("nohup", &[]),
    wrapper(
        "numactl",
        &["-N", "-m", "-i", "-C", "-p", "--cpunodebind", "--membind", "--physcpubind"],
    ),
    wrapper("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"]),
    Wrapper { operands: 1, ..wrapper("taskset", &[]) },
    wrapper("time", &["-f", "--format", "-o", "--output"]),
    Wrapper { operands: 1, ..wrapper("timeout", &["-k", "--kill-after", "-s", "--signal"]) },
];

/// How many words come before the program or launcher that a command starts in the end. None, if
/// nothing comes behind the wrappers.
pub(crate) fn wrapper_words(words: &[OsString]) -> usize {
    let mut at = 0;
    while let Some(wrapper) = words.get(at).and_then(|word| named(word)) {
        at += 1 + wrapper.own_words(&words[at + 1..]);
    }
    if at < words.len() { at } else { 0 }
}

/// What an `env` does to a variable that the program is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EnvChange {
    /// It sets it to this.
    Sets(String),
    /// It removes it.
    Unsets,
    /// It removes all variables.
    Clears,
}

/// A change, and the place of the word that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvWord {
    pub(crate) at: usize,
    pub(crate) change: EnvChange,
}

/// What each `env` among the wrappers that a command begins with does to a variable. One that is
/// set behind its removal is set.
pub(crate) fn env_words(words: &[OsString], variable: &str) -> Vec<EnvWord> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(wrapper) = words.get(at).and_then(|word| named(word)) {
        let begin = at + 1;
        at = begin + wrapper.own_words(&words[begin..]);
        if wrapper.has_assignments {
            let own = words.get(begin..at).unwrap_or_default();
            let mut changes = env_changes(own, variable);
            let is_set = changes.iter().any(|word| matches!(word.change, EnvChange::Sets(_)));
            changes.retain(|word| !(is_set && word.change == EnvChange::Unsets));
            found.extend(changes.into_iter().map(|word| EnvWord { at: begin + word.at, ..word }));
        }
    }
    found
}

/// The same of the words of one `env`.
fn env_changes(own: &[OsString], variable: &str) -> Vec<EnvWord> {
    let mut found = Vec::new();
    let mut unsets = false;
    for (at, word) in own.iter().enumerate() {
        let Some(word) = word.to_str() else { continue };
        let is_unset_here = std::mem::take(&mut unsets) && word == variable;
        let unset = word.strip_prefix("--unset=").or_else(|| word.strip_prefix("-u"));
        let change = match word.split_once('=') {
            Some((name, value)) if name == variable => Some(EnvChange::Sets(value.to_owned())),
            _ if is_unset_here || unset == Some(variable) => Some(EnvChange::Unsets),
            _ if word == "--ignore-environment" || clears(word) => Some(EnvChange::Clears),
            _ => None,
        };
        unsets = matches!(word, "-u" | "--unset");
        found.extend(change.map(|change| EnvWord { at, change }));
    }
    found
}

/// Whether one of the letters of an option of `env` has it begin without variables, as `-` does.
fn clears(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let takes_rest = |letter: &char| "uCS".contains(*letter);
    letters.is_some_and(|letters| {
        letters.is_empty() || letters.chars().take_while(|it| !takes_rest(it)).any(|it| it == 'i')
    })
}

fn named(word: &OsStr) -> Option<&'static Wrapper> {
    let name = Path::new(word).file_name()?;
    WRAPPERS.iter().find(|wrapper| name == wrapper.name)
}

impl Wrapper {
    /// How many of the words behind its name are its own.
    fn own_words(&self, words: &[OsString]) -> usize {
        let (mut at, mut operands) = (0, 0);
        while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
            at += match word {
                "--" => {
                    at += 1;
                    break;
                }
                _ if self.with_argument.contains(&word) => 2,
                _ if word.len() > 1 && word.starts_with('-') => 1,
                _ if self.has_assignments && (word == "-" || word.contains('=')) => 1,
                _ if operands < self.operands => {
                    operands += 1;
                    1
                }
                _ => break,
            };
        }
        // Assignments and operands that stand behind `--`.
        let is_assignment = |word: &&OsString| word.to_str().is_some_and(|word| word.contains('='));
        if self.has_assignments {
            at += words.iter().skip(at).take_while(is_assignment).count();
        }
        at + (self.operands - operands).min(words.len().saturating_sub(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(text: &str) -> String {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        words[wrapper_words(&words)].to_string_lossy().into_owned()
    }

    #[test]
    fn the_program_behind_its_wrappers_is_found() {
        for text in [
            "mpirun -np 2 a",
            "env A=1 -u B mpirun -np 2 a",
            "env - A=1 mpirun -np 2 a",
            "env -u B -- A=1 B=2 mpirun -np 2 a",
            "/usr/bin/nice -n 5 mpirun -np 2 a",
            "nice mpirun -np 2 a",
            "time -p env A=1 mpirun -np 2 a",
            "timeout -k 5 60s mpirun -np 2 a",
            "timeout -- 60s mpirun -np 2 a",
            "taskset -c 0-3 mpirun -np 2 a",
            "numactl --interleave=all -N 0 mpirun -np 2 a",
            "stdbuf -oL nohup mpirun -np 2 a",
        ] {
            assert_eq!(behind(text), "mpirun", "{text}");
        }
    }

    #[test]
    fn what_env_does_to_a_variable_is_found() {
        let found = |text: &str| {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            let words = env_words(&words, "P");
            words.into_iter().map(|word| (word.at, word.change)).collect::<Vec<_>>()
        };
        let sets = |value: &str| EnvChange::Sets(value.to_owned());
        assert_eq!(found("nice -n 5 env A=1 P=/u.so a P=2"), [(5, sets("/u.so"))]);
        assert_eq!(found("env P= a"), [(1, sets(""))]);
        assert_eq!(found("/usr/bin/env -u P a"), [(2, EnvChange::Unsets)]);
        assert_eq!(found("env -uP a"), [(1, EnvChange::Unsets)]);
        assert_eq!(found("env --unset=P -v a"), [(1, EnvChange::Unsets)]);
        assert_eq!(found("env -u P P=/u.so a"), [(3, sets("/u.so"))]);
        assert_eq!(found("env -- A=1 P=/u.so a"), [(3, sets("/u.so"))]);
        for text in ["env -i a", "env - a", "env -vi a", "env --ignore-environment a"] {
            assert_eq!(found(text), [(1, EnvChange::Clears)], "{text}");
        }
        assert_eq!(found("env -i P=/u.so a"), [(1, EnvChange::Clears), (2, sets("/u.so"))]);
        for text in ["env -u Pi -C i A=P a -i", "env -uOi a", "env -- a -i", "a -i P=1", "env"] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_wrapper_alone_is_the_program() {
        assert_eq!(behind("env"), "env");
        assert_eq!(behind("env A=1"), "env");
        assert_eq!(behind("timeout 5"), "timeout");
    }
}
