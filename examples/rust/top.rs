//! Which of all hosts have the most? `top TOPOLOGY K COMMAND` runs a command on every back-end and
//! prints the K largest of the numbers with which its lines begin.
//!
//! The tree finds the numbers and the ranks that have them: it carries K numbers per link, however
//! many lines there are. Then only those back-ends are asked for the lines. `{rank}` in COMMAND
//! stands for the back-end's rank, so that one machine can play many.
//!
//! ```text
//! top 2x2 2 'ps -eo rss=,comm='
//! 2: 2084312 lmp
//! 0-1: 914220 rustc
//! ```

use std::process::{Command, ExitCode};
use std::time::Duration;

use sapwood::{BackEnd, Network, Program, Tag, TopK, WaveRule};

const NUMBERS: Tag = sapwood::FIRST_TAG;
const LINE: Tag = NUMBERS + 1;
const DEADLINE: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["back-end", command] => back_end(command),
        [topology, k, command] => match k.parse() {
            Ok(k) => front_end(topology, k, command),
            Err(_) => Err(format!("'{k}' is no number of lines").into()),
        },
        _ => Err("usage: top TOPOLOGY K COMMAND".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("top: {error}");
            ExitCode::FAILURE
        }
    }
}

fn front_end(topology: &str, k: u32, command: &str) -> Result<()> {
    let program = Program::new(std::env::current_exe()?).argument("back-end").argument(command);
    let network = Network::open(topology.parse()?, program)?;
    let everyone = network.everyone();
    let mut numbers = network.stream(&everyone).up(("top", k)).open()?;
    let mut lines = network.stream(&everyone).wave(WaveRule::Immediate).open()?;

    numbers.broadcast(NUMBERS, ())?;
    let answer = numbers.recv_timeout(DEADLINE)?;
    for entry in TopK::from_values(answer.value()?)?.entries() {
        let number = entry.number.to_f64();
        let holder = entry.ranks.as_ref().first().expect("a number has a sender");
        lines.send_to(holder, LINE, number)?;
        let line = lines.recv_timeout(DEADLINE)?;
        println!("{}: {}", entry.ranks, line.value()?.string(0)?);
    }
    for missing in &answer.missing {
        println!("no answer from {}: {}", missing.ranks, missing.reason);
    }
    Ok(network.close()?)
}

fn back_end(command: &str) -> Result<()> {
    let mut back_end = BackEnd::attach()?;
    let command = command.replace("{rank}", &back_end.rank().to_string());
    let mut lines = Vec::new();
    loop {
        let request = match back_end.recv() {
            Ok(request) => request,
            Err(sapwood::Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if request.tag() == LINE {
            let number = request.values().scalar::<f64>(0)?;
            let line = lines.iter().find(|(first, _)| *first == number);
            let line = line.map_or("", |(_, line): &(f64, String)| line);
            back_end.send(request.stream, LINE, line)?;
            continue;
        }
        lines = numbered_lines(&command)?;
        let numbers: Vec<f64> = lines.iter().map(|(number, _)| *number).collect();
        back_end.send(request.stream, NUMBERS, numbers)?;
    }
}

/// The lines of a command's output that begin with a number, with it.
fn numbered_lines(command: &str) -> Result<Vec<(f64, String)>> {
    let output = Command::new("sh").args(["-c", command]).output()?;
    let output = String::from_utf8_lossy(&output.stdout);
    let lines = output.lines().filter_map(|line| {
        let number = line.split_whitespace().next()?.parse().ok()?;
        Some((number, line.trim().to_string()))
    });
    Ok(lines.collect())
}
