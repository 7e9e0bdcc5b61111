//! Trees of filters without nodes or links: packets of back-ends go in, the front-end's packets
//! come out.
#![allow(dead_code, reason = "every test file uses a part of it")]

use sapwood_filter::{Emission, Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef};
use sapwood_packet::{Format, IntoValues, Packet, Rank, RankSet, Slab, Values, ValuesRef};

pub const TAG: i32 = 100;

/// What a back-end sends.
pub fn leaf(rank: Rank, values: impl IntoValues) -> Packet {
    let mut packet = Packet::new(1, TAG, values);
    packet.header.origin = rank;
    packet.contributors.insert(rank);
    packet
}

pub fn make(name: &str) -> Box<dyn Filter> {
    Registry::built_in().make(name, ValuesRef::default()).expect("a built-in filter")
}

/// Lets one node's filter transform a wave, and shows what it emitted.
pub fn transform<R>(
    filter: &mut dyn Filter,
    packets: &[Packet],
    look: impl FnOnce(Vec<(&Emission, ValuesRef<'_>)>) -> R,
) -> Result<R, FilterError> {
    let mut contributors = RankSet::new();
    for packet in packets {
        contributors.union_with(packet.contributors.as_ref());
    }
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    // Nodes that stand for other back-ends have other ranks.
    let rank = 1000 + 100 * contributors.as_ref().first().unwrap_or(0) + contributors.len() as u32;
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &packets,
        contributors: contributors.as_ref(),
        rank,
        is_root: true,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out)?;
    Ok(look(out.emissions().collect()))
}

/// The one packet that one node makes of a wave.
pub fn node(name: &str, packets: &[Packet]) -> Result<Packet, FilterError> {
    node_of(&name.into(), packets)
}

/// As [`node`], with parameters.
fn node_of(spec: &FilterSpec, packets: &[Packet]) -> Result<Packet, FilterError> {
    let made = Registry::built_in().make(&spec.name, spec.parameters.as_ref());
    let values = transform(&mut *made.expect("a built-in filter"), packets, |emitted| {
        assert_eq!(emitted.len(), 1, "a wave becomes one packet");
        assert_eq!(emitted[0].0.tag, TAG);
        emitted[0].1.to_values()
    })?;
    let mut packet = Packet::new(1, TAG, values);
    packet.header.filtered = true;
    for part in packets {
        packet.contributors.union_with(part.contributors.as_ref());
    }
    Ok(packet)
}

/// Reduces over levels of nodes. At each level the packets are grouped from left to right by the
/// sizes of `level`, used over and over; a group of 0 is a packet that passes without a filter, as
/// that of a back-end higher up in the tree. The front-end takes what the last level leaves.
pub fn tree(name: &str, leaves: &[Packet], levels: &[Vec<usize>]) -> Result<Packet, FilterError> {
    tree_of(&name.into(), leaves, levels)
}

/// As [`tree`], with parameters.
pub fn tree_of(
    spec: &FilterSpec,
    leaves: &[Packet],
    levels: &[Vec<usize>],
) -> Result<Packet, FilterError> {
    let mut packets = leaves.to_vec();
    for level in levels {
        let mut above = Vec::new();
        let mut rest = &packets[..];
        for &size in level.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (group, others) = rest.split_at(size.max(1).min(rest.len()));
            above.push(if size == 0 { group[0].clone() } else { node_of(spec, group)? });
            rest = others;
        }
        packets = above;
    }
    node_of(spec, &packets)
}

/// Levels of nodes that all have `fan_out` children.
pub fn regular(fan_out: usize, leaves: usize) -> Vec<Vec<usize>> {
    let depth = if fan_out == 1 { 3 } else { leaves.max(1).ilog(fan_out) as usize };
    vec![vec![fan_out]; depth]
}

pub fn values(format: &str, body: &[u8]) -> Values {
    let format: Format = format.parse().expect("format");
    ValuesRef::parse(format.as_ref(), body).expect("a body of that format").to_values()
}

/// Bytes at an 8-aligned address, as all bodies are.
pub fn aligned(words: &[u64]) -> Slab {
    Slab::copy_of(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
}
