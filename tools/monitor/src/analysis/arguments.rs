//! What the command line says of the analysis.

use super::inquiry::Wishes;
use super::scheme::{self, SCHEMES_MAX};
use super::selection::{HistogramWish, Selection};

/// The options of `sapwood mpi` that are about the analysis.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Histogram over the ranks of an event's calls, `time_ns` or bytes, such as
    /// `MPI_Send:bytes,bins=20`; 'auto' for the heaviest events, 'none' for no histogram and no
    /// outlier [default: auto].
    #[arg(long, value_name = "EVENT[:METRIC][,bins=N]", value_parser = histogram)]
    histogram: Vec<HistogramChoice>,
    /// Put ranks that have the same events into classes, by all events, by mpi, by regex:EXPRESSION
    /// or by depth:N of regions; 'none' for no classes [default: mpi].
    #[arg(long, value_name = "SCHEME", value_parser = classes)]
    classes: Vec<String>,
    /// Number of ranks and of hosts that are named because they deviate most in an event; 0 for
    /// none.
    #[arg(long, value_name = "K", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(0..=64))]
    outliers: u32,
}

/// One `--histogram`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HistogramChoice {
    Auto,
    None,
    Of(HistogramWish),
}

fn histogram(text: &str) -> Result<HistogramChoice, String> {
    match text {
        "auto" => Ok(HistogramChoice::Auto),
        "none" => Ok(HistogramChoice::None),
        _ => HistogramWish::read(text).map(HistogramChoice::Of),
    }
}

fn classes(text: &str) -> Result<String, String> {
    if text != "none" {
        scheme::read(text)?;
    }
    Ok(text.to_owned())
}

impl Arguments {
    /// What is to be found.
    ///
    /// # Errors
    /// One line when there are too many schemes.
    pub fn wishes(&self) -> Result<Wishes, String> {
        let is_automatic =
            self.histogram.is_empty() || self.histogram.contains(&HistogramChoice::Auto);
        let named = self.histogram.iter().filter_map(|choice| match choice {
            HistogramChoice::Of(wish) => Some(wish.clone()),
            HistogramChoice::Auto | HistogramChoice::None => None,
        });
        let mut schemes: Vec<String> = Vec::new();
        for scheme in self.classes.iter().filter(|scheme| *scheme != "none") {
            if !schemes.contains(scheme) {
                schemes.push(scheme.clone());
            }
        }
        if self.classes.is_empty() {
            schemes.push("mpi".to_owned());
        }
        if schemes.len() > SCHEMES_MAX {
            return Err(format!("--classes: at most {SCHEMES_MAX} schemes at once"));
        }
        let selection = match is_automatic {
            true => Selection::automatic(named.collect()),
            false => Selection::of(named.collect()),
        };
        Ok(Wishes { selection, schemes, outliers: self.outliers })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        analysis: Arguments,
    }

    fn wishes(words: &[&str]) -> Result<Wishes, String> {
        let line = Line::try_parse_from(["sapwood"].iter().chain(words));
        line.map_err(|error| error.to_string())?.analysis.wishes()
    }

    #[test]
    fn classes_are_by_mpi_unless_told_otherwise() {
        let schemes = |words: &[&str]| wishes(words).expect("a right line").schemes;
        assert_eq!(schemes(&[]), ["mpi"]);
        assert_eq!(schemes(&["--classes", "all", "--classes", "depth:2"]), ["all", "depth:2"]);
        assert!(schemes(&["--classes", "none"]).is_empty());
    }

    #[test]
    fn wrong_words_are_refused_with_what_would_be_right() {
        for words in [
            &["--classes", "regex:("][..],
            &["--classes", "some"],
            &["--histogram", "a,bins=0"],
            &["--outliers", "65"],
        ] {
            assert!(wishes(words).is_err(), "{words:?}");
        }
        let schemes = ["all", "mpi", "depth:1", "depth:2", "depth:3"];
        let words: Vec<&str> = schemes.iter().flat_map(|scheme| ["--classes", scheme]).collect();
        assert_eq!(wishes(&words).unwrap_err(), "--classes: at most 4 schemes at once");
    }
}
