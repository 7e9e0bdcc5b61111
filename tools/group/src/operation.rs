//! Carrying out one request at a member, and judging what comes of it.
//!
//! Values are made from numbers that all members know, so that each one can say whether what it got
//! is right. Each virtual node adds a weight of its own to a reduction: the sum of the
//! contributors' weights shows that each was counted once.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sapwood::{
    Group, GroupAnswer, GroupOperation, Number, Rank, RankSet, Reason, Reduction, Result,
};
use sapwood_random::mix;
use sapwood_report::nanoseconds;
use serde_json::{Value, json};

use crate::request::{Act, Kind, Request};

/// How often a wait for an answer looks whether the member is asked to end.
const LOOK: Duration = Duration::from_millis(200);

/// What came of a request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    seconds: Vec<f64>,
    /// Begin and end of each round, in nanoseconds of `CLOCK_MONOTONIC`.
    moments: Vec<[u64; 2]>,
    /// Rounds whose value was wrong.
    wrong: u64,
    /// Rounds without a value at a member that was to get one.
    without_value: u64,
    /// Rounds with missing virtual nodes.
    incomplete: u64,
    contributors: RankSet,
    missing: Vec<(RankSet, Reason)>,
    value: Option<String>,
}

/// Carries out all rounds; nothing where the member is asked to end before.
pub(crate) fn carry_out(
    group: &Group,
    request: &Request,
    published: &mut u64,
    mut is_to_end: impl FnMut() -> bool,
) -> Result<Option<Outcome>> {
    let mut outcome = Outcome::default();
    for round in 0..request.rounds {
        let number = request.number.map(|number| number + round);
        // Values are made before the clock runs.
        let operation = build(group, request, number, published)?;
        if request.is_apart {
            group.barrier().deadline(request.deadline).wait()?;
        }
        let wait = lateness(group, request, round).saturating_add(until_begin(request, round));
        if !sleep_unless(wait, &mut is_to_end) {
            return Ok(None);
        }
        let begun = Instant::now();
        let begin = now_ns();
        if request.has_bypass {
            let answer = operation.bypass()?;
            outcome.seconds.push(begun.elapsed().as_secs_f64());
            outcome.moments.push([begin, now_ns()]);
            if let Some(answer) = answer {
                outcome.note(group, request, answer);
            }
            if is_to_end() {
                return Ok(None);
            }
            continue;
        }
        let mut started = operation.start()?;
        let answer = loop {
            if let Some(answer) = started.wait_within(LOOK)? {
                break answer;
            }
            if is_to_end() {
                return Ok(None);
            }
        };
        outcome.seconds.push(begun.elapsed().as_secs_f64());
        outcome.moments.push([begin, now_ns()]);
        outcome.note(group, request, answer);
        if is_to_end() {
            return Ok(None);
        }
    }
    Ok(Some(outcome))
}

/// How much later than at once this member begins a round: by chance, the same in each run.
fn lateness(group: &Group, request: &Request, round: u64) -> Duration {
    let name = u64::from(group.names().as_ref().first().unwrap_or(0));
    let share = (mix(name << 40 ^ round ^ 1 << 63) >> 40) as f64 / (1_u64 << 24) as f64;
    request.skew.mul_f64(share)
}

/// How long it is until a round is to begin.
fn until_begin(request: &Request, round: u64) -> Duration {
    let every = nanoseconds(request.every);
    let begin = request.at.saturating_add(every.saturating_mul(round));
    Duration::from_nanos(begin.saturating_sub(now_ns()))
}

/// Sleeps; false where the member is asked to end meanwhile.
fn sleep_unless(time: Duration, is_to_end: &mut impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        let rest = time.saturating_sub(begun.elapsed());
        if rest.is_zero() {
            return true;
        }
        std::thread::sleep(rest.min(LOOK));
        if rest > LOOK && is_to_end() {
            return false;
        }
    }
}

