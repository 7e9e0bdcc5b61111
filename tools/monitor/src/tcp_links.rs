//! The TCP connections of a leaf's ranks: which sockets are theirs, and what each has sent since
//! the reading before. What it means is `sapwood-trace`'s, the asking `sapwood-transport`'s.
//!
//! The kernel is asked together with the events of the ranks, and not more often than what it costs
//! allows: it goes through all connections of the host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use sapwood_report::nanoseconds;
use sapwood_trace::{Counter, Gathered, TcpEnds, TcpFlow, TcpSocket};
use sapwood_transport::{Error, TcpCounters, TcpSocketState, is_lasting_refusal, tcp_sockets};

use super::effort::processor_time;
use super::open_files::open_files;
use super::waits::TimeInCalls;

/// Sockets that a leaf follows, at most.
const SOCKETS_MAX: usize = 4096;
/// Descriptors of a rank that are looked at, at most.
const DESCRIPTORS_MAX: usize = 4096;
/// Between two readings, at least.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// And this many times the time of a processor that the one before has taken, of all leaves of a
/// host together: each goes through the connections of all.
const PAUSE_TIMES: u32 = 50;
/// After one that has failed.
const PAUSE_FAILED: Duration = Duration::from_secs(10);
/// Readings that fail one after another before it is told.
const FAILED_MAX: u32 = 3;
/// A socket is told of again when once to twice as much time has passed, by its name: so that a
/// connection is known to be idle, and that its other end is told again whose it is.
const TELL_AGAIN_MS: u64 = 10_000;
/// What differs from host to host, and from network namespace to network namespace.
const HOST_FILE: &str = "/proc/sys/kernel/random/boot_id";
const NAMESPACE_LINK: &str = "/proc/self/ns/net";

/// A rank that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpSeat {
    pub(crate) rank: u32,
    pub(crate) process: i32,
    /// How long it was in its calls so far.
    pub(crate) calls: TimeInCalls,
    /// Whether it may be in a collective that has not ended.
    pub(crate) is_in_collective: bool,
}

impl TcpSeat {
    /// Whether it is known that it was in no collective, but in those that have ended, since its
    /// calls were these.
    const fn was_in_none_since(&self, before: &TimeInCalls) -> bool {
        let is_open = self.is_in_collective || self.calls.open_collectives > 0;
        !is_open && self.calls.gaps == before.gaps
    }
}

/// Where the ranks of a job are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpJob {
    /// Ranks of all hosts; 0 if it is not known.
    pub(crate) world_size: u32,
    /// Whether there are several hosts.
    pub(crate) is_spread: bool,
}

impl TcpJob {
    /// How many leaves this host has, about, of which each has as many ranks. Of several hosts it
    /// is only known that processors are seldom fewer than ranks.
    fn leaves(self, ranks: usize) -> u32 {
        let mut ranks_here = usize::try_from(self.world_size).unwrap_or(usize::MAX);
        if self.is_spread {
            let processors = thread::available_parallelism().map_or(1, NonZero::get);
            ranks_here = ranks_here.min(processors);
        }
        let leaves = ranks_here.div_ceil(ranks.max(1)).max(1);
        u32::try_from(leaves).unwrap_or(u32::MAX)
    }
}

/// The connections of the ranks, as they were read last.
#[derive(Default)]
pub(crate) struct TcpLinks {
    sockets: BTreeMap<u32, WatchedSocket>,
    host: Option<u64>,
    /// When the kernel may be asked again.
    again: Option<Instant>,
    /// Whether it never answers: it is not asked again.
    is_unreadable: bool,
    /// Readings that have failed one after another.
    failed: u32,
    /// Whether it was told that it does not answer.
    is_failure_told: bool,
    /// Whether it was told that the sockets of a rank cannot be seen.
    is_hidden: bool,
    /// How many sockets have found no room, as it was told.
    left_out: u64,
}

/// A socket of a rank.
struct WatchedSocket {
    rank: u32,
    ends: TcpEnds,
    /// When it was told of last.
    told: Instant,
    /// When it was read, what the kernel said then, and what the rank had called.
    at: Instant,
    counters: TcpCounters,
    calls: TimeInCalls,
    /// What it did since it was told of.
    flow: TcpFlow,
}

