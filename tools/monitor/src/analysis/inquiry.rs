//! The front-end's side of the analysis: begins a moment, leads it through its phases, and keeps
//! what has come of it as sections of the report.
//!
//! Nothing here waits: [`Inquiry::begin`] asks, [`Inquiry::take`] takes what has come and asks what
//! follows from it. Several moments are under way at once, each at its own phase, so that the third
//! phase of one overlaps with the first of the next; there are at most [`MOMENTS_MAX`] of them, as
//! many as a leaf keeps. A leaf that does not answer in time is left out of that phase, and the
//! sections name its ranks.

use std::collections::{BTreeMap, BTreeSet};

use sapwood::{Network, RankSet, Result};
use sapwood_profile::{
    ClassId, Classification, Counts, Deviations, Extremes, HistogramSketches, Limits, Measure,
    Medians, Part, RankValues, Round,
};
use sapwood_report::{Analysis, analysis, record};

use super::leaf::MOMENTS_MAX;
use super::line::{Came, Line};
use super::question::{Head, Question};
use super::selection::{Selected, Selection};

/// Classes of a scheme that get histograms of their own: the largest ones.
const CLASS_HISTOGRAMS: usize = 8;
/// The measures of which there are these, and outliers: the first in order; the others are counted.
const CLOSE_MEASURES: usize = 16;

/// What is to be found.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Whose histograms and outliers are wanted.
    pub selection: Selection,
    /// By which schemes ranks are put into classes.
    pub schemes: Vec<String>,
    /// How many outliers of each measure; 0 for none.
    pub outliers: u32,
}

/// One scheme, with what it has carried.
struct SchemeLines {
    name: String,
    classes: Line<Classification>,
    bins: Line<Counts>,
    /// Bytes of the profiles, and of the classes, over all rounds.
    carried: [u64; 2],
}

/// The analysis of a program that runs.
pub struct Inquiry {
    wishes: Wishes,
    extremes: Line<Extremes>,
    bins: Line<Counts>,
    sketches: Line<HistogramSketches>,
    schemes: Vec<SchemeLines>,
    medians: Line<Medians>,
    deviations: Line<Deviations>,
    ranks: Line<RankValues>,
    /// The moments under way.
    moments: BTreeMap<u64, Moment>,
    exact: Vec<record::Histogram>,
    sketched: Vec<record::Histogram>,
    host_outliers: Vec<record::Outlier>,
    result: Analysis,
    /// Moments that were not begun because too many were under way.
    pub skipped: u64,
}

/// What was asked at one moment.
struct Moment {
    head: Head,
    selected: Selected,
}

impl Inquiry {
    /// Opens the streams.
    ///
    /// # Errors
    /// When the network has ended.
    pub fn open(network: &Network, wishes: Wishes) -> Result<Self> {
        let scheme = |name: &String| {
            let (classes, bins) = (Line::open(network)?, Line::open(network)?);
            Ok(SchemeLines { name: name.clone(), classes, bins, carried: [0; 2] })
        };
        Ok(Self {
            schemes: wishes.schemes.iter().map(scheme).collect::<Result<_>>()?,
            wishes,
            extremes: Line::open(network)?,
            bins: Line::open(network)?,
            sketches: Line::open(network)?,
            medians: Line::open(network)?,
            deviations: Line::open(network)?,
            ranks: Line::open(network)?,
            moments: BTreeMap::new(),
            exact: Vec::new(),
            sketched: Vec::new(),
            host_outliers: Vec::new(),
            result: Analysis::default(),
            skipped: 0,
        })
    }

    /// What is known.
    #[must_use]
    pub const fn result(&self) -> &Analysis {
        &self.result
    }

    /// Events that were asked for by name and have never appeared.
    #[must_use]
    pub fn never_found(&self) -> Vec<String> {
        self.wishes.selection.never_found()
    }

