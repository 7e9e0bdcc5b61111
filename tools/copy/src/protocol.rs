//! What the front-end of `sapwood copy` and its agents say to each other.
//!
//! Two streams belong to a copy. On *control* the front-end sends one [`Order`] and then asks
//! "how is it?", wave after wave ([`POLL`]); agents answer with an [`Outcome`], and the filter
//! `classes` folds the answers. On *data* one end, the source, says [`Message`]s to the other,
//! the receiver, which answers with what it has already. A push has the front-end as the source;
//! to gather, the agents are sources and the front-end is a receiver for each.

use std::time::Duration;

use sapwood::{Error, FIRST_TAG, StreamId, Tag, Values, ValuesRef, Wave};

use super::blocks::Digest;

/// Control, down: what to do, an [`Order`].
pub(super) const ORDER: Tag = FIRST_TAG;
/// Control, down: `%uld` wave, `%ud` hold time in milliseconds. The answer is an [`Outcome`].
pub(super) const POLL: Tag = FIRST_TAG + 1;
/// Control, down: `%ud` the data stream on which to say once more what is lacking.
pub(super) const AGAIN: Tag = FIRST_TAG + 2;
/// Control, up: an answer.
pub(super) const ANSWER: Tag = FIRST_TAG + 3;

const ENTRIES: Tag = FIRST_TAG + 10;
const PLANNED: Tag = FIRST_TAG + 11;
const OFFER: Tag = FIRST_TAG + 12;
const READY: Tag = FIRST_TAG + 13;
const ACCEPT: Tag = FIRST_TAG + 14;
const PART: Tag = FIRST_TAG + 15;
const END: Tag = FIRST_TAG + 16;
const SPOILT: Tag = FIRST_TAG + 17;
const FINISH: Tag = FIRST_TAG + 18;

/// In [`Message::Ready`]: the receiver wants nothing more, whatever it knows.
pub(super) const NOTHING_MORE: u64 = u64::MAX;

/// Most complaints that a host tells; all are counted.
pub(super) const COMPLAINTS_MAX: usize = 50;

/// How things are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    /// Whether the destination is a folder into which sources go.
    pub(super) is_into: bool,
    /// Whether the destination is the copy itself, even if it is a folder.
    pub(super) is_exact: bool,
    /// Whether owners are kept.
    pub(super) keeps_owner: bool,
    /// Whether files are on the disk before they get their names.
    pub(super) syncs: bool,
    /// Whether nothing of an interrupted copy is kept or used.
    pub(super) is_anew: bool,
}

/// A copy, as all agents are told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// Whether agents are sources.
    pub(super) gathers: bool,
    /// The hosts, folded; back-end r is the host at place r.
    pub(super) hosts: String,
    /// Whether `%h`, `%n` and the like are replaced in the paths.
    pub(super) substitutes: bool,
    /// Names of the sources where they are pushed, and their paths where they are gathered.
    pub(super) sources: Vec<Vec<u8>>,
    /// Path of the destination on each host, where sources are pushed.
    pub(super) destination: Vec<u8>,
    pub(super) terms: Terms,
    pub(super) data: StreamId,
}

impl Order {
    pub(super) fn encode(&self) -> Values {
        let terms = &self.terms;
        let flags = [
            self.gathers,
            self.substitutes,
            terms.is_into,
            terms.is_exact,
            terms.keeps_owner,
            terms.syncs,
            terms.is_anew,
        ];
        let flags = flags.iter().enumerate().map(|(at, &flag)| u32::from(flag) << at).sum::<u32>();
        Values::new()
            .string(&self.hosts)
            .strings(&self.sources)
            .string(&self.destination)
            .scalar(flags)
            .scalar(self.data)
    }

    pub(super) fn decode(values: ValuesRef<'_>) -> Result<Self, Error> {
        let flags = values.scalar::<u32>(3)?;
        let flag = |at: u32| flags >> at & 1 == 1;
        let terms = Terms {
            is_into: flag(2),
            is_exact: flag(3),
            keeps_owner: flag(4),
            syncs: flag(5),
            is_anew: flag(6),
        };
        Ok(Self {
            gathers: flag(0),
            substitutes: flag(1),
            hosts: values.string(0)?.to_string(),
            sources: values.strings(1)?.map(<[u8]>::to_vec).collect(),
            destination: values.string_bytes(2)?.to_vec(),
            terms,
            data: values.scalar(4)?,
        })
    }
}

/// The values of [`POLL`].
pub(super) fn poll(wave: Wave, hold: Duration) -> Values {
    Values::new().scalar(wave).scalar(hold.as_millis() as u32)
}

