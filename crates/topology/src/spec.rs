//! The text form of a shape, read and written.
//!
//! ```text
//! spec     = shape [ "+" number ]  |  "+" number
//! shape    = balanced | "b:" balanced | "k:" number "@" number | "g:" generic
//!          | "p:" number [ "." digit [ digit ] ] "@" number
//! balanced = term { "x" term }          term  = number [ "^" number ]
//! generic  = level { ":" level }        level = item { "," item }
//! item     = number [ "x" number ]
//! number   = ASCII digits
//! ```
//!
//! No blanks, no signs. [`Shape`] explains the parts.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::error::{Error, excerpt};
use crate::limits::DEPTH_MAX;
use crate::shape::{Family, Hundredths, Shape, UNIT};

impl FromStr for Shape {
    type Err = Error;

    fn from_str(spec: &str) -> Result<Self, Error> {
        if spec.is_empty() {
            return Err(Error::SpecEmpty);
        }
        let reader = SpecReader { spec };
        let (body, attach) = match spec.split_once('+') {
            Some((body, per_leaf)) => (body, Some(reader.positive(per_leaf)?)),
            None => (spec, None),
        };
        let family = match body.split_once(':') {
            None if body.is_empty() => Family::Levels(Vec::new()),
            None => reader.balanced(body)?,
            Some(("b", rest)) => reader.balanced(rest)?,
            Some(("k", rest)) => reader.knomial(rest)?,
            Some(("g", rest)) => reader.generic(rest)?,
            Some(("p", rest)) => reader.postal(rest)?,
            Some((family, _)) => {
                return Err(reader.bad(family, "\"b\", \"k\", \"g\" or \"p\" before the colon"));
            }
        };
        Self::new(family, attach, Some(spec))
    }
}

/// Reads the parts of one specification and quotes it in errors.
struct SpecReader<'a> {
    spec: &'a str,
}

