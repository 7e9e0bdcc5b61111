//! Any text as event scopes: as a user writes them on the command line, and as a file of them.

use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sapwood_packet::Values;
use sapwood_profile::Function;
use sapwood_report::{is_hidden, kind_word};
use sapwood_trace::{EventKind, HopScope, Scope, ScopeValue};

use self::hop_scope_text::NamedHopScope;
use self::scope_text::SourcedScopes;
use crate::{NamedScope, Target};

// The parser is private to the tool, which no other program needs as a library.
#[path = "../../../tools/trace/src/hop_scope_text.rs"]
mod hop_scope_text;
#[path = "../../../tools/trace/src/scope_keys.rs"]
mod scope_keys;
#[path = "../../../tools/trace/src/scope_text.rs"]
mod scope_text;

/// A scope of the command line in the first line, and a file of scopes in the others.
pub const TARGET: Target = Target { name: "scope", run, repair: None };

/// How a file's name ends says what it is.
const ENDINGS: [&str; 2] = ["toml", "json"];

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (line, document) = text.split_once('\n').unwrap_or((&text, ""));
    check(scope_text::scopes(&[], &[line.to_owned()]));
    for ending in ENDINGS {
        check(of_document(ending, document));
    }
}

/// What is read is written in each way, and each is read as the same.
fn check(read: Result<SourcedScopes, String>) {
    let scopes = match read {
        Ok(scopes) => scopes,
        Err(error) => {
            assert!(!error.is_empty() && !error.chars().any(is_hidden), "{error:?}");
            return;
        }
    };
    let written: Vec<WrittenScope> = match &scopes {
        SourcedScopes::Calls(all) => all.iter().map(WrittenScope::of).collect(),
        SourcedScopes::Hops(all) | SourcedScopes::Group(all) => {
            all.iter().map(WrittenScope::of_hops).collect()
        }
    };
    assert!(!written.is_empty());
    for (ending, document) in ENDINGS.into_iter().zip([toml(&written), json(&written)]) {
        assert_eq!(of_document(ending, &document).as_ref(), Ok(&scopes), "{document}");
    }
    let lines: Option<Vec<String>> = written.iter().map(WrittenScope::line).collect();
    if let Some(lines) = lines {
        assert_eq!(scope_text::scopes(&[], &lines).as_ref(), Ok(&scopes), "{lines:?}");
    }
    if let SourcedScopes::Calls(all) = &scopes {
        all.iter().for_each(|one| check_packet(&one.scope));
    }
}

/// A leaf reads the same scope out of its packet; kinds are a set there.
fn check_packet(scope: &Scope) {
    let kinds = EventKind::ALL.into_iter().filter(|kind| scope.kinds.contains(kind)).collect();
    let written = scope.encode(Values::new());
    let wanted = Scope { kinds, ..scope.clone() };
    assert_eq!(Scope::decode(written.as_ref(), 0), Ok(wanted));
}

/// The scopes of a file of this text.
fn of_document(ending: &str, text: &str) -> Result<SourcedScopes, String> {
    let document = DocumentFile::new(ending, text);
    scope_text::scopes(std::slice::from_ref(&document.0), &[])
}

/// A file that is gone when it has been read.
struct DocumentFile(PathBuf);

impl DocumentFile {
    fn new(ending: &str, text: &str) -> Self {
        // Tests run targets on several threads.
        static FILES: AtomicU64 = AtomicU64::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("sapwood-fuzz-scope-{}-{number}.{ending}", process::id());
        let file = Self(std::env::temp_dir().join(name));
        fs::write(&file.0, text).expect("a file can be written to the temporary folder");
        file
    }
}

impl Drop for DocumentFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// One key of a scope with its values.
struct WrittenKey {
    key: &'static str,
    values: Vec<String>,
}

/// A scope as keys with their values; those that a scope need not have are left out.
struct WrittenScope(Vec<WrittenKey>);

