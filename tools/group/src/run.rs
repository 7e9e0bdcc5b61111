//! `sapwood group run`: members on this host, which do one operation.
//!
//! Each member is a process of its own, as `sapwood group create` and `join` start one; this
//! process writes the operation to all of them and reads their answers.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood::{Key, Rank, TreeKind};
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::patience;
use sapwood_launch::{Local, Order, Process};
use serde_json::{Value, json};

use crate::request::{Act, ROUNDS_MAX, Request, bytes};

/// Most members that are started on one host.
const MEMBERS_MAX: u32 = 256;
/// How long a member may take to start, and to leave.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// Beyond the deadline of the operation itself.
const SLACK: Duration = Duration::from_secs(10);
/// Names the key to the members.
const KEY_VARIABLE: &str = "SAPWOOD_KEY";

/// What `sapwood group run` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many members to start.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4)]
    members: u32,
    /// The operation: barrier, broadcast, reduce, allreduce, gather, allgather, scatter,
    /// reduce-scatter or all-to-all.
    #[arg(default_value = "allreduce", value_parser = act)]
    operation: Act,
    /// By which tree: adaptive, flat, binomial, static, list, paper-latency or paper-bandwidth.
    #[arg(long, value_name = "NAME", default_value = "adaptive", value_parser = crate::tree)]
    tree: TreeKind,
    /// At which virtual node: members have 0 to N-1.
    #[arg(long, value_name = "NAME", default_value_t = 0)]
    root: Rank,
    /// The length of a value, such as 8, 64K or 4M.
    #[arg(long, value_name = "LENGTH", default_value = "8", value_parser = bytes)]
    bytes: usize,
    /// How many times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u64,
    /// How long a round may take; then the answer says who is missing.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = patience)]
    deadline: Duration,
    /// Over Unix sockets instead of TCP.
    #[arg(long)]
    unix: bool,
    /// Do not encrypt what goes over TCP.
    #[arg(long)]
    plain: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Starts the members, and has them do it.
