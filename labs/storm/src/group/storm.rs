//! The course of a storm over a group: operations without a pause, while members are killed,
//! stopped, told to leave and replaced, at random from a seed.
//!
//! Owns [`GroupStorm`]. One thread does all of it, so that the record of what was done
//! ([`Lives`]) has one order. What is done to members is of `strike`, what becomes of the virtual
//! nodes of those that leave to heirs of `estate`, what answers must be of `oracle`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood::{Key, Rank};
use sapwood_command_line::exit::{Failure, complain};
use sapwood_launch::{Exit, Signal};
use sapwood_random::Random;

use super::collective::Collective;
use super::estate::Estate;
use super::lie::falsify;
use super::lives::{Lives, ProcessNumber};
use super::member::MEET;
use super::oracle::{DEADLINE, Operation};
use super::order::Order;
use super::plan::GroupPlan;
use super::process::{Stage, StormedMember, Told};
use super::report::{Deed, GroupReport};
use super::strike::Deck;
use super::value::Ask;
use crate::chance::{one_of, time};

/// Lengths of values, in bytes: short ones are frequent, long ones travel in many segments.
const LENGTHS: [usize; 14] = [
    8,
    8,
    8,
    64,
    64,
    1 << 10,
    1 << 10,
    8 << 10,
    8 << 10,
    64 << 10,
    64 << 10,
    256 << 10,
    256 << 10,
    1 << 20,
];
/// How long a virtual node has no process, in milliseconds.
const VACANT_MS: (f64, f64) = (100.0, 3000.0);
/// From a member that could not join to the next try.
const RETRY: Duration = Duration::from_millis(300);
/// Operations that wait for members which are not stopped.
const WINDOW: usize = 8;

/// All members of the begin must know each other within this time.
const START_LIMIT: Duration = Duration::from_secs(90);
/// A member must have joined within this time, with all tries together.
const JOIN_LIMIT: Duration = Duration::from_secs(40);
/// An answer must come within this time, counted from the last time that the member was resumed.
const ANSWER_LIMIT: Duration = DEADLINE.saturating_add(Duration::from_secs(10));
/// A member that was told to leave must have ended within this time.
pub(super) const LEAVE_LIMIT: Duration = Duration::from_secs(20);
/// Violations after which a storm ends.
const VIOLATIONS_MAX: usize = 50;
/// From one line of progress to the next.
const PROGRESS: Duration = Duration::from_secs(5);

/// A virtual node without a process.
#[derive(Clone, Copy, Debug)]
struct Vacancy {
    /// When a process is started for it.
    at: Duration,
    /// When one must have joined; from its start if that is the first.
    until: Option<Duration>,
}

/// When something is next done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agenda {
    pub operation: Duration,
    pub deed: Duration,
    progress: Duration,
}

/// A group and what is done to it.
pub(super) struct GroupStorm<'a> {
    pub(super) plan: &'a GroupPlan,
    program: PathBuf,
    key: OwnedFd,
    pub(super) began: Instant,
    pub(super) random: Random,
    /// Chooses false answers, so that these change no other choice.
    lies: Random,
    pub(super) lives: Lives,
    pub(super) members: BTreeMap<ProcessNumber, StormedMember>,
    vacancies: BTreeMap<Rank, Vacancy>,
    pub(super) estate: Estate,
    pub(super) open: BTreeMap<u64, Operation>,
    /// Operations, and the processes that have not answered in time.
    hung: BTreeSet<(u64, ProcessNumber)>,
    /// Members that have said that they know all.
    met: usize,
    pub(super) next: Agenda,
    pub(super) deeds: Deck<Deed>,
    collectives: Deck<Collective>,
    last_number: u64,
    pub(super) report: GroupReport,
}

impl<'a> GroupStorm<'a> {
    /// Prepares it; no member is started yet.
    pub(super) fn new(plan: &'a GroupPlan) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::own(&format!("cannot find this program's file: {error}")))?;
        let key = Key::generate().and_then(|key| key.to_descriptor());
        Ok(Self {
            plan,
            program,
            key: key.map_err(|error| Failure::own(&error))?,
            began: Instant::now(),
            random: Random::new(plan.seed),
            lies: Random::new(!plan.seed),
            lives: Lives::default(),
            members: BTreeMap::new(),
            vacancies: BTreeMap::new(),
            estate: Estate::default(),
            open: BTreeMap::new(),
            hung: BTreeSet::new(),
            met: 0,
            next: Agenda::default(),
            deeds: Deck::default(),
            collectives: Deck::default(),
            last_number: 0,
            report: GroupReport::default(),
        })
    }

