//! Any filters with any parameters on any waves: refused, or packets that can be read.

use sapwood_filter::{Chain, Emitter, Filter, FilterSpec, Fold, Registry, WaveRef};
use sapwood_packet::{FormatRef, Packet, RankSet, Shape, Slab};

use super::packets::{are_sound, values};
use crate::Target;
use crate::source::Source;

/// Filters, their parameters and their waves.
pub const TARGET: Target = Target { name: "filter", run, repair: None };

/// Most waves of an input, and most packets of a wave.
const WAVES_MAX: usize = 6;
const PACKETS_MAX: usize = 4;

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let registry = sapwood_profile::register(Registry::built_in());
    let known = registry.known();
    let names: Vec<&str> = known.split(' ').collect();
    let count = source.below(4);
    let specs: Vec<FilterSpec> = (0..count).map(|_| spec(&mut source, &names)).collect();
    let mut chain = match Chain::new(&registry, &specs) {
        Ok(chain) => chain,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let is_root = source.flag();
    for wave in 0..WAVES_MAX {
        if source.is_empty() {
            break;
        }
        let packets = packets(&mut source);
        try_wave(&mut chain, wave as u64, &packets, is_root);
        if let Some(fold) = chain.as_fold() {
            check_fold(fold, &packets, &mut source);
        }
    }
}

fn spec(source: &mut Source<'_>, names: &[&str]) -> FilterSpec {
    let mut spec = FilterSpec::from(source.choose(names));
    match source.byte() {
        255 => spec.name = source.text(),
        254 => spec.parameters = values(source),
        _ => {}
    }
    spec
}

/// The packets of one wave, often all of one format.
fn packets(source: &mut Source<'_>) -> Vec<Packet> {
    let count = 1 + source.below(PACKETS_MAX);
    let first = values(source);
    let mut rank = 0;
    let one = |index: usize| {
        let values = if index == 0 || source.byte() < 128 { first.clone() } else { values(source) };
        let mut packet = Packet::new(1, source.byte().into(), values);
        let last = rank + source.below(3) as u32;
        packet.contributors = RankSet::range(rank, last);
        packet.header.origin = last;
        rank = last + 1 + source.below(2) as u32;
        packet
    };
    (0..count).map(one).collect()
}

fn try_wave(chain: &mut Chain, wave: u64, packets: &[Packet], is_root: bool) {
    let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let mut contributors = RankSet::new();
    packets.iter().for_each(|packet| contributors.union_with(packet.contributors.as_ref()));
    let wave = WaveRef {
        stream: 1,
        wave,
        packets: &lent,
        contributors: contributors.as_ref(),
        rank: 99,
        is_root,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    match chain.transform(&wave, &mut out) {
        Ok(()) => {
            for (_, values) in out.emissions() {
                assert!(are_sound(values), "a filter made values that cannot be read");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Folding whole bodies, chunks and runs gives the same bits.
fn check_fold(fold: &dyn Fold, packets: &[Packet], source: &mut Source<'_>) {
    let [first, second, ..] = packets else { return };
    let format = first.format();
    if second.format() != format || fold.check(format).is_err() {
        return;
    }
    let (one, other) = (first.body().as_bytes(), second.body().as_bytes());
    let mut whole = Slab::copy_of(one);
    let outcome = fold.fold(format, whole.as_mut_bytes(), other);
    if outcome.is_err() || one.len() != other.len() {
        return;
    }
    let Some(only) = format.directive(0).filter(|_| format.len() == 1) else { return };
    if only.shape != Shape::Scalar && one.len() > 8 {
        check_chunks(fold, format, (one, other), whole.as_bytes(), source);
    }
    let mut run = Slab::copy_of(&[one, one].concat());
    let folded = fold.fold_run(format, one.len(), run.as_mut_bytes(), &[other, other].concat());
    if folded.is_ok() {
        assert!(
            run.as_bytes() == [whole.as_bytes(), whole.as_bytes()].concat(),
            "a run folds alike"
        );
    }
}

fn check_chunks(
    fold: &dyn Fold,
    format: FormatRef<'_>,
    (one, other): (&[u8], &[u8]),
    whole: &[u8],
    source: &mut Source<'_>,
) {
    let mut folded = Slab::copy_of(one);
    let mut start = 0;
    while start < one.len() {
        let length = 8 * (1 + source.below(16)).min((one.len() - start) / 8);
        let chunk = start..start + length;
        let accumulator = &mut folded.as_mut_bytes()[chunk.clone()];
        if fold.fold_chunk(format, start as u64, accumulator, &other[chunk]).is_err() {
            return;
        }
        start += length;
    }
    assert!(folded.as_bytes() == whole, "chunks fold to the same bits");
}