impl TcpLinks {
    /// Adds to what is gathered what the sockets of these ranks did, if it is time to look.
    pub(crate) fn read(&mut self, job: TcpJob, seats: &[TcpSeat], gathered: &mut Gathered) {
        if self.is_unreadable || self.again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        let begun = processor_time();
        let owners = self.owners(seats, gathered);
        if !owners.is_empty() {
            match tcp_sockets(|inode| owners.contains_key(&inode)) {
                Ok(states) => {
                    self.failed = 0;
                    self.take(&states, &owners, Instant::now(), gathered);
                }
                Err(error) => self.fail(&error, gathered),
            }
        }
        let cost = processor_time().saturating_sub(begun);
        let times = PAUSE_TIMES.saturating_mul(job.leaves(seats.len()));
        let least = if self.failed > 0 { PAUSE_FAILED } else { PAUSE_MIN };
        self.again = Instant::now().checked_add(cost.saturating_mul(times).max(least));
    }

    /// The kernel has not answered: it may the next time, but where it is not permitted or does not
    /// count.
    fn fail(&mut self, error: &Error, gathered: &mut Gathered) {
        self.failed = self.failed.saturating_add(1);
        self.is_unreadable = is_lasting_refusal(error);
        let is_told = self.is_unreadable || self.failed >= FAILED_MAX;
        if is_told && !std::mem::replace(&mut self.is_failure_told, true) {
            gathered.count(Counter::TcpUnreadable, 1);
        }
    }

    /// By its number, the rank of each socket; of one that several have, the first of these.
    fn owners(&mut self, seats: &[TcpSeat], gathered: &mut Gathered) -> BTreeMap<u32, TcpSeat> {
        let mut owners = BTreeMap::new();
        for seat in seats {
            match socket_numbers(seat.process) {
                Ok(numbers) => {
                    for number in numbers {
                        owners.entry(number).or_insert(*seat);
                    }
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied && !self.is_hidden => {
                    self.is_hidden = true;
                    gathered.count(Counter::TcpUnreadable, 1);
                }
                // It has ended, or that was told.
                Err(_) => {}
            }
        }
        owners
    }

    fn take(
        &mut self,
        states: &[TcpSocketState],
        owners: &BTreeMap<u32, TcpSeat>,
        now: Instant,
        gathered: &mut Gathered,
    ) {
        let open: BTreeSet<u32> = states.iter().map(|state| state.inode).collect();
        self.sockets.retain(|inode, _| open.contains(inode));
        let host = *self.host.get_or_insert_with(host_number);
        let mut left_out: u64 = 0;
        for state in states {
            let Some(seat) = owners.get(&state.inode) else { continue };
            let ends = TcpEnds::of(state.local, state.remote, host);
            let known = self.sockets.get_mut(&state.inode);
            let is_same = |one: &&mut WatchedSocket| one.ends == ends && one.rank == seat.rank;
            if let Some(known) = known.filter(is_same) {
                known.note(&state.counters, seat, now, gathered);
                continue;
            }
            if self.sockets.len() >= SOCKETS_MAX && !self.sockets.contains_key(&state.inode) {
                left_out += 1;
                continue;
            }
            let socket = WatchedSocket {
                rank: seat.rank,
                ends,
                told: now,
                at: now,
                counters: state.counters,
                calls: seat.calls,
                flow: TcpFlow::default(),
            };
            // So that the other end is told whose it is.
            socket.tell(TcpFlow::default(), gathered);
            self.sockets.insert(state.inode, socket);
        }
        gathered.count(Counter::TcpLeftOut, left_out.saturating_sub(self.left_out));
        self.left_out = self.left_out.max(left_out);
    }
}

impl WatchedSocket {
    /// Notes what the kernel says now, and tells what it did if it has done anything, or was not
    /// told of for long.
    fn note(&mut self, now: &TcpCounters, seat: &TcpSeat, at: Instant, gathered: &mut Gathered) {
        let before = std::mem::replace(&mut self.counters, *now);
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let elapsed_ns = nanoseconds(at.saturating_duration_since(self.at));
        let read = TcpFlow {
            elapsed_ns,
            called_ns: since(seat.calls.called_ns, self.calls.called_ns),
            waited_ns: match seat.was_in_none_since(&self.calls) {
                true => since(seat.calls.waited_ns, self.calls.waited_ns),
                false => elapsed_ns,
            },
            busy_us: since(now.busy_us, before.busy_us),
            window_us: since(now.window_us, before.window_us),
            bytes: since(now.acked_bytes, before.acked_bytes),
            readings: 1,
            queued: u32::from(now.unsent_bytes > 0),
        };
        (self.at, self.calls) = (at, seat.calls);
        self.flow.merge(&read);
        let again = Duration::from_millis(TELL_AGAIN_MS + self.ends.own % TELL_AGAIN_MS);
        let is_due = at.saturating_duration_since(self.told) >= again;
        if read.busy_us > 0 || read.bytes > 0 || is_due {
            self.told = at;
            let flow = std::mem::take(&mut self.flow);
            self.tell(flow, gathered);
        }
    }

