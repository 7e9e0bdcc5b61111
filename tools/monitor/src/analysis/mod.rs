//! Histograms, rank classes, outliers and values of ranks, round by round, through the tree.
//!
//! Streams of their own carry them, so that rounds go on as they are whatever becomes of these. The
//! front-end's side is [`Inquiry`], the leaf's [`Moments`]; between them are [`Question`]s, and the
//! filters of `sapwood-profile`. Neither side knows where profiles come from, so that synthetic
//! ranks can stand in for real ones.

mod arguments;
mod inquiry;
mod leaf;
mod line;
mod question;
pub mod scheme;
mod selection;

pub use arguments::Arguments;
pub use inquiry::{Inquiry, Wishes};
pub use leaf::{MOMENTS_MAX, Moments};
pub use question::{Head, Question};
pub use selection::{HISTOGRAMS_MAX, HistogramWish, Selected, Selection};
