//! Keeps the verdict that holds while the program runs.
//!
//! Ranks are asked where they stand as soon as a round shows one that has been in a call for as
//! long as the deadline. What two answers in turn say alike is told. Once ranks go, the last
//! verdict before that stands: what is seen while a program is ended is no reason for anything.
//!
//! Where names of communicators are wanted, too, ranks are also asked from time to time where none
//! waits.

use std::time::{Duration, Instant};

use sapwood::{Network, Values, Wave};
use sapwood_profile::Round;
use sapwood_report::record::Stacks;
use sapwood_report::why::Stuck;
use sapwood_report::{ENDING_TIME, nanoseconds};
use sapwood_trace::{Doing, Presence, Standing, Verdict};

use super::StandingInquiry;
use super::deadline::{Deadline, has_waited, is_in_call};
use super::movers::is_for_movers;
use super::said_verdicts::SaidVerdicts;

/// How often names of communicators are looked up where no rank waits.
const NAMES_INTERVAL: Duration = Duration::from_secs(5);
/// A call that lasts this long is one in which ranks wait, where the user has named no time.
pub(crate) const STANDING_DEADLINE: Duration = Duration::from_secs(2);
/// A verdict that was not seen for this time holds no more.
const UNSEEN_TIME: Duration = Duration::from_secs(1);

/// A verdict, when it was seen, and where ranks stood then.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) at: Duration,
    pub(crate) verdict: Verdict,
    pub(crate) standing: Standing,
}

impl Held {
    /// It in words, with where the ranks are that it names, if these stacks were read since.
    pub(crate) fn stuck(&self, stacks: Option<&Stacks>) -> Stuck {
        Stuck::of(self.at, &self.verdict, &self.standing, stacks)
    }
}

/// What is known of waits that last.
pub(crate) struct StandingWatch {
    inquiry: StandingInquiry,
    deadline_ns: u64,
    /// Whether names of communicators are wanted where no rank waits.
    wants_names: bool,
    named: Option<Instant>,
    /// The latest verdict, once: it may be one of a moment.
    before: Option<Verdict>,
    /// Those that were told to others than the user.
    told: SaidVerdicts,
    said: SaidVerdicts,
    /// Whether an answer has come since it was last asked what is to be said.
    has_looked: bool,
    held: Option<Held>,
    /// Whether ranks have gone while a verdict held.
    is_frozen: bool,
    /// Since when it has not been seen any more.
    unseen: Option<Instant>,
    /// When the program was last told to end.
    ending: Option<Instant>,
    /// Verdicts that held and hold no longer.
    passed: u64,
    latest: Option<Standing>,
    looks: u64,
}

impl StandingWatch {
    /// Opens the stream; a call is long after this time, and without one nothing is to be said to
    /// the user.
    ///
    /// # Errors
    /// When the tree is gone.
    pub(crate) fn open(network: &Network, deadline: Deadline) -> Result<Self, sapwood::Error> {
        Ok(Self {
            inquiry: StandingInquiry::open(network)?,
            deadline_ns: nanoseconds(deadline.time().unwrap_or(STANDING_DEADLINE)),
            wants_names: false,
            named: None,
            before: None,
            told: SaidVerdicts::without_deadline(),
            said: SaidVerdicts::new(deadline),
            has_looked: false,
            held: None,
            is_frozen: false,
            unseen: None,
            ending: None,
            passed: 0,
            latest: None,
            looks: 0,
        })
    }

    /// The same that also asks for the names of communicators.
    pub(crate) fn with_names(self) -> Self {
        Self { wants_names: true, ..self }
    }

    /// Asks after a round, if ranks wait in it or names are due; `question` makes the question for
    /// a wave.
    pub(crate) fn step(&mut self, round: &Round, question: impl FnOnce(Wave) -> Values) {
        let is_due = self.held.is_some()
            || has_waited(round, self.deadline_ns)
            || self.wants_names && self.are_names_due(round);
        if is_due && !round.covered().is_empty() {
            self.named = Some(Instant::now());
            self.inquiry.ask(question(self.inquiry.wave()));
        }
    }

    /// Whether names may be new: ranks are in calls for long, or it was not asked for some time.
    fn are_names_due(&self, round: &Round) -> bool {
        round.activities().iter().any(|(kind, _)| kind.is_long && is_in_call(kind))
            || self.named.is_none_or(|named| named.elapsed() >= NAMES_INTERVAL)
    }

