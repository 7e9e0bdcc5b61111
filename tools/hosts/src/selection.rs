//! The options with which a command selects its hosts, and what they come to.
//!
//! Owns the order in which targets are looked for: the command line; a file that `WCOLL` or
//! `SAPWOOD_HOSTFILE` names; the allocation of a resource manager around us.

use std::ops::Range;
use std::path::{Path, PathBuf};

use sapwood_topology::{HostList, NodeSet};

use super::groups::{SiteGroups, with_source};
use super::tree::TreeTerms;
use crate::launching::Launching;
use sapwood_command_line::exit::Failure;

/// Which hosts, and how they are reached.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Use these hosts: node[001-128], rack[1-4]n[01-32], @group; `,` adds, `!` excludes, `&` keeps
    /// common ones, `^` those of exactly one set; also ^FILE for the hosts that FILE lists, - for
    /// those that standard input lists, and after a comma -NODESET for hosts to exclude
    /// (repeatable).
    #[arg(short = 'w', long = "nodes", value_name = "NODESET")]
    pub nodes: Vec<String>,
    /// Exclude these hosts; ^FILE excludes those that FILE lists (repeatable).
    #[arg(short = 'x', long = "exclude", value_name = "NODESET")]
    pub exclude: Vec<String>,
    /// Use the hosts of this group, GROUP or SOURCE:GROUP (repeatable).
    #[arg(short = 'g', long = "group", value_name = "GROUP")]
    pub group: Vec<String>,
    /// Use all hosts of the group source that -s names, or else of the default group source.
    #[arg(short = 'a', long)]
    pub all: bool,
    /// The group source of -a, and of groups that are written without a source.
    #[arg(short = 's', long = "source", alias = "groupsource", value_name = "SOURCE")]
    pub source: Option<String>,
    /// Use the hosts that this file lists (repeatable).
    #[arg(long, visible_alias = "machinefile", value_name = "FILE")]
    pub hostfile: Vec<PathBuf>,
    /// Use N of the hosts, chosen at random.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pick: Option<u32>,
}

/// How hosts are reached, and by which tree.
#[derive(Clone, Debug, clap::Args)]
pub struct Reach {
    #[command(flatten)]
    pub tree: TreeTerms,
    /// Log in to the hosts as this user.
    #[arg(short = 'l', long, value_name = "USER")]
    pub user: Option<String>,
    #[command(flatten)]
    pub launching: Launching,
}

impl Reach {
    /// In which way hosts are reached, as one line: a command uses a tree that another process
    /// keeps up only where both were to reach their hosts in the same way, as the same user.
    pub fn terms(&self) -> String {
        self.launching.terms(self.user.as_deref())
    }

    /// Whether the command line itself says as which user or in which allocation, so that no other
    /// way will do. What the environment says may be meant for other commands.
    pub fn is_particular(&self) -> bool {
        self.user.is_some() || self.launching.is_particular()
    }
}

impl Selection {
    /// The hosts, in order.
    ///
    /// # Errors
    /// Where nothing says which hosts, or what says so cannot be read.
    pub fn resolve(&self) -> Result<NodeSet, Failure> {
        self.resolve_or(surroundings)
    }

    /// As [`Selection::resolve`], with something else to ask where the command line names nothing.
    ///
    /// # Errors
    /// As [`Selection::resolve`], and what that says.
    pub fn resolve_or(
        &self,
        otherwise: impl FnOnce(&SiteGroups) -> Result<NodeSet, Failure>,
    ) -> Result<NodeSet, Failure> {
        let groups = SiteGroups::default();
        // Also where no set names a group: a source that is misspelled is no wish for no source.
        if let Some(source) = &self.source {
            groups.names_of(source)?;
        }
        let mut hosts = self.named(&groups, otherwise)?;
        for set in self.left_out() {
            hosts = hosts.difference(&self.read(&set, &groups)?);
        }
        if hosts.is_empty() {
            return Err(Failure::usage(
                "no host is left; check the sets and -x with 'sapwood nodeset expand'",
            ));
        }
        match self.pick {
            Some(count) => pick(&hosts, count as usize),
            None => Ok(hosts),
        }
    }

