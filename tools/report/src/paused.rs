//! Ranks whose tracing is paused, so that what they called since is not known.

use std::time::Duration;

use sapwood_packet::RankSet;
use sapwood_trace::Standing;

use crate::quantity;
use crate::text::ranks_text;

/// Ranks that do not record their calls, at the end of a run or at an earlier moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedTracing {
    ranks: RankSet,
    /// For how long the first of them has not.
    longest_ns: u64,
    /// Whether the others have not for as long.
    is_alike: bool,
}

impl PausedTracing {
    /// Those of ranks that stood there; none where all record.
    #[must_use]
    pub fn of(standing: &Standing) -> Option<Self> {
        let paused = standing.postures.iter().filter(|(_, posture)| posture.unrecorded_ns > 0);
        let times = paused.clone().map(|(_, posture)| posture.unrecorded_ns);
        let (least_ns, longest_ns) = (times.clone().min()?, times.max()?);
        let ranks = paused.map(|(&rank, _)| rank).collect();
        Some(Self { ranks, longest_ns, is_alike: least_ns == longest_ns })
    }

    /// As a line of what is not known.
    pub(crate) fn line(&self) -> String {
        let ranks = ranks_text(&self.ranks.to_string());
        let whose = if self.ranks.len() == 1 { "its" } else { "their" };
        let first = if self.is_alike { "" } else { "the first " };
        let ago = self.longest_text();
        format!("calls of {ranks}: {whose} tracing is paused, {first}for {ago}")
    }

    /// The same of the last moment of a run that was watched for this time.
    pub(crate) fn at_end(&self, elapsed: Duration) -> String {
        let ranks = ranks_text(&self.ranks.to_string());
        let first = if self.is_alike { "" } else { "the first of them " };
        let since = elapsed.saturating_sub(Duration::from_nanos(self.longest_ns)).as_secs_f64();
        let ago = self.longest_text();
        format!(
            "tracing of {ranks} was paused at the end, {first}since {since:.1} s after the start, \
             for {ago}"
        )
    }

    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn longest_text(&self) -> String {
        quantity::time(self.longest_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{Findings, Posture};

    use super::*;
    use crate::Report;
    use crate::record::Settings;

    fn standing(unrecorded_s: &[u64]) -> Standing {
        let posture = |&seconds: &u64| {
            let unrecorded_ns = seconds * 1_000_000_000;
            Posture { unrecorded_ns, ..Posture::default() }
        };
        let postures = (0..).zip(unrecorded_s.iter().map(posture)).collect();
        Standing { postures, ..Standing::default() }
    }

    #[test]
    fn a_report_tells_which_ranks_were_paused_at_the_end_since_when_and_for_how_long() {
        let settings = Settings { change: 1, tracing: false, ..Settings::default() };
        let culprit = |unrecorded_s: &[u64]| {
            let report = Report {
                waits: Some(Findings::default()),
                settings: Some(settings.clone()),
                paused: PausedTracing::of(&standing(unrecorded_s)),
                elapsed: Duration::from_millis(12_340),
                ..Report::default()
            };
            let text = report.text();
            let line = text.lines().find(|line| line.starts_with("culprit ")).expect("a line");
            line.rsplit_once("; ").expect("a pause").1.to_owned()
        };
        assert_eq!(
            culprit(&[0, 4, 4]),
            "tracing of ranks 1-2 was paused at the end, since 8.3 s after the start, for 4.00 s"
        );
        assert_eq!(
            culprit(&[0, 4, 2]),
            "tracing of ranks 1-2 was paused at the end, the first of them since 8.3 s after the \
             start, for 4.00 s"
        );
        assert_eq!(culprit(&[0, 0, 0]), "tracing was paused at the end", "no rank has told since");
    }

    #[test]
    fn a_report_without_any_gathered_call_tells_that_tracing_was_paused() {
        let report =
            |paused| Report { paused, elapsed: Duration::from_millis(12_340), ..Report::default() };
        let text = report(PausedTracing::of(&standing(&[4, 4]))).text();
        let line = "culprit   no call was gathered; tracing of ranks 0-1 was paused at the end, ";
        assert!(text.lines().any(|told| told.starts_with(line)), "{text}");
        let text = report(None).text();
        assert!(!text.lines().any(|told| told.starts_with("culprit ")), "{text}");
    }

    #[test]
    fn ranks_that_record_are_not_among_them() {
        assert_eq!(PausedTracing::of(&standing(&[0, 0])), None);
        let paused = PausedTracing::of(&standing(&[0, 1])).expect("rank 1");
        assert_eq!(paused.line(), "calls of rank 1: its tracing is paused, for 1.00 s");
    }
}
