//! Scopes over hops as a user writes them: what `source=hops` may be followed by.

use std::time::Duration;

use sapwood_trace::{HopScope, HopValue};

use super::scope_keys::{self, KeyValues};

const KEYS: &str =
    "name, source, value, streams, ranks, kinds, longer, reduce, by, every, window, bytes";

/// Keys that only scopes over calls have.
const KEYS_OF_CALLS: [&str; 4] = ["functions", "communicators", "cpu", "when"];

/// A scope over hops, what it is called, and how often it is gathered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedHopScope {
    /// Its name.
    pub(crate) name: String,
    /// Which hops, and what of them.
    pub(crate) scope: HopScope,
    /// Time between two gatherings; none for one at the end only.
    pub(crate) every: Option<Duration>,
}

/// The scope of these keys.
///
/// # Errors
/// One line that says which key or value is wrong.
pub(crate) fn of_values(values: &[KeyValues]) -> Result<NamedHopScope, String> {
    let every = Some(scope_keys::EVERY);
    let mut named = NamedHopScope { name: String::new(), scope: HopScope::default(), every };
    scope_keys::set_all(values, |key, values| set(&mut named, key, values))?;
    let scope = &named.scope;
    if scope.by.edge && !scope.value.is_of_link() {
        return Err(format!(
            "by: the value '{}' is a time of processes, which have no edge; use by=process",
            scope.value
        ));
    }
    Ok(named)
}

fn set(named: &mut NamedHopScope, key: &str, values: &[String]) -> Result<(), String> {
    let scope = &mut named.scope;
    let all = || values.join(",");
    match key {
        // It is why this is a scope over hops.
        "source" => {}
        "name" => named.name = scope_keys::name(all())?,
        "value" => scope.value = all().parse::<HopValue>()?,
        "streams" => {
            for word in values {
                let stream = word.parse().map_err(|_| {
                    format!("'{word}' is no number of a stream; 'sapwood trace tree' prints these")
                })?;
                scope.streams.insert(stream);
            }
        }
        "ranks" => scope.processes = scope_keys::ranks(&all())?,
        "kinds" => {
            for word in values {
                scope.roles.insert(word.parse()?);
            }
        }
        "longer" => scope.at_least_ns = scope_keys::nanoseconds(&all())?,
        "reduce" => scope.reduction = all().parse()?,
        "by" => {
            for word in values {
                match word.as_str() {
                    "edge" => scope.by.edge = true,
                    "process" => scope.by.process = true,
                    "stream" => scope.by.stream = true,
                    "kind" => scope.by.kind = true,
                    _ => return Err(format!("'{word}' is none of edge, process, stream, kind")),
                }
            }
        }
        "every" => named.every = scope_keys::every(&all())?,
        "window" => scope.window = scope_keys::window(&all())?,
        "bytes" => scope.bytes_per_s = scope_keys::bytes(&all())?,
        _ if KEYS_OF_CALLS.contains(&key) => {
            return Err(format!("hops have no such key; leave it out; they have {KEYS}"));
        }
        _ => return Err(format!("there is no such key; hops have {KEYS}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{HopBy, HopRole, ScopeReduction};

    use super::*;

    fn one(text: &str) -> Result<NamedHopScope, String> {
        let key_values = |word: &str| {
            let (key, values) = word.split_once('=').expect("a key");
            let values = values.split(',').filter(|value| !value.is_empty());
            (key.to_owned(), values.map(str::to_owned).collect())
        };
        let values: Vec<KeyValues> = text.split_whitespace().map(key_values).collect();
        of_values(&values)
    }

    #[test]
    fn each_key_of_a_scope_over_hops_is_read() {
        let read = one("name=late source=hops value=two-way streams=1,7 ranks=0-3 longer=1ms \
                        kinds=back-end,front-end reduce=top=5 by=edge,stream,kind every=500ms \
                        window=100 bytes=8kB")
        .expect("a scope");
        let scope = HopScope {
            streams: [1, 7].into(),
            processes: "0-3".parse().expect("ranks"),
            roles: [HopRole::BackEnd, HopRole::FrontEnd].into(),
            at_least_ns: 1_000_000,
            value: HopValue::TwoWay,
            reduction: ScopeReduction::Top { groups: 5 },
            by: HopBy { edge: true, process: false, stream: true, kind: true },
            window: 100,
            bytes_per_s: 8_000,
        };
        let every = Some(Duration::from_millis(500));
        assert_eq!(read, NamedHopScope { name: "late".into(), scope, every });
        let plain = one("source=hops every=end").expect("a scope");
        assert_eq!((plain.scope, plain.every), (HopScope::default(), None));
    }

    #[test]
    fn what_hops_do_not_have_is_told() {
        for (text, wanted) in [
            (
                "functions=MPI_Send",
                "functions: hops have no such key; leave it out; they have name",
            ),
            ("communicators=grid", "communicators: hops have no such key"),
            ("cpu=1%", "cpu: hops have no such key"),
            ("when=waiting", "when: hops have no such key"),
            ("colour=red", "colour: there is no such key; hops have name, source"),
            ("value=span", "value: 'span' is none of up, down, two-way, wait, inside"),
            ("by=rank", "by: 'rank' is none of edge, process, stream, kind"),
            ("kinds=send", "kinds: 'send' is none of front-end, communication-process, back-end"),
            ("streams=x", "streams: 'x' is no number of a stream"),
            ("streams=-1", "streams: '-1' is no number of a stream"),
            ("ranks=x", "ranks: 'x' is no set such as 0-3,7"),
            ("value=inside by=edge", "by: the value 'inside' is a time of processes"),
            ("by=edge value=inside", "by: the value 'inside' is a time of processes"),
            ("by=", "'by' has no value"),
            ("window=5 window=6", "'window' is given twice"),
        ] {
            let error = one(&format!("source=hops {text}")).expect_err(text);
            assert!(error.starts_with(wanted) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
