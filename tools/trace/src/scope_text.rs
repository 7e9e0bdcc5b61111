//! Scopes as a user writes them: on the command line, or in a file of TOML or JSON.
//!
//! On the command line a scope is words `KEY=VALUE`; in a file it is a table of `scope` with the
//! same keys, where a value may be a list. A word without a sign is a scope that is built in, which
//! other words change. The key `source` says whether a scope is over calls, over the hops of a
//! network, or over those of a group.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sapwood_command_line::shares::share;
use sapwood_monitor::NamedScope;
use sapwood_profile::{Class, Function};
use sapwood_report::{is_descriptor_name, kind_word};
use sapwood_trace::{EventKind, HopSource, HopValue, Scope, ScopeValue, matches_pattern};
use serde::Deserialize;

use super::hop_scope_text::{self, NamedHopScope};
use super::scope_keys::{self, KeyValues};

/// The most scopes of one run.
const SCOPES_MAX: usize = 32;
/// What is quoted of a text in a message, in letters.
const QUOTED_MAX: usize = 200;
/// The largest file of scopes, in bytes.
const FILE_MAX: u64 = 1 << 20;
const KEYS: &str = "name, source, functions, kinds, communicators, ranks, longer, value, \
                    reduce, by, every, window, cpu, bytes, when";
/// Scopes that have a name already, and what they are.
const BUILT_IN: [(&str, &str); 2] = [
    // Bongo et al., section 4: mean, least, most, deviation and median over the last 100 events.
    ("statistics", "by=rank,function,communicator window=100"),
    ("compute", "value=gap by=rank,function"),
];

/// A value in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Number(u64),
    Text(String),
    List(Vec<String>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeFile {
    scope: Vec<BTreeMap<String, Given>>,
}

/// A scope of one source.
#[derive(Clone, Debug, PartialEq)]
enum SourcedScope {
    Calls(NamedScope),
    Hops(NamedHopScope),
}

impl SourcedScope {
    const fn name(&mut self) -> &mut String {
        match self {
            Self::Calls(named) => &mut named.name,
            Self::Hops(named) => &mut named.name,
        }
    }
}

/// Scopes, all of one source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SourcedScopes {
    /// Over the calls of a program's ranks.
    Calls(Vec<NamedScope>),
    /// Over the hops of a network's streams.
    Hops(Vec<NamedHopScope>),
    /// Over the hops of a group's operations.
    Group(Vec<NamedHopScope>),
}

impl SourcedScopes {
    fn of(all: Vec<SourcedScope>) -> Result<Self, String> {
        let (mut calls, mut hops, mut group) = (Vec::new(), Vec::new(), Vec::new());
        for one in all {
            match one {
                SourcedScope::Calls(named) => calls.push(named),
                SourcedScope::Hops(named) if named.scope.source == HopSource::Group => {
                    group.push(named);
                }
                SourcedScope::Hops(named) => hops.push(named),
            }
        }
        match (calls.is_empty(), hops.is_empty(), group.is_empty()) {
            (_, true, true) => Ok(Self::Calls(calls)),
            (true, false, true) => Ok(Self::Hops(hops)),
            (true, true, false) => Ok(Self::Group(group)),
            _ => {
                let text = "the scopes are of several sources (calls, hops, group); give a command \
                            for each source";
                Err(text.to_owned())
            }
        }
    }
}

/// The scopes of files and of the command line; the built-in statistics where there are none.
///
/// # Errors
/// One line that says which scope and which value is wrong.
pub(crate) fn scopes(
    files: &[std::path::PathBuf],
    texts: &[String],
) -> Result<SourcedScopes, String> {
    let mut all = Vec::new();
    for file in files {
        let told = |error: String| format!("'{}': {}", file.display(), readable(&error));
        all.extend(of_file(file).map_err(told)?);
    }
    for text in texts {
        let told = |error: String| format!("scope '{}': {}", readable(text), readable(&error));
        all.push(of_text(text).map_err(told)?);
    }
    if files.is_empty() && texts.is_empty() {
        all.push(of_text(BUILT_IN[0].0)?);
    }
    for (number, one) in (1..).zip(&mut all) {
        let name = one.name();
        if name.is_empty() {
            *name = format!("scope-{number}");
        }
    }
    let mut names: Vec<&str> = all.iter_mut().map(|one| one.name().as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two scopes are called '{}'", pair[0]));
    }
    match all.len() {
        0 => Err("the files have no scope".to_owned()),
        1..=SCOPES_MAX => SourcedScopes::of(all),
        many => Err(format!("{many} scopes; at most {SCOPES_MAX} are gathered at once")),
    }
}

