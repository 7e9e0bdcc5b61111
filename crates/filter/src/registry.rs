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

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({})", self.known())
    }
}
