//! A group of Sapwood's as a contender: members are processes of this program.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use sapwood::{KEY_VARIABLE, Key};
use sapwood_command_line::exit::Failure;
use sapwood_group_tool::{Act, Fleet, MemberWords, Request, is_right};
use sapwood_launch::Order;
use serde_json::Value;

use super::super::group::GROUP_MEMBER;
use super::super::tree::own_program;
use super::{Case, Contender, Operation};

/// How long one round may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long all rounds of a turn may take.
const TURN_DEADLINE: Duration = Duration::from_secs(120);

/// Over what members are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// As members of one host are by default.
    SharedMemory,
    /// Encrypted, as between hosts.
    Tcp,
    Unix,
}

/// The members of one group.
pub(super) struct Members {
    fleet: Fleet,
}

impl Carrier {
    pub(super) const ALL: [Self; 3] = [Self::SharedMemory, Self::Unix, Self::Tcp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "sapwood_shm",
            Self::Tcp => "sapwood_tcp",
            Self::Unix => "sapwood_unix",
        }
    }
}

impl Members {
    pub(super) fn start(carrier: Carrier, processes: u32) -> Result<Self, Failure> {
        let program = own_program()?;
        let key = Key::generate().map_err(|error| Failure::own(&error))?;
        let key: OwnedFd = key.to_descriptor().map_err(|error| Failure::own(&error))?;
        let fleet = Fleet::start(processes, |name, address| {
            let process = std::process::id();
            let unix_address = || format!("unix:@sapwood-bench-{process}-{processes}-{name}");
            let words = MemberWords {
                name,
                address: address.map(String::from),
                listen: (carrier == Carrier::Unix).then(unix_address),
                has_sockets: carrier != Carrier::SharedMemory,
                ..MemberWords::default()
            };
            let mut order = Order::new(&program);
            let words = std::iter::once(GROUP_MEMBER.to_string()).chain(words.arguments());
            order.arguments = words.map(Into::into).collect();
            order.inherit = vec![(KEY_VARIABLE.to_string(), key.as_fd())];
            Ok(order)
        })?;
        Ok(Self { fleet })
    }
}

impl Contender for Members {
    fn carry_out(&mut self, case: &Case, rounds: u32) -> Result<Vec<f64>, Failure> {
        let act = match case.operation {
            Operation::Broadcast => Act::Broadcast,
            Operation::Allreduce => Act::Allreduce,
            Operation::Barrier => Act::Barrier,
        };
        let mut request = Request::new(act);
        (request.bytes, request.rounds, request.deadline) = (case.bytes, rounds.into(), DEADLINE);
        (request.has_moments, request.is_apart) = (true, true);
        let answers = self.fleet.ask(&request, TURN_DEADLINE);
        let answers: Vec<Value> = answers.into_iter().collect::<Result<_, _>>()?;
        if let Some((member, answer)) =
            (0..).zip(&answers).find(|entry: &(u32, _)| !is_right(entry.1))
        {
            return Err(Failure::own(&format!(
                "{}: wrong at member {member}: {answer}",
                case.name()
            )));
        }
        let times: Option<Vec<f64>> =
            (0..rounds as usize).map(|round| time_of(case, &answers, round)).collect();
        times.ok_or_else(|| Failure::own(&format!("{}: a member gave no times", case.name())))
    }

    fn end(self: Box<Self>) -> Result<(), Failure> {
        self.fleet.end()
    }
}

/// The nanoseconds of one round. All members have one clock.
fn time_of(case: &Case, answers: &[Value], round: usize) -> Option<f64> {
    let moment = |answer: &Value, which: usize| answer["moments"][round][which].as_u64();
    let last = |answers: &[Value], which| {
        answers.iter().map(|answer| moment(answer, which)).max().flatten()
    };
    let (begin, end) = match case.operation {
        Operation::Broadcast => (moment(answers.first()?, 0)?, last(&answers[1..], 1)?),
        _ => (last(answers, 0)?, last(answers, 1)?),
    };
    Some(end.saturating_sub(begin) as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_root_of_a_broadcast_begins_and_the_last_of_the_others_ends_it() {
        let answers = [[100, 900], [50, 300], [120, 450]];
        let answers = answers.map(|moment| json!({ "moments": [moment] }));
        let case = |operation| Case { operation, processes: 3, bytes: 8 };
        assert_eq!(time_of(&case(Operation::Broadcast), &answers, 0), Some(350.0));
        assert_eq!(time_of(&case(Operation::Allreduce), &answers, 0), Some(780.0));
        assert_eq!(time_of(&case(Operation::Allreduce), &answers, 1), None);
    }
}
