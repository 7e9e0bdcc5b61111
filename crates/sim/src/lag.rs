//! Spells in which processes run late by themselves: all of them, as on machines with far more to
//! do than they can, in start-up as well. Each turn comes late by a time of its own.
//!
//! Which runs have such spells, and what they draw, does not change anything else that their seeds
//! draw.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_node::Recovery;
use sapwood_packet::RankSet;
use sapwood_random::Random;

use crate::agenda::{Happening, MILLISECOND, SECOND, Time};
use crate::world::World;
use crate::{Class, Faults, chance};

/// One run in this many has spells where other things go wrong as well.
const RUNS: u64 = 8;
/// The longest that a turn comes late, of one spell or another.
const LATEST: [Time; 4] = [300 * MILLISECOND, SECOND, 3 * SECOND, 8 * SECOND];
/// No spell lasts longer.
const SPELL_MAX: Time = 12 * SECOND;

/// A time in which processes run late.
#[derive(Clone, Copy, Debug)]
struct Spell {
    at: Time,
    until: Time,
    latest: Time,
}

/// The spells of a run.
#[derive(Debug)]
pub(crate) struct Lags {
    chance: Random,
    spells: Vec<Spell>,
}

impl Lags {
    /// The lags of the run of a seed with this duration.
    pub(crate) fn draw(seed: u64, faults: Faults, duration: Time) -> Self {
        let mut chance = chance::of_seed(seed ^ 0x1a7e_0f5e_1f00);
        let is_alone = faults.classes().count() == 1;
        let is_used = faults.has(Class::Lag) && (is_alone || chance.one_in(RUNS));
        let mut spells = Vec::new();
        let (mut left, mut from) = (if is_used { chance.between(1, 2) } else { 0 }, 0);
        while left > 0 {
            // Half of them meet the start, which has hardly begun.
            let within = *chance.choose(&[10 * MILLISECOND, duration]);
            let at = from + chance.below(within);
            let latest = *chance.choose(&LATEST);
            let until = at + (latest * chance.between(1, 3)).min(SPELL_MAX);
            spells.push(Spell { at, until, latest });
            (left, from) = (left - 1, until);
        }
        Self { chance, spells }
    }

    /// The terms on which a tree recovers that is to bear this: a process must be looked for for
    /// longer than all of its peers are late.
    pub(crate) fn terms(&self, drawn: Recovery) -> Recovery {
        match (self.spells.is_empty(), drawn.is_on) {
            (false, true) => Recovery::default(),
            _ => drawn,
        }
    }

    /// When the last turn has come that one of them has delayed.
    pub(crate) fn end(&self) -> Time {
        self.spells.iter().map(|spell| spell.until + spell.latest).max().unwrap_or(0)
    }

    /// By how much the next turn of a process comes late.
    pub(crate) fn lag(&mut self, now: Time) -> Time {
        let spell = self.spells.iter().find(|spell| (spell.at..spell.until).contains(&now));
        let latest = spell.map_or(0, |spell| spell.latest);
        if latest == 0 || self.chance.one_in(3) { 0 } else { self.chance.below(latest) }
    }
}

impl World {
    /// Writes the spells down on the agenda.
    pub(crate) fn plan_lags(&mut self) {
        for number in 0..self.lags.spells.len() {
            let at = self.lags.spells[number].at;
            self.agenda.put(at, Happening::Lag(number));
        }
    }

    /// A spell begins: it meets all processes, also those that wait.
    pub(crate) fn begin_lag(&mut self, number: usize) {
        let Spell { until, latest, .. } = self.lags.spells[number];
        let (now, milliseconds) = (self.now, |time: Time| time / MILLISECOND);
        self.log.line(now, || {
            let (longest, lasts) = (milliseconds(latest), milliseconds(until - now));
            alloc::format!("for {lasts} ms, all run up to {longest} ms late")
        });
        self.injected[Class::Lag.index()] += 1;
        let all: RankSet = self.topology.back_ends().collect();
        // They may be thought gone for a while.
        self.oracle.disturbed(&all);
        for process in 0..self.processes.len() {
            self.delay(process);
        }
    }

    /// The next turn of a process comes late, if there is a spell.
    pub(crate) fn delay(&mut self, process: usize) {
        let lag = self.lags.lag(self.now);
        let one = &mut self.processes[process];
        one.busy_until = one.busy_until.max(self.now + lag);
    }

    /// Whether processes only ran late in this run, and nothing else went wrong.
    pub(crate) fn was_only_late(&self) -> bool {
        let others = Class::ALL.iter().filter(|&&class| class != Class::Lag);
        others.map(|class| self.injected[class.index()]).sum::<u64>() == 0
    }

    /// The violation where nothing but lateness was injected and back-ends are missing for good, if
    /// any.
    pub(crate) fn missing_for_good(&self, there: &RankSet) -> Option<String> {
        let all: RankSet = self.topology.back_ends().collect();
        let missing = all.difference(there.as_ref());
        let is_wrong = self.was_only_late() && !self.topology.is_attaching() && !missing.is_empty();
        is_wrong.then(|| alloc::format!("'{missing}' were only late, and are gone for good"))
    }
}
