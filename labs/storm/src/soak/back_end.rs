//! A back-end of the soak: it sends waves on four streams as fast as it may, and counts what comes
//! down meanwhile.

use std::process::ExitCode;

use sapwood::{BackEnd, Error, Received, StreamId, Values};

use crate::contribution::{Kind, TAG};
use sapwood_command_line::exit::Failure;

/// The hidden argument with which this program is a back-end of the soak.
pub const BACK_END: &str = "soak-back-end";

/// A back-end answers this number of packets from the front-end with one.
pub(super) const PACKETS_PER_ANSWER: u64 = 128;

/// What it answers to [`Word::End`]: it has sent its last wave.
pub(super) const LAST_ANSWER: u64 = u64::MAX;

/// Waves in a row on each stream of [`Kind::SMALL`], between looks at what has come: enough that a
/// look costs little, and most on the stream that is cheapest.
const WAVES_IN_A_ROW: [u64; Kind::SMALL.len()] = [64, 16, 8, 4];

/// What the front-end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// On each stream at first: send on it.
    Begin { kind: usize },
    /// A packet of that number.
    Packet { number: u64 },
    /// Send no more.
    End,
}

impl Word {
    /// As values: one array of eight numbers.
    pub(super) fn values(self) -> Values {
        let (what, number) = match self {
            Self::Begin { kind } => (0, kind as u64),
            Self::Packet { number } => (1, number),
            Self::End => (2, 0),
        };
        Values::new().array(&[what, number, 0, 0, 0, 0, 0, 0])
    }

    fn read(received: &Received) -> Result<Self, Error> {
        let words = received.values().array::<u64>(0)?;
        let word = |at: usize| words.get(at).copied().unwrap_or(u64::MAX);
        Ok(match (word(0), usize::try_from(word(1))) {
            (0, Ok(kind)) if kind < Kind::SMALL.len() => Self::Begin { kind },
            (1, _) => Self::Packet { number: word(1) },
            _ => Self::End,
        })
    }
}

/// Is a back-end until the network ends.
pub fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let mut flood = Flood::default();
    match flood.run(&mut back_end) {
        Ok(()) | Err(Error::Ended { .. }) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
    }
}

#[derive(Default)]
struct Flood {
    streams: [Option<StreamId>; Kind::SMALL.len()],
    waves: [u64; Kind::SMALL.len()],
    packets: u64,
    has_ended: bool,
}

impl Flood {
    fn run(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        let rank = back_end.rank();
        loop {
            let is_idle = self.has_ended || self.streams.iter().all(Option::is_none);
            if is_idle {
                let received = back_end.recv()?;
                self.hear(back_end, &received)?;
                continue;
            }
            while let Some(received) = back_end.try_recv()? {
                self.hear(back_end, &received)?;
            }
            for (at, kind) in Kind::SMALL.into_iter().enumerate() {
                let Some(stream) = self.streams[at] else { continue };
                for _ in 0..WAVES_IN_A_ROW[at] {
                    back_end.send(stream, TAG, kind.values(rank, self.waves[at]))?;
                    self.waves[at] += 1;
                }
            }
        }
    }

    fn hear(&mut self, back_end: &mut BackEnd, received: &Received) -> Result<(), Error> {
        match Word::read(received)? {
            Word::Begin { kind } => self.streams[kind] = Some(received.stream),
            Word::End => {
                self.has_ended = true;
                back_end.send(received.stream, TAG, LAST_ANSWER)?;
            }
            Word::Packet { number } => {
                if number != self.packets {
                    let rank = back_end.rank();
                    eprintln!("soak: rank {rank}: packet {number} and not {}", self.packets);
                    // An account that cannot be right is one that the front-end notices.
                    self.packets = number;
                }
                self.packets += 1;
                if self.packets.is_multiple_of(PACKETS_PER_ANSWER) {
                    back_end.send(received.stream, TAG, self.packets)?;
                }
            }
        }
        Ok(())
    }
}
