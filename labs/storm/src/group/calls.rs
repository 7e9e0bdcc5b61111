//! The calls of a member in the storm: each operation as a program would start it, and its answer
//! as a line.

use std::time::Instant;

use sapwood::{Group, GroupAnswer, GroupOperation, GroupRequest, Rank, RankSet, Reduction};
use sapwood_command_line::exit::Failure;
use serde_json::{Value, json};

use super::collective::Collective;
use super::member::say;
use super::oracle::DEADLINE;
use super::value::{Ask, Digest};

/// The names of the operations that each member defines.
const PRODUCT: &str = "storm-product";
const COMPOSITION: &str = "storm-composition";

/// The calls of one member, and what it has defined for them.
pub(super) struct Calls {
    name: Rank,
    product: Reduction,
    composition: Reduction,
    open: Vec<OpenCall>,
}

/// What a member knew of the group when it called.
#[derive(Debug)]
pub(super) struct Called {
    /// All virtual nodes that are carried.
    known: RankSet,
    /// Those that this member carries.
    names: RankSet,
    pub began: Instant,
}

/// An operation under way.
struct OpenCall {
    number: u64,
    collective: Collective,
    called: Called,
    request: GroupRequest,
}

impl Calls {
    /// Those of the member that has joined with this virtual node.
    ///
    /// # Errors
    /// [`Failure`] where its operations cannot be defined.
    pub(super) fn new(group: &Group, name: Rank) -> Result<Self, Failure> {
        let product = group.define(PRODUCT, |one: i64, other| one.wrapping_mul(other))?;
        let composition = group.define_in_order::<i64>(COMPOSITION, compose)?;
        Ok(Self { name, product, composition, open: Vec::new() })
    }

    /// Starts one.
    pub(super) fn begin(&mut self, group: &Group, ask: &Ask) -> Result<(), Failure> {
        let Ask { number, collective, .. } = *ask;
        let called = Called::now(group);
        let operation = self.operation(group, ask, &called)?;
        match operation.number(number).deadline(DEADLINE).start() {
            Ok(request) => {
                self.open.push(OpenCall { number, collective, called, request });
                Ok(())
            }
            Err(error) => say(&json!({ "answered": number, "error": error.to_string() })),
        }
    }

    /// Says what has come of them.
    pub(super) fn answer(&mut self) -> Result<(), Failure> {
        let mut open = Vec::with_capacity(self.open.len());
        for mut call in std::mem::take(&mut self.open) {
            match call.request.test() {
                Ok(None) => open.push(call),
                Ok(Some(answer)) => say(&call.told(&answer))?,
                Err(error) => {
                    say(&json!({ "answered": call.number, "error": error.to_string() }))?;
                }
            }
        }
        self.open = open;
        Ok(())
    }

    fn operation<'a>(
        &self,
        group: &'a Group,
        ask: &Ask,
        called: &Called,
    ) -> Result<GroupOperation<'a>, Failure> {
        let (name, root) = (self.name, ask.root);
        let is_root = called.names.contains(root);
        let sum = Reduction::Sum;
        let for_each = |from: Rank| -> Vec<(Rank, Vec<u8>)> {
            called.known.iter().map(|to| (to, ask.text(from, Some(to)))).collect()
        };
        Ok(match ask.collective {
            Collective::Broadcast => group.broadcast(root, is_root.then(|| ask.payload())),
            Collective::Send => group.send(ask.to, ask.number, ask.payload()),
            Collective::Scatter => group.scatter(root, is_root.then(|| for_each(root))),
            Collective::Reduce => group.reduce(root, sum, &ask.numbers(name)),
            Collective::ReduceDefined => group.reduce(root, self.product, &ask.odd_numbers(name)),
            Collective::Gather => group.gather(root, ask.text(name, None)),
            Collective::Allreduce => group.allreduce(sum, &ask.numbers(name)).root(root),
            Collective::AllreduceInOrder => {
                group.allreduce(self.composition, &ask.odd_numbers(name)).root(root)
            }
            Collective::Allgather => group.allgather(ask.text(name, None)).root(root),
            Collective::ReduceScatter => {
                let blocks: Vec<(Rank, usize)> =
                    (0..ask.members).map(|to| (to, ask.block())).collect();
                group.reduce_scatter(sum, &ask.numbers(name), &blocks)?.root(root)
            }
            Collective::AllToAll => group.all_to_all(for_each(name)),
        })
    }
}

impl Called {
    /// What it knows now.
    pub(super) fn now(group: &Group) -> Self {
        Self { known: group.everyone(), names: group.names(), began: Instant::now() }
    }

    /// The answer to the call, without a value.
    pub(super) fn told(
        &self,
        number: u64,
        contributors: &RankSet,
        missing: &[(RankSet, String)],
    ) -> Value {
        let missing: Vec<Value> = missing
            .iter()
            .map(|(names, why)| json!({ "names": names.to_string(), "reason": why }))
            .collect();
        json!({
            "answered": number,
            "known": self.known.to_string(),
            "names": self.names.to_string(),
            "took_us": self.began.elapsed().as_micros() as u64,
            "contributors": contributors.to_string(),
            "missing": missing,
        })
    }
}

impl OpenCall {
    fn told(&self, answer: &GroupAnswer) -> Value {
        let missing: Vec<(RankSet, String)> =
            answer.missing.iter().map(|(names, why)| (names.clone(), why.to_string())).collect();
        let mut line = self.called.told(self.number, &answer.contributors, &missing);
        let digest = |bytes: &[u8]| Digest::of_bytes(bytes).told();
        if self.collective.has_parts() {
            let part =
                |(name, bytes): (Rank, &[u8])| json!({ "name": name, "value": digest(bytes) });
            let parts = answer.parts().ok();
            line["parts"] =
                json!(parts.map(|parts| parts.into_iter().map(part).collect::<Vec<_>>()));
        } else {
            line["value"] = json!(answer.bytes().ok().map(digest));
        }
        line
    }
}

/// Each pair of numbers is the function `x -> a x + b`, and two of them are one after the other: a
/// fold in which the order counts. Of a number without a second one the first stays.
pub(super) fn compose(into: &mut [i64], value: &[i64]) {
    for (one, other) in into.chunks_mut(2).zip(value.chunks(2)) {
        if let ([a, b], [c, d]) = (one, other) {
            *b = a.wrapping_mul(*d).wrapping_add(*b);
            *a = a.wrapping_mul(*c);
        }
    }
}
