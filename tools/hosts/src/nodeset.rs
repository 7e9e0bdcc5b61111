//! `sapwood nodeset`: the calculator for sets of host names, as scripts use it.
//!
//! Owns the command line and the output. The language is `sapwood-topology`'s, the site's groups
//! are in `hosts`.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use sapwood_topology::{Folding, Groups, NODESET_NAME_BYTES_MAX, NodeSet, uncommented};
use serde_json::json;

use crate::groups::{SiteGroups, with_source};
use crate::read_text;
use crate::selection::{file, pick};
use sapwood_command_line::exit::{Failure, print};

/// What `sapwood nodeset` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Write every name.
    Expand {
        #[command(flatten)]
        sets: Sets,
        #[command(flatten)]
        parts: Parts,
        /// Separator of the names.
        #[arg(
            short = 'S',
            long,
            value_name = "TEXT",
            default_value = " ",
            conflicts_with = "json"
        )]
        separator: String,
        #[command(flatten)]
        shown: Shown,
    },
    /// Write the names as one short set.
    Fold(Folded),
    /// Count the names.
    Count {
        #[command(flatten)]
        sets: Sets,
        #[command(flatten)]
        parts: Parts,
        #[command(flatten)]
        shown: Shown,
    },
    /// Write the position of a name in the set, from 0.
    Index {
        /// The name.
        name: String,
        #[command(flatten)]
        sets: Sets,
    },
    /// Divide the set into PARTS parts of equal size, one per line.
    Split {
        /// Number of parts.
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        parts: u32,
        #[command(flatten)]
        sets: Sets,
        #[command(flatten)]
        terms: FoldingTerms,
        #[command(flatten)]
        shown: Shown,
    },
    /// Write the names that all sets have.
    Intersect(Folded),
    /// Write the names of the first set that no other has.
    Difference(Folded),
    /// Write the symmetric difference: the names that exactly one of two sets has; more than two
    /// sets are taken from left to right.
    Xor(Folded),
    /// Write the set with groups in place of their members.
    Regroup {
        #[command(flatten)]
        sets: Sets,
        #[command(flatten)]
        terms: FoldingTerms,
    },
    /// List the groups of a source, or of all sources.
    Groups {
        /// The group source [default: all sources].
        #[arg(short = 's', long = "source", value_name = "SOURCE")]
        source: Option<String>,
        /// Also write the members of each group.
        #[arg(short = 'v', long)]
        members: bool,
    },
}

/// Sets, and what is done to them before they are written.
#[derive(clap::Args)]
struct Sets {
    /// Nodesets, or ^FILE for the hosts that FILE lists; without any, or for -, they are read from
    /// standard input.
    #[arg(value_name = "NODESET")]
    sets: Vec<String>,
    /// Add all nodes of the group source that -s names, or else of the default group source.
    #[arg(short = 'a', long)]
    all: bool,
    /// The group source.
    #[arg(short = 's', long = "source", value_name = "SOURCE")]
    source: Option<String>,
    /// Then remove these nodes (repeatable).
    #[arg(short = 'x', long, value_name = "NODESET")]
    exclude: Vec<String>,
    /// Then keep only nodes that are also in this set (repeatable).
    #[arg(short = 'i', long, value_name = "NODESET")]
    intersection: Vec<String>,
    /// Then take the symmetric difference with this set (repeatable).
    #[arg(short = 'X', long, value_name = "NODESET")]
    xor: Vec<String>,
    /// Then keep the names at these positions, such as 0,2-5.
    #[arg(short = 'I', long, value_name = "RANGES")]
    slice: Option<String>,
    /// Then keep N of the names, chosen at random.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pick: Option<u32>,
}

/// Into which parts a set is divided.
#[derive(clap::Args)]
struct Parts {
    /// Write N parts of equal size, one per line.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "contiguous")]
    split: Option<u32>,
    /// Write each contiguous part of the set, such as n[1-3]m[5-6], on its own line.
    #[arg(long)]
    contiguous: bool,
}

