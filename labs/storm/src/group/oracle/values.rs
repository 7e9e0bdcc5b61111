//! What the values of an operation must be: computed from the seeds, by code of the storm's own.
//!
//! Of a reduction the fold is made here once more, in another way than members make it; of a list
//! each value is looked for among all that the members that were asked can have given.

use sapwood::{Rank, RankSet};

use super::super::collective::{Collective, Flow};
use super::super::lives::ProcessNumber;
use super::super::value::{Ask, Digest, Given, Part};
use super::{Judge, Reported};

/// How many virtual nodes of one answer may have been left to heirs meanwhile; each doubles what is
/// tried.
const DOUBTS_MAX: usize = 6;

/// What a result must be, which several members have.
#[derive(Debug)]
pub(super) struct Expected {
    contributors: RankSet,
    homes: RankSet,
    digest: Digest,
}

/// A value that a member can have given.
struct Candidate {
    from: Rank,
    to: Rank,
    digest: Digest,
}

impl Judge<'_> {
    /// Rule 2.
    pub(super) fn value(&mut self, process: ProcessNumber, answer: &Reported) {
        let Some(given) = &answer.value else { return };
        let (ask, name) = (self.operation.ask, self.lives.name(process));
        let goes_to = match (ask.collective, ask.collective.flow()) {
            (Collective::Send, _) => Some(ask.to),
            (_, Flow::ToRoot) => Some(ask.root),
            _ => None,
        };
        let may_be = |to: Rank| to == name || self.lives.is_inheritable(to, answer.at);
        if goes_to.is_some_and(|to| !may_be(to)) {
            let whose =
                if ask.collective == Collective::Send { "the addressee" } else { "the root" };
            self.fault(name, &format!("has a value, which only {whose} gets"));
            return;
        }
        match given {
            Given::Whole(digest) => self.whole(process, answer, *digest),
            Given::Parts(parts) => match ask.collective {
                Collective::Scatter => self.scattered(process, answer, parts),
                Collective::AllToAll => self.exchanged(process, answer, parts),
                _ => self.gathered(process, answer, parts),
            },
        }
    }

    fn whole(&mut self, process: ProcessNumber, answer: &Reported, digest: Digest) {
        let possible = self.possible(answer);
        let is_right = possible.iter().any(|homes| {
            // Where it cannot be told, nothing is wrong.
            self.expected(process, answer, homes).is_none_or(|expected| expected == digest)
        });
        if !is_right {
            let (bytes, contributors) = (digest.bytes, &answer.contributors);
            let text = format!("the value of {bytes} bytes is not that of {contributors}");
            self.fault(self.lives.name(process), &text);
        }
    }

    /// Whose contributions an answer may consist of: first those that it must have, then with one
    /// or another of the members that have left to heirs.
    fn possible(&self, answer: &Reported) -> Vec<RankSet> {
        let (mut certain, mut doubtful) = (RankSet::new(), Vec::new());
        for process in &self.operation.asked {
            let name = self.lives.name(*process);
            if !answer.contributors.contains(name) {
                continue;
            }
            match self.lives.has_handed(*process, answer.at) {
                true => doubtful.push(name),
                false => certain.insert(name),
            }
        }
        let mut possible = vec![certain];
        for name in doubtful.into_iter().take(DOUBTS_MAX) {
            let mut with_it = possible.clone();
            with_it.iter_mut().for_each(|homes| homes.insert(name));
            possible.extend(with_it);
        }
        possible
    }

    /// What a member must have of these contributions; none if that cannot be told.
    fn expected(
        &mut self,
        process: ProcessNumber,
        answer: &Reported,
        homes: &RankSet,
    ) -> Option<Digest> {
        let ask = self.operation.ask;
        if ask.collective == Collective::ReduceScatter {
            return self.blocks(process, answer, homes);
        }
        let is_same =
            |each: &&Expected| each.contributors == answer.contributors && each.homes == *homes;
        if let Some(known) = self.expected.iter().find(is_same) {
            return Some(known.digest);
        }
        let digest = match ask.collective {
            Collective::Reduce | Collective::Allreduce => Digest::of_numbers(&ask.sum(homes)),
            Collective::ReduceDefined => Digest::of_numbers(&product(&ask, homes)),
            Collective::AllreduceInOrder => {
                let order = self.order(answer, homes)?;
                Digest::of_numbers(&composition(&ask, &order))
            }
            _ => Digest::of_bytes(&ask.payload()),
        };
        let (contributors, homes) = (answer.contributors.clone(), homes.clone());
        self.expected.push(Expected { contributors, homes, digest });
        Some(digest)
    }

    /// The blocks of what a member carries, one after the other.
    fn blocks(&self, process: ProcessNumber, answer: &Reported, homes: &RankSet) -> Option<Digest> {
        let ask = self.operation.ask;
        // It may have got more between its look at what it carries and its call.
        let span = self.operation.span(answer);
        if self.lives.has_moves(span) && !self.lives.is_calm(process, span) {
            return None;
        }
        let (sum, block) = (ask.sum(homes), ask.block());
        let of_each = answer.names.iter().filter_map(|name| {
            let first = name as usize * block;
            sum.get(first..first + block)
        });
        Some(Digest::of_numbers(&of_each.flatten().copied().collect::<Vec<i64>>()))
    }

    /// These contributors in the order of the first virtual node of each, which for an heir may be
    /// one that was left to it; none if it is not known which member that is.
    fn order(&self, answer: &Reported, homes: &RankSet) -> Option<Vec<Rank>> {
        let mut unclaimed = answer.contributors.difference(homes.as_ref());
        let mut order = Vec::new();
        for process in &self.operation.asked {
            let home = self.lives.name(*process);
            if !homes.contains(home) {
                continue;
            }
            let mut first = home;
            if let Some(of_member) = self.operation.answers.get(process) {
                let mut left_to_it = of_member.names.clone();
                left_to_it.intersect_with(unclaimed.as_ref());
                first = left_to_it.as_ref().first().map_or(home, |name| name.min(home));
                unclaimed.subtract(left_to_it.as_ref());
            }
            order.push((first, home));
        }
        order.sort_unstable();
        unclaimed.is_empty().then(|| order.into_iter().map(|entry| entry.1).collect())
    }

    /// A list of what members have given, one value of each.
    fn gathered(&mut self, process: ProcessNumber, answer: &Reported, parts: &[Part]) {
        let (ask, lives, name) = (self.operation.ask, self.lives, self.lives.name(process));
        let candidates: Vec<Candidate> = self
            .names
            .iter()
            .map(|from| {
                let digest = Digest::of_bytes(&ask.text(from, None));
                Candidate { from, to: from, digest }
            })
            .collect();
        let seen = self.known_parts(name, answer, parts, &candidates);
        let seen: RankSet = seen.into_iter().map(|candidate| candidate.from).collect();
        let by_home = |part: &&Part| {
            !answer.contributors.contains(part.name) && !lives.is_inheritable(part.name, answer.at)
        };
        if let Some(part) = parts.iter().find(by_home) {
            self.fault(name, &format!("has a part of {}, which does not contribute", part.name));
        }
        self.lacks(name, answer, &seen);
    }

    /// A list of what each member has given for this one.
    fn exchanged(&mut self, process: ProcessNumber, answer: &Reported, parts: &[Part]) {
        let (ask, name) = (self.operation.ask, self.lives.name(process));
        let mut targets = answer.names.clone();
        targets.insert(name);
        if self.lives.has_moves(self.operation.span(answer)) {
            targets.union_with(self.lives.inheritable(answer.at).as_ref());
        }
        let mut candidates = Vec::new();
        for from in self.names.iter() {
            candidates.extend(targets.iter().map(|to| {
                let digest = Digest::of_bytes(&ask.text(from, Some(to)));
                Candidate { from, to, digest }
            }));
        }
        let seen = self.known_parts(name, answer, parts, &candidates);
        let for_home = seen.into_iter().filter(|candidate| candidate.to == name);
        let seen: RankSet = for_home.map(|candidate| candidate.from).collect();
        self.lacks(name, answer, &seen);
    }

    /// Which values the parts are; what is none of the candidates, or is there twice, is a fault.
    fn known_parts<'c>(
        &mut self,
        name: Rank,
        answer: &Reported,
        parts: &[Part],
        candidates: &'c [Candidate],
    ) -> Vec<&'c Candidate> {
        let mut seen: Vec<&Candidate> = Vec::new();
        for part in parts {
            let found = candidates.iter().find(|candidate| candidate.digest == part.digest);
            let Some(found) = found else {
                let text = format!("the part of {} is not that of a member", part.name);
                self.fault(name, &text);
                continue;
            };
            let Candidate { from, to, .. } = *found;
            if seen.iter().any(|each| each.from == from && each.to == to) {
                self.fault(name, &format!("the part of {from} for {to} is there twice"));
            }
            if part.name != from && !self.lives.is_inheritable(part.name, answer.at) {
                self.fault(name, &format!("the part of {from} is called that of {}", part.name));
            }
            seen.push(found);
        }
        seen
    }

    /// Those that certainly contribute have given a part.
    fn lacks(&mut self, name: Rank, answer: &Reported, seen: &RankSet) {
        let possible = self.possible(answer);
        let lacking = possible.first().map(|certain| certain.difference(seen.as_ref()));
        if let Some(lacking) = lacking.filter(|lacking| !lacking.is_empty()) {
            self.fault(name, &format!("{lacking} contributes, and its part is not there"));
        }
    }

    /// What the root had for the virtual nodes of a member.
    fn scattered(&mut self, process: ProcessNumber, answer: &Reported, parts: &[Part]) {
        let (ask, name) = (self.operation.ask, self.lives.name(process));
        let mut seen = RankSet::new();
        for part in parts {
            let to = part.name;
            if part.digest != Digest::of_bytes(&ask.text(ask.root, Some(to))) {
                self.fault(name, &format!("the part for {to} is not that of the root"));
            }
            if seen.contains(to) {
                self.fault(name, &format!("the part for {to} is there twice"));
            }
            if to != name && !self.lives.is_inheritable(to, answer.at) {
                self.fault(name, &format!("has the part for {to}, which it does not carry"));
            }
            seen.insert(to);
        }
        let lacking = answer.names.difference(seen.as_ref());
        if !lacking.is_empty() && !self.lives.has_moves(self.operation.span(answer)) {
            self.fault(name, &format!("carries {lacking}, and has no part for it"));
        }
    }
}