    /// Raises it, and gives what it has shown.
    pub(super) fn rage(mut self) -> Result<GroupReport, Failure> {
        self.gather()?;
        let begin = self.began.elapsed();
        let until = begin + self.plan.duration;
        self.next = Agenda { operation: begin, deed: begin, progress: begin + PROGRESS };
        while self.began.elapsed() < until && self.report.violations.len() < VIOLATIONS_MAX {
            self.turn()?;
            self.fill_vacancies()?;
            self.strike()?;
            self.issue();
            self.wait();
        }
        // Each of these waits has a limit of its own.
        let is_busy = |member: &StormedMember| member.stage != Stage::Joined;
        while !self.open.is_empty() || self.members.values().any(is_busy) {
            self.turn()?;
            self.wait();
        }
        self.end()?;
        self.report.took = self.began.elapsed().saturating_sub(begin);
        Ok(self.report)
    }

    /// Starts the members of the begin, and waits until all know each other.
    fn gather(&mut self) -> Result<(), Failure> {
        self.start_member(0, None, START_LIMIT)?;
        self.wait_until("the first member has not started", |storm| {
            storm.members.values().all(|member| member.stage == Stage::Joined)
        })?;
        let address = self.members.values().next().map(|member| member.address.clone());
        for name in 1..self.plan.members {
            self.start_member(name, address.as_deref(), START_LIMIT)?;
        }
        self.wait_until("some members have not joined", |storm| {
            storm.members.values().all(|member| member.stage == Stage::Joined)
        })?;
        let line = format!("{MEET} {}\n", self.plan.members);
        self.members.values_mut().for_each(|member| member.tell(&line));
        self.wait_until("some members do not know all others", |storm| {
            storm.met == storm.members.len()
        })
    }

    fn wait_until(&mut self, what: &str, is_so: fn(&Self) -> bool) -> Result<(), Failure> {
        while !is_so(self) {
            if self.began.elapsed() > START_LIMIT {
                return Err(Failure::timeout(what));
            }
            self.take()?;
            if let Some(violation) = self.report.violations.first() {
                return Err(Failure::own(violation));
            }
            self.wait();
        }
        Ok(())
    }

    /// What is always done.
    fn turn(&mut self) -> Result<(), Failure> {
        self.take()?;
        self.resume()?;
        self.note_overdue()?;
        self.close();
        self.settle_estate();
        let now = self.began.elapsed();
        if self.next.progress <= now {
            self.next.progress = now + PROGRESS;
            complain(format!("{} s: {}", now.as_secs(), self.report.summary()));
        }
        Ok(())
    }

    /// Takes what members have written, and the ends of processes.
    fn take(&mut self) -> Result<(), Failure> {
        let mut told = Vec::new();
        for (process, member) in &mut self.members {
            member.flush();
            told.extend(member.take(self.began)?.into_iter().map(|told| (*process, told)));
        }
        for (process, told) in told {
            self.hear(process, told);
        }
        let ended = self.members.iter_mut();
        let ended = ended.filter_map(|(process, member)| Some((*process, member.ended()?)));
        for (process, exit) in ended.collect::<Vec<_>>() {
            self.bury(process, exit);
        }
        Ok(())
    }

    fn hear(&mut self, process: ProcessNumber, told: Told) {
        let Some(member) = self.members.get_mut(&process) else { return };
        match told {
            // One that was killed because it had not joined in time stays so.
            Told::Joined { address } if matches!(member.stage, Stage::Joining { .. }) => {
                self.lives.join(process, self.began.elapsed());
                (member.address, member.stage) = (address, Stage::Joined);
            }
            Told::Joined { .. } => {}
            Told::Refused { why } => member.refused = Some(why),
            Told::Met => self.met += 1,
            Told::Broken { links } => self.report.links_broken += links,
            Told::Again { number } => {
                let name = member.name;
                self.violate(format!("send {number}: member {name}: it has come twice"));
            }
            Told::Answered { number, mut answer } => {
                self.report.inherited += self.estate.note_carried(process, &answer.names);
                // Without one it is an answer that came too late, and was told of as hung.
                let Some(operation) = self.open.get_mut(&number) else { return };
                if self.plan.lies {
                    falsify(&mut self.lies, &mut answer);
                }
                operation.answers.insert(process, answer);
            }
        }
    }

