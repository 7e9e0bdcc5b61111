//! The check of methods that one module adds to a type of another.
//!
//! An `impl` block may stand in any module of a crate, so a module can call what a module after it
//! has added to a type that both know, and no import shows it. In the crates that `layers.toml`
//! lists under `modules`, such a call counts as a use of the module that adds the method. It is
//! found by the method's name, which therefore no other method of the crate may have.
//!
//! A module that may not use a type cannot have a value of it, so that its calls of the same name
//! mean something else and are not looked at.
//!
//! Beside that, a crate of the engine declares a type name once: two types of one name in two
//! modules are a trap for a reader of an import.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::File;
use crate::finding::Finding;
use crate::io_line::shipping_sources;
use crate::layers::{Allowed, Layers, TABLE};
use crate::module_order::module_of;
use crate::source::is_name;

/// Where the crates of the engine are.
const ENGINE: &str = "crates/";

/// One method of an `impl` block that implements no trait.
#[derive(Debug)]
struct Method {
    name: String,
    of: String,
    module: String,
    path: String,
    line: usize,
}

/// Looks through the sources of every crate that has a list of modules.
pub fn check(layers: &Layers, files: &[File]) -> Vec<Finding> {
    let judge = |(folder, allowed): (&String, &Allowed)| {
        let sources = shipping_sources(folder, files);
        let homes = homes(folder, &sources);
        let methods = methods(folder, &sources);
        let is_added = |method: &&Method| {
            homes.get(&method.of).is_some_and(|home| *home != method.module)
                && allowed.contains_key(&method.module)
        };
        let added: Vec<&Method> = methods.iter().filter(is_added).collect();
        let mut findings = shared_names(&added, &methods, &homes, allowed);
        findings.extend(calls_back(folder, &added, &homes, allowed, &sources));
        findings
    };
    let mut findings: Vec<Finding> = layers.modules.iter().flat_map(judge).collect();
    for layer in layers.crates.iter().filter(|layer| layer.folder.starts_with(ENGINE)) {
        findings.extend(declared_twice(&shipping_sources(&layer.folder, files)));
    }
    findings
}

/// Type names that a crate declares more than once.
fn declared_twice(sources: &[(String, String)]) -> Vec<Finding> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, code) in sources {
        for (index, line) in code.lines().enumerate() {
            let Some(name) = declared_type(line) else { continue };
            if let Some(other) = first.get(&name) {
                let text =
                    format!("{name} is declared in {other}, too: name one of them otherwise");
                findings.push(Finding::new(path.as_str(), index + 1, text));
            }
            first.entry(name).or_insert_with(|| path.clone());
        }
    }
    findings
}

/// The type that a line at the outermost level declares.
fn declared_type(line: &str) -> Option<String> {
    let mut words = line;
    for word in ["pub(crate) ", "pub(super) ", "pub "] {
        words = words.strip_prefix(word).unwrap_or(words);
    }
    let kinds = ["struct ", "enum ", "union ", "trait "];
    kinds.iter().find_map(|kind| words.strip_prefix(kind)).map(first_name)
}

/// Whether a module may use another one, or is it.
fn may_use(allowed: &Allowed, module: &str, other: &str) -> bool {
    module == other
        || allowed.get(module).is_some_and(|names| names.iter().any(|name| name == other))
}

/// The module in which each type of a crate is declared.
fn homes(folder: &str, sources: &[(String, String)]) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    for (path, code) in sources {
        let Some(module) = module_of(folder, path) else { continue };
        let types = code.lines().filter_map(declared_type);
        homes.extend(types.map(|name| (name, module.to_owned())));
    }
    homes
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|character| is_name(*character)).collect()
}

/// The methods of a crate, by the layout that rustfmt gives to blocks and methods.
fn methods(folder: &str, sources: &[(String, String)]) -> Vec<Method> {
    let mut methods = Vec::new();
    for (path, code) in sources {
        let Some(module) = module_of(folder, path) else { continue };
        let mut of = None;
        for (index, line) in code.lines().enumerate() {
            if line.starts_with("impl") {
                of = type_of_block(line);
            } else if line.starts_with('}') {
                of = None;
            }
            let (Some(of), Some(name)) = (&of, method_name(line)) else { continue };
            let (of, path) = (of.clone(), path.clone());
            methods.push(Method { name, of, module: module.into(), path, line: index + 1 });
        }
    }
    methods
}

/// The type whose methods a block holds; none for the block of a trait.
fn type_of_block(line: &str) -> Option<String> {
    if line.contains(" for ") {
        return None;
    }
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once('>')?.1,
        None => rest,
    };
    let path = rest.trim_start().split(['<', ' ']).next()?;
    path.rsplit("::").next().map(str::to_owned)
}

/// The name of a method that begins on this line, directly inside a block.
fn method_name(line: &str) -> Option<String> {
    let inside = line.strip_prefix("    ")?;
    if inside.starts_with(' ') {
        return None;
    }
    let mut words = inside;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const "] {
        words = words.strip_prefix(word).unwrap_or(words);
    }
    words.strip_prefix("fn ").map(first_name)
}

/// Added methods by whose name a call cannot be told from that of another method.
fn shared_names(
    added: &[&Method],
    methods: &[Method],
    homes: &BTreeMap<String, String>,
    allowed: &Allowed,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in added {
        let knows = |other: &Method| {
            homes.get(&one.of).is_some_and(|home| may_use(allowed, &other.module, home))
        };
        let shared = methods.iter().find(|other| {
            other.name == one.name
                && other.of != one.of
                && other.module != one.module
                && knows(other)
        });
        if let Some(other) = shared {
            let text = format!(
                "{}::{} has the name of a method of {} in {}: name one of them otherwise",
                one.of, one.name, other.of, other.module
            );
            findings.push(Finding::new(one.path.as_str(), one.line, text));
        }
    }
    findings
}

