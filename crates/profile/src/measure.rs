//! A measure: one metric of one event, which histograms and outliers are of.
//!
//! In a packet the measures are three columns:
//!
//! ```text
//!  %aud   words: id << 8 | size class of a function, or 1 << 31 | place of the region's name
//!  %as    names of regions
//!  %auc   metrics: 0 calls, 1 time, 2 bytes
//! ```

use alloc::vec::Vec;

use sapwood_packet::{Directive, IndexedValues, Values, ValuesRef};

use crate::codec::{BYTES, NAMES, WORDS, column};
use crate::{EventKey, Metric, ProfileError, RankProfile};

/// The most measures in one packet.
pub const MEASURES_MAX: usize = 1024;

/// The columns' directives.
pub(crate) const MEASURES: [Directive; 3] = [WORDS, NAMES, BYTES];
const REGION: u32 = 1 << 31;
const WRONG: ProfileError = ProfileError::Contradiction { what: "measures" };

/// One metric of one event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure {
    /// The event.
    pub event: EventKey,
    /// The metric.
    pub metric: Metric,
}

impl Measure {
    /// Its value for a rank; nothing where the rank does not have the event.
    #[must_use]
    pub fn value(&self, profile: &RankProfile) -> Option<u64> {
        profile.events.get(&self.event).map(|counters| counters.metric(self.metric))
    }
}

/// Adds measures as three values of a question.
pub fn push_measures(values: Values, measures: &[Measure]) -> Values {
    push(values, measures.iter())
}

/// Reads them from the value of this index on.
///
/// # Errors
/// [`ProfileError`] when they are none, or more than [`MEASURES_MAX`].
pub fn read_measures(values: ValuesRef<'_>, first: usize) -> Result<Vec<Measure>, ProfileError> {
    let values = &IndexedValues::new(values)?;
    read(values, first)
}

/// Adds the columns.
pub(crate) fn push<'a>(values: Values, measures: impl Iterator<Item = &'a Measure>) -> Values {
    let (mut words, mut names, mut metrics) = (Vec::new(), Vec::new(), Vec::new());
    for Measure { event, metric } in measures {
        words.push(match event {
            EventKey::Function { id, size_class } => EventKey::to_word(*id, *size_class),
            EventKey::Region(name) => {
                names.push(name.as_str());
                REGION | u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
            }
        });
        metrics.push(*metric as u8);
    }
    values.array(&words).strings(&names).array(&metrics)
}

/// Reads the columns from the value of this index on.
pub(crate) fn read(values: &IndexedValues<'_>, first: usize) -> Result<Vec<Measure>, ProfileError> {
    let words: &[u32] = values.array(first)?;
    if words.len() > MEASURES_MAX {
        return Err(WRONG);
    }
    let names: Vec<&[u8]> = values.strings(first + 1)?.collect();
    let metrics: &[u8] = column(values, first + 2, words.len())?;
    let measures = words.iter().zip(metrics).map(|(&word, &metric)| {
        let event = match word & REGION {
            0 => EventKey::from_word(word),
            _ => names.get((word & !REGION) as usize).and_then(|name| EventKey::from_name(name)),
        };
        Some(Measure { event: event?, metric: *Metric::ALL.get(usize::from(metric))? })
    });
    measures.collect::<Option<_>>().ok_or(WRONG)
}
