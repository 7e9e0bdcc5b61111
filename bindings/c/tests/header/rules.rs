//! What the header says of every function beside its own words: errors, threads, memory.
//!
//! Threads and memory follow from the arguments. The errors that a function gives beyond those of
//! its kind are in `errors.txt`; a function that can fail and is not named there is refused, as is
//! a time without its unit.

use std::collections::BTreeMap;

/// Handles that belong to a thread, and what they are called.
const BOUND: [(&str, &str); 3] = [
    ("sapwood_network_t", "network"),
    ("sapwood_stream_t", "stream"),
    ("sapwood_back_end_t", "back-end"),
];

/// How each handle is given back.
const GIVEN_BACK: [(&str, &str); 8] = [
    ("sapwood_topology_t **", "sapwood_topology_free"),
    ("sapwood_network_t **", "sapwood_network_close"),
    ("sapwood_stream_t **", "sapwood_stream_close"),
    ("sapwood_back_end_t **", "sapwood_back_end_close"),
    ("sapwood_communicator_t **", "sapwood_communicator_free"),
    ("sapwood_answer_t **", "sapwood_answer_free"),
    ("sapwood_packet_t **", "sapwood_packet_free"),
    ("sapwood_sketch_t **", "sapwood_sketch_free"),
];

/// Columns of the text of a comment.
const COLUMNS: usize = 97;

/// A function of the header.
struct Function<'a> {
    name: &'a str,
    result: &'a str,
    arguments: &'a str,
}

impl<'a> Function<'a> {
    fn of(prototype: &'a str) -> Option<Self> {
        let (before, rest) = prototype.split_once('(')?;
        let arguments = rest.rsplit_once(')')?.0;
        let at = before.rfind([' ', '*'])? + 1;
        let name = &before[at..];
        let is_function = name.starts_with("sapwood_") && !before.contains("typedef");
        is_function.then_some(Self { name, result: before[..at].trim(), arguments })
    }

    fn can_fail(&self) -> bool {
        self.arguments.contains("sapwood_error_t *error")
    }

    fn has(&self, kind: &str) -> bool {
        let is_kind = |argument: &str| argument.contains(&format!("{kind} *"));
        self.arguments.split(',').any(is_kind)
    }

    /// The handle whose thread has to call it.
    fn bound_to(&self) -> Option<&'static str> {
        let is_made = |kind: &str| self.has_place_for(kind) && !self.gives_back();
        let bound = BOUND.iter().find(|(kind, _)| self.has(kind) && !is_made(kind));
        bound.map(|(_, name)| *name).filter(|_| !self.name.ends_with("_move_to_this_thread"))
    }

    fn has_place_for(&self, kind: &str) -> bool {
        self.arguments.contains(&format!("{kind} **"))
    }

    fn gives_back(&self) -> bool {
        self.name.ends_with("_close") || self.name.ends_with("_free")
    }

    /// Whether it puts something lent into a place of the caller's.
    fn lends(&self) -> bool {
        let lent = [
            "const sapwood_packet_t **",
            "const sapwood_sketch_entry_t **",
            "const sapwood_sketch_bin_t **",
            "const sapwood_sketch_node_t **",
            "const char **",
        ];
        lent.iter().any(|kind| self.arguments.contains(kind))
    }

    fn errors(&self, table: &BTreeMap<&str, &str>) -> Result<String, String> {
        if !self.can_fail() {
            let none = if self.gives_back() || self.bound_to().is_none() && self.arguments == "void"
            {
                "none."
            } else {
                "none; what it gives says whether there was something to give."
            };
            return Ok(format!("Errors: {none}"));
        }
        let own = table.get(self.name).ok_or(format!("errors.txt does not name {}", self.name))?;
        let kind = if self.bound_to().is_some() { "USAGE THREAD FORKED" } else { "USAGE" };
        let codes: Vec<&str> = kind.split(' ').chain(own.split_whitespace()).collect();
        Ok(format!("Errors: {}, INTERNAL.", codes.join(", ")))
    }

    fn threads(&self) -> String {
        match self.bound_to() {
            Some(name) => format!("Threads: the {name}'s own."),
            None => String::from("Threads: any."),
        }
    }

    fn memory(&self) -> String {
        let given = GIVEN_BACK.iter().find(|(kind, _)| self.arguments.contains(kind));
        let is_lent = self.result.ends_with('*');
        let owned = match given {
            _ if self.gives_back() => "what the handle has lent is gone.".to_owned(),
            Some((kind, back)) if !self.arguments.contains(&format!("const {kind}")) => {
                format!("the handle is the caller's, to be given back by {back}.")
            }
            _ if is_lent || self.lends() => {
                "what it gives is the library's, lent as said above.".to_owned()
            }
            _ => "nothing is kept of what it is given.".to_owned(),
        };
        format!("Memory: {owned}")
    }

    fn check_units(&self) -> Result<(), String> {
        let times = self.arguments.split(',').filter(|one| {
            let name = one.rsplit([' ', '*']).next().unwrap_or_default();
            ["timeout", "wait", "time", "delay"].contains(&name)
        });
        match times.count() {
            0 => Ok(()),
            _ => Err(format!("{}: a time's name ends with its unit, as in timeout_ms", self.name)),
        }
    }
}