/// The clock that all processes of a host share.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn build<'a>(
    group: &'a Group,
    request: &Request,
    number: Option<u64>,
    published: &mut u64,
) -> Result<GroupOperation<'a>> {
    let Request { root, bytes, .. } = *request;
    let own = group.names();
    let first = own.as_ref().first().unwrap_or(0);
    let is_root = own.contains(root);
    let everyone = group.everyone();
    let operation = match request.act {
        Act::Barrier => group.barrier(),
        Act::Broadcast => group.broadcast(root, is_root.then(|| made(root, bytes))),
        Act::Gather => group.gather(root, made(first, bytes)),
        Act::Allgather => group.allgather(made(first, bytes)),
        Act::Scatter => {
            let values = everyone.iter().map(|name| (name, made(name, bytes))).collect();
            group.scatter(root, is_root.then_some(values))
        }
        Act::AllToAll => {
            let values = everyone.iter().map(|name| (name, made(first ^ name << 16, bytes)));
            group.all_to_all(values.collect())
        }
        Act::Reduce | Act::Allreduce => match request.kind {
            Kind::I64 => reduction(group, request, &vec![weight(&own); bytes / 8]),
            Kind::F64 => reduction(group, request, &vec![weight(&own) as f64; bytes / 8]),
        },
        Act::ReduceScatter => {
            let counts: Vec<(Rank, usize)> =
                everyone.iter().map(|name| (name, bytes / 8)).collect();
            let numbers = vec![weight(&own); bytes / 8 * counts.len()];
            group.reduce_scatter(Reduction::Sum, &numbers, &counts)?
        }
        Act::Publish | Act::Send => {
            *published += 1;
            let value = match &request.text {
                Some(text) => text.clone().into_bytes(),
                None => numbered(*published, first, bytes),
            };
            match request.act {
                Act::Publish => group.publish(tag(request), value),
                _ => group.send(root, tag(request), value),
            }
        }
        Act::Track | Act::Members | Act::Received | Act::Leave => group.barrier(),
    };
    let operation = operation.tree(request.tree).deadline(request.deadline);
    Ok(match number.filter(|_| request.act.is_collective()) {
        Some(number) => operation.number(number),
        None => operation,
    })
}

fn reduction<'a, T: Number>(
    group: &'a Group,
    request: &Request,
    numbers: &[T],
) -> sapwood::GroupOperation<'a> {
    match request.act {
        Act::Reduce => group.reduce(request.root, Reduction::Sum, numbers),
        _ => group.allreduce(Reduction::Sum, numbers).root(request.root),
    }
}

/// Texts have the tag 1, made-up values 0.
fn tag(request: &Request) -> u64 {
    u64::from(request.text.is_some())
}

/// The weight of a set of virtual nodes in a sum. Small enough that a sum of many is exact as a
/// floating-point number, too.
pub(crate) fn weight(names: &RankSet) -> i64 {
    names.iter().map(|name| (mix(u64::from(name) + 1) >> 28) as i64).sum()
}

