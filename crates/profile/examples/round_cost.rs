//! What a leaf's round costs: folding, encoding, reading and merging 8 ranks of 60 events.
#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

use std::hint::black_box;
use std::time::Instant;

use sapwood_profile::{Counters, EventKey, RankProfile, Round, SizeClass};

const TIMES: u32 = 2000;

fn main() {
    let leaf = |first: u32| {
        (first..first + 8).map(|rank| {
            let mut profile = RankProfile::new(rank, 64);
            for id in 1..=60 {
                let key = EventKey::Function { id, size_class: SizeClass::NONE };
                let number = u64::from(id * (rank + 1));
                let time_ns = number * 1_000_003;
                profile.events.insert(key, Counters { count: number, time_ns, bytes: number });
            }
            profile
        })
    };
    let profiles: Vec<RankProfile> = leaf(0).collect();
    let fold = |profiles: &[RankProfile]| {
        let mut round = Round::new(64);
        for profile in profiles {
            round.add(profile).expect("every rank once");
        }
        round
    };
    let round = fold(&profiles);
    let others: Vec<_> =
        (1..8).map(|at| fold(&leaf(8 * at).collect::<Vec<_>>()).encode()).collect();
    let values = round.encode();
    println!("encoded {} bytes", values.as_ref().body().len());
    report("fold 8 ranks", || drop(black_box(fold(&profiles))));
    report("encode", || drop(black_box(round.encode())));
    report("decode", || drop(black_box(Round::decode(values.as_ref()))));
    report("decode and merge 8 rounds, encode", || {
        let mut all = Round::decode(values.as_ref()).expect("a round");
        for other in &others {
            all.merge(Round::decode(other.as_ref()).expect("a round")).expect("other ranks");
        }
        drop(black_box(all.encode()));
    });
}

fn report(what: &str, mut work: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..TIMES {
        work();
    }
    println!("{what}: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES));
}
