//! Filters by name: what a stream asks for, and what a process can make.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::{Values, ValuesRef};

use crate::{Filter, FilterError};

/// A filter that a stream asks for: its name and its parameters.
#[derive(Clone, Debug, Default)]
pub struct FilterSpec {
    /// The name in the registry.
    pub name: String,
    /// The parameters; most filters take none.
    pub parameters: Values,
}

impl From<&str> for FilterSpec {
    fn from(name: &str) -> Self {
        Self { name: name.to_string(), parameters: Values::new() }
    }
}

/// Makes one instance of a filter out of its parameters.
pub type Maker = fn(ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError>;

/// The filters that a process can make.
#[derive(Clone)]
pub struct Registry {
    makers: BTreeMap<&'static str, Maker>,
}

impl Registry {
    /// A registry without filters.
    #[must_use]
    pub fn empty() -> Self {
        Self { makers: BTreeMap::new() }
    }

    /// A registry of all filters of this crate; `null` is also known as `pass`.
    #[must_use]
    pub fn built_in() -> Self {
        Self::empty()
            .with("accumulate", crate::accumulate::make)
            .with("average", crate::average::make)
            .with("changes", crate::changes::make)
            .with("concatenate", crate::concatenate::make)
            .with("count", crate::count::make)
            .with("equivalence", crate::equivalence::make)
            .with("max", crate::max::make)
            .with("min", crate::min::make)
            .with("null", crate::null::make)
            .with("pass", crate::null::make)
            .with("statistics", crate::statistics::make)
            .with("sum", crate::sum::make)
    }

    /// Adds a filter; an earlier one of that name is replaced.
    #[must_use]
    pub fn with(mut self, name: &'static str, maker: Maker) -> Self {
        self.makers.insert(name, maker);
        self
    }

    /// Makes a filter.
    ///
    /// # Errors
    /// [`FilterError::Unknown`] for a name that is not there, [`FilterError::Parameters`] when the
    /// filter does not take these parameters.
    pub fn make(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Filter>, FilterError> {
        match self.makers.get(name) {
            Some(maker) => maker(parameters),
            None => Err(FilterError::Unknown { name: name.to_string(), known: self.known() }),
        }
    }

    /// The names of all filters, separated by spaces.
    #[must_use]
    pub fn known(&self) -> String {
        self.makers.keys().copied().collect::<Vec<_>>().join(" ")
    }
}

/// Refuses parameters, for the filters that take none.
pub(crate) fn no_parameters(
    name: &'static str,
    parameters: ValuesRef<'_>,
) -> Result<(), FilterError> {
    if parameters.is_empty() {
        Ok(())
    } else {
        Err(FilterError::Parameters { name, takes: "no parameters" })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({})", self.known())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_filter_is_answered_with_the_known_ones() {
        let error = Registry::built_in().make("summ", ValuesRef::default()).err();
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(
            text,
            "filter 'summ' is not known; use one of: accumulate average changes concatenate count \
             equivalence max min null pass statistics sum"
        );
    }

    #[test]
    fn no_built_in_filter_takes_a_text_as_its_parameter() {
        let registry = Registry::built_in();
        let parameters = Values::new().string("9");
        for name in registry.known().split(' ') {
            assert!(registry.make(name, ValuesRef::default()).is_ok(), "{name}");
            let error = registry.make(name, parameters.as_ref()).err();
            assert!(matches!(error, Some(FilterError::Parameters { .. })), "{name}");
        }
    }
}
