//! Silent connections, more and more of them, at the process that is to adopt orphans: each orphan
//! is adopted all the same, and no member is missing.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sapwood::{Event, Network, RankSet, Recovery, Stream};
use sapwood_transport::PENDING_HANDSHAKES_MAX;

use crate::support::{
    HANG, Links, Seen, back_ends, builder, is_alone, new_mark, of_rank, sapwood, tags,
    tree_below_us, trial, wait_until, wait_until_gone,
};

/// How long orphans look for a parent and are waited for: a slow machine needs more than a user.
const SEARCH: Duration = Duration::from_secs(30);

/// Enough descriptors for every place that a process has for handshakes, and more.
const MANY_DESCRIPTORS: u64 = 4096;
/// A process with this limit has place for the fourth part of it.
const FEW_DESCRIPTORS: u64 = 64;
/// Descriptors of this process that no stranger takes.
const OWN_DESCRIPTORS: usize = 256;

/// The pace at which connections that were closed are replaced.
const TICK: Duration = Duration::from_millis(50);
/// A connection for which there is no room at the listener is given up soon.
const DIAL_LIMIT: Duration = Duration::from_millis(20);

/// Strangers that connect, say nothing, and connect again when they are put out.
struct Strangers {
    address: SocketAddr,
    /// How many connections are held.
    count: usize,
    /// How many of them are replaced in each tick, at most.
    each_tick: usize,
}

impl Strangers {
    /// Says so when the first connections are there, and holds them until it is to end.
    fn hold(&self, begun: &Sender<()>, is_to_end: &AtomicBool) {
        let mut held = Vec::new();
        self.dial(&mut held, self.count);
        begun.send(()).unwrap();
        while !is_to_end.load(Ordering::Relaxed) {
            let_go_of_closed(&mut held);
            let lacking = self.count.saturating_sub(held.len());
            self.dial(&mut held, lacking.min(self.each_tick));
            std::thread::sleep(TICK);
        }
    }

    /// Connects as often as that, or until the queue of the listener is full.
    fn dial(&self, held: &mut Vec<TcpStream>, count: usize) {
        let one = |_| TcpStream::connect_timeout(&self.address, DIAL_LIMIT).ok();
        held.extend((0..count).map_while(one));
    }
}

/// Nothing is said to a stranger: what can be read is the end.
fn let_go_of_closed(held: &mut Vec<TcpStream>) {
    let mut watched: Vec<PollFd<'_>> =
        held.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    let is_open: Vec<bool> = watched.iter().map(|one| one.revents().is_empty()).collect();
    let mut is_open = is_open.into_iter();
    held.retain(|_| is_open.next().unwrap_or(true));
}

/// Strangers at work in a thread of their own, until this is dropped.
struct Onslaught {
    is_to_end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Onslaught {
    fn begin(strangers: Strangers) -> Self {
        let (begun, has_begun) = channel();
        let is_to_end = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_to_end);
        let thread = std::thread::spawn(move || strangers.hold(&begun, &seen));
        let onslaught = Self { is_to_end, thread: Some(thread) };
        has_begun.recv_timeout(HANG).unwrap();
        onslaught
    }

    fn is_under_way(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Onslaught {
    fn drop(&mut self) {
        self.is_to_end.store(true, Ordering::Relaxed);
        // A panic of the thread was printed, and `is_under_way` has told of it.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Lets this process, and those that it starts from now on, open this number of descriptors, or
/// fewer where the system says so. Gives which of the two it is.
fn limit_descriptors(most: u64) -> u64 {
    let before = getrlimit(Resource::Nofile);
    let most = before.maximum.map_or(most, |maximum| maximum.min(most));
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..before }).unwrap();
    most
}

fn tree() -> (Network, Vec<Seen>) {
    let mark = new_mark();
    let recovery = Recovery { orphan_limit: SEARCH, grace: SEARCH, ..Recovery::default() };
    let network = builder("2x2x2", Links::Tcp)
        .recovery(recovery)
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    let tree = tree_below_us(&mark);
    (network, tree)
}

/// One request, and its answer, in which every member is.
fn whole(sum: &mut Stream, everyone: &RankSet) {
    sum.broadcast(tags::RANK, ()).unwrap();
    let answer = sum.recv_timeout(HANG).unwrap();
    assert_eq!(&answer.contributors, everyone, "{:?}", answer.missing);
    let ranks: u32 = everyone.iter().sum();
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(i64::from(ranks)));
}

/// In a tree of processes that may open that number of descriptors, kills a process below the one
/// at which strangers hold all places and wait for `queued` more.
fn adopted_beside_strangers(descriptors: u64, queued: usize, each_tick: usize) {
    // They are built with as many descriptors as that takes.
    let _ = (sapwood(), trial());
    let theirs = usize::try_from(limit_descriptors(descriptors)).unwrap();
    let (mut network, tree) = tree();
    let ours = usize::try_from(limit_descriptors(MANY_DESCRIPTORS)).unwrap();
    let places = PENDING_HANDSHAKES_MAX.min(theirs / 4);

    let topology = network.topology().clone();
    let adopting = topology.children(topology.root().rank())[0];
    let dying = topology.children(adopting)[0];
    let (adopter, victim) = (of_rank(&tree, adopting), of_rank(&tree, dying));
    let everyone = network.everyone().ranks().clone();
    let mut sum = network.stream(&network.everyone()).up("sum").open().unwrap();
    whole(&mut sum, &everyone);

    let address = victim.address.as_deref().unwrap().strip_prefix("tcp:").unwrap();
    let address = address.to_socket_addrs().unwrap().next().unwrap();
    // Where the system allows few, strangers have what this process does not need.
    let count = (places + queued).min(ours.saturating_sub(OWN_DESCRIPTORS).max(ours / 2));
    let before = adopter.descriptors();
    let onslaught = Onslaught::begin(Strangers { address, count, each_tick });
    let are_taken = || adopter.descriptors() >= before + places;
    wait_until("all places are taken", HANG, are_taken);

    victim.kill();
    whole(&mut sum, &everyone);
    whole(&mut sum, &everyone);
    assert!(onslaught.is_under_way());
    drop(onslaught);
    let is_repair = |event: Event| match event {
        Event::Repaired { rank, adopter, .. } => (rank, adopter) == (dying, adopting),
        _ => false,
    };
    assert!(std::iter::from_fn(|| network.next_event()).any(is_repair), "it was not adopted");
    network.close().unwrap();
    wait_until_gone(&tree);
}

/// 700 a second are more than places that are held for a second each let through, and fill the
/// queue of the listener, which is twice as long as there are places.
#[test]
fn orphans_are_adopted_by_a_process_whose_places_strangers_hold() {
    if is_alone("flood::orphans_are_adopted_by_a_process_whose_places_strangers_hold") {
        adopted_beside_strangers(MANY_DESCRIPTORS, 2 * PENDING_HANDSHAKES_MAX, 35);
    }
}

/// With those that wait they are as many as it may have descriptors: were they not bounded by a
/// part of these, none would be left for an orphan.
#[test]
fn orphans_are_adopted_by_a_process_with_few_descriptors_beside_strangers() {
    if is_alone("flood::orphans_are_adopted_by_a_process_with_few_descriptors_beside_strangers") {
        adopted_beside_strangers(FEW_DESCRIPTORS, 48, 1);
    }
}
