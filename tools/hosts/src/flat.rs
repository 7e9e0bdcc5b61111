//! Flat files of groups, as ClusterShell's `local.cfg`: `group: nodeset` on each line.

use std::collections::BTreeMap;

/// Reads the groups; several lines of one group add up.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, String>, (usize, String)> {
    let mut groups: BTreeMap<String, String> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let Some((group, nodes)) = line.split_once(':') else {
            return Err((number, format!("{line:?} is not 'group: nodes'")));
        };
        let nodes = nodes.trim();
        let known = groups.entry(group.trim().to_string()).or_default();
        if !known.is_empty() && !nodes.is_empty() {
            known.push(',');
        }
        known.push_str(nodes);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_stand_one_in_a_line() {
        let groups = parse("# all\nio: n[1-2] # two\ncompute:n[3-9]\n\nio: n10\n").unwrap();
        assert_eq!(groups["io"], "n[1-2],n10");
        assert_eq!(groups["compute"], "n[3-9]");
        assert_eq!(parse("a: b\nnonsense\n").unwrap_err().0, 2);
    }
}
