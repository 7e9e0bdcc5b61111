//! The messages to a launch agent over its standard input, and its answers over its standard
//! output.
//!
//! The launch agent receives one frame, and then single bytes:
//!
//! ```text
//! "SAPWOOD1"  8 bytes
//! length      4 bytes, little-endian, at most 16 MiB
//! task        postcard
//! 'j'         the process has joined: from now on the end of this stream is no reason to end it
//! ```
//!
//! The launch agent writes one line, after the output of log-in scripts:
//!
//! ```text
//! sapwood-launch-agent 1 HOST-NAME PROCESS-NUMBER NANOSECONDS-SINCE-1970 own|foreign|unknown
//! ```

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sapwood_transport::KEY_BYTES;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::LaunchError;

/// What the frame begins with.
pub(crate) const TASK_MARK: &[u8; 8] = b"SAPWOOD1";

/// The longest task, in bytes: room for the longest arguments that a system takes.
pub(crate) const TASK_BYTES_MAX: usize = 16 << 20;

/// The byte that says that the process has joined.
pub(crate) const JOINED: u8 = b'j';

/// What a launch agent's line begins with.
const GREETING: &str = "sapwood-launch-agent 1 ";

/// The process that a launch agent is to start, and how long it may go on without a front-end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The program; none for the one that the launch agent itself is.
    pub program: Option<PathBuf>,
    /// Its arguments, without its own name.
    pub arguments: Vec<String>,
    /// Variables to set on top of the environment of a log-in there.
    pub environment: Vec<(String, String)>,
    /// The network's key, which the process is handed in a memory file, and the variable that says
    /// where.
    pub secret: Option<(String, [u8; KEY_BYTES])>,
    /// Where to run it, if there is such a folder there.
    pub directory: Option<PathBuf>,
    /// Where the front-end takes connections.
    pub front_end: Vec<String>,
    /// How long processes go on without a reachable front-end, in milliseconds.
    pub patience_milliseconds: u32,
}

impl Task {
    /// The frame.
    pub(crate) fn to_frame(&self) -> Zeroizing<Vec<u8>> {
        let body = Zeroizing::new(
            postcard::to_allocvec(self).expect("a task holds only numbers, texts and lists"),
        );
        let mut frame = Zeroizing::new(Vec::with_capacity(12 + body.len()));
        frame.extend_from_slice(TASK_MARK);
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&body);
        frame
    }

    /// The task, once the frame is whole, and how many bytes that took.
    pub(crate) fn from_frame(bytes: &[u8]) -> Result<Option<(Self, usize)>, LaunchError> {
        let damaged =
            || LaunchError::ApiMisuse { rule: "a launch agent is given its task by a parent" };
        // A wrong mark is refused at its first wrong byte, before any length is believed.
        let marked = bytes.len().min(TASK_MARK.len());
        if bytes[..marked] != TASK_MARK[..marked] {
            return Err(damaged());
        }
        let Some(length) = bytes.get(8..12) else { return Ok(None) };
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        // Checked before the body is waited for, so that no more than this is ever held.
        if length > TASK_BYTES_MAX {
            return Err(damaged());
        }
        let Some(body) = bytes.get(12..12 + length) else { return Ok(None) };
        let task = postcard::from_bytes(body).map_err(|_| damaged())?;
        Ok(Some((task, 12 + length)))
    }
}

/// What a launch agent says of itself and its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The name that its host gives itself.
    pub host: String,
    /// Its process number there.
    pub pid: u32,
    /// The host's wall clock at that moment, since 1970.
    pub clock: Duration,
    /// Whether the name under which the host was reached is one of its own; none if it does not
    /// know that name.
    pub is_own_name: Option<bool>,
}

impl Greeting {
    /// What this process says, reached under the name `asked`. May ask the resolver.
    pub(crate) fn of_this_process(asked: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let is_own_name = match is_name_of(asked, &host) {
            true => Some(true),
            false => crate::is_local(asked).ok(),
        };
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { host, pid: std::process::id(), clock, is_own_name }
    }

    pub(crate) fn to_line(&self) -> String {
        let Self { host, pid, clock, is_own_name } = self;
        let own = match is_own_name {
            Some(true) => "own",
            Some(false) => "foreign",
            None => "unknown",
        };
        format!("{GREETING}{host} {pid} {} {own}\n", clock.as_nanos())
    }

