//! What is drawn over time: per interval between two rounds, out of records that are cumulative.

use sapwood_report::RoundRecord;
use sapwood_report::record::Event;

use crate::event_names::full_name;

/// Points of a line; where there are more rounds, neighbours become one interval.
const POINTS_MAX: usize = 400;

/// A line: for each interval its end in seconds and the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// Share of MPI in the ranks' time, and efficiencies.
    pub(crate) ratios: Vec<Line>,
    /// Seconds per second that a rank spends in an event, mean of ranks.
    pub(crate) events: Vec<Line>,
}

/// What of a record is drawn: the time, then wall and MPI time per rank, the largest computing time
/// and the mean one, and the time per rank in each event.
#[derive(Clone, Debug, Default)]
struct Sample {
    elapsed_s: f64,
    wall: f64,
    mpi: f64,
    compute_max: f64,
    compute: f64,
    events: Vec<f64>,
}

impl Sample {
    fn of(record: &RoundRecord, events: &[&Event]) -> Self {
        let time = record.time.as_ref();
        // Events are few, records many.
        let of_event = |wanted: &&Event| {
            let same = |event: &&Event| {
                event.name == wanted.name
                    && event.class == wanted.class
                    && event.communicator_size_class == wanted.communicator_size_class
            };
            let ranks = f64::from(record.world_size.max(1));
            record.events.iter().find(same).map_or(0.0, |event| event.time_ns.sum as f64 / ranks)
        };
        Self {
            elapsed_s: record.elapsed_s,
            wall: time.map_or(0.0, |time| time.wall_ns.mean),
            mpi: time.map_or(0.0, |time| time.mpi_ns.mean),
            compute_max: time.map_or(0.0, |time| time.compute_ns.max as f64),
            compute: time.map_or(0.0, |time| time.compute_ns.mean),
            events: events.iter().map(of_event).collect(),
        }
    }
}

impl Series {
    pub(crate) fn of(
        rounds: impl Iterator<Item = Result<RoundRecord, String>>,
        events: &[&Event],
    ) -> Result<Self, String> {
        let mut samples = vec![Sample { events: vec![0.0; events.len()], ..Sample::default() }];
        let mut stride = 1;
        for (at, record) in rounds.enumerate() {
            let sample = Sample::of(&record?, events);
            if at % stride == 0 && sample.elapsed_s > samples[samples.len() - 1].elapsed_s {
                samples.push(sample);
            }
            if samples.len() > POINTS_MAX {
                let mut number = 0;
                samples.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                stride *= 2;
            }
        }
        let mut series = Self {
            ratios: ["share of MPI", "load balance"].map(Line::named).to_vec(),
            events: events
                .iter()
                .map(|event| Line::named(&full_name(&event.name, event.communicator_size_class)))
                .collect(),
        };
        for pair in samples.windows(2) {
            series.add(&pair[0], &pair[1]);
        }
        Ok(series)
    }

    fn add(&mut self, before: &Sample, now: &Sample) {
        let at = now.elapsed_s;
        let wall = now.wall - before.wall;
        if wall > 0.0 {
            let share = ((now.mpi - before.mpi) / wall).clamp(0.0, 1.0);
            self.ratios[0].points.push((at, share));
        }
        let largest = now.compute_max - before.compute_max;
        if largest > 0.0 {
            let balance = ((now.compute - before.compute) / largest).clamp(0.0, 1.0);
            self.ratios[1].points.push((at, balance));
        }
        let seconds = now.elapsed_s - before.elapsed_s;
        for (line, (now, before)) in
            self.events.iter_mut().zip(now.events.iter().zip(&before.events))
        {
            let share = (now - before) / 1e9 / seconds;
            line.points.push((at, share.clamp(0.0, 1.0)));
        }
    }
}

impl Line {
    fn named(name: &str) -> Self {
        Self { name: name.to_owned(), points: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_report::record::{Metric, Time};

    use super::*;

    /// One half of the time is MPI's.
    fn time(wall_s: f64) -> Time {
        let metric = |value: f64| Metric {
            sum: value as u128,
            mean: value,
            standard_deviation: Some(0.0),
            min: value as u64,
            min_rank: 0,
            max: value as u64,
            max_rank: 0,
        };
        Time {
            wall_ns: metric(1e9 * wall_s),
            mpi_ns: metric(5e8 * wall_s),
            compute_ns: metric(5e8 * wall_s),
            mpi_ppm: metric(5e5),
            efficiency: None,
        }
    }

    #[test]
    fn a_long_run_is_drawn_by_few_points() {
        let rounds = (0..5_000_u32).map(|number| {
            let mut record = RoundRecord::default();
            record.elapsed_s = f64::from(number + 1);
            record.time = Some(time(record.elapsed_s));
            Ok(record)
        });
        let series = Series::of(rounds, &[]).expect("records");
        let points = &series.ratios[0].points;
        assert!((POINTS_MAX / 3..=POINTS_MAX).contains(&points.len()), "{}", points.len());
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(points.iter().all(|point| (point.1 - 0.5).abs() < 1e-9));
    }
}
