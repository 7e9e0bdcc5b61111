//! Rounds of programs that do not exist, with every section filled, for 1 to 100,000 ranks.
//!
//! A program of this kind computes and exchanges halos, has slow ranks that wander, a phase of
//! collective calls, and a standstill at its end if it is asked for. Equal questions get equal
//! rounds.

mod sections;

use sapwood_report::RoundRecord;
use sapwood_report::record::{Activity, Efficiency, Event, Loss, Metric, Time};

/// Bins of neighbouring ranks at most, as the tree makes them.
pub const RANK_BINS_MAX: u32 = 512;

/// A program.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// How many ranks it has.
    pub ranks: u32,
    /// Time between rounds.
    pub interval_s: f64,
    /// From this round on nothing moves.
    pub stands_from: Option<u64>,
    /// More events than the usual ones, with names of any bytes.
    pub hostile_events: u32,
}

/// Functions, their classes, and their share of the time in parts of a thousand.
const FUNCTIONS: [(&str, &str, f64); 12] = [
    ("MPI_Waitall", "point-to-point", 90.0),
    ("MPI_Allreduce", "collective", 70.0),
    ("MPI_Sendrecv", "point-to-point", 40.0),
    ("MPI_Bcast", "collective", 12.0),
    ("MPI_Irecv", "point-to-point", 3.0),
    ("MPI_Isend", "point-to-point", 5.0),
    ("MPI_Alltoall", "collective", 25.0),
    ("MPI_Barrier", "collective", 15.0),
    ("MPI_Reduce", "collective", 6.0),
    ("MPI_File_write_all", "I/O", 18.0),
    ("MPI_Comm_split", "communicator", 1.0),
    ("MPI_Win_fence", "one-sided", 2.0),
];
/// Regions of the program.
const REGIONS: [(&str, f64); 4] =
    [("solve", 600.0), ("assemble", 200.0), ("exchange halo", 140.0), ("write", 30.0)];

impl Synthetic {
    /// A program without faults.
    pub fn of(ranks: u32) -> Self {
        Self { ranks, interval_s: 1.0, stands_from: None, hostile_events: 0 }
    }

    /// A small iteration, by its mark from 0: without time, stacks and activities, as iterations
    /// are.
    pub fn iteration(&self, mark: u64) -> RoundRecord {
        let mut record = self.round(mark);
        record.iteration = Some(mark + 1);
        record.time = None;
        record.stacks = None;
        record.activities.clear();
        record.tree.clear();
        record.histograms.clear();
        record.classifications.clear();
        record
    }

    /// The record of one of its rounds.
    pub fn round(&self, number: u64) -> RoundRecord {
        let mut record = RoundRecord::default();
        let elapsed = self.interval_s * (number as f64 + 1.0);
        record.schema = sapwood_report::record::ROUND_SCHEMA.to_owned();
        record.number = number;
        record.elapsed_s = elapsed;
        record.world_size = self.ranks;
        record.covered = self.rank_set(0, self.ranks);
        record.states.running = record.covered.clone();
        // Nothing returns any more once it stands.
        let counted = match self.stands_from {
            Some(from) if number > from => self.interval_s * (from as f64 + 1.0),
            _ => elapsed,
        };
        record.events = self.events(number, counted, self.ranks, 1.0);
        record.events.extend((0..self.hostile_events).map(|at| self.hostile(at, counted)));
        record.time = Some(self.time(number, elapsed));
        self.activities(&mut record, number);
        record.rank_values = self.rank_values(number, counted);
        record.histograms = self.histograms(number, counted, self.ranks);
        record.classifications = self.classifications(number, counted);
        record.outliers = self.outliers(number, counted);
        record.stacks = Some(self.stacks(elapsed));
        record.tree = self.tree(number);
        record.settings = Some(self.settings());
        if self.ranks > 4 && number > 20 {
            let ranks = (self.ranks - 1).to_string();
            let reason = "its leaf did not answer in time".to_owned();
            record.missing.push(Loss { ranks, reason });
            record.covered = self.rank_set(0, self.ranks - 1);
            record.deaths = self.deaths();
        }
        record
    }

    fn rank_set(&self, first: u32, end: u32) -> String {
        if end - first == 1 { first.to_string() } else { format!("{first}-{}", end - 1) }
    }

    /// How fast ranks are in a round: one of them is slow, and it is not always the same one.
    fn slowness(&self, number: u64) -> f64 {
        0.25 + 0.12 * (number as f64 / 9.0).sin() + 0.04 * noise(number)
    }

    fn events(&self, number: u64, counted: f64, ranks: u32, factor: f64) -> Vec<Event> {
        let mut events = Vec::new();
        for (at, (name, class, share)) in FUNCTIONS.iter().enumerate() {
            // A phase in which collective calls take longer.
            let phase = if *class == "collective" && number % 80 > 50 { 1.6 } else { 1.0 };
            let mean_ns = share * 1e6 * counted * factor * phase * (1.0 + 0.05 * noise(number + 7));
            let calls = counted * 200.0 * (1.0 + at as f64);
            events.push(self.event(
                name,
                class,
                Some(self.size_class()),
                ranks,
                number,
                mean_ns,
                calls,
            ));
        }
        for (name, share) in REGIONS {
            let mean_ns = share * 1e6 * counted * factor;
            events.push(self.event(name, "region", None, ranks, number, mean_ns, counted * 10.0));
        }
        events
    }

