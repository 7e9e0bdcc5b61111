//! A frozen job as a trace for the Perfetto viewer.
//!
//! Each rank is a process and each of its threads a track. A call is a slice; where it waited for
//! another rank, a slice inside of it says for which one and how long, and what came after that is
//! a second one, to which a flow leads from the call that ended the wait. A track of its own has
//! the window as one slice, with how exact the clocks are and what is missing.

use std::collections::BTreeMap;

use prost::Message;
use sapwood_report::freeze::{Freeze, FreezeEvent};
use sapwood_report::ranks_text;

use super::slices::{Slice, Track, slices};
use crate::event_names::visible;
use crate::perfetto_messages::{
    Annotation, Packet, ProcessDescriptor, SLICE_BEGIN, SLICE_END, ThreadDescriptor, Trace,
    TrackDescriptor, TrackEvent, number, signed, told, truth,
};

/// Every packet is of one sequence.
const SEQUENCE: u32 = 1;
const WINDOW_TRACK: u64 = 1;
/// Tracks of ranks count from here; each rank has room for its threads.
const RANKS_TRACK: u64 = 1 << 16;
const THREADS_MAX: u64 = 256;

/// The bytes of the trace.
#[must_use]
pub fn encode(freeze: &Freeze) -> Vec<u8> {
    let mut tracks = Tracks::default();
    tracks.declare_all(freeze);
    tracks.window(freeze);
    let flows = Flows::of(freeze);
    for (track, slices) in slices(freeze) {
        let uuid = track_of(track);
        slices.iter().for_each(|slice| tracks.call(freeze, uuid, slice, &flows));
    }
    // Those of one track lie in their order, and stay so.
    tracks.events.sort_by_key(|packet| packet.timestamp);
    let mut trace = Trace { packet: tracks.declared };
    trace.packet.append(&mut tracks.events);
    trace.encode_to_vec()
}

fn track_of((rank, thread): Track) -> u64 {
    RANKS_TRACK + u64::from(rank) * THREADS_MAX * 2 + 1 + u64::from(thread)
}

fn process_track(rank: u32) -> u64 {
    RANKS_TRACK + u64::from(rank) * THREADS_MAX * 2
}

/// The number of a rank's process; the system's first is never one.
fn pid(rank: u32) -> i32 {
    i32::try_from(rank).unwrap_or(i32::MAX - 1).saturating_add(1)
}

/// Which calls ended the waits of others.
#[derive(Default)]
struct Flows {
    /// By the event that ended them.
    from: BTreeMap<usize, Vec<u64>>,
    /// By the event that waited: the flow, and the one that ended it.
    to: BTreeMap<usize, (u64, usize)>,
    /// The ranks for which an event waits still.
    absent: BTreeMap<usize, String>,
}

impl Flows {
    fn of(freeze: &Freeze) -> Self {
        let mut flows = Self::default();
        for one in &freeze.collectives {
            for &at in &one.arrivals {
                let event = &freeze.events[at];
                if event.is_open && !one.absent.is_empty() {
                    flows.absent.insert(at, one.absent.clone());
                }
                if let Some(last) = one.last.filter(|_| event.wait_ns > Some(0)) {
                    flows.add(last, at);
                }
            }
        }
        for message in &freeze.messages {
            flows.add(message.send, message.receive);
        }
        flows
    }

    fn add(&mut self, from: usize, to: usize) {
        let number = self.to.len() as u64 + 1;
        if from != to && !self.to.contains_key(&to) {
            self.to.insert(to, (number, from));
            self.from.entry(from).or_default().push(number);
        }
    }
}

#[derive(Default)]
struct Tracks {
    declared: Vec<Packet>,
    events: Vec<Packet>,
}