/// A text of a user in a message: nothing that steers a terminal, and no more than a few lines.
fn readable(text: &str) -> String {
    let text = sapwood_report::printable(text);
    match text.char_indices().nth(QUOTED_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

fn of_file(file: &Path) -> Result<Vec<SourcedScope>, String> {
    let metadata = std::fs::metadata(file).map_err(|error| error.to_string())?;
    // A terminal that standard output leads to would be read until its end.
    if !metadata.is_file() && !is_descriptor_name(file) {
        return Err("it is not a file; name a file of TOML or JSON".to_owned());
    }
    let mut text = String::new();
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let read = opened.take(FILE_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!("it has more than {FILE_MAX} bytes, the most of a file of scopes"));
    }
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    let read: ScopeFile = match is_json {
        true => serde_json::from_str(&text).map_err(|error| error.to_string())?,
        false => toml::from_str(&text)
            .map_err(|error| sapwood_command_line::exit::one_line(&error.to_string()))?,
    };
    let scope = |(number, table): (usize, BTreeMap<String, Given>)| {
        let values = table.into_iter().map(|(key, given)| match given {
            Given::Number(number) => Ok((key, vec![number.to_string()])),
            Given::Text(text) => Ok((key, words(&text))),
            Given::List(list) => Ok((key, list)),
            Given::Other(_) => {
                Err(format!("{key}: a text, a whole number or a list of texts is needed"))
            }
        });
        let values = values.collect::<Result<Vec<_>, String>>();
        let read = values.and_then(|values| of_values(&values));
        read.map_err(|error| format!("scope {}: {error}", number + 1))
    };
    read.scope.into_iter().enumerate().map(scope).collect()
}

fn of_text(text: &str) -> Result<SourcedScope, String> {
    if text.trim().is_empty() {
        return Err("it is empty; write KEY=VALUE, or a built-in scope".to_owned());
    }
    let is_built_in = |word: &str| BUILT_IN.into_iter().find(|(name, _)| *name == word);
    let Some((name, own)) = text.split_whitespace().find_map(is_built_in) else {
        return of_values(&key_values(text.split_whitespace())?);
    };
    let mut others: Vec<&str> = text.split_whitespace().collect();
    if let Some(at) = others.iter().position(|word| *word == name) {
        others.remove(at);
    }
    let others = key_values(others.into_iter())?;
    let mut values = key_values(own.split_whitespace())?;
    values.retain(|(key, _)| others.iter().all(|(other, _)| key != other));
    values.extend(others);
    let mut scope = of_values(&values)?;
    let given = scope.name();
    if given.is_empty() {
        name.clone_into(given);
    }
    Ok(scope)
}

/// Keys with their values.
fn key_values<'a>(all: impl Iterator<Item = &'a str>) -> Result<Vec<KeyValues>, String> {
    let known = BUILT_IN.map(|(name, _)| name);
    let read = |word: &'a str| match word.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), words(value))),
        None if known.contains(&word) => {
            Err(format!("'{word}' is another built-in scope; give it a --scope of its own"))
        }
        None => Err(format!(
            "'{word}' is neither KEY=VALUE nor one of the built-in scopes: {}",
            known.join(", ")
        )),
    };
    all.map(read).collect()
}

