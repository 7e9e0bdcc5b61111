//! A tree under load whose inner processes fail, one after another.
//!
//! Owns the processes of one such tree by rank, the flow of sums through it, and one fault: which
//! process it hits, and how long it takes until a wave that the failed process had not passed on is
//! there with every back-end in it. A process whose parent is killed is below no process of this
//! tree any more, so the processes are looked for once, at the start, and at the end each of them
//! must be gone.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sapwood::{Event, Network, Rank, Recovery, Stream, Wave};
use sapwood_random::Random;

use super::oracle::{FLOW, Fates, Oracle};
use super::plan::Transport;
use super::processes::{descendants, is_alive, is_communication_process, rank_of};
use super::tree::{builder, leaf_program};
use sapwood_command_line::exit::Failure;

/// A tree that is not whole again by then is broken.
const REPAIR_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of the flow under way per link: enough to keep all processes busy. With more, the waves
/// that queue up above the failed process would be in its time as well.
const WINDOW_BYTES: u32 = 16 << 10;
/// How long the flow goes on before a fault.
const SETTLE: Duration = Duration::from_millis(50);
/// How long waves that lack a back-end may still be made whole at the end.
const DRAIN_DEADLINE: Duration = Duration::from_secs(15);
/// How long all processes may take to be gone.
const ENDING_DEADLINE: Duration = Duration::from_secs(10);

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is killed, which closes its connections.
    Kill,
    /// It is stopped, which leaves them open, and resumed when the tree is whole again.
    Stop,
}

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kills",
            Self::Stop => "stops",
        }
    }
}

/// What tree to open.
pub(super) struct Terms {
    pub shape: sapwood::Shape,
    pub transport: Transport,
    /// After how much silence a process counts as gone, if it is not the default.
    pub silence: Option<Duration>,
}

/// How a fault was repaired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    /// From the fault to the first answer of all back-ends in a wave that it had held up.
    pub whole_again: Duration,
    /// The longest time meanwhile in which no answer of all came.
    pub longest_gap: Duration,
}

/// The tree.
pub(super) struct FailingTree {
    // Before the network, which it needs when it is dropped.
    stream: Stream,
    network: Network,
    oracle: Oracle,
    /// Inner processes that have not failed.
    unharmed: BTreeMap<Rank, u32>,
    inner: usize,
    /// All processes, with their ranks.
    processes: Vec<(u32, Rank)>,
    /// How often a back-end was said to be lost, though all of them live.
    pub(super) false_losses: u64,
}

impl FailingTree {
    /// Opens it and lets its flow begin.
    pub(super) fn open(terms: &Terms) -> Result<Self, Failure> {
        let mut recovery = Recovery { is_on: true, ..Recovery::default() };
        if let Some(silence) = terms.silence {
            recovery.silence = silence;
        }
        let before = descendants()?;
        let builder = builder(&terms.shape, terms.transport)?.recovery(recovery);
        let network = builder.back_end(leaf_program()?).open()?;
        let mut processes = Vec::new();
        let mut unharmed = BTreeMap::new();
        for pid in descendants()?.into_iter().filter(|pid| !before.contains(pid)) {
            let Some(rank) = rank_of(pid) else { continue };
            processes.push((pid, rank));
            if is_communication_process(pid) {
                unharmed.insert(rank, pid);
            }
        }
        let back_ends = terms.shape.back_end_count();
        let mut stream =
            network.stream(&network.everyone()).up("sum").window_bytes(WINDOW_BYTES).open()?;
        stream.broadcast(FLOW, u64::from(back_ends))?;
        let inner = unharmed.len();
        let oracle = Oracle::new(back_ends as usize);
        Ok(Self { stream, network, oracle, unharmed, inner, processes, false_losses: 0 })
    }

    /// Whether half of its inner processes have failed.
    pub(super) fn is_half_gone(&self) -> bool {
        self.unharmed.len() * 2 <= self.inner
    }

    /// Injects a fault into one inner process and waits until the tree is whole again.
    pub(super) fn inject(&mut self, fault: Fault, random: &mut Random) -> Result<Repair, Failure> {
        self.flow_for(SETTLE)?;
        while self.network.next_event().is_some() {}
        let at = random.index(self.unharmed.len());
        let victim = self.unharmed.iter().nth(at).map(|(rank, pid)| (*rank, *pid));
        let Some((rank, pid)) = victim else {
            return Err(Failure::own(&"no inner process is left"));
        };
        self.unharmed.remove(&rank);
        let begin = Instant::now();
        signal(pid, rank, if fault == Fault::Kill { Signal::KILL } else { Signal::STOP })?;
        let repair = self.until_whole(rank, begin);
        if fault == Fault::Stop {
            // Whatever it still wants to say must count for nothing.
            signal(pid, rank, Signal::CONT)?;
        }
        repair
    }

