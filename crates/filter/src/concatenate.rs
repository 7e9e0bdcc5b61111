//! `concatenate`: what all back-ends sent, one after another in the order of their ranks.
//!
//! A back-end sends one value: a scalar, a string or an array of either. The filter gives two:
//!
//! ```text
//! %AX    all elements, in ascending order of the rank that sent them (X: the element type)
//! %aud   one length per contributor, in the same order; their sum is the number of elements
//! ```
//!
//! What it gives it also takes, so that it works at every node of a tree. Ranks of different
//! children may interleave; when they do not, as in an ordinary tree, whole subtrees are copied at
//! once. A packet that is one value but stands for several contributors (the output of another
//! filter) counts as that of the lowest of them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sapwood_packet::{
    Directive, ElementType, Format, PacketRef, Rank, RankSet, RankSetRef, Shape, Slab, ValuesRef,
    padded,
};

use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

const NAME: &str = "concatenate";

/// How many contributors one concatenation may have: 2^24, of which the lengths take 64 MiB.
pub const CONTRIBUTORS_MAX: u64 = 1 << 24;

struct Concatenate;

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(Concatenate))
}

impl Filter for Concatenate {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        let mut parts = Vec::with_capacity(wave.packets.len());
        parts.push(Part::read(first)?);
        for other in others {
            let part = Part::read(other)?;
            if part.element != parts[0].element {
                return Err(FilterError::mixed(NAME, first.values(), other.values()));
            }
            parts.push(part);
        }
        let contributors: u64 = parts.iter().map(|part| part.ranks.len()).sum();
        if contributors > CONTRIBUTORS_MAX {
            return Err(failed("a wave has more contributors than 2^24"));
        }
        parts.sort_by_key(|part| part.ranks.first());
        let format = Format::from_iter([
            Directive::new(parts[0].element, Shape::LargeArray),
            Directive::new(ElementType::Uint32, Shape::Array),
        ]);
        let interleave = parts.windows(2).any(|pair| pair[0].ranks.last() >= pair[1].ranks.first());
        let lengths = contributors as usize * size_of::<u32>();
        let length = parts.iter().map(|part| part.elements.len()).sum::<usize>() + lengths;
        out.emit_built(first.header.tag, format, length, |bytes| {
            if interleave { merge(&parts, bytes) } else { append(&parts, bytes) }
        })
    }
}

/// What one packet brings.
struct Part<'a> {
    ranks: RankSetRef<'a>,
    element: ElementType,
    /// The encoded elements; strings with their own lengths and padding.
    elements: &'a [u8],
    /// How many there are.
    count: u64,
    /// How many there are of each rank; of a back-end's own packet, all are the first rank's.
    lengths: Option<&'a [u32]>,
}

impl<'a> Part<'a> {
    fn read(packet: &PacketRef<'a>) -> Result<Self, FilterError> {
        let values = packet.values();
        let directives = [values.format().directive(0), values.format().directive(1)];
        let lengths = Directive::new(ElementType::Uint32, Shape::Array);
        let lengths = match directives {
            [Some(_), None] => None,
            [Some(elements), Some(second)]
                if packet.header.filtered
                    && values.len() == 2
                    && elements.shape == Shape::LargeArray
                    && second == lengths =>
            {
                Some(values.array::<u32>(1)?)
            }
            _ => return Err(FilterError::format(NAME, "exactly one value", values.format())),
        };
        if packet.contributors.is_empty() {
            return Err(failed("a packet has no contributors; use it on the way up"));
        }
        let (count, elements) = elements_of(values)?;
        if let Some(lengths) = lengths {
            let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
            if lengths.len() as u64 != packet.contributors.len() || sum != count {
                return Err(failed("a packet's lengths do not fit its elements and contributors"));
            }
        } else if u32::try_from(count).is_err() {
            return Err(failed("a back-end sent 2^32 elements or more"));
        }
        let element = directives[0].map_or(ElementType::String, |directive| directive.element);
        Ok(Self { ranks: packet.contributors, element, elements, count, lengths })
    }

