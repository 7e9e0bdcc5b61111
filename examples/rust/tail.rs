//! What do the logs of all hosts say? `tail TOPOLOGY FILE [SECONDS]` follows a file on every
//! back-end and prints each line once, with the ranks that wrote it.
//!
//! Ten times a second the front-end asks for what is new. Equal lines of one turn are folded on
//! their way up, so that a message that a thousand hosts log at once is one line. `{rank}` in FILE
//! stands for the back-end's rank, so that one machine can play many. It follows until it is
//! interrupted, or for SECONDS.
//!
//! ```text
//! tail 2x2 'job.{rank}.log' 5
//! 0-3: connected
//! 2: retrying
//! ```

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{BackEnd, Network, PrefixTree, Program, Tag};

const LINES: Tag = sapwood::FIRST_TAG;
const LINES_MAX: u32 = 1 << 16;
/// Most bytes that one back-end reads in one turn; the rest comes in the next.
const READ_BYTES_MAX: u64 = 1 << 20;
const TURN: Duration = Duration::from_millis(100);
const DEADLINE: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["back-end", file] => back_end(file),
        [topology, file] => front_end(topology, file, None),
        [topology, file, seconds] => match seconds.parse() {
            Ok(seconds) => front_end(topology, file, Some(Duration::from_secs(seconds))),
            Err(_) => Err(format!("'{seconds}' is no number of seconds").into()),
        },
        _ => Err("usage: tail TOPOLOGY FILE [SECONDS]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tail: {error}");
            ExitCode::FAILURE
        }
    }
}

fn front_end(topology: &str, file: &str, time: Option<Duration>) -> Result<()> {
    let program = Program::new(std::env::current_exe()?).argument("back-end").argument(file);
    let network = Network::open(topology.parse()?, program)?;
    let mut lines = network.stream(&network.everyone()).up(("prefix-tree", LINES_MAX)).open()?;
    let began = Instant::now();
    let mut told = Vec::new();

    while time.is_none_or(|time| began.elapsed() < time) {
        lines.broadcast(LINES, ())?;
        let answer = lines.recv_timeout(DEADLINE)?;
        for line in PrefixTree::from_values(answer.value()?)?.nodes() {
            println!("{}: {}", line.ranks, String::from_utf8_lossy(line.name));
        }
        // Missing ranks are named once, not ten times a second.
        if answer.missing != told {
            for missing in &answer.missing {
                eprintln!("tail: no answer from {}: {}", missing.ranks, missing.reason);
            }
            told = answer.missing;
        }
        std::thread::sleep(TURN);
    }
    Ok(network.close()?)
}

fn back_end(file: &str) -> Result<()> {
    let mut back_end = BackEnd::attach()?;
    let rank = back_end.rank();
    let mut followed = Followed::new(file.replace("{rank}", &rank.to_string()));
    loop {
        let request = match back_end.recv() {
            Ok(request) => request,
            Err(sapwood::Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut tree = PrefixTree::new(LINES_MAX)?;
        for line in followed.new_lines() {
            tree.add([line], rank);
        }
        back_end.send(request.stream, LINES, tree)?;
    }
}

/// A file that others append to, and how far it has been read.
struct Followed {
    path: String,
    read: u64,
    /// The beginning of a line whose end has not been written yet.
    unfinished: String,
}

impl Followed {
    fn new(path: String) -> Self {
        Self { path, read: 0, unfinished: String::new() }
    }

    /// The lines that are complete since the last time. A file that is not there has none yet; one
    /// that became shorter begins anew.
    fn new_lines(&mut self) -> Vec<String> {
        let Ok(mut file) = File::open(&self.path) else { return Vec::new() };
        if file.metadata().is_ok_and(|now| now.len() < self.read) {
            self.read = 0;
            self.unfinished.clear();
        }
        let mut bytes = Vec::new();
        let is_read = file.seek(SeekFrom::Start(self.read)).is_ok()
            && file.take(READ_BYTES_MAX).read_to_end(&mut bytes).is_ok();
        if !is_read {
            return Vec::new();
        }
        self.read += bytes.len() as u64;
        let text = std::mem::take(&mut self.unfinished) + &String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> = text.split('\n').map(String::from).collect();
        self.unfinished = lines.pop().unwrap_or_default();
        lines
    }
}