/// The parts of a text between commas.
fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn of_values(values: &[KeyValues]) -> Result<SourcedScope, String> {
    // Without a value it is refused below, as any key.
    let source = values.iter().find(|(key, values)| key == "source" && !values.is_empty());
    match source.map(|(_, values)| values.join(",")).as_deref() {
        None | Some("calls") => {}
        Some(word) => {
            let found = HopSource::ALL.into_iter().find(|source| source.word() == word);
            let source =
                found.ok_or_else(|| format!("source: '{word}' is none of calls, hops, group"))?;
            return hop_scope_text::of_values(source, values).map(SourcedScope::Hops);
        }
    }
    let every = Some(scope_keys::EVERY);
    let mut named = NamedScope { name: String::new(), scope: Scope::default(), every };
    scope_keys::set_all(values, |key, values| set(&mut named, key, values))?;
    Ok(SourcedScope::Calls(named))
}

fn set(named: &mut NamedScope, key: &str, values: &[String]) -> Result<(), String> {
    let scope = &mut named.scope;
    let all = || values.join(",");
    match key {
        "name" => named.name = scope_keys::name(all())?,
        "source" => {}
        "functions" => {
            for pattern in values {
                scope.functions.extend(functions(pattern)?);
            }
        }
        "kinds" => scope.kinds = values.iter().map(|word| kind(word)).collect::<Result<_, _>>()?,
        "communicators" => scope.communicators = values.to_vec(),
        "ranks" => scope.ranks = scope_keys::ranks(&all())?,
        "longer" => scope.at_least_ns = scope_keys::nanoseconds(&all())?,
        "value" => {
            scope.value = match all().as_str() {
                "span" => ScopeValue::Span,
                "gap" => ScopeValue::Gap,
                other if other.parse::<HopValue>().is_ok() => {
                    return Err(format!(
                        "'{other}' is a value of hops; add source=hops, or source=group"
                    ));
                }
                other => return Err(format!("'{other}' is neither span nor gap")),
            };
        }
        "reduce" => scope.reduction = all().parse()?,
        "by" => {
            for word in values {
                match word.as_str() {
                    "rank" => scope.by.rank = true,
                    "function" => scope.by.function = true,
                    "communicator" => scope.by.communicator = true,
                    "kind" => scope.by.kind = true,
                    "thread" => scope.by.thread = true,
                    _ => {
                        return Err(format!(
                            "'{word}' is none of rank, function, communicator, kind, thread"
                        ));
                    }
                }
            }
        }
        "every" => named.every = scope_keys::every(&all())?,
        "window" => scope.window = scope_keys::window(&all())?,
        "when" => scope.when = all().parse()?,
        "cpu" => scope.cpu_ppm = share(&all())?,
        "bytes" => scope.bytes_per_s = scope_keys::bytes(&all())?,
        "streams" => return Err("only hops have streams; add source=hops".to_owned()),
        "collectives" => {
            return Err("only hops of a group have collectives; add source=group".to_owned());
        }
        _ => return Err(format!("there is no such key; there are {KEYS}")),
    }
    Ok(())
}

/// The functions that a name with asterisks stands for.
fn functions(pattern: &str) -> Result<Vec<u32>, String> {
    let fits = |one: &&Function| matches_pattern(pattern, one.name);
    let found: Vec<&Function> = Function::all().iter().filter(fits).collect();
    if found.is_empty() {
        return Err(format!("no function is called '{pattern}'"));
    }
    let recorded: Vec<u32> =
        found.iter().filter(|one| is_recorded(one)).map(|one| one.id).collect();
    match recorded.is_empty() {
        true => Err(format!(
            "calls of '{pattern}' are not recorded; collectives, sends, blocking receives and what \
             completes requests (MPI_Wait, MPI_Test and their like) are"
        )),
        false => Ok(recorded),
    }
}

/// Whether a function's calls are events, as `bindings/mpi/generate/events.py` decides.
fn is_recorded(function: &Function) -> bool {
    let name = function.name.strip_prefix("MPI_").unwrap_or(function.name);
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if !function.is_mpi() {
        return true;
    }
    match function.class {
        // Persistent ones have the name of the function that has made their request.
        Class::Collective => !name.contains("eighbor_"),
        Class::PointToPoint => {
            !name.contains("_init") && !begins(&["Irecv", "Imrecv", "Probe", "Iprobe", "Improbe"])
        }
        Class::Wait => !begins(&["Request", "Start"]),
        _ => false,
    }
}