    /// The number of elements of each rank.
    fn lengths(&self) -> impl Iterator<Item = u32> {
        let given = self.lengths.unwrap_or_default().iter().copied();
        let (own, others) = match self.lengths {
            Some(_) => (None, 0),
            // `read` has checked that the count fits.
            None => (Some(self.count as u32), self.ranks.len() as usize - 1),
        };
        given.chain(own).chain(core::iter::repeat_n(0, others))
    }
}

/// Number and bytes of the elements of the first value.
fn elements_of(values: ValuesRef<'_>) -> Result<(u64, &[u8]), FilterError> {
    let (directive, bytes) = values.encoded(0)?;
    if directive.shape == Shape::Scalar {
        let size =
            if directive.element.is_numeric() { directive.element.size() } else { bytes.len() };
        return Ok((1, &bytes[..size]));
    }
    let cut = || failed("a packet is cut");
    let (count, elements) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let count = u64::from_le_bytes(*count);
    let size = match directive.element {
        ElementType::String => elements.len(),
        // That many elements lie in memory, so their length in bytes fits.
        element => count as usize * element.size(),
    };
    Ok((count, elements.get(..size).ok_or_else(cut)?))
}

/// Writes parts whose ranks follow one another.
fn append(parts: &[Part<'_>], bytes: &mut Slab) -> Result<(), FilterError> {
    bytes.extend_u64(parts.iter().map(|part| part.count).sum());
    for part in parts {
        bytes.extend(part.elements);
    }
    bytes.pad();
    bytes.extend_u64(parts.iter().map(|part| part.ranks.len()).sum());
    for part in parts {
        match part.lengths {
            Some(lengths) => bytes.extend(bytemuck::cast_slice(lengths)),
            None => part.lengths().for_each(|length| bytes.extend(&length.to_le_bytes())),
        }
    }
    Ok(())
}

/// Writes parts whose ranks interleave, rank by rank.
fn merge(parts: &[Part<'_>], bytes: &mut Slab) -> Result<(), FilterError> {
    let mut pieces: Vec<(Rank, u32, &[u8])> = Vec::new();
    for part in parts {
        let mut elements = part.elements;
        for (rank, length) in part.ranks.iter().zip(part.lengths()) {
            let piece = take(part.element, length, &mut elements);
            pieces.push((rank, length, piece.ok_or_else(|| failed("a packet is cut"))?));
        }
    }
    // Stable, so that several packets of one rank stay in the order of the children.
    pieces.sort_by_key(|&(rank, ..)| rank);
    bytes.extend_u64(parts.iter().map(|part| part.count).sum());
    for (_, _, piece) in &pieces {
        bytes.extend(piece);
    }
    bytes.pad();
    let ranks: RankSet = pieces.iter().map(|&(rank, ..)| rank).collect();
    bytes.extend_u64(ranks.len());
    for of_one_rank in pieces.chunk_by(|a, b| a.0 == b.0) {
        let length: u64 = of_one_rank.iter().map(|&(_, length, _)| u64::from(length)).sum();
        let length = u32::try_from(length);
        let length = length.map_err(|_| failed("a back-end sent 2^32 elements or more"))?;
        bytes.extend(&length.to_le_bytes());
    }
    Ok(())
}

/// Cuts the next `length` elements off.
fn take<'a>(element: ElementType, length: u32, elements: &mut &'a [u8]) -> Option<&'a [u8]> {
    let all = *elements;
    let size = if element.is_numeric() {
        (length as usize).checked_mul(element.size())?
    } else {
        let mut end = 0_usize;
        for _ in 0..length {
            let bytes = u64::from_le_bytes(*all.get(end..)?.first_chunk()?);
            end = end.checked_add(8)?.checked_add(padded(usize::try_from(bytes).ok()?))?;
        }
        end
    };
    let (piece, rest) = all.split_at_checked(size)?;
    *elements = rest;
    Some(piece)
}

#[cold]
fn failed(reason: &str) -> FilterError {
    FilterError::Failed(alloc::format!("filter '{NAME}': {reason}"))
}
