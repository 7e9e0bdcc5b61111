//! Serves the page of a program that does not exist, for tests in a browser.
//!
//! `synthetic_page RANKS [--before N] [--rounds N] [--interval-ms N] [--stands-from N]
//! [--hostile N] [--bare 1] [--port N] [--write FILE] [--iterations N]`. Prints the address, then
//! each order that a browser gives, then the number of rounds that browsers have lost. `N` rounds
//! are there before the first browser comes; `--write` leaves these in a file as a run does, with a
//! number of iterations before each round, and serves nothing. It ends with its standard input.

#[path = "../tests/synthetic/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod synthetic;

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use sapwood_web::{Page, Program, listen_address};

use synthetic::Synthetic;

fn number(words: &[String], name: &str) -> Option<u64> {
    let at = words.iter().position(|word| word == name)?;
    Some(words.get(at + 1)?.parse().expect("a number"))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ranks = words.first().and_then(|word| word.parse().ok()).expect("a number of ranks");
    let interval_ms = number(&words, "--interval-ms").unwrap_or(1000);
    let program = Synthetic {
        stands_from: number(&words, "--stands-from"),
        hostile_events: number(&words, "--hostile").map_or(0, |events| events as u32),
        ..Synthetic::of(ranks)
    };
    let before = number(&words, "--before").unwrap_or(0);
    let is_bare = number(&words, "--bare").is_some();
    let round = |number: u64| {
        let mut record = program.round(number);
        if is_bare {
            record.rank_values.clear();
            record.histograms.clear();
            record.classifications.clear();
            record.tree.clear();
            record.stacks = None;
        }
        record
    };
    if let Some(at) = words.iter().position(|word| word == "--write") {
        let mut file = std::fs::File::create(&words[at + 1]).expect("a file that can be written");
        let iterations = number(&words, "--iterations").unwrap_or(0);
        for number in 0..before {
            for mark in number * iterations..(number + 1) * iterations {
                let mut record = program.iteration(mark);
                record.elapsed_s = round(number).elapsed_s;
                writeln!(file, "{}", record.line()).expect("room in it");
            }
            writeln!(file, "{}", round(number).line()).expect("room in it");
        }
        return;
    }
    let about = Program { command: format!("mpirun -np {ranks} synthetic"), is_replay: false };
    let order = |order: serde_json::Value| {
        println!("order {order}");
        if order.get("refuse").is_some() { Err("it was to be refused".to_owned()) } else { Ok(()) }
    };
    let listen =
        number(&words, "--port").map(|port| listen_address(&port.to_string()).expect("a port"));
    let mut page = Page::open(about, listen, Some(Box::new(order))).expect("a free port");
    println!("address {}", page.address());
    for number in 0..before {
        page.replay(round(number));
    }
    let (ended, end) = channel();
    std::thread::spawn(move || {
        let mut input = Vec::new();
        // An input that breaks has ended.
        let _ = std::io::stdin().read_to_end(&mut input);
        ended.send(()).expect("the main thread waits");
    });
    let last = number(&words, "--rounds").map(|rounds| before + rounds);
    for number in before.. {
        if last.is_some_and(|last| number >= last) {
            page.end("exit code 0");
            let _ = end.recv();
            break;
        }
        match end.recv_timeout(Duration::from_millis(interval_ms)) {
            Err(RecvTimeoutError::Timeout) => page.publish(round(number)),
            _ => {
                page.end("exit code 0");
                break;
            }
        }
    }
    println!("lost {}", page.close());
}