    /// Asks in any case, and takes calls that last this long for such in which ranks wait.
    pub(crate) fn look(&mut self, deadline: Duration, question: impl FnOnce(Wave) -> Values) {
        self.deadline_ns = nanoseconds(deadline);
        self.inquiry.ask(question(self.inquiry.wave()));
    }

    /// The verdict that holds, if it is to be said to the user now: each once.
    pub(crate) fn take_due(&mut self) -> Option<&Held> {
        if !std::mem::take(&mut self.has_looked) {
            return None;
        }
        let held = self.held.as_ref()?;
        self.said.is_due(&held.verdict).then_some(held)
    }

    /// A line that verdicts are not said to the user any more; once.
    pub(crate) fn take_left_out(&mut self) -> Option<String> {
        self.said.take_left_out()
    }

    /// Takes an answer, if one has come; what is to be told of it.
    pub(crate) fn take(&mut self, elapsed: Duration) -> Option<&Held> {
        let standing = self.inquiry.take()?.clone();
        if self.is_told(elapsed, standing) { self.held.as_ref() } else { None }
    }

    fn is_told(&mut self, elapsed: Duration, standing: Standing) -> bool {
        let number = gone(&standing);
        self.looks += 1;
        self.has_looked = true;
        self.latest = Some(standing.clone());
        let had_gone = self.held.as_ref().map(|held| gone(&held.standing));
        self.is_frozen |= had_gone.is_some_and(|before| number > before);
        if self.is_frozen || self.ending.is_some_and(|ending| ending.elapsed() < ENDING_TIME) {
            return false;
        }
        let Some(verdict) = long_waits(&standing, self.deadline_ns) else {
            self.before = None;
            // A rank that is ended may go on for a moment before.
            let unseen = *self.unseen.get_or_insert_with(Instant::now);
            if unseen.elapsed() >= UNSEEN_TIME {
                self.passed += u64::from(self.held.take().is_some());
            }
            return false;
        };
        self.unseen = None;
        let is_steady = self.before.as_ref().is_some_and(|before| before.is_like(&verdict));
        self.before = Some(verdict.clone());
        if !is_steady {
            return false;
        }
        let is_new = self.told.is_due(&verdict);
        self.held = Some(Held { at: elapsed, verdict, standing });
        is_new
    }

    /// How many answers have come.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// The program was told to end: what is seen from then on is no reason.
    pub(crate) fn note_ending(&mut self, at: Instant) {
        self.ending = Some(at);
    }

    /// Whether it was told so.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some_and(|ending| ending.elapsed() < ENDING_TIME)
    }

    /// The program has ended in order: it was not stuck then.
    pub(crate) fn note_good_end(&mut self) {
        self.passed += u64::from(self.held.take().is_some());
    }

    /// The verdict that holds.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// Where ranks stood last.
    pub(crate) fn latest(&self) -> Option<&Standing> {
        self.latest.as_ref()
    }

    /// Verdicts that held before.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Asks once more, for the names of what the last part of the program has made, and for the
    /// calls in which ranks have died. A verdict that held shortly before, and of which ranks have
    /// gone on since, holds no more.
    pub(crate) fn finish(&mut self, question: impl FnOnce(Wave) -> Values, wait: Duration) {
        let is_ending = self.is_ending();
        let Some(standing) = self.inquiry.ask_now(question, wait) else { return };
        let has_passed = |held: &Held| {
            // A launcher that is ended lets stopped ranks go on before it ends them.
            let is_stopped = held.verdict.odd.iter().any(|odd| odd.doing == Doing::Stopped);
            !is_ending && !is_stopped && held.verdict.has_passed(standing)
        };
        if self.held.as_ref().is_some_and(has_passed) {
            self.passed += u64::from(self.held.take().is_some());
        }
        self.latest = Some(standing.clone());
    }
}

/// Why ranks wait of which one has waited for this time; none if others only wait until some have
/// moved data.
pub(crate) fn long_waits(standing: &Standing, deadline_ns: u64) -> Option<Verdict> {
    let verdict = Verdict::of(standing, deadline_ns / 2)?;
    let is_long = verdict.waiting.iter().any(|group| group.longest_ns >= deadline_ns);
    (is_long && !is_for_movers(&verdict, standing)).then_some(verdict)
}

/// Ranks that have left MPI or died.
fn gone(standing: &Standing) -> usize {
    let is_gone = |presence| matches!(presence, Presence::Lost | Presence::Ended);
    standing.postures.values().filter(|posture| is_gone(posture.presence)).count()
}
