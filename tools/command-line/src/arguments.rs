//! Reading a command line, and one line for what is wrong with it.
//!
//! The table of arguments is each program's own, and what the arguments mean each tool's.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{Failure, one_line, print};

/// Reads the command line of the program of this name. `None` where help or the version was asked
/// for, and printed.
///
/// # Errors
/// [`Failure`] for a command line that is wrong.
pub fn read<T: Parser>(program: &str) -> Result<Option<T>, Failure> {
    T::try_parse().map(Some).or_else(|error| explained_in(&error, program, &T::command()))
}

/// As [`explained`], with the options of this definition in the forms in which a user knows them.
///
/// # Errors
/// As [`explained`].
pub fn explained_in<T>(
    error: &clap::Error,
    program: &str,
    definition: &clap::Command,
) -> Result<Option<T>, Failure> {
    let read = explained(error, program);
    if error.kind() != ErrorKind::ArgumentConflict {
        return read;
    }
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    read.map_err(|line| Failure::usage(in_known_forms(&line.to_string(), definition, &words)))
}

/// What becomes of a command line that is no command: help and the version are printed, anything
/// else is a failure.
///
/// # Errors
/// [`Failure`] for a command line that is wrong.
pub fn explained<T>(error: &clap::Error, program: &str) -> Result<Option<T>, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            print(&error.render().to_string())?;
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::usage(format!("a command is missing; see '{program} --help'")))
        }
        ErrorKind::MissingRequiredArgument if lacks_command(error) => {
            Err(Failure::usage(format!("a COMMAND is missing; see '{program} --help'")))
        }
        _ => Err(Failure::usage(in_one_line(&error.render().to_string(), program))),
    }
}

/// A line about options that do not go together, or are given twice, with each of them in the forms
/// in which a user knows it: by its letter as well, and by the alias that is among `words`.
fn in_known_forms(line: &str, command: &clap::Command, words: &[String]) -> String {
    let named = |line: String, argument: &clap::Arg| {
        let is_typed = |alias: &&str| {
            let mut options = words.iter().filter_map(|word| word.strip_prefix("--"));
            options.any(|word| word.split('=').next() == Some(*alias))
        };
        let aliases = argument.get_all_aliases().unwrap_or_default();
        let typed = aliases.into_iter().find(is_typed).map(|alias| format!("--{alias}"));
        let other = typed.or_else(|| argument.get_short().map(|letter| format!("-{letter}")));
        match (argument.get_long(), other) {
            (Some(long), Some(other)) => with_other_form(&line, &format!("--{long}"), &other),
            _ => line,
        }
    };
    command.get_arguments().fold(line.to_owned(), named)
}

/// The line with another form of an option in front of this one, wherever that is a whole word.
fn with_other_form(line: &str, option: &str, other: &str) -> String {
    let is_edge = |near: Option<char>| near.is_none_or(|near| " ';".contains(near));
    let (mut text, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(option) {
        let (before, found) = rest.split_at(at);
        let behind = &found[option.len()..];
        text.push_str(before);
        let is_word = is_edge(text.chars().next_back()) && is_edge(behind.chars().next());
        text.push_str(&if is_word { format!("{other} ({option})") } else { option.to_owned() });
        rest = behind;
    }
    text + rest
}

/// Whether options are given without the command they are for, and nothing else is missing.
fn lacks_command(error: &clap::Error) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => {
            matches!(&missing[..], [one] if one.starts_with("<COMMAND>"))
        }
        _ => false,
    }
}

/// An address with a port; without an address that of the loopback.
///
/// # Errors
/// What to give.
pub fn listening_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| {
        "give ADDRESS:PORT or PORT, such as 127.0.0.1:9500, [::1]:9500 or 9500".to_string()
    })
}

