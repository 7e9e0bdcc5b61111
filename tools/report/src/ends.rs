//! How ranks ended, as a monitor leaves it beside the files that they keep.
//!
//! `docs/schema/ends-1.json` describes it. The files themselves say what each rank did last, and
//! not how it ended.

use std::path::Path;

use sapwood_packet::RankSet;
use serde::{Deserialize, Serialize};

use crate::ReportError;
use crate::atomic::write_private;
use crate::record::Death;
use crate::text::printable;
use crate::why::RankEnd;

/// The form of the JSON object.
pub const ENDS_SCHEMA: &str = "sapwood.ends/1";
/// What the file is called.
pub const ENDS_FILE: &str = "ends.json";

/// How ranks ended by some moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ends {
    /// The form of this object.
    pub schema: String,
    /// The program.
    pub program: String,
    /// Ranks of the program; 0 if none has come.
    pub ranks: u32,
    /// When this was written, in seconds since 1970.
    pub unix_s: u64,
    /// The same from the start of the program.
    pub elapsed_s: f64,
    /// Whether the program had ended; if not, other ranks may have ended since.
    pub has_ended: bool,
    /// Whether it was told to end, so that ranks may have died of that.
    pub was_told_to_end: bool,
    /// The exit code of the launcher; null before it has ended.
    pub code: Option<i32>,
    /// The ranks that ended in order.
    pub in_order: String,
    /// Of these, the few that had ended when the first death came; null for none.
    pub before: Option<RankEnd>,
    /// Ranks that did not end in order, the first of them first.
    pub deaths: Vec<Death>,
}

impl Ends {
    /// Puts the file into a folder, as a whole, for the user alone.
    ///
    /// # Errors
    /// [`ReportError::Write`], naming the file.
    pub fn write(&self, folder: &Path) -> Result<(), ReportError> {
        let text = serde_json::to_string_pretty(self);
        let text = text.expect("numbers, text and lists of them are always JSON") + "\n";
        write_private(&folder.join(ENDS_FILE), text.as_bytes())
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub fn parse(content: &[u8]) -> Result<Self, String> {
        let ends = serde_json::from_slice(content);
        let mut ends: Self = ends.map_err(|error| printable(&error.to_string()))?;
        if ends.schema != ENDS_SCHEMA {
            let schema = printable(&ends.schema);
            return Err(format!("it is of another release: '{schema}', not '{ENDS_SCHEMA}'"));
        }
        ends.check()?;
        Ok(ends)
    }

    /// Makes sure that its sets are sets of the program's ranks, that each rank ended once, and
    /// that its texts may go to a terminal.
    fn check(&mut self) -> Result<(), String> {
        let mut known = RankSet::new();
        let deaths = self.deaths.iter().map(|death| (death.ranks.as_str(), death.elapsed_s));
        for (ranks, elapsed_s) in deaths.chain([(self.in_order.as_str(), 0.0)]) {
            let ranks = self.set_of(ranks)?;
            if ranks.as_ref().intersects(known.as_ref()) {
                return Err("it names a rank twice".to_owned());
            }
            if !elapsed_s.is_finite() || elapsed_s < 0.0 {
                return Err(format!("it has an end {elapsed_s} s after the start"));
            }
            known.union_with(ranks.as_ref());
        }
        if let Some(end) = &self.before {
            self.set_of(&end.ranks)?;
        }
        for death in &mut self.deaths {
            (death.cause, death.inside) = (printable(&death.cause), printable(&death.inside));
        }
        if let Some(end) = &mut self.before {
            (end.cause, end.inside) = (printable(&end.cause), printable(&end.inside));
            end.text = printable(&end.text);
        }
        Ok(())
    }

    fn set_of(&self, text: &str) -> Result<RankSet, String> {
        if text.is_empty() {
            return Ok(RankSet::new());
        }
        let ranks = text.parse::<RankSet>().ok();
        let ranks =
            ranks.ok_or("it names ranks that are no set of ranks, such as 0-3,7".to_owned())?;
        // Where no rank has come, their number is not known.
        match ranks.as_ref().last() {
            Some(last) if self.ranks > 0 && last >= self.ranks => {
                Err(format!("it names rank {last} of {} ranks", self.ranks))
            }
            _ => Ok(ranks),
        }
    }

    /// The ranks of which it is known how they ended.
    #[must_use]
    pub fn known(&self) -> RankSet {
        let deaths = self.deaths.iter().map(|death| death.ranks.as_str());
        let mut known = RankSet::new();
        for ranks in deaths.chain([self.in_order.as_str()]) {
            known.union_with(ranks.parse::<RankSet>().unwrap_or_default().as_ref());
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn ends() -> Ends {
        let cause = "signal 9 (killed)".to_owned();
        let death =
            Death { ranks: "2".into(), elapsed_s: 1.5, is_first: true, cause, ..Death::default() };
        Ends {
            schema: ENDS_SCHEMA.into(),
            program: "prog".into(),
            ranks: 4,
            unix_s: 1_700_000_000,
            elapsed_s: 2.5,
            has_ended: true,
            code: Some(137),
            in_order: "0-1".into(),
            before: Some(RankEnd::in_order("0-1", 1.0)),
            deaths: vec![death],
            ..Ends::default()
        }
    }

    #[test]
    fn what_was_left_is_read_is_as_its_schema_says_and_is_for_the_user_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for ends in [ends(), Ends { schema: ENDS_SCHEMA.into(), ..Ends::default() }] {
            ends.write(folder.path()).expect("it may be written");
            let file = folder.path().join(ENDS_FILE);
            let content = fs::read(&file).expect("it is there");
            assert_eq!(Ends::parse(&content), Ok(ends));
            let value = serde_json::from_slice(&content).expect("it is JSON");
            sapwood_schema::assert_fits("ends-1", &value);
            let mode = fs::metadata(&file).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
        assert_eq!(ends().known().to_string(), "0-2");
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        assert!(Ends::parse(b"{").is_err());
        let other = Ends { schema: "test/1".into(), ..ends() };
        let content = serde_json::to_vec(&other).expect("it is JSON");
        let error = Ends::parse(&content).expect_err("of another release");
        assert!(error.contains("'test/1', not 'sapwood.ends/1'"), "{error}");
        let death =
            |ranks: &str, elapsed_s| Death { ranks: ranks.into(), elapsed_s, ..Death::default() };
        for (wrong, wanted) in [
            (Ends { in_order: "all".into(), ..ends() }, "no set of ranks"),
            (Ends { in_order: "0-4294967295".into(), ..ends() }, "it names rank 4294967295 of "),
            (Ends { deaths: vec![death("2", 1.0), death("1-2", 1.0)], ..ends() }, "a rank twice"),
            (Ends { deaths: vec![death("2", -5.0)], ..ends() }, "an end -5 s after the start"),
        ] {
            let content = serde_json::to_vec(&wrong).expect("it is JSON");
            let error = Ends::parse(&content).expect_err(wanted);
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_kept() {
        let death = Death { cause: "\u{1b}[2J".into(), ..ends().deaths[0].clone() };
        let content = serde_json::to_vec(&Ends { deaths: vec![death], ..ends() });
        let read = Ends::parse(&content.expect("it is JSON")).expect("a cause is any text");
        assert_eq!(read.deaths[0].cause, "\u{fffd}[2J");
    }
}
