//! Records of calls as their rank has written them: what is damaged is told from these.

use sapwood_profile::Function;
use sapwood_trace::{RECORD_WORDS, Record, RecordBounds};

/// Reads a record; none of one that no rank writes: of a kind or a function that is not known, or
/// of a time outside of the bounds.
pub(crate) fn whole_record(words: [u64; RECORD_WORDS], bounds: &RecordBounds) -> Option<Record> {
    let record = Record::decode(words)?;
    let is_whole = match &record {
        Record::Event(event) => Function::of(event.function).is_some() && bounds.hold(event),
        Record::Clock(ticks, ns) => bounds.hold_moment(*ticks, *ns),
    };
    is_whole.then_some(record)
}

#[cfg(test)]
mod tests {
    use sapwood_trace::FileClock;

    use super::*;

    #[test]
    fn a_record_of_an_unknown_function_or_time_is_damaged() {
        const SECOND: u64 = 1_000_000_000;
        let clock = FileClock { scale: 1 << 32, ..FileClock::default() };
        let bounds = RecordBounds::new(clock, 10 * SECOND);
        let is_whole = |words| whole_record(words, &bounds).is_some();
        let (barrier, what) =
            (Function::named("MPI_Barrier").expect("every MPI has it").id, 1 << 16);
        let timing = |function: u32| 5 << 16 | u64::from(function);
        assert!(is_whole([SECOND, timing(barrier), what, 0]));
        assert!(!is_whole([SECOND, timing(65_535), what, 0]) && !is_whole([SECOND, 0, what, 0]));
        assert!(!is_whole([u64::MAX, timing(barrier), what, 0]));
        assert!(!is_whole([SECOND, timing(barrier), 99 << 16, 0]));
        // A moment by both clocks.
        assert!(is_whole([SECOND, SECOND, 8 << 16, 0]));
        assert!(!is_whole([SECOND, u64::MAX, 8 << 16, 0]));
    }
}
