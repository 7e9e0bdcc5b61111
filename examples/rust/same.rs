//! Which hosts differ, and in what? `same TOPOLOGY FILE` compares a file of all back-ends.
//!
//! Each back-end sends a checksum of its file, the tree sorts the back-ends into classes of equal
//! ones, and the front-end fetches the whole file from one representative of each class: a file
//! that a thousand hosts share crosses the tree once. `{rank}` in FILE stands for the back-end's
//! rank, so that one machine can play many.
//!
//! ```text
//! same 2x2 '/etc/hosts'
//! 4 back-ends (0-3): 174 bytes, 9 lines
//! ```

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{BackEnd, EquivalenceClasses, Network, Program, Tag};

const CHECKSUM: Tag = sapwood::FIRST_TAG;
const CONTENT: Tag = CHECKSUM + 1;
const DEADLINE: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["back-end", file] => back_end(file),
        [topology, file] => front_end(topology, file),
        _ => Err("usage: same TOPOLOGY FILE, for example: same 2x2 /etc/hosts".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("same: {error}");
            ExitCode::FAILURE
        }
    }
}

fn front_end(topology: &str, file: &str) -> Result<()> {
    let program = Program::new(std::env::current_exe()?).argument("back-end").argument(file);
    let network = Network::open(topology.parse()?, program)?;
    let everyone = network.everyone();
    let mut checksums = network.stream(&everyone).up("equivalence").open()?;
    let mut contents = network.stream(&everyone).wave(sapwood::WaveRule::Immediate).open()?;

    checksums.broadcast(CHECKSUM, ())?;
    let answer = checksums.recv_timeout(DEADLINE)?;
    for missing in &answer.missing {
        println!("no answer from {}: {}", missing.ranks, missing.reason);
    }
    for class in EquivalenceClasses::read(answer.value()?)?.classes() {
        let who = format!("{} back-ends ({})", class.ranks.len(), class.ranks);
        let reason = class.values.as_ref().string(1)?;
        if !reason.is_empty() {
            println!("{who}: {reason}");
            continue;
        }
        let representative = class.ranks.as_ref().first().expect("a class has a member");
        contents.send_to(representative, CONTENT, ())?;
        let content = contents.recv_timeout(DEADLINE)?;
        let content = content.value()?.array::<u8>(0)?.to_vec();
        let lines = content.iter().filter(|byte| **byte == b'\n').count();
        println!("{who}: {} bytes, {lines} lines", content.len());
        if class.ranks.len() < answer.contributors.len() {
            print!("{}", String::from_utf8_lossy(&content));
        }
    }
    Ok(network.close()?)
}

fn back_end(file: &str) -> Result<()> {
    let mut back_end = BackEnd::attach()?;
    let file = file.replace("{rank}", &back_end.rank().to_string());
    loop {
        let request = match back_end.recv() {
            Ok(request) => request,
            Err(sapwood::Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let content = std::fs::read(&file);
        if request.tag() == CONTENT {
            back_end.send(request.stream, CONTENT, content.unwrap_or_default())?;
            continue;
        }
        // Those that cannot read it form classes of their own, by what hinders them.
        let (checksum, reason) = match &content {
            Ok(bytes) => (checksum_of(bytes), String::new()),
            Err(error) => (0, error.to_string()),
        };
        back_end.send(request.stream, CHECKSUM, (checksum, reason))?;
    }
}

/// Equal files have equal checksums; that others differ is likely, not certain.
fn checksum_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