/// Adds to the comment before every function what is to be known of all of them.
pub fn document(header: &str, errors: &str) -> Result<String, String> {
    let lines = errors.lines().filter(|line| !line.starts_with('#'));
    let mut table: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once(':')).collect();
    let known = table.clone();
    let mut out: Vec<String> = Vec::new();
    let mut rest = header.lines().peekable();
    while let Some(line) = rest.next() {
        out.push(line.to_owned());
        if line.trim() != "*/" {
            continue;
        }
        let following: Vec<&str> = rest.clone().take_while(|line| !line.is_empty()).collect();
        let prototype = following.join(" ");
        let Some(function) = Function::of(&prototype).filter(|_| prototype.ends_with(';')) else {
            continue;
        };
        function.check_units()?;
        table.remove(function.name);
        out.pop();
        out.push(String::from(" *"));
        for text in [function.errors(&known)?, function.threads(), function.memory()] {
            out.extend(wrapped(&text));
        }
        out.push(String::from(" */"));
    }
    match table.keys().next() {
        Some(name) => Err(format!("errors.txt names {name}, which the header does not have")),
        None => Ok(out.join("\n") + "\n"),
    }
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::from(" *")];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if last.len() + word.len() > COLUMNS {
            lines.push(format!(" *   {word}"));
        } else {
            *last += &format!(" {word}");
        }
    }
    lines
}

#[test]
fn a_function_without_its_errors_or_a_unit_is_refused() {
    let header =
        "/**\n * Waits.\n */\nint sapwood_wait(int32_t timeout_ms, sapwood_error_t *error);\n";
    let documented = document(header, "sapwood_wait: TIMEOUT\n").expect("it is named");
    assert!(documented.contains(" * Errors: USAGE, TIMEOUT, INTERNAL.\n * Threads: any.\n"));
    assert!(document(header, "").expect_err("not named").contains("sapwood_wait"));
    assert!(document(header, "sapwood_wait: \nsapwood_other: \n").is_err());
    let without_unit = header.replace("timeout_ms", "timeout");
    assert!(document(&without_unit, "sapwood_wait: \n").expect_err("no unit").contains("unit"));
}

#[test]
fn what_belongs_to_a_thread_says_so() {
    let function = |prototype| Function::of(prototype).expect("a function");
    let open = "int sapwood_stream_open(sapwood_stream_t **stream, sapwood_network_t *network, \
                sapwood_error_t *error);";
    assert_eq!(function(open).threads(), "Threads: the network's own.");
    assert!(function(open).memory().contains("sapwood_stream_close"));
    let close = "int sapwood_stream_close(sapwood_stream_t **stream, sapwood_error_t *error);";
    assert_eq!(function(close).threads(), "Threads: the stream's own.");
    let attach =
        "int sapwood_back_end_attach(sapwood_back_end_t **back_end, sapwood_error_t *error);";
    assert_eq!(function(attach).threads(), "Threads: any.");
    let wave = "uint64_t sapwood_answer_wave(const sapwood_answer_t *answer);";
    assert_eq!(function(wave).threads(), "Threads: any.");
}
