//! The module check: which module of a crate may use which of the same crate.
//!
//! A top-level module is a folder or a file below `src/`. No modules of a crate may use one another
//! in a circle, but for the crates that `layers.toml` lists under `circles`. A crate that it lists
//! under `modules` also keeps to what is allowed there. A name that the crate's root re-exports
//! counts as a use of the module it comes from. Only code that ships is read: tests may use what
//! they like.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::File;
use crate::finding::Finding;
use crate::io_line::shipping_sources;
use crate::layers::{Allowed, Layers, TABLE};
use crate::source::is_name;

/// One place where a module names another one.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    from: String,
    to: String,
    path: String,
    line: usize,
}

/// Looks through the sources of every crate in the table.
pub fn check(layers: &Layers, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in layers.modules.keys().chain(layers.circles.keys()) {
        if !layers.crates.iter().any(|layer| layer.folder == *folder) {
            let text = format!("{folder} is listed for its modules and is no crate here");
            findings.push(Finding::new(TABLE, 0, text));
        }
    }
    for layer in &layers.crates {
        let sources = shipping_sources(&layer.folder, files);
        let modules = modules(&layer.folder, &sources);
        let uses = uses(&layer.folder, &modules, &sources);
        match (circle(&layer.folder, &uses), layers.circles.contains_key(&layer.folder)) {
            (Some(finding), false) => findings.push(finding),
            (None, true) => {
                let text = format!("{} has no circle any more: take it off the list", layer.folder);
                findings.push(Finding::new(TABLE, 0, text));
            }
            _ => {}
        }
        if let Some(allowed) = layers.modules.get(&layer.folder) {
            findings.extend(listed(&layer.folder, allowed, &modules));
            findings.extend(unlisted_uses(allowed, &uses));
        }
    }
    findings
}

/// The names of the top-level modules of a crate.
fn modules(folder: &str, sources: &[(String, String)]) -> BTreeSet<String> {
    sources.iter().filter_map(|(path, _)| module_of(folder, path)).map(str::to_owned).collect()
}

/// The top-level module that a file belongs to; none for the crate's root.
pub fn module_of<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    let inside = path.strip_prefix(folder)?.strip_prefix("/src/")?;
    let first = inside.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(inside, "lib.rs" | "main.rs")).then_some(name)
}

/// Every use of one top-level module in another one.
fn uses(folder: &str, modules: &BTreeSet<String>, sources: &[(String, String)]) -> Vec<Use> {
    let exports = exports(folder, modules, sources);
    let mut uses = Vec::new();
    for (path, code) in sources {
        let Some(from) = module_of(folder, path) else { continue };
        let depth = depth_of(folder, path);
        for (name, line) in crate_names(code, depth) {
            let to = if modules.contains(&name) { Some(&name) } else { exports.get(&name) };
            if let Some(to) = to.filter(|to| *to != from) {
                uses.push(Use { from: from.into(), to: to.clone(), path: path.clone(), line });
            }
        }
    }
    uses
}

/// The names that a crate's root takes out of its modules, with the module each comes from.
fn exports(
    folder: &str,
    modules: &BTreeSet<String>,
    sources: &[(String, String)],
) -> BTreeMap<String, String> {
    let roots = [format!("{folder}/src/lib.rs"), format!("{folder}/src/main.rs")];
    let mut exports = BTreeMap::new();
    for (_, code) in sources.iter().filter(|(path, _)| roots.contains(path)) {
        for statement in code.split(';') {
            let Some((_, path)) = statement.rsplit_once("use ") else { continue };
            let path = path.trim().trim_start_matches("crate::").trim_start_matches("self::");
            let Some((module, names)) = path.split_once("::") else { continue };
            if modules.contains(module) {
                let names = names.split(|character| !is_name(character));
                exports.extend(names.map(|name| (name.to_owned(), module.to_owned())));
            }
        }
    }
    exports
}

/// How many `super` lead from a file's own module to the crate's root.
fn depth_of(folder: &str, path: &str) -> usize {
    let inside = path.trim_start_matches(folder).trim_start_matches("/src/");
    let depth = inside.split('/').count();
    if inside.ends_with("/mod.rs") { depth - 1 } else { depth }
}

/// The names that stand directly below the crate's root in paths of this code, with their lines.
fn crate_names(code: &str, depth: usize) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    let to_root = "super::".repeat(depth);
    for prefix in ["crate::", to_root.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|character| is_name(character) || character == ':') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            let rest = &code[at + prefix.len()..];
            names.extend(first_names(rest).into_iter().map(|name| (name, line)));
        }
    }
    names
}

/// The first name of a path, or of each path in a group.
fn first_names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![rest.chars().take_while(|character| is_name(*character)).collect()];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut item = String::new();
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(std::mem::take(&mut item)),
            _ if depth == 0 => item.push(character),
            _ => {}
        }
    }
    names.push(item);
    let first = |item: String| item.trim().chars().take_while(|each| is_name(*each)).collect();
    names.into_iter().map(first).filter(|name: &String| !name.is_empty()).collect()
}

