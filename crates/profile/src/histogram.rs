//! Histograms in one phase: sketches whose bins choose their own limits, beside the three phases
//! of `three_phase`.
//!
//! One trip up the tree suffices, and the counts are exact; the price is that the bins' width is a
//! power of two, so that they rarely begin and end at the extremes. The bins depend on the smallest
//! and the largest value alone: the sketch is the same to the bit whatever the shape of the tree.
//!
//! ```text
//!  0  %ud    version, 1
//!  1  %aud   covered ranks
//!  2         3 columns of M measures
//!  5  %as    M sketches, each the bytes of `sapwood_filter::Histogram`
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_filter::Histogram;
use sapwood_packet::{Directive, IndexedValues, IntoValues, RankSet, Values, ValuesRef};

use crate::codec::{NAMES, WORD, WORDS, check_format, embedded, push_embedded, push_ranks, ranks};
use crate::measure::{self, Measure};
use crate::{Part, ProfileError, RankProfile};

/// The most bins of a sketch.
pub const SKETCH_BINS: u32 = 64;

const VERSION: u32 = 1;
const LAYOUT: [Directive; 6] =
    [WORD, WORDS, measure::MEASURES[0], measure::MEASURES[1], measure::MEASURES[2], NAMES];
const WRONG: ProfileError = ProfileError::Contradiction { what: "sketches of histograms" };

/// Histograms of some measures, as sketches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramSketches {
    covered: RankSet,
    sketches: BTreeMap<Measure, Histogram>,
}

impl HistogramSketches {
    /// Of the ranks of one leaf.
    #[must_use]
    pub fn of(profiles: &[RankProfile], measures: &[Measure]) -> Self {
        let mut sketches = Self::default();
        for profile in profiles {
            sketches.covered.insert(profile.mpi_rank);
        }
        for measure in measures {
            let values = profiles.iter().filter_map(|profile| measure.value(profile));
            let mut sketch = empty();
            values.for_each(|value| sketch.add(nearest(value)));
            if sketch.count() > 0 {
                sketches.sketches.insert(measure.clone(), sketch);
            }
        }
        sketches
    }

    /// The bins of all measures that a covered rank has.
    pub fn bins(&self) -> impl Iterator<Item = (&Measure, SketchBins)> {
        self.sketches.iter().map(|(measure, sketch)| {
            let low = sketch.bins().next().map_or(0.0, |bin| bin.low);
            let high = sketch.bins().last().map_or(0.0, |bin| bin.high);
            let counts = sketch.bins().map(|bin| bin.count).collect();
            (measure, SketchBins { low, high, counts })
        })
    }

    /// The sketches of all measures that a covered rank has.
    pub fn sketches(&self) -> impl Iterator<Item = (&Measure, &Histogram)> {
        self.sketches.iter()
    }
}

/// The bins of a sketch, of equal width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SketchBins {
    /// Where the first begins.
    pub low: f64,
    /// Where the last ends.
    pub high: f64,
    /// Ranks in each.
    pub counts: Vec<u64>,
}

/// A value as the sketches take it.
#[allow(clippy::cast_precision_loss, reason = "53 bits are enough for a bin")]
pub(crate) fn nearest(value: u64) -> f64 {
    value as f64
}

fn empty() -> Histogram {
    Histogram::self_choosing(SKETCH_BINS).expect("the number of bins is one that it takes")
}

impl Part for HistogramSketches {
    const FILTER: &'static str = "profile-histograms";

    fn covered(&self) -> &RankSet {
        &self.covered
    }

    fn absorb(&mut self, other: Self) -> Result<(), ProfileError> {
        self.covered.union_with(other.covered.as_ref());
        for (measure, sketch) in other.sketches {
            self.sketches.entry(measure).or_insert_with(empty).merge(&sketch).map_err(|_| WRONG)?;
        }
        Ok(())
    }

    fn encode(&self) -> Values {
        let values = push_ranks(Values::new().scalar(VERSION), &self.covered);
        let sketches: Vec<Values> =
            self.sketches.values().map(|sketch| sketch.clone().into_values()).collect();
        push_embedded(measure::push(values, self.sketches.keys()), sketches)
    }

    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &LAYOUT, VERSION, "sketches of histograms")?;
        let mut sketches = Self { covered: ranks(values, 1)?, sketches: BTreeMap::new() };
        let measures = measure::read(values, 2)?;
        let (format, _) = empty().into_values().into_parts();
        let all = embedded(values, 5, measures.len(), format.as_ref(), |values| {
            Histogram::from_values(values).map_err(|_| WRONG)
        })?;
        for (measure, sketch) in measures.into_iter().zip(all) {
            let is_right = sketch.count() <= sketches.covered.len();
            if !is_right || sketches.sketches.insert(measure, sketch).is_some() {
                return Err(WRONG);
            }
        }
        Ok(sketches)
    }
}
