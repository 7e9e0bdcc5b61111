//! The part of YAML in which ClusterShell's files define groups: sources, in them groups, and a
//! group's nodes as text or as a list of texts.
//!
//! ```yaml
//! racks:
//!     rack1: 'node[0,2]'   # a comment
//!     rack2:
//!         - node[4-5]
//!         - "node9"
//!     rack3: [node10, node11]
//! ```
//!
//! What else YAML has (anchors, several documents, nested maps) is refused with its line.

use std::collections::BTreeMap;

/// Groups of one source: their nodes as text.
pub(crate) type Source = BTreeMap<String, String>;

/// Reads a file.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Source>, (usize, String)> {
    let mut sources: BTreeMap<String, Source> = BTreeMap::new();
    let mut source: Option<String> = None;
    let mut group: Option<String> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comment(line);
        let content = line.trim();
        if content.is_empty() || content == "---" || content == "..." || content == "{}" {
            continue;
        }
        let fault = |what: &str| Err((number, format!("{content:?}: {what}")));
        if line[..line.len() - line.trim_start().len()].contains('\t') {
            return fault("indent with spaces, not tabs");
        }
        if let Some(item) = content.strip_prefix("- ").or((content == "-").then_some("")) {
            let (Some(source), Some(group)) = (&source, &group) else {
                return fault("an item stands below its group");
            };
            let Some(item) = scalar(item) else {
                return fault("only plain strings are supported here");
            };
            add(sources.entry(source.clone()).or_default(), group, &item);
            continue;
        }
        let Some((key, value)) = key_and_value(content) else {
            return fault("expected 'name:' or 'name: nodes'");
        };
        if !line.starts_with(' ') {
            if !value.is_empty() && value != "{}" {
                return fault("a source has groups below it, not nodes");
            }
            sources.entry(key.clone()).or_default();
            source = Some(key);
            group = None;
            continue;
        }
        let Some(source) = &source else { return fault("a group stands below its source") };
        let Some(nodes) = nodes_of(value) else {
            return fault("expected a text or a list of texts");
        };
        add(sources.entry(source.clone()).or_default(), &key, &nodes);
        group = Some(key);
    }
    Ok(sources)
}

fn add(source: &mut Source, group: &str, nodes: &str) {
    let known = source.entry(group.to_string()).or_default();
    if !known.is_empty() && !nodes.is_empty() {
        known.push(',');
    }
    known.push_str(nodes);
}

/// A line up to its comment, which begins at the line's start or behind a blank, outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (None, '#') if before.is_whitespace() => return line[..at].trim_end(),
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
        before = character;
    }
    line.trim_end()
}

fn key_and_value(content: &str) -> Option<(String, &str)> {
    let quoted = content.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let (key, rest) = match quoted {
        Some(quote) => {
            let (key, rest) = content[1..].split_once(quote)?;
            (key, rest.strip_prefix(':')?)
        }
        None => {
            let end = content.find(": ").or(content.strip_suffix(':').map(str::len))?;
            (&content[..end], &content[end + 1..])
        }
    };
    (!key.is_empty()).then(|| (key.trim().to_string(), rest.trim()))
}

/// The nodes behind a group's name.
fn nodes_of(value: &str) -> Option<String> {
    let is_list = value.starts_with('[') && value.ends_with(']');
    if !is_list {
        return scalar(value);
    }
    let mut nodes = Vec::new();
    let (mut depth, mut start, mut quote) = (0, 1, None);
    for (at, character) in value.char_indices() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            _ => {}
        }
        if quote.is_none() && (character == ',' && depth == 1 || depth == 0) {
            let item = value[start..at].trim();
            if !item.is_empty() {
                nodes.push(scalar(item)?);
            }
            start = at + 1;
        }
    }
    Some(nodes.join(","))
}

fn scalar(text: &str) -> Option<String> {
    let text = text.trim();
    for quote in ['\'', '"'] {
        if let Some(rest) = text.strip_prefix(quote) {
            return Some(rest.strip_suffix(quote)?.to_string());
        }
    }
    let is_plain = !text.starts_with(['{', '|', '>', '*', '%', '!']) && !text.starts_with("- ");
    // `&` begins an anchor, and an operator is never first. Numbers and names are plain text.
    (is_plain && !text.starts_with('&')).then(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_groups_and_lists_are_read() {
        let text = "# groups\n---\nroles:\n    adm: 'n0'\n    io: '@racks:r2,n2'  # two\n\
                    racks:\n  r1: n[0,2]\n  r2:\n    - 'n[4-5]' # some\n    - n9\n\
                    \n  \"r 3\": [n10, 'n[11-12]', \"n13\"]\nempty:\n";
        let sources = parse(text).unwrap();
        assert_eq!(sources["roles"]["io"], "@racks:r2,n2");
        assert_eq!(sources["racks"]["r1"], "n[0,2]");
        assert_eq!(sources["racks"]["r2"], "n[4-5],n9");
        assert_eq!(sources["racks"]["r 3"], "n10,n[11-12],n13");
        assert!(sources["empty"].is_empty());
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_line() {
        for (text, line) in [
            ("a: b\n", 1),
            ("a:\n\tb: c\n", 2),
            ("- a\n", 1),
            ("a:\n  b: {c: d}\n", 2),
            ("a:\n  b: 'c\n", 2),
            ("a:\n  nonsense\n", 2),
            ("  a: b\n", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }
}
