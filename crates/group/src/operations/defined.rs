//! Operations that the application defines: what they are called on the way, and what they do.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;

use sapwood_random::fnv1a;
use serde::{Deserialize, Serialize};

use super::combine::{Element, Operation};

/// Names an operation that members have defined: alike at all that have given it one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationId(pub u64);

impl OperationId {
    /// That of a name: its FNV-1a hash.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self(fnv1a(name.bytes()))
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The function of an operation could not fold two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldFailed;

/// Folds the second value into the first, which keeps its length.
type FoldFunction = dyn Fn(&mut [u8], &[u8]) -> Result<(), FoldFailed> + Send + Sync;

/// What an operation does with values of one type.
#[derive(Clone)]
pub struct Definition {
    element: Element,
    function: Arc<FoldFunction>,
}

impl Definition {
    /// A function that folds the second value into the first. It is associative. For
    /// [`Operation::Defined`] it is commutative as well, and gives each element of the result from
    /// the two at its place, since it is called with segments of values and in any order.
    ///
    /// The member calls it while it handles an input: it must be short, and must not panic.
    #[must_use]
    pub fn new(
        element: Element,
        function: impl Fn(&mut [u8], &[u8]) -> Result<(), FoldFailed> + Send + Sync + 'static,
    ) -> Self {
        Self { element, function: Arc::new(function) }
    }

    pub(super) fn fold(&self, into: &mut [u8], value: &[u8]) -> Result<(), FoldFailed> {
        // What others send may break the rules: the function gets whole elements, of two lengths
        // that are equal.
        if into.len() != value.len() || !value.len().is_multiple_of(self.element.bytes()) {
            return Err(FoldFailed);
        }
        (self.function)(into, value)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("element", &self.element).finish_non_exhaustive()
    }
}

/// The operations that are defined at this member.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definitions(BTreeMap<OperationId, Definition>);

impl Definitions {
    /// The first definition stays: reductions may be under way.
    pub(crate) fn add(&mut self, operation: OperationId, definition: Definition) {
        self.0.entry(operation).or_insert(definition);
    }

    /// What an operation does with values of a type; none of one that is built in.
    pub(super) fn of(&self, operation: Operation, element: Element) -> Option<&Definition> {
        self.0.get(&operation.defined()?).filter(|definition| definition.element == element)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn names_have_the_published_hash() {
        assert_eq!(OperationId::of_name(""), OperationId(0xcbf2_9ce4_8422_2325));
        assert_eq!(OperationId::of_name("foobar").to_string(), "85944171f73967e8");
    }

    #[test]
    fn a_function_gets_whole_elements_of_equal_lengths_only() {
        let definition = Definition::new(Element::I32, |into, value| {
            into.copy_from_slice(value);
            Ok(())
        });
        let mut into = [1; 8];
        assert_eq!(definition.fold(&mut into, &[2; 4]), Err(FoldFailed));
        assert_eq!(definition.fold(&mut into[..6], &[2; 6]), Err(FoldFailed));
        assert_eq!((definition.fold(&mut into, &[2; 8]), into), (Ok(()), [2; 8]));
    }
}
