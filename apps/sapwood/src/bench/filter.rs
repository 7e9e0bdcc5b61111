//! `sapwood bench filter`: what a call of a filter costs, by the kind of filter.
//!
//! Each kind sums the same wave, of three children with 128 doubles each. A shared object and a
//! direct call run the very same function: the difference is what the node's side of the call
//! costs. All kinds take turns, so that a difference is that of neighbours in time.

use std::time::Instant;

use sapwood::WaveRef;
use sapwood::{Emitter, Filter, FilterError, FilterFile, Packet, RankSet, Registry, ValuesRef};
use sapwood_extension::{DirectCall, with_extensions};
use sapwood_floor::statistics::{Spread, ratio};

use super::facts::{Bar, Facts, look};
use crate::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-filter/1";

/// What a call of a shared object may cost over a direct one, in nanoseconds.
const OVERHEAD: Bar = Bar::Most(100.0);

const CHILDREN: u32 = 3;
const ELEMENTS: usize = 128;
const ROUNDS_MAX: usize = 1001;

/// The filters in C, as a shared object.
const SHARED_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsums.so"));
/// The same, in WebAssembly.
const MODULE: &[u8] = include_bytes!("../../../../crates/extension/filters/sums.wasm");

/// What `sapwood bench filter` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each kind has its turn.
    #[arg(long, default_value_t = 51, value_name = "N")]
    rounds: usize,
    /// Calls in one turn; of WebAssembly a tenth.
    #[arg(long, default_value_t = 5000, value_name = "N")]
    calls: u32,
    /// One JSON object in one line.
    #[arg(long)]
    pub(super) json: bool,
}

/// One kind of filter, and what it took per call in each round, in nanoseconds.
struct Kind {
    key: &'static str,
    label: &'static str,
    filter: Box<dyn Filter>,
    calls: u32,
    took: Vec<f64>,
}

/// Measures all kinds.
pub(super) fn measure(arguments: &Arguments) -> Result<Facts, Failure> {
    let rounds = arguments.rounds.clamp(1, ROUNDS_MAX);
    let calls = arguments.calls.max(10);
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
    let mut direct_took = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let begin = Instant::now();
        direct.repeat(&wave, calls).map_err(own)?;
        let took = begin.elapsed().as_nanos() as f64 / f64::from(calls);
        // The first round is for the caches.
        if round > 0 {
            direct_took.push(took);
        }
        for kind in &mut kinds {
            let took = turn(kind, &wave).map_err(own)?;
            if round > 0 {
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
        kinds.push(Kind { key, label, filter, calls, took: Vec::new() });
    }
    Ok(kinds)
}

/// Nanoseconds per call, in one turn of a kind.
fn turn(kind: &mut Kind, wave: &WaveRef<'_>) -> Result<f64, FilterError> {
    let mut emitter = Emitter::new();
    let begin = Instant::now();
    for _ in 0..kind.calls {
        emitter.clear();
        kind.filter.transform(wave, &mut emitter)?;
    }
    let took = begin.elapsed().as_nanos() as f64 / f64::from(kind.calls);
    let sum = emitter.emissions().next().map(|(_, values)| values.array::<f64>(0).map(<[_]>::len));
    match sum {
        Some(Ok(ELEMENTS)) => Ok(took),
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
    facts.heading("per call");
    if let Some(spread) = Spread::of(direct) {
        facts.spread("ns.direct", look("direct call of the C function", "ns", 0), &spread, None);
    }
    for Kind { key, label, took, .. } in kinds {
        if let Some(spread) = Spread::of(took) {
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
