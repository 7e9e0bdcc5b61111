//! A member of the storming group from outside: its process, the lines to it and from it.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use sapwood::{KEY_VARIABLE, Rank, RankSet};
use sapwood_command_line::exit::Failure;
use sapwood_launch::{Exit, Local, Order, Process, Signal};
use serde_json::Value;

use super::member::arguments;
use super::oracle::Reported;
use super::value::{Digest, Given, Part};

/// How far a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It was started, and is to have joined by then.
    Joining {
        until: Duration,
    },
    Joined,
    /// It is stopped until then.
    Stopped {
        until: Duration,
    },
    /// It was told to leave, and is to have ended by then.
    Leaving {
        until: Duration,
    },
    Killed,
}

/// A line of a member's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Joined {
        address: String,
    },
    Refused {
        why: String,
    },
    Met,
    Answered {
        number: u64,
        answer: Reported,
    },
    /// What was sent to it with this number has come once more.
    Again {
        number: u64,
    },
    /// It was told to break links, and has broken this number.
    Broken {
        links: u64,
    },
}

/// One member.
pub(super) struct StormedMember {
    pub name: Rank,
    pub stage: Stage,
    /// Where it listens, once it has joined.
    pub address: String,
    /// Why it could not join.
    pub refused: Option<String>,
    process: Process,
    /// What it has written of the next line.
    output: Vec<u8>,
    /// What is to be written to it.
    input: Vec<u8>,
}

impl StormedMember {
    /// Starts this program as a member that creates the group, or joins it at an address.
    ///
    /// # Errors
    /// [`Failure`] where it cannot be started.
    pub(super) fn start(
        program: &Path,
        key: &OwnedFd,
        (name, address): (Rank, Option<&str>),
        until: Duration,
    ) -> Result<Self, Failure> {
        let mut order = Order::new(program);
        order.arguments = arguments(name, address);
        order.inherit = vec![(KEY_VARIABLE.to_string(), key.as_fd())];
        (order.capture_stdout, order.pipe_stdin, order.inherit_stderr) = (true, true, true);
        let process = Local.start(&order).map_err(|error| Failure::own(&error))?;
        let (output, input) = (Vec::new(), Vec::new());
        let (address, refused, stage) = (String::new(), None, Stage::Joining { until });
        Ok(Self { name, stage, address, refused, process, output, input })
    }

    /// Whether it is asked to take part in operations.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.stage, Stage::Joined | Stage::Stopped { .. })
    }

    /// Writes a line to it, as far as it takes any now.
    pub(super) fn tell(&mut self, line: &str) {
        self.input.extend_from_slice(line.as_bytes());
        self.flush();
    }

    /// Writes what it has not taken yet.
    pub(super) fn flush(&mut self) {
        let Some(mut pipe) = self.process.stdin() else { return };
        while !self.input.is_empty() {
            match pipe.write(&self.input) {
                Ok(count) if count > 0 => _ = self.input.drain(..count),
                // It is full, or the member has ended, which is seen elsewhere.
                _ => return,
            }
        }
    }

    /// The lines that it has written; answers have the time since the storm's begin.
    ///
    /// # Errors
    /// [`Failure`] for a line that no member writes.
    pub(super) fn take(&mut self, began: Instant) -> Result<Vec<Told>, Failure> {
        let mut told = Vec::new();
        while self.process.take_stdout(&mut self.output).map_err(|error| Failure::own(&error))? > 0
        {
        }
        // Later than the answers that it stands for, never earlier.
        let now = began.elapsed();
        while let Some(end) = self.output.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.output.drain(..=end).collect();
            let read =
                serde_json::from_slice(&line).ok().and_then(|line: Value| Told::read(&line, now));
            told.push(read.ok_or_else(|| {
                let line = String::from_utf8_lossy(&line);
                Failure::own(&format!("member {} has written '{}'", self.name, line.trim()))
            })?);
        }
        Ok(told)
    }

    /// Its output, until that has ended.
    pub(super) fn output(&self) -> Option<BorrowedFd<'_>> {
        self.process.stdout().filter(|_| !self.process.stdout_ended())
    }

    /// How it ended, if it has, and all of its output was read.
    pub(super) fn ended(&mut self) -> Option<Exit> {
        if self.process.stdout_ended() { self.process.try_wait() } else { None }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// [`Failure`] where the system does not let it.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), Failure> {
        self.process.kill(signal).map_err(|error| Failure::own(&error))
    }
}

