//! Times as packets, tables and pages hold them.

use core::time::Duration;

/// A time in whole nanoseconds; the largest number for one that is longer.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_has_no_room_is_the_longest() {
        assert_eq!(nanoseconds(Duration::from_micros(3)), 3_000);
        assert_eq!(nanoseconds(Duration::from_nanos(u64::MAX)), u64::MAX);
        assert_eq!(nanoseconds(Duration::MAX), u64::MAX);
    }
}