impl SpecReader<'_> {
    fn balanced(&self, text: &str) -> Result<Family, Error> {
        let mut fan_outs = Vec::new();
        for term in text.split('x') {
            let (fan_out, depth) = match term.split_once('^') {
                Some((fan_out, depth)) => (self.positive(fan_out)?, self.positive(depth)?),
                None => (self.positive(term)?, 1),
            };
            if depth > DEPTH_MAX || fan_outs.len() >= DEPTH_MAX as usize {
                return Err(Error::TooDeep { what: excerpt(self.spec) });
            }
            fan_outs.extend(core::iter::repeat_n(fan_out, depth as usize));
        }
        Ok(Family::Levels(fan_outs))
    }

    fn knomial(&self, text: &str) -> Result<Family, Error> {
        let (factor, nodes) =
            text.split_once('@').ok_or_else(|| self.bad(text, "\"K@N\" after \"k:\""))?;
        Ok(Family::Knomial { factor: self.positive(factor)?, nodes: self.positive(nodes)? })
    }

    fn postal(&self, text: &str) -> Result<Family, Error> {
        let (latency, back_ends) =
            text.split_once('@').ok_or_else(|| self.bad(text, "\"L@N\" after \"p:\""))?;
        let (whole, decimals) = latency.split_once('.').unwrap_or((latency, "0"));
        let hundredths = match decimals.len() {
            1 => self.number(decimals)? * (UNIT / 10),
            2 => self.number(decimals)?,
            _ => return Err(self.bad(latency, "at most two decimals")),
        };
        let whole = self.number(whole)?.checked_mul(UNIT);
        let latency = whole.and_then(|whole| whole.checked_add(hundredths));
        let latency = latency.ok_or_else(|| self.too_large(text))?;
        Ok(Family::Postal { latency, back_ends: self.positive(back_ends)? })
    }

    fn generic(&self, text: &str) -> Result<Family, Error> {
        let mut levels = Vec::new();
        for level in text.split(':') {
            if levels.len() >= DEPTH_MAX as usize {
                return Err(Error::TooDeep { what: excerpt(self.spec) });
            }
            let runs = self.level(level)?;
            if levels.is_empty() && !matches!(runs[..], [(1, _)]) {
                return Err(self.bad(level, "one fan-out, the front-end's, as first level"));
            }
            levels.push(runs);
        }
        Ok(Family::Generic(levels))
    }

    /// One level as runs in their only form: neighbours differ, and no zeros stand at the end,
    /// so that equal trees have equal shapes.
    fn level(&self, text: &str) -> Result<Vec<(u32, u32)>, Error> {
        let mut runs: Vec<(u32, u32)> = vec![];
        for item in text.split(',') {
            let (count, fan_out) = match item.split_once('x') {
                Some((count, fan_out)) => (self.positive(count)?, self.number(fan_out)?),
                None => (1, self.number(item)?),
            };
            match runs.last_mut() {
                Some((run, same)) if *same == fan_out => {
                    *run = run.checked_add(count).ok_or_else(|| self.too_large(item))?;
                }
                _ => runs.push((count, fan_out)),
            }
        }
        if runs.last().is_some_and(|(_, fan_out)| *fan_out == 0) {
            runs.pop();
        }
        if runs.is_empty() {
            return Err(self.zero(text));
        }
        Ok(runs)
    }

    fn positive(&self, text: &str) -> Result<u32, Error> {
        match self.number(text)? {
            0 => Err(self.zero(text)),
            number => Ok(number),
        }
    }

    fn number(&self, text: &str) -> Result<u32, Error> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.bad(text, "a number"));
        }
        text.parse().map_err(|_| self.too_large(text))
    }

    fn bad(&self, part: &str, expected: &'static str) -> Error {
        Error::SpecPart { spec: excerpt(self.spec), part: excerpt(part), expected }
    }

    fn zero(&self, part: &str) -> Error {
        Error::SpecZero { spec: excerpt(self.spec), part: excerpt(part) }
    }

    fn too_large(&self, part: &str) -> Error {
        Error::SpecNumber { spec: excerpt(self.spec), part: excerpt(part) }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.family {
            Family::Levels(fan_outs) => fmt_levels(fan_outs, f)?,
            Family::Knomial { factor, nodes } => write!(f, "k:{factor}@{nodes}")?,
            Family::Postal { latency, back_ends } => {
                write!(f, "p:{}@{back_ends}", Hundredths(*latency))?;
            }
            Family::Generic(levels) => {
                f.write_str("g")?;
                for runs in levels {
                    fmt_runs(runs, f)?;
                }
            }
        }
        match self.attach {
            Some(per_leaf) => write!(f, "+{per_leaf}"),
            None => Ok(()),
        }
    }
}

