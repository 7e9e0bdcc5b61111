//! The simulator finds broken rules: each of these breaks one in every node, and is caught.
//!
//! A run counts only when the same seed is clean with nodes that keep all rules. What caught each
//! is printed; see it with `cargo test -p sapwood-sim --test all mutations -- --nocapture`.

use sapwood_node::{Mutation, Node};
use sapwood_sim::{Expect, Faults, Options, Rule, run};

/// How many seeds are tried for each. Most are caught by the first 50; two need a schedule that
/// comes once in some hundreds.
const SEEDS: u64 = 2000;

/// The first seed that catches a mutation, and the rule that it was caught by.
fn caught(prepare: fn(&mut Node)) -> Option<(u64, Rule, String)> {
    let sound = Options { faults: Faults::ALL, expect: Expect::Recovery, ..Options::default() };
    let broken = Options { prepare: Some(prepare), ..sound.clone() };
    (0..SEEDS).find_map(|seed| {
        let outcome = run(seed, &broken);
        let violation = outcome.violations.first()?;
        let is_clean = run(seed, &sound).violations.is_empty();
        is_clean.then(|| (seed, violation.rule, violation.text.clone()))
    })
}

fn assert_caught(mutation: Mutation, prepare: fn(&mut Node)) {
    let Some((seed, rule, text)) = caught(prepare) else {
        panic!("{mutation:?} is not caught by {SEEDS} seeds");
    };
    println!("{mutation:?}: seed {seed}, rule '{}': {text}", rule.name());
}

/// A test for each rule, with the name of what it shows.
macro_rules! caught {
    ($($name:ident: $rule:ident,)*) => {$(
        #[test]
        fn $name() {
            assert_caught(Mutation::$rule, |node| node.mutate(Mutation::$rule));
        }
    )*};
}

caught! {
    an_overlap_that_is_not_looked_for_is_caught: SkipOverlapCheck,
    an_overlap_that_is_found_only_as_a_whole_is_caught: FindWholeOverlapsOnly,
    packets_that_are_not_kept_are_caught: ForgetKept,
    a_first_packet_that_is_not_sent_again_is_caught: SkipFirstKept,
    an_acknowledgement_that_comes_early_is_caught: AcknowledgeEarly,
    an_acknowledgement_that_goes_too_far_is_caught: AcknowledgeTooFar,
    a_resumption_that_goes_too_far_is_caught: ResumeTooFar,
    downward_packets_that_are_taken_twice_are_caught: RepeatDownwards,
    single_packets_that_are_taken_twice_are_caught: RepeatSingles,
    waves_that_do_not_wait_for_orphans_are_caught: ForgetOrphans,
    an_orphan_that_is_taken_in_too_soon_is_caught: SkipFence,
    superseded_processes_that_are_forgotten_are_caught: ForgetSuperseded,
    late_parts_that_are_lost_are_caught: LoseLateParts,
    absences_that_are_forgotten_are_caught: ForgetAbsences,
    contributors_that_are_replaced_are_caught: ReplaceContributors,
    chunks_that_do_not_belong_together_are_caught: SkipChunkCheck,
    credit_that_is_halved_is_caught: HalveCredit,
}
