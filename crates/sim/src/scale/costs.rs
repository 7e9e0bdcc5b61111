//! The parameters of the model: LogGP for messages, and four numbers for starting processes.
//!
//! Given in microseconds, kept in whole picoseconds, so that sums are exact and a run is the same
//! on every machine.

use alloc::string::ToString;

use sapwood_topology::LogGp;

use super::ScaleError;

/// Picoseconds of virtual time.
pub(super) type Picoseconds = u64;

/// Picoseconds in a microsecond.
pub(super) const PER_MICROSECOND: f64 = 1e6;

/// Longest time that a parameter may be, in microseconds: an hour.
const COST_US_MAX: f64 = 3.6e9;

/// What it costs to start one process and to make it part of the tree, besides its messages.
///
/// The defaults are rounded from measurements on two shared cores of a virtual machine (2026):
/// `sapwood bench tree --only startup` starts 64 processes one after another in 28 ms, which
/// is some 300 us of the parent's processor and 1 ms until the child runs its own code; one proof
/// of the network's key is one X25519 with a fresh point (37 us) and one with the base point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartCosts {
    /// Processor time of the parent for each child that it starts, in microseconds.
    pub spawn_us: f64,
    /// From then until the child connects, in microseconds; children do this side by side.
    pub ready_us: f64,
    /// Processor time of either side to prove the network's key, in microseconds.
    pub proof_us: f64,
    /// Children of one parent that may have been started without having been welcomed.
    pub at_a_time: u32,
}

impl Default for StartCosts {
    fn default() -> Self {
        Self { spawn_us: 300.0, ready_us: 1000.0, proof_us: 60.0, at_a_time: 32 }
    }
}

/// All costs of a study.
///
/// A message of `b` bytes keeps its sender's processor for `o`; its last byte leaves `(b - 1) G`
/// later; it travels for `L`; its receiver's processor is kept for `o` again. Two sends of one
/// process, or two receives, start at least `max(o, g + (b - 1) G)` apart. A process has one
/// processor: it handles one message at a time, sends what follows from it at once and from left
/// to right, and takes the next message after that. This is the model of `sapwood topology cost`
/// to the letter; there it is a formula, here every message is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    loggp: LogGp,
    start: StartCosts,
}

impl Default for Costs {
    fn default() -> Self {
        Self { loggp: LogGp::LOCAL_SOCKETS, start: StartCosts::default() }
    }
}

impl Costs {
    /// Costs of messages and of starts.
    ///
    /// # Errors
    /// [`ScaleError::Cost`] for a time that is negative, not finite or above an hour, or for no
    /// child at a time.
    pub fn new(loggp: LogGp, start: StartCosts) -> Result<Self, ScaleError> {
        let times = [
            ("latency_us", loggp.latency_us()),
            ("overhead_us", loggp.overhead_us()),
            ("gap_us", loggp.gap_us()),
            ("gap_per_byte_us", loggp.gap_per_byte_us()),
            ("spawn_us", start.spawn_us),
            ("ready_us", start.ready_us),
            ("proof_us", start.proof_us),
        ];
        for (name, value) in times {
            if !(0.0..=COST_US_MAX).contains(&value) {
                return Err(ScaleError::Cost { name, value: value.to_string() });
            }
        }
        if start.at_a_time == 0 {
            return Err(ScaleError::Cost { name: "at_a_time", value: 0.to_string() });
        }
        Ok(Self { loggp, start })
    }

    /// The costs of messages.
    #[must_use]
    pub fn loggp(&self) -> &LogGp {
        &self.loggp
    }

    /// The costs of starts.
    #[must_use]
    pub fn start(&self) -> &StartCosts {
        &self.start
    }

    /// The same, as the event loop wants it.
    pub(super) fn exact(&self) -> Exact {
        Exact {
            latency: whole(self.loggp.latency_us()),
            overhead: whole(self.loggp.overhead_us()),
            gap: whole(self.loggp.gap_us()),
            byte: self.loggp.gap_per_byte_us() * PER_MICROSECOND,
            spawn: whole(self.start.spawn_us),
            ready: whole(self.start.ready_us),
            proof: whole(self.start.proof_us),
            at_a_time: self.start.at_a_time,
        }
    }
}

fn whole(microseconds: f64) -> Picoseconds {
    // Not negative and at most an hour, so nothing is cut off but fractions of a picosecond.
    (microseconds * PER_MICROSECOND + 0.5) as Picoseconds
}

/// The costs in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) latency: Picoseconds,
    pub(super) overhead: Picoseconds,
    gap: Picoseconds,
    /// Per byte; may be less than one.
    byte: f64,
    pub(super) spawn: Picoseconds,
    pub(super) ready: Picoseconds,
    pub(super) proof: Picoseconds,
    pub(super) at_a_time: u32,
}

impl Exact {
    /// From the first byte of a message to its last.
    pub(super) fn bytes(&self, bytes: usize) -> Picoseconds {
        (bytes.saturating_sub(1) as f64 * self.byte + 0.5) as Picoseconds
    }

    /// Least distance between the starts of two sends, or two receives, of one process.
    pub(super) fn interval(&self, bytes: usize) -> Picoseconds {
        self.overhead.max(self.gap + self.bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_no_costs_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            let start = StartCosts { ready_us: bad, ..StartCosts::default() };
            assert!(Costs::new(LogGp::LOCAL_SOCKETS, start).is_err());
        }
        let start = StartCosts { at_a_time: 0, ..StartCosts::default() };
        assert!(Costs::new(LogGp::LOCAL_SOCKETS, start).is_err());
    }

    #[test]
    fn a_message_of_one_byte_takes_no_time_per_byte() {
        let exact = Costs::default().exact();
        assert_eq!((exact.bytes(0), exact.bytes(1), exact.bytes(3)), (0, 0, 1000));
        assert_eq!(exact.interval(101), 1_500_000 + 50_000);
    }
}
