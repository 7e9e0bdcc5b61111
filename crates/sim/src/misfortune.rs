//! What faults do to the world when they strike, and how they end.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_node::Role;
use sapwood_packet::RankSet;

use crate::Class;
use crate::agenda::{Happening, MILLISECOND, Time};
use crate::process::{Notice, State};
use crate::strike::{Cut, Strike, Target};
use crate::world::{FRONT_END, LOWER, UPPER, World};

/// How many times slower a slow process is, at most.
const SLOWNESS_MAX: u64 = 2000;
/// After a partition has healed, bytes that were held back arrive within this time.
const RETRY_MAX: Time = 200 * MILLISECOND;

impl World {
    /// Injects a fault; nothing happens if it finds no victim.
    pub(crate) fn strike(&mut self, number: usize) {
        let strike = self.scenario.strikes[number];
        let Some(victim) = self.victim(&strike) else { return };
        let has_struck = match strike.class {
            Class::Crash => self.crash(victim, strike.is_abrupt),
            Class::Stop => self.stop(victim),
            Class::Reset => self.reset(victim),
            Class::Partition => self.part(number, victim),
            Class::Slow => self.slow(victim),
            Class::Join => self.send_away(victim),
            Class::Lag => false,
            Class::Deaf => {
                self.front_end.deafness += 1;
                self.note(FRONT_END, || String::from("takes no answers"));
                true
            }
        };
        if !has_struck {
            return;
        }
        self.injected[strike.class.index()] += 1;
        self.last_struck = Some(victim);
        self.struck.push((number, victim));
        if !matches!(strike.class, Class::Crash | Class::Reset | Class::Join) {
            self.agenda.put(self.now + strike.lasts, Happening::Mend(number));
        }
    }

    /// The victims of a fault.
    fn victim(&mut self, strike: &Strike) -> Option<usize> {
        let is_there = |world: &Self, index: &usize| world.processes[*index].is_alive();
        if strike.class == Class::Deaf {
            return Some(FRONT_END);
        }
        if strike.target == Target::Relative
            && strike.class != Class::Join
            && let Some(last) = self.last_struck
            && let Some(one) = self.relative(last)
        {
            return Some(one);
        }
        match strike.target {
            Target::Parent => return self.parent_of_last().filter(|one| is_there(self, one)),
            Target::Left => return self.left_by_last(),
            _ => {}
        }
        let role = match strike.target {
            Target::FrontEnd => return Some(FRONT_END).filter(|one| is_there(self, one)),
            Target::BackEnd => Role::BackEnd,
            _ => Role::Communication,
        };
        let all: Vec<usize> =
            (0..self.processes.len()).filter(|index| is_there(self, index)).collect();
        let role = if strike.class == Class::Join { Role::BackEnd } else { role };
        let fit: Vec<usize> =
            all.iter().copied().filter(|&index| self.processes[index].role == role).collect();
        if fit.is_empty() {
            return None;
        }
        Some(*self.chance.choose(&fit))
    }

    /// The communication process above the one that was struck last.
    fn parent_of_last(&self) -> Option<usize> {
        let rank = self.processes[self.last_struck?].rank?;
        let parent = self.topology.parent(rank)?.rank();
        self.by_rank.get(&parent).copied().filter(|&index| index != FRONT_END)
    }

    /// A back-end planned below the process that was struck last, which nothing cuts off.
    fn left_by_last(&mut self) -> Option<usize> {
        let ranks = self.below(self.processes[self.last_struck?].rank?);
        let found: Vec<usize> = ranks
            .iter()
            .filter_map(|rank| self.by_rank.get(&rank).copied())
            .filter(|&index| self.processes[index].is_alive())
            .filter(|&index| self.processes[index].side_bits == 0)
            .collect();
        if found.is_empty() { None } else { Some(*self.chance.choose(&found)) }
    }

    /// A process beside, above or below one, which is no front-end.
    fn relative(&mut self, process: usize) -> Option<usize> {
        let rank = self.processes[process].rank?;
        let parent = self.topology.parent(rank).map(|node| node.rank());
        let mut ranks: Vec<u32> = self.topology.children(rank).to_vec();
        ranks.extend(parent);
        ranks.extend(parent.iter().flat_map(|&parent| self.topology.children(parent)));
        let is_there = |&index: &usize| index != FRONT_END && self.processes[index].is_alive();
        let found: Vec<usize> = ranks
            .iter()
            .filter_map(|rank| self.by_rank.get(rank).copied())
            .filter(|index| *index != process && is_there(index))
            .collect();
        if found.is_empty() { None } else { Some(*self.chance.choose(&found)) }
    }

