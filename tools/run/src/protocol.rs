//! What the front-end of `sapwood run` and its agents say to each other.
//!
//! Three streams belong to a command. On *control* the front-end sends [`RUN`] once, and then asks
//! wave after wave ([`POLL`]); each agent answers each wave with one [`Outcome`], at once where it
//! has ended, and otherwise when the hold time is over. The filter `classes` folds these answers.
//! *Live* carries output as it comes, unfolded, and contents that are asked for ([`FETCH`]).
//! *Input* carries standard input down. Live and input are held back by their windows.

use std::time::Duration;

use sapwood::{Error, FIRST_TAG, Rank, RankSet, StreamId, Tag, Values, ValuesRef, Wave};

/// Control, down: the command, an [`Order`].
pub(crate) const RUN: Tag = FIRST_TAG;
/// Control, down: `%uld` wave, `%ud` hold time in milliseconds. The answer is an [`Outcome`].
pub(crate) const POLL: Tag = FIRST_TAG + 1;
/// Control, down: `%d` the number of a signal for the command.
pub(crate) const SIGNAL: Tag = FIRST_TAG + 2;
/// Control, down to one agent: `%ud` 1 for standard output, 2 for standard error.
pub(crate) const FETCH: Tag = FIRST_TAG + 3;
/// Live, up: `%s` whole lines of standard output, or a part of a long one without a line feed.
pub(crate) const OUTPUT: Tag = FIRST_TAG + 4;
/// Live, up: the same of standard error.
pub(crate) const ERRORS: Tag = FIRST_TAG + 5;
/// Live, up: `%s` a part of the content that was asked for; an empty one ends it.
pub(crate) const CONTENT: Tag = FIRST_TAG + 6;
/// Input, down: `%s` a part of standard input; an empty one ends it.
pub(crate) const INPUT: Tag = FIRST_TAG + 7;

/// Longest part of output or input in one packet, in bytes. A longer line is cut.
pub(crate) const PART_BYTES_MAX: usize = 32 << 10;

/// Longest output, standard output and error together, that an agent sends with its outcome.
/// Longer ones are asked for, once for each class.
pub(crate) const INLINE_BYTES_MAX: usize = 32 << 10;

/// Most bytes of each output that an agent keeps for that; all are counted and hashed.
pub(crate) const SPOOL_BYTES_MAX: u64 = 1 << 30;

/// A command, as all agents are told it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// The hosts, folded.
    pub(crate) hosts: String,
    /// The back-ends of these hosts, in the same order.
    pub(crate) members: RankSet,
    /// The command: one text for the shell, or words to be run as they are.
    pub(crate) words: Vec<String>,
    pub(crate) is_shell: bool,
    /// Whether `%h`, `%n` and the like are replaced.
    pub(crate) substitutes: bool,
    /// Whether output is sent as it comes.
    pub(crate) is_live: bool,
    /// Whether output is kept and folded.
    pub(crate) is_folded: bool,
    /// `NAME=value`.
    pub(crate) environment: Vec<String>,
    /// Where the caller is; of no weight where there is no such folder.
    pub(crate) caller_directory: String,
    /// Where the command is to run; empty for there.
    pub(crate) directory: String,
    /// Zero for none.
    pub(crate) time_limit: Duration,
    pub(crate) live: StreamId,
    /// Standard input's stream; the control stream's number where there is no input.
    pub(crate) input: StreamId,
    /// For how long the first wave is held.
    pub(crate) hold: Duration,
}

const SHELL: u32 = 1;
const SUBSTITUTES: u32 = 2;
const LIVE: u32 = 4;
const FOLDED: u32 = 8;

impl Order {
    pub(crate) fn encode(&self) -> Values {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = flag(self.is_shell, SHELL)
            | flag(self.substitutes, SUBSTITUTES)
            | flag(self.is_live, LIVE)
            | flag(self.is_folded, FOLDED);
        Values::new()
            .string(&self.hosts)
            .strings(&self.words)
            .strings(&self.environment)
            .string(&self.directory)
            .scalar(self.time_limit.as_millis() as u64)
            .scalar(flags)
            .scalar(self.live)
            .scalar(self.input)
            .scalar(self.hold.as_millis() as u64)
            .string(self.members.to_string())
            .string(&self.caller_directory)
    }

