//! A sketch of any kind, recognised by its layout: for readers in other languages, which have a
//! packet and no type.

use sapwood_packet::ValuesRef;

use super::{
    Distinct, HeavyHitters, Histogram, ItemSet, Kll, PrefixTree, Quantiles, Sketch, TopK, failed,
};
use crate::FilterError;

/// A sketch of any kind. No two kinds are encoded in one format, so that a packet says by itself
/// which it holds.
///
/// ```
/// use sapwood_filter::{AnySketch, Distinct};
/// use sapwood_packet::IntoValues;
///
/// let mut hosts = Distinct::new(12)?;
/// hosts.add_text(b"node17");
/// let sent = hosts.into_values();
/// let AnySketch::Distinct(read) = AnySketch::from_values(sent.as_ref())? else { panic!() };
/// assert_eq!(read.estimate(), 1.0);
/// # Ok::<(), sapwood_filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnySketch {
    /// Of the filter `quantiles`.
    Quantiles(Quantiles),
    /// Of the filter `kll`.
    Kll(Kll),
    /// Of the filter `distinct`.
    Distinct(Distinct),
    /// Of the filter `heavy-hitters`.
    HeavyHitters(HeavyHitters),
    /// Of the filter `top`.
    Top(TopK),
    /// Of the filter `histogram`.
    Histogram(Histogram),
    /// Of the filter `union`.
    Union(ItemSet),
    /// Of the filter `prefix-tree`.
    PrefixTree(PrefixTree),
}

impl AnySketch {
    /// Reads an encoded sketch.
    ///
    /// # Errors
    /// [`FilterError::Failed`] when the values have the format of none, or do not fit together;
    /// [`FilterError::Values`] when they cannot be read.
    pub fn from_values(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        let format = values.format();
        macro_rules! first_of {
            ($($kind:ident($sketch:ty))*) => {$(
                if <$sketch>::is_layout(format) {
                    return <$sketch>::decode(values).map(Self::$kind);
                }
            )*};
        }
        first_of! {
            Quantiles(Quantiles) Kll(Kll) Distinct(Distinct) HeavyHitters(HeavyHitters) Top(TopK)
            Histogram(Histogram) Union(ItemSet) PrefixTree(PrefixTree)
        }
        let kinds = "quantiles, kll, distinct, heavy-hitters, top, histogram, union, prefix-tree";
        let reason = alloc::format!(
            "the packet holds '{format}', which is no sketch; a stream's answer is one when its \
             last upward filter is one of {kinds}"
        );
        Err(failed("sketch", &reason))
    }

    /// The name of its filter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quantiles(_) => Quantiles::NAME,
            Self::Kll(_) => Kll::NAME,
            Self::Distinct(_) => Distinct::NAME,
            Self::HeavyHitters(_) => HeavyHitters::NAME,
            Self::Top(_) => TopK::NAME,
            Self::Histogram(_) => Histogram::NAME,
            Self::Union(_) => ItemSet::NAME,
            Self::PrefixTree(_) => PrefixTree::NAME,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use sapwood_packet::{IntoValues, Values};

    use super::*;

    #[test]
    fn every_kind_is_known_by_its_layout_and_by_no_other() {
        let empty: [Values; 9] = [
            Quantiles::new(0.01).unwrap().into_values(),
            Kll::new(200, 1).unwrap().into_values(),
            Distinct::new(12).unwrap().into_values(),
            HeavyHitters::new(8).unwrap().into_values(),
            TopK::new(3).unwrap().into_values(),
            Histogram::fixed(0.0, 1.0, 2).unwrap().into_values(),
            Histogram::self_choosing(8).unwrap().into_values(),
            ItemSet::new(8).unwrap().into_values(),
            PrefixTree::new(8).unwrap().into_values(),
        ];
        let read = |values: &Values| AnySketch::from_values(values.as_ref()).unwrap().name();
        let names: Vec<_> = empty.iter().map(read).collect();
        let wanted =
            "quantiles kll distinct heavy-hitters top histogram histogram union prefix-tree";
        assert_eq!(names.join(" "), wanted);
    }

    #[test]
    fn the_three_kinds_of_numbers_of_top_are_known() {
        for number in [crate::TopNumber::Signed(-1), 1_u64.into(), 0.5_f64.into()] {
            let mut top = TopK::new(3).unwrap();
            top.add(number, 0).unwrap();
            let values = top.into_values();
            assert_eq!(AnySketch::from_values(values.as_ref()).unwrap().name(), "top");
        }
    }

    #[test]
    fn what_is_no_sketch_is_refused_by_its_format() {
        let error = AnySketch::from_values(7_i32.into_values().as_ref()).unwrap_err();
        assert!(error.to_string().contains("holds '%d', which is no sketch"), "{error}");
    }
}