fn kind(word: &str) -> Result<EventKind, String> {
    let found = EventKind::ALL.into_iter().find(|kind| kind_word(Some(*kind)) == word);
    found.ok_or_else(|| {
        let known = EventKind::ALL.map(|kind| kind_word(Some(kind))).join(", ");
        format!("'{word}' is none of {known}")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sapwood_trace::{HopScope, ScopeReduction};

    use super::*;

    fn of_calls(read: SourcedScopes) -> Result<Vec<NamedScope>, String> {
        match read {
            SourcedScopes::Calls(all) => Ok(all),
            SourcedScopes::Hops(all) | SourcedScopes::Group(all) => {
                Err(format!("they are over hops: {all:?}"))
            }
        }
    }

    fn one(text: &str) -> Result<NamedScope, String> {
        let read = scopes(&[], &[text.to_owned()]).and_then(of_calls);
        read.map(|mut all| all.remove(0))
    }

    fn file(name: &str, text: &str) -> Result<Vec<NamedScope>, String> {
        sourced_file(name, text).and_then(of_calls)
    }

    fn sourced_file(name: &str, text: &str) -> Result<SourcedScopes, String> {
        let folder = std::env::temp_dir().join(format!("sapwood-scopes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join(name);
        std::fs::write(&file, text).expect("a file");
        let read = scopes(std::slice::from_ref(&file), &[]);
        std::fs::remove_file(&file).expect("it is there");
        read
    }

    #[test]
    fn a_scope_is_the_same_by_words_by_toml_and_by_json() {
        let words =
            one("name=late functions=MPI_All*,MPI_Barrier ranks=0-3 longer=1ms by=rank,kind \
                         every=500ms window=100 cpu=2% bytes=8kB kinds=collective value=span \
                         reduce=top=5")
            .expect("a scope");
        assert_eq!(words.name, "late");
        assert_eq!(words.every, Some(Duration::from_millis(500)));
        assert!(words.scope.functions.len() > 4 && words.scope.by.rank && words.scope.by.kind);
        assert_eq!((words.scope.window, words.scope.cpu_ppm), (100, 20_000));
        assert_eq!((words.scope.at_least_ns, words.scope.bytes_per_s), (1_000_000, 8_000));
        assert_eq!(words.scope.reduction, ScopeReduction::Top { groups: 5 });
        let toml = file(
            "one.toml",
            "[[scope]]\nname = 'late'\nfunctions = ['MPI_All*', 'MPI_Barrier']\nranks = '0-3'\n\
             longer = '1ms'\nby = ['rank', 'kind']\nevery = '500ms'\nwindow = 100\ncpu = '2%'\n\
             bytes = '8kB'\nkinds = 'collective'\nvalue = 'span'\nreduce = 'top=5'\n",
        );
        assert_eq!(toml, Ok(vec![words.clone()]));
        let json = file(
            "one.json",
            r#"{"scope": [{"name": "late", "functions": "MPI_All*,MPI_Barrier", "ranks": "0-3",
                "longer": "1ms", "by": "rank,kind", "every": "500ms", "window": 100, "cpu": "2%",
                "bytes": 8000, "kinds": ["collective"], "value": "span", "reduce": "top=5"}]}"#,
        );
        assert_eq!(json, Ok(vec![words]));
    }

    #[test]
    fn threads_are_told_apart_only_where_that_is_asked_for() {
        let by = |text: &str| one(text).expect("a scope").scope.by;
        assert!(by("by=rank,thread").thread && by("by=rank,thread").rank);
        assert!(!by("by=rank").thread && !by("statistics").thread);
    }

    #[test]
    fn a_sketch_is_made_where_nothing_else_is_asked_for() {
        let reduction = |text: &str| one(text).expect("a scope").scope.reduction;
        assert_eq!(reduction("reduce=sums by=rank"), ScopeReduction::Sums);
        assert_eq!(reduction("reduce=top=100"), ScopeReduction::Top { groups: 100 });
        for text in ["reduce=sketch", "by=rank", "statistics", "compute"] {
            assert_eq!(reduction(text), ScopeReduction::Sketch, "{text}");
        }
    }

    #[test]
    fn without_any_scope_there_is_the_one_of_the_paper() {
        let all = scopes(&[], &[]).and_then(of_calls).expect("a built-in scope");
        assert_eq!((all[0].name.as_str(), all[0].scope.window), ("statistics", 100));
        assert_eq!(one("compute").expect("built in").scope.value, ScopeValue::Gap);
    }

    #[test]
    fn words_beside_a_built_in_scope_change_it() {
        let sums = one("statistics reduce=sums").expect("a built-in scope");
        let plain = one("statistics").expect("a built-in scope");
        assert_eq!(
            (sums.name.as_str(), sums.scope.reduction),
            ("statistics", ScopeReduction::Sums)
        );
        assert_eq!((sums.scope.window, &sums.scope.by), (100, &plain.scope.by));
        let own = one("name=own window=7 compute by=rank").expect("the same in another order");
        assert_eq!((own.name.as_str(), own.scope.window), ("own", 7));
        assert!(own.scope.value == ScopeValue::Gap && !own.scope.by.function);
        let two = one("statistics compute").expect_err("two scopes in one");
        assert!(two.contains("'compute' is another built-in scope"), "{two}");
        let twice = one("statistics window=5 window=6").expect_err("two windows");
        assert!(twice.contains("'window' is given twice"), "{twice}");
    }

    #[test]
    fn a_scope_over_hops_is_the_same_by_words_by_toml_and_by_json() {
        let words = "source=hops value=up by=edge,stream streams=1,7 reduce=top=5 name=slow";
        let words = scopes(&[], &[words.to_owned()]);
        let scope = HopScope {
            value: HopValue::Up,
            streams: [1, 7].into(),
            reduction: ScopeReduction::Top { groups: 5 },
            by: sapwood_trace::HopBy { edge: true, stream: true, ..Default::default() },
            ..HopScope::default()
        };
        let every = Some(scope_keys::EVERY);
        let wanted = NamedHopScope { name: "slow".to_owned(), scope, every };
        assert_eq!(words, Ok(SourcedScopes::Hops(vec![wanted])));
        let toml = "[[scope]]\nname = 'slow'\nsource = 'hops'\nvalue = 'up'\nstreams = '1,7'\n\
                    by = ['edge', 'stream']\nreduce = 'top=5'\n";
        assert_eq!(sourced_file("hops.toml", toml), words);
        let json = r#"{"scope": [{"name": "slow", "source": "hops", "value": "up",
                       "reduce": "top=5", "by": "edge,stream", "streams": ["1", "7"]}]}"#;
        assert_eq!(sourced_file("hops.json", json), words);
    }

    #[test]
    fn a_scope_over_a_group_is_the_same_by_words_by_toml_and_by_json() {
        let words = "source=group by=edge,root collectives=transfer name=slow";
        let words = scopes(&[], &[words.to_owned()]);
        let scope = HopScope {
            source: HopSource::Group,
            collectives: [sapwood_trace::HopCollective::Transfer].into(),
            by: sapwood_trace::HopBy { edge: true, root: true, ..Default::default() },
            ..HopScope::default()
        };
        let every = Some(scope_keys::EVERY);
        let wanted = NamedHopScope { name: "slow".to_owned(), scope, every };
        assert_eq!(words, Ok(SourcedScopes::Group(vec![wanted])));
        let toml = "[[scope]]\nname = 'slow'\nsource = 'group'\ncollectives = 'transfer'\n\
                    by = ['edge', 'root']\n";
        assert_eq!(sourced_file("group.toml", toml), words);
        let json = r#"{"scope": [{"name": "slow", "source": "group", "by": "edge,root",
                       "collectives": ["transfer"]}]}"#;
        assert_eq!(sourced_file("group.json", json), words);
    }

    #[test]
    fn a_scope_has_one_source_and_so_have_all_of_a_command() {
        assert_eq!(one("source=calls by=rank name=a"), one("by=rank name=a"));
        let both = scopes(&[], &["source=hops".to_owned(), "by=rank".to_owned()]);
        let both = both.expect_err("two sources");
        assert!(
            both.starts_with("the scopes are of several sources (calls, hops, group); give"),
            "{both}"
        );
        let both = scopes(&[], &["source=hops".to_owned(), "source=group".to_owned()]);
        assert!(both.is_err(), "{both:?}");
        let named = scopes(&[], &["source=hops".to_owned(), "source=hops".to_owned()]);
        let Ok(SourcedScopes::Hops(named)) = named else { panic!("{named:?}") };
        assert_eq!((named[0].name.as_str(), named[1].name.as_str()), ("scope-1", "scope-2"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, wanted) in [
            ("by=host", "scope 'by=host': by: 'host' is none of rank, function"),
            ("functions=MPI_Nothing*", "no function is called 'MPI_Nothing*'"),
            ("functions=MPI_Irecv", "calls of 'MPI_Irecv' are not recorded"),
            ("functions=MPI_Comm_split", "calls of 'MPI_Comm_split' are not recorded"),
            ("", "it is empty"),
            ("colour=red", "colour: there is no such key; there are name, source"),
            ("window=0", "a number from 1 to 10000 is needed"),
            ("window=5 window=6", "'window' is given twice"),
            ("cpu=200%", "a share from 0.001% to 100%"),
            ("bytes=4kB", "bytes per second from 4096 (4KiB; 4kB are 4000)"),
            ("every=1ms", "a time from 50 ms to 3600 s"),
            ("reduce=mean", "reduce: 'mean' is none of sketch, sums, top=K with K from 1 to 100"),
            ("reduce=top=0", "'top=0' is none of sketch"),
            ("reduce=sums,sketch", "'sums,sketch' is none of sketch"),
            ("kinds=sending", "'sending' is none of collective"),
            ("ranks=x", "'x' is no set such as 0-3,7"),
            ("by=", "'by' has no value"),
            ("source=", "'source' has no value"),
            ("source=files", "source: 'files' is none of calls, hops, group"),
            ("source=hops functions=*", "scope 'source=hops functions=*': functions: hops have no"),
            ("statistics source=hops", "by: 'rank' is none of edge, process, stream, kind"),
            ("value=wait", "value: 'wait' is a value of hops; add source=hops"),
            ("streams=1", "streams: only hops have streams; add source=hops"),
            ("collectives=transfer", "only hops of a group have collectives; add source=group"),
            ("nothing", "neither KEY=VALUE nor one of the built-in scopes: statistics, compute"),
        ] {
            let error = one(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let twice = scopes(&[], &["statistics".into(), "statistics".into()]);
        assert_eq!(twice.expect_err("one name"), "two scopes are called 'statistics'");
        for (name, text, wanted) in [
            ("a.toml", "[[scope]]\nby = 'rank'\n[[scope]]\nby = 'host'", "scope 2: by: 'host'"),
            ("b.toml", "scope = 3", "invalid type"),
            ("c.toml", "[[scopes]]", "unknown field"),
            ("d.json", "{", "EOF"),
            ("e.json", r#"{"scope": []}"#, "the files have no scope"),
            (
                "f.json",
                r#"{"scope": [{"ranks": [0, 1]}]}"#,
                "scope 1: ranks: a text, a whole number",
            ),
            ("h.toml", "[[scope]]\nreduce = 5", "scope 1: reduce: '5' is none of sketch, sums"),
            ("g.toml", "[[scope]]\nwindow = 3.5", "scope 1: window: a text, a whole number"),
        ] {
            let error = file(name, text).expect_err(text);
            assert!(error.contains(wanted) && !error.contains('\n'), "{text}: {error}");
        }
        // The standard output of the tests may lead there.
        let device = scopes(&["/dev/null".into()], &[]).expect_err("a device");
        assert!(device.contains("it is not a file"), "{device}");
    }
}
