//! How ranks ended, as fields and as a sentence.

use sapwood_packet::RankSet;
use serde::{Deserialize, Serialize};

use crate::record::Death;
use crate::text::{agreeing, ranks_text};

/// Kinds of deaths that are told in words.
const DEATHS_MAX: usize = 4;

/// How ranks ended that did not end in order, the first of them first, as documents have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankEnds {
    /// In words; the last ones are summed up.
    #[serde(default)]
    pub deaths: Vec<String>,
    /// The same as fields, of all of them.
    #[serde(default)]
    pub ends: Vec<RankEnd>,
}

impl RankEnds {
    /// Those that did not end in order, and those that had before.
    #[must_use]
    pub fn of(deaths: &[Death], before: Option<RankEnd>) -> Self {
        let mut lines = Death::lines(deaths, DEATHS_MAX);
        let texts = Death::sentences(deaths);
        let ends = deaths.iter().zip(texts).map(|(death, text)| RankEnd::of_death(death, text));
        let mut ends: Vec<RankEnd> = ends.collect();
        // Behind the first death, which may have come of it.
        let at = ends.len().min(1);
        lines.splice(at..at, before.iter().map(|end| end.text.clone()));
        ends.splice(at..at, before);
        Self { deaths: lines, ends }
    }

    /// Notes ranks that were found dead by this time: how or when they ended is not known.
    pub fn note_found_dead(&mut self, ranks: &RankSet, elapsed_s: f64) {
        let end = RankEnd::found_dead(&ranks.to_string(), elapsed_s);
        self.deaths.push(end.text.clone());
        self.ends.push(end);
    }
}

/// Ranks that ended the same way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankEnd {
    /// These ranks.
    pub ranks: String,
    /// When the first of them was seen to, from the start of the program.
    pub elapsed_s: f64,
    /// Whether it was the first death, which others may have followed.
    pub is_first: bool,
    /// Whether they ended in order, before the first death.
    pub is_in_order: bool,
    /// `signal 9`, `exit code 7`, `MPI_Abort(13)` or what else is known.
    pub cause: String,
    /// The call that they were inside; empty if it is not known.
    pub inside: String,
    /// The same in words.
    pub text: String,
}

impl RankEnd {
    /// Of ranks that did not end in order, with the same in words.
    #[must_use]
    pub fn of_death(death: &Death, text: String) -> Self {
        Self {
            ranks: death.ranks.clone(),
            elapsed_s: death.elapsed_s,
            is_first: death.is_first,
            is_in_order: false,
            cause: death.cause.clone(),
            inside: death.inside.clone(),
            text,
        }
    }

    /// Of ranks that have died while others run: how and when is not known, only that they are gone
    /// at this time.
    #[must_use]
    pub fn found_dead(ranks: &str, elapsed_s: f64) -> Self {
        let who = ranks_text(ranks);
        let has = agreeing(ranks, "has", "have");
        Self {
            ranks: ranks.to_owned(),
            elapsed_s,
            cause: "not known".to_owned(),
            text: format!("{who} {has} died, and others run"),
            ..Self::default()
        }
    }

    /// Of ranks that had ended in order when the first death came, which may have come of it.
    #[must_use]
    pub fn in_order(ranks: &str, elapsed_s: f64) -> Self {
        let who = ranks_text(ranks);
        Self {
            ranks: ranks.to_owned(),
            elapsed_s,
            is_in_order: true,
            cause: "ended in order".to_owned(),
            text: format!("{who} had ended normally by then, {elapsed_s:.3} s after the start"),
            ..Self::default()
        }
    }
}
