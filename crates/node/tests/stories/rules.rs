//! Synchronisation rules of users: a wave goes on when its rule says so, or when it is complete.

use std::sync::Arc;
use std::time::Duration;

use crate::harness::*;
use sapwood_filter::{
    Arrivals, Filter, FilterError, FilterSource, FilterSpec, Registry, Synchronisation, Verdict,
    WaveRule,
};
use sapwood_node::{Event, FILTER_LIMIT};
use sapwood_packet::{Rank, RankSet, StreamId, ValuesRef};

/// Rules by name.
struct Rules;

/// Waits for 10 ms after the first packet for each back-end below, so that processes nearer to the
/// back-ends go on first.
struct Patient;

/// Goes on with this many children.
struct Quorum(u32);

/// Never says anything but that it waits.
struct Stubborn;

/// Refuses every wave that it is asked about.
struct Broken;

/// Another one, which is asked in a job.
struct Offloaded(Box<dyn Synchronisation>);

/// Longer than a rule may take.
const TOO_LONG: u64 = FILTER_LIMIT.as_millis() as u64 + 1;

impl Synchronisation for Patient {
    fn decide(&mut self, arrivals: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        assert!(arrivals.arrived >= 1 && arrivals.arrived < arrivals.expected);
        let patience = Duration::from_millis(10) * arrivals.back_ends;
        Ok(match patience.checked_sub(arrivals.elapsed) {
            None | Some(Duration::ZERO) => Verdict::Go,
            Some(rest) => Verdict::WaitFor(rest),
        })
    }
}

impl Synchronisation for Quorum {
    fn decide(&mut self, arrivals: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        Ok(if arrivals.arrived >= self.0 { Verdict::Go } else { Verdict::Wait })
    }
}

impl Synchronisation for Stubborn {
    fn decide(&mut self, _: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        Ok(Verdict::Wait)
    }
}

impl Synchronisation for Broken {
    fn decide(&mut self, _: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        Err(FilterError::Failed(String::from("the rule is broken")))
    }
}

