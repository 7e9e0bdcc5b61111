//! The site's groups of nodes: ClusterShell's files, so that they are written once.
//!
//! Folders are looked through in this order, and the first that defines a source wins:
//! `CLUSTERSHELL_CFGDIR`, `$XDG_CONFIG_HOME/clustershell` (or `~/.config/clustershell`),
//! `/etc/clustershell`; before all, what `SAPWOOD_GROUPS` names, a file or such a folder.
//!
//! ```text
//! groups.d/*.yaml           sources with their groups
//! groups.d/local.cfg        the source "local", one group in each line (or the file "groups")
//! groups.conf               the default source
//! ```

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sapwood_topology::Groups;

use super::{flat, yaml};
use sapwood_command_line::exit::Failure;

/// Names a file of groups, or a folder such as `/etc/clustershell`.
pub const GROUPS_VARIABLE: &str = "SAPWOOD_GROUPS";

/// The group that stands for all nodes of its source, if there is one.
const ALL: &str = "all";

/// Groups that are read when the first is asked for.
#[derive(Default)]
pub struct SiteGroups {
    read: OnceCell<Result<Read, String>>,
}

#[derive(Default)]
struct Read {
    default: Option<String>,
    sources: BTreeMap<String, yaml::Source>,
}

impl SiteGroups {
    /// The names of all sources; the default one first.
    pub fn sources(&self) -> Result<Vec<String>, Failure> {
        let read = self.read().map_err(Failure::usage)?;
        let default = read.default_source().map(ToString::to_string);
        let others = read.sources.keys().filter(|name| Some(*name) != default.as_ref());
        Ok(default.iter().chain(others).cloned().collect())
    }

    /// The groups of a source.
    ///
    /// # Errors
    /// Where no such source is configured, or what the site has cannot be read.
    pub fn names_of(&self, source: &str) -> Result<Vec<String>, Failure> {
        let names = self.names(Some(source)).map_err(Failure::usage)?;
        names.ok_or_else(|| {
            Failure::usage(format!(
                "no source of groups named {source:?} is configured; see docs/run.md"
            ))
        })
    }

    fn read(&self) -> Result<&Read, String> {
        let read = self.read.get_or_init(|| read_all(&folders()));
        read.as_ref().map_err(Clone::clone)
    }

    fn source(&self, source: Option<&str>) -> Result<Option<&yaml::Source>, String> {
        let read = self.read()?;
        let Some(name) = source.or(read.default_source()) else { return Ok(None) };
        Ok(read.sources.get(name))
    }
}

impl Groups for SiteGroups {
    fn members(&self, source: Option<&str>, group: &str) -> Result<Option<String>, String> {
        Ok(self.source(source)?.and_then(|groups| groups.get(group)).cloned())
    }

    fn all(&self, source: Option<&str>) -> Result<Option<String>, String> {
        let Some(groups) = self.source(source)? else { return Ok(None) };
        if let Some(all) = groups.get(ALL) {
            return Ok(Some(all.clone()));
        }
        let named: Vec<&str> = groups.values().map(String::as_str).collect();
        Ok(Some(
            named.iter().filter(|nodes| !nodes.is_empty()).copied().collect::<Vec<_>>().join(","),
        ))
    }

    fn names(&self, source: Option<&str>) -> Result<Option<Vec<String>>, String> {
        Ok(self.source(source)?.map(|groups| groups.keys().cloned().collect()))
    }
}

/// Names the source of groups that have none: `@io` is `@racks:io`.
pub(crate) fn with_source(text: &str, source: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, group) = rest.split_at(at + 1);
        named.push_str(before);
        let end = group.find([',', '!', '&', '^', '[', ' ']).unwrap_or(group.len());
        if !group[..end].contains([':', '@']) {
            named.push_str(source);
            named.push(':');
        }
        rest = group;
    }
    named + rest
}

