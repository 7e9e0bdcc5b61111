//! The layer check: which crate may depend on which.
//!
//! Owns `layers.toml` (its form is [`Layers`]) and compares it with what `cargo metadata` says. The
//! look into sources, for the same table's words, is in [`crate::io_line`].

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::command::output_of;
use crate::finding::Finding;

pub const TABLE: &str = "xtask/layers.toml";

/// Where the laboratory's crates are, of which a product has nothing.
const LABORATORY: &str = "labs/";

/// The table of `xtask/layers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// In order: each may use only crates before it.
    #[serde(rename = "crate")]
    pub crates: Vec<Layer>,
    pub above_the_line: AboveTheLine,
    #[serde(default, rename = "owner")]
    pub owners: Vec<Owner>,
    #[serde(default, rename = "exception")]
    pub exceptions: Vec<Exception>,
    /// By folder of the crate; see [`crate::module_order`].
    #[serde(default)]
    pub modules: BTreeMap<String, Allowed>,
    /// Crates, by folder, in which modules may use one another in a circle, and why.
    #[serde(default)]
    pub circles: BTreeMap<String, String>,
}

/// What each top-level module of a crate may use, by name.
pub type Allowed = BTreeMap<String, Vec<String>>;

/// One crate of the workspace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub name: String,
    pub folder: String,
    #[serde(default)]
    pub above_the_line: bool,
    pub uses: Vec<String>,
}

/// What holds for every crate above the I/O line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AboveTheLine {
    pub external: Vec<String>,
    pub forbidden: Vec<String>,
}

/// Folders that alone may hold the words of one way to touch the world.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    pub what: String,
    pub folders: Vec<String>,
    pub words: Vec<String>,
}

/// A folder or file that may hold an owner's words all the same, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    pub what: String,
    pub folder: String,
    pub reason: String,
}

