//! The same kinds of faults in 1,000 simulated ranks: what their leaves would have read is put
//! together by the analysis of `sapwood trace why` itself, and its answer judged by the same rule.
//!
//! Owns what each fault leaves behind in rings of events and in calls in progress. There is no
//! process, no shared memory and no tree here: leaves encode what they have read, and the answers
//! are merged in one step.

use std::time::Duration;

use sapwood_command_line::exit::Failure;
use sapwood_profile::Function;
use sapwood_random::{Random, mix};
use sapwood_report::nanoseconds;
use sapwood_report::why::{Parts, Why};
use sapwood_trace::{
    Beside, CallKind, Circumstances, Event, EventKind, FileClock, Findings, Gathered, HostClock,
    Ledger, Observer, Pattern, Posture, Presence, Seat, Side, Space, Standing, Standpoint, Verdict,
};
use serde_json::Value;

use super::cases::FaultKind;
use super::judgement::{Accused, accused};
use super::trial::DEADLINE;

/// Ranks.
pub(super) const RANKS: u32 = 1_000;
/// Ranks whose rings one leaf reads.
const RANKS_PER_LEAF: u32 = 32;
/// Identity of the communicator of all.
const WORLD: u64 = 77;
/// Collectives and messages of each rank.
const ROUNDS: u32 = 20;
const MS: u64 = 1_000_000;
/// A round, the most by which ranks come apart in it, and by how much a slow one is later.
const ROUND_NS: u64 = 100 * MS;
const JITTER_NS: u64 = 2 * MS;
const LATE_NS: u64 = 30 * MS;
/// What a message takes over a link, and over a slow one; the class of its size.
const TRANSFER_NS: u64 = MS;
const SLOW_TRANSFER_NS: u64 = 30 * MS;
const SIZE_CLASS: u32 = 18;
/// The tag of a message; of a collective the bytes of one element, and 1.
const TAG: i32 = ELEMENT + 1;
const ELEMENT: i32 = 8;

/// The ranks that the analysis accuses where one rank has a fault; none has without a kind.
fn simulate(kind: Option<FaultKind>, rank: u32, random: &mut Random) -> Result<Accused, Failure> {
    let goes_on = matches!(
        kind,
        None | Some(FaultKind::SlowCompute | FaultKind::SlowLink | FaultKind::OtherCount)
    );
    let standing = if goes_on { together()? } else { standstill(kind, rank, random)? };
    let findings = if goes_on { rounds(kind, rank, random)? } else { Findings::default() };
    let standing = through_leaves(&standing)?;
    let elapsed = Duration::from_nanos(ROUND_NS) * ROUNDS;
    let verdict = Verdict::of(&standing, nanoseconds(DEADLINE) / 2);
    let why = Why::of(&Parts {
        program: "simulated",
        elapsed,
        has_ended: false,
        standing: Some(&standing),
        verdict: verdict.as_ref().map(|verdict| (elapsed, verdict, &standing)),
        stacks: None,
        passed: 0,
        findings: Some((elapsed, &findings)),
        is_recording: true,
    });
    let why: Value = serde_json::to_value(why).map_err(|error| Failure::own(&error))?;
    Ok(accused(&why))
}

fn function(name: &str) -> Result<u32, Failure> {
    let found = Function::named(name).map(|function| function.id);
    found.ok_or_else(|| Failure::own(&format!("no function {name}")))
}

/// All ranks in a reduction, since just now.
fn together() -> Result<Standing, Failure> {
    let mut job = Standing { world_size: RANKS, ..Standing::default() };
    job.add_name(WORLD, "MPI_COMM_WORLD".into());
    let function = function("MPI_Allreduce")?;
    let call =
        Standpoint { function, kind: CallKind::Collective, space: WORLD, ..Standpoint::default() };
    for rank in 0..RANKS {
        let for_ns = MS;
        job.postures.insert(rank, Posture { call: Some(call), for_ns, ..Posture::default() });
        let seat = Seat { rank, size: RANKS, made: ROUNDS, ..Seat::default() };
        job.seats.insert((WORLD, rank), Seat { last_function: function, ..seat });
    }
    Ok(job)
}

