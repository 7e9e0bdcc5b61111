//! Gathers the statements of a topology file: which nodes exist and which children each lists.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::circle;
use super::words::{Word, Words};
use crate::error::{Error, excerpt};
use crate::hosts::HostName;
use crate::limits::{HOST_INDEX_MAX, NODES_MAX};

/// Marks a node that no statement lists.
pub(super) const NO_NODE: u32 = u32::MAX;

/// The nodes of a file in the order in which it first names them.
#[derive(Default)]
pub(super) struct Declared<'a> {
    pub nodes: Vec<DeclaredNode>,
    hosts: Vec<&'a str>,
    host_positions: BTreeMap<&'a str, u32>,
    positions: BTreeMap<(u32, u32), u32>,
}

pub(super) struct DeclaredNode {
    pub host: u32,
    pub index: u32,
    /// Line of the first mention.
    pub line: u32,
    pub parent: u32,
    /// Line on which the parent lists it.
    pub listed_line: u32,
    pub children: Vec<u32>,
}

/// A name with its line, not yet entered.
type Mention<'a> = (u32, &'a str);

/// Reads all statements.
pub(super) fn read(text: &str) -> Result<Declared<'_>, Error> {
    let mut declared = Declared::default();
    let mut words = Words::of(text);
    let mut children = Vec::new();
    while let Some((line, word)) = words.next() {
        let Word::Name(parent) = word else {
            return Err(unexpected(line, word, "a node, host:index"));
        };
        children.clear();
        read_list(&mut words, (line, parent), &mut children)?;
        let parent = declared.enter((line, parent))?;
        for child in &children {
            declared.list(parent, *child)?;
        }
    }
    Ok(declared)
}

/// Reads a statement from after its first node to its semicolon.
fn read_list<'a>(
    words: &mut Words<'a>,
    parent: Mention<'a>,
    children: &mut Vec<Mention<'a>>,
) -> Result<(), Error> {
    match words.next() {
        Some((_, Word::Semicolon)) => return Ok(()),
        Some((_, Word::Arrow)) => {}
        None => return Err(missing_semicolon(parent)),
        Some((line, _)) if line != parent.0 => return Err(missing_semicolon(parent)),
        Some((line, word)) => return Err(unexpected(line, word, "\"=>\" or \";\"")),
    }
    loop {
        match (words.next(), children.last()) {
            (Some((line, Word::Name(name))), _) => children.push((line, name)),
            (Some((_, Word::Semicolon)), Some(_)) => return Ok(()),
            (Some((line, word)), None) => {
                return Err(unexpected(line, word, "a child, host:index"));
            }
            // The last name was the parent of the next statement: the one before it lacks its
            // semicolon.
            (Some((line, word)), Some(_)) => match children.iter().rev().nth(1) {
                Some(last) => return Err(missing_semicolon(*last)),
                None => return Err(unexpected(line, word, "a child or \";\"")),
            },
            (None, last) => {
                return Err(missing_semicolon(last.copied().unwrap_or((parent.0, "=>"))));
            }
        }
    }
}

impl<'a> Declared<'a> {
    /// The hosts in the order of their first mention.
    pub fn hosts(&self) -> Vec<HostName> {
        let hosts = self.hosts.iter().map(|name| name.parse());
        hosts.map(|host| host.expect("a host is checked when it is entered")).collect()
    }

    /// A node's name, cut for an error.
    pub fn name(&self, node: u32) -> String {
        let node = &self.nodes[node as usize];
        excerpt(&alloc::format!("{}:{}", self.hosts[node.host as usize], node.index))
    }

    /// Enters a node at its first mention and finds it at the later ones.
    fn enter(&mut self, (line, text): Mention<'a>) -> Result<u32, Error> {
        let (host, index) = split_name(text).map_err(|problem| Error::FileNodeName {
            line,
            text: excerpt(text),
            problem,
        })?;
        let host = match self.host_positions.get(host) {
            Some(position) => *position,
            None => {
                let position = self.hosts.len() as u32;
                self.hosts.push(host);
                self.host_positions.insert(host, position);
                position
            }
        };
        if let Some(node) = self.positions.get(&(host, index)) {
            return Ok(*node);
        }
        let node = self.nodes.len() as u32;
        if node >= NODES_MAX {
            return Err(Error::TooManyNodes { what: "topology file".into() });
        }
        self.positions.insert((host, index), node);
        let (parent, children) = (NO_NODE, Vec::new());
        self.nodes.push(DeclaredNode { host, index, line, parent, listed_line: 0, children });
        Ok(node)
    }

    /// Enters a child below its parent.
    fn list(&mut self, parent: u32, child: Mention<'a>) -> Result<(), Error> {
        let (line, _) = child;
        let child = self.enter(child)?;
        if child == parent {
            return Err(Error::FileSelfChild { line, node: self.name(child) });
        }
        let node = &self.nodes[child as usize];
        if node.parent != NO_NODE {
            // A node that is listed again by its own descendant closes a circle, which tells
            // more than that it is listed twice.
            if let Some(cycle) = circle::closed_by(self, parent, child) {
                return Err(Error::FileCycle { line, cycle });
            }
            return Err(Error::FileDuplicateChild {
                line,
                child: self.name(child),
                parent: self.name(node.parent),
                first_line: node.listed_line,
            });
        }
        self.nodes[child as usize].parent = parent;
        self.nodes[child as usize].listed_line = line;
        self.nodes[parent as usize].children.push(child);
        Ok(())
    }
}

/// Splits `host:index`, or says what is wrong with it.
fn split_name(text: &str) -> Result<(&str, u32), &'static str> {
    let (host, index) = text.rsplit_once(':').ok_or("a node is written host:index")?;
    if !HostName::is_valid(host) {
        return Err("a host name is letters, digits, '-', '.', '_', and starts with a letter or \
                    digit");
    }
    if index.is_empty() || !index.bytes().all(|b| b.is_ascii_digit()) {
        return Err("the index after \":\" is not a number");
    }
    match index.parse() {
        Ok(index) if index <= HOST_INDEX_MAX => Ok((host, index)),
        _ => Err("the index after \":\" is too large"),
    }
}

fn unexpected(line: u32, word: Word<'_>, expected: &'static str) -> Error {
    Error::FileUnexpected { line, text: excerpt(word.text()), expected }
}

fn missing_semicolon((line, after): Mention<'_>) -> Error {
    Error::FileMissingSemicolon { line, after: excerpt(after) }
}