    /// Begins a moment, unless too many are under way. The round says which events there are; its
    /// number, in the head, must be higher than those before it.
    pub fn begin(&mut self, head: Head, round: &Round) {
        self.close_moments();
        if self.moments.len() >= MOMENTS_MAX {
            self.skipped += 1;
            return;
        }
        let selected = self.wishes.selection.select(round);
        let measures: Vec<Measure> = selected.measures.keys().cloned().collect();
        if !measures.is_empty() {
            self.extremes.ask(head, &Question::Extremes(measures.clone()));
            self.sketches.ask(head, &Question::Sketches(measures.clone()));
            if self.wishes.outliers > 0 {
                let close = measures.into_iter().take(CLOSE_MEASURES).collect();
                self.medians.ask(head, &Question::Medians(close));
            }
        }
        for scheme in &mut self.schemes {
            scheme.classes.ask(head, &Question::Classes(scheme.name.clone()));
        }
        self.ranks.ask(head, &Question::RankValues);
        self.moments.insert(head.round, Moment { head, selected });
    }

    /// Takes what has come, and asks what follows from it. Whether a section is new.
    pub fn take(&mut self) -> bool {
        let mut is_new = false;
        is_new |= self.take_histograms();
        is_new |= self.take_classes();
        is_new |= self.take_outliers();
        for came in self.ranks.take() {
            let (Some(values), Some(moment)) = (came.part, self.moments.get(&came.round)) else {
                continue;
            };
            let world_size = moment.head.world_size;
            self.result.rank_values = analysis::rank_values(&values, world_size);
            self.publish(came.round, "rank values", values.covered());
            is_new = true;
        }
        self.close_moments();
        is_new
    }

    /// Whether something that was asked is not answered yet.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.moments.is_empty()
    }

    fn take_histograms(&mut self) -> bool {
        let mut is_new = false;
        for came in self.extremes.take() {
            let (Some(extremes), Some(moment)) = (came.part, self.moments.get(&came.round)) else {
                continue;
            };
            let bins = |measure: &Measure| moment.selected.measures.get(measure).map_or(1, |&n| n);
            let limits = extremes.limits(bins);
            self.bins.ask(moment.head, &Question::Bins(String::new(), limits));
        }
        for came in self.bins.take() {
            let Some(counts) = came.part else { continue };
            self.exact = histograms(&counts, None);
            let left_out = self.moments.get(&came.round).map(|moment| moment.selected.left_out);
            self.result.histograms_left_out = left_out.unwrap_or(0);
            self.result.measures_left_out =
                counts.histograms().count().saturating_sub(CLOSE_MEASURES) as u64;
            self.publish(came.round, "histograms", counts.covered());
            is_new = true;
        }
        for came in self.sketches.take() {
            let Some(sketches) = came.part else { continue };
            self.sketched = analysis::sketches(&sketches);
            self.publish(came.round, "sketches of histograms", sketches.covered());
            is_new = true;
        }
        if is_new {
            self.result.histograms = [&self.exact[..], &self.sketched[..]].concat();
        }
        is_new
    }

    fn take_classes(&mut self) -> bool {
        let mut is_new = false;
        for at in 0..self.schemes.len() {
            for came in self.schemes[at].classes.take() {
                is_new |= self.classes_came(at, &came);
            }
            for came in self.schemes[at].bins.take() {
                let Some(counts) = came.part else { continue };
                let name = &self.schemes[at].name;
                let sections = &mut self.result.classifications;
                let Some(section) = sections.iter_mut().find(|one| one.scheme == *name) else {
                    continue;
                };
                for class in &mut section.classes {
                    class.histograms = histograms(&counts, Some(class.id));
                }
                is_new = true;
            }
        }
        is_new
    }

    fn classes_came(&mut self, at: usize, came: &Came<Classification>) -> bool {
        let (Some(classes), Some(moment)) = (&came.part, self.moments.get(&came.round)) else {
            return false;
        };
        let scheme = &mut self.schemes[at];
        let mut section = analysis::classification(&scheme.name, classes);
        scheme.carried[0] = scheme.carried[0].saturating_add(classes.profile_bytes());
        scheme.carried[1] = scheme.carried[1].saturating_add(came.bytes);
        section.reduction_factor = factor(classes.profile_bytes(), came.bytes);
        section.cumulated_factor = factor(scheme.carried[0], scheme.carried[1]);
        let limits = class_limits(&section, classes, &moment.selected.measures);
        if !limits.is_empty() {
            scheme.bins.ask(moment.head, &Question::Bins(scheme.name.clone(), limits));
        }
        // Until its counts come a class keeps the histograms of the moment before.
        let sections = &mut self.result.classifications;
        let before = sections.iter().position(|one| one.scheme == section.scheme);
        let before = before.map(|place| sections.remove(place));
        for class in &mut section.classes {
            let same = before.iter().flat_map(|section| &section.classes);
            let same = same.into_iter().find(|one| one.id == class.id);
            class.histograms = same.map_or_else(Vec::new, |one| one.histograms.clone());
        }
        let name = format!("classes by {}", section.scheme);
        sections.push(section);
        sections.sort_by(|one, other| one.scheme.cmp(&other.scheme));
        self.publish(came.round, &name, classes.covered());
        true
    }

    fn take_outliers(&mut self) -> bool {
        for came in self.medians.take() {
            let (Some(medians), Some(moment)) = (came.part, self.moments.get(&came.round)) else {
                continue;
            };
            let found: Vec<(Measure, u64)> =
                medians.medians().map(|(measure, median)| (measure.clone(), median)).collect();
            self.deviations.ask(moment.head, &Question::Deviations(found, self.wishes.outliers));
            self.host_outliers = analysis::host_outliers(&medians, self.wishes.outliers as usize);
        }
        let mut is_new = false;
        for came in self.deviations.take() {
            let Some(deviations) = came.part else { continue };
            self.result.outliers = analysis::rank_outliers(&deviations);
            self.result.outliers.extend(self.host_outliers.iter().cloned());
            self.publish(came.round, "outliers", deviations.covered());
            is_new = true;
        }
        is_new
    }

    /// Notes of which moment the result is, and which ranks a section lacks.
    fn publish(&mut self, round: u64, section: &str, covered: &RankSet) {
        let world_size = self.moments.get(&round).map_or(0, |moment| moment.head.world_size);
        self.result.round = self.result.round.max(Some(round));
        let Some(last) = world_size.checked_sub(1) else { return };
        let missing = RankSet::range(0, last).difference(covered.as_ref());
        if missing.is_empty() {
            self.result.missing.remove(section);
        } else {
            self.result.missing.insert(section.to_owned(), missing.to_string());
        }
    }

    /// Forgets the moments about which nothing is open any more.
    fn close_moments(&mut self) {
        let mut open: BTreeSet<u64> = BTreeSet::new();
        open.extend(self.extremes.open_rounds());
        open.extend(self.bins.open_rounds());
        open.extend(self.sketches.open_rounds());
        open.extend(self.medians.open_rounds());
        open.extend(self.deviations.open_rounds());
        open.extend(self.ranks.open_rounds());
        for scheme in &self.schemes {
            open.extend(scheme.classes.open_rounds());
            open.extend(scheme.bins.open_rounds());
        }
        self.moments.retain(|round, _| open.contains(round));
    }
}

