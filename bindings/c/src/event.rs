//! Changes in a network, as C reads them.

use std::ffi::{CString, c_char, c_int};

use sapwood::{Cause, Event, RankSet};

use crate::answer::cause_of;
use crate::text::to_c;

/// A change in the network.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_event_kind_t {
    /// There is no further event.
    SAPWOOD_EVENT_NONE = 0,
    /// The tree has started as far as it will; `ranks` are the back-ends that are connected.
    SAPWOOD_EVENT_READY = 1,
    /// The back-ends `ranks` have joined after the start.
    SAPWOOD_EVENT_JOINED = 2,
    /// The process `rank` could not be started; `text` holds its own words.
    SAPWOOD_EVENT_START_FAILED = 3,
    /// The link to `rank` closed: the back-ends `ranks` are lost; `text` says what was observed.
    SAPWOOD_EVENT_LOST = 4,
    /// A downward filter of `stream` failed here; `text` is its reason.
    SAPWOOD_EVENT_FILTER_FAILED = 5,
    /// `stream` has opened (at back-ends).
    SAPWOOD_EVENT_STREAM_OPENED = 6,
    /// `stream` has closed (at back-ends).
    SAPWOOD_EVENT_STREAM_CLOSED = 7,
    /// The network has ended for this process; `text` says what was observed.
    SAPWOOD_EVENT_ENDED = 8,
    /// Something that this header does not know yet; `text` describes it.
    SAPWOOD_EVENT_OTHER = 9,
    /// The communication process `rank` is lost; the back-ends `ranks` below it look for a new
    /// parent, and none is lost yet. `text` says what was observed.
    SAPWOOD_EVENT_BROKEN = 10,
    /// `adopter` has adopted the children `orphans` of `rank`, which is lost; the back-ends `ranks`
    /// came back with them.
    SAPWOOD_EVENT_REPAIRED = 11,
    /// The process `rank` has seen something that costs no answer and that the user may want to
    /// know: `text`.
    SAPWOOD_EVENT_NOTICE = 12,
}

/// One change in a network. Texts are lent until the next event is asked for or the handle is
/// closed, and never NULL.
#[repr(C)]
pub struct sapwood_event_t {
    /// A sapwood_event_kind_t.
    pub kind: c_int,
    /// The process that it is about, if it is about one.
    pub rank: u32,
    /// The stream that it is about, if it is about one.
    pub stream: u32,
    /// The back-ends that it is about, as "0-3,7".
    pub ranks: *const c_char,
    /// A description for display.
    pub text: *const c_char,
    /// The process that has taken over, if one has.
    pub adopter: u32,
    /// The processes that it has taken over, as "0-3,7".
    pub orphans: *const c_char,
    /// Why `rank` is lost: a sapwood_cause_t. 0 in events that are of no loss.
    pub cause: c_int,
    /// The exit status or signal of a cause that has one; else 0.
    pub cause_detail: u32,
}

/// The texts of the last event.
#[derive(Default)]
pub(crate) struct Told {
    ranks: CString,
    text: CString,
    orphans: CString,
}

impl Told {
    /// Fills in an event, or that there is none; keeps its texts.
    pub(crate) fn tell(&mut self, event: Option<Event>) -> sapwood_event_t {
        use sapwood_event_kind_t as Kind;
        let mut told = Parts::default();
        let kind = match event {
            None => Kind::SAPWOOD_EVENT_NONE,
            Some(Event::Ready { back_ends, .. }) => {
                told.ranks = back_ends.to_string();
                Kind::SAPWOOD_EVENT_READY
            }
            Some(Event::Joined { back_ends }) => {
                told.ranks = back_ends.to_string();
                Kind::SAPWOOD_EVENT_JOINED
            }
            Some(Event::StartFailed { rank, text }) => {
                told = Parts { rank, text, ..told };
                Kind::SAPWOOD_EVENT_START_FAILED
            }
            Some(Event::Lost { rank, back_ends, reason, cause }) => {
                told = Parts::of_loss(rank, &back_ends, reason, cause);
                Kind::SAPWOOD_EVENT_LOST
            }
            Some(Event::Broken { rank, back_ends, reason, cause }) => {
                told = Parts::of_loss(rank, &back_ends, reason, cause);
                Kind::SAPWOOD_EVENT_BROKEN
            }
            Some(Event::Repaired { rank, adopter, orphans, back_ends, .. }) => {
                let ranks = back_ends.to_string();
                let orphans = orphans.into_iter().collect::<RankSet>().to_string();
                told = Parts { rank, ranks, adopter, orphans, ..told };
                Kind::SAPWOOD_EVENT_REPAIRED
            }
            Some(Event::FilterFailed { stream, reason }) => {
                told = Parts { stream, text: reason, ..told };
                Kind::SAPWOOD_EVENT_FILTER_FAILED
            }
            Some(Event::Notice { rank, text }) => {
                told = Parts { rank, text, ..told };
                Kind::SAPWOOD_EVENT_NOTICE
            }
            Some(Event::StreamOpened { stream }) => {
                told.stream = stream;
                Kind::SAPWOOD_EVENT_STREAM_OPENED
            }
            Some(Event::StreamClosed { stream }) => {
                told.stream = stream;
                Kind::SAPWOOD_EVENT_STREAM_CLOSED
            }
            Some(Event::Ended { reason, .. }) => {
                told.text = reason;
                Kind::SAPWOOD_EVENT_ENDED
            }
            #[allow(unreachable_patterns, reason = "an event of a later version is given as text")]
            Some(other) => {
                told.text = format!("{other:?}");
                Kind::SAPWOOD_EVENT_OTHER
            }
        };
        self.keep(kind, told)
    }

    /// Keeps the texts of an event, which is given to C.
    fn keep(&mut self, kind: sapwood_event_kind_t, told: Parts) -> sapwood_event_t {
        self.ranks = to_c(told.ranks);
        self.text = to_c(told.text);
        self.orphans = to_c(told.orphans);
        let (cause, cause_detail) = cause_of(told.cause);
        sapwood_event_t {
            kind: kind as c_int,
            rank: told.rank,
            stream: told.stream,
            ranks: self.ranks.as_ptr(),
            text: self.text.as_ptr(),
            adopter: told.adopter,
            orphans: self.orphans.as_ptr(),
            cause,
            cause_detail,
        }
    }
}

#[derive(Default)]
struct Parts {
    rank: u32,
    stream: u32,
    ranks: String,
    text: String,
    adopter: u32,
    orphans: String,
    cause: Cause,
}

impl Parts {
    fn of_loss(rank: u32, back_ends: &RankSet, reason: String, cause: Cause) -> Self {
        Self { rank, ranks: back_ends.to_string(), text: reason, cause, ..Self::default() }
    }
}
