//! A member in the group storm: this program in a role of its own.
//!
//! It joins as its command line says, reads one operation a line from standard input, has as many
//! under way as it is asked for, and prints for each what its group has answered, in full and
//! unjudged: of a value the digest. Nothing here decides what is right.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sapwood::{
    Error, Group, GroupAnswer, GroupRequest, Rank, RankSet, Reduction, key_from_environment,
};
use sapwood_command_line::exit::{Failure, print};
use serde_json::{Value, json};

use super::oracle::DEADLINE;
use super::value::{Ask, Collective, Digest};

/// The hidden argument with which this program is a member of a group in the storm.
pub const GROUP_MEMBER: &str = "storm-group-member";

/// The line after which it leaves.
pub(super) const LEAVE: &str = "leave\n";
/// The line after which it waits until it knows this number of members.
pub(super) const MEET: &str = "meet";

/// How long it waits for all others at the begin.
const MEET_LIMIT: Duration = Duration::from_secs(60);
/// Bytes that are read of standard input at once.
const READ_BYTES: usize = 4096;

/// The arguments of a member that creates the group, or joins at an address.
pub(super) fn arguments(name: Rank, address: Option<&str>) -> Vec<OsString> {
    let words = [Some(GROUP_MEMBER.to_string()), Some(name.to_string()), address.map(String::from)];
    words.into_iter().flatten().map(OsString::from).collect()
}

/// Is a member until it is told to leave, or its input ends.
pub fn group_member() -> Result<ExitCode, Failure> {
    let wrong = || Failure::usage(format!("{GROUP_MEMBER} NAME [ADDRESS]"));
    let mut words = std::env::args().skip(2);
    let name: Rank = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let key = key_from_environment()?.ok_or_else(|| Failure::usage("the storm gives a key"))?;
    // Sockets, since what a stopped or killed process leaves in shared memory is another matter.
    let builder = Group::builder(key).name(name).shared_memory(false);
    let entered = match words.next() {
        Some(address) => builder.join(&address),
        None => builder.create(),
    };
    match entered {
        Ok(group) => Serving { group, name, calls: Vec::new(), input: Vec::new() }.run(),
        Err(error) => {
            say(&json!({ "refused": error.to_string() }))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What a line of the input has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

struct Serving {
    group: Group,
    name: Rank,
    calls: Vec<OpenCall>,
    input: Vec<u8>,
}

/// An operation under way.
struct OpenCall {
    number: u64,
    known: RankSet,
    began: Instant,
    request: GroupRequest,
}

impl Serving {
    fn run(mut self) -> Result<ExitCode, Failure> {
        say(&json!({ "joined": self.group.address() }))?;
        loop {
            let has_input = self.wait();
            self.answer_all()?;
            if has_input && self.read()? == Next::Leave {
                break;
            }
        }
        self.calls.clear();
        match self.group.leave() {
            // It is gone all the same; what it has passed on until then is seen at the others.
            Ok(()) | Err(Error::Timeout { .. }) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for input or an answer; says whether there is input.
    fn wait(&self) -> bool {
        let (input, notice) = (std::io::stdin(), self.group.descriptor());
        let mut waited = [PollFd::new(&input, PollFlags::IN), PollFd::new(&notice, PollFlags::IN)];
        let time = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        // An interruption only means that there is a look in vain.
        let _ = poll(&mut waited, Some(&time));
        !waited[0].revents().is_empty()
    }

    fn read(&mut self) -> Result<Next, Failure> {
        let mut buffer = [0; READ_BYTES];
        let count = match rustix::io::read(std::io::stdin(), &mut buffer) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(Next::GoOn),
            Err(error) => return Err(Failure::own(&error)),
        };
        self.input.extend_from_slice(&buffer[..count]);
        while let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line == LEAVE {
                return Ok(Next::Leave);
            }
            self.handle(&line)?;
        }
        // The end of the input: the storm is over, in whatever way.
        Ok(if count == 0 { Next::Leave } else { Next::GoOn })
    }

    fn handle(&mut self, line: &str) -> Result<(), Failure> {
        if let Some(ask) = Ask::read(line) {
            return self.begin(&ask);
        }
        let count = line.strip_prefix(MEET).and_then(|count| count.trim().parse().ok());
        let wrong = || Failure::usage(format!("a member does not understand '{}'", line.trim()));
        self.group.wait_for(count.ok_or_else(wrong)?, MEET_LIMIT)?;
        say(&json!({ "met": self.group.everyone().to_string() }))
    }

    fn begin(&mut self, ask: &Ask) -> Result<(), Failure> {
        let Ask { root, number, .. } = *ask;
        let group = &self.group;
        let known = group.everyone();
        let operation = match ask.collective {
            Collective::Broadcast => {
                group.broadcast(root, (self.name == root).then(|| ask.payload()))
            }
            Collective::Reduce => group.reduce(root, Reduction::Sum, &ask.numbers(self.name)),
            Collective::Allreduce => {
                group.allreduce(Reduction::Sum, &ask.numbers(self.name)).root(root)
            }
        };
        let began = Instant::now();
        match operation.number(number).deadline(DEADLINE).start() {
            Ok(request) => {
                self.calls.push(OpenCall { number, known, began, request });
                Ok(())
            }
            Err(error) => say(&json!({ "answered": number, "error": error.to_string() })),
        }
    }

    /// Says what has come of calls.
    fn answer_all(&mut self) -> Result<(), Failure> {
        self.group.clear();
        let mut open = Vec::with_capacity(self.calls.len());
        for mut call in std::mem::take(&mut self.calls) {
            match call.request.test() {
                Ok(None) => open.push(call),
                Ok(Some(answer)) => say(&call.told(&answer))?,
                Err(error) => {
                    say(&json!({ "answered": call.number, "error": error.to_string() }))?;
                }
            }
        }
        self.calls = open;
        Ok(())
    }
}

impl OpenCall {
    fn told(&self, answer: &GroupAnswer) -> Value {
        let missing: Vec<Value> = answer
            .missing
            .iter()
            .map(|(names, why)| json!({ "names": names.to_string(), "reason": why.to_string() }))
            .collect();
        let value = answer.bytes().ok().map(|bytes| {
            let digest = Digest::of_bytes(bytes);
            json!({ "bytes": digest.bytes, "digest": digest.mixed })
        });
        json!({
            "answered": self.number,
            "known": self.known.to_string(),
            "took_us": self.began.elapsed().as_micros() as u64,
            "contributors": answer.contributors.to_string(),
            "missing": missing,
            "value": value,
        })
    }
}

fn say(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}
