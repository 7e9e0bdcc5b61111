//! The options with which a tree is started again.
//!
//! Owns what is kept of those that the user has given. They are meant to reach the hosts that the
//! tree was started with, later and from another folder: what would be read or chosen anew gives
//! way to the hosts themselves. Names of other files stay as they were given.

use std::collections::BTreeSet;

use clap::{Args, Command};

use crate::selection::Selection;

/// The words of a command with these arguments, without those by which it takes another's place,
/// and with these hosts where the words themselves do not say which they are.
pub(super) fn options<A: Args>(
    words: impl IntoIterator<Item = String>,
    selection: &Selection,
    hosts: &str,
) -> Vec<String> {
    let all = Options::of::<A>();
    let left_out = match selection.stays() {
        true => Options::default(),
        false => Options::of::<Selection>(),
    };
    let mut options = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(read) = all.read(&word) else { continue };
        let value = read.value.or_else(|| read.lacks_value.then(|| words.next()).flatten());
        // Flags stand before the option with which they are written as one word.
        for flag in read.flags.chars().filter(|flag| !left_out.has(&flag.to_string())) {
            options.push(format!("-{flag}"));
        }
        if !read.name.is_empty() && read.name != "replace" && !left_out.has(&read.name) {
            let dashes = if read.name.chars().count() == 1 { "-" } else { "--" };
            match value {
                // In a word of its own it would be an option.
                Some(value) if value.starts_with('-') => {
                    options.push(format!("{dashes}{}={value}", read.name));
                }
                value => {
                    options.push(format!("{dashes}{}", read.name));
                    options.extend(value);
                }
            }
        }
    }
    if !selection.stays() {
        options.extend(["-w".to_owned(), hosts.to_owned()]);
    }
    options
}

/// Names of options, without dashes.
#[derive(Default)]
struct Options {
    flags: BTreeSet<String>,
    with_value: BTreeSet<String>,
}

/// What a word says.
#[derive(Default)]
struct Read {
    /// Options of one letter without a value.
    flags: String,
    /// The option; none where all are flags.
    name: String,
    /// What stands behind it in the same word.
    value: Option<String>,
    /// Whether the next word is the value.
    lacks_value: bool,
}

impl Options {
    fn of<A: Args>() -> Self {
        let mut options = Self::default();
        for argument in A::augment_args(Command::default()).get_arguments() {
            let shorts = argument.get_short_and_visible_aliases().into_iter().flatten();
            let shorts = shorts.chain(argument.get_all_short_aliases().into_iter().flatten());
            let longs = argument.get_long().into_iter();
            let longs = longs.chain(argument.get_all_aliases().into_iter().flatten());
            let names = shorts.map(String::from).chain(longs.map(str::to_owned));
            match argument.get_action().takes_values() {
                true => options.with_value.extend(names),
                false => options.flags.extend(names),
            }
        }
        options
    }

    fn has(&self, name: &str) -> bool {
        self.flags.contains(name) || self.with_value.contains(name)
    }

    /// Reads a word that is an option. What no option is called has been refused before.
    fn read(&self, word: &str) -> Option<Read> {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let lacks_value = value.is_none() && self.with_value.contains(name);
            return Some(Read { name: name.to_owned(), value, lacks_value, ..Read::default() });
        }
        let mut read = Read::default();
        let mut letters = word.strip_prefix('-')?.chars();
        while let Some(letter) = letters.next() {
            if !self.with_value.contains(&letter.to_string()) {
                read.flags.push(letter);
                continue;
            }
            let rest = letters.as_str();
            let value = rest.strip_prefix('=').unwrap_or(rest);
            read.name = letter.to_string();
            read.lacks_value = rest.is_empty();
            read.value = (!rest.is_empty()).then(|| value.to_owned());
            break;
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};

    use super::super::up::Arguments;
    use super::*;

    /// A command line that holds nothing but these.
    #[derive(Parser)]
    struct Line<A: Args> {
        #[command(flatten)]
        arguments: A,
    }

    fn again(words: &str) -> String {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let command = <Line<Arguments> as clap::CommandFactory>::command();
        let matches = command.no_binary_name(true).get_matches_from(words.clone());
        let selection = Selection::from_arg_matches(&matches).unwrap();
        options::<Arguments>(words, &selection, "n[1-9]").join(" ")
    }

    #[test]
    fn what_is_said_in_words_stays() {
        let table = [
            ("-w n[1-3] -f 2", "-w n[1-3] -f 2"),
            ("--replace -w n[1-3],-n2 -x n1 --idle=5", "-w n[1-3],-n2 -x n1 --idle 5"),
            ("-g io -s rack --replace", "-g io -s rack"),
            ("-al root", "-a -l root"),
            ("-wn[1-3] -R ssh", "-w n[1-3] -R ssh"),
            ("-w n[1-3] -w=-n2", "-w n[1-3] -w=-n2"),
            ("-w n[1-3] --nodes=-n2,n4", "-w n[1-3] --nodes=-n2,n4"),
        ];
        for (words, expected) in table {
            assert_eq!(again(words), expected, "{words}");
            // What is printed is understood, and means the same.
            assert_eq!(again(expected), expected, "{words}");
        }
    }

    #[test]
    fn what_would_be_read_or_chosen_anew_gives_way_to_the_hosts() {
        for words in [
            "-f 2 -w -",
            "-f 2 -w n1,-",
            "-f 2 -w ^-",
            "-f 2 -w ^hosts",
            "-f 2 -w^hosts,n1",
            "-f 2 -w n[1-20] -x -",
            "-f 2 -w n[1-20] -x ^hosts",
            "-f 2 --nodes=n[1-20] --exclude=^hosts",
            "--hostfile hosts -f 2",
            "--machinefile=hosts -f 2",
            "--hostfile=- -f 2",
            "-a --pick 9 -f 2",
            "-x n7 -f 2",
            "-s rack -af 2 -x ^hosts",
            "--replace -f2",
        ] {
            assert_eq!(again(words), "-f 2 -w n[1-9]", "{words}");
        }
    }
}
