//! The questions of the analysis, as packets: what a leaf is asked about one moment of its ranks.
//!
//! All of them begin with the same four values; what follows depends on the tag:
//!
//! ```text
//!  0  %ud    ranks of the program
//!  1  %uld   wave to answer in
//!  2  %uld   number of the moment; all questions with it are answered from the same profiles
//!  3  %uld   nanoseconds from which on an activity is long
//!  4  EXTREMES, SKETCHES, MEDIANS: 3 columns of measures
//!     CLASSES: %s scheme
//!     BINS: %s scheme, empty for none, and the limits
//!     DEVIATIONS: the most ranks of each measure, and the medians
//! ```

use sapwood::{FIRST_TAG, Tag, Values, ValuesRef, Wave};
use sapwood_profile::{
    Limits, Measure, ProfileError, push_limits, push_measures, push_medians, read_limits,
    read_measures, read_medians,
};

/// The first tag of this module; those below are the leaf's own.
const BASE: Tag = FIRST_TAG + 40;
const EXTREMES: Tag = BASE;
const SKETCHES: Tag = BASE + 1;
const CLASSES: Tag = BASE + 2;
const MEDIANS: Tag = BASE + 3;
const RANK_VALUES: Tag = BASE + 4;
const BINS: Tag = BASE + 5;
const DEVIATIONS: Tag = BASE + 6;

/// What every question says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Ranks of the program.
    pub world_size: u32,
    /// The number of the moment.
    pub round: u64,
    /// From when on an activity is long, in nanoseconds.
    pub long_ns: u64,
}

/// What is asked. The first five begin a moment, the others come back to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The extremes of measures: the first phase of histograms.
    Extremes(Vec<Measure>),
    /// One-phase histograms of measures.
    Sketches(Vec<Measure>),
    /// Rank classes of a scheme.
    Classes(String),
    /// Medians of measures, and sums of hosts.
    Medians(Vec<Measure>),
    /// Numbers of each rank.
    RankValues,
    /// Counts between limits, by the classes of a scheme unless it is empty: the third phase.
    Bins(String, Vec<Limits>),
    /// Distances from medians, with this number of ranks of each.
    Deviations(Vec<(Measure, u64)>, u32),
}

impl Question {
    /// The tag of its packet.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        match self {
            Self::Extremes(_) => EXTREMES,
            Self::Sketches(_) => SKETCHES,
            Self::Classes(_) => CLASSES,
            Self::Medians(_) => MEDIANS,
            Self::RankValues => RANK_VALUES,
            Self::Bins(..) => BINS,
            Self::Deviations(..) => DEVIATIONS,
        }
    }

    /// Whether it begins a moment, of which the leaf reads its ranks anew.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        !matches!(self, Self::Bins(..) | Self::Deviations(..))
    }

    /// The values of its packet.
    #[must_use]
    pub fn encode(&self, head: Head, wave: Wave) -> Values {
        let values = Values::new().scalar(head.world_size).scalar(wave);
        let values = values.scalar(head.round).scalar(head.long_ns);
        match self {
            Self::Extremes(measures) | Self::Sketches(measures) | Self::Medians(measures) => {
                push_measures(values, measures)
            }
            Self::Classes(scheme) => values.string(scheme),
            Self::RankValues => values,
            Self::Bins(scheme, limits) => push_limits(values.string(scheme), limits.iter()),
            Self::Deviations(medians, most) => push_medians(values, medians, *most),
        }
    }

    /// Reads a packet; nothing if its tag is another's.
    ///
    /// # Errors
    /// [`ProfileError`] when the values are no question.
    pub fn decode(
        tag: Tag,
        values: ValuesRef<'_>,
    ) -> Result<Option<(Head, Wave, Self)>, ProfileError> {
        let question = match tag {
            EXTREMES => Self::Extremes(read_measures(values, 4)?),
            SKETCHES => Self::Sketches(read_measures(values, 4)?),
            CLASSES => Self::Classes(values.string(4)?.to_owned()),
            MEDIANS => Self::Medians(read_measures(values, 4)?),
            RANK_VALUES => Self::RankValues,
            BINS => Self::Bins(values.string(4)?.to_owned(), read_limits(values, 5)?),
            DEVIATIONS => {
                let (medians, most) = read_medians(values, 4)?;
                Self::Deviations(medians, most)
            }
            _ => return Ok(None),
        };
        let head = Head {
            world_size: values.scalar(0)?,
            round: values.scalar(2)?,
            long_ns: values.scalar(3)?,
        };
        Ok(Some((head, values.scalar(1)?, question)))
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{EventKey, Metric};

    use super::*;

    #[test]
    fn a_question_comes_down_as_it_was_asked() {
        let measure = Measure { event: EventKey::Region("a".into()), metric: Metric::Bytes };
        let limits = Limits { group: 7, measure: measure.clone(), low: 1, high: 9, bins: 3 };
        let head = Head { world_size: 8, round: 5, long_ns: 6 };
        let all = [
            Question::Extremes(vec![measure.clone()]),
            Question::Sketches(Vec::new()),
            Question::Classes("regex:a.*".into()),
            Question::Medians(vec![measure.clone()]),
            Question::RankValues,
            Question::Bins("mpi".into(), vec![limits]),
            Question::Deviations(vec![(measure, 44)], 3),
        ];
        for question in all {
            let values = question.encode(head, 2);
            let decoded = Question::decode(question.tag(), values.as_ref());
            assert_eq!(decoded, Ok(Some((head, 2, question))));
        }
        assert_eq!(Question::decode(FIRST_TAG, Values::new().as_ref()), Ok(None));
        assert!(Question::decode(BINS, Values::new().as_ref()).is_err());
    }
}