    /// Whether the command line itself says which hosts these are, in words that mean the same
    /// hosts again: no file, standard input, or chance does.
    pub fn stays(&self) -> bool {
        let is_listed = |part: Part<'_>| matches!(part, Part::Listed(_));
        let is_read = self.meant().chain(self.left_out()).any(is_listed);
        self.names_something() && self.hostfile.is_empty() && self.pick.is_none() && !is_read
    }

    fn names_something(&self) -> bool {
        let names_none = self.meant().next().is_none();
        self.all || !(names_none && self.group.is_empty() && self.hostfile.is_empty())
    }

    /// What `-w` names.
    fn meant(&self) -> impl Iterator<Item = Part<'_>> {
        let parts = self.nodes.iter().flat_map(|text| parts(text));
        parts.filter(|part| !matches!(part, Part::LeftOut(_)))
    }

    /// What `-x` names, and `-w` with a dash in front.
    fn left_out(&self) -> Vec<Part<'_>> {
        let with_dash = self.nodes.iter().flat_map(|text| parts(text));
        let with_dash = with_dash.filter_map(|part| match part {
            Part::LeftOut(text) => Some(Part::of(text)),
            _ => None,
        });
        with_dash.chain(self.exclude.iter().flat_map(|text| parts(text))).collect()
    }

    fn read(&self, part: &Part<'_>, groups: &SiteGroups) -> Result<NodeSet, Failure> {
        match part {
            Part::Listed(path) => file(Path::new(path), groups),
            Part::Set(text) | Part::LeftOut(text) => {
                let text = match &self.source {
                    Some(source) => &with_source(text, source),
                    None => *text,
                };
                NodeSet::parse(text, groups).map_err(Failure::usage)
            }
        }
    }

    fn named(
        &self,
        groups: &SiteGroups,
        otherwise: impl FnOnce(&SiteGroups) -> Result<NodeSet, Failure>,
    ) -> Result<NodeSet, Failure> {
        let parse = |text: &str| self.read(&Part::Set(text), groups);
        let mut hosts = NodeSet::default();
        if !self.names_something() {
            return otherwise(groups);
        }
        for part in self.meant() {
            hosts = hosts.union(&self.read(&part, groups)?);
        }
        for group in &self.group {
            hosts = hosts.union(&parse(&format!("@{}", group.trim_start_matches('@')))?);
        }
        if self.all {
            hosts = hosts.union(&parse("@*")?);
        }
        for path in &self.hostfile {
            hosts = hosts.union(&file(path, groups)?);
        }
        Ok(hosts)
    }
}

/// A part of what -w or -x names.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Set(&'a str),
    /// The hosts that a file lists; `-` is standard input.
    Listed(&'a str),
    /// Hosts to leave out.
    LeftOut(&'a str),
}

impl<'a> Part<'a> {
    fn of(text: &'a str) -> Self {
        match (text.strip_prefix('^'), text.strip_prefix('-')) {
            (Some(path), _) => Self::Listed(path),
            (_, Some("")) => Self::Listed("-"),
            (_, Some(set)) => Self::LeftOut(set),
            _ => Self::Set(text),
        }
    }
}

/// The parts of a text: its files, its sets to leave out, and what stands between them, of which
/// the operators apply from left to right.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    let mut set: Option<Range<usize>> = None;
    for piece in pieces(text) {
        let part = Part::of(text[piece.clone()].trim());
        if matches!(part, Part::Set(_)) {
            set = Some(set.map_or(piece.start, |set| set.start)..piece.end);
            continue;
        }
        all.extend(set.take().map(|set| Part::Set(&text[set])));
        all.push(part);
    }
    all.extend(set.map(|set| Part::Set(&text[set])));
    all
}