/// What one end says to the other on the data stream. Entries are known by their place in the
/// manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// Source: entries of the manifest, one after another, from this one on.
    Entries { first: u64, encoded: &'a [u8] },
    /// Source: the number of entries in the manifest.
    Planned { count: u64 },
    /// Receiver: the first bytes of this file's data are there, and have this digest.
    Offer { entry: u64, length: u64, digest: Digest },
    /// Receiver: the number of entries that are known, the end of the list counted as one more,
    /// and the files in these ranges of entries are not there, apart from what was offered.
    /// Ranges are first and behind-the-last.
    Ready { known: u64, lacking: Vec<(u64, u64)> },
    /// Source: what was offered is right, and goes on from there.
    Accept { entry: u64 },
    /// Source: a block of a file, where it begins in the data, and its digest.
    Part { entry: u64, offset: u64, digest: Digest, bytes: &'a [u8] },
    /// Source: the file is whole, with this digest.
    End { entry: u64, digest: Digest },
    /// Source: the file could not be read, or is not what it was.
    Spoilt { entry: u64 },
    /// Source: that was all.
    Finish,
}

impl<'a> Message<'a> {
    /// Its tag and values.
    pub(super) fn encode(&self) -> (Tag, Values) {
        let values = Values::new();
        match self {
            Self::Entries { first, encoded } => (ENTRIES, values.scalar(*first).string(encoded)),
            Self::Planned { count } => (PLANNED, values.scalar(*count)),
            Self::Offer { entry, length, digest } => {
                (OFFER, values.scalar(*entry).scalar(*length).string(digest))
            }
            Self::Ready { known, lacking } => {
                let bounds: Vec<u64> = lacking.iter().flat_map(|&(from, to)| [from, to]).collect();
                (READY, values.scalar(*known).array(&bounds))
            }
            Self::Accept { entry } => (ACCEPT, values.scalar(*entry)),
            Self::Part { entry, offset, digest, bytes } => {
                (PART, values.scalar(*entry).scalar(*offset).string(digest).string(bytes))
            }
            Self::End { entry, digest } => (END, values.scalar(*entry).string(digest)),
            Self::Spoilt { entry } => (SPOILT, values.scalar(*entry)),
            Self::Finish => (FINISH, values.scalar(0_u64)),
        }
    }

    /// Reads a message; `None` where it is none.
    pub(super) fn decode(tag: Tag, values: ValuesRef<'a>) -> Option<Self> {
        let number = |at: usize| values.scalar::<u64>(at).ok();
        let bytes = |at: usize| values.string_bytes(at).ok();
        let digest = |at: usize| Digest::try_from(bytes(at)?).ok();
        let entry = number(0)?;
        Some(match tag {
            ENTRIES => Self::Entries { first: entry, encoded: bytes(1)? },
            PLANNED => Self::Planned { count: entry },
            OFFER => Self::Offer { entry, length: number(1)?, digest: digest(2)? },
            READY => {
                let bounds = values.array::<u64>(1).ok()?;
                let lacking = bounds.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                Self::Ready { known: entry, lacking }
            }
            ACCEPT => Self::Accept { entry },
            PART => Self::Part { entry, offset: number(1)?, digest: digest(2)?, bytes: bytes(3)? },
            END => Self::End { entry, digest: digest(1)? },
            SPOILT => Self::Spoilt { entry },
            FINISH => Self::Finish,
            _ => return None,
        })
    }
}

/// Something that could not be copied, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Complaint {
    pub(super) path: String,
    pub(super) reason: String,
}

/// What went wrong: the first few, and how many in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Complaints {
    pub(super) first: Vec<Complaint>,
    pub(super) count: u64,
    /// Special files, which are not copied and no fault.
    pub(super) left_out: Vec<String>,
}

impl Complaints {
    pub(super) fn add(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.count += 1;
        if self.first.len() < COMPLAINTS_MAX {
            self.first.push(Complaint { path: path.into(), reason: reason.into() });
        }
    }

    /// Whether nothing went wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Something that is no file, folder or link.
    pub(super) fn leave_out(&mut self, path: impl Into<String>) {
        if self.left_out.len() < COMPLAINTS_MAX {
            self.left_out.push(path.into());
        }
    }

    /// Adds what another part of the same copy has to say.
    pub(super) fn append(&mut self, other: &Self) {
        let room = COMPLAINTS_MAX.saturating_sub(self.first.len());
        self.first.extend(other.first.iter().take(room).cloned());
        self.count += other.count;
        self.left_out.extend(other.left_out.iter().cloned());
    }