/// Calls of methods that a module adds which the caller's module may not use.
fn calls_back(
    folder: &str,
    added: &[&Method],
    homes: &BTreeMap<String, String>,
    allowed: &Allowed,
    sources: &[(String, String)],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, code) in sources {
        let Some(from) = module_of(folder, path).filter(|from| allowed.contains_key(*from)) else {
            continue;
        };
        let called: BTreeSet<(String, usize)> = calls(code);
        for method in added.iter().filter(|method| !may_use(allowed, from, &method.module)) {
            let knows_type = homes.get(&method.of).is_some_and(|home| may_use(allowed, from, home));
            for (_, line) in called.iter().filter(|(name, _)| knows_type && *name == method.name) {
                let Method { name, of, module, .. } = method;
                let text =
                    format!("{from} may not call {of}::{name}, which {module} adds ({TABLE})");
                findings.push(Finding::new(path.as_str(), *line, text));
            }
        }
    }
    findings
}

/// The methods that code calls, or names by a path of two names, with the lines.
fn calls(code: &str) -> BTreeSet<(String, usize)> {
    let mut calls = BTreeSet::new();
    for (index, line) in code.lines().enumerate() {
        for (at, _) in line.match_indices('.') {
            let name = first_name(&line[at + 1..]);
            if line[at + 1 + name.len()..].starts_with('(') {
                calls.insert((name, index + 1));
            }
        }
        for (at, _) in line.match_indices("::") {
            // The type may stand behind its module; a path of modules alone has no capital.
            let before = line[..at].rsplit(|character| !is_name(character)).next();
            if before.is_some_and(|name| name.starts_with(char::is_uppercase)) {
                calls.insert((first_name(&line[at + 2..]), index + 1));
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = "turn = []\nstreams = [\"turn\"]\nrecovery = [\"turn\", \"streams\"]\n";

    fn findings(turn: &str, streams: &str, recovery: &str) -> String {
        let crate_of = "[[crate]]\nname = \"node\"\nfolder = \"node\"\nuses = []\n";
        let line = "[above_the_line]\nexternal = []\nforbidden = []\n";
        let table = format!("{crate_of}{line}[modules.node]\n{ORDER}");
        let layers = toml::from_str(&table).expect("well formed");
        let files = [
            File::sample("node/src/turn.rs", turn),
            File::sample("node/src/streams/mod.rs", streams),
            File::sample("node/src/recovery.rs", recovery),
        ];
        check(&layers, &files).iter().map(|finding| format!("{finding}\n")).collect()
    }

    const STREAM: &str = "pub(crate) struct Stream;\nimpl Stream {\n    fn open(&self) {}\n}\n";
    const ADDED: &str = "impl crate::streams::Stream {\n    pub(crate) fn resume(&mut self) {\n        \
                         self.open();\n    }\n}\n";

    #[test]
    fn a_method_that_a_module_before_adds_may_be_called() {
        let call = format!("{ADDED}fn f(stream: &Stream) {{\n    stream.resume();\n}}\n");
        assert_eq!(findings("", STREAM, &call), "");
    }

    #[test]
    fn a_call_of_what_a_module_behind_adds_is_found() {
        let streams = format!("{STREAM}fn f(stream: &mut Stream) {{\n    stream.resume();\n}}\n");
        let found = findings("", &streams, ADDED);
        let expected =
            "node/src/streams/mod.rs:6: streams may not call Stream::resume, which recovery adds";
        assert!(found.contains(expected), "{found}");
        let by_name = format!("{STREAM}fn f() {{\n    each(Stream::resume);\n}}\n");
        assert!(findings("", &by_name, ADDED).contains("mod.rs:6"));
        let path = format!("{STREAM}fn f() {{\n    crate::recovery::resume();\n}}\n");
        assert_eq!(findings("", &path, ADDED), "");
    }

    #[test]
    fn a_module_that_cannot_have_the_type_means_another_method() {
        assert_eq!(findings("fn f(clock: Clock) {\n    clock.resume();\n}\n", STREAM, ADDED), "");
    }

    #[test]
    fn a_name_that_another_method_has_is_found() {
        let streams =
            format!("{STREAM}struct Clock;\nimpl Clock {{\n    fn resume(&self) {{}}\n}}\n");
        let found = findings("", &streams, ADDED);
        assert!(found.contains("recovery.rs:2: Stream::resume has the name of a method of Clock"));
    }

    #[test]
    fn a_type_name_that_is_declared_twice_is_found() {
        let source = |path: &str, code: &str| (path.to_owned(), code.to_owned());
        let one = source("crates/sim/src/world.rs", "pub(crate) struct World;\n");
        let other = source("crates/sim/src/group.rs", "use x::World;\npub enum World {}\n");
        let found = declared_twice(&[one.clone(), other]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].to_string().contains("group.rs:2: World is declared in crates/sim/src"));
        assert_eq!(declared_twice(&[one, source("crates/sim/src/a.rs", "struct Worlds;")]), []);
    }

    #[test]
    fn the_methods_of_a_trait_are_no_additions() {
        let traits = "impl Resume for Stream {\n    fn resume(&self) {}\n}\n";
        let streams = format!("{STREAM}fn f(stream: &Stream) {{\n    stream.resume();\n}}\n");
        assert_eq!(findings("", &streams, traits), "");
    }
}
