//! Causes of ends in words.

use sapwood_launch::Signal;
use sapwood_profile::Cause;

pub(super) fn cause_text(cause: Cause) -> String {
    match cause {
        Cause::Signal(number) => signal_text(number),
        cause => cause.to_string(),
    }
}

pub(super) fn signal_text(number: i32) -> String {
    let named = [
        (Signal::HUP, "hang-up"),
        (Signal::INT, "interrupt"),
        (Signal::QUIT, "quit"),
        (Signal::ILL, "illegal instruction"),
        (Signal::ABORT, "abort"),
        (Signal::BUS, "bus error"),
        (Signal::FPE, "arithmetic fault"),
        (Signal::KILL, "killed"),
        (Signal::SEGV, "segmentation fault"),
        (Signal::TERM, "terminated"),
    ];
    let name = named.iter().find(|(signal, _)| signal.as_raw() == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| format!("signal {number} ({name})"))
}