///
/// # Errors
/// [`Failure`] where a member does not start or does not answer.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { members: count, root, .. } = *arguments;
    if !(1..=MEMBERS_MAX).contains(&count) {
        return Err(Failure::usage(format!("give 1 to {MEMBERS_MAX} members")));
    }
    if root >= count {
        return Err(Failure::usage(format!(
            "virtual node {root} is carried by no member: there are 0 to {}",
            count - 1
        )));
    }
    if !(1..=ROUNDS_MAX).contains(&arguments.rounds) {
        return Err(Failure::usage(format!("give 1 to {ROUNDS_MAX} rounds")));
    }
    let mut request = Request::new(arguments.operation);
    (request.root, request.tree, request.bytes) = (root, arguments.tree, arguments.bytes);
    (request.rounds, request.deadline) = (arguments.rounds, arguments.deadline);
    let mut members = start(arguments)?;
    let rounds = u32::try_from(arguments.rounds).unwrap_or(u32::MAX);
    let limit = arguments.deadline.saturating_mul(rounds).saturating_add(SLACK);
    // All are there before the clock runs.
    for answer in do_together(&mut members, &Request::new(Act::Barrier), START_DEADLINE) {
        answer?;
    }
    // The answers of the others count where one has ended.
    let answers = do_together(&mut members, &request, limit).into_iter();
    let answers: Vec<Value> =
        answers.map(|answer| answer.unwrap_or_else(|failure| failed(&failure))).collect();
    end(members)?;
    let is_right = answers.iter().all(is_right);
    if arguments.json {
        print(&format!(
            "{}\n",
            json!({ "members": count, "answers": answers, "right": is_right })
        ))?;
    } else {
        print(&summary(arguments, &answers))?;
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// One member's process.
struct MemberProcess {
    name: Rank,
    process: Process,
    output: Vec<u8>,
}

fn start(arguments: &Arguments) -> Result<Vec<MemberProcess>, Failure> {
    let own = |error: &dyn std::fmt::Display| Failure::own(&error.to_string());
    let program = std::env::current_exe().map_err(|error| own(&error))?;
    let key = Key::generate().map_err(|error| own(&error))?;
    let mut members: Vec<MemberProcess> = Vec::new();
    let mut address = String::new();
    for name in 0..arguments.members {
        let descriptor = key.to_descriptor().map_err(|error| own(&error))?;
        let mut order = Order::new(&program);
        let mut words: Vec<String> = vec!["group".into()];
        match name {
            0 => words.push("create".into()),
            _ => words.extend(["join".into(), address.clone()]),
        }
        words.extend(["--names".into(), name.to_string()]);
        if arguments.unix {
            words.extend(["--listen".into(), unix_address(name)]);
        }
        if arguments.plain {
            words.push("--plain".into());
        }
        order.arguments = words.into_iter().map(Into::into).collect();
        order.inherit = vec![(KEY_VARIABLE.to_string(), std::os::fd::AsFd::as_fd(&descriptor))];
        (order.capture_stdout, order.pipe_stdin) = (true, true);
        let process = Local.start(&order).map_err(|error| own(&error))?;
        let mut member = MemberProcess { name, process, output: Vec::new() };
        // The first one is to be there before the others, which come at the same time.
        if name == 0 {
            let hello = member.read(Instant::now() + START_DEADLINE)?;
            address = hello["address"].as_str().unwrap_or_default().to_string();
        }
        members.push(member);
    }
    let until = Instant::now() + START_DEADLINE;
    for member in members.iter_mut().skip(1) {
        member.read(until)?;
    }
    let all = u64::from(arguments.members);
    for member in &mut members {
        member.wait_for(all, until)?;
    }
    Ok(members)
}

fn unix_address(name: Rank) -> String {
    format!("unix:@sapwood-group-{}-{name}", std::process::id())
}

fn do_together(
    members: &mut [MemberProcess],
    request: &Request,
    limit: Duration,
) -> Vec<Result<Value, Failure>> {
    let until = Instant::now() + limit;
    let line = request.line();
    let written: Vec<_> = members.iter_mut().map(|member| member.write(&line)).collect();
    let answers = members.iter_mut().zip(written);
    answers.map(|(member, written)| written.and_then(|()| member.read(until))).collect()
}

/// What stands for the answer of a member that gave none.
fn failed(failure: &Failure) -> Value {
    json!({ "error": failure.to_string() })
}

fn end(mut members: Vec<MemberProcess>) -> Result<(), Failure> {
    let until = Instant::now() + START_DEADLINE;
    members.retain_mut(|member| !member.process.stdout_ended());
    for member in &mut members {
        member.write("leave\n")?;
    }
    for member in &mut members {
        member.read(until)?;
        let left = until.saturating_duration_since(Instant::now());
        if member.process.wait(left).is_none() {
            return Err(Failure::timeout(format!("member {} does not end", member.name)));
        }
    }
    Ok(())
}

impl MemberProcess {
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
    fn read(&mut self, until: Instant) -> Result<Value, Failure> {
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

    /// Waits until it knows all members.
    fn wait_for(&mut self, count: u64, until: Instant) -> Result<(), Failure> {
        loop {
            self.write("members\n")?;
            let members = self.read(until)?;
            let known = members["members"].as_array().map_or(0, Vec::len) as u64;
            if known >= count {
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

fn is_right(answer: &Value) -> bool {
    let is_zero = |name: &str| answer[name] == 0;
    is_zero("wrong") && is_zero("without_value") && is_zero("incomplete")
}

fn summary(arguments: &Arguments, answers: &[Value]) -> String {
    let Arguments { members, tree, root, bytes, rounds, .. } = arguments;
    let name = arguments.operation.name();
    let mut text = format!(
        "{name} of {bytes} bytes by tree '{tree}' at virtual node {root}, {members} members, \
         {rounds} rounds\n"
    );
    let median = |answer: &Value| answer["seconds"]["median"].as_f64().unwrap_or(0.0);
    let slowest = answers.iter().map(median).fold(0.0, f64::max);
    let asked = answers.get(*root as usize).unwrap_or(&Value::Null);
    text += &format!("time    {:.3} ms a round at the slowest member\n", slowest * 1e3);
    if let Some(value) = asked["value"].as_str() {
        text += &format!("value   {value} at virtual node {root}\n");
    }
    let contributors = asked["contributors"].as_str().unwrap_or_default();
    text += &format!("from    {contributors}\n");
    for (name, answer) in answers.iter().enumerate().filter(|entry| !is_right(entry.1)) {
        let missing = answer["missing"].to_string();
        let error = answer["error"].as_str().unwrap_or_default();
        text += &format!(
            "wrong   at member {name}: {} wrong, {} without a value, {} incomplete, missing \
             {missing} {error}\n",
            answer["wrong"], answer["without_value"], answer["incomplete"]
        );
    }
    if answers.iter().all(is_right) {
        text += "right   at every member\n";
    }
    text
}

fn act(text: &str) -> Result<Act, String> {
    match text.parse() {
        Ok(act) if Act::is_collective(act) => Ok(act),
        _ => Err(format!(
            "there is no operation '{text}' of all members; take {}",
            Act::collectives()
        )),
    }
}