/// What stands between the commas outside of brackets.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let (mut depth, mut begin) = (0_usize, 0);
    let mut pieces = Vec::new();
    for (at, sign) in text.char_indices() {
        match sign {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(begin..at);
                begin = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(begin..text.len());
    pieces
}

/// The hosts that a file lists; `-` is standard input.
pub(crate) fn file(path: &Path, groups: &SiteGroups) -> Result<NodeSet, Failure> {
    let text = if path == Path::new("-") {
        super::read_text(std::io::stdin().lock(), "standard input")?
    } else {
        super::read_file(path)?
    };
    let name = path.display().to_string();
    let list = HostList::from_file_text(&text, &name, groups).map_err(Failure::usage)?;
    Ok(list.names())
}

/// The hosts that the environment names.
fn surroundings(groups: &SiteGroups) -> Result<NodeSet, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    for name in ["WCOLL", "SAPWOOD_HOSTFILE"] {
        if let Some(path) = variable(name) {
            return file(Path::new(&path), groups);
        }
    }
    for name in ["SLURM_JOB_NODELIST", "SLURM_NODELIST"] {
        if let Some(nodes) = variable(name) {
            let counts = variable("SLURM_TASKS_PER_NODE");
            let list = HostList::from_slurm(&nodes, counts.as_deref());
            return Ok(list.map_err(Failure::usage)?.names());
        }
    }
    if let Some(path) = variable("PBS_NODEFILE") {
        return file(Path::new(&path), groups);
    }
    Err(Failure::usage(
        "no hosts are given: use -w NODESET, -g GROUP, -a or --hostfile FILE, set WCOLL or \
         SAPWOOD_HOSTFILE, or run inside an allocation",
    ))
}

/// Some of the hosts, each equally likely.
pub fn pick(hosts: &NodeSet, count: usize) -> Result<NodeSet, Failure> {
    let mut names: Vec<String> = hosts.iter().collect();
    let count = count.min(names.len());
    for place in 0..count {
        let mut random = [0_u8; 8];
        let failed = |error| Failure::own(&format!("the system gives no random numbers: {error}"));
        getrandom::fill(&mut random).map_err(failed)?;
        let left = (names.len() - place) as u64;
        names.swap(place, place + (u64::from_le_bytes(random) % left) as usize);
    }
    names.truncate(count);
    Ok(names.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_parts_that_pdsh_sees_in_it() {
        use Part::{LeftOut, Listed, Set};
        assert_eq!(parts("n[1,3-5],m1!m2"), [Set("n[1,3-5],m1!m2")]);
        assert_eq!(parts("n[1,3-5],-n3,^f"), [Set("n[1,3-5]"), LeftOut("n3"), Listed("f")]);
        assert_eq!(parts("n[1-9],@io&@up,-n3"), [Set("n[1-9],@io&@up"), LeftOut("n3")]);
        assert_eq!(parts("-n3,n1,n2,^f,n4"), [LeftOut("n3"), Set("n1,n2"), Listed("f"), Set("n4")]);
        assert_eq!(parts("-n[1,2]"), [LeftOut("n[1,2]")]);
        assert_eq!(parts("-"), [Listed("-")]);
        assert_eq!(parts("^-"), [Listed("-")]);
        assert_eq!(parts("n1^n2"), [Set("n1^n2")]);
    }

    #[test]
    fn sets_with_a_dash_are_left_out_as_those_of_the_option_are() {
        let nodes = ["n[1-9],-n5", "-n6"].map(str::to_owned).into();
        let selection = Selection { nodes, exclude: vec!["n[7-8]".into()], ..Selection::default() };
        assert_eq!(selection.resolve().unwrap().to_string(), "n[1-4,9]");
        assert!(selection.stays());
        let alone = Selection { nodes: vec!["-n5".into()], ..Selection::default() };
        assert!(!alone.stays());
    }

    #[test]
    fn a_source_that_is_not_there_is_refused_though_no_group_is_named() {
        let source = Some("no-such-source".to_owned());
        let selection = Selection { nodes: vec!["n1".into()], source, ..Selection::default() };
        let text = selection.resolve().unwrap_err().to_string();
        assert!(text.contains("no source of groups named \"no-such-source\""), "{text}");
    }
}
