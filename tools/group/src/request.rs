//! One line of a member's input: a word for what to do, then `NAME=VALUE` for how.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use sapwood::{Rank, TreeKind};
use sapwood_command_line::times::patience;

/// What a member can be asked: an operation of the same name, if no more is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Barrier,
    Broadcast,
    Reduce,
    Allreduce,
    Gather,
    Allgather,
    Scatter,
    ReduceScatter,
    AllToAll,
    Publish,
    Send,
    /// Begins to probe for the tree of the paper's rules from a virtual node.
    Track,
    /// The members as this one knows them.
    Members,
    /// What has come by `publish` and `send`.
    Received,
    Leave,
}

/// All of them by name.
const ACTS: [(&str, Act); 15] = [
    ("barrier", Act::Barrier),
    ("broadcast", Act::Broadcast),
    ("reduce", Act::Reduce),
    ("allreduce", Act::Allreduce),
    ("gather", Act::Gather),
    ("allgather", Act::Allgather),
    ("scatter", Act::Scatter),
    ("reduce-scatter", Act::ReduceScatter),
    ("all-to-all", Act::AllToAll),
    ("publish", Act::Publish),
    ("send", Act::Send),
    ("track", Act::Track),
    ("members", Act::Members),
    ("received", Act::Received),
    ("leave", Act::Leave),
];

/// Most rounds of one request.
pub(crate) const ROUNDS_MAX: u64 = 10_000_000;
/// Longest value of one request, in bytes.
const BYTES_MAX: usize = 1 << 30;

/// The type of the numbers in a reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    I64,
    F64,
}

/// A line that was read.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub act: Act,
    /// Its name on a line.
    pub name: &'static str,
    /// From or to which virtual node.
    pub root: Rank,
    /// The virtual node that was named as `to`.
    pub to: Option<Rank>,
    /// By which tree.
    pub tree: TreeKind,
    /// The length of a value.
    pub bytes: usize,
    /// The number of the first round.
    pub number: Option<u64>,
    /// How many times.
    pub rounds: u64,
    /// How long a round may take.
    pub deadline: Duration,
    /// The type of the numbers.
    pub kind: Kind,
    /// Members begin each round up to this much later than at once.
    pub skew: Duration,
    /// Members other than the root leave each reduction early.
    pub has_bypass: bool,
    /// The first round begins at this time of the clock `CLOCK_MONOTONIC`, in nanoseconds, and each
    /// further one `every` after the one before; at once where that has passed.
    pub at: u64,
    /// The time from one round's begin to the next one's.
    pub every: Duration,
    /// The answer has the times of each round: begin and end by that clock.
    pub has_moments: bool,
    /// A barrier comes before each round, outside of its time: no member is still at work on the
    /// round before.
    pub is_apart: bool,
    /// Sent instead of made-up bytes.
    pub text: Option<String>,
}

impl FromStr for Act {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = ACTS.iter().find(|entry| entry.0 == word);
        found.map(|entry| entry.1).ok_or_else(|| {
            let names: Vec<&str> = ACTS.iter().map(|entry| entry.0).collect();
            format!("there is no operation '{word}'; take {}", names.join(", "))
        })
    }
}

impl Act {
    /// Its name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        ACTS.iter().find(|entry| entry.1 == self).map_or("", |entry| entry.0)
    }

    /// The names of those that all members call together.
    pub(crate) fn collectives() -> String {
        let names = ACTS.iter().filter(|entry| entry.1.is_collective()).map(|entry| entry.0);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Whether all members call it together.
    pub(crate) fn is_collective(self) -> bool {
        !matches!(
            self,
            Self::Publish | Self::Send | Self::Track | Self::Members | Self::Received | Self::Leave
        )
    }
}

impl FromStr for Request {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let act: Act = words.next().unwrap_or_default().parse()?;
        let mut request = Self::new(act);
        // A text is the rest of the line.
        let (settings, text) = match line.split_once(" text=") {
            Some((settings, text)) => (settings, Some(text.to_string())),
            None => (line, None),
        };
        request.text = text;
        for word in settings.split_whitespace().skip(1) {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("'{word}' is not NAME=VALUE"))?;
            request.set(name, value)?;
        }
        if request.is_apart && request.number.is_some() {
            return Err("with apart=yes calls are counted: leave number out".to_string());
        }
        Ok(request)
    }
}

