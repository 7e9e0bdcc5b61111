//! Asks the ranks of a program that another manager starts, such as `mpiexec`: `attach RANKS FILE`
//! writes a join file, waits for RANKS back-ends, and asks each to add its number to 100.
//!
//! `examples/attach/ranks.c` is such a program.

use std::process::ExitCode;
use std::time::Duration;

use sapwood::{Attach, Error, Hosts, Network, Shape, Tag, Topology};

const ADD: Tag = sapwood::FIRST_TAG;
const FAN_OUT: u32 = 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ranks, file] = arguments.as_slice() else {
        eprintln!("usage: attach RANKS FILE");
        return ExitCode::from(2);
    };
    match ranks
        .parse()
        .map_err(|_| "RANKS is a number".to_owned())
        .and_then(|ranks| front_end(ranks, file).map_err(|error| error.to_string()))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("attach: {error}");
            ExitCode::FAILURE
        }
    }
}

fn front_end(ranks: u32, file: &str) -> Result<(), Error> {
    // Processes between run on this machine; those that come may be anywhere.
    let tree = Topology::from_shape(&Shape::even(ranks, FAN_OUT)?, &Hosts::local());
    let network = Network::builder(tree).attach(Attach::new().join_file(file)).open()?;
    let mut sum = network.stream(&network.everyone()).up("sum").open()?;
    sum.broadcast(ADD, 100_i64)?;
    let answer = sum.recv_timeout(Duration::from_secs(30))?;
    println!("{} from ranks {}", answer.value()?.scalar::<i64>(0)?, answer.contributors);
    network.close()
}
