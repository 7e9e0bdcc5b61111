//! `sapwood bench filter`: what a call of a filter costs, by the kind of filter.
//!
//! Each kind sums the same wave, of three children with 128 doubles each. A shared object and a
//! direct call run the very same function: the difference is what the node's side of the call
//! costs. All kinds take turns, so that a difference is that of neighbours in time; what is counted
//! is CPU time of the calling thread, since others may have the machine meanwhile. A callable in
//! Python is called, as by a communication process, within an interpreter that takes turns with us.

use std::ffi::OsString;
use std::path::PathBuf;

use sapwood::WaveRef;
use sapwood::{Emitter, Filter, FilterError, FilterFile, Packet, RankSet, Registry, ValuesRef};
use sapwood_extension::{DirectCall, with_extensions};
use sapwood_floor::process::own_cpu_nanoseconds;
use sapwood_floor::statistics::{Spread, ratio};

use super::asker::{Program, median_of};
use super::bindings::{python, turns_of};
use super::facts::{Bar, Facts, look};
use super::tree::own_program;
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-filter/1";

/// What a call of a shared object may cost over a direct one, in nanoseconds.
const OVERHEAD: Bar = Bar::Most(100.0);

const CHILDREN: u32 = 3;
const ELEMENTS: usize = 128;
const ROUNDS_MAX: usize = 1001;
const CALLS_MAX: u32 = 1_000_000;

/// The filters in C, as a shared object.
const SHARED_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsums.so"));
/// The same, in WebAssembly.
const MODULE: &[u8] = include_bytes!("../../../crates/extension/filters/sums.wasm");

/// What `sapwood bench filter` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of turns of each kind of filter.
    #[arg(long, default_value_t = 201, value_name = "N")]
    rounds: usize,
    /// Calls in one turn; a tenth of it for WebAssembly and Python.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    calls: u32,
    /// A Python with the package 'sapwood', as for `sapwood bench bindings`.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// One kind of filter, and what it took per call in each round, in nanoseconds.
struct Kind {
    key: &'static str,
    label: &'static str,
    place: Place,
    calls: u32,
    took: Vec<f64>,
}

/// Where a filter is called.
enum Place {
    Here(Box<dyn Filter>),
    /// In another process, or nowhere, for that reason.
    There(Result<Program, String>),
}

/// Measures all kinds.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let (rounds, calls) = (arguments.rounds, arguments.calls);
    if !(1..=ROUNDS_MAX).contains(&rounds) {
        let text = format!("--rounds {rounds}: give a number from 1 to {ROUNDS_MAX}");
        return Err(Failure::usage(text));
    }
    if !(1..=CALLS_MAX).contains(&calls) {
        let text = format!("--calls {calls}: give a number from 1 to {CALLS_MAX}");
        return Err(Failure::usage(text));
    }
    let packets: Vec<Packet> = (0..CHILDREN).map(packet_of).collect();
    let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, CHILDREN - 1);
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &lent,
        contributors: contributors.as_ref(),
        rank: CHILDREN,
        is_root: true,
        children: CHILDREN,
        back_ends: CHILDREN,
    };
    let file = FilterFile::new("libsums.so", SHARED_OBJECT.to_vec()).map_err(own)?;
    let mut direct = DirectCall::new(&file, "sum3").map_err(own)?;
    let mut kinds = kinds(&file, calls)?;
    kinds.push(Kind {
        key: "python",
        label: "Python",
        place: Place::There(called_in_python(arguments)),
        calls: (calls / 10).max(1),
        took: Vec::new(),
    });
    let mut direct_took = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let begin = own_cpu_nanoseconds();
        direct.repeat(&wave, calls).map_err(own)?;
        let took = (own_cpu_nanoseconds() - begin) as f64 / f64::from(calls);
        // The first round is for the caches.
        if round > 0 {
            direct_took.push(took);
        }
        for kind in &mut kinds {
            let took = turn(kind, &wave).map_err(own)?;
            if let Some(took) = took.filter(|_| round > 0) {
                kind.took.push(took);
            }
        }
    }
    Ok(report(arguments, &direct_took, &kinds))
}