impl Read {
    fn default_source(&self) -> Option<&str> {
        let named = self.default.as_deref().filter(|name| self.sources.contains_key(*name));
        let local = || self.sources.contains_key("local").then_some("local");
        let only = || self.sources.keys().next().filter(|_| self.sources.len() == 1);
        let named = named.or_else(local);
        named
            .or_else(|| self.sources.contains_key("default").then_some("default"))
            .or_else(|| only().map(String::as_str))
    }
}

fn folders() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut folders = Vec::new();
    folders.extend(variable(GROUPS_VARIABLE).map(PathBuf::from));
    folders.extend(variable("CLUSTERSHELL_CFGDIR").map(PathBuf::from));
    let home = || variable("HOME").map(|home| Path::new(&home).join(".config"));
    let user = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    folders.extend(user.map(|folder| folder.join("clustershell")));
    folders.push(PathBuf::from("/etc/clustershell"));
    folders
}

fn read_all(folders: &[PathBuf]) -> Result<Read, String> {
    let mut read = Read::default();
    for folder in folders {
        if folder.is_file() {
            read_groups(folder, &mut read)?;
            // A file that the user names goes before what the site has.
            if read.default.is_none() {
                read.default = read.default_source().map(ToString::to_string);
            }
            continue;
        }
        let parts = folder.join("groups.d");
        for path in files(&parts, &["yaml", "yml"]) {
            read_groups(&path, &mut read)?;
        }
        let flat = [folder.join("groups"), parts.join("local.cfg")];
        if let Some(path) = flat.iter().find(|path| path.is_file()) {
            read_groups(path, &mut read)?;
        }
        if read.default.is_none()
            && let Ok(text) = std::fs::read_to_string(folder.join("groups.conf"))
        {
            read.default = default_of(&text);
        }
    }
    Ok(read)
}

fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension().is_some_and(|end| endings.iter().any(|known| end == *known))
    });
    files.sort();
    files
}

fn read_groups(path: &Path, read: &mut Read) -> Result<(), String> {
    let text = super::read_file(path).map_err(|failure| failure.to_string())?;
    let fault = |(line, what)| format!("{} line {line}: {what}", path.display());
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let sources = if is_yaml {
        yaml::parse(&text).map_err(fault)?
    } else {
        BTreeMap::from([("local".to_string(), flat::parse(&text).map_err(fault)?)])
    };
    for (name, groups) in sources {
        read.sources.entry(name).or_insert(groups);
    }
    Ok(())
}

/// What `groups.conf` names as the default source.
fn default_of(text: &str) -> Option<String> {
    let mut is_main = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_main = line.eq_ignore_ascii_case("[main]");
        } else if let Some((key, value)) = line.split_once([':', '='])
            && is_main
            && key.trim() == "default"
        {
            return Some(value.trim().to_string());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_source_stands_in_the_main_section() {
        assert_eq!(
            default_of("[other]\ndefault: a\n[Main]\n# x\ndefault: roles\n").unwrap(),
            "roles"
        );
        assert_eq!(default_of("[Main]\nconfdir: /etc\n"), None);
    }

    #[test]
    fn a_folder_of_clustershell_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("groups.d")).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("groups.conf", "[Main]\ndefault: roles\n");
        write("groups.d/a.yaml", "roles:\n  io: n[1-2]\n  gpu: n9\nracks:\n  r1: n[1-4]\n");
        write("groups.d/local.cfg", "all: n[1-9]\n");
        let read = read_all(&[folder.path().to_path_buf()]).unwrap();
        let groups = SiteGroups { read: OnceCell::from(Ok(read)) };
        assert_eq!(groups.sources().unwrap(), ["roles", "local", "racks"]);
        assert_eq!(groups.members(None, "io"), Ok(Some("n[1-2]".to_string())));
        assert_eq!(groups.all(None), Ok(Some("n9,n[1-2]".to_string())));
        assert_eq!(groups.all(Some("local")), Ok(Some("n[1-9]".to_string())));
        assert_eq!(groups.members(Some("no"), "io"), Ok(None));
    }
}