    fn size_class(&self) -> u8 {
        u8::try_from(u32::BITS - self.ranks.saturating_sub(1).leading_zeros()).unwrap_or(0)
    }

    #[allow(clippy::too_many_arguments, reason = "an event has these properties")]
    fn event(
        &self,
        name: &str,
        class: &str,
        size_class: Option<u8>,
        ranks: u32,
        number: u64,
        mean_ns: f64,
        calls: f64,
    ) -> Event {
        let spread = self.slowness(number);
        let bytes = if class == "region" { 0.0 } else { calls * 8192.0 };
        Event {
            wait_ns: None,
            name: name.to_owned(),
            class: class.to_owned(),
            communicator_size_class: size_class,
            ranks,
            calls: self.metric(calls, 0.02, ranks, number),
            time_ns: self.metric(mean_ns, spread, ranks, number),
            bytes: self.metric(bytes, 0.1, ranks, number),
            imbalance: Some(2.0 * spread),
            messages: None,
            mean_bytes: None,
            size_histogram: None,
        }
    }

    fn metric(&self, mean: f64, spread: f64, ranks: u32, number: u64) -> Metric {
        Metric {
            sum: (mean * f64::from(ranks)) as u128,
            mean,
            standard_deviation: Some(mean * spread / 2.0),
            min: (mean * (1.0 - spread)) as u64,
            min_rank: (number as u32 / 3) % ranks,
            max: (mean * (1.0 + 2.0 * spread)) as u64,
            max_rank: (number as u32 / 5 + ranks / 2) % ranks,
        }
    }

    /// An event that a page may not take at its word.
    fn hostile(&self, at: u32, counted: f64) -> Event {
        let name = match at {
            0 => "<script>window.hostile = 1</script>".to_owned(),
            1 => "\"'><img src=x onerror=\"window.hostile = 2\">".to_owned(),
            2 => "line\nbreak\u{0}\u{1b}[31m\u{202e}tfel-ot-thgir\u{fffd}".to_owned(),
            3 => "__proto__".to_owned(),
            _ => format!("event {at} \u{1f600} \u{2028}"),
        };
        let mean_ns = counted * 1e9 * if at < 4 { 2.0 } else { 1.0 / f64::from(at) };
        self.event(&name, "region", None, self.ranks, 0, mean_ns, counted)
    }

    fn time(&self, number: u64, elapsed: f64) -> Time {
        let share = 0.24 + 0.06 * (number as f64 / 14.0).sin() + 0.01 * noise(number);
        let balance = 0.93 - 0.1 * self.slowness(number);
        let wall = elapsed * 1e9;
        let metric = |mean: f64, spread: f64| self.metric(mean, spread, self.ranks, number);
        Time {
            wall_ns: metric(wall, 0.001),
            mpi_ns: metric(wall * share, 0.3),
            compute_ns: metric(wall * (1.0 - share), 0.1),
            mpi_ppm: metric(share * 1e6, 0.3),
            efficiency: Some(Efficiency {
                parallel: balance * (1.0 - share / 2.0),
                load_balance: balance,
                communication: 1.0 - share / 2.0,
            }),
        }
    }

    fn activities(&self, record: &mut RoundRecord, number: u64) {
        let half = (self.ranks / 2).max(1);
        let is_standing = self.stands_from.is_some_and(|from| number > from);
        let since = match self.stands_from {
            Some(from) if is_standing => self.interval_s * (number - from) as f64,
            _ => 0.004,
        };
        let activity =
            |function: Option<&str>, region: &str, ranks: String, longest_s: f64| Activity {
                function: function.map(str::to_owned),
                communicator: function.map(|_| "MPI_COMM_WORLD".to_owned()).unwrap_or_default(),
                region: region.to_owned(),
                condition: if function.is_some() { "sleeping" } else { "computing" }.to_owned(),
                is_long: is_standing,
                ranks,
                peers: if function == Some("MPI_Waitall") { "0".to_owned() } else { String::new() },
                any_source: false,
                shortest_s: longest_s / 3.0,
                longest_s,
                longest_rank: 0,
            };
        record.activities.push(activity(None, "assemble", "0".to_owned(), since));
        if self.ranks > 1 {
            let waiting = self.rank_set(1, half.max(2));
            record.activities.push(activity(Some("MPI_Allreduce"), "solve", waiting, since));
        }
        if self.ranks > 2 && half < self.ranks && half >= 2 {
            let waiting = self.rank_set(half, self.ranks);
            record.activities.push(activity(Some("MPI_Waitall"), "exchange halo", waiting, since));
        }
        if is_standing {
            record.standstill = vec![
                format!("no MPI call has returned for {since:.1} s"),
                format!("ranks 1-{} wait in MPI_Allreduce on MPI_COMM_WORLD", self.ranks - 1),
                "rank 0 does not come: it computes in region 'assemble'".to_owned(),
            ];
        }
    }
}

/// A number from -1 to 1 that depends on another one.
pub fn noise(number: u64) -> f64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word >> 40) as f64) / f64::from(1 << 23) - 1.0
}