/// The histograms of a class, or of all ranks.
fn histograms(counts: &Counts, class: Option<ClassId>) -> Vec<record::Histogram> {
    let own = counts.histograms().filter(|(limits, _)| limits.group == class.unwrap_or(0));
    own.map(|(limits, counts)| analysis::histogram(limits, counts)).collect()
}

/// Where the bins of the largest classes lie: between the extremes over each class.
fn class_limits(
    section: &record::Classification,
    classes: &Classification,
    measures: &BTreeMap<Measure, u32>,
) -> Vec<Limits> {
    let largest = section.classes.iter().take(CLASS_HISTOGRAMS).map(|class| class.id);
    let largest: BTreeSet<ClassId> = largest.collect();
    let mut limits = Vec::new();
    for (group, class) in classes.classes().filter(|(id, _)| largest.contains(id)) {
        for (measure, &bins) in measures.iter().take(CLOSE_MEASURES) {
            let Some(statistics) = class.round.event(&measure.event) else { continue };
            let statistics = statistics.metric(measure.metric);
            let (low, high) = (statistics.min(), statistics.max());
            limits.push(Limits { group, measure: measure.clone(), low, high, bins });
        }
    }
    limits
}

#[allow(clippy::cast_precision_loss, reason = "a factor for the eye")]
fn factor(of_profiles: u64, of_classes: u64) -> f64 {
    if of_classes == 0 { 0.0 } else { of_profiles as f64 / of_classes as f64 }
}