    /// Reads a line; nothing if it is another one, such as a log-in script's.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(GREETING)?.split(' ');
        let host = words.next()?.to_owned();
        let pid = words.next()?.parse().ok()?;
        let clock = Duration::from_nanos(words.next()?.parse().ok()?);
        let is_own_name = match words.next()? {
            "own" => Some(true),
            "foreign" => Some(false),
            "unknown" => None,
            _ => return None,
        };
        Some(Self { host, pid, clock, is_own_name })
    }

    /// Why this host must not be taken for the one that was asked for: it calls itself as another
    /// host of the same subtree is called, and would run everything twice. `others` are the names
    /// of these.
    ///
    /// A host's own name may differ from the one that it is reached by: names for a second network,
    /// and those of an ssh configuration, are not known there.
    pub fn contradiction<'a>(
        &self,
        asked: &str,
        mut others: impl Iterator<Item = &'a str>,
    ) -> Option<String> {
        if is_name_of(asked, &self.host) {
            return None;
        }
        let is_other =
            others.any(|other| !is_name_of(asked, other) && is_name_of(other, &self.host));
        is_other.then(|| {
            let own = &self.host;
            format!(
                "the machine that answers to '{asked}' calls itself '{own}', which is among the \
                 hosts, too"
            )
        })
    }

    /// What the user may want to know of a host that knows the name that was asked for as that of
    /// an address that it does not have: it may be another one. Behind address translation, and
    /// with addresses that move, it is the right one, and the remote shell has reached it.
    pub fn doubt(&self, asked: &str) -> Option<String> {
        let is_doubtful = self.is_own_name == Some(false) && !is_name_of(asked, &self.host);
        is_doubtful.then(|| {
            format!("the machine that answers calls itself '{}', and is taken as it is", self.host)
        })
    }
}

/// Whether two names mean one host: they are equal, or one is the other with its domain.
pub(crate) fn is_name_of(asked: &str, own: &str) -> bool {
    let [asked, own] = [asked, own].map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    let is_longer = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|domain| domain.starts_with('.'))
    };
    asked == own || is_longer(&asked, &own) || is_longer(&own, &asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(host: &str, is_own_name: Option<bool>) -> Greeting {
        Greeting { host: host.into(), pid: 7, clock: Duration::from_nanos(1_234), is_own_name }
    }

    #[test]
    fn a_task_arrives_as_it_was_sent_and_only_whole() {
        let task = Task {
            arguments: vec!["node".into()],
            secret: Some(("KEY".into(), [7; KEY_BYTES])),
            front_end: vec!["tcp:10.0.0.1:7".into()],
            ..Task::default()
        };
        let frame = task.to_frame();
        for length in 0..frame.len() {
            assert_eq!(Task::from_frame(&frame[..length]).unwrap(), None);
        }
        let mut longer = frame.to_vec();
        longer.push(JOINED);
        assert_eq!(Task::from_frame(&longer).unwrap(), Some((task, frame.len())));
        for damaged in
            [&b"SAPWOOD2"[..], b"x", b"SAPWOOD1\xff\xff\xff\xff", b"SAPWOOD1\x01\0\0\0\xff"]
        {
            assert!(Task::from_frame(damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn a_greeting_is_found_among_other_lines() {
        let said = greeting("node07", None);
        assert_eq!(Greeting::from_line(said.to_line().trim_end()), Some(said));
        for noise in [
            "",
            "Welcome to node07!",
            "sapwood-launch-agent 1 x",
            "sapwood-launch-agent 1 a 1 2 maybe",
        ] {
            assert_eq!(Greeting::from_line(noise), None, "{noise}");
        }
    }

    #[test]
    fn a_wrong_machine_is_told_from_one_with_another_name() {
        let others = || ["node05", "node06"].into_iter();
        let wrong = |host: &str, own| greeting(host, own).contradiction("node05", others());
        assert_eq!(wrong("node05", Some(true)), None);
        assert_eq!(wrong("NODE05.cluster.example", None), None);
        // The name of a second network, and one of an ssh configuration.
        assert_eq!(wrong("big-host", Some(true)), None);
        assert_eq!(wrong("big-host", None), None);
        let text = wrong("node06", Some(true)).unwrap();
        assert!(text.starts_with("the machine that answers to 'node05' calls itself 'node06'"));
        assert_eq!(wrong("big-host", Some(false)), None);
        let doubt = |host: &str, own| greeting(host, own).doubt("node05");
        assert!(doubt("big-host", Some(false)).is_some_and(|text| text.contains("'big-host'")));
        assert_eq!(doubt("node05", Some(false)), None, "its own table is wrong");
        assert_eq!((doubt("big-host", Some(true)), doubt("big-host", None)), (None, None));
    }
}