    /// A process has ended: its virtual node is free, after a while.
    fn bury(&mut self, process: ProcessNumber, exit: Exit) {
        let Some(member) = self.members.remove(&process) else { return };
        let (name, now) = (member.name, self.began.elapsed());
        self.lives.end(process, now);
        let mut vacancy = self.vacancy();
        match (member.stage, member.refused) {
            (Stage::Killed, _) => {}
            (Stage::Leaving { .. }, _) if exit.is_success() => {}
            (Stage::Joining { until }, Some(why)) => {
                vacancy = Vacancy { at: now + RETRY, until: Some(until) };
                if now >= until {
                    self.violate(format!("member {name}: cannot join: {why}"));
                }
            }
            (stage, _) => {
                self.violate(format!("member {name}: {exit}, where it was {stage:?}"));
            }
        }
        for inherited in self.estate.bury(process, now) {
            self.vacate(inherited);
        }
        if !self.estate.has(name) {
            self.vacancies.insert(name, vacancy);
        }
    }

    /// A virtual node is not carried any more.
    pub(super) fn vacate(&mut self, name: Rank) {
        let vacancy = self.vacancy();
        self.vacancies.insert(name, vacancy);
    }

    fn vacancy(&mut self) -> Vacancy {
        let after = time(&mut self.random, VACANT_MS.0, VACANT_MS.1);
        Vacancy { at: self.began.elapsed() + after, until: None }
    }

    pub(super) fn violate(&mut self, text: String) {
        complain(&text);
        self.report.violations.push(text);
    }

    /// Lets go on those that were stopped, when it is time.
    fn resume(&mut self) -> Result<(), Failure> {
        let now = self.began.elapsed();
        for (process, member) in &mut self.members {
            if matches!(member.stage, Stage::Stopped { until } if until <= now) {
                member.signal(Signal::CONT)?;
                member.stage = Stage::Joined;
                self.lives.resume(*process, self.began.elapsed());
            }
        }
        Ok(())
    }

    /// Notes what takes too long, and ends members that do not come or go.
    fn note_overdue(&mut self) -> Result<(), Failure> {
        let now = self.began.elapsed();
        let mut texts = Vec::new();
        for (process, member) in &mut self.members {
            let what = match member.stage {
                Stage::Joining { until } if until <= now => "has not joined in time",
                Stage::Leaving { until } if until <= now => "has not ended in time after 'leave'",
                _ => continue,
            };
            texts.push(format!("member {}: {what}", member.name));
            self.lives.disturb(*process, now);
            member.stage = Stage::Killed;
            member.signal(Signal::KILL)?;
        }
        for (number, operation) in &self.open {
            for process in unanswered(operation, &self.members) {
                let since = self.lives.able_since(process, operation.issued);
                if since + ANSWER_LIMIT <= now && self.hung.insert((*number, process)) {
                    let name = self.lives.name(process);
                    texts.push(format!("{}: member {name}: no answer", operation.ask));
                }
            }
        }
        texts.into_iter().for_each(|text| self.violate(text));
        Ok(())
    }

    /// Judges the operations that are over.
    fn close(&mut self) {
        let (members, hung) = (&self.members, &self.hung);
        let is_over = |entry: &(&u64, &Operation)| {
            let (number, operation) = *entry;
            operation.asked.iter().all(|process| {
                operation.answers.contains_key(process)
                    || !members.contains_key(process)
                    || hung.contains(&(*number, *process))
            })
        };
        let over: Vec<u64> = self.open.iter().filter(is_over).map(|entry| *entry.0).collect();
        for number in over {
            let Some(operation) = self.open.remove(&number) else { continue };
            let verdict = operation.judge(&self.lives);
            verdict.faults.iter().for_each(complain);
            if self.plan.is_logged && !verdict.faults.is_empty() {
                operation.lines(&self.lives).iter().for_each(complain);
            }
            let is_hung = self.hung.range((number, 0)..=(number, ProcessNumber::MAX)).count() > 0;
            self.report.add(&operation, verdict, is_hung);
        }
    }

    /// Starts members for the virtual nodes that have been free for long enough.
    fn fill_vacancies(&mut self) -> Result<(), Failure> {
        let now = self.began.elapsed();
        let due = self.vacancies.iter().filter(|(_, vacancy)| vacancy.at <= now);
        for (name, vacancy) in due.map(|(name, vacancy)| (*name, *vacancy)).collect::<Vec<_>>() {
            let joined: Vec<ProcessNumber> = self.in_stage(Stage::Joined);
            let contact = one_of(&mut self.random, &joined).and_then(|at| self.members.get(at));
            let Some(address) = contact.map(|member| member.address.clone()) else { return Ok(()) };
            self.vacancies.remove(&name);
            self.start_member(name, Some(&address), vacancy.until.unwrap_or(now + JOIN_LIMIT))?;
            if vacancy.until.is_none() {
                self.note_deed(Deed::Join, false, &name.to_string());
            }
        }
        Ok(())
    }