/// How names are folded.
#[derive(clap::Args)]
struct FoldingTerms {
    /// Fold only along these numbers of a name: 1 is the first, -1 the last.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_hyphen_values = true,
          value_parser = Axes::parse)]
    axis: Vec<Axes>,
    /// Fold to a range with a step, such as 0-98/2, where at least N numbers have that distance.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    autostep: Option<u32>,
}

/// How what comes out is written.
#[derive(clap::Args)]
struct Shown {
    /// Format of each name (before folding) or of a count; %s stands for it, %% for a percent sign.
    #[arg(short = 'O', long, value_name = "FORMAT", default_value = "%s", conflicts_with = "json",
          value_parser = NameFormat::parse)]
    output_format: NameFormat,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Numbers of a name, such as 2, 1-3 or -1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Axes(Vec<i32>);

impl Axes {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<i32>().ok();
        let bounds = |text: &str| {
            let (first, last) = text.split_once('-')?;
            Some(number(first)?..=number(last)?)
        };
        let range = bounds(text).filter(|range| {
            // No name has more numbers than bytes.
            !range.is_empty() && *range.start() > 0 && *range.end() <= NODESET_NAME_BYTES_MAX as i32
        });
        let numbers = number(text).map(|one| vec![one]).or_else(|| range.map(Iterator::collect));
        let numbers = numbers.ok_or("give numbers such as 2, 1-3 or -1, with commas between them");
        Ok(Self(numbers?))
    }
}

/// What stands between the places of a name or a count: one piece more than there are places.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NameFormat(Vec<String>);

impl NameFormat {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.replace("\\n", "\n");
        let (mut pieces, mut piece) = (Vec::new(), String::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' => match characters.next() {
                    Some('s') => pieces.push(std::mem::take(&mut piece)),
                    Some('%') => piece.push('%'),
                    _ => return Err("behind % only s and % are known".into()),
                },
                other => piece.push(other),
            }
        }
        if pieces.is_empty() {
            return Err("it has no %s for the name or the count".into());
        }
        pieces.push(piece);
        Ok(Self(pieces))
    }

    /// Whether it changes nothing.
    fn is_plain(&self) -> bool {
        self.0.iter().map(String::len).eq([0, 0])
    }

    fn written(&self, value: &str) -> String {
        self.0.join(value)
    }
}

/// Sets that come to one set, which is written folded.
#[derive(clap::Args)]
struct Folded {
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    parts: Parts,
    #[command(flatten)]
    terms: FoldingTerms,
    #[command(flatten)]
    shown: Shown,
}

/// Calculates and writes.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let groups = SiteGroups::default();
    match &arguments.action {
        Action::Expand { sets, parts, separator, shown } => {
            let separator = separator.replace("\\n", "\n").replace("\\t", "\t");
            let output = Output::of(Form::Names { separator }, shown, Folding::default());
            output.write(sets, parts, &groups, union)
        }
        Action::Count { sets, parts, shown } => {
            let output = Output::of(Form::Count, shown, Folding::default());
            output.write(sets, parts, &groups, union)
        }
        Action::Fold(folded) => folded.write(&groups, union),
        Action::Intersect(folded) => folded.write(&groups, NodeSet::intersection),
        Action::Difference(folded) => folded.write(&groups, NodeSet::difference),
        Action::Xor(folded) => folded.write(&groups, NodeSet::symmetric_difference),
        Action::Split { parts, sets, terms, shown } => {
            let set = sets.gather(&groups, union)?;
            let output = Output::of(Form::Folded, shown, terms.folding());
            output.write_parts(set.split(*parts as usize).into_iter())
        }
        Action::Index { name, sets } => {
            let set = sets.gather(&groups, union)?;
            let place = set.iter().position(|one| one == *name);
            let place =
                place.ok_or_else(|| Failure::usage(format!("{name:?} is not in the set")))?;
            print(&format!("{place}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Regroup { sets, terms } => {
            let set = sets.gather(&groups, union)?;
            let folding = terms.folding();
            check_axes(numbers_max(&set, &folding), &folding)?;
            regroup(&set, sets.source.as_deref(), &folding, &groups)
        }
        Action::Groups { source, members } => list(source.as_deref(), *members, &groups),
    }
}

/// How two sets come to one.
type Combine = fn(&NodeSet, &NodeSet) -> NodeSet;

fn union(one: &NodeSet, other: &NodeSet) -> NodeSet {
    one.union(other)
}

impl FoldingTerms {
    fn folding(&self) -> Folding {
        Folding {
            step_count_min: self.autostep.map(|least| least as usize),
            axes: self.axis.iter().flat_map(|axes| axes.0.clone()).collect(),
        }
    }
}

impl Parts {
    fn of<'a>(
        &self,
        set: &'a NodeSet,
        folding: &'a Folding,
    ) -> Box<dyn Iterator<Item = NodeSet> + 'a> {
        match self.split {
            Some(parts) => Box::new(set.split(parts as usize).into_iter()),
            // A set without names is written, too.
            None if self.contiguous && !set.is_empty() => Box::new(set.contiguous(folding)),
            None => Box::new(std::iter::once(set.clone())),
        }
    }
}

