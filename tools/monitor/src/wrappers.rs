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
                _ if self.has_assignments && word.contains('=') => 1,
                _ if operands < self.operands => {
                    operands += 1;
                    1
                }
                _ => break,
            };
        }
        // Operands that stand behind `--`.
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
    fn a_wrapper_alone_is_the_program() {
        assert_eq!(behind("env"), "env");
        assert_eq!(behind("env A=1"), "env");
        assert_eq!(behind("timeout 5"), "timeout");
    }
}
