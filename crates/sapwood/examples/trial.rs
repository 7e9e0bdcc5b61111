//! The program that the tests run as back-ends and as front-ends in processes of their own.
//!
//! `trial node` is a communication process. `trial back-end MODE...` and `trial front-end SHAPE
//! MODE BACK-END-MODE`; the modes are below.
//! `trial resumable SHAPE unix|tcp STATE-FILE MILLISECONDS` is a front-end that may be replaced,
//! and `trial resume STATE-FILE` (or `resume-and-wait`) the one that comes in its place.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{
    BackEnd, Error, Event, Network, Program, RankSet, Received, Recovery, Result, Tag, Topology,
    TransportKind, Values, ValuesRef,
};

#[path = "../tests/support/samples.rs"]
mod samples;
#[path = "../tests/support/sleeper.rs"]
mod sleeper;
#[path = "../tests/support/tags.rs"]
mod tags;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["back-end", ref mode @ ..] => back_end(mode),
        ["front-end", shape, mode, back_end] => front_end(shape, mode, back_end),
        ["resumable", shape, transport, path, wait] => resumable(shape, transport, path, wait),
        ["node"] => node(),
        ["resume", path] => resume(path).and_then(Network::close),
        ["resume-and-wait", path] => resume_and_wait(path),
        _ => {
            eprintln!("usage: trial back-end MODE... | trial front-end SHAPE MODE BACK-END-MODE");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trial: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A communication process, with the filters that every process has, and one that never returns.
fn node() -> Result<()> {
    Ok(sapwood::serve(sleeper::filters())?)
}

fn back_end(mode: &[&str]) -> Result<()> {
    match *mode {
        ["serve"] => serve(BackEnd::attach()?),
        ["reply"] => reply(BackEnd::attach()?),
        ["file", path] => serve(BackEnd::attach_by_file(Path::new(path), None)?),
        ["file", path, rank] => {
            serve(BackEnd::attach_by_file(Path::new(path), Some(rank.parse().unwrap_or(0)))?)
        }
        ["fail"] => {
            eprintln!("the sensor is on fire");
            std::process::exit(3);
        }
        ["fail", rank] if std::env::var("SAPWOOD_RANK").as_deref() == Ok(rank) => {
            back_end(&["fail"])
        }
        ["silent"] => sleep_for_ever(),
        ["silent", rank] if std::env::var("SAPWOOD_RANK").as_deref() == Ok(rank) => {
            sleep_for_ever()
        }
        ["fail" | "silent", _] => serve(BackEnd::attach()?),
        ["sleep"] => {
            let _back_end = BackEnd::attach()?;
            sleep_for_ever()
        }
        ["spin"] => {
            let _back_end = BackEnd::attach()?;
            spin()
        }
        _ => {
            eprintln!("unknown mode {mode:?}");
            std::process::exit(2);
        }
    }
}

/// Answers each request by name until the network ends, as its tag says.
fn reply(mut back_end: BackEnd) -> Result<()> {
    let rank = back_end.rank();
    loop {
        let request = match back_end.recv() {
            Ok(request) => request,
            Err(Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let (stream, tag, values) = (request.stream, request.tag(), request.values());
        let is_meant = is_named(tag, values, rank)?;
        match tag {
            tags::SLEEP if is_meant => {
                std::thread::sleep(Duration::from_millis(u64::from(values.scalar::<u32>(1)?)));
            }
            tags::HUSH if is_meant => continue,
            tags::UNASKED if is_meant => back_end.send(stream, tag, -1_i64)?,
            tags::FLOOD => {
                for _ in 0..values.scalar::<u32>(0)? {
                    back_end.send(stream, tag, vec![0_u8; values.scalar::<u32>(1)? as usize])?;
                }
                continue;
            }
            _ => {}
        }
        match tag {
            tags::ECHO => back_end.reply(&request, values.to_values())?,
            _ => back_end.reply(&request, i64::from(rank))?,
        };
        match tag {
            tags::UNASKED if is_meant => back_end.send(stream, tag, -2_i64)?,
            tags::TWICE => {
                let refused = back_end.reply(&request, 1_i64).unwrap_err().to_string();
                back_end.send(stream, tag, refused)?;
            }
            _ => {}
        }
    }
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Does what the tags say until the network ends.
fn serve(mut back_end: BackEnd) -> Result<()> {
    loop {
        let request = match back_end.recv() {
            Ok(request) => request,
            Err(Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if request.tag() == tags::LEAVE && is_named(tags::LEAVE, request.values(), back_end.rank())?
        {
            return back_end.leave();
        }
        match answer(&mut back_end, &request) {
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn answer(back_end: &mut BackEnd, request: &Received) -> Result<()> {
    let (stream, tag, values) = (request.stream, request.tag(), request.values());
    let rank = back_end.rank();
    let is_meant = is_named(tag, values, rank)?;
    match tag {
        tags::ECHO => return back_end.send(stream, tag, values.to_values()),
        tags::TYPED => return back_end.send(stream, tag, typed(values.scalar(0)?, rank)),
        tags::TEXT => return back_end.send(stream, tag, format!("rank {rank}")),
        tags::DIE if is_meant => std::process::exit(7),
        tags::SLEEP if is_meant => {
            std::thread::sleep(Duration::from_millis(u64::from(values.scalar::<u32>(1)?)));
        }
        tags::SPIN if is_meant => spin(),
        tags::HUSH if is_meant => return Ok(()),
        tags::MIX if is_meant => return back_end.send(stream, tag, "not a number"),
        tags::FLOOD => {
            let (count, bytes) = (values.scalar::<u32>(0)?, values.scalar::<u32>(1)?);
            let load = vec![rank as u8; bytes as usize];
            for _ in 0..count {
                back_end.send(stream, tag, &load[..])?;
            }
            return back_end.flush();
        }
        tags::ADD_RANK => {
            let mut sum = values.array::<f64>(0)?.to_vec();
            for element in &mut sum {
                *element += f64::from(rank);
            }
            return back_end.send(stream, tag, sum);
        }
        tags::SAMPLE => return back_end.send(stream, tag, samples::of(values.string(0)?, rank)),
        tags::LENGTH => return back_end.send(stream, tag, values.body().len() as u64),
        tags::SEND_ON => {
            let text = match back_end.send(values.scalar(0)?, tag, 1_i32) {
                Ok(()) => "sent".to_owned(),
                Err(error) => error.to_string(),
            };
            return back_end.send(stream, tag, text);
        }
        _ => {}
    }
    back_end.send(stream, tag, i64::from(rank))
}

/// Whether a request that names ranks names this one.
fn is_named(tag: Tag, values: ValuesRef<'_>, rank: u32) -> Result<bool> {
    match tag {
        tags::DIE
        | tags::SLEEP
        | tags::SPIN
        | tags::HUSH
        | tags::MIX
        | tags::LEAVE
        | tags::UNASKED => Ok(values.array::<u32>(0)?.contains(&rank)),
        _ => Ok(false),
    }
}

fn typed(code: u32, rank: u32) -> Values {
    macro_rules! of {
        ($type:ty) => {{
            let number = (rank + 1) as $type;
            Values::new().scalar(number).array(&[number; 3])
        }};
    }
    match code {
        0 => of!(i8),
        1 => of!(u8),
        2 => of!(i16),
        3 => of!(u16),
        4 => of!(i32),
        5 => of!(u32),
        6 => of!(i64),
        7 => of!(u64),
        8 => of!(f32),
        _ => of!(f64),
    }
}

/// A front-end that says "ready" once it has had an answer, and then ends in a way of its own.
fn front_end(shape: &str, mode: &str, back_end: &str) -> Result<()> {
    let own = std::env::current_exe().expect("a running program has a path");
    let program = Program::new(own).argument("back-end").argument(back_end);
    let topology = Topology::from_shape(&shape.parse()?, &sapwood::Hosts::local());
    let mut network = Network::builder(topology).back_end(program).open()?;
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("count").open()?;
    stream.broadcast(tags::RANK, ())?;
    if back_end == "serve" {
        assert_eq!(stream.recv()?.contributors, RankSet::range(0, everyone.size() as u32 - 1));
    }
    network.flush()?;
    println!("ready");
    std::io::stdout().flush().expect("standard output is read");
    match mode {
        "exit" => std::process::exit(0),
        "panic" => panic!("as was asked"),
        "abort" => std::process::abort(),
        "sleep" => sleep_for_ever(),
        "close" => network.close(),
        _ => loop {
            network.turn(Duration::from_secs(3600))?;
        },
    }
}

/// A front-end that waits to be killed.
fn resumable(shape: &str, transport: &str, path: &str, wait: &str) -> Result<()> {
    let own = std::env::current_exe().expect("a running program has a path");
    let program = Program::new(own).argument("back-end").argument("serve");
    let topology = Topology::from_shape(&shape.parse()?, &sapwood::Hosts::local());
    let recovery = Recovery {
        front_end_wait: Duration::from_millis(wait.parse().expect("a number")),
        orphan_limit: Duration::from_millis(500),
        grace: Duration::from_millis(500),
        ..Recovery::default()
    };
    let transport = if transport == "tcp" { TransportKind::Tcp } else { TransportKind::Unix };
    let mut network = Network::builder(topology)
        .back_end(program)
        .transport(transport)
        .recovery(recovery)
        .resumable(path)
        .dynamic_members()
        .open()?;
    let key = format!("{path}-key");
    network.write_attach_file(Path::new(&format!("{path}-attach")), Path::new(&key))?;
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("count").open()?;
    stream.broadcast(tags::RANK, ())?;
    assert!(stream.recv()?.is_complete());
    // Its successor must not take these for its own.
    stream.broadcast(tags::RANK, ())?;
    network.flush()?;
    println!("ready");
    loop {
        std::io::stdout().flush().expect("standard output is read");
        network.turn(Duration::from_secs(3600))?;
        while let Some(event) = network.next_event() {
            match event {
                Event::Joined { .. } => println!("joined"),
                Event::Offered { .. } => println!("offered"),
                _ => {}
            }
        }
    }
}

/// A front-end in the place of another: says how many have answered, and by which sum.
fn resume(path: &str) -> Result<Network> {
    let network = Network::resume(Path::new(path), Duration::from_secs(30))?;
    let everyone = network.everyone();
    for _ in 0..3 {
        let mut stream = network.stream(&everyone).up("sum").open()?;
        for _ in 0..5 {
            stream.broadcast(tags::RANK, ())?;
            let answer = stream.recv()?;
            assert!(answer.is_complete(), "{:?}", answer.missing);
            let sum = answer.value()?.scalar::<i64>(0)?;
            println!("{} {sum}", answer.contributors.len());
        }
    }
    Ok(network)
}

fn resume_and_wait(path: &str) -> Result<()> {
    let mut network = resume(path)?;
    loop {
        network.turn(Duration::from_secs(3600))?;
    }
}