impl Folded {
    fn write(&self, groups: &SiteGroups, combine: Combine) -> Result<ExitCode, Failure> {
        let output = Output::of(Form::Folded, &self.shown, self.terms.folding());
        output.write(&self.sets, &self.parts, groups, combine)
    }
}

impl Sets {
    /// Reads all sets and puts them together.
    fn gather(&self, groups: &SiteGroups, combine: Combine) -> Result<NodeSet, Failure> {
        if let Some(source) = &self.source {
            groups.names_of(source)?;
        }
        let of_source = |text: &str| match &self.source {
            Some(source) => with_source(text, source),
            None => text.to_string(),
        };
        let parse = |text: &str| NodeSet::parse(&of_source(text), groups).map_err(Failure::usage);
        // A whole argument only: within a list, unlike in `-w`, it is not read.
        let read = |text: &str| match text.strip_prefix('^') {
            Some(path) => file(Path::new(path), groups),
            None => parse(text),
        };
        let mut all: Option<NodeSet> = None;
        let mut add = |set: NodeSet| {
            all = Some(match all.take() {
                Some(before) => combine(&before, &set),
                None => set,
            });
        };
        if self.all {
            add(parse("@*")?);
        }
        let has_nothing = self.sets.is_empty() && !self.all;
        if has_nothing && std::io::stdin().is_terminal() {
            return Err(Failure::usage("a nodeset is missing; see 'sapwood nodeset --help'"));
        }
        for text in self.sets.iter().map(String::as_str).chain(has_nothing.then_some("-")) {
            if text == "-" {
                let text = read_text(std::io::stdin().lock(), "standard input")?;
                let lines: Vec<&str> = text.lines().map(uncommented).collect();
                add(parse(&lines.join("\n"))?);
            } else {
                add(read(text)?);
            }
        }
        let mut set = all.unwrap_or_default();
        for text in &self.exclude {
            set = set.difference(&read(text)?);
        }
        for text in &self.intersection {
            set = set.intersection(&read(text)?);
        }
        for text in &self.xor {
            set = set.symmetric_difference(&read(text)?);
        }
        if let Some(places) = &self.slice {
            set = set.slice(places).map_err(Failure::usage)?;
        }
        match self.pick {
            Some(count) => pick(&set, count as usize),
            None => Ok(set),
        }
    }
}

/// How a set is written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Names { separator: String },
    Folded,
    Count,
}

/// All that says how sets are written.
struct Output {
    form: Form,
    /// Of each name, or of a count.
    format: NameFormat,
    is_json: bool,
    folding: Folding,
}

impl Output {
    fn of(form: Form, shown: &Shown, folding: Folding) -> Self {
        Self { form, format: shown.output_format.clone(), is_json: shown.json, folding }
    }

    /// Writes the parts of what the sets come to.
    fn write(
        &self,
        sets: &Sets,
        parts: &Parts,
        groups: &SiteGroups,
        combine: Combine,
    ) -> Result<ExitCode, Failure> {
        let set = sets.gather(groups, combine)?;
        self.write_parts(parts.of(&set, &self.folding))
    }

