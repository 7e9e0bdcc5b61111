//! The extension module `sapwood._native`: the `sapwood` crate for Python.
//!
//! Each function takes over what Python gives, calls the crate while the interpreter is free for
//! others, and wraps what comes of it; nothing here knows how a network works. [`handle`] is the
//! rule of use: one thread at a time, never in a forked child, nothing after the end. [`encode`]
//! and [`decode`] are the way of values in and out, [`error`] that of errors, and [`filter`] lets
//! Python callables run in the tree. What people import is the package beside it, in
//! python/sapwood: the waiting of asyncio, the exceptions and the types are written there.

mod answer;
mod awaitable;
mod back_end;
mod decode;
mod encode;
mod error;
mod event;
mod file;
mod filter;
mod group;
mod group_call;
mod handle;
mod measure;
mod network;
mod node;
mod ranks;
mod rule;
mod settings;
mod sketch;
mod status;
mod stream;

use pyo3::prelude::*;

/// What Python imports.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::answer::{Answer, Missing, Packet};
    #[pymodule_export]
    use super::back_end::BackEnd;
    #[pymodule_export]
    use super::event::{AttachPoint, Event};
    #[pymodule_export]
    use super::file::FilterFile;
    #[pymodule_export]
    use super::filter::{Wave, filters_at_work};
    #[pymodule_export]
    use super::group::{GroupEntry, GroupMember, make_key};
    #[pymodule_export]
    use super::group_call::{GroupCall, GroupResult, GroupValue};
    #[pymodule_export]
    use super::measure::{filter_calls, round_trips};
    #[pymodule_export]
    use super::network::Network;
    #[pymodule_export]
    use super::node::serve;
    #[pymodule_export]
    use super::ranks::RankSet;
    #[pymodule_export]
    use super::rule::Arrivals;
    #[pymodule_export]
    use super::sketch::{
        Distinct, HeavyHitters, Histogram, HistogramBin, Hitter, ItemSet, Kll, PrefixNode,
        PrefixTree, Quantiles, TopEntry, TopK, read_sketch,
    };
    #[pymodule_export]
    use super::status::{NodeStatus, Status};
    #[pymodule_export]
    use super::stream::Stream;

    #[pymodule_export]
    const FIRST_TAG: i32 = sapwood::FIRST_TAG;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
