//! A sketch's filter with any parameters, on raw values, on real sketches, and on sketches with
//! words changed: refused, or a sketch that can be read and is written again as the same, in memory
//! in proportion to what came.

use sapwood_filter::{
    Distinct, Emitter, FilterError, HeavyHitters, Histogram, ItemSet, Kll, PrefixTree, Quantiles,
    Registry, TopK, WaveRef,
};
use sapwood_packet::{IntoValues, Packet, RankSet, Slab, Values, ValuesRef};

use super::packets::{are_sound, values};
use crate::source::Source;
use crate::{Target, memory};

/// Parameters, waves, and words to be changed.
pub const TARGET: Target = Target { name: "sketch", run, repair: None };

const FILTERS: [&str; 8] =
    ["quantiles", "kll", "distinct", "heavy-hitters", "top", "histogram", "union", "prefix-tree"];
const WAVES_MAX: usize = 8;
const PACKETS_MAX: usize = 4;
/// What a wave may ask for in all: so much for each byte of its packets, and the largest empty
/// sketch several times over.
const BYTES_PER_BYTE: usize = 512;
const BYTES_MIN: usize = 16 << 20;

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let name = source.choose(&FILTERS);
    let parameters = parameters(&mut source);
    let mut filter = match Registry::built_in().make(name, parameters.as_ref()) {
        Ok(filter) => filter,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut made: Vec<Values> = Vec::new();
    let mut out = Emitter::new();
    for wave in 0..WAVES_MAX {
        if source.is_empty() {
            break;
        }
        let packets = packets(&mut source, &made);
        let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
        let mut contributors = RankSet::new();
        packets.iter().for_each(|packet| contributors.union_with(packet.contributors.as_ref()));
        let wave = WaveRef {
            stream: 1,
            wave: wave as u64,
            packets: &lent,
            contributors: contributors.as_ref(),
            rank: 99,
            is_root: false,
            children: lent.len() as u32,
            back_ends: lent.len() as u32,
        };
        let bytes: usize = packets.iter().map(|packet| packet.body().len()).sum();
        out.clear();
        let most = BYTES_MIN + BYTES_PER_BYTE * bytes;
        match memory::within(most, || filter.transform(&wave, &mut out)) {
            Ok(()) => {
                for (_, values) in out.emissions() {
                    assert!(are_sound(values), "a sketch that cannot be read");
                    let again = again(name, values).expect("what a filter makes, its type reads");
                    assert!(again.as_ref() == values, "a sketch is written as it was read");
                    made.push(values.to_values());
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Often none, so that sketches of one wave fit into the next.
fn parameters(source: &mut Source<'_>) -> Values {
    let integer = |values: Values, source: &mut Source<'_>| values.scalar(source.number() as u32);
    match source.below(8) {
        0 => integer(Values::new(), source),
        1 => {
            let limits = [source.number(), source.number()].map(|number| number as f64 - 100.0);
            integer(Values::new().scalar(limits[0]).scalar(limits[1]), source)
        }
        2 => {
            Values::new().scalar(f64::from(source.byte()) / 256.0).scalar(u32::from(source.byte()))
        }
        3 => values(source),
        _ => Values::new(),
    }
}

fn packets(source: &mut Source<'_>, made: &[Values]) -> Vec<Packet> {
    let count = 1 + source.below(PACKETS_MAX) as u32;
    let one = |rank: u32| {
        let values = match source.below(4) {
            0 | 1 if !made.is_empty() => {
                let index = source.below(made.len());
                changed(source, made[index].as_ref())
            }
            2 => many(source),
            _ => values(source),
        };
        let mut packet = Packet::new(1, 100, values);
        packet.contributors = RankSet::range(3 * rank, 3 * rank + source.below(3) as u32);
        packet
    };
    (0..count).map(one).collect()
}

/// Enough values that bins collapse, levels are compacted and registers begin.
fn many(source: &mut Source<'_>) -> Values {
    let (step, count) = (source.number() | 1, 4 * (1 + source.below(256)) as u64);
    let numbers = (0..count).map(|index| index.wrapping_mul(step) ^ (index << 7));
    if source.flag() {
        let texts: Vec<String> = numbers.map(|number| (number % 1000).to_string()).collect();
        return Values::new().strings(&texts);
    }
    match source.below(3) {
        0 => Values::new().array(&numbers.map(f64::from_bits).collect::<Vec<_>>()),
        1 => Values::new().array(&numbers.map(|number| number as i16).collect::<Vec<_>>()),
        _ => Values::new().array(&numbers.collect::<Vec<_>>()),
    }
}

/// A sketch with a few words changed, or none.
fn changed(source: &mut Source<'_>, sketch: ValuesRef<'_>) -> Values {
    let mut body = Slab::copy_of(sketch.body());
    for _ in 0..source.below(4) {
        let at = 8 * (source.number() as usize % (body.len() / 8).max(1));
        let word = source.number().to_le_bytes();
        if let Some(place) = body.as_mut_bytes().get_mut(at..at + 8) {
            place.copy_from_slice(&word);
        }
    }
    // Only bodies that hold their format reach a filter.
    let changed = ValuesRef::new(sketch.format(), body.as_bytes());
    if are_sound(changed) { changed.to_values() } else { sketch.to_values() }
}

/// Reads a sketch, asks it something, and writes it.
fn again(name: &str, values: ValuesRef<'_>) -> Result<Values, FilterError> {
    Ok(match name {
        "quantiles" => {
            let sketch = Quantiles::from_values(values)?;
            let found = sketch.quantile(0.5);
            assert!(found.is_none_or(|found| sketch.min() <= Some(found)));
            sketch.into_values()
        }
        "kll" => {
            let sketch = Kll::from_values(values)?;
            let found = sketch.quantile(0.5);
            assert!(found.is_none_or(|found| sketch.rank(found) <= sketch.count()));
            sketch.into_values()
        }
        "distinct" => {
            let sketch = Distinct::from_values(values)?;
            assert!(sketch.estimate() >= 0.0);
            sketch.into_values()
        }
        "heavy-hitters" => {
            let sketch = HeavyHitters::from_values(values)?;
            assert!(sketch.hitters().iter().all(|hitter| hitter.at_least <= sketch.count()));
            sketch.into_values()
        }
        "top" => {
            let sketch = TopK::from_values(values)?;
            assert!(sketch.entries().iter().all(|entry| !entry.number.to_f64().is_nan()));
            sketch.into_values()
        }
        "histogram" => {
            let sketch = Histogram::from_values(values)?;
            assert!(sketch.bins().all(|bin| bin.low < bin.high));
            sketch.into_values()
        }
        "union" => ItemSet::from_values(values)?.into_values(),
        _ => {
            let tree = PrefixTree::from_values(values)?;
            let _ = tree.to_string();
            tree.into_values()
        }
    })
}
