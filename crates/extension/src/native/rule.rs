//! One instance of a synchronisation rule in a shared object.

use std::sync::Arc;
use std::time::Duration;

use sapwood_filter::{Arrivals, Emitter, FilterError, Synchronisation, Verdict};
use sapwood_packet::{ValuesRef, nanoseconds};

use super::emission::Emission;
use super::filter::{NativeInstance, failed};
use super::interface::RawArrivals;
use super::library::Library;

/// A synchronisation rule in a shared object.
pub(super) struct NativeRule {
    instance: NativeInstance,
}

// SAFETY: the header demands that an instance can be used by one thread after another.
unsafe impl Send for NativeRule {}

impl NativeRule {
    pub(super) fn new(
        library: Arc<Library>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        let (name, functions) = library.find(name)?;
        if functions.decide.is_none() {
            return Err(failed(name, "is a filter and no synchronisation rule: it has no decide"));
        }
        let name = name.to_string();
        Ok(Self { instance: NativeInstance::create(library, &name, parameters)? })
    }
}

impl Synchronisation for NativeRule {
    fn decide(&mut self, arrivals: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        let NativeInstance { name, functions, creation } = &mut self.instance;
        let Some(decide) = functions.decide else { return Err(failed(name, "decides nothing")) };
        let state = creation.state(name)?;
        let contributors = arrivals.contributors.ranges();
        let shown = RawArrivals {
            contributors: contributors.as_ptr(),
            wave: arrivals.wave,
            elapsed_ns: nanoseconds(arrivals.elapsed),
            contributor_ranges: contributors.len() as u32,
            stream: arrivals.stream,
            rank: arrivals.rank,
            is_root: u32::from(arrivals.is_root),
            arrived: arrivals.arrived,
            expected: arrivals.expected,
            back_ends: arrivals.back_ends,
            reserved: 0,
        };
        let mut wait_ns = i64::MAX;
        let mut emitter = Emitter::new();
        let mut out = Emission::into(&mut emitter);
        // SAFETY: the header's contract; all that is pointed to lives until the call returns.
        let code = unsafe { decide(state, &raw const shown, &raw mut wait_ns, out.as_raw()) };
        out.outcome(name, code)?;
        Ok(verdict_of(wait_ns))
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

/// What a rule's time means.
pub(crate) fn verdict_of(wait_ns: i64) -> Verdict {
    match u64::try_from(wait_ns) {
        Ok(0) | Err(_) => Verdict::Go,
        Ok(_) if wait_ns == i64::MAX => Verdict::Wait,
        Ok(nanoseconds) => Verdict::WaitFor(Duration::from_nanos(nanoseconds)),
    }
}
