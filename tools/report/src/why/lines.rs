//! The answer on one screen.

use sapwood_packet::RankSet;

use super::{SlowGroup, SlowMessages, SlowPlace, Stuck, Why};
use crate::mixed_calls::wrong_lines;
use crate::quantity;
use crate::text::{agreeing, printable, ranks_text};

/// Columns and lines of a screen, without what stands before each line.
const WIDTH: usize = 91;
const LINES: usize = 24;
/// Places told, at most, and where a standstill needs the room.
const PLACES: usize = 5;
const PLACES_BESIDE: usize = 2;
/// Groups of a place.
const GROUPS: usize = 3;
/// Slow links.
const LINKS: usize = 2;
/// Ranks whose messages came late.
const LATE: usize = 4;
/// Where the waits are known until a moment that is longer ago than this, that is said.
const UNTIL_S: f64 = 0.3;
/// Lines of what is not known.
const UNKNOWN: usize = 10;
/// Lines of those that wait.
const WAITING: usize = 6;
/// What is not parted from the number before it.
const UNITS: [&str; 5] = ["s", "ms", "us", "ns", "%"];
/// A place that takes less than this part of the ranks' time is not told.
const SHARE_MIN: f64 = 0.01;
/// A part of the waits for a rank that is smaller than this share is not told.
const PART_MIN: f64 = 0.1;

impl Stuck {
    /// Lines for people: what holds the ranks, and which ranks wait.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, sentence) in self.sentences().iter().enumerate() {
            lines.extend(wrapped(sentence, if at == 0 { "" } else { "  " }));
        }
        lines.extend(self.stack_lines());
        lines
    }

    /// The same without the stacks as one line, however long.
    #[must_use]
    pub fn line(&self) -> String {
        printable(&self.sentences().join("; "))
    }

    /// The finding, then a sentence for each place where ranks wait, up to a number.
    pub(crate) fn sentences(&self) -> Vec<String> {
        // Of ranks that have ended it may not be known how long the last of them had waited.
        let stuck = match self.for_s > 0.0 {
            true => format!("stuck for {}", seconds(self.for_s)),
            false => "stuck".to_owned(),
        };
        let mut all = vec![format!("{stuck}: {}", self.statement)];
        let waiting = self.waiting.iter().take(WAITING);
        all.extend(waiting.map(|one| format!("waiting: {}", one.text)));
        if self.waiting.len() > WAITING {
            let more = self.waiting.len() - WAITING;
            all.push(format!("and {more} more places where ranks wait"));
        }
        all
    }

    /// Lines for where the ranks are that are named.
    #[must_use]
    pub fn stack_lines(&self) -> Vec<String> {
        self.stack_sentences().flat_map(|line| wrapped(&line, "  ")).collect()
    }

    /// The same, each in one line.
    pub(crate) fn stack_sentences(&self) -> impl Iterator<Item = String> + '_ {
        self.stacks.iter().map(|one| {
            let is = agreeing(&one.ranks, "is", "are");
            format!("{} {is} in {}", ranks_text(&one.ranks), one.frames.join(" < "))
        })
    }
}

/// A line for verdicts that held and hold no longer; none if there were none.
pub(crate) fn passed_line(passed: u64) -> Option<String> {
    let times = if passed == 1 { "once" } else { "several times" };
    (passed > 0).then(|| format!("ranks were found waiting {times} before, and went on ({passed})"))
}

