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
    T::try_parse().map(Some).or_else(|error| explained(&error, program))
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
        } else if !is_usage && !paragraph.is_empty() {
            parts.push(paragraph);
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
    fn a_negative_value_of_an_option_is_not_told_to_stand_behind_dashes() {
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
        // Of a word the tip is a good one.
        let word = said(&["sapwood", "--unknown", "true"]);
        assert!(word.contains("use '-- --unknown'"), "{word}");
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
