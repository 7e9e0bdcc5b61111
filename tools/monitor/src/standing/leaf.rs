//! The leaf's side: reads tables and communicators of its ranks when it is asked.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sapwood_profile::{
    CallInProgress, Class, Condition, EventKey, Function, Moment, Peer, RankProfile, RankState,
    TableReader,
};
use sapwood_trace::{
    CallKind, OPEN_RECEIVES_MAX, OpenReceive, OpenRequests, Pattern, Posture, Presence, SEATS_MAX,
    Seat, Side, Space, Standing, Standpoint,
};

use crate::condition::waits_for_lock;
use crate::lock_waits::lock_waits;
use crate::tables::{ReadRank, Tables};
use crate::waits::facts;

/// Where ranks stood, and when.
pub(crate) struct Stood {
    pub(crate) standing: Standing,
    /// When each of its ranks was last seen there, by `CLOCK_MONOTONIC`: at the reading, or at its
    /// end.
    pub(crate) seen_ns: BTreeMap<u32, i64>,
}

impl Tables {
    /// Where the ranks stand that have come.
    pub(crate) fn standing(&mut self, world_size: u32, long_ns: u64) -> Standing {
        self.stood(world_size, long_ns).standing
    }

    /// The same with the moments of the readings.
    pub(crate) fn stood(&mut self, world_size: u32, long_ns: u64) -> Stood {
        let world_size = self.world_size(world_size);
        let mut standing = Standing { world_size, ..Standing::default() };
        let mut seen_ns = BTreeMap::new();
        let mut ranks = std::mem::take(&mut self.ranks);
        for (&number, rank) in &mut ranks {
            let Ok(ReadRank { profile, words, now_ns }) = rank.read(world_size, long_ns) else {
                continue;
            };
            let Ok(table) = TableReader::new(&words) else { continue };
            let ended_ns = rank.control.closed_ns;
            let moment = Moment { now_ns, long_ns, ended_ns, ..Moment::default() };
            seen_ns.insert(number, i64::try_from(moment.last_ns()).unwrap_or(i64::MAX));
            // After the table: a rank that is still in the call that was read has not gone on.
            let recording = self.waits.recording(number, moment.last_ns());
            let call = table.calls(moment).into_iter().max_by_key(|call| call.for_ns);
            let mut posture = posture(&profile, &table, call.as_ref(), &recording.spaces);
            if let Some(file) = call.as_ref().and_then(|call| file_name(call, &table)) {
                note_file(&mut standing, &mut posture, file);
            }
            if let Some(process) = rank.process().filter(|_| posture.for_ns >= long_ns) {
                note_locks(&mut posture, process, &table);
            }
            if rank.is_moving_data() {
                note_data(&mut posture, long_ns);
            }
            // One that has ended was paused until then.
            posture.unrecorded_ns = recording.unrecorded_ns;
            posture.is_order_lost = recording.is_order_lost;
            let waits = posture.call.is_some() && posture.for_ns >= long_ns;
            let open =
                call.as_ref().filter(|_| waits).and_then(|call| open_of(call, &recording.spaces));
            standing.open.extend(open.map(|open| (number, open)));
            standing.postures.insert(number, posture);
            note_shared(&mut standing, number, &profile);
            seats(&mut standing, number, &recording.spaces, recording.is_numbered, &table);
        }
        self.ranks = ranks;
        Stood { standing, seen_ns }
    }
}

