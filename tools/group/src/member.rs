//! One member: it says where it is, then reads operations from standard input, one a line, and
//! answers each with one line of JSON. What others send meanwhile is judged and counted.

use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood::{Error, Group, TreeKind};
use sapwood_command_line::exit::{Failure, print};
use sapwood_hosts::signals::Signals;
use serde_json::{Value, json};

use crate::operation::carry_out;
use crate::received::ReceivedValues;
use crate::request::{Act, Request};

/// Longest line of the input, in bytes.
const LINE_BYTES_MAX: usize = 4096;
/// How often values that have come are taken, where nothing else happens.
const LOOK: Duration = Duration::from_millis(200);
/// How long `received` waits for values that are under way, after the last one.
const QUIET: Duration = Duration::from_millis(300);

/// Serves until `leave`, the end of the input, or a signal.
pub(crate) fn serve(group: Group, stays: bool) -> Result<ExitCode, Failure> {
    let mut signals = Signals::take_over().map_err(|error| Failure::own(&error))?;
    let names = group.names().to_string();
    say(&json!({ "address": group.address(), "names": names, "space": group.space() }))?;
    let mut member =
        Member { group, received: ReceivedValues::default(), published: 0, heir: None };
    let mut input = Lines::default();
    loop {
        match input.next(&signals, stays, || member.take_values())? {
            Some(Line::Whole(line)) if line.trim().is_empty() => {}
            Some(Line::Whole(line)) => {
                let is_over = member.handle(&line, &mut signals)?;
                if is_over {
                    break;
                }
            }
            Some(Line::TooLong) => {
                let error = format!("the line is longer than {LINE_BYTES_MAX} bytes");
                say(&json!({ "error": error }))?;
            }
            None => break,
        }
    }
    match member.heir {
        Some(heir) => member.group.leave_to(heir)?,
        None => member.group.leave()?,
    }
    Ok(ExitCode::SUCCESS)
}

struct Member {
    group: Group,
    received: ReceivedValues,
    published: u64,
    /// A virtual node of the member that gets those of this one when it leaves.
    heir: Option<u32>,
}

impl Member {
    /// Carries out a line; whether it was the last.
    fn handle(&mut self, line: &str, signals: &mut Signals) -> Result<bool, Failure> {
        let request: Request = match line.parse() {
            Ok(request) => request,
            Err(error) => {
                say(&json!({ "error": error }))?;
                return Ok(false);
            }
        };
        match request.act {
            Act::Leave => {
                self.heir = request.to;
                say(&json!({ "operation": "leave" }))?;
                return Ok(true);
            }
            Act::Members => say(&self.members())?,
            Act::Track => {
                let tracked = self.group.track(request.tree, request.root);
                let error = tracked.err().map(|error| error.to_string());
                say(&json!({ "operation": "track", "error": error }))?;
            }
            Act::Received => {
                while self.take_values_for(QUIET) > 0 {}
                say(&self.received.to_json(self.group.lost()))?;
            }
            _ => return self.operate(&request, signals),
        }
        Ok(false)
    }

    /// Carries out an operation; whether a signal has asked for the end meanwhile.
    fn operate(&mut self, request: &Request, signals: &mut Signals) -> Result<bool, Failure> {
        let is_to_end = || !signals.take().is_empty();
        match carry_out(&self.group, request, &mut self.published, is_to_end) {
            Ok(Some(outcome)) => say(&outcome.to_json(request)).map(|()| false),
            Ok(None) => Ok(true),
            Err(error) => {
                say(&json!({ "operation": request.name, "error": error.to_string() }))?;
                // A call that is wrong is the caller's matter; a member that is out is at its end.
                match error {
                    Error::Group(
                        sapwood::GroupFailure::Ended | sapwood::GroupFailure::Refused(_),
                    ) => Err(error.into()),
                    _ => Ok(false),
                }
            }
        }
    }

    fn take_values(&mut self) {
        self.take_values_for(Duration::ZERO);
    }

