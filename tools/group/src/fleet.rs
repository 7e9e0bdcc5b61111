//! Members as processes of their own, which are asked over their standard input.
//!
//! [`Fleet`] starts them as `sapwood group create` and `join`, on this host or where its caller's
//! words lead, writes one operation to all and reads their answers.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood::Rank;
use sapwood_command_line::exit::Failure;
use sapwood_launch::{Local, Order, Process};
use serde_json::{Value, json};

use crate::request::{Act, Request};

/// How long a member may take to start, and to leave.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// What a member is started with.
#[derive(Clone, Debug, Default)]
pub struct MemberWords {
    /// Its virtual node.
    pub name: Rank,
    /// The address at which it joins; without one it creates the group.
    pub address: Option<String>,
    /// The site that it says it is at.
    pub site: Option<usize>,
    /// Where it listens; on the loopback interface unless given.
    pub listen: Option<String>,
    /// The file of the key, if the key does not come in the environment.
    pub key: Option<PathBuf>,
    /// Its links to members of the same host are sockets.
    pub has_sockets: bool,
    /// Its links are not encrypted.
    pub is_plain: bool,
}

impl MemberWords {
    /// The arguments of `sapwood group`.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut words = match &self.address {
            Some(address) => vec!["join".to_string(), address.clone()],
            None => vec!["create".to_string()],
        };
        words.extend(["--names".to_string(), self.name.to_string()]);
        let key = self.key.as_ref().map(|path| path.display().to_string());
        let site = self.site.map(|site| site.to_string());
        for (option, value) in [("--site", site), ("--listen", self.listen.clone()), ("--key", key)]
        {
            words.extend(value.into_iter().flat_map(|value| [option.to_string(), value]));
        }
        for (option, is_given) in [("--sockets", self.has_sockets), ("--plain", self.is_plain)] {
            words.extend(is_given.then(|| option.to_string()));
        }
        words
    }
}

/// Some members, by the virtual node that each carries.
pub struct Fleet {
    members: Vec<MemberProcess>,
    /// The address of the first one.
    address: String,
    begun: Instant,
}

impl Fleet {
    /// Starts members with the virtual nodes 0 to `count` - 1, and waits until all know each
    /// other. `order` makes the order of one, which joins at the address; the first has none.
    ///
    /// # Errors
    /// [`Failure`] where a member does not start.
    pub fn start<'a>(
        count: u32,
        mut order: impl FnMut(Rank, Option<&str>) -> Result<Order<'a>, Failure>,
    ) -> Result<Self, Failure> {
        let begun = Instant::now();
        let mut fleet = Self { members: Vec::new(), address: String::new(), begun };
        for name in 0..count {
            let address = Some(fleet.address.as_str()).filter(|_| name > 0);
            let mut member = MemberProcess::start(name, order(name, address)?)?;
            // The first one is to be there before the others, which come at the same time.
            if name == 0 {
                let hello = member.read(Instant::now() + START_DEADLINE)?;
                fleet.address = hello["address"].as_str().unwrap_or_default().to_string();
                fleet.begun = Instant::now();
            }
            fleet.members.push(member);
        }
        let until = Instant::now() + START_DEADLINE;
        for member in fleet.members.iter_mut().skip(1) {
            member.read(until)?;
        }
        fleet.wait_for_all(START_DEADLINE)?;
        // All are there before a clock runs.
        for answer in fleet.ask(&Request::new(Act::Barrier), START_DEADLINE) {
            answer?;
        }
        Ok(fleet)
    }

    /// The address of the first member.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// When the first member was there, and the others were started.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// The members in the order of their virtual nodes.
    pub fn members_mut(&mut self) -> &mut [MemberProcess] {
        &mut self.members
    }

    /// Waits until each member knows as many as there are.
    ///
    /// # Errors
    /// [`Failure`] that names a member which does not.
    pub fn wait_for_all(&mut self, limit: Duration) -> Result<(), Failure> {
        let (until, count) = (Instant::now() + limit, self.members.len() as u64);
        self.members.iter_mut().try_for_each(|member| member.wait_for(count, until))
    }

    /// Has all do it; their answers in the order of their virtual nodes.
    pub fn ask(&mut self, request: &Request, limit: Duration) -> Vec<Result<Value, Failure>> {
        let until = Instant::now() + limit;
        let line = request.line();
        let members = &mut self.members;
        let written: Vec<_> = members.iter_mut().map(|member| member.write(&line)).collect();
        let answers = members.iter_mut().zip(written);
        answers.map(|(member, written)| written.and_then(|()| member.read(until))).collect()
    }

    /// The same, with an answer that names the error where a member gave none.
    pub(crate) fn answers(&mut self, request: &Request, limit: Duration) -> Vec<Value> {
        let answers = self.ask(request, limit).into_iter();
        let failed = |failure: Failure| json!({ "error": failure.to_string() });
        answers.map(|answer| answer.unwrap_or_else(failed)).collect()
    }

    /// Has them leave, and waits for their ends.
    ///
    /// # Errors
    /// [`Failure`] where a member does not end.
    pub fn end(mut self) -> Result<(), Failure> {
        let until = Instant::now() + START_DEADLINE;
        self.members.retain_mut(|member| !member.process.stdout_ended());
        for member in &mut self.members {
            member.leave()?;
        }
        self.members.iter_mut().try_for_each(|member| member.wait_for_end(until))
    }
}

