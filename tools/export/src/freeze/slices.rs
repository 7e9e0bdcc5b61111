//! The calls of a thread one after the other: what several events say of one call is one slice, and
//! no slice reaches into the next.

use std::collections::BTreeMap;

use sapwood_report::freeze::{Freeze, FreezeEvent};

/// One call.
pub(super) struct Slice<'a> {
    /// Its first event.
    pub(super) event: &'a FreezeEvent,
    /// All its events, by their places.
    pub(super) events: Vec<usize>,
    /// Nanoseconds of the common clock.
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Until when it waited for another rank; its begin if it did not, or that is not known.
    pub(super) waited: i64,
}

/// Which thread of which rank.
pub(super) type Track = (u32, u8);

/// The slices of each thread, by their begin.
pub(super) fn slices(freeze: &Freeze) -> BTreeMap<Track, Vec<Slice<'_>>> {
    let mut tracks: BTreeMap<Track, Vec<Slice<'_>>> = BTreeMap::new();
    for (at, event) in freeze.events.iter().enumerate() {
        let track = tracks.entry((event.rank, event.thread)).or_default();
        let waited = event.begin_ns.saturating_add_unsigned(event.wait_ns.unwrap_or(0));
        let is_same = |last: &Slice<'_>| {
            (last.begin, &last.event.function) == (event.begin_ns, &event.function)
        };
        match track.last_mut().filter(|last| is_same(last)) {
            Some(last) => {
                last.events.push(at);
                last.end = last.end.max(event.end_ns);
                last.waited = last.waited.max(waited);
            }
            None => track.push(Slice {
                event,
                events: vec![at],
                begin: event.begin_ns,
                end: event.end_ns,
                waited,
            }),
        }
    }
    for track in tracks.values_mut() {
        for at in 1..track.len() {
            let next = track[at].begin;
            let before = &mut track[at - 1];
            // Ticks were rounded to nanoseconds.
            before.end = before.end.min(next);
        }
        track.iter_mut().for_each(|slice| slice.waited = slice.waited.min(slice.end));
    }
    tracks
}

#[cfg(test)]
pub(super) mod tests {
    use sapwood_report::freeze::{
        FreezeCollective, FreezeCommunicator, FreezeProcess, FreezeThread,
    };

    use super::*;

    fn event(rank: u32, begin_ns: i64, end_ns: i64, sequence: u32) -> FreezeEvent {
        FreezeEvent {
            rank,
            function: "MPI_Allreduce".to_owned(),
            kind: "collective".to_owned(),
            communicator: Some(0),
            sequence: Some(sequence),
            begin_ns,
            end_ns,
            ..FreezeEvent::default()
        }
    }

    /// Two ranks: one collective to which rank 1 comes last, and one without it.
    pub(in crate::freeze) fn freeze() -> Freeze {
        let thread = FreezeThread { written: 9, ..FreezeThread::default() };
        let process = |rank| FreezeProcess {
            rank,
            state: "running".to_owned(),
            is_recording: true,
            threads: vec![thread.clone()],
            ..FreezeProcess::default()
        };
        let world = FreezeCommunicator {
            name: "MPI_COMM_WORLD".to_owned(),
            identity: "00000000000000ff".to_owned(),
            size: 2,
            ranks: "0-1".to_owned(),
        };
        let whole = FreezeCollective {
            function: "MPI_Allreduce".to_owned(),
            sequence: 7,
            size: 2,
            arrivals: vec![0, 1],
            spread_ns: Some(800),
            last: Some(1),
            is_decided: true,
            is_late: true,
            ..FreezeCollective::default()
        };
        let open = FreezeCollective {
            function: "MPI_Allreduce".to_owned(),
            sequence: 8,
            size: 2,
            arrivals: vec![2],
            absent: "1".to_owned(),
            ..FreezeCollective::default()
        };
        Freeze {
            program: "<prog> & \"co\"".to_owned(),
            ranks: 2,
            begin_ns: 1_000,
            end_ns: 9_000,
            processes: vec![process(0), process(1)],
            communicators: vec![world],
            collectives: vec![whole, open],
            events: vec![
                FreezeEvent { wait_ns: Some(800), ..event(0, 1_100, 2_001, 7) },
                FreezeEvent { wait_ns: Some(0), ..event(1, 1_900, 2_000, 7) },
                FreezeEvent { is_open: true, wait_ns: Some(7_000), ..event(0, 2_000, 9_000, 8) },
            ],
            unknown: vec!["3 calls overwritten, of which some may be of the window".to_owned()],
            ..Freeze::default()
        }
    }

    #[test]
    fn slices_of_a_thread_do_not_overlap() {
        let freeze = freeze();
        let tracks = slices(&freeze);
        let first = &tracks[&(0, 0)];
        let spans: Vec<_> = first.iter().map(|one| (one.begin, one.waited, one.end)).collect();
        assert_eq!(spans, [(1_100, 1_900, 2_000), (2_000, 9_000, 9_000)]);
        assert_eq!(tracks[&(1, 0)][0].waited, 1_900);
    }

    #[test]
    fn what_one_call_completes_is_one_slice() {
        let mut freeze = freeze();
        let same = FreezeEvent { wait_ns: Some(850), ..freeze.events[0].clone() };
        freeze.events.insert(1, same);
        let tracks = slices(&freeze);
        assert_eq!((tracks[&(0, 0)].len(), &tracks[&(0, 0)][0].events[..]), (2, &[0, 1][..]));
        assert_eq!(tracks[&(0, 0)][0].waited, 1_950);
    }
}