/// Reads and parses the table.
pub fn load(root: &Path) -> Result<Layers, Finding> {
    let text = std::fs::read_to_string(root.join(TABLE))
        .map_err(|error| Finding::new(TABLE, 0, format!("cannot be read: {error}")))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Layers, Finding> {
    toml::from_str(text).map_err(|error| Finding::new(TABLE, 0, error.to_string()))
}

/// Compares the workspace with the table.
pub fn check(root: &Path) -> Vec<Finding> {
    let layers = match load(root) {
        Ok(layers) => layers,
        Err(finding) => return vec![finding],
    };
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata = output_of(root, "cargo", &arguments)
        .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    match metadata {
        Ok(metadata) => {
            let mut findings = order(&layers);
            findings.extend(compare(&layers, &metadata));
            findings
        }
        Err(error) => vec![Finding::new("cargo metadata", 0, error)],
    }
}

/// The table itself: only earlier crates, nothing above the line on anything below it, and every
/// exception with an owner and a reason.
fn order(layers: &Layers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut before: BTreeMap<&str, bool> = BTreeMap::new();
    for layer in &layers.crates {
        for used in &layer.uses {
            let text = match before.get(used.as_str()) {
                None => format!("{} may not use {used}, which is not listed before it", layer.name),
                Some(false) if layer.above_the_line => {
                    format!("{} is above the I/O line and may not use {used}", layer.name)
                }
                Some(_) => continue,
            };
            findings.push(Finding::new(TABLE, 0, text));
        }
        before.insert(&layer.name, layer.above_the_line);
    }
    findings.extend(laboratory(layers));
    for exception in &layers.exceptions {
        if !layers.owners.iter().any(|owner| owner.what == exception.what) {
            let text = format!("the exception for {} names no owner", exception.folder);
            findings.push(Finding::new(TABLE, 0, text));
        }
        if exception.reason.trim().is_empty() {
            let text = format!("the exception for {} gives no reason", exception.folder);
            findings.push(Finding::new(TABLE, 0, text));
        }
    }
    findings
}

/// Nothing outside of the laboratory may use a crate of it, wherever both stand in the table.
fn laboratory(layers: &Layers) -> Vec<Finding> {
    let is_lab = |layer: &Layer| layer.folder.starts_with(LABORATORY);
    let labs: Vec<&str> =
        layers.crates.iter().filter(|layer| is_lab(layer)).map(|layer| &*layer.name).collect();
    let mut findings = Vec::new();
    for layer in layers.crates.iter().filter(|layer| !is_lab(layer)) {
        for used in layer.uses.iter().filter(|used| labs.contains(&used.as_str())) {
            let text = format!("{} may not use {used}, which is of the laboratory", layer.name);
            findings.push(Finding::new(TABLE, 0, text));
        }
    }
    findings
}

fn compare(layers: &Layers, metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(layer) = layers.crates.iter().find(|layer| layer.name == name) else {
            let text = format!("not listed in {TABLE}: add it in its place, with what it may use");
            findings.push(Finding::new(name, 0, text));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        for dependency in dependencies {
            findings.extend(judge(layers, layer, dependency));
        }
    }
    for layer in &layers.crates {
        if !packages.iter().any(|package| package["name"] == layer.name.as_str()) {
            findings.push(Finding::new(TABLE, 0, format!("{} is no crate here", layer.name)));
        }
    }
    findings
}

fn judge(layers: &Layers, layer: &Layer, dependency: &Value) -> Option<Finding> {
    if dependency["kind"] == "dev" {
        return None;
    }
    let name = dependency["name"].as_str().unwrap_or_default();
    let text = if dependency["path"].is_string() {
        if layer.uses.iter().any(|used| used == name) {
            return None;
        }
        format!("may not depend on {name}: {TABLE} allows it {:?}", layer.uses)
    } else {
        if !layer.above_the_line || layers.above_the_line.external.iter().any(|known| known == name)
        {
            return None;
        }
        format!("is above the I/O line and may not depend on {name} from outside")
    };
    Some(Finding::new(layer.name.as_str(), 0, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table() -> Layers {
        parse(
            r#"
            [[crate]]
            name = "packet"
            folder = "crates/packet"
            above_the_line = true
            uses = []
            [[crate]]
            name = "transport"
            folder = "crates/transport"
            uses = []
            [above_the_line]
            external = ["bytemuck"]
            forbidden = []
            "#,
        )
        .expect("the sample table is well formed")
    }

    fn workspace(packet_dependency: Value) -> Value {
        json!({ "packages": [
            { "name": "packet", "dependencies": [packet_dependency] },
            { "name": "transport", "dependencies": [] },
        ]})
    }

    fn texts(findings: &[Finding]) -> String {
        findings.iter().map(|finding| format!("{finding}\n")).collect()
    }

    #[test]
    fn an_allowed_workspace_is_silent() {
        let allowed = json!({ "name": "bytemuck", "kind": null });
        assert_eq!(compare(&table(), &workspace(allowed)), []);
        let development = json!({ "name": "transport", "kind": "dev", "path": "x" });
        assert_eq!(compare(&table(), &workspace(development)), []);
    }

    #[test]
    fn a_dependency_across_the_line_is_found() {
        let below = json!({ "name": "transport", "kind": null, "path": "x" });
        assert!(
            texts(&compare(&table(), &workspace(below))).contains("may not depend on transport")
        );
        let build = json!({ "name": "transport", "kind": "build", "path": "x" });
        assert_eq!(compare(&table(), &workspace(build)).len(), 1);
    }

    #[test]
    fn an_outside_crate_above_the_line_is_found() {
        let outside = json!({ "name": "tokio", "kind": null });
        assert!(texts(&compare(&table(), &workspace(outside))).contains("tokio from outside"));
    }

    #[test]
    fn a_crate_that_only_one_side_knows_is_found() {
        let strange = json!({ "packages": [{ "name": "stranger", "dependencies": [] }] });
        let findings = texts(&compare(&table(), &strange));
        assert!(findings.contains("stranger: not listed"));
        assert!(findings.contains("packet is no crate here"));
    }

    #[test]
    fn a_table_out_of_order_is_found() {
        let mut layers = table();
        layers.crates[0].uses.push("transport".into());
        assert!(texts(&order(&layers)).contains("not listed before it"));
        layers.crates.swap(0, 1);
        assert!(texts(&order(&layers)).contains("above the I/O line"));
        assert_eq!(order(&table()), []);
    }

    #[test]
    fn a_tool_that_uses_the_laboratory_is_found() {
        let layer = |name: &str, folder: &str, uses: &[&str]| Layer {
            name: name.into(),
            folder: folder.into(),
            above_the_line: false,
            uses: uses.iter().map(|used| (*used).to_string()).collect(),
        };
        let mut layers = table();
        layers.crates.push(layer("floor", "labs/floor", &[]));
        layers.crates.push(layer("bench", "labs/bench", &["floor"]));
        assert_eq!(order(&layers), []);
        layers.crates.push(layer("run", "tools/run", &["floor"]));
        assert!(
            texts(&order(&layers)).contains("run may not use floor, which is of the laboratory")
        );
    }

    #[test]
    fn an_exception_without_owner_or_reason_is_found() {
        let mut layers = table();
        let (what, folder, reason) = ("sockets".into(), "bench".into(), " ".into());
        layers.exceptions.push(Exception { what, folder, reason });
        assert_eq!(order(&layers).len(), 2);
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(parse("[above_the_line]\nexternal = []\nforbidden = []\nspeed = 1\n").is_err());
    }
}