/// One member's process.
pub struct MemberProcess {
    name: Rank,
    process: Process,
    output: Vec<u8>,
}

impl MemberProcess {
    /// Starts a member, which then says where it is.
    ///
    /// # Errors
    /// [`Failure`] where it cannot be started.
    pub fn start(name: Rank, mut order: Order<'_>) -> Result<Self, Failure> {
        (order.capture_stdout, order.pipe_stdin) = (true, true);
        let process = Local.start(&order).map_err(|error| Failure::own(&error))?;
        Ok(Self { name, process, output: Vec::new() })
    }

    /// The virtual node that it carries.
    #[must_use]
    pub fn name(&self) -> Rank {
        self.name
    }

    /// Has it do something.
    ///
    /// # Errors
    /// [`Failure`] where it has ended or does not answer.
    pub fn ask(&mut self, request: &Request, limit: Duration) -> Result<Value, Failure> {
        self.write(&request.line())?;
        self.read(Instant::now() + limit)
    }

    /// Has it leave.
    ///
    /// # Errors
    /// [`Failure`] where it has ended before.
    pub fn leave(&mut self) -> Result<(), Failure> {
        self.write("leave\n")
    }

    /// Waits for the end of one that leaves.
    ///
    /// # Errors
    /// [`Failure`] where it does not end.
    pub fn wait_for_end(&mut self, until: Instant) -> Result<(), Failure> {
        self.read(until)?;
        let left = until.saturating_duration_since(Instant::now());
        match self.process.wait(left) {
            Some(_) => Ok(()),
            None => Err(Failure::timeout(format!("member {} does not end", self.name))),
        }
    }

    fn write(&mut self, line: &str) -> Result<(), Failure> {
        let mut pipe = self.process.stdin();
        // A line is shorter than what a pipe takes at once.
        let written = pipe.as_mut().map(|pipe| pipe.write_all(line.as_bytes()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// The next line of its output.
    ///
    /// # Errors
    /// [`Failure`] where it has ended, or no line has come until then.
    pub fn read(&mut self, until: Instant) -> Result<Value, Failure> {
        loop {
            if let Some(end) = self.output.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.output.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| Failure::own(&format!("member {}: {error}", self.name)));
            }
            if self.process.stdout_ended() {
                return Err(self.ended());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::timeout(format!("member {} does not answer", self.name)));
            }
            if let Some(output) = self.process.stdout() {
                let time = Timespec::try_from(left).ok();
                let _ = poll(&mut [PollFd::from_borrowed_fd(output, PollFlags::IN)], time.as_ref());
            }
            let taken = self.process.take_stdout(&mut self.output);
            taken.map_err(|error| Failure::own(&error))?;
        }
    }

    /// Waits until it knows this number of members.
    fn wait_for(&mut self, count: u64, until: Instant) -> Result<(), Failure> {
        loop {
            self.write("members\n")?;
            let members = self.read(until)?;
            let known = members["members"].as_array().map_or(0, Vec::len) as u64;
            if known == count {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::timeout(format!(
                    "member {} knows {known} of {count} members",
                    self.name
                )));
            }
            // News is under way, which takes milliseconds.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn ended(&mut self) -> Failure {
        let _ = self.process.wait(Duration::from_secs(1));
        Failure::own(&format!("member {} has ended: {}", self.name, self.process.exit_report()))
    }
}

/// Whether a member's answer says that each round was right there.
#[must_use]
pub fn is_right(answer: &Value) -> bool {
    let is_zero = |name: &str| answer[name] == 0;
    is_zero("wrong") && is_zero("without_value") && is_zero("incomplete")
}

/// The median time of a round at the slowest member, in seconds.
pub(crate) fn slowest(answers: &[Value]) -> f64 {
    let median = |answer: &Value| answer["seconds"]["median"].as_f64().unwrap_or(0.0);
    answers.iter().map(median).fold(0.0, f64::max)
}