/// Ranks that wait for longer than the deadline because of what one does or has done.
fn standstill(kind: Option<FaultKind>, odd: u32, random: &mut Random) -> Result<Standing, Failure> {
    let mut job = together()?;
    let long_ns = nanoseconds(DEADLINE);
    job.postures.values_mut().for_each(|one| one.for_ns = long_ns + random.below(JITTER_NS));
    if kind == Some(FaultKind::OtherRoot) {
        other_root(&mut job, odd, random)?;
        return Ok(job);
    }
    let (barrier, probe) = (function("MPI_Barrier")?, function("MPI_Iprobe")?);
    let Some(one) = job.postures.get_mut(&odd) else { return Ok(job) };
    match kind {
        Some(FaultKind::OtherOperation) => {
            one.call = one.call.map(|call| Standpoint { function: barrier, ..call });
        }
        Some(FaultKind::Stopped | FaultKind::Killed) => {
            let is_stopped = kind == Some(FaultKind::Stopped);
            one.presence = if is_stopped { Presence::Stopped } else { Presence::Lost };
            // A signal comes at any time: in a call, and between two.
            one.call = one.call.filter(|_| random.one_in(2));
        }
        Some(FaultKind::PollingLoop) => {
            (one.call, one.presence) = (None, Presence::Computing);
            (one.is_polling, one.polled, one.polls) = (true, probe, 1_000);
        }
        _ => (one.call, one.presence) = (None, Presence::Computing),
    }
    Ok(job)
}

/// The rank that gave another root took itself for done and is in the next collective; of the
/// others those wait in the broadcast whose part came over a rank that waits.
fn other_root(job: &mut Standing, odd: u32, random: &mut Random) -> Result<(), Failure> {
    let broadcast = function("MPI_Bcast")?;
    let root = 0;
    let own_root = if odd == root { 1 } else { odd };
    for rank in 0..RANKS {
        let is_there = rank != root && rank != odd && random.one_in(2);
        let given = if rank == odd { own_root } else { root };
        if let Some(seat) = job.seats.get_mut(&(WORLD, rank))
            && !is_there
        {
            (seat.made, seat.last_function, seat.last_root) = (ROUNDS + 1, broadcast, Some(given));
        }
        if let Some(one) = job.postures.get_mut(&rank)
            && is_there
        {
            let (side, pattern) = (Side::Rank(root), Pattern::FromRoot);
            let call = one.call.unwrap_or_default();
            one.call = Some(Standpoint { function: broadcast, side, pattern, ..call });
        }
    }
    Ok(())
}

/// Each leaf's part as it travels, put together again.
fn through_leaves(job: &Standing) -> Result<Standing, Failure> {
    let mut all = Standing::default();
    for first in (0..RANKS).step_by(RANKS_PER_LEAF as usize) {
        let ranks = first..(first + RANKS_PER_LEAF).min(RANKS);
        let part = Standing {
            world_size: job.world_size,
            postures: job.postures.range(ranks.clone()).map(|(rank, one)| (*rank, *one)).collect(),
            seats: job
                .seats
                .iter()
                .filter(|((_, rank), _)| ranks.contains(rank))
                .map(|(key, seat)| (*key, *seat))
                .collect(),
            names: job.names.clone(),
            ..Standing::default()
        };
        let part = Standing::decode(part.encode().as_ref());
        all.merge(part.map_err(|error| Failure::own(&error))?);
    }
    Ok(all)
}