/// The modules that use one another in a circle, if there are any.
fn circle(folder: &str, uses: &[Use]) -> Option<Finding> {
    let mut left: BTreeSet<&str> =
        uses.iter().flat_map(|each| [each.from.as_str(), each.to.as_str()]).collect();
    // Takes away modules that use none of those that are left, or are used by none.
    loop {
        let needed = |name: &str, way: fn(&Use) -> (&str, &str)| {
            uses.iter().map(way).any(|(one, other)| one == name && left.contains(other))
        };
        let stays = |name: &str| {
            needed(name, |each| (&each.from, &each.to))
                && needed(name, |each| (&each.to, &each.from))
        };
        let kept: BTreeSet<&str> = left.iter().copied().filter(|name| stays(name)).collect();
        if kept.len() == left.len() {
            break;
        }
        left = kept;
    }
    if left.is_empty() {
        return None;
    }
    let is_inside = |each: &&Use| [&each.from, &each.to].iter().all(|name| left.contains(&***name));
    let edges: BTreeSet<String> = uses
        .iter()
        .filter(is_inside)
        .map(|each| format!("{} uses {}", each.from, each.to))
        .collect();
    let edges: Vec<String> = edges.into_iter().collect();
    let text = format!("{} modules use one another in a circle: {}", left.len(), edges.join(", "));
    Some(Finding::new(format!("{folder}/src"), 0, text))
}

/// A module that only one side knows: the list or the crate.
fn listed(folder: &str, allowed: &Allowed, modules: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for module in modules.iter().filter(|module| !allowed.contains_key(*module)) {
        let text = format!("{module} is not listed in {TABLE}: add it, with what it may use");
        findings.push(Finding::new(format!("{folder}/src"), 0, text));
    }
    for name in allowed.iter().flat_map(|(name, uses)| uses.iter().chain([name])) {
        if !modules.contains(name) {
            let text = format!("{name} is no module of {folder}");
            findings.push(Finding::new(TABLE, 0, text));
        }
    }
    findings
}

fn unlisted_uses(allowed: &Allowed, uses: &[Use]) -> Vec<Finding> {
    let is_allowed =
        |each: &Use| allowed.get(&each.from).is_none_or(|names| names.contains(&each.to));
    uses.iter()
        .filter(|each| !is_allowed(each))
        .map(|each| {
            let text = format!("{} may not use {} ({TABLE})", each.from, each.to);
            Finding::new(each.path.as_str(), each.line, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str =
        "mod interface;\nmod turn;\nmod waves;\npub use interface::{Input, Output};\n";

    fn layers(allowed: &str) -> Layers {
        let crate_of = "[[crate]]\nname = \"node\"\nfolder = \"node\"\nuses = []\n";
        let line = "[above_the_line]\nexternal = []\nforbidden = []\n";
        toml::from_str(&format!("{crate_of}{line}[modules.node]\n{allowed}")).expect("well formed")
    }

    fn findings(allowed: &str, turn: &str, waves: &str) -> String {
        let files = [
            File::sample("node/src/interface.rs", "pub struct Input;"),
            File::sample("node/src/lib.rs", ROOT),
            File::sample("node/src/turn/mod.rs", "mod links;"),
            File::sample("node/src/turn/links.rs", turn),
            File::sample("node/src/waves.rs", waves),
        ];
        check(&layers(allowed), &files).iter().map(|finding| format!("{finding}\n")).collect()
    }

    const ORDER: &str =
        "interface = []\nturn = [\"interface\"]\nwaves = [\"interface\", \"turn\"]\n";

    #[test]
    fn modules_in_their_order_are_silent() {
        let waves = "use crate::turn::links::Links;\nuse super::interface::Input;";
        assert_eq!(findings(ORDER, "use crate::Input;\nuse super::Turn;", waves), "");
    }

    #[test]
    fn a_use_against_the_order_is_found_with_its_line() {
        let found = findings(ORDER, "\nuse crate::{interface::Input, waves::Wave};", "");
        assert!(found.contains("node/src/turn/links.rs:2: turn may not use waves"), "{found}");
        let by_super = findings(ORDER, "use super::super::waves::Wave;", "");
        assert!(by_super.contains("turn may not use waves"), "{by_super}");
    }

    #[test]
    fn a_name_of_the_root_counts_as_its_module() {
        let order = "interface = []\nturn = []\nwaves = []\n";
        let found = findings(order, "fn f(input: crate::Input) {}", "");
        assert!(found.contains("turn may not use interface"), "{found}");
    }

    #[test]
    fn a_circle_is_found_where_the_list_allows_it() {
        let order = "interface = []\nturn = [\"waves\"]\nwaves = [\"turn\"]\n";
        let found = findings(order, "use crate::waves::Wave;", "use crate::turn::Turn;");
        assert!(
            found.contains(
                "2 modules use one another in a circle: turn uses waves, waves uses turn"
            ),
            "{found}"
        );
    }

    #[test]
    fn a_circle_on_the_list_is_silent_and_the_list_must_be_true() {
        let mut layers = layers("interface = []\nturn = [\"waves\"]\nwaves = [\"turn\"]\n");
        layers.circles.insert("node".into(), "the two are one for now".into());
        let turn = File::sample("node/src/turn.rs", "use crate::waves::Wave;");
        let interface = File::sample("node/src/interface.rs", "");
        let back = File::sample("node/src/waves.rs", "use crate::turn::Turn;");
        assert_eq!(check(&layers, &[interface, turn, back]), []);
        let interface = File::sample("node/src/interface.rs", "");
        let turn = File::sample("node/src/turn.rs", "");
        let waves = File::sample("node/src/waves.rs", "");
        let found = check(&layers, &[interface, turn, waves]);
        assert!(found[0].text.contains("has no circle any more"));
    }

    #[test]
    fn a_module_that_only_one_side_knows_is_found() {
        let found = findings("interface = []\nturn = []\nlinks = []\n", "", "");
        assert!(found.contains("waves is not listed"), "{found}");
        assert!(found.contains("links is no module of node"), "{found}");
    }

    #[test]
    fn tests_may_use_what_they_like() {
        let turn = "#[cfg(test)]\nmod tests { use crate::waves::Wave; }";
        assert_eq!(findings(ORDER, turn, "use crate::turn::Turn;"), "");
    }
}