    /// Texts, NUL behind each: path and reason of complaints, and of what was left out the path and
    /// nothing.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let complaints = self.first.iter().map(|complaint| (&*complaint.path, &*complaint.reason));
        for (path, reason) in complaints.chain(self.left_out.iter().map(|path| (&**path, ""))) {
            for text in [path, reason] {
                bytes.extend(text.bytes().filter(|&byte| byte != 0));
                bytes.push(0);
            }
        }
        bytes
    }

    fn decode(bytes: &[u8], count: u64) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let texts: Vec<String> = bytes.split(|&byte| byte == 0).map(text).collect();
        let mut complaints = Self { count, ..Self::default() };
        for pair in texts.chunks_exact(2).take(2 * COMPLAINTS_MAX) {
            let (path, reason) = (pair[0].clone(), pair[1].clone());
            match reason.is_empty() {
                true => complaints.left_out.push(path),
                false => complaints.first.push(Complaint { path, reason }),
            }
        }
        complaints
    }
}

/// How the copy is doing on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It goes on; the first number is the thousandths of the data that are there. The second
    /// number changes while the host works alone: reads what it has, makes links, finishes
    /// folders.
    Going(u32, u32),
    /// All was said, and something did not arrive.
    Lacking,
    /// It is over: the files and bytes of data that are there or were sent.
    Done { files: u64, bytes: u64 },
}

/// An answer on the control stream, by which the tree tells classes apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outcome {
    pub(super) state: State,
    pub(super) complaints: Complaints,
}

impl Outcome {
    /// The values of an answer: `| state, 1 byte | two numbers, u64 | number of complaints, u64 |`,
    /// then the digest of the complaints, so that only equal ones are one class; and the
    /// complaints.
    pub(super) fn encode(&self) -> Values {
        let (state, one, two) = match self.state {
            State::Going(there, alone) => (0, u64::from(there), u64::from(alone)),
            State::Lacking => (1, 0, 0),
            State::Done { files, bytes } => (2, files, bytes),
        };
        let content = self.complaints.encode();
        let mut key = vec![state];
        for number in [one, two, self.complaints.count] {
            key.extend(u64::to_le_bytes(number));
        }
        key.extend(super::blocks::block_digest(&content));
        Values::new().string(key).string(content)
    }

    /// Reads a key and its content; `None` where it is none.
    pub(super) fn decode(key: &[u8], content: &[u8]) -> Option<Self> {
        let (&state, rest) = key.split_first()?;
        let (numbers, _) = rest.split_at_checked(24)?;
        let number = |at: usize| {
            let bytes = numbers[at * 8..].first_chunk().expect("three numbers of 8 bytes each");
            u64::from_le_bytes(*bytes)
        };
        let state = match state {
            0 => State::Going(number(0).min(1000) as u32, number(1) as u32),
            1 => State::Lacking,
            2 => State::Done { files: number(0), bytes: number(1) },
            _ => return None,
        };
        Some(Self { state, complaints: Complaints::decode(content, number(2)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_written() {
        let terms = Terms { is_exact: true, syncs: true, ..Terms::default() };
        let order = Order {
            gathers: true,
            hosts: "n[1-3]".into(),
            substitutes: true,
            sources: vec![b"a".into(), b"\xff".into()],
            destination: b"/tmp/x".into(),
            terms,
            data: 9,
        };
        assert_eq!(Order::decode(order.encode().as_ref()).unwrap(), order);
    }

    #[test]
    fn a_message_is_read_as_it_is_written() {
        let digest = [7; 32];
        let messages = [
            Message::Entries { first: 3, encoded: b"abc" },
            Message::Planned { count: 4 },
            Message::Offer { entry: 1, length: 2, digest },
            Message::Ready { known: 4, lacking: vec![(0, 2), (3, 4)] },
            Message::Accept { entry: 5 },
            Message::Part { entry: 1, offset: 128, digest, bytes: b"xyz" },
            Message::End { entry: 1, digest },
            Message::Spoilt { entry: 1 },
            Message::Finish,
        ];
        for message in messages {
            let (tag, values) = message.encode();
            assert_eq!(Message::decode(tag, values.as_ref()), Some(message));
            assert_eq!(Message::decode(tag, Values::new().as_ref()), None);
        }
    }

    #[test]
    fn an_outcome_is_read_as_it_is_written() {
        let mut complaints = Complaints::default();
        complaints.add("/a", "no room");
        complaints.add("/b", "no room");
        complaints.leave_out("/c: is a socket, left out");
        let done = State::Done { files: 3, bytes: 1 << 40 };
        for state in [State::Going(17, 4), State::Lacking, done] {
            let outcome = Outcome { state, complaints: complaints.clone() };
            let values = outcome.encode();
            let part = |at| values.as_ref().string_bytes(at).unwrap();
            assert_eq!(Outcome::decode(part(0), part(1)), Some(outcome));
        }
        assert_eq!(Outcome::decode(&[2, 0], b""), None);
    }
}