impl WrittenScope {
    fn of(named: &NamedScope) -> Self {
        let scope = &named.scope;
        let functions = scope.functions.iter().map(|id| {
            let function = Function::all().iter().find(|one| one.id == *id);
            function.expect("only functions of the table are selected").name.to_owned()
        });
        let kinds = scope.kinds.iter().map(|kind| kind_word(Some(*kind)).to_owned());
        let ranks = (!scope.ranks.is_empty()).then(|| scope.ranks.to_string());
        let window = (scope.window > 0).then(|| scope.window.to_string());
        let value = if scope.value == ScopeValue::Gap { "gap" } else { "span" };
        let cpu = format!("{}.{:04}%", scope.cpu_ppm / 10_000, scope.cpu_ppm % 10_000);
        let lists = [
            ("name", vec![named.name.clone()]),
            ("functions", functions.collect()),
            ("kinds", kinds.collect()),
            ("communicators", scope.communicators.clone()),
            ("ranks", ranks.into_iter().collect()),
            ("longer", vec![seconds(Duration::from_nanos(scope.at_least_ns))]),
            ("value", vec![value.to_owned()]),
            ("reduce", vec![scope.reduction.to_string()]),
            ("by", by(scope)),
            ("every", vec![named.every.map_or_else(|| "end".to_owned(), seconds)]),
            ("window", window.into_iter().collect()),
            ("cpu", vec![cpu]),
            ("bytes", vec![scope.bytes_per_s.to_string()]),
            ("when", vec![scope.when.word().to_owned()]),
        ];
        Self::of_lists(lists)
    }

    fn of_hops(named: &NamedHopScope) -> Self {
        let scope = &named.scope;
        let collectives = scope.collectives.iter().map(|one| one.word().to_owned());
        let ranks = (!scope.processes.is_empty()).then(|| scope.processes.to_string());
        let window = (scope.window > 0).then(|| scope.window.to_string());
        Self::of_lists([
            ("source", vec![scope.source.word().to_owned()]),
            ("name", vec![named.name.clone()]),
            ("value", vec![scope.value.word().to_owned()]),
            ("streams", scope.streams.iter().map(u32::to_string).collect()),
            ("collectives", collectives.collect()),
            ("ranks", ranks.into_iter().collect()),
            ("kinds", scope.roles.iter().map(|role| role.word().to_owned()).collect()),
            ("longer", vec![seconds(Duration::from_nanos(scope.at_least_ns))]),
            ("reduce", vec![scope.reduction.to_string()]),
            ("by", by_of_hops(scope)),
            ("every", vec![named.every.map_or_else(|| "end".to_owned(), seconds)]),
            ("window", window.into_iter().collect()),
            ("bytes", vec![scope.bytes_per_s.to_string()]),
        ])
    }

