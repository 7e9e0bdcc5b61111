//! A member in the group storm: this program in a role of its own.
//!
//! It joins as its command line says, reads one operation a line from standard input, has as many
//! under way as it is asked for, and prints for each what its group has answered, in full and
//! unjudged: of a value the digest. Nothing here decides what is right. `calls` has the operations,
//! `mail` what is sent to one virtual node, `order` what else it is told, `links` the connections
//! that it breaks.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sapwood::{Error, Group, Rank, key_from_environment};
use sapwood_command_line::exit::{Failure, print};
use serde_json::{Value, json};

use super::calls::Calls;
use super::links::{Cut, reset_one};
use super::mail::Mail;
use super::order::Order;
use super::value::Ask;

/// The hidden argument with which this program is a member of a group in the storm.
pub const GROUP_MEMBER: &str = "storm-group-member";

/// The line after which it waits until it knows this number of members.
pub(super) const MEET: &str = "meet";

/// How long it waits for all others at the begin.
const MEET_LIMIT: Duration = Duration::from_secs(60);
/// Bytes that are read of standard input at once.
const READ_BYTES: usize = 4096;
/// How long it waits for news at most; less while links are cut.
const WAIT_NANOSECONDS: i64 = 200_000_000;
const CUTTING_NANOSECONDS: i64 = 2_000_000;

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
        Ok(group) => Serving::new(group, name)?.run(),
        Err(error) => {
            say(&json!({ "refused": error.to_string() }))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints a line for the storm.
pub(super) fn say(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

/// What a line of the input has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave { heir: Option<Rank> },
}

struct Serving {
    group: Group,
    calls: Calls,
    mail: Mail,
    cuts: Vec<Cut>,
    input: Vec<u8>,
}

impl Serving {
    fn new(group: Group, name: Rank) -> Result<Self, Failure> {
        let calls = Calls::new(&group, name)?;
        Ok(Self { group, calls, mail: Mail::default(), cuts: Vec::new(), input: Vec::new() })
    }

    fn run(mut self) -> Result<ExitCode, Failure> {
        say(&json!({ "joined": self.group.address() }))?;
        let heir = loop {
            let has_input = self.wait();
            self.keep_cut()?;
            self.group.clear();
            self.calls.answer()?;
            self.mail.answer(&self.group)?;
            if has_input && let Next::Leave { heir } = self.read()? {
                break heir;
            }
        };
        drop(self.calls);
        let left = match heir {
            Some(heir) => self.group.leave_to(heir),
            None => self.group.leave(),
        };
        match left {
            // It is gone all the same; what it has passed on until then is seen at the others.
            Ok(()) | Err(Error::Timeout { .. }) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for input or an answer; says whether there is input.
    fn wait(&self) -> bool {
        let (input, notice) = (std::io::stdin(), self.group.descriptor());
        let mut waited = [PollFd::new(&input, PollFlags::IN), PollFd::new(&notice, PollFlags::IN)];
        let tv_nsec = if self.cuts.is_empty() { WAIT_NANOSECONDS } else { CUTTING_NANOSECONDS };
        let time = Timespec { tv_sec: 0, tv_nsec };
        // An interruption only means that there is a look in vain.
        let _ = poll(&mut waited, Some(&time));
        !waited[0].revents().is_empty()
    }

    /// Breaks again what was connected anew where links are cut, and says how many in the end.
    fn keep_cut(&mut self) -> Result<(), Failure> {
        self.cuts.iter_mut().for_each(Cut::keep);
        let (over, going): (Vec<Cut>, Vec<Cut>) =
            std::mem::take(&mut self.cuts).into_iter().partition(Cut::is_over);
        self.cuts = going;
        over.iter().try_for_each(|cut| say(&json!({ "broken": cut.broken() })))
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
            let next = self.handle(&line)?;
            if next != Next::GoOn {
                return Ok(next);
            }
        }
        // The end of the input: the storm is over, in whatever way.
        Ok(if count == 0 { Next::Leave { heir: None } } else { Next::GoOn })
    }

    fn handle(&mut self, line: &str) -> Result<Next, Failure> {
        if let Some(ask) = Ask::read(line) {
            if !self.mail.expects(&ask, &self.group) {
                self.calls.begin(&self.group, &ask)?;
            }
            return Ok(Next::GoOn);
        }
        match Order::read(line) {
            Some(Order::Reset { choice }) => {
                say(&json!({ "broken": reset_one(choice) }))?;
                return Ok(Next::GoOn);
            }
            Some(Order::Cut { peer, time }) => {
                self.cuts.push(Cut::new(peer, time));
                return Ok(Next::GoOn);
            }
            Some(Order::Leave { heir }) => return Ok(Next::Leave { heir }),
            None => {}
        }
        let count = line.strip_prefix(MEET).and_then(|count| count.trim().parse().ok());
        let wrong = || Failure::usage(format!("a member does not understand '{}'", line.trim()));
        self.group.wait_for(count.ok_or_else(wrong)?, MEET_LIMIT)?;
        say(&json!({ "met": self.group.everyone().to_string() }))?;
        Ok(Next::GoOn)
    }
}