impl Request {
    /// One round with 8 bytes by the default tree from virtual node 0.
    #[must_use]
    pub fn new(act: Act) -> Self {
        Self {
            act,
            name: act.name(),
            root: 0,
            to: None,
            tree: TreeKind::default(),
            bytes: 8,
            number: None,
            rounds: 1,
            deadline: Duration::from_secs(30),
            kind: Kind::default(),
            skew: Duration::ZERO,
            has_bypass: false,
            at: 0,
            every: Duration::ZERO,
            has_moments: false,
            is_apart: false,
            text: None,
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|_| format!("'{value}' is no number"));
        match name {
            "root" | "to" => {
                self.root = value.parse().map_err(|_| format!("'{value}' is no virtual node"))?;
                if name == "to" {
                    self.to = Some(self.root);
                }
            }
            "tree" => self.tree = crate::tree(value)?,
            "bytes" => self.bytes = bytes(value)?,
            "number" => self.number = Some(number()?),
            "rounds" => {
                self.rounds = number()?;
                if !(1..=ROUNDS_MAX).contains(&self.rounds) {
                    return Err(format!("give 1 to {ROUNDS_MAX} rounds"));
                }
            }
            "deadline" => self.deadline = patience(value)?,
            "skew" => self.skew = patience(value)?,
            "at" => self.at = number()?,
            "every" => self.every = patience(value)?,
            "moments" => self.has_moments = yes_or_no(name, value)?,
            "apart" => self.is_apart = yes_or_no(name, value)?,
            "bypass" => self.has_bypass = yes_or_no(name, value)?,
            "type" => {
                self.kind = match value {
                    "i64" => Kind::I64,
                    "f64" => Kind::F64,
                    other => return Err(format!("there is no type '{other}'; take i64 or f64")),
                }
            }
            other => {
                return Err(format!(
                    "there is no setting '{other}'; take root, to, tree, bytes, number, rounds, \
                     deadline, skew, at, every, moments, apart, bypass, type or text"
                ));
            }
        }
        Ok(())
    }

    /// As a line.
    pub(crate) fn line(&self) -> String {
        let Self { name, root, tree, bytes, rounds, .. } = self;
        let deadline = self.deadline.as_millis();
        let mut line = format!(
            "{name} root={root} tree={tree} bytes={bytes} rounds={rounds} deadline={deadline}ms"
        );
        if !self.skew.is_zero() {
            let _ = write!(line, " skew={}", self.skew.as_secs_f64());
        }
        if self.has_bypass {
            line += " bypass=yes";
        }
        if self.at > 0 {
            let _ = write!(line, " at={} every={}", self.at, self.every.as_secs_f64());
        }
        if self.has_moments {
            line += " moments=yes";
        }
        if self.is_apart {
            line += " apart=yes";
        }
        line + "\n"
    }
}

fn yes_or_no(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("{name} is yes or no, not '{other}'")),
    }
}

/// A length in bytes, with `K`, `M` or `G` for powers of 1024.
///
/// # Errors
/// What is wrong with the text.
pub fn bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number: usize =
        number.parse().map_err(|_| format!("'{text}' is no length; write 8, 64K or 4M"))?;
    let bytes = number.saturating_mul(unit);
    if bytes > BYTES_MAX {
        return Err(format!("{bytes} bytes, where at most {BYTES_MAX} are allowed"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_what_is_wrong_with_it_is_said() {
        let line = "reduce root=3 tree=list bytes=4K rounds=7 number=9 deadline=2s type=f64";
        let request: Request = line.parse().unwrap();
        assert_eq!((request.act, request.root, request.tree), (Act::Reduce, 3, TreeKind::List));
        assert_eq!((request.bytes, request.rounds, request.number), (4096, 7, Some(9)));
        assert_eq!((request.kind, request.deadline), (Kind::F64, Duration::from_secs(2)));
        let text: Request = "send to=2 text=two  words=x".parse().unwrap();
        assert_eq!(text.text.as_deref(), Some("two  words=x"));
        for (line, word) in [
            ("fold", "barrier"),
            ("reduce tree=oak", "adaptive"),
            ("reduce bytes=9T", "9T"),
            ("reduce bytes=2G", "1073741824"),
            ("reduce rounds=0", "rounds"),
            ("reduce root", "NAME=VALUE"),
            ("reduce colour=red", "colour"),
            ("reduce apart=yes number=3", "number"),
        ] {
            let error = line.parse::<Request>().unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn a_request_survives_its_line() {
        let mut request = Request::new(Act::AllToAll);
        (request.bytes, request.rounds, request.root) = (3, 5, 2);
        (request.at, request.every) = (7, Duration::from_micros(1500));
        (request.has_moments, request.is_apart) = (true, true);
        let again: Request = request.line().parse().unwrap();
        assert_eq!((again.act, again.bytes, again.rounds), (Act::AllToAll, 3, 5));
        assert_eq!((again.at, again.every), (7, request.every));
        assert!(again.has_moments && again.is_apart && !again.has_bypass);
    }
}