impl Why {
    /// The whole on one screen.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.head()];
        for death in &self.ended.deaths {
            lines.extend(wrapped(death, ""));
        }
        // Ranks may be stuck because calls before that did not fit together.
        lines.extend(self.wrong_lines());
        if let Some(stuck) = &self.stuck {
            lines.extend(stuck.lines());
        }
        lines.extend(passed_line(self.passed));
        let most = if self.stuck.is_some() { PLACES_BESIDE } else { PLACES };
        let slow = self.slow.iter().take(most).filter(|one| one.lost_share >= SHARE_MIN);
        for (at, place) in slow.enumerate() {
            lines.extend(place.lines(at));
        }
        let is_even = self.slow.iter().all(|one| one.lost_share < SHARE_MIN);
        if is_even
            && self.collectives > 0
            && self.stuck.is_none()
            && self.ended.deaths.is_empty()
            && self.ranks > 1
        {
            lines.push("no communicator has made its ranks wait for 1 % of their time".to_owned());
        }
        for link in self.links.iter().take(LINKS) {
            lines.extend(wrapped(&link.line(), ""));
        }
        // Both ends of a slow link come late to their other messages.
        let is_held = |rank| self.links.iter().any(|link| link.from == rank || link.to == rank);
        let late = self.messages.iter().filter(|one| !one.is_passed_on && !is_held(one.rank));
        let least_s = self.elapsed_s * f64::from(self.ranks) * SHARE_MIN;
        for one in late.filter(|one| one.total_s() >= least_s).take(LATE) {
            lines.extend(wrapped(&one.line(), ""));
        }
        // What is not known is told, however much is.
        let unknown: Vec<String> =
            self.unknown.iter().map(|what| format!("not known: {what}")).collect();
        let unknown: Vec<String> =
            unknown.iter().flat_map(|line| wrapped(line, "")).take(UNKNOWN).collect();
        lines.truncate(LINES - unknown.len());
        lines.extend(unknown);
        lines
    }

    /// Lines for calls that do not fit together.
    #[must_use]
    pub fn wrong_lines(&self) -> Vec<String> {
        let mixed = self.mixed.iter().map(|one| &*one.text);
        let amounts = self.amounts.iter().map(|one| &*one.text);
        let uneven = self.uneven.iter().map(|one| &*one.text);
        let lines = [wrong_lines(mixed), wrong_lines(amounts), wrong_lines(uneven)].into_iter();
        lines.flatten().flat_map(|line| wrapped(&line, "")).collect()
    }

    fn head(&self) -> String {
        let ranks = if self.ranks == 1 { "rank" } else { "ranks" };
        let state = match (&self.stuck, self.has_ended) {
            (Some(_), true) => "stuck when it ended",
            (Some(_), false) => "stuck",
            (None, true) => "ended",
            (None, false) => "running",
        };
        let head =
            format!("{}: {} {ranks}, {:.1} s, {state}", self.program, self.ranks, self.elapsed_s);
        // Of calls of which not all processes are known it is not known what they have cost.
        let is_known = self.collectives > 0 || !self.slow.is_empty() || !self.messages.is_empty();
        if self.known_s == 0.0 || self.ranks == 0 || !is_known {
            return head;
        }
        let lost = self.slow.iter().map(|one| one.lost_share).fold(0.0, |all, one| all + one);
        let late = self.messages.iter().map(SlowMessages::total_s).fold(0.0, |all, one| all + one);
        let late = late / (self.known_s * f64::from(self.ranks));
        let until = match self.elapsed_s - self.known_s > UNTIL_S {
            true => format!(" until {:.1} s", self.known_s),
            false => String::new(),
        };
        let messages = match late >= SHARE_MIN {
            true => format!(", {} for late messages", quantity::percent(Some(late))),
            false => String::new(),
        };
        // How long ranks wait in calls that have not returned is told with the standstill.
        let earlier = if self.stuck.is_some() { "earlier " } else { "" };
        format!(
            "{head}; {} of the ranks' time{until} lost in {earlier}collectives{messages}",
            quantity::percent(Some(lost))
        )
    }
}

impl SlowMessages {
    /// How long others have waited for it: for its messages, and until it took theirs.
    fn total_s(&self) -> f64 {
        self.send_wait_s + self.receive_wait_s
    }

    fn line(&self) -> String {
        let times = |times: u64| quantity::counted(times.into(), "times");
        let (rank, wait_s) = (self.rank, seconds(self.send_wait_s));
        let sends = times(self.late_sends);
        let sends = format!("messages of rank {rank} came late {sends}: others waited {wait_s}");
        let (receives, wait_s) = (times(self.late_receives), seconds(self.receive_wait_s));
        let is_small = |part_s: f64| part_s < self.total_s() * PART_MIN;
        if is_small(self.receive_wait_s) {
            format!("{sends} for them")
        } else if is_small(self.send_wait_s) {
            format!("rank {rank} received late {receives}: senders waited {wait_s}")
        } else {
            format!("{sends}; it received late {receives}: senders waited {wait_s}")
        }
    }
}

impl SlowPlace {
    fn lines(&self, at: usize) -> Vec<String> {
        let on = match self.communicator.as_str() {
            "" => String::new(),
            name => format!(" on {name}"),
        };
        let mut lines = wrapped(
            &format!(
                "{}. {}{on}: {} lost in {}, {} of the ranks' time",
                at + 1,
                self.function,
                seconds(self.lost_s),
                quantity::counted(self.collectives.into(), "calls"),
                quantity::percent(Some(self.lost_share)),
            ),
            "",
        );
        for group in self.groups.iter().take(GROUPS) {
            lines.extend(wrapped(&group.line(self), "   "));
        }
        lines
    }
}