    /// The back-ends that a fault of a process may cost.
    fn harm(&mut self, process: usize) {
        let one = &self.processes[process];
        // One that has no rank yet may have been given any of its parent's.
        let rank = one.rank.or_else(|| self.processes[one.dialed].rank);
        let ranks = rank.map_or_else(RankSet::new, |rank| self.below(rank));
        self.harmed.union_with(ranks.as_ref());
        self.oracle.disturbed(&ranks);
    }

    fn crash(&mut self, victim: usize, is_abrupt: bool) -> bool {
        let how = if is_abrupt { "its machine is gone" } else { "is killed" };
        self.note(victim, || String::from(how));
        self.harm(victim);
        self.goes(victim);
        if is_abrupt {
            self.lose_in_flight(victim);
        }
        self.exit(victim, State::Crashed);
        true
    }

    /// A process goes for good: a back-end may take the rest of its packet along.
    fn goes(&mut self, process: usize) {
        let one = &self.processes[process];
        if let (Role::BackEnd, Some(rank)) = (one.role, one.rank) {
            self.oracle.died(rank);
        }
    }

    /// Some of the bytes to and from a process are lost.
    fn lose_in_flight(&mut self, process: usize) {
        let ports: Vec<(usize, usize)> = self.processes[process]
            .ports
            .iter()
            .flatten()
            .map(|port| (port.wire, port.side))
            .collect();
        for (wire, side) in ports {
            self.cut_short(wire, side);
        }
    }

    fn cut_short(&mut self, wire: usize, side: usize) {
        let pipe = &mut self.wires[wire].ends[side].pipe;
        let kept = self.chance.below(pipe.under_way() as u64 + 1) as usize;
        pipe.cut(kept);
    }

    fn stop(&mut self, victim: usize) -> bool {
        self.note(victim, || String::from("is stopped"));
        self.touch_silently(victim);
        let one = &mut self.processes[victim];
        one.stops += 1;
        one.state = State::Stopped;
        true
    }

    /// Something that others may take for a death, where silence counts.
    fn touch_silently(&mut self, victim: usize) {
        if !self.scenario.recovery.silence.is_zero() {
            self.harm(victim);
        }
    }

    fn slow(&mut self, victim: usize) -> bool {
        self.note(victim, || String::from("becomes slow"));
        self.touch_silently(victim);
        let slowness = self.chance.between(20, SLOWNESS_MAX);
        let one = &mut self.processes[victim];
        one.slows += 1;
        one.slowness = slowness;
        true
    }

    /// Breaks one link of a process, without a word beforehand.
    fn reset(&mut self, victim: usize) -> bool {
        let ports = self.processes[victim].ports.iter().flatten();
        let wires: Vec<usize> = ports
            .map(|port| port.wire)
            .filter(|&wire| self.wires[wire].ends.iter().all(|end| !end.is_closed))
            .collect();
        if wires.is_empty() {
            return false;
        }
        let wire = *self.chance.choose(&wires);
        let [upper, lower] = [UPPER, LOWER].map(|side| self.wires[wire].ends[side].process);
        self.harm(lower);
        let name = if self.log.is_on() { self.processes[upper].name() } else { String::new() };
        self.note(lower, || alloc::format!("loses its link to {name}"));
        for side in [UPPER, LOWER] {
            self.cut_short(wire, side);
        }
        let (now, latency) = (self.now, self.wires[wire].speed.latency);
        for side in [UPPER, LOWER] {
            let at = self.wires[wire].ends[side].pipe.close(now, latency);
            self.agenda.put(at, Happening::Arrival { wire, from: side });
        }
        true
    }

