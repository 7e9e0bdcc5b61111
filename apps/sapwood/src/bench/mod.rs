//! `sapwood bench`: the tree beside its floor.

use std::process::ExitCode;
use std::time::Instant;

use sapwood::{BackEnd, Error, Network, Program, Tag, Topology, Values};

use crate::exit::Failure;

/// The hidden argument with which this program is a back-end of the benchmarks.
pub(crate) const BACK_END: &str = "bench-back-end";

const ECHO: Tag = 100;
const STREAM: Tag = 101;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value = "4x4")]
    topology: sapwood::Shape,
    #[arg(long, default_value_t = 64)]
    bytes: usize,
    #[arg(long, default_value_t = 2000)]
    rounds: usize,
    #[arg(long, default_value_t = 200_000)]
    waves: u64,
    #[arg(long)]
    tcp: bool,
    #[arg(long)]
    plain: bool,
    #[arg(long)]
    pin: bool,
}

pub(crate) fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    loop {
        let received = match back_end.recv() {
            Ok(received) => received,
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        let values = received.values();
        let length = values.scalar::<u64>(0).map_err(Error::from)? as usize;
        let waves = values.scalar::<u64>(1).map_err(Error::from)?;
        let payload = vec![1.0_f64; length];
        for _ in 0..waves {
            back_end.send(received.stream, received.tag(), &payload[..])?;
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let _pin = arguments.pin.then(|| sapwood_floor::process::Pinned::first_allowed());
    let topology = Topology::from_shape(&arguments.topology, &sapwood::Hosts::local());
    let program =
        Program::new(std::env::current_exe().map_err(|e| Failure::own(&e))?).argument(BACK_END);
    let begin = Instant::now();
    let mut builder = Network::builder(topology).back_end(program);
    if arguments.tcp {
        builder = builder.transport(sapwood::TransportKind::Tcp);
    }
    if arguments.plain {
        builder = builder.encryption(false);
    }
    let mut network = builder.open()?;
    println!("start-up {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("sum").open()?;
    let length = (arguments.bytes / 8) as u64;
    let mut samples = Vec::new();
    for _ in 0..arguments.rounds {
        let begin = Instant::now();
        stream.broadcast(ECHO, Values::new().scalar(length).scalar(1_u64))?;
        let answer = stream.recv()?;
        samples.push(begin.elapsed().as_secs_f64() * 1e6);
        assert_eq!(
            answer.value()?.array::<f64>(0).map_err(Error::from)?[0],
            everyone.size() as f64
        );
    }
    samples.sort_by(f64::total_cmp);
    println!("round trip min {:.1} median {:.1} us", samples[0], samples[samples.len() / 2]);
    let begin = Instant::now();
    stream.broadcast(STREAM, Values::new().scalar(length).scalar(arguments.waves))?;
    for _ in 0..arguments.waves {
        let answer = stream.recv()?;
        assert!(answer.is_complete());
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("pipelined {:.0} waves/s", arguments.waves as f64 / seconds);
    drop(stream);
    network.close()?;
    Ok(ExitCode::SUCCESS)
}
