//! Scopes over hops as a user writes them: what may follow `source=hops` and `source=group`.

use std::time::Duration;

use sapwood_trace::{HopBy, HopScope, HopSource, HopValue};

use super::scope_keys::{self, KeyValues};

const KEYS: &str =
    "name, source, value, streams, ranks, kinds, longer, reduce, by, every, window, bytes";

const KEYS_OF_GROUP: &str =
    "name, source, value, collectives, ranks, kinds, longer, reduce, by, every, window, bytes";

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

/// The scope over hops of this source with these keys.
///
/// # Errors
/// One line that says which key or value is wrong.
pub(crate) fn of_values(source: HopSource, values: &[KeyValues]) -> Result<NamedHopScope, String> {
    let every = Some(scope_keys::EVERY);
    let scope = HopScope { source, ..HopScope::default() };
    let mut named = NamedHopScope { name: String::new(), scope, every };
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
        "collectives" if scope.source == HopSource::Group => {
            for word in values {
                scope.collectives.insert(word.parse()?);
            }
        }
        "streams" if scope.source == HopSource::Network => {
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
                scope.roles.insert(scope.source.role(word)?);
            }
        }
        "longer" => scope.at_least_ns = scope_keys::nanoseconds(&all())?,
        "reduce" => scope.reduction = all().parse()?,
        "by" => {
            for word in values {
                tell_apart(&mut scope.by, scope.source, word)?;
            }
        }
        "every" => named.every = scope_keys::every(&all())?,
        "window" => scope.window = scope_keys::window(&all())?,
        "bytes" => scope.bytes_per_s = scope_keys::bytes(&all())?,
        _ => return Err(unknown_key(key, scope.source)),
    }
    Ok(())
}

/// What is said of a key that hops of this source do not have.
fn unknown_key(key: &str, source: HopSource) -> String {
    let keys = match source {
        HopSource::Network => KEYS,
        HopSource::Group => KEYS_OF_GROUP,
    };
    match key {
        "collectives" => "only the hops of a group have collectives; use source=group".to_owned(),
        "streams" => format!("a group has no streams; its hops have {keys}"),
        _ if KEYS_OF_CALLS.contains(&key) => {
            format!("hops have no such key; leave it out; they have {keys}")
        }
        _ => format!("there is no such key; hops have {keys}"),
    }
}

/// Has hops distinguished by what a word says.
fn tell_apart(by: &mut HopBy, source: HopSource, word: &str) -> Result<(), String> {
    match (word, source) {
        ("edge", _) => by.edge = true,
        ("process", _) => by.process = true,
        ("kind", _) => by.kind = true,
        ("stream", HopSource::Network) => by.stream = true,
        ("collective", HopSource::Group) => by.collective = true,
        ("root", HopSource::Group) => by.root = true,
        (_, HopSource::Network) => {
            return Err(format!("'{word}' is none of edge, process, stream, kind"));
        }
        (_, HopSource::Group) => {
            return Err(format!("'{word}' is none of edge, process, kind, collective, root"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{HopCollective, HopRole, ScopeReduction};

    use super::*;

    fn one(text: &str) -> Result<NamedHopScope, String> {
        let is_of_group = text.split_whitespace().any(|word| word == "source=group");
        let source = if is_of_group { HopSource::Group } else { HopSource::Network };
        let key_values = |word: &str| {
            let (key, values) = word.split_once('=').expect("a key");
            let values = values.split(',').filter(|value| !value.is_empty());
            (key.to_owned(), values.map(str::to_owned).collect())
        };
        let values: Vec<KeyValues> = text.split_whitespace().map(key_values).collect();
        of_values(source, &values)
    }

    #[test]
    fn each_key_of_a_scope_over_hops_is_read() {
        let read = one("name=late source=hops value=two-way streams=1,7 ranks=0-3 longer=1ms \
                        kinds=back-end,front-end reduce=top=5 by=edge,stream,kind every=500ms \
                        window=100 bytes=8kB")
        .expect("a scope");
        let scope = HopScope {
            source: HopSource::Network,
            streams: [1, 7].into(),
            collectives: [].into(),
            processes: "0-3".parse().expect("ranks"),
            roles: [HopRole::BackEnd, HopRole::FrontEnd].into(),
            at_least_ns: 1_000_000,
            value: HopValue::TwoWay,
            reduction: ScopeReduction::Top { groups: 5 },
            by: HopBy { edge: true, stream: true, kind: true, ..HopBy::default() },
            window: 100,
            bytes_per_s: 8_000,
        };
        let every = Some(Duration::from_millis(500));
        assert_eq!(read, NamedHopScope { name: "late".into(), scope, every });
        let plain = one("source=hops every=end").expect("a scope");
        assert_eq!((plain.scope, plain.every), (HopScope::default(), None));
    }

    #[test]
    fn hops_of_a_group_have_collectives_and_roots() {
        let read = one("source=group value=up collectives=reduction kinds=root,leaf ranks=0-3 \
                        by=edge,process,kind,collective,root")
        .expect("a scope");
        let by = HopBy {
            edge: true,
            process: true,
            kind: true,
            collective: true,
            root: true,
            ..HopBy::default()
        };
        let scope = HopScope {
            source: HopSource::Group,
            collectives: [HopCollective::Reduction].into(),
            processes: "0-3".parse().expect("ranks"),
            roles: [HopRole::Root, HopRole::Leaf].into(),
            value: HopValue::Up,
            by,
            ..HopScope::default()
        };
        assert_eq!(read.scope, scope);
        for (text, wanted) in [
            (
                "streams=1",
                "streams: a group has no streams; its hops have name, source, value, col",
            ),
            ("cpu=1%", "cpu: hops have no such key; leave it out; they have name"),
            ("by=stream", "by: 'stream' is none of edge, process, kind, collective, root"),
            ("kinds=back-end", "kinds: 'back-end' is none of root, relay, leaf"),
            ("collectives=scan", "collectives: 'scan' is neither reduction nor transfer"),
            ("value=inside by=edge", "by: the value 'inside' is a time of processes"),
        ] {
            let error = one(&format!("source=group {text}")).expect_err(text);
            assert!(error.starts_with(wanted) && !error.contains('\n'), "{text}: {error}");
        }
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
            ("by=root", "by: 'root' is none of edge, process, stream, kind"),
            ("collectives=reduction", "collectives: only the hops of a group have collectives"),
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