fn posture(
    profile: &RankProfile,
    table: &TableReader<'_>,
    call: Option<&CallInProgress>,
    spaces: &[Space],
) -> Posture {
    let condition = profile.activities.first().map(|activity| activity.kind.condition);
    let presence = match (profile.state, condition) {
        (RankState::Lost, _) | (_, Some(Condition::Lost)) => Presence::Lost,
        (_, Some(Condition::Stopped)) => Presence::Stopped,
        (RankState::Finalized, _) if table.is_finalizing() => Presence::Finalizing,
        (RankState::Finalized | RankState::Exited, _) => Presence::Ended,
        (_, Some(Condition::Computing)) => Presence::Computing,
        (_, Some(Condition::Sleeping)) => Presence::Sleeping,
        _ => Presence::Running,
    };
    let outside_ns = profile.activities.first().map_or(0, |activity| activity.for_ns);
    let mut polls = BTreeMap::new();
    let mut calls = 0_u64;
    for (function, count) in functions(profile) {
        calls = calls.saturating_add(count);
        if kind_of(function, Handle::Absent) == CallKind::Poll {
            *polls.entry(function.id).or_insert(0_u64) += count;
        }
    }
    let polled = polls.iter().max_by_key(|(_, count)| **count).map_or(0, |(&id, _)| id);
    // A process that has gone in order has left what a thread of it was in; if a library has ended
    // it in a call, that is known of it.
    let (call, ended_in) = match presence {
        Presence::Ended => (None, call),
        _ => (call, None),
    };
    Posture {
        presence,
        call: call.map(|call| standpoint(call, spaces)),
        ended_in: ended_in.map(|call| standpoint(call, spaces)),
        for_ns: call.map_or(outside_ns, |call| call.for_ns),
        calls,
        polls: polls.values().sum(),
        polled,
        beside_ns: call.map_or(0, |_| beside_ns(profile)),
        blocked_threads: 0,
        is_locked: false,
        is_polling: false,
        unrecorded_ns: 0,
        is_order_lost: false,
    }
}

/// The path of the file on which a call is made; none where that is not known.
fn file_name(call: &CallInProgress, table: &TableReader<'_>) -> Option<String> {
    let function = Function::of(call.function)?;
    let is_on_file =
        function.class == Class::File && kind_of(function, Handle::Given) != CallKind::Creation;
    is_on_file.then(|| table.name_of(call.handle))?
}

/// Notes on which file a rank makes its call.
fn note_file(standing: &mut Standing, posture: &mut Posture, name: String) {
    let identity = file_identity(&name);
    for call in [&mut posture.call, &mut posture.ended_in].into_iter().flatten() {
        call.space = identity;
    }
    standing.add_name(identity, name);
}

