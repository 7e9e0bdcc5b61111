//! The simulator finds broken rules: each of these breaks one in every node, and is caught.
//!
//! A run counts only when the same seed is clean with nodes that keep all rules. What caught each
//! is printed; see it with `cargo test -p sapwood-sim --test mutations -- --nocapture`.

use sapwood_node::{Mutation, Node};
use sapwood_sim::{Expect, Faults, Options, Rule, run};

/// So many seeds are tried for each.
const SEEDS: u64 = 1500;

/// The first seed that catches a mutation, and the rule that it was caught by.
fn caught(prepare: fn(&mut Node), faults: &str) -> Option<(u64, Rule, String)> {
    let faults: Faults = faults.parse().expect("classes of faults");
    let sound = Options { faults, expect: Expect::Recovery, ..Options::default() };
    let broken = Options { prepare: Some(prepare), ..sound.clone() };
    (0..SEEDS).find_map(|seed| {
        let outcome = run(seed, &broken);
        let violation = outcome.violations.first()?;
        let is_clean = run(seed, &sound).violations.is_empty();
        is_clean.then(|| (seed, violation.rule, violation.text.clone()))
    })
}

fn assert_caught(mutation: Mutation, prepare: fn(&mut Node), faults: &str) {
    let Some((seed, rule, text)) = caught(prepare, faults) else {
        panic!("{mutation:?} is not caught by {SEEDS} seeds of {faults}");
    };
    println!("{mutation:?}: seed {seed} of {faults}, rule '{}': {text}", rule.name());
}

#[test]
fn an_overlap_that_is_not_looked_for_is_caught() {
    assert_caught(
        Mutation::SkipOverlapCheck,
        |node| node.mutate(Mutation::SkipOverlapCheck),
        "crash",
    );
}

#[test]
fn packets_that_are_not_kept_are_caught() {
    assert_caught(Mutation::ForgetKept, |node| node.mutate(Mutation::ForgetKept), "crash");
}

#[test]
fn an_acknowledgement_that_comes_early_is_caught() {
    assert_caught(
        Mutation::AcknowledgeEarly,
        |node| node.mutate(Mutation::AcknowledgeEarly),
        "crash",
    );
}

#[test]
fn downward_packets_that_are_taken_twice_are_caught() {
    assert_caught(
        Mutation::RepeatDownwards,
        |node| node.mutate(Mutation::RepeatDownwards),
        "crash",
    );
}

#[test]
fn waves_that_do_not_wait_for_orphans_are_caught() {
    assert_caught(Mutation::ForgetOrphans, |node| node.mutate(Mutation::ForgetOrphans), "crash");
}

#[test]
fn an_orphan_that_is_taken_in_too_soon_is_caught() {
    assert_caught(Mutation::SkipFence, |node| node.mutate(Mutation::SkipFence), "partition");
}

#[test]
fn late_parts_that_are_lost_are_caught() {
    assert_caught(
        Mutation::LoseLateParts,
        |node| node.mutate(Mutation::LoseLateParts),
        "crash,slow",
    );
}