/// The product of what these give, as numbers without a sign that wrap around.
fn product(ask: &Ask, homes: &RankSet) -> Vec<i64> {
    let mut product: Vec<u64> = Vec::new();
    for home in homes.iter() {
        let factors = ask.odd_numbers(home).into_iter().map(i64::cast_unsigned);
        if product.is_empty() {
            product.extend(factors);
        } else {
            product.iter_mut().zip(factors).for_each(|(one, other)| *one = one.wrapping_mul(other));
        }
    }
    product.into_iter().map(u64::cast_signed).collect()
}

/// The functions `x -> a x + b` of these, one after the other: their values at 0 and 1, from the
/// innermost outwards, tell `b` and `a + b`. A number without a second one is the first one's.
fn composition(ask: &Ask, order: &[Rank]) -> Vec<i64> {
    let given: Vec<Vec<i64>> = order.iter().map(|home| ask.odd_numbers(*home)).collect();
    let Some(first) = given.first() else { return Vec::new() };
    let mut composed = first.clone();
    for at in (0..first.len() / 2).map(|pair| pair * 2) {
        let value_at = |x: i64| {
            given
                .iter()
                .rev()
                .fold(x, |x, of_one| of_one[at].wrapping_mul(x).wrapping_add(of_one[at + 1]))
        };
        (composed[at], composed[at + 1]) = (value_at(1).wrapping_sub(value_at(0)), value_at(0));
    }
    composed
}