    /// Takes what has come, and waits for more as long as that; gives how much it was.
    fn take_values_for(&mut self, time: Duration) -> usize {
        let mut count = 0;
        while let Ok(delivery) = self.group.receive(time) {
            self.received.take(&delivery);
            count += 1;
        }
        count
    }

    fn members(&self) -> Value {
        let members: Vec<Value> = self
            .group
            .members()
            .iter()
            .map(|member| {
                let names = member.names.to_string();
                json!({ "names": names, "address": member.address, "cluster": member.cluster })
            })
            .collect();
        let notices = self.group.notices();
        let status = self.group.status(TreeKind::default(), None, 1);
        let probes = status.ok().map(|status| status.probes);
        json!({
            "operation": "members",
            "everyone": self.group.everyone().to_string(),
            "members": members,
            "notices": notices,
            "probes": probes,
        })
    }
}

/// A line of the input.
enum Line {
    Whole(String),
    /// What it says is not kept.
    TooLong,
}

/// The lines of standard input.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    has_ended: bool,
    /// The line under way is too long: what comes of it is dropped.
    is_too_long: bool,
}

impl Lines {
    /// The next line; none at the end of the input, or where a signal asks for the end.
    fn next(
        &mut self,
        signals: &Signals,
        stays: bool,
        mut meanwhile: impl FnMut(),
    ) -> Result<Option<Line>, Failure> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.has_ended && !stays {
                return Ok(None);
            }
            meanwhile();
            if self.wait(signals)? {
                return Ok(None);
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n');
        if end.unwrap_or(self.bytes.len()) > LINE_BYTES_MAX {
            self.is_too_long = true;
        }
        let Some(end) = end else {
            if self.is_too_long {
                self.bytes.clear();
            }
            return None;
        };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        if std::mem::take(&mut self.is_too_long) {
            return Some(Line::TooLong);
        }
        Some(Line::Whole(String::from_utf8_lossy(&line).trim_end().to_string()))
    }

    /// Waits for input, for a signal (true) or a while.
    fn wait(&mut self, signals: &Signals) -> Result<bool, Failure> {
        let input = std::io::stdin();
        let descriptors: Vec<_> = signals.descriptors().collect();
        let mut waited: Vec<PollFd<'_>> =
            descriptors.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
        let count = waited.len();
        if !self.has_ended {
            waited.push(PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN));
        }
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        // An interrupted wait is looked at like one that has found nothing.
        let _ = poll(&mut waited, Some(&time));
        let is_ready = |entry: &PollFd<'_>| !entry.revents().is_empty();
        if waited[..count].iter().any(is_ready) {
            return Ok(true);
        }
        if waited[count..].iter().any(is_ready) {
            // Not through the library's buffer, in which lines would lie that no wait tells of.
            let mut buffer = [0; 4096];
            let read = rustix::io::read(&input, &mut buffer);
            let read = read.map_err(|error| Failure::own(&error))?;
            self.has_ended = read == 0;
            self.bytes.extend_from_slice(&buffer[..read]);
        }
        Ok(false)
    }
}

fn say(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str]) -> Vec<Option<String>> {
        let mut input = Lines::default();
        let mut lines = Vec::new();
        for piece in pieces {
            input.bytes.extend_from_slice(piece.as_bytes());
            while let Some(line) = input.take_line() {
                lines.push(match line {
                    Line::Whole(text) => Some(text),
                    Line::TooLong => None,
                });
            }
        }
        lines
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_ends_nothing() {
        let whole = |text: &str| Some(text.to_string());
        let long = "x".repeat(LINE_BYTES_MAX);
        assert_eq!(lines(&["a\nb", "c\r\n"]), [whole("a"), whole("bc")]);
        assert_eq!(lines(&[&long, "\nb\n"]), [whole(&long), whole("b")]);
        assert_eq!(lines(&["x", &long, "\nb\n"]), [None, whole("b")]);
        assert_eq!(lines(&["x", &long, &long, "y\nb\n"]), [None, whole("b")]);
    }
}