impl SlowGroup {
    /// Those that came last, or those that held these up before.
    fn who(&self) -> String {
        let set = |text: &str| text.parse::<RankSet>().unwrap_or_default();
        let ranks = ranks_text(&self.ranks);
        match set(&self.came_last).as_ref().intersects(set(&self.ranks).as_ref()) {
            false if !self.came_last.is_empty() => {
                format!("{ranks} held up {}, which", ranks_text(&self.came_last))
            }
            _ => ranks,
        }
    }

    fn line(&self, place: &SlowPlace) -> String {
        let is_shared = self.ranks == self.waiting;
        let who = self.who();
        let turns = if is_shared { " by turns" } else { "" };
        let mostly = if self.times_late < self.times_last { "mostly in " } else { "in " };
        let waiters = if is_shared { "the others".to_owned() } else { ranks_text(&self.waiting) };
        let waited_s = if is_shared { self.lost_s } else { self.waited_s };
        let together = if waiters.starts_with("rank ") { "" } else { " together" };
        format!(
            "{who} came last{turns} {} of {}, by {} {mostly}{}: {waiters} waited {}{together} \
             ({})",
            quantity::counted(self.times_last.into(), "times"),
            quantity::whole(place.collectives.into()),
            seconds(self.late_s),
            quantity::whole(self.times_late.into()),
            seconds(waited_s),
            quantity::percent(Some(waited_s / place.lost_s.max(f64::MIN_POSITIVE))),
        )
    }
}

fn seconds(seconds: f64) -> String {
    quantity::time(seconds * 1e9)
}

/// A text in lines of a screen, those after the first further in.
fn wrapped(text: &str, begin: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = begin.to_owned();
    let mut is_empty = true;
    for word in words(text) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, format!("{begin}  ")));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    lines.push(line);
    lines
}

/// The words of a text; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let unit = word.trim_end_matches([',', ';', ':', ')', '.']);
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::StuckWaiting;
    use super::*;

    #[test]
    fn long_lines_are_continued_further_in() {
        let lines = wrapped(&"word ".repeat(45), "  ");
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("    word"));
    }

    #[test]
    fn a_standstill_is_told_in_one_line_that_cannot_steer_the_terminal() {
        let waiting = |rank: usize| StuckWaiting {
            text: format!("rank {rank} in MPI_Recv on a\x1b[2J, for 2.00 s"),
            ..StuckWaiting::default()
        };
        let stuck = Stuck {
            for_s: 2.0,
            statement: "deadlock".into(),
            waiting: (0..WAITING + 2).map(waiting).collect(),
            ..Stuck::default()
        };
        let line = stuck.line();
        let begin = "stuck for 2.00 s: deadlock; waiting: rank 0 in MPI_Recv on a\u{fffd}[2J, for";
        assert!(line.starts_with(begin), "{line}");
        assert!(line.ends_with("; and 2 more places where ranks wait"), "{line}");
        assert_eq!(line.matches("waiting: ").count(), WAITING);
        assert_eq!(
            stuck.lines().last().map(String::as_str),
            Some("  and 2 more places where ranks wait")
        );
    }

    #[test]
    fn those_that_held_up_the_last_ones_are_not_said_to_have_come_last() {
        let who = |ranks: &str, came_last: &str| {
            SlowGroup { ranks: ranks.into(), came_last: came_last.into(), ..SlowGroup::default() }
                .who()
        };
        assert_eq!(who("3", "2"), "rank 3 held up rank 2, which");
        assert_eq!(who("3", "2-3"), "rank 3");
        assert_eq!(who("3", ""), "rank 3");
    }

    #[test]
    fn an_answer_fits_one_screen() {
        let group =
            SlowGroup { ranks: "1".into(), waiting: "0,2-3".into(), ..SlowGroup::default() };
        let place = SlowPlace { groups: vec![group; 8], lost_share: 0.2, ..SlowPlace::default() };
        let why = Why { slow: vec![place; 16], unknown: vec!["x".into(); 9], ..Why::default() };
        assert!(why.lines().len() <= LINES);
    }
}