fn fmt_levels(fan_outs: &[u32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let [first, _, ..] = fan_outs
        && fan_outs.iter().all(|fan_out| fan_out == first)
    {
        return write!(f, "{first}^{}", fan_outs.len());
    }
    for (level, fan_out) in fan_outs.iter().enumerate() {
        if level > 0 {
            f.write_str("x")?;
        }
        f.write_str(&fan_out.to_string())?;
    }
    Ok(())
}

fn fmt_runs(runs: &[(u32, u32)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (position, (count, fan_out)) in runs.iter().enumerate() {
        f.write_str(if position == 0 { ":" } else { "," })?;
        match count {
            1 => write!(f, "{fan_out}")?,
            _ => write!(f, "{count}x{fan_out}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn shape(spec: &str) -> Shape {
        spec.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn sizes(spec: &str) -> (u32, u32, u32) {
        let shape = shape(spec);
        (shape.node_count(), shape.back_end_count(), shape.depth())
    }

    fn error(spec: &str) -> String {
        spec.parse::<Shape>().unwrap_err().to_string()
    }

    #[test]
    fn every_family_gives_its_nodes_back_ends_and_depth() {
        assert_eq!(sizes("8"), (9, 8, 1));
        assert_eq!(sizes("4^3"), (85, 64, 3));
        assert_eq!(sizes("8x8x4"), (1 + 8 + 64 + 256, 256, 3));
        assert_eq!(sizes("1x4"), (6, 4, 2));
        assert_eq!(sizes("1x1x1"), (4, 1, 3));
        assert_eq!(sizes("k:2@16"), (16, 8, 4));
        assert_eq!(sizes("p:1.5@4"), (6, 4, 2));
        assert_eq!(sizes("g:2:3,1:4x2"), (1 + 2 + 4 + 8, 8, 3));
        assert_eq!(sizes("g:3:0,2"), (6, 4, 2));
        assert_eq!(sizes("4x4+8"), (21 + 128, 128, 3));
        assert_eq!(sizes("+8"), (9, 8, 1));
    }

    #[test]
    fn a_shape_is_written_in_its_shortest_form() {
        for (given, written) in [
            ("b:4x4x4", "4^3"),
            ("1x1x1", "1^3"),
            ("4^1", "4"),
            ("b:2x4^2", "2x4x4"),
            ("g:2:3,3", "g:2:2x3"),
            ("g:2:3,0", "g:2:3"),
            ("k:3@27+2", "k:3@27+2"),
            ("p:2@5", "p:2@5"),
            ("p:2.0@5", "p:2@5"),
            ("p:2.50@5", "p:2.5@5"),
            ("p:2.05@5+3", "p:2.05@5+3"),
            ("+8", "+8"),
        ] {
            assert_eq!(shape(given).to_string(), written);
            assert_eq!(shape(written), shape(given));
        }
    }

    #[test]
    fn errors_quote_the_offending_part() {
        assert_eq!(error("8x8y"), "topology \"8x8y\": cannot read \"8y\": expected a number");
        assert_eq!(error("8x"), "topology \"8x\": something is missing: expected a number");
        assert_eq!(
            error("q:4"),
            "topology \"q:4\": cannot read \"q\": expected \"b\", \"k\", \"g\" or \"p\" before the colon"
        );
        assert_eq!(
            error("4x00"),
            "topology \"4x00\": fan-out \"00\" is zero: every level needs at least one child"
        );
        assert_eq!(
            error("99999999999"),
            "topology \"99999999999\": number \"99999999999\" is too large: \
             a tree has at most 1048576 nodes"
        );
        assert_eq!(
            error("g:2:3x1"),
            "topology \"g:2:3x1\": level 2 lists 3 parents but only 2 exist: shorten the list"
        );
        assert_eq!(
            error("100000"),
            "topology \"100000\": fan-out 100000 is above 65536: add a level"
        );
    }

    #[test]
    fn junk_and_overflow_are_errors() {
        for spec in [
            "",
            " 8",
            "8 ",
            "-8",
            "+",
            "8+",
            "8+0",
            "8+2+2",
            "0",
            "4^0",
            "4^^2",
            "^2",
            "4^65",
            "4^4294967296",
            "1024x1024",
            "2^20",
            "x",
            "8X8",
            "b:",
            "k:",
            "k:2",
            "k:2@",
            "p:2",
            "p:@4",
            "p:2@0",
            "p:0.99@4",
            "p:2.@4",
            "p:2.505@4",
            "p:-2@4",
            "p:42949673@4",
            "p:2@524289",
            "k:1@8",
            "k:2@1",
            "k:2@1048577",
            "g:",
            "g:0",
            "g:2x2",
            "g:2,2",
            "g:2:",
            "g:2:0,0",
            "g:2:0x3",
            "g:2:4294967295x1,1x1",
            "g:1:4294967295x4294967295",
            "65536x65536",
            "٣",
        ] {
            assert!(spec.parse::<Shape>().is_err(), "{spec:?}");
        }
    }
}