impl Told {
    fn read(line: &Value, now: Duration) -> Option<Self> {
        let text = |name: &str| line[name].as_str().map(String::from);
        if let Some(number) = line["answered"].as_u64() {
            return Some(Self::Answered { number, answer: reported(line, now)? });
        }
        if let Some(address) = text("joined") {
            return Some(Self::Joined { address });
        }
        if let Some(why) = text("refused") {
            return Some(Self::Refused { why });
        }
        if let Some(number) = line["again"].as_u64() {
            return Some(Self::Again { number });
        }
        if let Some(links) = line["broken"].as_u64() {
            return Some(Self::Broken { links });
        }
        text("met").map(|_| Self::Met)
    }
}

fn reported(line: &Value, at: Duration) -> Option<Reported> {
    let set = |value: &Value| -> Option<RankSet> { value.as_str()?.parse().ok() };
    if let Some(error) = line["error"].as_str() {
        return Some(Reported {
            at,
            took: Duration::ZERO,
            known: RankSet::new(),
            names: RankSet::new(),
            contributors: RankSet::new(),
            missing: Vec::new(),
            value: None,
            error: Some(error.to_string()),
        });
    }
    let part = |part: &Value| Some((set(&part["names"])?, part["reason"].as_str()?.to_string()));
    Some(Reported {
        at,
        took: Duration::from_micros(line["took_us"].as_u64()?),
        known: set(&line["known"])?,
        names: set(&line["names"])?,
        contributors: set(&line["contributors"])?,
        missing: line["missing"].as_array()?.iter().map(part).collect::<Option<_>>()?,
        value: given(line)?,
        error: None,
    })
}

/// The value of an answer, where it has one; nothing for what is none.
fn given(line: &Value) -> Option<Option<Given>> {
    if let Some(parts) = line["parts"].as_array() {
        let part = |part: &Value| {
            let name = Rank::try_from(part["name"].as_u64()?).ok()?;
            Some(Part { name, digest: Digest::read(&part["value"])? })
        };
        let parts: Option<Vec<Part>> = parts.iter().map(part).collect();
        return Some(Some(Given::Parts(parts?)));
    }
    match &line["value"] {
        Value::Null => Some(None),
        value => Some(Some(Given::Whole(Digest::read(value)?))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_members_lines_are_read_and_others_are_not() {
        let now = Duration::from_secs(3);
        let line = json!({
            "answered": 7, "known": "0-2", "names": "2", "took_us": 1500, "contributors": "0,2",
            "missing": [{ "names": "1", "reason": "the member has left" }],
            "value": { "bytes": 8, "digest": u64::MAX },
        });
        let Some(Told::Answered { number: 7, answer }) = Told::read(&line, now) else {
            panic!("{line} was not read");
        };
        assert_eq!((answer.at, answer.took), (now, Duration::from_micros(1500)));
        assert_eq!(answer.missing[0].0.to_string(), "1");
        let digest = Digest { bytes: 8, mixed: u64::MAX };
        assert_eq!(answer.value, Some(Given::Whole(digest)));
        let parts = json!([{ "name": 2, "value": { "bytes": 8, "digest": u64::MAX } }]);
        let parts = given(&json!({ "parts": parts }));
        assert_eq!(parts, Some(Some(Given::Parts(vec![Part { name: 2, digest }]))));
        assert_eq!(given(&json!({ "parts": [{ "name": 2 }] })), None);
        assert_eq!(given(&json!({ "parts": null })), Some(None));
        let told =
            [json!({ "again": 4 }), json!({ "broken": 2 })].map(|line| Told::read(&line, now));
        assert_eq!(told, [Some(Told::Again { number: 4 }), Some(Told::Broken { links: 2 })]);
        let refused = Told::Refused { why: "taken".to_string() };
        assert_eq!(Told::read(&json!({ "refused": "taken" }), now), Some(refused));
        assert_eq!(Told::read(&json!({ "answered": 7, "known": "0-2" }), now), None);
        assert_eq!(Told::read(&json!({ "address": "tcp:" }), now), None);
    }
}