/// What stands for a file in the place of a communicator's identity: the same in all ranks that
/// have opened it by the same path.
fn file_identity(name: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// For how long a thread computes beside those that are in calls; 0 if none does.
fn beside_ns(profile: &RankProfile) -> u64 {
    let mut activities = profile.activities.iter();
    match activities.all(|one| one.kind.function.is_none()) {
        true => profile.activities.iter().map(|one| one.for_ns.max(1)).max().unwrap_or(0),
        false => 0,
    }
}

/// Notes that a rank which has been in its call for long moves data there, so that it does not wait
/// in it.
fn note_data(posture: &mut Posture, long_ns: u64) {
    if posture.call.is_some() && posture.for_ns >= long_ns {
        posture.beside_ns = posture.beside_ns.max(posture.for_ns).max(1);
    }
}

/// Notes threads that wait for a lock.
fn note_locks(posture: &mut Posture, process: i32, table: &TableReader<'_>) {
    let waits = lock_waits(process);
    let Some(_) = posture.call else {
        posture.is_locked =
            table.threads_outside().any(|thread| waits.iter().any(|one| one.thread == thread));
        return;
    };
    posture.is_locked =
        table.threads_inside().any(|thread| waits.iter().any(|one| one.owner == Some(thread)));
    let blocked = table.threads_outside().filter(|&thread| waits_for_lock(process, thread));
    posture.blocked_threads = u32::try_from(blocked.count()).unwrap_or(u32::MAX);
}

/// The MPI functions of a profile, each with how often it has returned.
fn functions(profile: &RankProfile) -> impl Iterator<Item = (&'static Function, u64)> + '_ {
    profile.events.iter().filter_map(|(key, counters)| {
        let EventKey::Function { id, .. } = key else { return None };
        Some((Function::of(*id)?, counters.count))
    })
}

/// The requests of a call that waits for several, if some of its receives are known.
fn open_of(call: &CallInProgress, spaces: &[Space]) -> Option<OpenRequests> {
    let word = Function::of(call.function)?.name.strip_prefix("MPI_")?;
    let is_any = ["Waitany", "Waitsome"].contains(&word);
    if call.open.is_empty() || !(is_any || word == "Wait" || word == "Waitall") {
        return None;
    }
    let receives = call.open.iter().take(OPEN_RECEIVES_MAX).map(|one| OpenReceive {
        space: identity_of(one.handle, spaces),
        side: side(one.peer),
        tag: one.tag,
    });
    Some(OpenRequests { receives: receives.collect(), others: call.others, is_any })
}

/// The identity of the communicator that has this handle now; 0 for none.
fn identity_of(handle: u64, spaces: &[Space]) -> u64 {
    let space = spaces.iter().rev().find(|space| space.handle == handle && handle != 0);
    space.map_or(0, |space| space.identity)
}

fn standpoint(call: &CallInProgress, spaces: &[Space]) -> Standpoint {
    let function = Function::of(call.function);
    let kind = function.map_or(CallKind::Other, |function| kind_of(function, Handle::of(call)));
    Standpoint {
        function: facts(call.function).procedure,
        kind,
        // What stands behind a request is told by the communicator's last collective.
        pattern: facts(call.function).pattern,
        space: identity_of(call.handle, spaces),
        side: side(call.peer),
        destination: match kind {
            CallKind::Exchange => side(call.destination),
            _ => Side::None,
        },
        tag: call.tag,
        request: call.request.unwrap_or(0),
        is_request_known: call.request.is_some(),
    }
}

fn side(peer: Peer) -> Side {
    match peer {
        Peer::None => Side::None,
        Peer::Any => Side::Any,
        Peer::Rank(rank) => Side::Rank(rank),
    }
}

/// Whether the communicator, file or window of a call is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handle {
    Given,
    Absent,
}

impl Handle {
    const fn of(call: &CallInProgress) -> Self {
        if call.handle == 0 { Self::Absent } else { Self::Given }
    }
}

/// What kind of call a function is. That it makes something with the processes of a communicator
/// says nothing where this is not known, except of a file, which is opened on one always.
fn kind_of(function: &Function, handle: Handle) -> CallKind {
    match facts(function.id).kind {
        CallKind::Creation if handle == Handle::Absent && function.class != Class::File => {
            CallKind::Other
        }
        kind => kind,
    }
}

/// Notes the collective calls on files and windows.
fn note_shared(standing: &mut Standing, rank: u32, profile: &RankProfile) {
    for (function, count) in functions(profile) {
        let kind = kind_of(function, Handle::Absent);
        if matches!(kind, CallKind::File | CallKind::Window) {
            let one = standing.shared.entry((rank, function.id)).or_insert((kind, 0));
            one.1 = one.1.saturating_add(count);
        }
    }
}

/// The communicators of a rank that are told: the first one, which is the world's, then those that
/// are not freed before others, the latest first. Requests, of which there may be more than there
/// is room for, come behind communicators and windows.
fn told(spaces: &[Space]) -> impl Iterator<Item = &Space> {
    let settled = spaces.iter().enumerate().filter(|(_, space)| space.since != u64::MAX);
    let mut told: Vec<(usize, &Space)> = settled.collect();
    let order = |&(at, space): &(usize, &Space)| {
        (at != 0, space.handle == 0, space.is_request, Reverse(space.since), Reverse(at))
    };
    if told.len() > SEATS_MAX {
        told.select_nth_unstable_by_key(SEATS_MAX, order);
        told.truncate(SEATS_MAX);
    }
    told.into_iter().map(|(_, space)| space)
}

/// Notes the communicators of a rank, as many as there is room for.
fn seats(
    standing: &mut Standing,
    rank: u32,
    spaces: &[Space],
    is_numbered: bool,
    table: &TableReader<'_>,
) {
    // Those that are freed are not missed.
    let left_out = spaces.iter().filter(|space| space.handle != 0).count();
    let left_out = left_out.saturating_sub(SEATS_MAX);
    standing.left_out = standing.left_out.saturating_add(left_out as u64);
    for space in told(spaces) {
        let last = facts(space.last_function);
        let seat = Seat {
            rank: space.rank,
            size: space.size,
            made: space.made,
            last_function: last.procedure,
            last_root: u32::try_from(space.last_root).ok(),
            held: space.held,
            is_freed: space.handle == 0,
            is_between: space.is_between,
            is_number_lost: !is_numbered || space.is_number_lost,
            is_last_of_neighbours: last.pattern == Pattern::Unknown,
            is_last_started: last.form.is_started(),
        };
        standing.seats.insert((space.identity, rank), seat);
        let given = table.given_name(space.name);
        let name = given.unwrap_or_else(|| table.communicator(space.handle));
        // A name that only tells the size says less than the seat.
        if !name.is_empty() && !name.starts_with("a communicator") {
            standing.add_name(space.identity, name);
        } else if space.is_window {
            standing.add_name(space.identity, "a window".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::OpenReceiveCall;

    use super::Handle::{Absent, Given};
    use super::*;

    #[test]
    fn the_first_communicator_is_told_and_those_that_are_not_freed_before_others() {
        let space = |identity: u64, handle, since| {
            let none = Space::default();
            Space { identity, handle, since, ..none }
        };
        let mut spaces: Vec<Space> = (0..600).map(|number| space(number, 0, 0)).collect();
        let of = |spaces: &[Space]| -> std::collections::BTreeSet<u64> {
            told(spaces).map(|space| space.identity).collect()
        };
        let latest = SEATS_MAX as u64 - 1;
        assert!(of(&spaces).into_iter().eq([0].into_iter().chain(600 - latest..600)));
        // One lives, one has the space of another, and one is changed at this moment.
        spaces[7] = space(7, 70, 0);
        spaces[8] = space(1008, 0, 44);
        spaces[599] = space(599, 0, u64::MAX);
        let told = of(&spaces);
        assert!([0, 7, 598, 1008].iter().all(|number| told.contains(number)), "{told:?}");
        assert!(!told.contains(&599) && told.len() == SEATS_MAX);
    }

    #[test]
    fn requests_of_persistent_collectives_are_told_behind_communicators() {
        let space = |identity: u64| {
            let is_request = identity >= 10;
            Space { identity, handle: 70, is_request, ..Space::default() }
        };
        let spaces: Vec<Space> = (0..600).map(space).collect();
        let told: std::collections::BTreeSet<u64> =
            told(&spaces).map(|space| space.identity).collect();
        let latest = SEATS_MAX as u64 - 10;
        assert!(told.into_iter().eq((0..10).chain(600 - latest..600)));
    }

    #[test]
    fn a_rank_that_moves_data_does_not_wait_in_a_call_that_is_long() {
        let call = Some(Standpoint::default());
        let mut posture = Posture { call, for_ns: 900, ..Posture::default() };
        note_data(&mut posture, 1000);
        assert_eq!(posture.only_call(), call, "it is not long");
        note_data(&mut posture, 900);
        assert_eq!((posture.only_call(), posture.doing_ns()), (None, 900));
        let mut outside = Posture { for_ns: 900, ..Posture::default() };
        note_data(&mut outside, 900);
        assert_eq!(outside.beside_ns, 0);
    }

    #[test]
    fn the_open_receives_of_a_call_for_several_requests_are_told_with_their_communicators() {
        let function = |name| Function::named(name).expect("a function of MPI").id;
        let receive = |handle, peer, tag| OpenReceiveCall { handle, peer, tag };
        let receives = vec![receive(70, Peer::Rank(1), 7), receive(80, Peer::Any, -1)];
        let space = |identity, handle| Space { identity, handle, ..Space::default() };
        // The handle was that of another one before.
        let spaces = [space(5, 70), space(6, 70)];
        let of = |name| {
            let (open, others) = (receives.clone(), 2);
            let call =
                CallInProgress { function: function(name), open, others, ..Default::default() };
            open_of(&call, &spaces)
        };
        let all = of("MPI_Waitall").expect("it waits");
        let told = |space, side, tag| OpenReceive { space, side, tag };
        assert_eq!(all.receives, [told(6, Side::Rank(1), 7), told(0, Side::Any, -1)]);
        assert_eq!((all.others, all.is_any), (2, false));
        assert!(of("MPI_Waitsome").is_some_and(|some| some.is_any));
        assert_eq!(of("MPI_Testall"), None, "it returns at once");
        assert_eq!(open_of(&CallInProgress::default(), &spaces), None);
    }

    #[test]
    fn calls_are_told_apart_by_what_they_wait_for() {
        let kind =
            |name: &str, handle| kind_of(Function::named(name).expect("a function of MPI"), handle);
        assert_eq!(kind("MPI_Allreduce", Given), CallKind::Collective);
        assert_eq!(kind("MPI_Iallreduce", Given), CallKind::CollectiveStart);
        assert_eq!(kind("MPI_Neighbor_alltoall", Given), CallKind::Collective);
        assert_eq!(kind("MPI_Ineighbor_alltoall", Given), CallKind::Other);
        assert_eq!(kind("MPI_Allreduce_init", Given), CallKind::Other);
        let starts = |name: &str| {
            facts(Function::named(name).expect("a function of MPI").id).form.is_started()
        };
        assert!(
            ["MPI_Iallreduce", "MPI_Allreduce_init", "MPI_Bcast_init_c"].into_iter().all(starts)
        );
        let others =
            ["MPI_Allreduce", "MPI_Send_init", "MPI_Wait", "MPI_Ineighbor_alltoall", "MPI_Init"];
        assert!(!others.into_iter().any(starts));
        assert_eq!(kind("MPI_Recv", Given), CallKind::Receive);
        assert_eq!(kind("MPI_Sendrecv", Given), CallKind::Exchange);
        assert_eq!(kind("MPI_Sendrecv_replace", Given), CallKind::Exchange);
        assert_eq!(kind("MPI_Ssend", Given), CallKind::Send);
        assert_eq!(kind("MPI_Waitall", Absent), CallKind::Wait);
        assert_eq!(kind("MPI_Testsome", Absent), CallKind::Poll);
        assert_eq!(kind("MPI_Iprobe", Given), CallKind::Poll);
        assert_eq!(kind("MPI_File_open", Given), CallKind::Creation);
        assert_eq!(kind("MPI_File_write_at_all", Absent), CallKind::File);
        assert_eq!(kind("MPI_File_write_at_all", Given), CallKind::File);
        assert_eq!(kind("MPI_File_close", Given), CallKind::File);
        assert_eq!(kind("MPI_File_write_at", Given), CallKind::Other);
        assert_eq!(kind("MPI_File_write_at", Absent), CallKind::Other);
        assert_eq!(kind("MPI_Win_fence", Absent), CallKind::Window);
        assert_eq!(kind("MPI_Win_fence", Given), CallKind::Window);
        assert_eq!(kind("MPI_Win_lock", Given), CallKind::Lock);
        assert_eq!(kind("MPI_Win_allocate", Given), CallKind::Creation);
        assert_eq!(kind("MPI_Win_create_dynamic", Given), CallKind::Creation);
        assert_eq!(kind("MPI_Win_wait", Given), CallKind::Other);
        assert_eq!(kind("MPI_Win_create_keyval", Absent), CallKind::Other);
        assert_eq!(kind("MPI_Comm_split", Given), CallKind::Creation);
        assert_eq!(kind("MPI_Comm_spawn", Given), CallKind::Creation);
        assert_eq!(kind("MPI_Comm_create_group", Given), CallKind::Other);
        assert_eq!(kind("MPI_Cart_shift", Given), CallKind::Other);
        assert_eq!(kind("MPI_Finalize", Absent), CallKind::Other);
    }

    #[test]
    fn ranks_that_have_opened_the_same_path_are_on_the_same_file() {
        let mut standing = Standing::default();
        let on = |name: &str, standing: &mut Standing| {
            let call = Some(Standpoint { kind: CallKind::File, ..Standpoint::default() });
            let mut posture = Posture { call, ..Posture::default() };
            note_file(standing, &mut posture, name.to_owned());
            posture.call.map_or(0, |call| call.space)
        };
        let one = on("out.dat", &mut standing);
        assert_eq!(on("out.dat", &mut standing), one);
        assert_ne!(on("out.txt", &mut standing), one);
        assert_eq!(standing.names[&one], "out.dat");
    }

    #[test]
    fn calls_of_pytorch_are_told_apart_too() {
        let kind = |name: &str| {
            kind_of(Function::named(name).expect("a function of torch.distributed"), Given)
        };
        for name in ["all_reduce", "broadcast", "new_group", "DistributedDataParallel"] {
            assert_eq!(kind(name), CallKind::Collective, "{name}");
        }
        assert_eq!(kind("init_process_group"), CallKind::Creation);
        assert_eq!(kind("recv"), CallKind::Receive);
        assert_eq!(kind("send"), CallKind::Send);
        assert_eq!(kind("Work.wait"), CallKind::Wait);
        for name in ["irecv", "isend", "batch_isend_irecv", "destroy_process_group"] {
            assert_eq!(kind(name), CallKind::Other, "{name}");
        }
    }
}