#[cfg(test)]
mod tests {
    use super::super::super::calls::compose;
    use super::*;

    const ASK: Ask = Ask {
        collective: Collective::AllreduceInOrder,
        number: 3,
        root: 0,
        to: 0,
        members: 4,
        bytes: 28 * 8,
        seed: 5,
    };

    #[test]
    fn functions_are_composed_as_members_compose_them_and_the_order_counts() {
        let mut folded = ASK.odd_numbers(2);
        [5, 1, 3].into_iter().for_each(|home| compose(&mut folded, &ASK.odd_numbers(home)));
        assert_eq!(folded.len(), 7, "the last has no second one");
        assert_eq!(composition(&ASK, &[2, 5, 1, 3]), folded);
        assert_ne!(composition(&ASK, &[2, 1, 5, 3]), folded);
        assert_ne!(composition(&ASK, &[5, 2, 1, 3]), folded);
    }

    #[test]
    fn a_product_is_that_of_each_once() {
        let ask = Ask { collective: Collective::ReduceDefined, ..ASK };
        let mut folded = ask.odd_numbers(0);
        for home in [2, 3] {
            let others = ask.odd_numbers(home);
            folded.iter_mut().zip(others).for_each(|(one, other)| *one = one.wrapping_mul(other));
        }
        assert_eq!(product(&ask, &[0, 2, 3].into_iter().collect()), folded);
        assert_ne!(product(&ask, &[0, 3].into_iter().collect()), folded);
    }
}
