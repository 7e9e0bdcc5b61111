//! Huge packets in a tree of their own, beside the one that is measured.
//!
//! Owns a thread with that tree. Its processes make, send and sum what disturbers do, at whatever
//! rate they reach, and share nothing with the others but the machine: what these lose beside it
//! they lose to the processor and the memory, and not to a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::disturbed_tree::Large;
use super::plan::Transport;
use super::scale::DEADLINE;
use super::tree::{builder, leaf_program};
use sapwood_command_line::exit::Failure;

/// As many back-ends, and communication processes, as the disturbers have.
const FAN_OUTS: [u32; 2] = [4, 1];

/// Huge packets that come until they are told to end.
pub(super) struct Beside {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<f64, Failure>>,
}

impl Beside {
    /// Starts the tree, and waits for the first packet.
    pub(super) fn begin(transport: Transport, bytes: u64) -> Result<Self, Failure> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (sender, first) = channel();
        let seen = is_over.clone();
        let thread = std::thread::spawn(move || run(transport, bytes, &seen, &sender));
        let beside = Self { is_over, thread };
        // If the thread has failed, the sender is gone.
        match first.recv_timeout(DEADLINE) {
            Ok(()) => Ok(beside),
            Err(_) => Err(beside.end().err().unwrap_or_else(|| Failure::own(&NO_PACKET))),
        }
    }

    /// Ends it; gives how many MiB per second came.
    pub(super) fn end(self) -> Result<f64, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(Failure::own(&"the other tree's thread died")))
    }
}

const NO_PACKET: &str = "no huge packet comes in the other tree";

fn run(
    transport: Transport,
    bytes: u64,
    is_over: &AtomicBool,
    first: &Sender<()>,
) -> Result<f64, Failure> {
    let shape = sapwood::Shape::levels(&FAN_OUTS).map_err(Failure::usage)?;
    let network = builder(&shape, transport)?.back_end(leaf_program()?).open()?;
    let everybody = network.everyone();
    let members = everybody.size();
    let mut stream = network.stream(&everybody).up("sum").open()?;
    let mut large = Large::new(&everybody, bytes);
    let mut begun = Instant::now();
    for wave in 0.. {
        large.ask(&mut stream)?;
        large.came(stream.recv_timeout(DEADLINE)?);
        if wave == 0 {
            begun = Instant::now();
            // The other end no longer waits if that took too long.
            let _ = first.send(());
        } else if is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    let rate = large.mib_per_s(members, begun.elapsed());
    large.check()?;
    stream.close()?;
    network.close()?;
    Ok(rate)
}
