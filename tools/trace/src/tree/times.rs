//! Times as people read them.

/// A time in nanoseconds.
pub(crate) fn time(ns: u64) -> String {
    let micros = ns as f64 / 1e3;
    match micros {
        ..10.0 => format!("{micros:.1} us"),
        ..1000.0 => format!("{micros:.0} us"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}
