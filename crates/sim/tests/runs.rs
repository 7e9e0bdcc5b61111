//! Runs of the real nodes: clean whatever strikes, and the same each time.

use sapwood_sim::{Expect, Faults, Options, run};

fn assert_clean(faults: Faults, expect: Expect, seeds: u64) {
    let options = Options { faults, expect, ..Options::default() };
    let mut answers = 0;
    for seed in 0..seeds {
        let outcome = run(seed, &options);
        assert!(outcome.violations.is_empty(), "seed {seed} of {faults}:\n{outcome}");
        answers += outcome.answers;
    }
    assert!(answers > seeds, "there is something to check: {answers} answers");
}

#[test]
fn nothing_is_amiss_when_nothing_goes_wrong() {
    assert_clean(Faults::NONE, Expect::Recovery, 60);
    assert_clean(Faults::NONE, Expect::Losses, 60);
}

#[test]
fn nothing_is_lost_when_processes_die() {
    let crashes: Faults = "crash".parse().expect("a class of faults");
    assert_clean(crashes, Expect::Recovery, 100);
}

#[test]
fn nothing_is_lost_whatever_strikes() {
    assert_clean(Faults::ALL, Expect::Recovery, 150);
}

#[test]
fn without_recovery_losses_are_named_and_nothing_else_is_lost() {
    assert_clean(Faults::ALL, Expect::Losses, 150);
}

/// Runs that once broke a rule: a wave of chunks that was never answered, an orphan that did not go
/// where it was sent, streams that were too slow for their links, a start that waited for a process
/// that had been turned away, late parts that were forgotten, a stream that was told to be deserted
/// after its members had come back, back-ends that were told of as lost when they had come by the
/// children of a process that was slow to start, an orphan sent round in a circle, what had come
/// behind the word that nothing more comes and was taken for safe, credit of a child for what an
/// end of the network had let pass without, large packets torn below processes that were on their
/// way to another parent, or had been, filters that were too slow for their streams, and what a
/// back-end sent that had been away when its stream opened. In the last, two processes come under
/// one rank, and the tree keeps the older one.
#[test]
fn runs_that_once_broke_a_rule_are_clean() {
    for seed in [
        990_013_170,
        990_012_675,
        990_017_823,
        115_770_520_539_181,
        61,
        1630,
        1640,
        1822,
        1802,
        7_712_026_112_301_243,
        9_912_026_112_307_759,
        1_795_425_956_549_561_488,
        1_795_425_956_549_582_108,
        1_795_425_956_549_552_219,
        1_795_428_235_703_333_826,
        9_912_026_112_334_162,
        1_795_427_111_680_326_610,
        1_795_425_956_549_565_501,
    ] {
        let outcome = run(seed, &Options::default());
        assert!(outcome.violations.is_empty(), "seed {seed}:\n{outcome}");
    }
}

#[test]
fn late_processes_are_not_lost() {
    let lag: Faults = "lag".parse().expect("a class of faults");
    assert_clean(lag, Expect::Recovery, 150);
    assert_clean(lag, Expect::Losses, 100);
}

#[test]
fn a_seed_is_a_run() {
    let options = Options { log: true, ..Options::default() };
    let (first, second) = (run(11, &options), run(11, &options));
    assert!(!first.log.is_empty());
    assert_eq!(first.log, second.log);
    assert_eq!(first.happenings, second.happenings);
    let other = run(12, &options);
    assert_ne!(first.log, other.log);
}