fn kinds(file: &FilterFile, calls: u32) -> Result<Vec<Kind>, Failure> {
    let registry = with_extensions(Registry::built_in());
    let module = FilterFile::new("sums.wasm", MODULE.to_vec()).map_err(own)?;
    let mut kinds = Vec::new();
    for (key, label, name, calls) in [
        ("built_in", "built in", String::from("sum"), calls),
        ("native", "shared object", file.filter_name("sum3"), calls),
        ("wasm", "WebAssembly", module.filter_name("sum3"), (calls / 10).max(1)),
    ] {
        for file in [file, &module] {
            registry.take_file(&file.shipped()).map_err(own)?;
        }
        let filter = registry.make(&name, ValuesRef::default()).map_err(own)?;
        kinds.push(Kind { key, label, place: Place::Here(filter), calls, took: Vec::new() });
    }
    Ok(kinds)
}

/// An interpreter that calls a filter in Python with the same wave.
fn called_in_python(arguments: &Arguments) -> Result<Program, String> {
    let own = own_program().map_err(|failure| failure.to_string())?;
    let python = python(arguments.python.as_deref(), &own)?;
    let words: Vec<OsString> =
        vec!["filter".into(), CHILDREN.to_string().into(), ELEMENTS.to_string().into()];
    Program::start(&turns_of(python, words, Vec::new())).map_err(|failure| failure.to_string())
}

/// Nanoseconds per call, in one turn of a kind; nothing of one that cannot be called.
fn turn(kind: &mut Kind, wave: &WaveRef<'_>) -> Result<Option<f64>, FilterError> {
    let filter = match &mut kind.place {
        Place::Here(filter) => filter,
        Place::There(place) => {
            let Ok(program) = place else { return Ok(None) };
            let took = median_of(program, kind.calls);
            return Ok(match took {
                Ok(took) => Some(took),
                Err(failure) => {
                    *place = Err(failure.to_string());
                    kind.took.clear();
                    None
                }
            });
        }
    };
    let mut emitter = Emitter::new();
    let begin = own_cpu_nanoseconds();
    for _ in 0..kind.calls {
        emitter.clear();
        filter.transform(wave, &mut emitter)?;
    }
    let took = (own_cpu_nanoseconds() - begin) as f64 / f64::from(kind.calls);
    let sum = emitter.emissions().next().map(|(_, values)| values.array::<f64>(0).map(<[_]>::len));
    match sum {
        Some(Ok(ELEMENTS)) => Ok(Some(took)),
        _ => Err(FilterError::Failed(format!("the sum of '{}' is none", kind.label))),
    }
}

fn packet_of(child: u32) -> Packet {
    let numbers: Vec<f64> = (0..ELEMENTS).map(|index| index as f64 + f64::from(child)).collect();
    Packet::new(1, 100, numbers)
}

fn report(arguments: &Arguments, direct: &[f64], kinds: &[Kind]) -> Facts {
    let title = format!(
        "A call of a filter: the sum of {ELEMENTS} doubles from each of {CHILDREN} children.\n\
         {} rounds of {} calls in turn",
        direct.len(),
        arguments.calls
    );
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("children", CHILDREN);
    facts.setting("elements", ELEMENTS as u64);
    facts.setting("calls", arguments.calls);
    facts.setting("clock", "CPU time of the calling thread");
    facts.heading("per call");
    if let Some(spread) = Spread::of(direct) {
        facts.spread("ns.direct", look("direct call of the C function", "ns", 0), &spread, None);
    }
    for Kind { key, label, place, took, .. } in kinds {
        if let Place::There(Err(why)) = place {
            facts.missing(key, label, why);
        } else if let Some(spread) = Spread::of(took) {
            facts.spread(&format!("ns.{key}"), look(label, "ns", 0), &spread, None);
        }
    }
    facts.heading("beyond the direct call");
    for Kind { key, label, took, .. } in kinds {
        let pairs = took.iter().zip(direct);
        let more: Vec<f64> = pairs.map(|(took, direct)| took - direct).collect();
        let bar = (*key == "native").then_some(OVERHEAD);
        if let Some(spread) = Spread::of(&more) {
            facts.spread(&format!("over_direct_ns.{key}"), look(label, "ns", 0), &spread, bar);
        }
    }
    facts.heading("ratio to the direct call");
    for Kind { key, label, took, .. } in kinds {
        if let Some(spread) = ratio(took, direct) {
            facts.spread(&format!("ratio.{key}"), look(label, "", 2), &spread, None);
        }
    }
    facts
}

fn own(error: impl std::fmt::Display) -> Failure {
    Failure::own(&error.to_string())
}