    /// Which of the command's hosts a back-end is, from 0.
    pub(crate) fn place_of(&self, rank: Rank) -> usize {
        self.members.iter().take_while(|&member| member < rank).count()
    }

    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Self, Error> {
        let strings = |at| -> Result<Vec<String>, Error> {
            let strings = values.strings(at)?;
            Ok(strings.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
        };
        let flags = values.scalar::<u32>(5)?;
        Ok(Self {
            hosts: values.string(0)?.to_string(),
            words: strings(1)?,
            environment: strings(2)?,
            directory: values.string(3)?.to_string(),
            time_limit: Duration::from_millis(values.scalar(4)?),
            is_shell: flags & SHELL != 0,
            substitutes: flags & SUBSTITUTES != 0,
            is_live: flags & LIVE != 0,
            is_folded: flags & FOLDED != 0,
            live: values.scalar(6)?,
            input: values.scalar(7)?,
            hold: Duration::from_millis(values.scalar(8)?),
            members: values.string(9)?.parse()?,
            caller_directory: values.string(10)?.to_string(),
        })
    }
}

/// The values of [`POLL`].
pub(crate) fn poll(wave: Wave, hold: Duration) -> Values {
    Values::new().scalar(wave).scalar(hold.as_millis() as u32)
}

/// How a command is doing on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It runs.
    Running,
    /// Its outcome was told in an earlier wave.
    Told,
    /// It ended with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// It took too long and was ended.
    TimedOut,
    /// It could not be started; the reason is its standard error, this its status.
    NotStarted(i32),
}

/// One output of a command, without its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest {
    /// All bytes that came. How many of them a host has kept is no matter of the output, and would
    /// tell equal ones apart.
    pub(crate) length: u64,
    /// BLAKE2s of all.
    pub(crate) hash: [u8; 32],
}

/// An answer on the control stream, by which the tree tells classes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    pub(crate) output: Digest,
    pub(crate) errors: Digest,
}

impl Outcome {
    /// An outcome that says no more than its state.
    pub(crate) fn bare(state: State) -> Self {
        Self { state, output: Digest::default(), errors: Digest::default() }
    }

    /// Bytes of both outputs together.
    pub(crate) fn bytes(&self) -> u64 {
        self.output.length.saturating_add(self.errors.length)
    }

    /// ```text
    /// | state, 1 byte | number, i32 | then for standard output and for standard error, if any:
    /// | length, u64 | hash, 32 bytes |
    /// ```
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (state, number) = match self.state {
            State::Running => (0, 0),
            State::Told => (1, 0),
            State::Exited(status) => (2, status),
            State::Killed(signal) => (3, signal),
            State::TimedOut => (4, 0),
            State::NotStarted(status) => (5, status),
        };
        let mut key = vec![state];
        key.extend(i32::to_le_bytes(number));
        if !matches!(self.state, State::Running | State::Told) {
            for digest in [&self.output, &self.errors] {
                key.extend(digest.length.to_le_bytes());
                key.extend(digest.hash);
            }
        }
        key
    }

    /// Reads a key; `None` where it is none.
    pub(crate) fn decode(key: &[u8]) -> Option<Self> {
        let (&state, rest) = key.split_first()?;
        let (number, mut rest) = rest.split_first_chunk()?;
        let number = i32::from_le_bytes(*number);
        let state = match state {
            0 => return rest.is_empty().then(|| Self::bare(State::Running)),
            1 => return rest.is_empty().then(|| Self::bare(State::Told)),
            2 => State::Exited(number),
            3 => State::Killed(number),
            4 => State::TimedOut,
            5 => State::NotStarted(number),
            _ => return None,
        };
        let mut digest = || {
            let (length, behind) = rest.split_first_chunk()?;
            let (hash, behind) = behind.split_first_chunk()?;
            rest = behind;
            Some(Digest { length: u64::from_le_bytes(*length), hash: *hash })
        };
        let (output, errors) = (digest()?, digest()?);
        rest.is_empty().then_some(Self { state, output, errors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_written() {
        let order = Order {
            hosts: "n[1-3]".into(),
            members: "2,4-5".parse().unwrap(),
            words: vec!["echo %h".into()],
            is_shell: true,
            substitutes: true,
            is_live: false,
            is_folded: true,
            environment: vec!["A=b c".into()],
            caller_directory: "/home".into(),
            directory: "/tmp".into(),
            time_limit: Duration::from_millis(1500),
            live: 7,
            input: 8,
            hold: Duration::from_millis(200),
        };
        assert_eq!(Order::decode(order.encode().as_ref()).unwrap(), order);
        assert_eq!([2, 4, 5].map(|rank| order.place_of(rank)), [0, 1, 2]);
    }

    #[test]
    fn an_outcome_is_read_as_it_is_written_and_nothing_else_is() {
        let digest = Digest { length: 9, hash: [3; 32] };
        for state in [State::Exited(3), State::Killed(9), State::TimedOut, State::NotStarted(127)] {
            let outcome = Outcome { state, output: digest, errors: Digest::default() };
            let key = outcome.encode();
            assert_eq!(Outcome::decode(&key), Some(outcome));
            assert_eq!(Outcome::decode(&key[..key.len() - 1]), None);
        }
        for state in [State::Running, State::Told] {
            assert_eq!(Outcome::decode(&Outcome::bare(state).encode()), Some(Outcome::bare(state)));
        }
        assert_eq!(Outcome::decode(&[]), None);
        assert_eq!(Outcome::decode(&[9, 0, 0, 0, 0]), None);
    }
}
