//! One network in the storm, from its front-end: requests go out at a steady rate, every answer
//! meets the oracle, and at the end everything must be accounted for.
//!
//! Owns the course of one network: open, inject faults, drain, account, close. What is done to it
//! is the business of `faults`, what an answer must be that of `ledger`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sapwood::{Answer, Error, Event, Network, Program, Rank, RankSet, Stream, WaveRule};

use super::back_end::{ACCOUNT_NUMBERS, BACK_END, Request};
use super::contribution::{Kind, TAG};
use super::faults::{FaultInjector, Injected, Limits};
use super::ledger::{Counts, Ledger};
use super::members::{self, Member};
use super::plan::Plan;
use sapwood_command_line::exit::Failure;

/// No stream may be without an answer for this time: much longer than any outage.
const STALL_LIMIT: Duration = Duration::from_secs(20);

/// After the last fault, all contributions of the survivors must come in this time.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// The accounts of the survivors must come in this time.
const ACCOUNT_LIMIT: Duration = Duration::from_secs(15);

/// All processes must have ended in this time after the network was closed.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The network may tell of this number of events for each fault, on top of those of its start and
/// end.
const EVENTS_PER_FAULT: u64 = 200;
const EVENTS_AT_LEAST: u64 = 1000;

/// How long a lost back-end may be missing from large waves: until its place is given up, and the
/// requests before that are answered.
const LOSS_LIMIT: Duration = Duration::from_secs(15);

/// How long the network is let work before everything is looked at again.
const TURN: Duration = Duration::from_millis(5);

/// What one network has shown.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub injected: Vec<Injected>,
    pub requests: u64,
    pub counts: [Counts; Kind::ALL.len()],
    pub back_ends_lost: u64,
    pub events: BTreeMap<&'static str, u64>,
    /// From the news that a communication process is gone to the news that its place is taken.
    pub repairs: Vec<Duration>,
    /// What went against the rules, in words; beyond some, it is only counted in `counts`.
    pub violations: Vec<String>,
}

/// One network.
pub(super) struct FrontEnd<'a> {
    // Streams before the network, which they need when they are dropped.
    streams: Vec<Stream>,
    accounts: Stream,
    network: Network,
    plan: &'a Plan,
    members: Arc<Vec<Member>>,
    ledgers: Vec<Ledger>,
    answered: Vec<Instant>,
    /// Communication processes that are gone and whose children have not all been taken in.
    broken: BTreeMap<Rank, Instant>,
    began: Instant,
    /// When a back-end was lost, or killed, last.
    lost: Option<Instant>,
    /// Back-ends that were killed, or lost without recovery: they lack in all later waves.
    gone: RankSet,
    outcome: Outcome,
}

impl<'a> FrontEnd<'a> {
    /// Starts a network and waits until it stands.
    pub(super) fn open(plan: &'a Plan) -> Result<Self, Failure> {
        let own = std::env::current_exe()
            .map_err(|error| Failure::own(&format!("cannot find this program's file: {error}")))?;
        let program = plan.bed.as_ref().map_or(&own, |bed| &bed.on_host);
        let mut builder = Network::builder(plan.topology.clone())
            .back_end(Program::new(program).argument(BACK_END).binds_itself())
            .node_program(program)
            .transport(plan.transport)
            .recovery(plan.recovery);
        if let Some(bed) = &plan.bed {
            builder = builder.interface(bed.interface);
        }
        let network = builder.open()?;
        let members = members::find()?;
        let expected = plan.topology.started_count() as usize;
        if members.len() != expected {
            let text = format!("{} processes were found, not {expected}", members.len());
            return Err(Failure::own(&text));
        }
        let everyone = network.everyone();
        let open = |kind: &Kind| -> Result<Stream, Error> {
            network.stream(&everyone).up(kind.filter()).wave(kind.wave_rule()).open()
        };
        let streams = Kind::ALL.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let limit = u32::try_from(ACCOUNT_LIMIT.as_millis() / 2).unwrap_or(u32::MAX);
        let rule = WaveRule::Timeout { milliseconds: limit };
        let accounts = network.stream(&everyone).up("concatenate").wave(rule).open()?;
        let ledger = |kind: &Kind| Ledger::new(*kind, everyone.ranks().clone());
        Ok(Self {
            streams,
            accounts,
            network,
            plan,
            members: Arc::new(members),
            ledgers: Kind::ALL.iter().map(ledger).collect(),
            answered: vec![Instant::now(); Kind::ALL.len()],
            broken: BTreeMap::new(),
            began: Instant::now(),
            lost: None,
            gone: RankSet::new(),
            outcome: Outcome::default(),
        })
    }