impl Synchronisation for Offloaded {
    fn decide(&mut self, arrivals: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        self.0.decide(arrivals)
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

impl FilterSource for Rules {
    fn make(&self, name: &str, _: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
        Err(FilterError::Failed(format!("'{name}' is a rule")))
    }

    fn make_rule(
        &self,
        name: &str,
        _: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        let offloaded = name.strip_prefix("offloaded-");
        let rule: Box<dyn Synchronisation> = match offloaded.unwrap_or(name) {
            "patient" => Box::new(Patient),
            "three" => Box::new(Quorum(3)),
            "stubborn" => Box::new(Stubborn),
            _ => Box::new(Broken),
        };
        Ok(if offloaded.is_some() { Box::new(Offloaded(rule)) } else { rule })
    }
}

fn registry() -> Registry {
    Registry::built_in().with_source("rule", Arc::new(Rules))
}

fn stream_by(tree: &mut Tree, filter: &str, rule: &str) -> StreamId {
    let mut spec = spec(&tree.everyone(), &[filter], WaveRule::All);
    spec.rule = Some(FilterSpec::from(rule));
    let stream = tree.open(spec);
    tree.run();
    stream
}

/// A rule in the loop, and the same offloaded from it.
fn both(rule: &str) -> [String; 2] {
    [format!("rule:{rule}"), format!("rule:offloaded-{rule}")]
}

fn without(everyone: &RankSet, rank: Rank) -> RankSet {
    everyone.difference(RankSet::range(rank, rank).as_ref())
}

#[test]
fn a_complete_wave_goes_on_whatever_the_rule_says() {
    each_seed("a_complete_wave_goes_on", 12, |seed| {
        for (shape, rule) in SHAPES.into_iter().flat_map(|s| both("stubborn").map(|r| (s, r))) {
            let mut tree = Tree::with_filters(shape, seed, registry());
            let everyone = tree.everyone();
            let stream = stream_by(&mut tree, "sum", &rule);
            for wave in 0..3 {
                tree.all_send(&everyone, stream);
                let answer = tree.one_answer();
                assert_eq!((answer.wave, answer.is_complete()), (wave, true));
            }
        }
    });
}

#[test]
fn a_rule_is_asked_again_when_its_time_is_up() {
    each_seed("a_rule_is_asked_again", 12, |seed| {
        for (shape, fan_out) in [("2", 2), ("8", 8), ("2^2", 2), ("2^4", 2), ("8^2", 8)] {
            let [inside, offloaded] = both("patient");
            for (filter, rule) in
                [("sum", &inside), ("sum", &offloaded), ("statistics", &offloaded)]
            {
                let mut tree = Tree::with_filters(shape, seed, registry());
                let everyone = tree.everyone();
                let stream = stream_by(&mut tree, filter, rule);
                let late = tree.schedule.below(everyone.len() as usize) as Rank;
                tree.all_send(&without(&everyone, late), stream);
                tree.advance(10 * fan_out - 1);
                assert!(tree.answers().is_empty(), "the time is not over");
                tree.advance(1);
                let answer = tree.one_answer();
                assert_eq!(answer.contributors, without(&everyone, late));
                assert!(
                    says(&answer, late, "when the stream's wave rule forwarded wave 0"),
                    "{answer:?}"
                );
                // The next one has all of them again.
                tree.send(late, stream, 77).expect("the wave is still open to it");
                assert!(tree.one_answer().is_late);
                tree.all_send(&everyone, stream);
                assert!(tree.one_answer().is_complete());
            }
        }
    });
}

#[test]
fn a_rule_counts_the_children_that_have_arrived() {
    each_seed("a_rule_counts_the_children", 12, |seed| {
        for rule in both("three") {
            let mut tree = Tree::with_filters("8", seed, registry());
            let stream = stream_by(&mut tree, "sum", &rule);
            for rank in [6, 1] {
                tree.send(rank, stream, 10).expect("open");
            }
            assert!(tree.answers().is_empty());
            tree.send(4, stream, 10).expect("open");
            let answer = tree.one_answer();
            assert_eq!((sum_in(&answer), answer.contributors.to_string().as_str()), (30, "1,4,6"));
        }
    });
}

#[test]
fn a_rule_that_fails_costs_the_wave_with_its_reason() {
    each_seed("a_rule_that_fails", 6, |seed| {
        for rule in both("broken") {
            let mut tree = Tree::with_filters("4", seed, registry());
            let stream = stream_by(&mut tree, "sum", &rule);
            tree.send(2, stream, 10).expect("open");
            let answer = tree.one_answer();
            assert!(
                answer.packet.is_none() && says(&answer, 2, "the rule is broken"),
                "{answer:?}"
            );
        }
    });
}

#[test]
fn what_has_come_while_a_rule_was_asked_is_asked_about_next() {
    each_seed("what_has_come_while", 8, |seed| {
        let mut tree = Tree::with_filters("8", seed, registry());
        let stream = stream_by(&mut tree, "sum", "rule:offloaded-three");
        tree.holds_jobs = true;
        for rank in [6, 1, 4] {
            tree.send(rank, stream, 10).expect("open");
        }
        assert!(tree.answers().is_empty(), "it has been asked about the first of them alone");
        assert_eq!(tree.jobs.len(), 1);
        tree.finish_jobs();
        let answer = tree.one_answer();
        assert_eq!((sum_in(&answer), answer.contributors.to_string().as_str()), (30, "1,4,6"));
    });
}

#[test]
fn a_rule_that_never_answers_is_given_up_and_its_stream_says_so() {
    each_seed("a_rule_that_never_answers", 8, |seed| {
        let mut tree = Tree::with_filters("4", seed, registry());
        let everyone = tree.everyone();
        let stream = stream_by(&mut tree, "sum", "rule:offloaded-stubborn");
        let neighbour = tree.stream(&everyone, "sum", WaveRule::All);
        tree.holds_jobs = true;
        tree.all_send(&everyone, stream);
        assert!(tree.one_answer().is_complete(), "a whole wave goes on without it");
        tree.send(2, stream, 10).expect("open");
        assert!(tree.answers().is_empty());
        tree.all_send(&everyone, neighbour);
        assert_eq!(tree.one_answer().stream, neighbour);
        tree.advance(TOO_LONG);
        let answer = tree.one_answer();
        let reason =
            "rule 'rule:offloaded-stubborn' of stream 1 has run for 10000 ms and is given up";
        assert!(answer.packet.is_none() && says(&answer, 2, reason), "{answer:?}");
        let is_told = |event: &Event| {
            matches!(event, Event::FilterFailed { stream: told, reason }
                if *told == stream && reason.contains("is given up"))
        };
        assert!(tree.events.iter().any(is_told), "{:?}", tree.events);
        // From now on it says so at once; and what the rule says after all changes nothing.
        tree.finish_jobs();
        tree.send(2, stream, 10).expect("open");
        let answer = tree.one_answer();
        assert!(answer.packet.is_none() && says(&answer, 2, reason), "{answer:?}");
        tree.all_send(&everyone, neighbour);
        assert_eq!(tree.one_answer().stream, neighbour);
    });
}

#[test]
fn a_stream_is_closed_while_its_rule_thinks() {
    each_seed("a_stream_is_closed", 8, |seed| {
        let mut tree = Tree::with_filters("4", seed, registry());
        let everyone = tree.everyone();
        let stream = stream_by(&mut tree, "sum", "rule:offloaded-three");
        tree.holds_jobs = true;
        tree.send(2, stream, 10).expect("open");
        tree.run();
        tree.close(stream);
        tree.finish_jobs();
        let another = tree.stream(&everyone, "sum", WaveRule::All);
        tree.all_send(&everyone, another);
        assert!(tree.one_answer().is_complete());
    });
}