/// The reader of arguments explains a fault in several paragraphs: what is wrong, tips, the usage
/// and where help is. The first of these and the tips make one line.
fn in_one_line(explanation: &str, program: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for paragraph in explanation.split("\n\n").map(one_line) {
        let is_usage = paragraph.starts_with("Usage:") || paragraph.starts_with("For more");
        if is_negative_tip(&paragraph) {
            parts.push("a negative number has no meaning here".to_owned());
            continue;
        }
        let told = without_dashes_tip(&paragraph);
        if !is_usage && !told.is_empty() {
            parts.push(told.to_owned());
        }
    }
    let text = parts.join("; ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    format!("{text}; see '{program} --help'")
}

/// Whether this is the tip to write a negative number behind `--`: it would be no value of the
/// option before it any more, and most often that is what it is meant for.
fn is_negative_tip(paragraph: &str) -> bool {
    let number = paragraph.strip_prefix("tip: to pass '-");
    number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The paragraph without the tip at its end to write a word behind `--`: most often the word is an
/// option that is misspelled, and behind `--` it would be the program to run, or a name.
fn without_dashes_tip(paragraph: &str) -> &str {
    match paragraph.find("tip: to pass '-") {
        Some(at) if paragraph[at..].contains(" as a value, use '-- -") => {
            paragraph[..at].trim_end()
        }
        _ => paragraph,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_the_loopback() {
        for text in ["9500", ":9500", "127.0.0.1:9500"] {
            assert_eq!(listening_address(text), Ok(SocketAddr::from(([127, 0, 0, 1], 9500))));
        }
        assert!(listening_address("[::1]:0").is_ok_and(|address| address.is_ipv6()));
        for wrong in ["", "host:9500", "99999", "1.2.3.4", "1.2.3.4:x"] {
            assert!(listening_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_explanation_becomes_one_line_without_the_usage() {
        let explanation = "error: unrecognized subcommand 'bensh'\n\n  tip: a similar subcommand \
                           exists: 'bench'\n\nUsage: sapwood <COMMAND>\n\nFor more information, \
                           try '--help'.\n";
        let line = in_one_line(explanation, "sapwood");
        assert_eq!(
            line,
            "unrecognized subcommand 'bensh'; tip: a similar subcommand exists: 'bench'; \
             see 'sapwood --help'"
        );
    }

    #[test]
    fn what_begins_with_a_dash_is_not_told_to_stand_behind_dashes() {
        let said = |words: &[&str]| {
            let error = Watch::try_parse_from(words).expect_err("it is wrong");
            explained::<Watch>(&error, "sapwood").expect_err("it is wrong").to_string()
        };
        let negative = said(&["sapwood", "--mpi", "-1s", "true"]);
        assert_eq!(
            negative,
            "unexpected argument '-1' found; a negative number has no meaning here; \
             see 'sapwood --help'"
        );
        let word = said(&["sapwood", "--unknown", "true"]);
        assert_eq!(word, "unexpected argument '--unknown' found; see 'sapwood --help'");
        // Of an option that is misspelled the other tip is a good one.
        let near = said(&["sapwood", "--mpx", "true"]);
        assert_eq!(
            near,
            "unexpected argument '--mpx' found; tip: a similar argument exists: '--mpi'; \
             see 'sapwood --help'"
        );
    }

    #[test]
    fn an_option_that_does_not_go_with_another_is_named_in_both_forms() {
        use clap::CommandFactory as _;
        let said = |words: &[&str]| {
            let error = Fold::try_parse_from(words).expect_err("they do not go together");
            let failure = explained::<Fold>(&error, "sapwood run").expect_err("it is wrong");
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            in_known_forms(&failure.to_string(), &Fold::command(), &words)
        };
        assert_eq!(
            said(&["run", "--json", "-b"]),
            "the argument '--json' cannot be used with '-b (--fold)'; see 'sapwood run --help'"
        );
        assert!(said(&["run", "--json", "--dshbak"]).contains("with '--dshbak (--fold)'; see"));
        assert!(said(&["run", "--json", "--fold-wide"]).contains("with '--fold-wide'; see"));
        let both = said(&["run", "--json", "-b", "--fold-wide"]);
        assert!(both.contains("-b (--fold)") && both.contains(" --fold-wide"), "{both}");
        assert!(said(&["run", "-b", "-b"]).contains("'-b (--fold)' cannot be used multiple times"));
    }

    #[derive(Debug, Parser)]
    struct Fold {
        #[arg(short = 'b', long, alias = "dshbak")]
        fold: bool,
        #[arg(long)]
        fold_wide: bool,
        #[arg(long, conflicts_with_all = ["fold", "fold_wide"])]
        json: bool,
    }

    #[derive(Debug, Parser)]
    struct Watch {
        #[arg(long)]
        mpi: Option<String>,
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<String>,
    }

    #[derive(Debug, Parser)]
    struct Copy {
        #[arg(long, required = true)]
        to: Option<String>,
        #[arg(required = true)]
        command: Vec<String>,
    }

    #[test]
    fn a_missing_command_is_named_as_one() {
        let error = Watch::try_parse_from(["sapwood", "--mpi", "mpich"]).expect_err("no command");
        let failure = explained::<Watch>(&error, "sapwood").expect_err("no command");
        assert_eq!(failure.to_string(), "a COMMAND is missing; see 'sapwood --help'");
        let error = Copy::try_parse_from(["sapwood"]).expect_err("neither");
        let failure = explained::<Copy>(&error, "sapwood").expect_err("neither");
        assert!(failure.to_string().contains("--to <TO> <COMMAND>"), "{failure}");
    }
}