    fn write_parts(&self, parts: impl Iterator<Item = NodeSet>) -> Result<ExitCode, Failure> {
        let (mut text, mut objects, mut numbers) = (String::new(), Vec::new(), 0);
        for part in parts {
            let part = self.formatted(part)?;
            numbers = numbers.max(numbers_max(&part, &self.folding));
            if self.is_json {
                objects.push(self.as_json(&part));
            } else {
                text.push_str(&self.as_text(&part));
                text.push('\n');
            }
        }
        check_axes(numbers, &self.folding)?;
        if self.is_json {
            text = json!({ "schema": "sapwood.nodeset/1", "sets": objects }).to_string();
            text.push('\n');
        }
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn as_text(&self, set: &NodeSet) -> String {
        let written = |name: &str| self.format.written(name);
        let names = || set.iter().map(|name| written(&name)).collect::<Vec<String>>();
        match &self.form {
            Form::Folded => set.fold(&self.folding),
            Form::Count => written(&set.len().to_string()),
            Form::Names { separator } => names().join(separator),
        }
    }

    /// What is to be folded: the set of the names as the format has them.
    fn formatted(&self, set: NodeSet) -> Result<NodeSet, Failure> {
        if self.form != Form::Folded || self.format.is_plain() {
            return Ok(set);
        }
        let names: Vec<String> = set.iter().map(|name| self.format.written(&name)).collect();
        NodeSet::of_names(names.iter().map(String::as_str)).map_err(Failure::usage)
    }

    fn as_json(&self, set: &NodeSet) -> serde_json::Value {
        let mut object = json!({ "count": set.len(), "nodes": set.fold(&self.folding) });
        if matches!(self.form, Form::Names { .. }) {
            object["names"] = set.iter().collect();
        }
        object
    }
}

/// The most numbers that a name of a set has which is folded along chosen ones; 0 where all are.
fn numbers_max(set: &NodeSet, folding: &Folding) -> usize {
    if folding.axes.is_empty() { 0 } else { set.numbers_max() }
}

/// Whether sets are folded along a number that one of their names has: there are at most as many.
/// Without numbers there is nothing to fold.
fn check_axes(most: usize, folding: &Folding) -> Result<(), Failure> {
    let is_there = |axis: &i32| (1..=most).contains(&(axis.unsigned_abs() as usize));
    if most == 0 || folding.axes.iter().any(is_there) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--axis: no name of the set has such a number; give one from 1 to {most}, or from -{most} \
         to -1"
    )))
}

/// Puts groups in the place of their members, the largest first.
fn regroup(
    set: &NodeSet,
    source: Option<&str>,
    folding: &Folding,
    groups: &SiteGroups,
) -> Result<ExitCode, Failure> {
    let names = groups.names(source).map_err(Failure::usage)?;
    let names = names
        .ok_or_else(|| Failure::usage("no source of groups is configured; see docs/run.md"))?;
    let prefix = source.map_or_else(|| "@".to_string(), |source| format!("@{source}:"));
    let mut known = Vec::new();
    for name in names {
        let text = format!("{prefix}{name}");
        let members = NodeSet::parse(&text, groups).map_err(Failure::usage)?;
        if !members.is_empty() && members.difference(set).is_empty() {
            known.push((text, members));
        }
    }
    known.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    let (mut rest, mut words) = (set.clone(), Vec::new());
    for (text, members) in known {
        if members.difference(&rest).is_empty() {
            rest = rest.difference(&members);
            words.push(text);
        }
    }
    words.sort();
    if !rest.is_empty() {
        words.push(rest.fold(folding));
    }
    print(&format!("{}\n", words.join(",")))?;
    Ok(ExitCode::SUCCESS)
}

fn list(source: Option<&str>, members: bool, groups: &SiteGroups) -> Result<ExitCode, Failure> {
    let sources = match source {
        Some(source) => vec![source.to_string()],
        None => groups.sources()?,
    };
    let mut text = String::new();
    for source in sources {
        for name in groups.names_of(&source)? {
            let group = format!("@{source}:{name}");
            let nodes = if members {
                format!(" {}", NodeSet::parse(&group, groups).map_err(Failure::usage)?)
            } else {
                String::new()
            };
            text.push_str(&format!("{group}{nodes}\n"));
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
