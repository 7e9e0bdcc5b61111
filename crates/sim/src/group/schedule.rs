//! Schedules of operations and faults.
