//! `sapwood topology cost`: a tree beside a flat one and balanced ones, by the LogGP model.
//!
//! Owns the choice of the alternatives: as many back-ends under no, one, two and three levels of
//! communication processes, as balanced as that number allows. The model is the crate
//! `sapwood-topology`'s.

use std::fmt::Write;

use sapwood_topology::{FAN_OUT_MAX, LogGp, Prediction, Shape, Topology, compare};
use serde_json::{Value, json};

use sapwood_command_line::exit::Failure;

/// Deepest alternative. Deeper trees pay off beyond the number of back-ends that one tree has.
const LEVELS_MAX: u32 = 4;

/// What the model is fed with.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Payload of each packet in bytes.
    #[arg(long, value_name = "B", default_value_t = 64)]
    bytes: u64,
    /// Latency, overhead and gap of a packet, and gap per byte, in microseconds, separated by
    /// commas; by default an estimate for local sockets.
    #[arg(long, value_name = "L,o,g,G", value_parser = parse_model)]
    loggp: Option<LogGp>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub(super) fn parse_model(text: &str) -> Result<LogGp, String> {
    let times: Result<Vec<f64>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    match times.as_deref() {
        Ok([latency, overhead, gap, per_byte]) => {
            LogGp::new(*latency, *overhead, *gap, *per_byte).map_err(|error| error.to_string())
        }
        _ => Err("write four times in microseconds, such as 10,2,1,0.001".to_string()),
    }
}

/// Predicts the tree and its alternatives.
pub(super) fn run(
    topology: &Topology,
    name: &str,
    arguments: &Arguments,
) -> Result<String, Failure> {
    let model = arguments.loggp.unwrap_or(LogGp::LOCAL_SOCKETS);
    let own = Prediction {
        shape: if name == "-" { "(standard input)".to_string() } else { name.to_string() },
        ..model.predict(topology, arguments.bytes)
    };
    let others = compare(&model, &alternatives(topology.back_end_count())?, arguments.bytes);
    if arguments.json {
        let others: Vec<Value> = others.iter().map(as_json).collect();
        let report = json!({
            "schema": "sapwood.topology-cost/1",
            "bytes": arguments.bytes,
            "model": {
                "latency_us": model.latency_us(),
                "overhead_us": model.overhead_us(),
                "gap_us": model.gap_us(),
                "gap_per_byte_us": model.gap_per_byte_us(),
            },
            "tree": as_json(&own),
            "alternatives": others,
        });
        return Ok(format!("{report}\n"));
    }
    Ok(table(&model, arguments, &own, &others))
}

fn table(model: &LogGp, arguments: &Arguments, own: &Prediction, others: &[Prediction]) -> String {
    let mut text = format!(
        "LogGP: latency {} us, overhead {} us, gap {} us, {} us a byte; packets of {} bytes\n\
         times predicted by LogGP; 'sapwood bench tree' measures them\n\n\
         {:<24} {:>9} {:>11} {:>6} {:>12} {:>12} {:>13} {:>10}\n",
        model.latency_us(),
        model.overhead_us(),
        model.gap_us(),
        model.gap_per_byte_us(),
        arguments.bytes,
        "tree",
        "back-ends",
        "comm. procs",
        "depth",
        "broadcast us",
        "reduction us",
        "round trip us",
        "waves/s",
    );
    for of in std::iter::once(own).chain(others) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<24} {:>9} {:>8} {:>6} {:>12.1} {:>12.1} {:>12.1} {:>10.0}",
            of.shape,
            of.back_ends,
            of.communication_processes,
            of.depth,
            of.broadcast_us,
            of.reduction_us,
            of.round_trip_us,
            of.waves_per_s,
        );
    }
    text
}

fn as_json(of: &Prediction) -> Value {
    // A rate without any cost is infinite, which JSON cannot say: it becomes null.
    json!({
        "topology": of.shape,
        "back_ends": of.back_ends,
        "communication_processes": of.communication_processes,
        "depth": of.depth,
        "broadcast_us": of.broadcast_us,
        "reduction_us": of.reduction_us,
        "round_trip_us": of.round_trip_us,
        "waves_per_s": of.waves_per_s,
    })
}

/// Trees of exactly that many back-ends and 1 to [`LEVELS_MAX`] levels, as far as they are
/// sensible.
fn alternatives(back_ends: u32) -> Result<Vec<Shape>, Failure> {
    let mut shapes: Vec<Shape> = Vec::new();
    if back_ends == 0 {
        return Ok(shapes);
    }
    if back_ends <= FAN_OUT_MAX {
        shapes.push(Shape::flat(back_ends).map_err(Failure::usage)?);
    }
    for levels in 2..=LEVELS_MAX {
        // Where levels have run out of back-ends to share out, the shape is the one before.
        let fan_out = Shape::fan_out_for(back_ends, levels);
        shapes.push(Shape::even(back_ends, fan_out).map_err(Failure::usage)?);
    }
    shapes.dedup();
    Ok(shapes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_have_exactly_the_asked_back_ends() {
        for back_ends in [1, 2, 3, 4, 7, 16, 64, 65, 100, 512, 1000, 4097, 10_000] {
            for shape in alternatives(back_ends).unwrap() {
                assert_eq!(shape.back_end_count(), back_ends, "{shape}");
            }
        }
    }

    #[test]
    fn powers_are_written_as_such() {
        let shapes: Vec<_> = alternatives(64).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shapes[..3], ["64", "8^2", "4^3"]);
        let shapes: Vec<_> = alternatives(18).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shapes[1], "g:4:2x5,2x4");
    }

    #[test]
    fn a_front_end_alone_has_no_alternative() {
        assert!(alternatives(0).unwrap().is_empty());
    }
}
