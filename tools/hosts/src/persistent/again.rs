//! The options with which a tree is started again.
//!
//! Owns what is kept of those that the user has given. They are meant to reach the hosts that the
//! tree was started with, later and from another folder: what would be read or chosen anew gives
//! way to the hosts themselves. Names of other files stay as they were given.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Args as _, Command as Definition};

use super::up::Arguments;
use crate::selection::Selection;

/// The option by which a tree takes another's place.
const REPLACE: &str = "replace";

/// The options of `sapwood up` that these words are, by their long names, without the one by which
/// it takes another's place, and with these hosts where the words themselves do not say which they
/// are.
pub(super) fn options(
    words: impl IntoIterator<Item = OsString>,
    selection: &Selection,
    hosts: &str,
) -> Vec<String> {
    let command = Arguments::augment_args(Definition::new("up").no_binary_name(true));
    // Words that were read once and cannot be read again: the hosts are known, no more.
    let Ok(read) = command.clone().try_get_matches_from(words) else {
        return vec![format!("--nodes={hosts}")];
    };
    let selecting = Selection::augment_args(Definition::new("selection"));
    let selects = |id: &str| selecting.get_arguments().any(|argument| argument.get_id() == id);
    let is_kept = |id: &str| id != REPLACE && (selection.stays() || !selects(id));
    let is_given = |id: &str| read.value_source(id) == Some(ValueSource::CommandLine);
    let mut options = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        // Each has a long name, and one value or none.
        let Some(long) = argument.get_long().filter(|_| is_given(id) && is_kept(id)) else {
            continue;
        };
        if !argument.get_action().takes_values() {
            options.push(format!("--{long}"));
            continue;
        }
        // In a word of its own a value may be an option.
        let values = read.get_raw(id).into_iter().flatten();
        options.extend(values.map(|value| format!("--{long}={}", value.to_string_lossy())));
    }
    if !selection.stays() {
        options.push(format!("--nodes={hosts}"));
    }
    options
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    /// Words that stay, and what is printed of them.
    const STAYING: [(&str, &str); 9] = [
        ("-w n[1-3] -f 2", "--nodes=n[1-3] --fan-out=2"),
        ("--replace -w n[1-3],-n2 -x n1 --idle=5", "--nodes=n[1-3],-n2 --exclude=n1 --idle=5"),
        ("-g io -s rack --replace", "--group=io --source=rack"),
        ("-al root", "--all --user=root"),
        ("-wn[1-3] -R ssh", "--nodes=n[1-3] --launcher=ssh"),
        ("-w n[1-3] -w=-n2", "--nodes=n[1-3] --nodes=-n2"),
        ("-w n[1-3] --nodes=-n2,n4", "--nodes=n[1-3] --nodes=-n2,n4"),
        ("-o -q --groupsource rack -a", "--all --source=rack --shell-options=-q"),
        ("-w n1 --fanout 2 --", "--nodes=n1 --fan-out=2"),
    ];

    fn again(words: &str) -> String {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let command = Arguments::augment_args(Definition::new("up").no_binary_name(true));
        let read = command.try_get_matches_from(words.clone()).unwrap();
        let selection = Selection::from_arg_matches(&read).unwrap();
        options(words, &selection, "n[1-9]").join(" ")
    }

    #[test]
    fn what_is_said_in_words_stays() {
        for (words, printed) in STAYING {
            assert_eq!(again(words), printed, "{words}");
        }
    }

    #[test]
    fn what_is_printed_is_understood_and_means_the_same() {
        let printed = STAYING.map(|(_, printed)| printed);
        assert_eq!(printed.map(again), printed);
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
            assert_eq!(again(words), "--fan-out=2 --nodes=n[1-9]", "{words}");
        }
    }

    #[test]
    fn each_option_has_a_long_name_and_one_value_or_none() {
        let mut command = Arguments::augment_args(Definition::new("up"));
        command.build();
        for argument in command.get_arguments() {
            let values = usize::from(argument.get_action().takes_values());
            let count = argument.get_num_args().expect("the command is built");
            assert!(argument.get_long().is_some(), "{argument}");
            assert_eq!((count.min_values(), count.max_values()), (values, values), "{argument}");
        }
    }
}
