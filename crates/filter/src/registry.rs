//! Filters by name: what a stream asks for, and what a process can make.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sapwood_packet::{IntoValues, Values, ValuesRef};

use crate::{Filter, FilterError, Synchronisation};

/// A filter that a stream asks for: its name and its parameters.
#[derive(Clone, Debug, Default)]
pub struct FilterSpec {
    /// The name in the registry.
    pub name: String,
    /// The parameters; most filters take none.
    pub parameters: Values,
}

impl From<&str> for FilterSpec {
    /// A name, with parameters in parentheses if there are any: `top(5)`, `histogram(0 1e3 50)`.
    /// They are separated by blanks; what is neither an integer nor a number is a text.
    fn from(text: &str) -> Self {
        let Some((name, list)) = text.strip_suffix(')').and_then(|text| text.split_once('('))
        else {
            return Self { name: text.to_string(), parameters: Values::new() };
        };
        let parameters = list.split_whitespace().fold(Values::new(), |values, word| {
            if let Ok(integer) = word.parse::<i64>() {
                values.scalar(integer)
            } else if let Ok(number) = word.parse::<f64>() {
                values.scalar(number)
            } else {
                values.string(word)
            }
        });
        Self { name: name.to_string(), parameters }
    }
}

impl From<String> for FilterSpec {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl<V: IntoValues> From<(&str, V)> for FilterSpec {
    /// A name with its parameters, such as `("top", 5)`.
    fn from((name, parameters): (&str, V)) -> Self {
        Self { name: name.to_string(), parameters: parameters.into_values() }
    }
}

/// A complete file that was shipped through the tree, for a [`FilterSource`].
#[derive(Clone, Copy, Debug)]
pub struct ShippedFile<'a> {
    /// Its name, without the source's prefix and without a folder.
    pub name: &'a str,
    /// What its checksum has to be, as the source that it is for reckons it.
    pub digest: &'a [u8; 32],
    /// Its contents.
    pub bytes: &'a [u8],
}

