//! Schemes by which ranks are put into classes, as the command line writes them.

use std::borrow::Cow;

use regex_lite::RegexBuilder;
use sapwood_profile::Scheme;

/// The most schemes at once.
pub const SCHEMES_MAX: usize = 4;
/// The most bytes of a compiled expression.
const EXPRESSION_BYTES_MAX: usize = 1 << 18;
/// The longest scheme, in bytes.
const SCHEME_BYTES_MAX: usize = 1024;
/// The deepest level of regions.
const DEPTH_MAX: usize = 64;

/// Reads `all`, `mpi`, `regex:EXPRESSION` or `depth:N`.
///
/// # Errors
/// One line: what is wrong, and what is taken.
pub fn read(text: &str) -> Result<Scheme, String> {
    if text.len() > SCHEME_BYTES_MAX {
        return Err(format!("a scheme has at most {SCHEME_BYTES_MAX} bytes"));
    }
    match text.split_once(':') {
        None if text == "all" => Ok(Scheme::all()),
        None if text == "mpi" => Ok(Scheme::mpi()),
        Some(("depth", depth)) => {
            let depth = depth.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth));
            depth.map(Scheme::depth).ok_or_else(|| {
                format!("'{text}': a depth is a number from 1 to {DEPTH_MAX}, such as depth:2")
            })
        }
        Some(("regex", expression)) => {
            let compiled = RegexBuilder::new(expression).size_limit(EXPRESSION_BYTES_MAX).build();
            let regex = compiled.map_err(|error| format!("'{expression}': {error}"))?;
            Ok(Scheme::by(text, move |event| {
                let name: Cow<'_, str> = event.name();
                regex.is_match(&name).then_some(name)
            }))
        }
        _ => Err(format!("'{text}': give all, mpi, regex:EXPRESSION or depth:N")),
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, EventKey, RankProfile};

    use super::*;

    fn profile(regions: &[&str]) -> RankProfile {
        let mut profile = RankProfile::new(0, 1);
        for region in regions {
            profile.events.insert(EventKey::Region((*region).to_owned()), Counters::default());
        }
        profile
    }

    #[test]
    fn an_expression_chooses_names() {
        let scheme = read("regex:^(io|solve)").expect("an expression");
        assert_eq!(scheme.name(), "regex:^(io|solve)");
        let class = |regions: &[&str]| scheme.class(&profile(regions));
        assert_eq!(class(&["io: read", "other"]), class(&["io: read"]));
        assert_ne!(class(&["io: read"]), class(&["solve"]));
    }

    #[test]
    fn every_scheme_is_read_and_others_are_refused_in_one_line() {
        for name in ["all", "mpi", "depth:3", "regex:MPI_I.*"] {
            assert_eq!(read(name).map(|scheme| scheme.name().to_owned()), Ok(name.to_owned()));
        }
        let long = "x".repeat(SCHEME_BYTES_MAX + 1);
        for wrong in ["", "alle", "depth:0", "depth:x", "depth:65", "regex:(", &long] {
            let error = read(wrong).expect_err(wrong);
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert!(read("regex:(a{1000}){1000}").is_err(), "it would take too much memory");
    }
}
