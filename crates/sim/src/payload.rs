//! What back-ends send: numbers that follow from the stream, the rank and the wave, so that the
//! oracle knows what any set of contributors amounts to without being told.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_filter::{EquivalenceClasses, Statistics};
use sapwood_packet::{Packet, Rank, RankSet, StreamId, Values, Wave};

use crate::scenario::Kind;

/// What an array's length takes in a packet.
const COUNT_BYTES: usize = 8;

/// The tag of everything that is sent.
pub(crate) const TAG: i32 = 100;

/// How the packets of a stream are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) kind: Kind,
    pub(crate) stream: StreamId,
    /// How many numbers; 0 for one that is no array.
    pub(crate) length: usize,
    /// Longer packets are cut.
    pub(crate) chunk_bytes: usize,
}

impl Recipe {
    /// The number at one place of a packet.
    fn number(&self, rank: Rank, wave: Wave, index: usize) -> i64 {
        let seed = u64::from(self.stream) << 48 ^ u64::from(rank) << 24 ^ wave;
        let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.kind {
            // Few different ones, so that there are classes to find.
            Kind::Equivalence => (mixed >> 62).cast_signed(),
            Kind::Average | Kind::Statistics => (mixed >> 44).cast_signed() - (1 << 19),
            _ => (mixed >> 20).cast_signed() + (index as i64).wrapping_mul(0x1_0001),
        }
    }

    /// How many numbers a back-end sends; what is concatenated need not be equally long.
    fn length_of(&self, rank: Rank) -> usize {
        match self.kind {
            Kind::Concatenate if self.length > 0 => self.length + rank as usize % 3,
            _ => self.length,
        }
    }

    /// Whether packets are cut, and their chunks folded as they come: of a wave that has gone on
    /// such a packet is no late part, and is counted as dropped wherever it comes to.
    pub(crate) fn is_cut_and_folded(&self) -> bool {
        let is_folded = matches!(self.kind, Kind::Sum | Kind::Max);
        is_folded && self.length * size_of::<i64>() + COUNT_BYTES > self.chunk_bytes
    }

    /// What a back-end sends in a wave.
    pub(crate) fn values(&self, rank: Rank, wave: Wave) -> Values {
        match self.length_of(rank) {
            0 => Values::new().scalar(self.number(rank, wave, 0)),
            length => {
                let numbers = (0..length).map(|index| self.number(rank, wave, index));
                Values::new().array(&numbers.collect::<Vec<i64>>())
            }
        }
    }

    /// Whether a packet is what these contributors sent; if not, the difference in words.
    pub(crate) fn check(&self, wave: Wave, ranks: &RankSet, packet: &Packet) -> Result<(), String> {
        if packet.tag() != TAG {
            return Err(format!("its tag is {}", packet.tag()));
        }
        match self.kind {
            Kind::Sum => self.check_fold(wave, ranks, packet, i64::wrapping_add),
            Kind::Max => self.check_fold(wave, ranks, packet, i64::max),
            Kind::None if ranks.len() == 1 => {
                self.check_fold(wave, ranks, packet, |first, _| first)
            }
            Kind::None => Err(format!("it stands for {} back-ends", ranks.len())),
            Kind::Average => self.check_average(wave, ranks, packet),
            Kind::Statistics => self.check_statistics(wave, ranks, packet),
            Kind::Concatenate => self.check_concatenation(wave, ranks, packet),
            Kind::Equivalence => self.check_classes(wave, ranks, packet),
        }
    }

    fn check_fold(
        &self,
        wave: Wave,
        ranks: &RankSet,
        packet: &Packet,
        fold: impl Fn(i64, i64) -> i64,
    ) -> Result<(), String> {
        let number;
        let found: &[i64] = if self.length == 0 {
            number = [packet.values().scalar(0).map_err(|error| format!("{error}"))?];
            &number
        } else {
            packet.values().array(0).map_err(|error| format!("{error}"))?
        };
        if found.len() != self.length.max(1) {
            return Err(format!("it has {} numbers", found.len()));
        }
        for (index, &found) in found.iter().enumerate() {
            let numbers = ranks.iter().map(|rank| self.number(rank, wave, index));
            let expected = numbers.reduce(&fold).unwrap_or(0);
            if found != expected {
                return Err(format!("number {index} is {found} and should be {expected}"));
            }
        }
        Ok(())
    }

