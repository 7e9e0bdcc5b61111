//! Integer addition: the front-end sends a number to every back-end, each adds its rank, and the
//! tree brings back one sum. README.md shows the two functions.
//!
//! Run without arguments it is the front-end; the tree runs the same program with `back-end`.

use std::process::ExitCode;
use std::time::Duration;

use sapwood::{BackEnd, Error, Network, Program, Tag};

const ADD: Tag = sapwood::FIRST_TAG;

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("back-end") => back_end(),
        _ => front_end(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("add: {error}");
            ExitCode::FAILURE
        }
    }
}

fn front_end() -> Result<(), Error> {
    let own = std::env::current_exe().expect("a program knows its own file");
    let network = Network::open("4^2".parse()?, Program::new(own).argument("back-end"))?;
    let mut sum = network.stream(&network.everyone()).up("sum").open()?;

    sum.broadcast(ADD, 100_i64)?; // down the tree, to every back-end
    let answer = sum.recv_timeout(Duration::from_secs(10))?; // up the tree: one wave, one packet
    println!("{} from ranks {}", answer.value()?.scalar::<i64>(0)?, answer.contributors);
    for missing in &answer.missing {
        println!("without ranks {}: {}", missing.ranks, missing.reason);
    }
    network.close()
}

fn back_end() -> Result<(), Error> {
    let mut back_end = BackEnd::attach()?; // finds its parent through its environment
    loop {
        match back_end.recv() {
            Ok(request) => {
                let number = request.values().scalar::<i64>(0)? + i64::from(back_end.rank());
                back_end.send(request.stream, request.tag(), number)?;
            }
            Err(Error::Ended { .. }) => return Ok(()), // the front-end has closed the network
            Err(error) => return Err(error),
        }
    }
}
