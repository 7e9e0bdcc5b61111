//! Whether JSON is as a schema of `docs/schema` says; for the tests of the programs that print it.
//!
//! Of JSON Schema (draft 2020-12) it knows the keywords that those schemas use, and it refuses a
//! schema with any other keyword: a schema never has a condition that is not checked.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Keywords that say nothing of a value.
const NOTES: [&str; 4] = ["$defs", "$schema", "description", "title"];

/// The one pattern in use: a set of ranks such as `0-3,7`, empty for none.
const RANK_SET: &str = "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$";

/// Where the schemas are.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// The schema of that name, such as `status-1`.
///
/// # Panics
/// If there is no such file, or no JSON in it.
#[must_use]
pub fn read(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Checks that a value is as the schema of that name says.
///
/// # Panics
/// If it is not; with all faults, and the value.
pub fn assert_fits(name: &str, value: &Value) {
    let found = faults(&read(name), value);
    assert!(found.is_empty(), "not as docs/schema/{name}.json says: {found:#?}\n{value}");
}

/// What of a value is not as a schema says, one line for each fault.
///
/// # Panics
/// If the schema has a keyword that is not known here.
#[must_use]
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root: schema, faults: Vec::new() };
    check.value(schema, value, "");
    check.faults
}

struct Check<'a> {
    /// What references point into.
    root: &'a Value,
    faults: Vec<String>,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        let Some(schema) = schema.as_object() else {
            panic!("{at}: a schema is an object, not {schema}");
        };
        for (keyword, condition) in schema {
            match keyword.as_str() {
                "$ref" => self.value(self.definition(condition), value, at),
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(condition, item, &format!("{at}/{index}"));
                    }
                }
                "properties" => {
                    for (name, member) in value.as_object().into_iter().flatten() {
                        if let Some(schema) = condition.get(name) {
                            self.value(schema, member, &format!("{at}/{name}"));
                        }
                    }
                }
                "additionalProperties" => {
                    self.others(condition, schema.get("properties"), value, at);
                }
                _ if NOTES.contains(&keyword.as_str()) || self.fits(keyword, condition, value) => {}
                _ => self.faults.push(format!("{at} is {value}, against {keyword}: {condition}")),
            }
        }
    }

    fn definition(&self, reference: &Value) -> &'a Value {
        let place = reference.as_str().and_then(|text| text.strip_prefix('#'));
        place.and_then(|place| self.root.pointer(place)).expect("a definition in the same file")
    }

    /// The members of an object that are not described.
    fn others(&mut self, schema: &Value, described: Option<&Value>, value: &Value, at: &str) {
        for (name, member) in value.as_object().into_iter().flatten() {
            let at = format!("{at}/{name}");
            match schema {
                _ if described.is_some_and(|described| described.get(name).is_some()) => {}
                Value::Bool(false) => self.faults.push(format!("{at} is not described")),
                schema => self.value(schema, member, &at),
            }
        }
    }

    /// Whether a value meets one condition, which is not on its members or items.
    fn fits(&self, keyword: &str, condition: &Value, value: &Value) -> bool {
        let list = || condition.as_array().expect("a list");
        let limit = || condition.as_f64().expect("a number");
        let length = value.as_array().map(|items| items.len() as f64);
        match keyword {
            "type" => match condition {
                Value::Array(names) => names.iter().any(|name| is_of_type(name, value)),
                name => is_of_type(name, value),
            },
            "const" => condition == value,
            "enum" => list().contains(value),
            "minimum" => value.as_f64().is_none_or(|value| value >= limit()),
            "maximum" => value.as_f64().is_none_or(|value| value <= limit()),
            "minItems" => length.is_none_or(|length| length >= limit()),
            "maxItems" => length.is_none_or(|length| length <= limit()),
            "pattern" => {
                assert_eq!(condition, RANK_SET, "no other pattern is known");
                value.as_str().is_none_or(is_rank_set)
            }
            "required" => value.as_object().is_none_or(|object| {
                list().iter().all(|name| object.contains_key(name.as_str().expect("a name")))
            }),
            "oneOf" => {
                let fits = |choice: &&Value| {
                    let mut check = Check { root: self.root, faults: Vec::new() };
                    check.value(choice, value, "");
                    check.faults.is_empty()
                };
                list().iter().filter(fits).count() == 1
            }
            _ => panic!("the keyword {keyword} is not known"),
        }
    }
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        // In JSON 3.0 is a whole number, too.
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => panic!("{name} is no type"),
    }
}

fn is_rank_set(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_range = |text: &str| text.splitn(2, '-').all(is_number);
    text.is_empty() || text.split(',').all(is_range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each of these values breaks one condition of its schema, and the first one none.
    fn assert_refused(schema: &Value, good: &Value, bad: &[Value]) {
        assert_eq!(faults(schema, good), Vec::<String>::new());
        for value in bad {
            assert_eq!(faults(schema, value).len(), 1, "{schema} and {value}");
        }
    }

    #[test]
    fn every_condition_on_a_value_refuses_what_breaks_it() {
        assert_refused(&json!({ "type": "integer" }), &json!(2.0), &[json!(2.5), json!("2")]);
        assert_refused(&json!({ "type": ["string", "null"] }), &json!(null), &[json!(true)]);
        assert_refused(&json!({ "type": "number" }), &json!(-0.5), &[json!(null), json!([])]);
        assert_refused(&json!({ "const": "a/1" }), &json!("a/1"), &[json!("a/2")]);
        assert_refused(&json!({ "enum": ["a", 1] }), &json!(1), &[json!("b"), json!(null)]);
        assert_refused(&json!({ "minimum": 1, "maximum": 3 }), &json!(3), &[json!(0), json!(4)]);
        let pair = json!({ "minItems": 1, "maxItems": 2 });
        assert_refused(&pair, &json!([1, 2]), &[json!([]), json!([1, 2, 3])]);
        let ranks = json!({ "pattern": RANK_SET });
        assert_refused(&ranks, &json!("0-3,7"), &[json!("0-"), json!("1,,2"), json!("1-2-3")]);
        assert_refused(&ranks, &json!(""), &[json!("a")]);
    }

    #[test]
    fn every_condition_on_members_refuses_what_breaks_it() {
        let closed = json!({
            "required": ["a"],
            "properties": { "a": { "type": "string" }, "b": { "$ref": "#/$defs/b" } },
            "additionalProperties": false,
            "$defs": { "b": { "type": "boolean" } },
        });
        let bad = [
            json!({}),
            json!({ "a": 1 }),
            json!({ "a": "", "b": 1 }),
            json!({ "a": "", "new": 1 }),
        ];
        assert_refused(&closed, &json!({ "a": "", "b": true }), &bad);
        let map = json!({ "additionalProperties": { "type": "integer" } });
        assert_refused(&map, &json!({ "any": 1 }), &[json!({ "any": "1" })]);
        let list = json!({ "items": { "type": "integer" } });
        assert_refused(&list, &json!([1, 2]), &[json!([1, "2"])]);
        let one = json!({ "oneOf": [{ "type": "integer" }, { "minimum": 3 }] });
        assert_refused(&one, &json!(2), &[json!(3), json!(2.5)]);
    }

    #[test]
    #[should_panic(expected = "the keyword minLength is not known")]
    fn a_keyword_that_is_not_known_is_refused() {
        let _ = faults(&json!({ "minLength": 1 }), &json!(""));
    }
}