    fn doubles<'a>(&'a self, wave: Wave, ranks: &'a RankSet) -> impl Iterator<Item = f64> + 'a {
        ranks.iter().map(move |rank| self.number(rank, wave, 0) as f64)
    }

    fn check_average(&self, wave: Wave, ranks: &RankSet, packet: &Packet) -> Result<(), String> {
        let expected = self.doubles(wave, ranks).sum::<f64>() / ranks.len() as f64;
        // What one back-end sent goes up to its parent as it is, where nothing is waited for.
        let found = match packet.values().scalar::<f64>(0) {
            Ok(found) => found,
            Err(_) => packet.values().scalar::<i64>(0).map_err(|error| format!("{error}"))? as f64,
        };
        near("the mean", found, expected)
    }

    fn check_statistics(&self, wave: Wave, ranks: &RankSet, packet: &Packet) -> Result<(), String> {
        let read = Statistics::read(packet.values()).map_err(|error| format!("{error}"))?;
        let [found] = read.elements() else {
            return Err(format!("it is about {} elements", read.elements().len()));
        };
        let mean = self.doubles(wave, ranks).sum::<f64>() / ranks.len() as f64;
        let m2 = self.doubles(wave, ranks).map(|number| (number - mean) * (number - mean)).sum();
        let least = self.doubles(wave, ranks).fold(f64::INFINITY, f64::min);
        let most = self.doubles(wave, ranks).fold(f64::NEG_INFINITY, f64::max);
        if found.count != ranks.len() {
            return Err(format!("it counts {} back-ends of {}", found.count, ranks.len()));
        }
        near("the mean", found.mean, mean)?;
        near("the sum of squares", found.m2, m2)?;
        near("the least", found.min, least)?;
        near("the most", found.max, most)
    }

    fn check_concatenation(
        &self,
        wave: Wave,
        ranks: &RankSet,
        packet: &Packet,
    ) -> Result<(), String> {
        let found: &[i64] = packet.values().array(0).map_err(|error| format!("{error}"))?;
        let lengths: &[u32] = packet.values().array(1).map_err(|error| format!("{error}"))?;
        let length_of = |rank| self.length_of(rank).max(1);
        if !ranks.iter().map(|rank| length_of(rank) as u32).eq(lengths.iter().copied()) {
            return Err(format!("its lengths are {lengths:?}"));
        }
        let numbers = |rank| (0..length_of(rank)).map(move |at| self.number(rank, wave, at));
        let expected = ranks.iter().flat_map(numbers);
        if expected.eq(found.iter().copied()) {
            return Ok(());
        }
        Err(format!("its {} numbers are not what they sent", found.len()))
    }

    fn check_classes(&self, wave: Wave, ranks: &RankSet, packet: &Packet) -> Result<(), String> {
        let read = EquivalenceClasses::read(packet.values()).map_err(|error| format!("{error}"))?;
        let mut all = RankSet::new();
        for class in read.classes() {
            let number: i64 =
                class.values.as_ref().scalar(0).map_err(|error| format!("{error}"))?;
            for rank in class.ranks.iter() {
                let sent = self.number(rank, wave, 0);
                if sent != number {
                    return Err(format!("rank {rank} sent {sent} and is in the class of {number}"));
                }
            }
            all.union_with(class.ranks.as_ref());
        }
        if all == *ranks { Ok(()) } else { Err(format!("its classes are of '{all}'")) }
    }
}

fn near(what: &str, found: f64, expected: f64) -> Result<(), String> {
    let scale = 1.0_f64.max(expected.abs()).max(found.abs());
    if (found - expected).abs() <= 1e-9 * scale {
        return Ok(());
    }
    Err(format!("{what} is {found} and should be {expected}"))
}
