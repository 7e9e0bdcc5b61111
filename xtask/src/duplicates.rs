//! Foreign packages of which more than one version is built.
//!
//! Each further version is built, shipped and kept free of faults by itself. Those that cannot be
//! avoided, since foreign packages ask for them, stand in `deny.toml` (`bans.skip`), where
//! `cargo deny` reads them, too; an entry that nothing needs any more is found as well.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::finding::Finding;

/// The part of `deny.toml` about versions.
#[derive(Deserialize)]
pub struct Bans {
    #[serde(default)]
    skip: Vec<Kept>,
}

/// A version beside which another one may be built.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// As `name@1.2.3`.
    #[serde(rename = "crate")]
    package: String,
    #[serde(rename = "reason")]
    _reason: String,
}

/// What is wrong with these packages, given as name and version; `list` is the file of the bans.
pub fn findings<'a>(
    packages: impl IntoIterator<Item = (&'a str, &'a str)>,
    bans: &Bans,
    list: &str,
) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version) in packages {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, built| built.len() > 1);
    let kept: BTreeSet<&str> = bans.skip.iter().map(|one| &*one.package).collect();
    let mut needed = BTreeSet::new();
    let mut findings = Vec::new();
    for (name, built) in versions {
        let specs = built.iter().map(|version| format!("{name}@{version}"));
        let (listed, other): (Vec<String>, Vec<String>) =
            specs.partition(|spec| kept.contains(spec.as_str()));
        needed.extend(listed);
        if other.len() > 1 {
            let text = format!(
                "is built in several versions: use one of {}, or add all but one to bans.skip of \
                 {list}, with the package that asks for it",
                other.join(", ")
            );
            findings.push(Finding::new(name, 0, text));
        }
    }
    for spec in kept.iter().filter(|spec| !needed.contains(**spec)) {
        let text = format!("bans.skip has {spec}, which is not built beside another: take it out");
        findings.push(Finding::new(list, 0, text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: [(&str, &str); 6] = [
        ("alone", "1.0.0"),
        ("random", "0.2.17"),
        ("random", "0.3.4"),
        ("random", "0.4.3"),
        ("syntax", "2.0.119"),
        ("syntax", "3.0.9"),
    ];

    fn found(skip: &[&str]) -> Vec<String> {
        let entries: Vec<String> =
            skip.iter().map(|spec| format!("{{ crate = \"{spec}\", reason = \"x\" }}")).collect();
        let bans: Bans =
            toml::from_str(&format!("skip = [{}]", entries.join(", "))).expect("a sample");
        findings(BUILT, &bans, "list").iter().map(Finding::to_string).collect()
    }

    #[test]
    fn one_version_of_each_package_needs_no_entry() {
        let kept = ["random@0.2.17", "random@0.3.4", "syntax@2.0.119"];
        assert_eq!(found(&kept), Vec::<String>::new());
    }

    #[test]
    fn a_further_version_is_found() {
        let found = found(&["random@0.2.17", "syntax@2.0.119"]);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert!(one.starts_with("random: "), "{one}");
        assert!(one.contains("use one of random@0.3.4, random@0.4.3, or"), "{one}");
    }

    #[test]
    fn an_entry_that_nothing_needs_is_found() {
        let kept =
            ["random@0.2.17", "random@0.3.4", "syntax@2.0.119", "alone@1.0.0", "syntax@1.9.0"];
        let found = found(&kept);
        let [alone, gone] = &found[..] else { panic!("{found:?}") };
        assert!(alone.starts_with("list: bans.skip has alone@1.0.0, "), "{alone}");
        assert!(gone.starts_with("list: bans.skip has syntax@1.9.0, "), "{gone}");
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        assert!(toml::from_str::<Bans>("skip = [{ crate = \"alone@1.0.0\" }]").is_err());
        assert!(toml::from_str::<Bans>("multiple-versions = \"deny\"").is_ok());
    }
}