impl Tracks {
    fn declare(&mut self, track: TrackDescriptor) {
        self.declared.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(track),
            ..Packet::default()
        });
    }

    fn declare_all(&mut self, freeze: &Freeze) {
        self.declare(TrackDescriptor {
            uuid: Some(WINDOW_TRACK),
            name: Some("frozen window".to_owned()),
            ..TrackDescriptor::default()
        });
        for process in &freeze.processes {
            let name = format!("rank {} ({})", process.rank, visible(&freeze.program));
            let descriptor =
                ProcessDescriptor { pid: Some(pid(process.rank)), process_name: Some(name) };
            self.declare(TrackDescriptor {
                uuid: Some(process_track(process.rank)),
                process: Some(descriptor),
                ..TrackDescriptor::default()
            });
        }
        let lost = |(rank, thread): Track| {
            let process = freeze.processes.iter().find(|process| process.rank == rank);
            let threads = process.map(|process| &process.threads[..]).unwrap_or_default();
            threads.iter().find(|one| one.thread == thread).map_or(0, |one| one.dropped)
        };
        for track in slices(freeze).into_keys() {
            let mut name = format!("thread {}", track.1);
            if lost(track) > 0 {
                name += &format!(" ({} calls overwritten)", lost(track));
            }
            let tid = pid(track.0).saturating_mul(256).saturating_add(track.1.into());
            let thread = ThreadDescriptor {
                pid: Some(pid(track.0)),
                tid: Some(tid),
                thread_name: Some(name),
            };
            self.declare(TrackDescriptor {
                uuid: Some(track_of(track)),
                parent_uuid: Some(process_track(track.0)),
                thread: Some(thread),
                ..TrackDescriptor::default()
            });
        }
    }

    fn event(&mut self, time: i64, event: TrackEvent) {
        self.events.push(Packet {
            timestamp: Some(u64::try_from(time).unwrap_or(0)),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..Packet::default()
        });
    }

    fn begin(&mut self, track: u64, time: i64, event: TrackEvent) {
        let (kind, track_uuid) = (Some(SLICE_BEGIN), Some(track));
        self.event(time, TrackEvent { kind, track_uuid, ..event });
    }

    fn end(&mut self, track: u64, time: i64) {
        let (kind, track_uuid) = (Some(SLICE_END), Some(track));
        self.event(time, TrackEvent { kind, track_uuid, ..TrackEvent::default() });
    }

    fn window(&mut self, freeze: &Freeze) {
        let mut notes = vec![
            told("reason", freeze.reason.text()),
            told("clocks", &freeze.clock_text()),
            number("clock error, ns", freeze.clock_error_ns),
            number("dropped", freeze.dropped()),
        ];
        if !freeze.statement.is_empty() {
            notes.push(told("statement", &visible(&freeze.statement)));
        }
        notes.extend(freeze.unknown.iter().map(|what| told("missing", what)));
        let name = Some("frozen window".to_owned());
        let event = TrackEvent { name, debug_annotations: notes, ..TrackEvent::default() };
        self.begin(WINDOW_TRACK, freeze.begin_ns, event);
        self.end(WINDOW_TRACK, freeze.end_ns);
    }

    fn call(&mut self, freeze: &Freeze, track: u64, slice: &Slice<'_>, flows: &Flows) {
        let from = slice.events.iter().filter_map(|at| flows.from.get(at)).flatten().copied();
        let to: Vec<(u64, usize)> =
            slice.events.iter().filter_map(|at| flows.to.get(at)).copied().collect();
        let ends: Vec<u64> = to.iter().map(|(flow, _)| *flow).collect();
        let has_waited = slice.waited > slice.begin;
        let event = TrackEvent {
            name: Some(slice.event.function.clone()),
            categories: vec![slice.event.kind.clone()],
            debug_annotations: notes(freeze, slice),
            flow_ids: from.collect(),
            terminating_flow_ids: if has_waited { Vec::new() } else { ends.clone() },
            ..TrackEvent::default()
        };
        self.begin(track, slice.begin, event);
        if has_waited {
            let absent = slice.events.iter().find_map(|at| flows.absent.get(at));
            // Of several that were waited for, the one that came last.
            let last = to.iter().map(|(_, from)| &freeze.events[*from]);
            let last = last.max_by_key(|event| event.begin_ns).map(|event| event.rank.to_string());
            let whom = absent.cloned().or(last);
            let name = whom.map_or("waits".to_owned(), |whom| waits_for(&whom));
            let event = TrackEvent { name: Some(name), ..TrackEvent::default() };
            self.begin(track, slice.begin, event);
            self.end(track, slice.waited);
            if slice.waited < slice.end || !ends.is_empty() {
                let name = Some("goes on".to_owned());
                let event =
                    TrackEvent { name, terminating_flow_ids: ends, ..TrackEvent::default() };
                self.begin(track, slice.waited, event);
                self.end(track, slice.end);
            }
        }
        self.end(track, slice.end);
    }
}

