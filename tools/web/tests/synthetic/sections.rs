//! The sections that streams of their own fill.

use std::collections::BTreeMap;

use sapwood_report::record::{
    Bins, Classification, Death, Histogram, Loss, Outlier, Process, RankClass, RankValues,
    Settings, StackFrame, Stacks,
};

use super::{RANK_BINS_MAX, Synthetic, noise};

const BINS: usize = 24;
/// Ranks of one leaf.
const LEAF_RANKS: u32 = 4;
/// Children of a communication process.
const FAN_OUT: usize = 8;

impl Synthetic {
    pub(super) fn rank_values(&self, number: u64, counted: f64) -> Vec<RankValues> {
        let ranks_per_bin = self.ranks.div_ceil(RANK_BINS_MAX);
        let bins = self.ranks.div_ceil(ranks_per_bin);
        let slow = (number / 4) as u32 % bins;
        let values = |metric: &str, scale: f64| {
            let at = |bin: u32| {
                let distance = f64::from(bin.abs_diff(slow).min(8)) / 8.0;
                let wave = (f64::from(bin) / f64::from(bins) * 12.0 + number as f64 / 11.0).sin();
                scale
                    * (0.25
                        + 0.1 * wave
                        + 0.3 * (1.0 - distance)
                        + 0.02 * noise(u64::from(bin) + number))
            };
            let is_missing = |bin: u32| bins > 4 && number > 20 && bin == bins - 1;
            let mean = (0..bins).map(|bin| (!is_missing(bin)).then(|| at(bin))).collect();
            let max = (0..bins).map(|bin| (!is_missing(bin)).then(|| at(bin) * 1.2)).collect();
            RankValues { metric: metric.to_owned(), ranks_per_bin, mean, max }
        };
        vec![
            values("mpi_ppm", 1e6),
            values("compute_ns", counted * 1e9),
            values("bytes", counted * 1e7),
        ]
    }

    pub(super) fn histograms(&self, number: u64, counted: f64, ranks: u32) -> Vec<Histogram> {
        let one = |(at, (event, metric)): (usize, (&str, &str))| {
            let scale = counted * if metric == "time_ns" { 9e7 } else { 2e6 };
            let spread = 0.3 + 0.2 * (number as f64 / 9.0).sin();
            let centre = 8.0 + 4.0 * (number as f64 / 13.0 + at as f64).sin();
            let weight = |bin: usize| {
                let first = (-((bin as f64 - centre) / 2.5).powi(2)).exp();
                let second = 0.3 * (-((bin as f64 - 19.0) / 1.5).powi(2)).exp();
                first + second
            };
            let total: f64 = (0..BINS).map(weight).sum();
            let counts: Vec<u64> = (0..BINS)
                .map(|bin| (f64::from(ranks) * weight(bin) / total).round() as u64)
                .collect();
            Histogram {
                event: event.to_owned(),
                communicator_size_class: None,
                metric: metric.to_owned(),
                method: "three-phase".to_owned(),
                bins: Bins {
                    low: scale * (1.0 - spread),
                    high: scale * (1.0 + 2.0 * spread),
                    counts,
                },
                ..Histogram::default()
            }
        };
        let which =
            [("MPI_Waitall", "time_ns"), ("MPI_Allreduce", "time_ns"), ("MPI_Waitall", "bytes")];
        which.into_iter().enumerate().map(one).collect()
    }

    pub(super) fn classifications(&self, number: u64, counted: f64) -> Vec<Classification> {
        let scheme = |(scheme, parts): (&str, u32)| {
            let parts = parts.min(self.ranks);
            let moving = (self.ranks / 10) * u32::from(number % 40 > 20);
            let class = |at: u32| {
                let shift = if at == 0 { moving } else { 0 };
                let first = if at == 0 {
                    0
                } else {
                    self.ranks * at / parts + if at == 1 { moving } else { 0 }
                };
                let end = (self.ranks * (at + 1) / parts + shift).max(first + 1).min(self.ranks);
                let size = end.saturating_sub(first).max(1);
                RankClass {
                    id: 0x5a00 + u64::from(at) * 77,
                    ranks: self.rank_set(first, first + size),
                    size: size.into(),
                    names: vec!["MPI_Allreduce".to_owned(), format!("role {at}")],
                    events: self.events(number, counted, size, 1.0 + f64::from(at) * 0.4),
                    histograms: self.histograms(number, counted, size),
                }
            };
            let factor = f64::from(self.ranks) / f64::from(parts);
            Classification {
                scheme: scheme.to_owned(),
                reduction_factor: factor * (1.0 + 0.1 * noise(number)),
                cumulated_factor: factor,
                classes: (0..parts).map(class).collect(),
                ..Classification::default()
            }
        };
        [("all", 6), ("mpi", 3), ("regex:^MPI_All", 2)].into_iter().map(scheme).collect()
    }

