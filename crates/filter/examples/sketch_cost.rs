//! Merges two sketches of 10,000 values each, or makes one of two packets of 128 values, N times;
//! prints what the sketch takes in a packet. Count the instructions of two runs that differ in the
//! number of times:
//!
//! `valgrind --tool=callgrind sketch_cost quantiles merge 100`

use std::hint::black_box;

use sapwood_filter::{Emitter, Filter, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Values, ValuesRef};
use sapwood_random::mix;

/// What a back-end sends of such many values: spread like latencies, some of them often.
fn raw(name: &str, rank: u32, count: u32) -> Values {
    let word = |step: u32| mix(u64::from(step * 2 + rank + 1)) >> 20;
    match name {
        "heavy-hitters" | "union" => {
            let line = |step| format!("line {}", word(step) % 100 * (word(step) >> 9) % 2000);
            Values::new().strings(&(0..count).map(line).collect::<Vec<_>>())
        }
        "prefix-tree" => {
            let stack = |step: u32| {
                let at = word(step) % 40;
                ["main".into(), "run".into(), format!("f{}", at % 4), format!("g{at}")]
            };
            (0..count.min(64)).fold(Values::new(), |values, step| values.strings(&stack(step)))
        }
        "bit-or" => Values::new().array(&(0..count).map(word).collect::<Vec<_>>()),
        _ => {
            let latency = |step| (word(step) % 1_000_000) as f64 / 1e6;
            let latencies: Vec<f64> = (0..count).map(|step| 1.0 / (1e-4 + latency(step))).collect();
            Values::new().array(&latencies)
        }
    }
}

fn transform(filter: &mut dyn Filter, packets: &[Packet], out: &mut Emitter) {
    let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, packets.len() as u32 - 1);
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &lent,
        contributors: contributors.as_ref(),
        rank: 9,
        is_root: false,
        children: 2,
        back_ends: 2,
    };
    out.clear();
    filter.transform(black_box(&wave), out).expect("packets that it takes");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, what, times] = &words[..] else {
        eprintln!("usage: sketch_cost FILTER merge|raw TIMES");
        std::process::exit(2);
    };
    let made = Registry::built_in().make(name, ValuesRef::default());
    let mut filter = made.expect("a filter that needs no parameters");
    let mut out = Emitter::new();
    let is_merge = what == "merge" && name != "bit-or";
    let packets = [0, 1].map(|rank| {
        let mut packet = Packet::new(1, 100, raw(name, rank, if is_merge { 10_000 } else { 128 }));
        packet.contributors.insert(rank);
        if is_merge {
            transform(&mut *filter, &[packet.clone()], &mut out);
            let (_, values) = out.emissions().next().expect("a sketch");
            packet = Packet::new(1, 100, values.to_values());
            packet.contributors.insert(rank);
        }
        packet
    });
    for _ in 0..times.parse::<u32>().unwrap_or(1) {
        transform(&mut *filter, &packets, &mut out);
    }
    let bytes: usize = out.emissions().map(|(_, values)| values.body().len()).sum();
    println!(
        "{name} {what}: {} + {} bytes -> {bytes} bytes",
        packets[0].body().len(),
        packets[1].body().len()
    );
}
