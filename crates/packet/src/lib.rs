//! Values, format strings, tags, ranks, rank sets and packets: the words that every other crate
//! speaks.
//!
//! The principal type is [`Packet`]: typed values under a [`Format`], with the stream, wave, tag
//! and origin that they travel under and the set of back-ends that they sum over. [`PacketRef`] is
//! the same thing lent from a buffer, so that a packet can be read where it lies.
//!
//! This crate knows how values lie in memory (and memory is the wire's layout, so that an array is
//! read in place), but nothing of frames, links or limits of the network: those are
//! `sapwood-wire`'s.
//!
//! ```
//! use sapwood_packet::{Format, Packet, Values};
//!
//! let packet = Packet::new(1, 100, Values::new().scalar(7_i32).array(&[1.0_f64, 2.0]));
//! assert_eq!(packet.format().to_string(), "%d %alf");
//! assert_eq!(packet.values().scalar::<i32>(0), Ok(7));
//! assert_eq!(packet.values().array::<f64>(1), Ok(&[1.0, 2.0][..]));
//! assert_eq!("%d %alf".parse(), Ok(packet.format().to_format()));
//! # let _: Format = packet.format().to_format();
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(target_endian = "big")]
compile_error!(
    "values lie in memory as on the wire, which is little-endian: this machine is not supported"
);

mod element;
mod error;
mod format;
mod indexed;
mod order;
mod packet;
mod question;
mod rank_set;
mod recipients;
mod slab;
mod time;
mod values;

pub use element::{Element, ElementType, Numeric};
pub use error::PacketError;
pub use format::{DIRECTIVES_MAX, Directive, Format, FormatRef, Shape};
pub use indexed::IndexedValues;
pub use order::Order;
pub use packet::{Chunk, Header, Packet, PacketRef};
pub use question::{
    ANSWERS_BEGIN, QUESTIONS_MAX, answer_wave, question_of, stretch_of, unasked_wave, waves_between,
};
pub use rank_set::{RankRange, RankSet, RankSetRef};
pub use recipients::Recipients;
pub use slab::{Body, OutOfMemory, Slab, try_reserve};
pub use time::nanoseconds;
pub use values::{IntoValues, Strings, Values, ValuesRef};

/// Place of a process in its network; never reused within one network.
///
/// Back-ends are `0..N`, the front-end is `N`, communication processes follow breadth first.
pub type Rank = u32;

/// The application's word for what a packet is about; the first free one is [`FIRST_TAG`].
pub type Tag = i32;

/// A stream's number within its network.
pub type StreamId = u32;

/// A wave's number within its stream: each back-end counts its own packets from 0; those that
/// answer a question of the front-end's have numbers of their own ([`answer_wave`]).
pub type Wave = u64;

/// The first tag that an application may use; lower ones are the network's.
pub const FIRST_TAG: Tag = 100;

/// Rounds a length in bytes up to the next multiple of 8, the alignment of every value.
#[must_use]
pub const fn padded(bytes: usize) -> usize {
    (bytes + 7) & !7
}
