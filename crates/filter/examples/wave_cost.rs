//! Prints what a wave costs in each filter: the median of many batches, in nanoseconds per wave.
//!
//! `cargo run --release -p sapwood-filter --example wave_cost`

use std::hint::black_box;
use std::time::Instant;

use sapwood_filter::{Emitter, Filter, FilterError, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Slab, ValuesRef};

const BATCHES: usize = 101;
const WAVES_PER_BATCH: u32 = 2_000;

/// The median time of one call, in nanoseconds.
fn median_ns(mut call: impl FnMut()) -> f64 {
    let mut batches: Vec<f64> = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..WAVES_PER_BATCH {
            call();
        }
        batches.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(WAVES_PER_BATCH));
    }
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}

fn children(count: u32, doubles: u32) -> Vec<Packet> {
    let child = |rank: u32| {
        let values: Vec<f64> = (0..doubles).map(|index| f64::from(index * rank)).collect();
        let mut packet = Packet::new(1, 100, values);
        packet.contributors.insert(rank);
        packet
    };
    (0..count).map(child).collect()
}

fn transform_ns(filter: &mut dyn Filter, packets: &[Packet]) -> Result<f64, FilterError> {
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, packets.len() as u32 - 1);
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &packets,
        contributors: contributors.as_ref(),
        rank: 9,
        is_root: false,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out)?;
    Ok(median_ns(|| {
        out.clear();
        let made = filter.transform(black_box(&wave), &mut out);
        black_box(made.is_ok());
    }))
}

/// Copies the first packet and folds the others into it, as a node does.
fn fold_ns(filter: &dyn Filter, packets: &[Packet]) -> Option<f64> {
    let fold = filter.as_fold()?;
    let [first, others @ ..] = packets else { return None };
    let mut accumulator = Slab::copy_of(first.values().body());
    Some(median_ns(|| {
        accumulator.clear();
        accumulator.extend(first.values().body());
        for other in others {
            let (mine, theirs) = (accumulator.as_mut_bytes(), other.values().body());
            black_box(fold.fold(first.format(), mine, black_box(theirs)).is_ok());
        }
    }))
}

fn main() -> Result<(), FilterError> {
    println!(
        "{:12} {:>8} {:>8} {:>14} {:>9}",
        "filter", "children", "doubles", "transform ns", "fold ns"
    );
    for name in ["sum", "min", "average", "count", "concatenate", "equivalence", "statistics"] {
        for (count, doubles) in [(3, 8), (4, 8), (3, 128), (8, 8192)] {
            let mut filter = Registry::built_in().make(name, ValuesRef::default())?;
            let packets = children(count, doubles);
            let transform = transform_ns(&mut *filter, &packets)?;
            let fold = fold_ns(&*filter, &packets).map(|ns| format!("{ns:.1}")).unwrap_or_default();
            println!("{name:12} {count:>8} {doubles:>8} {transform:>14.1} {fold:>9}");
        }
    }
    Ok(())
}
