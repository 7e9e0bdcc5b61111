//! The filters that C programs and their communication processes know: the built-in ones, and those
//! that only make sense beside this interface.

mod by_rank;
mod classes;
mod usage;

use sapwood::{FilterSpec, Registry, Values};

pub(crate) use usage::own_row as own_usage;

/// All of them, with those from files.
pub(crate) fn registry() -> Registry {
    assignable().with(by_rank::NAME, by_rank::make)
}

/// Those that a process can be assigned.
fn assignable() -> Registry {
    let registry = Registry::built_in();
    let registry = registry.with(classes::NAME, classes::make).with(usage::NAME, usage::make);
    sapwood::with_extensions(registry)
}

/// What one word of a list of filters asks for; `parameter` is for those from files.
pub(crate) fn spec(word: &str, parameter: Option<&str>) -> FilterSpec {
    let parameters = parameter.map_or_else(Values::new, |text| Values::new().string(text));
    if word.contains('@') {
        let name = by_rank::NAME.to_owned();
        let words = Values::new().string(word);
        let parameters = match parameter {
            Some(text) => words.string(text),
            None => words,
        };
        return FilterSpec { name, parameters };
    }
    match is_from_file(word) {
        true => FilterSpec { name: word.to_owned(), parameters },
        false => FilterSpec::from(word),
    }
}

/// The synchronisation rule of that name, which is one from a file in any case; whether it is there
/// is known when the stream opens.
pub(crate) fn rule(name: &str, parameter: Option<&str>) -> FilterSpec {
    match parameter {
        Some(text) => FilterSpec { name: name.to_owned(), parameters: Values::new().string(text) },
        None => FilterSpec::from(name),
    }
}

/// Whether a filter's name has the prefix of a source.
pub(crate) fn is_from_file(name: &str) -> bool {
    name.contains(':')
}

#[cfg(test)]
mod tests {
    use sapwood::{FilterError, ValuesRef};

    use super::*;

    fn is_twice(registry: &Registry, name: &str) -> bool {
        matches!(registry.make(name, ValuesRef::default()), Err(FilterError::Twice { .. }))
    }

    #[test]
    fn no_filter_of_this_interface_has_the_name_of_a_built_in_one() {
        for name in ["classes", classes::NAME, usage::NAME, by_rank::NAME] {
            assert!(!is_twice(&registry(), name), "{name}");
        }
        assert!(registry().make("classes", ValuesRef::default()).is_ok());
        let registry = registry().with("classes", classes::make);
        assert!(is_twice(&registry, "classes"), "which one it is would depend on the process");
    }
}
