//! Files with filters reach every communication process once, whatever process comes or goes
//! meanwhile, and streams that are opened behind them find them everywhere.

use std::sync::{Arc, Mutex};

use crate::harness::{Tree, each_seed};
use sapwood_filter::{Filter, FilterError, FilterSource, FilterSpec, Registry, ShippedFile};
use sapwood_node::{NodeError, Recovery, Role, StreamSpec};
use sapwood_packet::{Rank, RankSet, ValuesRef};

/// Filters out of files, each of which is a sum. All processes of a story have this one.
#[derive(Default)]
struct Shelf {
    /// How often which file was taken, and what was in it.
    taken: Mutex<Vec<([u8; 32], Vec<u8>)>>,
}

impl Shelf {
    fn count(&self, digest: [u8; 32]) -> usize {
        let taken = self.taken.lock().expect("no story panics in here");
        taken.iter().filter(|(other, _)| *other == digest).count()
    }
}

impl FilterSource for Shelf {
    fn make(&self, name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
        let digest = [name.len() as u8; 32];
        match self.count(digest) {
            0 => Err(FilterError::Failed(format!("'{name}' has not come"))),
            _ => Registry::built_in().make("sum", parameters),
        }
    }

    fn take_file(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        let taken = (*file.digest, file.bytes.to_vec());
        self.taken.lock().expect("no story panics in here").push(taken);
        Ok(())
    }
}

fn shelf() -> (Arc<Shelf>, Registry) {
    let shelf = Arc::new(Shelf::default());
    let registry = Registry::built_in().with_source("test", shelf.clone());
    (shelf, registry)
}

fn terms() -> Recovery {
    Recovery { silence: std::time::Duration::ZERO, ..Recovery::default() }
}

fn contents(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

/// One whole wave of a stream with the filter of a file.
fn sum_by(tree: &mut Tree, name: &str, everyone: &RankSet) {
    let up = vec![FilterSpec::from(name)];
    let members = everyone.clone();
    let stream = tree.open(StreamSpec { members, up, ..StreamSpec::default() });
    tree.run();
    for rank in everyone.iter() {
        tree.send_many(rank, stream, 1).expect("the stream is open");
    }
    let answers = tree.answers();
    assert_eq!(answers.len(), 1);
    assert_eq!(&answers[0].contributors, everyone, "{:?}", answers[0].missing);
}

fn alive(tree: &Tree) -> Vec<Rank> {
    tree.communication_ranks().into_iter().filter(|&rank| tree.is_alive(rank)).collect()
}

#[test]
fn every_process_takes_each_file_once() {
    each_seed("every_process_takes", 40, |seed| {
        let (shelf, registry) = shelf();
        let shape = ["1^3", "2^3", "8^2", "3x2x2"][seed as usize % 4];
        let mut tree = Tree::with_filters(shape, seed, registry);
        tree.schedule.widen();
        let everyone = tree.everyone();
        for (digest, length) in [(1, 1), (2, 64 << 10), (3, 200_001)] {
            let bytes = contents(length);
            tree.ship(&ShippedFile { name: "test:x", digest: &[digest; 32], bytes: &bytes });
            let name = format!("test:{}", "x".repeat(usize::from(digest)));
            // Opened while the file is still under way.
            sum_by(&mut tree, &name, &everyone);
            let processes = tree.communication_ranks().len();
            assert_eq!(shelf.count([digest; 32]), 1 + processes);
            let taken = shelf.taken.lock().expect("no holder panics");
            assert!(taken.iter().all(|(other, came)| *other != [digest; 32] || *came == bytes));
        }
    });
}

#[test]
fn orphans_and_newcomers_have_what_was_sent_before_and_meanwhile() {
    each_seed("orphans_and_newcomers", 120, |seed| {
        let (shelf, registry) = shelf();
        let shape = ["2x2x2", "3x3", "1x1x1x2", "2x2x2x2"][seed as usize % 4];
        let mut tree = Tree::open_to_dynamic_members_with(shape, seed, terms(), registry);
        tree.schedule.widen();
        let everyone = tree.everyone();
        let bytes = contents(300_000);
        tree.ship(&ShippedFile { name: "test:x", digest: &[1; 32], bytes: &bytes });
        let moves = tree.schedule.below(60) as u64;
        tree.run_some(moves);
        let inner = tree.communication_ranks();
        let victim = inner[tree.schedule.below(inner.len())];
        tree.kill(victim);
        let moves = tree.schedule.below(60) as u64;
        tree.run_some(moves);
        tree.ship(&ShippedFile { name: "test:y", digest: &[2; 32], bytes: &bytes[..70_000] });
        let places = alive(&tree);
        let place = places.get(tree.schedule.below(places.len().max(1))).copied();
        let root = tree.topology.root().rank();
        let joined = tree.join_unplanned(place.unwrap_or(root), Role::Communication);
        tree.run();
        // A process without a level below it for another one refuses it.
        let has_joined = tree.processes[joined].rank.is_some();
        // The second name is that of the second file.
        sum_by(&mut tree, "test:x", &everyone);
        sum_by(&mut tree, "test:xx", &everyone);
        for digest in [1, 2] {
            let least = 1 + alive(&tree).len() + usize::from(has_joined);
            let most = least + 1;
            let count = shelf.count([digest; 32]);
            assert!((least..=most).contains(&count), "{count} of {least} to {most}");
        }
    });
}

#[test]
fn a_network_takes_no_more_than_its_limits() {
    let (_, registry) = shelf();
    let mut tree = Tree::with_filters("2^2", 1, registry);
    let too_long = vec![0; (16 << 20) + 1];
    for (name, bytes) in [("test:x", &too_long[..]), ("test:x", &[]), (&"n".repeat(300), &[1])] {
        let name = format!("test:{}", name.trim_start_matches("test:"));
        let file = ShippedFile { name: &name, digest: &[9; 32], bytes };
        let refused = tree.front_end().application().ship(&file);
        assert!(matches!(refused, Err(NodeError::File { .. })), "{refused:?}");
    }
    for number in 0..64_u8 {
        let bytes = [number];
        tree.ship(&ShippedFile { name: "test:x", digest: &[number; 32], bytes: &bytes });
    }
    let file = ShippedFile { name: "test:x", digest: &[99; 32], bytes: &[1] };
    assert!(matches!(tree.front_end().application().ship(&file), Err(NodeError::File { .. })));
    let refused = tree.process(0).node.application().ship(&file);
    assert!(matches!(refused, Err(NodeError::NotFrontEnd)), "{refused:?}");
}
