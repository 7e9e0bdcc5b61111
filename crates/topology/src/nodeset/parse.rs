//! Reading the language of nodesets.
//!
//! ```text
//! set      term { operator term }, from left to right
//! operator ,  or a blank (union)   !  (difference)   &  (intersection)   ^  (in one of both)
//! term     name with any number of [ranges] in it; with * and ? one of all nodes
//!          @group   @source:group   @*   @source:*   @group[1-3]   @gro*   @@source
//! ranges   range { , range }      range    1   01-16   0-98/2
//! ```

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::gathering::{Gathering, Kept, take_apart};
use super::index::{Index, sort};
use super::ranges::{self, TOO_MANY};
use super::{Groups, NODESET_NAME_BYTES_MAX, NODESET_NAMES_MAX, NodeSet, PLACE};
use crate::error::{Error, excerpt};

/// How deep groups may stand in groups.
const GROUP_DEPTH_MAX: usize = 32;

/// Most names with `*` or `?` in one term: each is compared with all nodes.
const WILDCARDS_MAX: usize = 1024;

const TOO_LONG: &str = "these digits make a number of more than 17";

/// Reads one text and the groups that it names.
pub(super) struct Reader<'a> {
    groups: &'a dyn Groups,
    /// Groups that have been read, by source and name; `None` for one that is being read.
    known: BTreeMap<(Option<String>, String), Option<NodeSet>>,
    depth: usize,
}

/// A text with the source that its groups are of.
#[derive(Clone, Copy)]
struct Position<'a> {
    text: &'a str,
    source: Option<&'a str>,
    /// The byte at which the term begins.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(groups: &'a dyn Groups) -> Self {
        Self { groups, known: BTreeMap::new(), depth: 0 }
    }

    pub(super) fn read(&mut self, text: &str) -> Result<NodeSet, Error> {
        self.read_of(text, None)
    }

    fn read_of(&mut self, text: &str, source: Option<&str>) -> Result<NodeSet, Error> {
        let mut gathering = Gathering::default();
        let mut operator = None;
        let mut at = 0;
        loop {
            let blank = text[at..].len() - text[at..].trim_start().len();
            at += blank;
            let end = at + end_of_term(&text[at..]);
            let position = Position { text, source, at };
            if end == at {
                if let (None, true) = (operator, end == text.len()) {
                    break;
                }
                return Err(position.fault(at, "a name is missing here"));
            }
            self.apply(operator, position, &text[at..end], &mut gathering)?;
            let rest = &text[end..];
            let behind = rest.trim_start();
            at = end + rest.len() - behind.len();
            operator = match behind.chars().next() {
                None => break,
                Some(sign @ (',' | '!' | '&' | '^')) => {
                    at += 1;
                    Some(sign)
                }
                Some(_) => Some(','),
            };
        }
        let position = Position { text, source, at: 0 };
        gathering.finish().ok_or_else(|| position.fault(0, TOO_MANY))
    }

    fn apply(
        &mut self,
        operator: Option<char>,
        position: Position<'_>,
        term: &str,
        gathering: &mut Gathering,
    ) -> Result<(), Error> {
        let too_many = || position.fault(position.at, TOO_MANY);
        let is_union = matches!(operator, None | Some(','));
        if is_union && !term.starts_with('@') && !term.contains(['*', '?']) {
            let fits = add_names(position, term, gathering)?;
            return if fits { Ok(()) } else { Err(too_many()) };
        }
        let other = self.term(position, term)?;
        if is_union {
            return if gathering.add_set(&other) { Ok(()) } else { Err(too_many()) };
        }
        let set = core::mem::take(gathering).finish().ok_or_else(too_many)?;
        let kept = match operator {
            Some('!') => Kept { first: true, both: false, second: false },
            Some('&') => Kept { first: false, both: true, second: false },
            _ => Kept { first: true, both: false, second: true },
        };
        *gathering = Gathering::of(set.combined(&other, kept));
        Ok(())
    }

    fn term(&mut self, position: Position<'_>, term: &str) -> Result<NodeSet, Error> {
        if let Some(group) = term.strip_prefix('@') {
            return self.group_term(position, group);
        }
        let mut names = Gathering::default();
        let fits = add_names(position, term, &mut names)?;
        let names = names.finish().filter(|_| fits);
        let names = names.ok_or_else(|| position.fault(position.at, TOO_MANY))?;
        if !term.contains(['*', '?']) {
            return Ok(names);
        }
        if names.len() > WILDCARDS_MAX {
            return Err(position.fault(position.at, "these are more than 1024 names with * or ?"));
        }
        let all = self.all(position, position.source)?;
        let wildcards: Vec<String> = names.iter().collect();
        let matching = all.iter().filter(|name| wildcards.iter().any(|w| matches(w, name)));
        Ok(matching.collect())
    }

    fn group_term(&mut self, position: Position<'_>, text: &str) -> Result<NodeSet, Error> {
        if let Some(source) = text.strip_prefix('@') {
            let source = if source.is_empty() { position.source } else { Some(source) };
            let names =
                self.groups.names(source).map_err(|why| position.group_fault(text, &why))?;
            let names =
                names.ok_or_else(|| position.group_fault(text, "there is no such source"))?;
            return Ok(names.into_iter().collect());
        }
        let (source, names) = match text.split_once(':') {
            Some((source, names)) => (Some(source), names),
            None => (position.source, text),
        };
        if names == "*" {
            return self.all(position, source);
        }
        let mut wanted = Gathering::default();
        let start = position.at + 1 + text.len() - names.len();
        let fits = add_names(Position { at: start, ..position }, names, &mut wanted)?;
        let wanted = wanted.finish().filter(|_| fits);
        let wanted = wanted.ok_or_else(|| position.fault(start, TOO_MANY))?;
        let mut wanted: Vec<String> = wanted.iter().collect();
        if names.contains(['*', '?']) {
            let known =
                self.groups.names(source).map_err(|why| position.group_fault(text, &why))?;
            let known = known.unwrap_or_default();
            wanted =
                known.into_iter().filter(|name| wanted.iter().any(|w| matches(w, name))).collect();
        }
        let mut all = Gathering::default();
        for name in &wanted {
            if !all.add_set(&self.group(position, source, name)?) {
                return Err(position.fault(position.at, TOO_MANY));
            }
        }
        all.finish().ok_or_else(|| position.fault(position.at, TOO_MANY))
    }

    fn group(
        &mut self,
        position: Position<'_>,
        source: Option<&str>,
        name: &str,
    ) -> Result<NodeSet, Error> {
        let key = (source.map(ToOwned::to_owned), name.to_string());
        match self.known.get(&key) {
            Some(Some(set)) => return Ok(set.clone()),
            Some(None) => return Err(position.group_fault(name, "it is a member of itself")),
            None => {}
        }
        if self.depth == GROUP_DEPTH_MAX {
            return Err(position.group_fault(name, "groups stand in groups more than 32 deep"));
        }
        let text = self.groups.members(source, name);
        let text = text.map_err(|why| position.group_fault(name, &why))?;
        let text = text.ok_or_else(|| position.group_fault(name, "there is no such group"))?;
        self.known.insert(key.clone(), None);
        self.depth += 1;
        let set = self.read_of(&text, source);
        self.depth -= 1;
        let set = set?;
        self.known.insert(key, Some(set.clone()));
        Ok(set)
    }

    fn all(&mut self, position: Position<'_>, source: Option<&str>) -> Result<NodeSet, Error> {
        let key = (source.map(ToOwned::to_owned), "*".to_string());
        match self.known.get(&key) {
            Some(Some(set)) => return Ok(set.clone()),
            Some(None) => return Err(position.group_fault("*", "it is a member of itself")),
            None => {}
        }
        let text = self.groups.all(source).map_err(|why| position.group_fault("*", &why))?;
        let unknown = "the list of all nodes is unknown: configure a source of groups that has one";
        let text = text.ok_or_else(|| position.group_fault("*", unknown))?;
        self.known.insert(key.clone(), None);
        let set = self.read_of(&text, source)?;
        self.known.insert(key, Some(set.clone()));
        Ok(set)
    }
}

