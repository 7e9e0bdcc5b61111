//! The processing of a wave's packets: the [`Filter`] trait, the [`WaveRule`] and the built-in
//! filters, one file each.
//!
//! A filter turns the packets of one wave into packets that travel on ([`Emitter::emit`]) or back
//! ([`Emitter::reply`]). It is made by name from a [`Registry`] in every process that a stream
//! passes, and may keep state from wave to wave. It knows nothing of frames, links or trees. What
//! becomes of that state when its process dies is in its [`State`]. A [`Chain`] lets the packets
//! pass several filters, one after another.
//!
//! Built-in, by name ([`Registry::built_in`]):
//!
//! | name | takes | gives |
//! |---|---|---|
//! | `sum`, `min`, `max` | any numbers, arrays of equal length | the same format |
//! | `accumulate` | any numbers, arrays of equal length | their sums over several waves |
//! | `changes` | anything | every packet as it came, unless all are as before |
//! | `average` | any numbers | `%lf`, `%alf` |
//! | `bit-and`, `bit-or` | integers, arrays of equal length | the same format |
//! | `count` | anything | `%uld`, the number of contributors |
//! | `concatenate` | one value | all elements in rank order, `%aud` lengths per contributor |
//! | `equivalence` | anything | which ranks sent the same, [`EquivalenceClasses`] |
//! | `classes` | a key and a content | ranks with the same key, and its content: [`Classes`] |
//! | `statistics` | one number or array | per element [`Moments`], in [`Statistics`] |
//! | `quantiles` | numbers, or its sketches | [`Quantiles`]: relative error of values |
//! | `kll` | numbers, or its sketches | [`Kll`]: error in rank |
//! | `distinct` | numbers or strings, or its sketches | [`Distinct`]: how many different ones |
//! | `heavy-hitters` | integers or strings, or its sketches | [`HeavyHitters`]: the most frequent |
//! | `top` | numbers, or its sketches | [`TopK`]: the largest, with their ranks |
//! | `histogram` | numbers, or its histograms | [`Histogram`] |
//! | `union` | integers or strings, or its sets | [`ItemSet`] |
//! | `prefix-tree` | stacks of strings, or its trees | [`PrefixTree`]: ranks per node |
//! | `null`, `pass` | anything | every packet as it came |
//!
//! ```
//! use sapwood_filter::{Emitter, Filter, Registry, WaveRef};
//! use sapwood_packet::{Packet, RankSet, ValuesRef};
//!
//! let mut sum = Registry::built_in().make("sum", ValuesRef::default())?;
//! let (left, right) = (Packet::new(1, 100, [1_i32, 2]), Packet::new(1, 100, [30_i32, 40]));
//! let contributors = RankSet::range(0, 1);
//! let wave = WaveRef {
//!     stream: 1,
//!     wave: 0,
//!     packets: &[left.as_ref(), right.as_ref()],
//!     contributors: contributors.as_ref(),
//!     rank: 2,
//!     is_root: true,
//!     children: 2,
//!     back_ends: 2,
//! };
//! let mut out = Emitter::new();
//! sum.transform(&wave, &mut out)?;
//! let (_, values) = out.emissions().next().expect("a sum is one packet");
//! assert_eq!(values.array::<i32>(0), Ok(&[31, 42][..]));
//! # Ok::<(), sapwood_filter::FilterError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod accumulate;
mod average;
mod bit_and;
mod bit_or;
mod chain;
mod changes;
mod classes;
mod concatenate;
mod count;
mod equivalence;
mod error;
mod fold;
mod max;
mod min;
mod null;
mod number;
mod rank_columns;
mod registry;
mod rule;
mod sketch;
mod statistics;
mod sum;
mod synchronisation;

pub use chain::Chain;
pub use classes::{CLASS_CONTENT_BYTES_MAX, Class, Classes};
pub use concatenate::CONTRIBUTORS_MAX;
pub use equivalence::{EquivalenceClass, EquivalenceClasses};
pub use error::FilterError;
pub use registry::{FilterSource, FilterSpec, Maker, Registry, ShippedFile};
pub use rule::{Emission, Emitter, Filter, Fold, State, WaveRef, WaveRule};
pub use sketch::{
    AnySketch, Distinct, HeavyHitters, Histogram, HistogramBin, Hitter, Item, ItemSet, Kll,
    PrefixNode, PrefixTree, Quantiles, SET_BYTES_MAX, TopEntry, TopK, TopNumber,
};
pub use statistics::{Moments, Statistics};
pub use synchronisation::{Arrivals, Synchronisation, Verdict};
