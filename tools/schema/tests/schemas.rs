//! All of `docs/schema`: closed, named after the form that they describe, and checked by a test
//! against what a program prints; and that no form lacks one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn names() -> Vec<String> {
    let entries = fs::read_dir(sapwood_schema::folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.map(|name| name.strip_suffix(".json").expect("a schema").to_string()).collect();
    names.sort();
    names
}

/// Objects of a schema that say nothing of members that they do not describe.
fn open_objects(schema: &Value, at: &str, found: &mut Vec<String>) {
    let is_object = match &schema["type"] {
        Value::Array(names) => names.contains(&"object".into()),
        name => name == "object",
    };
    let others = &schema["additionalProperties"];
    let is_closed = match schema.get("properties") {
        Some(_) => others == false,
        None => others.is_object(),
    };
    if (is_object || schema.get("properties").is_some()) && !is_closed {
        found.push(at.to_string());
    }
    let inner = schema.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value));
    let listed = schema.as_array().into_iter().flatten().enumerate();
    for (name, value) in inner.chain(listed.map(|(index, value)| (index.to_string(), value))) {
        // A member may be called `type`.
        let at = format!("{at}/{name}");
        match name.as_str() {
            "properties" | "$defs" => {
                for (member, schema) in value.as_object().into_iter().flatten() {
                    open_objects(schema, &format!("{at}/{member}"), found);
                }
            }
            _ => open_objects(value, &at, found),
        }
    }
}

#[test]
fn a_schema_describes_every_member() {
    for name in names() {
        let mut found = Vec::new();
        open_objects(&sapwood_schema::read(&name), "", &mut found);
        assert_eq!(found, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_schema_is_named_after_its_form() {
    for name in names() {
        let schema = sapwood_schema::read(&name);
        let form = schema["title"].as_str().expect("the form");
        assert_eq!(schema["properties"]["schema"]["const"], form);
        let file = form.strip_prefix("sapwood.").map(|form| form.replace('/', "-"));
        assert_eq!(file.as_deref(), Some(name.as_str()));
    }
}

/// The sources below a folder, in these languages, without this package's own.
fn sources(folder: &Path, languages: &[&str], text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let language = path.extension().and_then(|language| language.to_str());
        if path.is_dir() {
            sources(&path, languages, text);
        } else if language.is_some_and(|language| languages.contains(&language))
            && !path.starts_with(root().join("tools/schema"))
        {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn every_schema_is_checked_against_what_a_program_prints() {
    let mut text = String::new();
    for folder in ["tools", "labs", "bindings/mpi"] {
        sources(&root().join(folder), &["rs", "py"], &mut text);
    }
    for name in names() {
        let is_checked = text.contains(&format!("assert_fits(\"{name}\""));
        assert!(is_checked, "no test checks anything by docs/schema/{name}.json");
    }
}

/// Forms of files that are not what a program prints: measured links, tables, a test's.
const OTHER_FORMS: [&str; 6] =
    ["links/2", "ranks/3", "rounds/2", "profile/2", "freeze-events/1", "test/1"];

#[test]
fn every_form_has_a_schema() {
    let mut text = String::new();
    ["tools", "labs"].iter().for_each(|folder| sources(&root().join(folder), &["rs"], &mut text));
    let names = names();
    // In a text the quote behind it has a backslash.
    let forms = text.split("\"sapwood.").skip(1);
    for form in forms.filter_map(|rest| rest.split(['"', '\\']).next()) {
        // A name without a version stands for every version.
        let has_version = form.split_once('/').is_some_and(|(_, version)| !version.is_empty());
        let is_form = has_version && !OTHER_FORMS.contains(&form);
        let has_schema = names.contains(&form.replace('/', "-"));
        assert!(!is_form || has_schema, "docs/schema has no schema of sapwood.{form}");
    }
}
