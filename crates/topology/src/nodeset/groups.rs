//! Groups of nodes, as defined by external sources.

use alloc::string::String;
use alloc::vec::Vec;

/// Where names of groups become nodesets. The source of a group is `None` where none is named: the
/// default source is meant. What is given back is text in the language of nodesets, in which groups
/// without a source are of the same source.
pub trait Groups {
    /// The members of a group; `None` if there is no such group.
    ///
    /// # Errors
    /// One line that says why it is not known.
    fn members(&self, source: Option<&str>, group: &str) -> Result<Option<String>, String>;

    /// All nodes of a source; `None` if there is no such source, or it does not know.
    ///
    /// # Errors
    /// One line that says why it is not known.
    fn all(&self, source: Option<&str>) -> Result<Option<String>, String>;

    /// The names of the groups of a source; `None` if there is no such source.
    ///
    /// # Errors
    /// One line that says why it is not known.
    fn names(&self, source: Option<&str>) -> Result<Option<Vec<String>>, String>;
}

/// No groups at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGroups;

impl Groups for NoGroups {
    fn members(&self, _source: Option<&str>, _group: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn all(&self, _source: Option<&str>) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn names(&self, _source: Option<&str>) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }
}
