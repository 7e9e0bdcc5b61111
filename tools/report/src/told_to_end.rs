//! The signal by which the monitor, and with it the job, was told to end, and what came of it.

use serde::{Deserialize, Serialize};

use crate::ranks_text;

/// A batch system, `timeout` or the user has told the job to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToldToEnd {
    /// The signal that the monitor received first, as `SIGTERM`.
    pub signal: String,
    /// When, in seconds from the start of the program.
    pub received_s: f64,
    /// The ranks that ended after it and by the same signal, as far as the system says so.
    pub ended: String,
    /// Those that ended after it in another way or one that is not known, and not in order.
    pub otherwise: String,
    /// Those that ran still when the last round after the launcher's end came.
    pub running: String,
}

impl ToldToEnd {
    /// Lines for people. The job may have ended in order all the same, or run on.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Self { signal, received_s, ended, otherwise, running } = self;
        let is_end = [ended, otherwise, running].iter().any(|ranks| !ranks.is_empty());
        let mut lines = vec![match is_end {
            true => format!("by {signal}, which was received {received_s:.1} s after the start"),
            false => format!("{signal} was received {received_s:.1} s after the start"),
        }];
        let parts = [
            (ended, "ended by it"),
            (otherwise, "ended after it in another way, or it is not known how"),
            (running, "ran still when the launcher had ended"),
        ];
        let parts = parts.into_iter().filter(|(ranks, _)| !ranks.is_empty());
        lines.extend(parts.map(|(ranks, how)| format!("{} {how}", ranks_text(ranks))));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_with_the_ranks_that_it_has_ended_and_those_that_it_has_not() {
        let received =
            ToldToEnd { signal: "SIGTERM".into(), received_s: 3.04, ..ToldToEnd::default() };
        assert_eq!(received.lines(), ["SIGTERM was received 3.0 s after the start"]);
        let ended = ToldToEnd {
            ended: "0-2".into(),
            otherwise: "3".into(),
            running: "4,6".into(),
            ..received
        };
        assert_eq!(
            ended.lines(),
            [
                "by SIGTERM, which was received 3.0 s after the start",
                "ranks 0-2 ended by it",
                "rank 3 ended after it in another way, or it is not known how",
                "ranks 4,6 ran still when the launcher had ended",
            ]
        );
    }
}