/// Bytes that depend on a seed.
pub(crate) fn made(seed: u32, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut word = 0_u64;
    while bytes.len() < length {
        word += 1;
        bytes.extend_from_slice(&mix(u64::from(seed) << 32 ^ word).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A value with the sender's count in front: 8 bytes of count, 4 of the sender's virtual node.
fn numbered(count: u64, name: Rank, length: usize) -> Vec<u8> {
    let mut bytes = count.to_le_bytes().to_vec();
    bytes.extend_from_slice(&name.to_le_bytes());
    bytes.extend_from_slice(&made(name ^ count as u32, length.saturating_sub(12)));
    bytes
}

impl Outcome {
    fn note(&mut self, group: &Group, request: &Request, answer: GroupAnswer) {
        self.incomplete += u64::from(!answer.missing.is_empty());
        match is_right(group, request, &answer) {
            Some(is_right) => self.wrong += u64::from(!is_right),
            None => self.without_value += u64::from(is_due(group, request)),
        }
        if !answer.missing.is_empty() {
            self.missing.clone_from(&answer.missing);
        }
        self.value = answer.bytes().ok().filter(|_| request.kind == Kind::I64).and_then(|bytes| {
            let first: [u8; 8] = bytes.get(..8)?.try_into().ok()?;
            Some(i64::from_le_bytes(first).to_string())
        });
        self.contributors = answer.contributors;
    }

    /// The time of a round in the middle.
    pub(crate) fn median(&self) -> f64 {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied().unwrap_or(0.0)
    }

    /// As JSON.
    pub(crate) fn to_json(&self, request: &Request) -> Value {
        let missing: Vec<Value> = self
            .missing
            .iter()
            .map(|(names, why)| json!({ "names": names.to_string(), "reason": why.to_string() }))
            .collect();
        let least = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.seconds.iter().copied().fold(0.0, f64::max);
        let mut shown = json!({
            "operation": request.name,
            "tree": request.tree.to_string(),
            "root": request.root,
            "bytes": request.bytes,
            "rounds": self.seconds.len(),
            "seconds": { "least": least, "median": self.median(), "most": most },
            "wrong": self.wrong,
            "without_value": self.without_value,
            "incomplete": self.incomplete,
            "contributors": self.contributors.to_string(),
            "missing": missing,
            "value": self.value,
        });
        if request.has_moments {
            shown["moments"] = json!(self.moments);
        }
        shown
    }
}

/// Whether this member is to get a value.
fn is_due(group: &Group, request: &Request) -> bool {
    match request.act {
        Act::Reduce | Act::Gather => group.names().contains(request.root),
        Act::Broadcast | Act::Allreduce | Act::Allgather | Act::Scatter => true,
        Act::ReduceScatter | Act::AllToAll => true,
        _ => false,
    }
}

/// Whether the value is what it must be; none if there is no value.
fn is_right(group: &Group, request: &Request, answer: &GroupAnswer) -> Option<bool> {
    let Request { root, bytes, .. } = *request;
    let own = group.names();
    let value = answer.bytes().ok()?;
    let parts = || answer.parts().unwrap_or_default();
    Some(match request.act {
        Act::Broadcast => value == made(root, bytes),
        Act::Scatter => parts().iter().all(|(name, value)| *value == made(*name, bytes)),
        Act::Gather | Act::Allgather => {
            let names: RankSet = parts().iter().map(|part| part.0).collect();
            names.as_ref().is_within(answer.contributors.as_ref())
                && parts().iter().all(|(name, value)| *value == made(*name, bytes))
        }
        Act::AllToAll => {
            // Of each sender one for each of the own virtual nodes, in their order.
            let own: Vec<Rank> = own.iter().collect();
            let own = own.iter().cycle();
            parts()
                .iter()
                .zip(own)
                .all(|((from, value), to)| *value == made(from ^ to << 16, bytes))
        }
        Act::Reduce | Act::Allreduce | Act::ReduceScatter => {
            let sum = weight(&answer.contributors);
            match request.kind {
                Kind::I64 => answer.numbers::<i64>().ok()?.iter().all(|number| *number == sum),
                Kind::F64 => {
                    let numbers = answer.numbers::<f64>().ok()?;
                    numbers.iter().all(|number| (number - sum as f64).abs() < 0.5)
                }
            }
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_shows_what_was_counted() {
        let weight = |names: &str| weight(&names.parse().unwrap());
        assert_eq!(weight("0-7"), weight("0-3") + weight("4-7"));
        assert_ne!(weight("0-7"), weight("0-6"));
        assert_ne!(weight("0-6") + weight("6"), weight("0-7"));
    }
    #[test]
    fn a_begin_beyond_all_time_is_waited_for_until_the_member_is_asked_to_end() {
        let line = format!("barrier at={} every=1h rounds=10000000", u64::MAX);
        let request: Request = line.parse().unwrap();
        let wait = until_begin(&request, request.rounds - 1);
        assert!(wait > Duration::from_secs(1 << 32));
        assert!(!sleep_unless(wait, &mut || true));
        assert!(sleep_unless(Duration::ZERO, &mut || true));
    }
}