    fn tell(&self, flow: TcpFlow, gathered: &mut Gathered) {
        let TcpEnds { own, peer, is_within } = self.ends;
        gathered.add_socket(own, &TcpSocket { rank: self.rank, peer, is_within, flow });
    }
}

/// The numbers of the sockets that a process has open.
fn socket_numbers(process: i32) -> io::Result<Vec<u32>> {
    let files = open_files(process)?.take(DESCRIPTORS_MAX);
    Ok(files.filter_map(|file| socket_number(file.name.to_str()?)).collect())
}

/// Out of `socket:[4711]`.
fn socket_number(name: &str) -> Option<u32> {
    name.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// A number that processes have alike which share a loopback interface, and no others.
fn host_number() -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read(HOST_FILE).unwrap_or_default().hash(&mut hasher);
    fs::read_link(NAMESPACE_LINK).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use sapwood_trace::{TcpFigures, slow_flows};

    use super::*;

    fn seat(rank: u32, called_ms: u64) -> TcpSeat {
        let called_ns = called_ms * 1_000_000;
        let calls = TimeInCalls { called_ns, waited_ns: called_ms, ..TimeInCalls::default() };
        TcpSeat { rank, process: 1, calls, is_in_collective: false }
    }

    fn state(inode: u32, port: u16, counters: TcpCounters) -> TcpSocketState {
        let local = ([127, 0, 0, 1], port).into();
        TcpSocketState { local, remote: ([127, 0, 0, 1], 9).into(), inode, counters }
    }

    const fn counters(busy_us: u64, acked_bytes: u64, unsent_bytes: u32) -> TcpCounters {
        TcpCounters { busy_us, window_us: 0, acked_bytes, unsent_bytes }
    }

    #[test]
    fn a_socket_is_named_at_once_and_told_of_again_when_it_has_sent_anything() {
        let (mut links, begin) = (TcpLinks::default(), Instant::now());
        let mut read = |ms: u64, port, counters| {
            let mut gathered = Gathered::default();
            let owners = BTreeMap::from([(7, seat(3, ms))]);
            let at = begin + Duration::from_millis(ms);
            links.take(&[state(7, port, counters)], &owners, at, &mut gathered);
            let sockets: Vec<TcpSocket> = gathered.sockets.into_values().collect();
            sockets.first().map(|one| (one.rank, one.is_within, one.flow))
        };
        // What it did before it was found is not known.
        let named = Some((3, true, TcpFlow::default()));
        assert_eq!(read(0, 80, counters(5_000, 100, 9)), named);
        assert_eq!(read(250, 80, counters(5_000, 100, 0)), None);
        let flow = TcpFlow {
            elapsed_ns: 500_000_000,
            called_ns: 500_000_000,
            waited_ns: 500,
            busy_us: 200_000,
            bytes: 900,
            readings: 2,
            queued: 1,
            ..TcpFlow::default()
        };
        assert_eq!(read(500, 80, counters(205_000, 1_000, 4)), Some((3, true, flow)));
        // Data is under way of which none has come.
        let last = read(750, 80, counters(455_000, 1_000, 4)).map(|(_, _, flow)| flow);
        assert_eq!(
            last.map(|flow| (flow.busy_us, flow.bytes, flow.readings)),
            Some((250_000, 0, 1))
        );
        assert_eq!(read(900, 81, counters(1, 1, 0)), named, "another connection");
        // Twice the least time has passed for any.
        let idle = read(20_900, 81, counters(1, 1, 0)).map(|(rank, _, flow)| (rank, flow));
        let expected = TcpFlow {
            elapsed_ns: 20_000_000_000,
            called_ns: 20_000_000_000,
            waited_ns: 20_000,
            readings: 1,
            ..TcpFlow::default()
        };
        assert_eq!(idle, Some((3, expected)), "named again");
        assert_eq!(read(21_000, 81, counters(1, 1, 0)), None);
    }

    /// Whose connections are slow in a second with short waits for messages, in which that of rank
    /// 1 has data under way in 6 % of the time. `amend` is told how many readings were before.
    fn slow_with(amend: fn(&mut TcpSeat, u64)) -> Vec<u32> {
        let (begin, mut found) = (Instant::now(), BTreeMap::new());
        for (rank, busy_us, bytes, unsent) in
            [(0, 500, 500_000, 0), (1, 15_000, 25_000, 9), (2, 500, 500_000, 0)]
        {
            let mut links = TcpLinks::default();
            let figures: &mut TcpFigures = found.entry((rank, (rank + 1) % 3)).or_default();
            figures.is_within = true;
            for reading in 0..=4 {
                let mut seat = seat(rank, 0);
                seat.calls.waited_ns = reading * 1_000_000;
                amend(&mut seat, reading);
                let state = state(7, 80, counters(busy_us * reading, bytes * reading, unsent));
                let at = begin + Duration::from_millis(250 * reading);
                let mut gathered = Gathered::default();
                links.take(&[state], &BTreeMap::from([(7, seat)]), at, &mut gathered);
                gathered.sockets.values().for_each(|one| figures.add(&one.flow));
            }
        }
        slow_flows(&found).iter().map(|one| one.from).collect()
    }

    #[test]
    fn short_waits_beside_a_collective_that_has_not_ended_make_no_connection_slow() {
        assert_eq!(slow_with(|_, _| {}), [1], "it is known that there is no collective");
        assert!(slow_with(|seat, _| seat.is_in_collective = true).is_empty());
        assert!(slow_with(|seat, reading| seat.is_in_collective = reading == 4).is_empty());
        assert!(slow_with(|seat, _| seat.calls.open_collectives = 1).is_empty());
        assert!(slow_with(|seat, reading| seat.calls.gaps = reading).is_empty(), "not known");
    }

    #[test]
    fn only_what_lasts_keeps_the_kernel_from_being_asked_again() {
        let error = |kind: ErrorKind| Error::Io { doing: String::new(), cause: kind.into() };
        let refused = |code: Errno| Error::Io { doing: String::new(), cause: code.into() };
        let (mut links, mut gathered) = (TcpLinks::default(), Gathered::default());
        for failed in 1..=2 * FAILED_MAX {
            links.fail(&error(ErrorKind::WouldBlock), &mut gathered);
            let told = gathered.counters[Counter::TcpUnreadable as usize];
            assert_eq!((links.is_unreadable, told), (false, u64::from(failed >= FAILED_MAX)));
        }
        let (mut links, mut gathered) = (TcpLinks::default(), Gathered::default());
        links.fail(&refused(Errno::PERM), &mut gathered);
        assert_eq!(gathered.counters[Counter::TcpUnreadable as usize], 1);
        assert!(links.is_unreadable);
    }

    #[test]
    fn the_leaves_of_a_host_are_known_by_the_ranks_of_a_job_and_of_a_leaf() {
        let leaves = |world_size, ranks| TcpJob { world_size, is_spread: false }.leaves(ranks);
        assert_eq!([leaves(64, 4), leaves(6, 4), leaves(4, 4), leaves(0, 4)], [16, 2, 1, 1]);
        assert_eq!(leaves(3, 0), 3);
        assert_eq!(TcpJob { world_size: 4, is_spread: true }.leaves(4), 1);
    }

    #[test]
    fn sockets_without_room_are_counted_once() {
        let mut links = TcpLinks::default();
        let count = u32::try_from(SOCKETS_MAX).expect("a number of sockets") + 3;
        let states: Vec<_> = (0..count).map(|one| state(one, 80, counters(0, 0, 0))).collect();
        let owners: BTreeMap<_, _> = (0..count).map(|one| (one, seat(0, 0))).collect();
        let mut told = || {
            let mut gathered = Gathered::default();
            links.take(&states, &owners, Instant::now(), &mut gathered);
            gathered.counters[Counter::TcpLeftOut as usize]
        };
        assert_eq!([told(), told()], [3, 0]);
    }

    #[test]
    fn the_number_of_a_socket_is_read_from_its_name() {
        assert_eq!(socket_number("socket:[4711]"), Some(4711));
        for other in ["pipe:[4711]", "socket:[x]", "/tmp/socket:[1", "anon_inode:[eventpoll]"] {
            assert_eq!(socket_number(other), None, "{other}");
        }
        assert!(socket_numbers(i32::MAX).is_err(), "there is no such process");
    }
}