    fn of_lists<const N: usize>(lists: [(&'static str, Vec<String>); N]) -> Self {
        let given = lists.into_iter().filter(|(_, values)| !values.is_empty());
        Self(given.map(|(key, values)| WrittenKey { key, values }).collect())
    }

    /// As the command line has it; none where a value has what parts words there.
    fn line(&self) -> Option<String> {
        let is_plain = |value: &String| {
            !value.is_empty()
                && !value.contains(|letter: char| letter == ',' || letter.is_whitespace())
        };
        let word = |one: &WrittenKey| {
            let is_word = one.values.iter().all(is_plain);
            is_word.then(|| format!("{}={}", one.key, one.values.join(",")))
        };
        Some(self.0.iter().map(word).collect::<Option<Vec<String>>>()?.join(" "))
    }
}

fn by(scope: &Scope) -> Vec<String> {
    let by = [
        ("rank", scope.by.rank),
        ("function", scope.by.function),
        ("communicator", scope.by.communicator),
        ("kind", scope.by.kind),
        ("thread", scope.by.thread),
    ];
    by.into_iter().filter(|(_, is_asked)| *is_asked).map(|(word, _)| word.to_owned()).collect()
}

fn by_of_hops(scope: &HopScope) -> Vec<String> {
    let by = [
        ("edge", scope.by.edge),
        ("process", scope.by.process),
        ("stream", scope.by.stream),
        ("kind", scope.by.kind),
        ("collective", scope.by.collective),
        ("root", scope.by.root),
    ];
    by.into_iter().filter(|(_, is_asked)| *is_asked).map(|(word, _)| word.to_owned()).collect()
}

fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

fn toml(scopes: &[WrittenScope]) -> String {
    let line = |one: &WrittenKey| format!("{} = {}\n", one.key, list(&one.values));
    let table =
        |one: &WrittenScope| "[[scope]]\n".to_owned() + &one.0.iter().map(line).collect::<String>();
    scopes.iter().map(table).collect()
}

fn json(scopes: &[WrittenScope]) -> String {
    let entry = |one: &WrittenKey| format!("\"{}\": {}", one.key, list(&one.values));
    let table = |one: &WrittenScope| {
        let entries: Vec<String> = one.0.iter().map(entry).collect();
        format!("{{{}}}", entries.join(", "))
    };
    let tables: Vec<String> = scopes.iter().map(table).collect();
    format!("{{\"scope\": [{}]}}", tables.join(", "))
}

/// A list of texts, in JSON and in TOML, which does not take an erasure as it is.
fn list(values: &[String]) -> String {
    let text = serde_json::to_string(values).expect("a list of texts is always JSON");
    text.replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scope_may_have_is_written_and_read_as_the_same() {
        let line = "name=late functions=MPI_All*,MPI_Barrier kinds=send,collective ranks=0-3,9 \
                    communicators=a*,b longer=1.0000005 value=gap by=rank,thread every=end \
                    window=7 cpu=0.0123% bytes=8kB when=released reduce=top=7";
        let read = scope_text::scopes(&[], &[line.to_owned()]).expect("a scope");
        let SourcedScopes::Calls(calls) = &read else { panic!("{read:?}") };
        let keys = WrittenScope::of(&calls[0]).0.len();
        assert_eq!(keys, 14, "all keys are written");
        check(Ok(read));
    }

    #[test]
    fn what_a_scope_over_hops_may_have_is_written_and_read_as_the_same() {
        let line = "source=hops name=late value=two-way streams=0,7 ranks=0-3,9 reduce=top=7 \
                    kinds=back-end,front-end longer=1.0000005 by=edge,process,stream,kind \
                    every=end window=7 bytes=8kB";
        let read = scope_text::scopes(&[], &[line.to_owned()]).expect("a scope");
        let SourcedScopes::Hops(hops) = &read else { panic!("{read:?}") };
        let keys = WrittenScope::of_hops(&hops[0]).0.len();
        assert_eq!(keys, 12, "all keys are written");
        check(Ok(read));
    }

    #[test]
    fn what_a_scope_over_a_group_may_have_is_written_and_read_as_the_same() {
        let line = "source=group name=late value=two-way collectives=reduction,transfer \
                    ranks=0-3,9 kinds=root,relay longer=1.0000005 by=edge,process,kind,collective,root \
                    reduce=top=7 every=end window=7 bytes=8kB";
        let read = scope_text::scopes(&[], &[line.to_owned()]).expect("a scope");
        let SourcedScopes::Group(hops) = &read else { panic!("{read:?}") };
        let keys = WrittenScope::of_hops(&hops[0]).0.len();
        assert_eq!(keys, 12, "all keys are written");
        check(Ok(read));
    }

    #[test]
    fn a_communicator_may_have_any_letters() {
        let text = r#"{"scope": [{"communicators": ["a \"b\\", "\u0000\u007f\n,\u2028", ""]}]}"#;
        let read = of_document("json", text).expect("a scope");
        let SourcedScopes::Calls(calls) = &read else { panic!("{read:?}") };
        assert_eq!(calls[0].scope.communicators[1], "\0\u{7f}\n,\u{2028}");
        assert_eq!(WrittenScope::of(&calls[0]).line(), None);
        check(Ok(read));
    }
}
