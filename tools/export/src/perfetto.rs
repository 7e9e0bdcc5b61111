//! `trace.perfetto-trace`: rounds, regions and MPI events over time, for the Perfetto viewer.
//!
//! One process is the program. It has a track of rounds, each a slice from the round before to this
//! one, a track for each region, with a slice as long as the mean time of the ranks in it during
//! the round, and counters for MPI's share of that round's time and for the ranks' mean time in
//! each of the events that took most.

use std::collections::BTreeMap;

use prost::Message;
use sapwood_report::record::Event;
use sapwood_report::{Profile, RoundRecord};

use crate::event_names::{full_name, visible};
use crate::perfetto_messages::{
    Annotation, COUNTER, CounterDescriptor, Packet, ProcessDescriptor, SLICE_BEGIN, SLICE_END,
    Trace, TrackDescriptor, TrackEvent, number, told,
};

/// The file's name.
pub(crate) const FILE: &str = "trace.perfetto-trace";
/// Counters of events, at most; the others are in the rows of other formats.
const COUNTERS_MAX: usize = 64;
/// Every packet is of one sequence.
const SEQUENCE: u32 = 1;
const PROGRAM_TRACK: u64 = 1;
const ROUNDS_TRACK: u64 = 2;
const SHARE_TRACK: u64 = 3;
/// Tracks of events count from here.
const EVENTS_TRACK: u64 = 16;

pub(crate) fn encode(
    rounds: impl Iterator<Item = Result<RoundRecord, String>>,
    profile: &Profile,
) -> Result<Vec<u8>, String> {
    let mut trace = Tracks::begin(profile);
    for record in rounds {
        trace.add(&record?);
    }
    Ok(trace.trace.encode_to_vec())
}

/// What a counter or slice of the next round is compared with.
#[derive(Clone, Copy, Default)]
struct Before {
    time_ns: f64,
    calls: f64,
}

struct Tracks {
    trace: Trace,
    /// The track of each event, by its full name.
    events: BTreeMap<String, (u64, Before)>,
    counters: usize,
    before_ns: u64,
    /// Mean times of the ranks: all, and in MPI.
    shares: (f64, f64),
}

impl Tracks {
    fn begin(profile: &Profile) -> Self {
        let mut tracks = Self {
            trace: Trace::default(),
            events: BTreeMap::new(),
            counters: 0,
            before_ns: 0,
            shares: (0.0, 0.0),
        };
        let process = ProcessDescriptor {
            pid: Some(1),
            process_name: Some(visible(&format!("{} ({})", profile.program, profile.mpi))),
        };
        tracks.declare(TrackDescriptor {
            uuid: Some(PROGRAM_TRACK),
            process: Some(process),
            ..TrackDescriptor::default()
        });
        tracks.declare_below(ROUNDS_TRACK, "rounds", None);
        tracks.declare_below(SHARE_TRACK, "MPI, share of time", Some("%"));
        tracks
    }

    fn declare(&mut self, track: TrackDescriptor) {
        self.trace.packet.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(track),
            ..Packet::default()
        });
    }

    fn declare_below(&mut self, uuid: u64, name: &str, unit: Option<&str>) {
        let counter = unit.map(|unit| CounterDescriptor { unit_name: Some(unit.to_owned()) });
        self.declare(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(visible(name)),
            parent_uuid: Some(PROGRAM_TRACK),
            counter,
            ..TrackDescriptor::default()
        });
    }

    fn event(&mut self, time_ns: u64, event: TrackEvent) {
        self.trace.packet.push(Packet {
            timestamp: Some(time_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..Packet::default()
        });
    }

    fn slice(
        &mut self,
        track: u64,
        name: String,
        from_ns: u64,
        to_ns: u64,
        notes: Vec<Annotation>,
    ) {
        let begin = TrackEvent {
            kind: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            name: Some(name),
            debug_annotations: notes,
            ..TrackEvent::default()
        };
        self.event(from_ns, begin);
        let end =
            TrackEvent { kind: Some(SLICE_END), track_uuid: Some(track), ..TrackEvent::default() };
        self.event(to_ns, end);
    }

    fn counter(&mut self, track: u64, time_ns: u64, value: f64) {
        let event = TrackEvent {
            kind: Some(COUNTER),
            track_uuid: Some(track),
            double_counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(time_ns, event);
    }

    fn add(&mut self, record: &RoundRecord) {
        let (from, to) = (self.before_ns, (record.elapsed_s * 1e9) as u64);
        if to <= from {
            return;
        }
        let notes = vec![
            told("covered ranks", &record.covered),
            told(
                "missing",
                &record
                    .missing
                    .iter()
                    .map(|loss| loss.ranks.as_str())
                    .collect::<Vec<_>>()
                    .join(","),
            ),
        ];
        self.slice(ROUNDS_TRACK, format!("round {}", record.number), from, to, notes);
        if let Some(time) = &record.time {
            let (wall, mpi) = (time.wall_ns.mean - self.shares.0, time.mpi_ns.mean - self.shares.1);
            if wall > 0.0 {
                self.counter(SHARE_TRACK, from, 100.0 * (mpi / wall).clamp(0.0, 1.0));
            }
            self.shares = (time.wall_ns.mean, time.mpi_ns.mean);
        }
        let mut events: Vec<&Event> = record.events.iter().collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.time_ns.sum));
        for event in events {
            self.add_event(event, from, to);
        }
        self.before_ns = to;
    }

    fn add_event(&mut self, event: &Event, from: u64, to: u64) {
        let is_region = event.class == "region";
        let name = full_name(&event.name, event.communicator_size_class);
        if !self.events.contains_key(&name) {
            if !is_region && self.counters == COUNTERS_MAX {
                return;
            }
            self.counters += usize::from(!is_region);
            let track = EVENTS_TRACK + self.events.len() as u64;
            self.declare_below(track, &name, (!is_region).then_some("ms per rank"));
            self.events.insert(name.clone(), (track, Before::default()));
        }
        let now = Before { time_ns: event.time_ns.mean, calls: event.calls.mean };
        let Some((track, before)) = self.events.get_mut(&name) else { return };
        let (track, before) = (*track, std::mem::replace(before, now));
        let spent_ns = (now.time_ns - before.time_ns).max(0.0);
        if !is_region {
            return self.counter(track, from, spent_ns / 1e6);
        }
        let spent = (spent_ns as u64).min(to - from);
        if spent > 0 {
            let calls = (now.calls - before.calls).max(0.0);
            let notes = vec![
                told("times ended, mean of ranks", &format!("{calls:.1}")),
                number("ranks", event.ranks.into()),
                number("rank with the longest time", event.time_ns.max_rank.into()),
            ];
            self.slice(track, visible(&event.name), to - spent, to, notes);
        }
    }
}