impl Position<'_> {
    /// Something is wrong at a byte of the text.
    fn fault(&self, at: usize, problem: &'static str) -> Error {
        let at = at.min(self.text.len());
        let column = self.text.get(..at).map_or(at, |before| before.chars().count()) + 1;
        let from = self.text.get(self.at.min(at)..).unwrap_or(self.text);
        let term = &from[..end_of_term(from).max(1).min(from.len())];
        let term = if self.text.len() <= 60 { self.text } else { term };
        Error::NodeSet { text: excerpt(term), column: column as u32, problem }
    }

    fn group_fault(&self, group: &str, problem: &str) -> Error {
        let source = self.source.map_or_else(String::new, |source| alloc::format!("{source}:"));
        let is_full = group.contains(':') || group.starts_with('@');
        let group = if is_full { group.to_string() } else { source + group };
        Error::Group { group: excerpt(&group), problem: excerpt_line(problem) }
    }
}

fn excerpt_line(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Where a term ends: at an operator or a blank outside brackets.
fn end_of_term(text: &str) -> usize {
    let mut is_inside = false;
    for (at, character) in text.char_indices() {
        match character {
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' | '!' | '&' | '^' if !is_inside => return at,
            _ if character.is_whitespace() && !is_inside => return at,
            _ => {}
        }
    }
    text.len()
}

/// Whether a name fits a text in which `*` is any text and `?` any character.
fn matches(wildcard: &str, name: &str) -> bool {
    let (wildcard, name) = (wildcard.as_bytes(), name.as_bytes());
    let (mut w, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match wildcard.get(w) {
            Some(b'*') => {
                star = Some((w, n));
                w += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => (w, n) = (w + 1, n + 1),
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (w, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    wildcard[w..].iter().all(|&byte| byte == b'*')
}

/// Adds the names of a term without groups. Says `false` where they were too many.
fn add_names(position: Position<'_>, term: &str, gathering: &mut Gathering) -> Result<bool, Error> {
    if let Some(at) = term.find(|c: char| c.is_control() || c == '@') {
        return Err(position.fault(position.at + at, "this character is in no name"));
    }
    let mut pattern = String::new();
    let mut numbers = Vec::new();
    if !term.contains(['[', ']']) {
        check_length(position, term.len())?;
        take_apart(term, &mut pattern, &mut numbers);
        return Ok(gathering.add(&pattern, &numbers));
    }
    let sets = product(position, term, &mut pattern)?;
    if sets.iter().any(Vec::is_empty) {
        return Ok(true);
    }
    let count = sets.iter().fold(1_u64, |count, set| count.saturating_mul(set.len() as u64));
    if count > NODESET_NAMES_MAX as u64 {
        return Ok(false);
    }
    multiply(&sets, &mut numbers);
    Ok(gathering.add(&pattern, &numbers))
}

fn check_length(position: Position<'_>, bytes: usize) -> Result<(), Error> {
    if bytes > NODESET_NAME_BYTES_MAX {
        return Err(position.fault(position.at, "a name has at most 255 bytes"));
    }
    Ok(())
}

/// The sets of numbers of a term, and its pattern.
fn product(
    position: Position<'_>,
    term: &str,
    pattern: &mut String,
) -> Result<Vec<Vec<Index>>, Error> {
    let mut sets: Vec<Vec<Index>> = Vec::new();
    // Whether the set that came last ends right here, so that digits or brackets continue it.
    let mut is_adjacent = false;
    // Whether the text before ends with more digits than a number has.
    let mut is_behind_digits = false;
    let mut bytes = 0;
    let mut at = 0;
    while at < term.len() {
        let rest = &term[at..];
        let here = position.at + at;
        let numbers = if let Some(inside) = rest.strip_prefix('[') {
            let length = inside.find([']', '[']).filter(|&end| inside[end..].starts_with(']'));
            let length =
                length.ok_or_else(|| position.fault(here, "this bracket is not closed"))?;
            let inside = &inside[..length];
            // Before memory is taken for them.
            if ranges::count(inside) > NODESET_NAMES_MAX as u64 {
                return Err(position.fault(here, TOO_MANY));
            }
            at += length + 2;
            ranges::parse(inside).map_err(|(within, why)| position.fault(here + 1 + within, why))?
        } else {
            let is_digit = rest.as_bytes()[0].is_ascii_digit();
            let ends = |c: char| c == '[' || c == ']' || c.is_ascii_digit() != is_digit;
            let length = rest.find(ends).unwrap_or(rest.len());
            if length == 0 {
                return Err(position.fault(here, "this bracket was not opened"));
            }
            let text = &rest[..length];
            at += length;
            match Index::parse(text).filter(|_| is_digit) {
                Some(number) => vec![number],
                None if is_digit && is_adjacent => return Err(position.fault(here, TOO_LONG)),
                None => {
                    bytes += text.len();
                    pattern.push_str(text);
                    (is_adjacent, is_behind_digits) = (false, is_digit);
                    continue;
                }
            }
        };
        if is_behind_digits {
            return Err(position.fault(here, TOO_LONG));
        }
        bytes += numbers.last().map_or(0, |number| number.digits());
        check_length(position, bytes)?;
        if is_adjacent && let Some(before) = sets.pop() {
            sets.push(join(position, here, &before, &numbers)?);
        } else {
            pattern.push(PLACE);
            sets.push(numbers);
        }
        is_adjacent = true;
    }
    // The text after the last number counts, too.
    check_length(position, bytes)?;
    Ok(sets)
}

/// Numbers whose digits follow one another: `1[0-9]` is 10 to 19.
fn join(
    position: Position<'_>,
    at: usize,
    before: &[Index],
    behind: &[Index],
) -> Result<Vec<Index>, Error> {
    if (before.len() as u64).saturating_mul(behind.len() as u64) > NODESET_NAMES_MAX as u64 {
        return Err(position.fault(at, TOO_MANY));
    }
    let pairs = before.iter().flat_map(|one| behind.iter().map(|other| one.joined(*other)));
    let joined: Option<Vec<Index>> = pairs.collect();
    let mut joined = joined.ok_or_else(|| position.fault(at, TOO_LONG))?;
    sort(&mut joined);
    Ok(joined)
}

/// All tuples, in order.
pub(super) fn multiply(sets: &[Vec<Index>], numbers: &mut Vec<Index>) {
    let count: usize = sets.iter().map(Vec::len).product();
    numbers.reserve_exact(count * sets.len());
    for mut position in 0..count {
        let start = numbers.len();
        for set in sets.iter().rev() {
            numbers.push(set[position % set.len()]);
            position /= set.len();
        }
        numbers[start..].reverse();
    }
}
