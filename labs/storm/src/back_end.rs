//! A back-end of the storm.
//!
//! It answers every request with the values of its next wave, and keeps account of the requests: of
//! each stream's they must come one after another, none twice and none left out. What it has seen
//! it tells when the front-end asks at the end.

use std::process::ExitCode;

use sapwood::{BackEnd, Error, Received, Values};

use super::contribution::{Kind, TAG};
use sapwood_command_line::exit::Failure;

/// The hidden argument with which this program is a back-end of the storm.
pub const BACK_END: &str = "storm-back-end";

/// Numbers in a back-end's account: its rank, its requests of each stream, and its faults.
pub(super) const ACCOUNT_NUMBERS: usize = Kind::ALL.len() + 2;

/// What the front-end asks of all back-ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The next wave on the stream of that place in [`Kind::ALL`]; the number counts from 0.
    Wave { kind: usize, number: u64 },
    /// The account.
    Account,
}

impl Request {
    /// As values: one array of two numbers.
    pub(super) fn values(self) -> Values {
        Values::new().array(&match self {
            Self::Wave { kind, number } => [kind as u64, number],
            Self::Account => [u64::MAX, 0],
        })
    }

    fn read(received: &Received) -> Result<Self, Error> {
        let words = received.values().array::<u64>(0)?;
        let word = |at: usize| words.get(at).copied().unwrap_or(u64::MAX);
        Ok(match usize::try_from(word(0)) {
            Ok(kind) if kind < Kind::ALL.len() => Self::Wave { kind, number: word(1) },
            _ => Self::Account,
        })
    }
}

/// Is a back-end until the network ends.
pub fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    match answer_all(&mut back_end) {
        Ok(()) | Err(Error::Ended { .. }) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.into()),
    }
}

fn answer_all(back_end: &mut BackEnd) -> Result<(), Error> {
    let rank = back_end.rank();
    let mut requests = [0_u64; Kind::ALL.len()];
    let mut faults = 0_u64;
    loop {
        let received = back_end.recv()?;
        let values = match Request::read(&received)? {
            Request::Wave { kind, number } => {
                let wave = requests[kind];
                if number != wave {
                    faults += 1;
                    let filter = Kind::ALL[kind].name();
                    eprintln!("storm: rank {rank}: {filter}: request {number} and not {wave}");
                }
                requests[kind] += 1;
                Kind::ALL[kind].values(rank, wave)
            }
            Request::Account => {
                let mut account = vec![u64::from(rank)];
                account.extend(requests);
                account.push(faults);
                debug_assert_eq!(account.len(), ACCOUNT_NUMBERS, "the front-end counts on it");
                Values::new().array(&account)
            }
        };
        back_end.send(received.stream, TAG, values)?;
    }
}