    /// Weathers the storm until that time, or until too few are left, and settles accounts.
    pub(super) fn weather(mut self, seed: u64, until: Instant) -> Result<Outcome, Failure> {
        let limits = Limits {
            faults: self.plan.faults.clone(),
            testbed: self.plan.bed.as_ref().map(|bed| bed.script.clone()),
            seed,
            first_communication: self.plan.topology.back_end_count(),
        };
        let injector = FaultInjector::begin(Arc::clone(&self.members), limits);
        let driven = self.drive(&injector, until);
        let last = injector.end()?;
        last.into_iter().for_each(|fault| self.note(fault));
        driven?;
        self.drain()?;
        self.settle()?;
        self.close()
    }

    fn drive(&mut self, injector: &FaultInjector, until: Instant) -> Result<(), Failure> {
        let mut next = Instant::now();
        while Instant::now() < until && !injector.is_over() {
            injector.beat();
            if next <= Instant::now() {
                self.request()?;
                next = (next + self.plan.period).max(Instant::now());
            }
            self.turn(TURN.min(next.saturating_duration_since(Instant::now())))?;
            while let Ok(fault) = injector.injected.try_recv() {
                self.note(fault);
            }
            if self.is_stalled() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One request on each stream.
    fn request(&mut self) -> Result<(), Failure> {
        let requests = self.outcome.requests;
        for (kind, stream) in self.streams.iter_mut().enumerate() {
            let per_wave = Kind::ALL[kind].requests_per_wave();
            let number = requests / per_wave;
            if !requests.is_multiple_of(per_wave) {
                continue;
            }
            match stream.broadcast(TAG, Request::Wave { kind, number }.values()) {
                Ok(()) | Err(Error::NoMemberLeft { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.outcome.requests += 1;
        Ok(self.network.flush()?)
    }

    /// Lets the network work, and checks what has come.
    fn turn(&mut self, time: Duration) -> Result<(), Failure> {
        self.network.turn(time)?;
        for kind in 0..self.streams.len() {
            loop {
                match self.streams[kind].try_recv() {
                    Ok(Some(answer)) => {
                        // The loss that an answer lacks ranks for may have come in the same turn.
                        self.take_events();
                        self.enter(kind, &answer);
                    }
                    Ok(None) => break,
                    Err(Error::NoMemberLeft { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.take_events();
        Ok(())
    }

    fn take_events(&mut self) {
        while let Some(event) = self.network.next_event() {
            self.saw(&event);
        }
    }

    fn enter(&mut self, kind: usize, answer: &Answer) {
        let has_lost = self.lost.is_some_and(|at| at.elapsed() < LOSS_LIMIT);
        self.ledgers[kind].enter(answer, has_lost, &self.gone);
        self.answered[kind] = Instant::now();
    }

    fn saw(&mut self, event: &Event) {
        let name = match event {
            Event::Lost { back_ends, .. } => {
                self.lost = Some(Instant::now());
                self.outcome.back_ends_lost += back_ends.len();
                if !self.plan.recovery.is_on {
                    self.gone.union_with(back_ends.as_ref());
                }
                "lost"
            }
            Event::Broken { rank, .. } => {
                self.broken.insert(*rank, Instant::now());
                "broken"
            }
            Event::Repaired { rank, .. } => {
                let since = self.broken.remove(rank);
                self.outcome.repairs.extend(since.map(|since| since.elapsed()));
                "repaired"
            }
            Event::Joined { .. } => "joined",
            Event::StartFailed { .. } => "start_failed",
            Event::FilterFailed { stream, reason } => {
                let text = format!("stream {stream}: a filter failed: {reason}");
                self.outcome.violations.push(text);
                "filter_failed"
            }
            _ => "other",
        };
        *self.outcome.events.entry(name).or_default() += 1;
        self.log(&format!("{event:?}"));
    }

    fn note(&mut self, fault: Injected) {
        if fault.fault.is_kill() && fault.rank < self.plan.topology.back_end_count() {
            self.lost = Some(Instant::now());
            self.gone.insert(fault.rank);
        }
        self.log(&format!("{fault:?}"));
        self.outcome.injected.push(fault);
    }

    fn log(&self, text: &str) {
        if self.plan.is_logged {
            eprintln!("{:9.3} {text}", self.began.elapsed().as_secs_f64());
        }
    }

    fn is_stalled(&mut self) -> bool {
        let stalled = |at: &Instant| at.elapsed() > STALL_LIMIT;
        let which: Vec<&str> = (0..self.answered.len())
            .filter(|kind| stalled(&self.answered[*kind]))
            .map(|kind| Kind::ALL[kind].name())
            .collect();
        if which.is_empty() || self.survivors().is_empty() {
            return false;
        }
        let seconds = STALL_LIMIT.as_secs();
        self.outcome.violations.push(format!("{}: no answer for {seconds} s", which.join(", ")));
        true
    }

    /// The back-ends that live.
    fn survivors(&self) -> RankSet {
        let first = self.plan.topology.back_end_count();
        let is_alive = |member: &&Member| member.rank < first && member.is_alive();
        self.members.iter().filter(is_alive).map(|member| member.rank).collect()
    }

    /// Waits until all contributions of the survivors have come.
    fn drain(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + DRAIN_LIMIT;
        while Instant::now() < until {
            self.turn(10 * TURN)?;
            let survivors = self.survivors();
            let requests = self.outcome.requests;
            let is_whole = |(kind, ledger): (&Kind, &Ledger)| {
                ledger.is_whole(&survivors, kind.waves(requests))
            };
            if Kind::ALL.iter().zip(&self.ledgers).all(is_whole) {
                break;
            }
        }
        let survivors = self.survivors();
        for (kind, ledger) in Kind::ALL.iter().zip(&mut self.ledgers) {
            ledger.close(&survivors, kind.waves(self.outcome.requests));
        }
        Ok(())
    }

    /// Asks every survivor what it has received, and looks which has ended without a reason.
    fn settle(&mut self) -> Result<(), Failure> {
        if !self.survivors().is_empty() {
            self.accounts.broadcast(TAG, Request::Account.values())?;
        }
        let until = Instant::now() + ACCOUNT_LIMIT;
        let mut accounted = RankSet::new();
        while !self.survivors().difference(accounted.as_ref()).is_empty() {
            let time = until.saturating_duration_since(Instant::now());
            match self.accounts.recv_timeout(time) {
                Ok(answer) => self.check_accounts(&answer, &mut accounted)?,
                Err(Error::Timeout { .. } | Error::NoMemberLeft { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let silent = self.survivors().difference(accounted.as_ref());
        if !silent.is_empty() {
            self.outcome.violations.push(format!("no account came from {silent}"));
        }
        let events: u64 = self.outcome.events.values().sum();
        let faults = self.outcome.injected.len() as u64;
        if events > EVENTS_AT_LEAST + EVENTS_PER_FAULT * faults {
            self.outcome.violations.push(format!("{events} events for {faults} faults"));
        }
        let (seen, there) = (self.network.everyone(), self.survivors());
        if *seen.ranks() != there {
            let text = format!("the network believes in {}, but there are {there}", seen.ranks());
            self.outcome.violations.push(text);
        }
        if self.plan.recovery.is_on {
            let killed: RankSet = self
                .outcome
                .injected
                .iter()
                .filter(|d| d.fault.is_kill())
                .map(|d| d.rank)
                .collect();
            let mut ended = RankSet::range(0, self.plan.topology.back_end_count() - 1);
            ended.subtract(self.survivors().as_ref());
            ended.subtract(killed.as_ref());
            if !ended.is_empty() {
                let text = format!("back-ends {ended} have ended, though none was killed");
                self.outcome.violations.push(text);
            }
        }
        Ok(())
    }

    fn check_accounts(&mut self, answer: &Answer, accounted: &mut RankSet) -> Result<(), Failure> {
        if answer.packet.is_none() {
            return Ok(());
        }
        let values = answer.value()?;
        let numbers = values.array::<u64>(0).map_err(Error::from)?;
        for account in numbers.chunks_exact(ACCOUNT_NUMBERS) {
            let (rank, requests) = (account[0], &account[1..=Kind::ALL.len()]);
            accounted.insert(u32::try_from(rank).unwrap_or(u32::MAX));
            let faults = account[ACCOUNT_NUMBERS - 1];
            let sent = Kind::ALL.map(|kind| kind.waves(self.outcome.requests));
            if faults > 0 || requests != sent {
                self.outcome.violations.push(format!(
                    "back-end {rank} has received {requests:?} of {sent:?} requests on the streams, \
                     {faults} out of order"
                ));
            }
        }
        Ok(())
    }

    /// Ends the network and looks what is left of it.
    fn close(self) -> Result<Outcome, Failure> {
        let Self { streams, accounts, network, members, ledgers, mut outcome, .. } = self;
        drop((streams, accounts));
        network.close()?;
        for member in members::wait_for_end(&members, END_LIMIT) {
            let text = format!("process {} of rank {} is left", member.pid, member.rank);
            outcome.violations.push(text);
            member.signal(rustix::process::Signal::KILL);
        }
        for (ledger, counts) in ledgers.into_iter().zip(&mut outcome.counts) {
            counts.add(ledger.counts);
            outcome.violations.extend(ledger.violations);
        }
        Ok(outcome)
    }
}
