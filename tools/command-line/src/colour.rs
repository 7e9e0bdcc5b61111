//! Colours: whether a command writes them.
//!
//! Owns the option `--color`, [`ColourOption`], and what it means together with the variable
//! `NO_COLOR`. Which colours there are is left to what is shown.

use std::ffi::OsStr;
use std::io::IsTerminal;

/// The option of every command that writes colours.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ColourOption {
    /// Write colours: auto (on a terminal, unless NO_COLOR is set), always, or never.
    #[arg(
        long = "color",
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    choice: ColourChoice,
}

/// When colours are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless `NO_COLOR` is there and not empty.
    #[default]
    Auto,
    /// Wherever the output goes.
    Always,
    /// Nowhere.
    Never,
}

impl ColourOption {
    /// Whether colours are written to this stream.
    pub fn is_wanted_on(self, stream: &impl IsTerminal) -> bool {
        match self.choice {
            ColourChoice::Auto => {
                stream.is_terminal() && !refuses(std::env::var_os("NO_COLOR").as_deref())
            }
            ColourChoice::Always => true,
            ColourChoice::Never => false,
        }
    }
}

/// Whether a value of `NO_COLOR` refuses colours: by its convention an empty one does not.
fn refuses(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Shown {
        #[command(flatten)]
        colour: ColourOption,
    }

    #[test]
    fn the_choice_is_read_and_decides_where_there_is_no_terminal() {
        let file = std::fs::File::open("/dev/null").expect("it is always there");
        let wanted = |words: &[&str]| {
            let words = [&["show"], words].concat();
            Shown::try_parse_from(words).map(|shown| shown.colour.is_wanted_on(&file))
        };
        for (words, expected) in [
            (&[][..], false),
            (&["--color", "auto"][..], false),
            (&["--color=always"][..], true),
            (&["--color=never"][..], false),
        ] {
            assert_eq!(wanted(words).ok(), Some(expected), "{words:?}");
        }
        assert!(wanted(&["--color", "often"]).is_err());
    }

    #[test]
    fn an_empty_no_color_refuses_nothing() {
        assert!(refuses(Some(OsStr::new("0"))) && refuses(Some(OsStr::new("1"))));
        assert!(!refuses(Some(OsStr::new(""))) && !refuses(None));
    }
}
