//! One record of an event file; `bindings/mpi/shim/events.h` draws it.

/// Words of 64 bits of a record.
pub const RECORD_WORDS: usize = 4;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A blocking collective.
    Collective = 1,
    /// The start of a non-blocking collective.
    CollectiveStarted = 2,
    /// The call that completed a non-blocking collective.
    CollectiveCompleted = 3,
    /// A send that may wait for its receiver.
    Send = 4,
    /// A send that does not.
    SendStarted = 5,
    /// A blocking receive.
    Receive = 6,
    /// The call that completed a non-blocking receive.
    ReceiveCompleted = 7,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Collective,
        Self::CollectiveStarted,
        Self::CollectiveCompleted,
        Self::Send,
        Self::SendStarted,
        Self::Receive,
        Self::ReceiveCompleted,
    ];

    /// The kind of a code; none of another one.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Collective,
            2 => Self::CollectiveStarted,
            3 => Self::CollectiveCompleted,
            4 => Self::Send,
            5 => Self::SendStarted,
            6 => Self::Receive,
            7 => Self::ReceiveCompleted,
            _ => return None,
        })
    }
}

const CLOCK: u8 = 8;

/// An event, in the clock and the numbers of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Ticks at the begin of the call.
    pub time: u64,
    /// Ticks until its return.
    pub span: u64,
    /// The function.
    pub function: u32,
    /// The number of its communicator's space.
    pub space: usize,
    /// What it is.
    pub kind: EventKind,
    /// Receives that the same call has completed; 0 for one of which nothing is claimed. Of a send
    /// the class of its size: the number of bits of its bytes, and 1; 0 where that is not known.
    pub members: u8,
    /// Of a collective on its communicator, or of a message in its channel, from 1.
    pub sequence: u32,
    /// The root of a collective or the other side of a message, as the program gave it.
    pub peer: i32,
    /// The tag of a message. Of a collective its [`amount`](Self::amount) and 1, or 0.
    pub tag: i32,
}

impl Event {
    /// How many bytes this process gave in a collective that needs the same of all of them; none of
    /// another event, and where that is not known.
    #[must_use]
    pub const fn amount(&self) -> Option<u32> {
        match self.kind {
            EventKind::Collective | EventKind::CollectiveStarted => {
                self.tag.cast_unsigned().checked_sub(1)
            }
            _ => None,
        }
    }
}

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// An event.
    Event(Event),
    /// One moment by two clocks: ticks and `CLOCK_MONOTONIC` nanoseconds.
    Clock(u64, u64),
}

impl Record {
    /// Reads a record; none of a kind that is not known.
    #[must_use]
    pub fn decode(words: [u64; RECORD_WORDS]) -> Option<Self> {
        let [time, timing, what, whom] = words;
        let [low, high, kind, members, sequence @ ..] = what.to_le_bytes();
        if kind == CLOCK {
            return Some(Self::Clock(time, timing));
        }
        let [peer @ .., t0, t1, t2, t3] = whom.to_le_bytes();
        let [f0, f1, ..] = timing.to_le_bytes();
        Some(Self::Event(Event {
            time,
            span: timing >> 16,
            function: u32::from(u16::from_le_bytes([f0, f1])),
            space: usize::from(u16::from_le_bytes([low, high])),
            kind: EventKind::from_code(kind)?,
            members,
            sequence: u32::from_le_bytes(sequence),
            peer: i32::from_le_bytes(peer),
            tag: i32::from_le_bytes([t0, t1, t2, t3]),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_is_drawn() {
        let what = 5 | 6 << 16 | 2 << 24 | 9 << 32;
        let whom = u64::from(3_u32) | u64::from((-7_i32).cast_unsigned()) << 32;
        let expected = Event {
            time: 1000,
            span: 0x1_2345_6789,
            function: 378,
            space: 5,
            kind: EventKind::Receive,
            members: 2,
            sequence: 9,
            peer: 3,
            tag: -7,
        };
        let words = [1000, 0x1_2345_6789 << 16 | 378, what, whom];
        assert_eq!(Record::decode(words), Some(Record::Event(expected)));
        assert_eq!(Record::decode([7, 8, 8 << 16, 0]), Some(Record::Clock(7, 8)));
        assert_eq!(Record::decode([7, 8, 99 << 16, 0]), None);
        assert_eq!(Record::decode([0; 4]), None);
    }

    #[test]
    fn a_collective_has_the_bytes_of_its_process_where_they_are_known() {
        let amount = |kind: EventKind, word: u64| {
            let what = u64::from(kind as u8) << 16;
            let read = Record::decode([1000, 378, what, word << 32]).expect("a known kind");
            let Record::Event(event) = read else { panic!("no event: {read:?}") };
            event.amount()
        };
        for kind in [EventKind::Collective, EventKind::CollectiveStarted] {
            let amounts = [0, 1, 81, u64::from(u32::MAX)].map(|word| amount(kind, word));
            assert_eq!(amounts, [None, Some(0), Some(80), Some(u32::MAX - 1)]);
        }
        assert_eq!(amount(EventKind::Send, 81), None, "that is its tag");
        assert_eq!(amount(EventKind::CollectiveCompleted, 81), None);
    }
}