    /// Receives until a wave that was held up is there with all.
    fn until_whole(&mut self, rank: Rank, begin: Instant) -> Result<Repair, Failure> {
        // When which wave was there with all, and the first one that the failed process had not
        // ended; the news of it may come later than the wave.
        let mut complete: Vec<(Wave, Instant)> = Vec::new();
        let mut first_held: Option<Wave> = None;
        let mut last_loss = String::new();
        let id = self.stream.id();
        loop {
            if begin.elapsed() > REPAIR_DEADLINE {
                return Err(Failure::own(&format!(
                    "rank {rank} failed, and {} s later the tree is not whole again{last_loss}",
                    REPAIR_DEADLINE.as_secs()
                )));
            }
            match self.stream.recv_timeout(REPAIR_DEADLINE) {
                Ok(answer) => {
                    if self.oracle.look(&answer)? {
                        complete.push((answer.wave, Instant::now()));
                    }
                }
                Err(sapwood::Error::Timeout { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            while let Some(event) = self.network.next_event() {
                match event {
                    Event::Repaired { rank: gone, waves, .. } if gone == rank => {
                        let held = waves.iter().find(|waves| waves.stream == id);
                        first_held = Some(held.map_or(0, |waves| waves.first));
                    }
                    // All back-ends live. Whether one is out all the same shows in the waves.
                    Event::Lost { back_ends, reason, .. } if !back_ends.is_empty() => {
                        self.false_losses += 1;
                        last_loss = format!("; {back_ends} said to be lost: {reason}");
                    }
                    _ => {}
                }
            }
            let Some(first) = first_held else { continue };
            let whole = complete.iter().find(|(wave, _)| *wave >= first);
            if let Some((_, at)) = whole {
                let times = complete.iter().map(|(_, at)| *at);
                return Ok(Repair {
                    whole_again: *at - begin,
                    longest_gap: longest_gap(begin, times),
                });
            }
        }
    }

    fn flow_for(&mut self, time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            match self.stream.recv_timeout(left) {
                Ok(answer) => self.oracle.look(&answer).map(drop)?,
                Err(sapwood::Error::Timeout { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends the tree, sees that nothing of it is left, and gives the account of its waves.
    pub(super) fn close(mut self) -> Result<Fates, Failure> {
        self.flow_for(SETTLE)?;
        let until = Instant::now() + DRAIN_DEADLINE;
        while self.oracle.has_open_waves() && Instant::now() < until {
            self.flow_for(SETTLE)?;
        }
        self.stream.close()?;
        self.network.close()?;
        let until = Instant::now() + ENDING_DEADLINE;
        let is_left = |(pid, rank): &&(u32, Rank)| is_alive(*pid) && rank_of(*pid) == Some(*rank);
        while self.processes.iter().any(|process| is_left(&process)) {
            if Instant::now() > until {
                let left: Vec<_> = self.processes.iter().filter(is_left).copied().collect();
                for (pid, rank) in &left {
                    signal(*pid, *rank, Signal::KILL)?;
                }
                let ranks: Vec<Rank> = left.iter().map(|(_, rank)| *rank).collect();
                return Err(Failure::own(&format!(
                    "the network has ended, and {} s later ranks {ranks:?} still ran",
                    ENDING_DEADLINE.as_secs()
                )));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(self.oracle.end())
    }
}

/// The longest time between two moments in a row, the first of which follows on `begin`.
fn longest_gap(begin: Instant, moments: impl Iterator<Item = Instant>) -> Duration {
    let mut longest = Duration::ZERO;
    let mut last = begin;
    for moment in moments {
        longest = longest.max(moment - last);
        last = moment;
    }
    longest
}

/// Sends a signal to the process of a rank, if the number is still that process's.
fn signal(pid: u32, rank: Rank, signal: Signal) -> Result<(), Failure> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(raw) = raw.filter(|_| rank_of(pid) == Some(rank)) else { return Ok(()) };
    match kill_process(raw, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(Failure::own(&format!("cannot signal process {pid}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_may_be_the_one_before_the_first() {
        let begin = Instant::now();
        let after = |milliseconds| begin + Duration::from_millis(milliseconds);
        let gap = longest_gap(begin, [after(30), after(35), after(45)].into_iter());
        assert_eq!(gap, Duration::from_millis(30));
    }
}