/// Rounds of a reduction and of a message to the next rank, as the rings of all have them.
fn rounds(kind: Option<FaultKind>, odd: u32, random: &mut Random) -> Result<Findings, Failure> {
    let clock = HostClock::shared(FileClock { ticks: 0, ns: 0, scale: 1 << 32, is_cycles: true });
    let [reduce, send, receive] =
        [function("MPI_Allreduce")?, function("MPI_Send")?, function("MPI_Recv")?];
    let leaves = RANKS.div_ceil(RANKS_PER_LEAF) as usize;
    let mut observers = vec![Observer::default(); leaves];
    let mut ledger = Ledger::default();
    for round in 0..ROUNDS {
        let begin = u64::from(round + 1) * ROUND_NS;
        let mut come: Vec<u64> = (0..RANKS).map(|_| begin + random.below(JITTER_NS)).collect();
        if kind == Some(FaultKind::SlowCompute)
            && let Some(mine) = come.get_mut(odd as usize)
        {
            *mine += LATE_NS;
        }
        let last = come.iter().copied().max().unwrap_or(begin);
        let exchange = last + JITTER_NS;
        for rank in 0..RANKS {
            let observer = &mut observers[(rank / RANKS_PER_LEAF) as usize];
            // MPI takes no notice here: what was given is known whether or not it does.
            let gives_more =
                kind == Some(FaultKind::OtherCount) && rank == odd && round == ROUNDS / 2;
            let mut note = |function: u32, kind: EventKind, time: u64, span: u64, peer: u32| {
                let (space, size) = (0, SIZE_CLASS as _);
                let sequence = round + 1;
                let peer = if kind == EventKind::Collective { -1 } else { peer.cast_signed() };
                let members = if kind == EventKind::Send { size } else { 1 };
                let is_other = gives_more && kind == EventKind::Collective;
                let tag = TAG + if is_other { ELEMENT } else { 0 };
                let event =
                    Event { time, span, function, space, kind, members, sequence, peer, tag };
                let space = Space { identity: WORLD, size: RANKS, rank, ..Space::default() };
                let about = Circumstances {
                    rank,
                    space,
                    event: function << 8,
                    procedure: function,
                    pattern: Pattern::All,
                    beside: Beside::Nothing,
                };
                observer.observe(&event, &about, &clock);
            };
            let time = come.get(rank as usize).copied().unwrap_or(begin);
            note(reduce, EventKind::Collective, time, last - time + MS, 0);
            let (before, next) = ((rank + RANKS - 1) % RANKS, (rank + 1) % RANKS);
            let sent = exchange + random.below(JITTER_NS);
            note(send, EventKind::Send, sent, MS / 10, next);
            let is_slow = kind == Some(FaultKind::SlowLink) && before == odd;
            let span = JITTER_NS + if is_slow { SLOW_TRANSFER_NS } else { TRANSFER_NS };
            note(receive, EventKind::Receive, exchange, span, before);
        }
        collect(&mut observers, &mut ledger, &clock);
    }
    // Those that the last round has settled are told to the leaves, whose answers come next.
    collect(&mut observers, &mut ledger, &clock);
    Ok(ledger.close())
}

fn collect(observers: &mut [Observer], ledger: &mut Ledger, clock: &HostClock) {
    let mut all = Gathered::default();
    observers.iter_mut().for_each(|observer| all.merge(observer.take()));
    ledger.absorb(all);
    for settled in ledger.take_settled(usize::MAX) {
        observers.iter_mut().for_each(|observer| observer.settle(&settled, clock));
    }
}

/// One trial.
pub(super) struct SimulatedTrial {
    pub(super) number: u32,
    /// The rank with the fault.
    pub(super) rank: u32,
    pub(super) accused: Accused,
}

impl SimulatedTrial {
    /// The trial of this number of a kind; the rank is drawn from the seed.
    pub(super) fn make(kind: Option<FaultKind>, seed: u64, number: u32) -> Result<Self, Failure> {
        let place = kind.map_or(0, |kind| kind as u64 + 1) << 32;
        let mut random = Random::new(mix(seed) ^ mix(place | u64::from(number)));
        let rank = u32::try_from(random.below(u64::from(RANKS))).unwrap_or(0);
        let accused = simulate(kind, rank, &mut random)?;
        Ok(Self { number, rank, accused })
    }

    /// Whether exactly the rank with the fault is accused.
    pub(super) fn is_right(&self) -> bool {
        self.accused.is_only(self.rank)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn of_a_thousand_ranks_the_one_with_a_fault_is_named() {
        for &kind in FaultKind::value_variants() {
            for number in 0..2 {
                let trial = SimulatedTrial::make(Some(kind), 7, number).expect("an answer");
                let named = trial.accused.text();
                assert!(trial.is_right(), "{kind:?} in {}: {named}", trial.rank);
            }
        }
    }

    #[test]
    fn a_thousand_ranks_without_a_fault_are_not_accused() {
        for number in 0..2 {
            let trial = SimulatedTrial::make(None, 7, number).expect("an answer");
            assert_eq!(trial.accused, Accused::default());
        }
    }
}