    /// Cuts some processes off from the others.
    fn part(&mut self, number: usize, victim: usize) -> bool {
        let bit = 1 << (number % 64);
        let mut far = match self.scenario.strikes[number].cut {
            Cut::Random => self.far_side(victim),
            Cut::Split => self.split_side(victim),
        };
        if victim == FRONT_END {
            far.retain(|&index| index == FRONT_END);
        }
        for &index in &far {
            self.processes[index].side_bits |= bit;
            self.note(index, || String::from("is cut off"));
        }
        if !self.scenario.recovery.silence.is_zero() {
            // Any process may consider any other one dead.
            let everyone = self.topology.back_ends().collect();
            self.harmed.union_with(RankSet::as_ref(&everyone));
            self.oracle.disturbed(&everyone);
        }
        true
    }

    /// A process, maybe all below it, and others here and there.
    fn far_side(&mut self, victim: usize) -> Vec<usize> {
        let whole_subtree = self.chance.one_in(2);
        let rank = self.processes[victim].rank;
        let mut far = alloc::vec![victim];
        for index in 1..self.processes.len() {
            let is_below = whole_subtree
                && self.processes[index].rank.is_some_and(|other| {
                    self.topology.node(other).is_some()
                        && self.topology.ancestors(other).any(|node| Some(node.rank()) == rank)
                });
            if is_below || self.chance.one_in(6) {
                far.push(index);
            }
        }
        far
    }

    /// A process with some of its children and their subtrees.
    fn split_side(&mut self, victim: usize) -> Vec<usize> {
        let Some(rank) = self.processes[victim].rank else { return alloc::vec![victim] };
        let mut with_it = RankSet::new();
        with_it.insert(rank);
        for &child in self.topology.children(rank) {
            if self.chance.one_in(2) {
                with_it.insert(child);
            }
        }
        let is_with = |other: u32| {
            let mut above = self.topology.ancestors(other).map(|node| node.rank());
            with_it.contains(other) || above.any(|one| one != rank && with_it.contains(one))
        };
        let ranks = self.by_rank.iter().filter(|&(&other, _)| is_with(other));
        ranks.map(|(_, &index)| index).collect()
    }

    /// A process leaves on purpose.
    fn send_away(&mut self, victim: usize) -> bool {
        let Some(rank) = self.processes[victim].rank else { return false };
        // A process below a communication process that leaves is lost, or has to find a new parent.
        let ranks = self.below(rank);
        self.oracle.disturbed(&ranks);
        if self.processes[victim].role == Role::Communication {
            self.harmed.union_with(ranks.as_ref());
        }
        self.goes(victim);
        self.notify(victim, Notice::Leave);
        true
    }

    /// A fault that lasts is over.
    pub(crate) fn mend(&mut self, number: usize) {
        let Some(place) = self.struck.iter().position(|&(other, _)| other == number) else {
            return;
        };
        let (_, victim) = self.struck.swap_remove(place);
        let one = &mut self.processes[victim];
        match self.scenario.strikes[number].class {
            Class::Stop => {
                one.stops -= 1;
                if one.stops == 0 && one.state == State::Stopped {
                    one.state = State::Running;
                    one.turn_at = None;
                    self.note(victim, || String::from("is resumed"));
                    self.poke(victim, self.now);
                }
            }
            Class::Slow => {
                one.slows -= 1;
                if one.slows == 0 {
                    one.slowness = 1;
                    // It finishes its present turn at its old speed.
                    one.busy_until = one.busy_until.min(self.now + MILLISECOND);
                    self.poke(victim, self.now);
                }
            }
            Class::Partition => self.heal(number),
            Class::Deaf => {
                self.front_end.deafness -= 1;
                self.note(FRONT_END, || String::from("takes answers again"));
                self.poke(FRONT_END, self.now);
            }
            Class::Crash | Class::Reset | Class::Join | Class::Lag => {}
        }
    }

    fn heal(&mut self, number: usize) {
        let bit: u64 = 1 << (number % 64);
        for index in 0..self.processes.len() {
            if self.processes[index].side_bits & bit != 0 {
                self.processes[index].side_bits &= !bit;
                self.note(index, || String::from("is no more cut off"));
            }
        }
        // Bytes that other partitions hold back are held back again when they arrive.
        for what in core::mem::take(&mut self.parked) {
            let at = self.now + self.chance.below(RETRY_MAX);
            self.agenda.put(at, what);
        }
    }

    /// All faults that last are over.
    pub(crate) fn mend_all(&mut self) {
        for (number, _) in self.struck.clone() {
            self.mend(number);
        }
    }
}