    fn start_member(
        &mut self,
        name: Rank,
        address: Option<&str>,
        until: Duration,
    ) -> Result<(), Failure> {
        let process = self.lives.start(name, self.began.elapsed());
        let member = StormedMember::start(&self.program, &self.key, (name, address), until)?;
        self.members.insert(process, member);
        Ok(())
    }

    pub(super) fn in_stage(&self, stage: Stage) -> Vec<ProcessNumber> {
        let found = self.members.iter().filter(|(_, member)| member.stage == stage);
        found.map(|(process, _)| *process).collect()
    }

    /// Counts what was done to these, in words.
    pub(super) fn note_deed(&mut self, deed: Deed, is_amid: bool, names: &str) {
        self.report.count(deed, is_amid);
        if self.plan.is_logged {
            let milliseconds = self.began.elapsed().as_millis();
            complain(format!("{milliseconds} ms: {} {names}", deed.name()));
        }
    }

    /// Asks all for the next operation, when it is time and not too many are under way.
    fn issue(&mut self) {
        let now = self.began.elapsed();
        let is_waited_for =
            |operation: &&Operation| !unanswered(operation, &self.members).is_empty();
        if now < self.next.operation || self.open.values().filter(is_waited_for).count() >= WINDOW {
            return;
        }
        self.next.operation = now + self.plan.period;
        let mut joined = self.in_stage(Stage::Joined);
        self.random.shuffle(&mut joined);
        let Some(&root) = joined.first() else { return };
        let collective = self.collectives.draw(&mut self.random, &Collective::ALL);
        let to = match (collective, joined.get(1)) {
            (Collective::Send, Some(&to)) => to,
            _ => root,
        };
        self.last_number += 1;
        let ask = Ask {
            collective,
            number: self.last_number,
            root: self.lives.name(root),
            to: self.lives.name(to),
            members: self.plan.members,
            bytes: *self.random.choose(&LENGTHS),
            seed: self.plan.seed,
        };
        if collective == Collective::Send && to == root {
            // It is alone, and asks for another next time.
            return;
        }
        let mut asked = BTreeSet::new();
        for (process, member) in self.members.iter_mut().filter(|(_, member)| member.is_asked()) {
            if collective != Collective::Send || [root, to].contains(process) {
                member.tell(&ask.line());
                asked.insert(*process);
            }
        }
        let (answers, is_struck) = (BTreeMap::new(), false);
        let operation = Operation { ask, issued: now, asked, answers, is_struck };
        self.open.insert(ask.number, operation);
        self.strike_soon(&ask);
    }

    /// Waits until a member has written something, or a moment.
    fn wait(&self) {
        let outputs = self.members.values().filter_map(StormedMember::output);
        let mut waited: Vec<PollFd<'_>> =
            outputs.map(|output| PollFd::from_borrowed_fd(output, PollFlags::IN)).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // An interruption only means that all are looked at sooner.
        let _ = poll(&mut waited, Some(&time));
    }

    /// Has all leave; no process may remain.
    fn end(&mut self) -> Result<(), Failure> {
        let now = self.began.elapsed();
        let until = now + LEAVE_LIMIT;
        for (process, member) in &mut self.members {
            self.lives.disturb(*process, now);
            member.stage = Stage::Leaving { until };
            member.tell(&Order::Leave { heir: None }.line());
        }
        while !self.members.is_empty() && self.began.elapsed() < until + LEAVE_LIMIT {
            self.take()?;
            self.note_overdue()?;
            self.wait();
        }
        let left = sapwood_bench::descendants()?;
        if !left.is_empty() {
            self.violate(format!("processes remain: {left:?}"));
        }
        Ok(())
    }
}

/// Those that were asked, have not answered, and could.
fn unanswered(
    operation: &Operation,
    members: &BTreeMap<ProcessNumber, StormedMember>,
) -> Vec<ProcessNumber> {
    let could = |process: &&ProcessNumber| {
        let stage = members.get(process).map(|member| member.stage);
        stage == Some(Stage::Joined) && !operation.answers.contains_key(process)
    };
    operation.asked.iter().filter(could).copied().collect()
}