/// Makes filters that are not registered by name, from the text after its prefix in their names:
/// the file and the filter in it, for instance.
pub trait FilterSource: Send + Sync {
    /// Makes a filter; `name` is the text after the prefix.
    ///
    /// # Errors
    /// [`FilterError`] when there is none, or it does not take these parameters.
    fn make(&self, name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError>;

    /// Makes a synchronisation rule; `name` is the text after the prefix.
    ///
    /// # Errors
    /// As [`FilterSource::make`].
    fn make_rule(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        let _ = parameters;
        Err(FilterError::Failed(alloc::format!("'{name}' is no synchronisation rule")))
    }

    /// Takes a file that was shipped through the tree, for filters made later. The same file may
    /// arrive more than once.
    ///
    /// # Errors
    /// [`FilterError`] when it cannot be used. The source remembers that, and says so when a filter
    /// out of it is asked for.
    fn take_file(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        Err(FilterError::Failed(alloc::format!("'{}' is for a filter without files", file.name)))
    }
}

/// Makes one instance of a filter out of its parameters.
pub type Maker = fn(ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError>;

/// The filters that a process can make.
#[derive(Clone)]
pub struct Registry {
    makers: BTreeMap<&'static str, Maker>,
    /// Names that more than one filter was added by. Processes of one tree that took different ones
    /// would give wrong answers, so that none is taken.
    twice: BTreeSet<&'static str>,
    /// By prefix, without the colon.
    sources: BTreeMap<&'static str, Arc<dyn FilterSource>>,
}

impl Registry {
    /// A registry without filters.
    #[must_use]
    pub fn empty() -> Self {
        Self { makers: BTreeMap::new(), twice: BTreeSet::new(), sources: BTreeMap::new() }
    }

    /// A registry of all filters of this crate; `null` is also known as `pass`.
    #[must_use]
    pub fn built_in() -> Self {
        Self::empty()
            .with("accumulate", crate::accumulate::make)
            .with("average", crate::average::make)
            .with("bit-and", crate::bit_and::make)
            .with("bit-or", crate::bit_or::make)
            .with("changes", crate::changes::make)
            .with("classes", crate::classes::make)
            .with("concatenate", crate::concatenate::make)
            .with("count", crate::count::make)
            .with("distinct", crate::sketch::distinct::make)
            .with("equivalence", crate::equivalence::make)
            .with("heavy-hitters", crate::sketch::heavy_hitters::make)
            .with("histogram", crate::sketch::histogram::make)
            .with("kll", crate::sketch::kll::make)
            .with("max", crate::max::make)
            .with("min", crate::min::make)
            .with("null", crate::null::make)
            .with("pass", crate::null::make)
            .with("prefix-tree", crate::sketch::prefix_tree::make)
            .with("quantiles", crate::sketch::quantiles::make)
            .with("statistics", crate::statistics::make)
            .with("sum", crate::sum::make)
            .with("top", crate::sketch::top::make)
            .with("union", crate::sketch::union::make)
    }

    /// Adds a filter. Where there is one of that name already, neither can be made
    /// ([`FilterError::Twice`]); see [`Registry::without`].
    #[must_use]
    pub fn with(mut self, name: &'static str, maker: Maker) -> Self {
        if self.makers.insert(name, maker).is_some() {
            self.twice.insert(name);
        }
        self
    }

    /// Takes the filters of a name away, so that another one may have it: in all processes of a
    /// tree.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.makers.remove(name);
        self.twice.remove(name);
        self
    }

    /// Adds a source of filters: it makes all whose names begin with this prefix and a colon. An
    /// earlier one of that prefix is replaced.
    #[must_use]
    pub fn with_source(mut self, prefix: &'static str, source: Arc<dyn FilterSource>) -> Self {
        self.sources.insert(prefix, source);
        self
    }

    /// Makes a filter: one of a source if its name begins with the source's prefix, or else one
    /// that was added by name.
    ///
    /// # Errors
    /// [`FilterError::Unknown`] for a name that is not there, [`FilterError::Twice`] for one that
    /// was added twice, [`FilterError::Parameters`] when the filter does not take these parameters.
    pub fn make(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Filter>, FilterError> {
        if let Some((source, rest)) = self.source_of(name) {
            return source.make(rest, parameters);
        }
        match self.makers.get(name) {
            Some(_) if self.twice.contains(name) => {
                Err(FilterError::Twice { name: name.to_string() })
            }
            Some(maker) => maker(parameters),
            None => Err(FilterError::Unknown { name: name.to_string(), known: self.known() }),
        }
    }

    /// Makes a synchronisation rule, which comes from a source in any case.
    ///
    /// # Errors
    /// As [`Registry::make`].
    pub fn make_rule(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        match self.source_of(name) {
            Some((source, rest)) => source.make_rule(rest, parameters),
            None => Err(FilterError::Failed(alloc::format!(
                "'{name}' is no synchronisation rule; name a file's, as in native:FILE#RULE"
            ))),
        }
    }

    /// Passes a file that was shipped through the tree to the source whose prefix its name has.
    ///
    /// # Errors
    /// As [`FilterSource::take_file`], and [`FilterError::Failed`] when there is no such source.
    pub fn take_file(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        match self.source_of(file.name) {
            Some((source, name)) => source.take_file(&ShippedFile { name, ..*file }),
            None => Err(FilterError::Failed(alloc::format!(
                "'{}' is for filters that this program cannot make",
                file.name
            ))),
        }
    }

    fn source_of<'a>(&self, name: &'a str) -> Option<(&dyn FilterSource, &'a str)> {
        let (prefix, rest) = name.split_once(':')?;
        Some((self.sources.get(prefix)?.as_ref(), rest))
    }

    /// Whether it can make no filter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.makers.is_empty() && self.sources.is_empty()
    }

    /// The names of all filters, separated by spaces.
    #[must_use]
    pub fn known(&self) -> String {
        let mut names: Vec<String> = self.makers.keys().map(ToString::to_string).collect();
        names.extend(self.sources.keys().map(|prefix| alloc::format!("{prefix}:...")));
        names.join(" ")
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
            "filter 'summ' is not known; use one of: accumulate average bit-and bit-or changes \
             classes concatenate count distinct equivalence heavy-hitters histogram kll max min null pass \
             prefix-tree quantiles statistics sum top union"
        );
    }

    #[test]
    fn two_filters_of_one_name_are_refused_until_one_is_taken_away() {
        let made = |registry: &Registry| registry.make("sum", ValuesRef::default()).map(|_| ());
        let registry = Registry::built_in().with("sum", crate::max::make);
        assert_eq!(made(&registry), Err(FilterError::Twice { name: "sum".to_string() }));
        assert!(registry.make("max", ValuesRef::default()).is_ok());
        let registry = registry.without("sum");
        assert!(matches!(made(&registry), Err(FilterError::Unknown { .. })));
        assert_eq!(made(&registry.with("sum", crate::max::make)), Ok(()));
    }

    #[test]
    fn parameters_may_stand_behind_the_name() {
        let spec = FilterSpec::from("histogram(0 1e3 50 name)");
        assert_eq!(spec.name, "histogram");
        let values = spec.parameters.as_ref();
        assert_eq!(values.format().to_string(), "%ld %lf %ld %s");
        assert_eq!((values.scalar(1), values.string(3)), (Ok(1000.0), Ok("name")));
        let spec = FilterSpec::from("native:lib(1).so#sum");
        assert_eq!(spec.name, "native:lib(1).so#sum");
        assert!(FilterSpec::from("top").parameters.as_ref().is_empty());
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