fn waits_for(ranks: &str) -> String {
    format!("waits for {}", ranks_text(ranks))
}

fn notes(freeze: &Freeze, slice: &Slice<'_>) -> Vec<Annotation> {
    let event: &FreezeEvent = slice.event;
    let mut notes = Vec::new();
    let communicator = freeze.communicator_of(event);
    if !communicator.is_empty() {
        notes.push(told("communicator", &visible(communicator)));
    }
    if let Some(sequence) = event.sequence {
        notes.push(number("sequence", sequence.into()));
    }
    if let Some(peer) = event.peer {
        let name = if event.kind.starts_with("collective") { "root" } else { "peer" };
        notes.push(number(name, peer.into()));
    }
    if let Some(tag) = event.tag {
        notes.push(signed("tag", tag.into()));
    }
    if let Some(wait) = event.wait_ns {
        notes.push(number("wait, ns", wait));
    }
    if slice.events.len() > 1 {
        notes.push(number("completed", slice.events.len() as u64));
    }
    if event.is_open {
        notes.push(truth("has not returned", true));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::slices::tests::freeze;

    #[test]
    fn slices_nest_and_flows_lead_from_the_last_one_to_those_that_waited() {
        let trace = Trace::decode(&encode(&freeze())[..]).expect("it was just written");
        let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let (mut before, mut from, mut to) = (0, Vec::new(), Vec::new());
        let mut names = Vec::new();
        for packet in &trace.packet {
            let Some(event) = &packet.track_event else { continue };
            let time = packet.timestamp.expect("every event has a time");
            assert!(time >= before, "in order");
            before = time;
            let track = open.entry(event.track_uuid.expect("a track")).or_default();
            match event.kind {
                Some(SLICE_BEGIN) => {
                    let name = event.name.clone().unwrap_or_default();
                    names.push(name.clone());
                    from.extend(event.flow_ids.iter().map(|&flow| (flow, name.clone())));
                    to.extend(event.terminating_flow_ids.iter().map(|&flow| (flow, name.clone())));
                    track.push(name);
                }
                _ => drop(track.pop().expect("a slice that is open")),
            }
        }
        assert!(open.values().all(Vec::is_empty));
        assert_eq!(from, [(1, "MPI_Allreduce".to_owned())]);
        assert_eq!(to, [(1, "goes on".to_owned())]);
        assert_eq!(names.iter().filter(|name| *name == "waits for rank 1").count(), 2);
    }

    #[test]
    fn what_is_missing_is_said_in_the_trace() {
        let mut freeze = freeze();
        freeze.processes[1].threads[0].dropped = 3;
        let trace = Trace::decode(&encode(&freeze)[..]).expect("it was just written");
        let names = trace.packet.iter().filter_map(|packet| {
            packet.track_descriptor.as_ref()?.thread.as_ref()?.thread_name.clone()
        });
        let names: Vec<String> = names.collect();
        assert_eq!(names, ["thread 0", "thread 0 (3 calls overwritten)"]);
        let notes = trace.packet.iter().filter_map(|packet| packet.track_event.as_ref());
        let notes: Vec<&Annotation> = notes.flat_map(|event| &event.debug_annotations).collect();
        let note = |name: &str| notes.iter().find(|note| note.name.as_deref() == Some(name));
        assert_eq!(note("dropped").and_then(|note| note.uint_value), Some(3));
        assert!(note("missing").is_some() && note("clocks").is_some());
    }
}