    pub(super) fn outliers(&self, number: u64, counted: f64) -> Vec<Outlier> {
        let one = |at: u32| Outlier {
            event: ["MPI_Waitall", "solve", "MPI_Allreduce"][at as usize % 3].to_owned(),
            metric: "time_ns".to_owned(),
            rank: (at > 0).then_some((at * 3 + number as u32 / 6) % self.ranks),
            host: format!("node{:03}", at * 7 % (self.ranks / LEAF_RANKS).max(1)),
            value: counted * 9e7 * (2.0 + f64::from(at)),
            median: counted * 9e7,
            score: if at.is_multiple_of(2) { 1.0 } else { -1.0 } * (9.0 - f64::from(at)),
            ..Outlier::default()
        };
        (0..6).map(one).collect()
    }

    pub(super) fn stacks(&self, elapsed_s: f64) -> Stacks {
        let all = u64::from(self.ranks);
        let frame = |name: &str, count: u64, children: Vec<StackFrame>| StackFrame {
            name: name.to_owned(),
            ranks: self.rank_set(0, u32::try_from(count).unwrap_or(self.ranks).max(1)),
            count,
            children,
        };
        let waiting =
            frame("PMPI_Waitall", all * 2 / 8, vec![frame("poll", all * 2 / 8, Vec::new())]);
        let reduce = frame("PMPI_Allreduce", all / 8, Vec::new());
        let halo = frame("exchange_halo (halo.c:118)", all * 2 / 8, vec![waiting]);
        let kernel = frame("stencil<double, 3>::apply (kernel.cpp:57)", all * 3 / 8, Vec::new());
        let solve = frame("solve (solver.cpp:204)", all * 7 / 8, vec![kernel, halo, reduce]);
        let write = frame("write_step (output.cpp:33)", all / 8, Vec::new());
        let main = frame("main (main.cpp:12)", all, vec![solve, write]);
        let missing = vec![Loss { ranks: "0".to_owned(), reason: "it was not stopped".to_owned() }];
        let roots = vec![frame("_start", all, vec![main])];
        Stacks { elapsed_s, roots, missing, ..Stacks::default() }
    }

    pub(super) fn deaths(&self) -> Vec<Death> {
        let death = |ranks: u32, elapsed_s: f64, is_first: bool, cause: &str| Death {
            ranks: ranks.to_string(),
            elapsed_s,
            is_first,
            cause: cause.to_owned(),
            inside: "MPI_Allreduce".to_owned(),
            ..Death::default()
        };
        vec![
            death(self.ranks - 1, 20.2 * self.interval_s, true, "signal 11"),
            death(self.ranks - 2, 20.4 * self.interval_s, false, "MPI_Abort(13)"),
        ]
    }

    /// The front-end, levels of communication processes, and leaves with a few ranks each.
    pub(super) fn tree(&self, number: u64) -> Vec<Process> {
        let leaves = self.ranks.div_ceil(LEAF_RANKS) as usize;
        let mut sizes = vec![leaves];
        while let Some(&size) = sizes.last()
            && size > 1
        {
            sizes.push(size.div_ceil(FAN_OUT));
        }
        sizes.reverse();
        let mut tree = Vec::new();
        let mut above = 0..0;
        for (level, &size) in sizes.iter().enumerate() {
            let first = tree.len();
            let is_last = level + 1 == sizes.len() && level > 0;
            for at in 0..size {
                let id = u32::try_from(tree.len()).unwrap_or(u32::MAX);
                let parent = (level > 0).then(|| above.start + at / FAN_OUT);
                let busy = (1.0 + noise(u64::from(id) * 31 + number)) / 2.0;
                let load = BTreeMap::from([
                    ("packets_per_s".to_owned(), 40.0 + 20.0 * busy),
                    ("bytes_per_s".to_owned(), 5e4 * busy),
                    ("resident_bytes".to_owned(), 6e6 + 1e6 * busy),
                    ("cpu".to_owned(), 0.02 * busy),
                ]);
                let begin = u32::try_from(at).unwrap_or(0) * LEAF_RANKS;
                let end = (begin + LEAF_RANKS).min(self.ranks);
                tree.push(Process {
                    id,
                    parent: parent.and_then(|parent| u32::try_from(parent).ok()),
                    role: match (level, is_last) {
                        (0, _) => "front-end",
                        (_, true) => "leaf",
                        (_, false) => "communication",
                    }
                    .to_owned(),
                    host: format!("node{:03}", at / 4),
                    ranks: if is_last { self.rank_set(begin, end) } else { String::new() },
                    load,
                    is_lost: is_last && at + 1 == size && number > 20,
                });
            }
            above = first..tree.len();
        }
        tree
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            change: 2,
            interval_s: self.interval_s,
            groups: vec!["mpi".to_owned(), "bytes".to_owned()],
            groups_known: ["mpi", "bytes", "memory", "trace"].map(str::to_owned).to_vec(),
            ranks: String::new(),
            obeyed: self.rank_set(0, self.ranks),
            numbers: BTreeMap::from([(
                "page_faults".to_owned(),
                self.metric(1200.0, 0.4, self.ranks, 3),
            )]),
            ..Settings::default()
        }
    }
}
