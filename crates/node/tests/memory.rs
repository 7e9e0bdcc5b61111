//! What a node has taken for a burst it gives back when it is quiet again.
#[path = "stories/harness/mod.rs"]
mod harness;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use harness::{Tree, each_seed, number_of};
use sapwood_filter::WaveRule;
use sapwood_node::Recovery;
use sapwood_packet::{RankSet, StreamId};

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    BYTES.with(|all| all.set(all.get() + bytes));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as isize - layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes of the nodes of a tree, by process: what is freed when each is dropped.
fn bytes_of_nodes(tree: Tree) -> Vec<isize> {
    let bytes = |process: harness::Process| {
        let before = BYTES.get();
        drop(process.node);
        before - BYTES.get()
    };
    tree.processes.into_iter().map(bytes).collect()
}

/// Every back-end sends this many waves at once, each a frame of its own.
fn all_send(tree: &mut Tree, stream: StreamId, waves: u64) {
    for rank in tree.everyone().iter() {
        let first = tree.oracle.next_wave(stream, rank);
        for wave in first..first + waves {
            let number = number_of(rank, wave);
            tree.send_values(rank, stream, (number, 7_i64), Some(wave)).expect("open");
            tree.oracle.sent(stream, wave, rank, number);
        }
    }
}

/// When a tree is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    AtOnce,
    /// When it has been quiet for some seconds.
    Later,
}

/// A tree that has had a few waves, then at one time `burst` more and as many large packets down,
/// with a front-end that takes nothing.
fn tree_after(seed: u64, burst: u64, moment: Moment) -> Tree {
    let mut tree = Tree::recovering("2x2", seed, Recovery::default());
    tree.schedule.cut_bytes = tree.schedule.cut_bytes.max(4096);
    let everyone = tree.everyone();
    let stream = tree.stream(&everyone, "sum", WaveRule::All);
    tree.run();
    all_send(&mut tree, stream, 10);
    assert_eq!(tree.answers().len(), 10);
    all_send(&mut tree, stream, burst);
    for _ in 0..burst / 1000 {
        tree.broadcast(stream, &RankSet::new(), [7_i64; 4096].as_slice());
    }
    tree.run();
    if moment == Moment::AtOnce {
        return tree;
    }
    let mut answers = 0;
    for _ in 0..40 {
        tree.advance(250);
        answers += tree.answers().len() as u64;
    }
    assert_eq!(answers, burst);
    tree
}

#[test]
fn what_a_burst_has_taken_is_given_back() {
    const BURST: u64 = 20_000;
    each_seed("what_a_burst_has_taken", 3, |seed| {
        let calm = bytes_of_nodes(tree_after(seed, 0, Moment::Later));
        let burst = bytes_of_nodes(tree_after(seed, BURST, Moment::AtOnce));
        let after = bytes_of_nodes(tree_after(seed, BURST, Moment::Later));
        for (process, ((calm, burst), after)) in calm.iter().zip(burst).zip(after).enumerate() {
            assert!(burst > calm + (256 << 10), "process {process}: {burst} bytes for the burst");
            assert!(after < calm + (32 << 10), "process {process} keeps {after} bytes of {calm}");
        }
    });
}
