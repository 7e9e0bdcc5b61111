//! Ranks of which no file can be read: which they are, why, and what is not known without them.

use std::collections::BTreeMap;
use std::path::Path;

use sapwood::RankSet;
use sapwood_report::ranks_text;

/// Different reasons that are told, at most.
const REASONS_MAX: usize = 3;
/// The reason of a rank of which there is no file at all.
const NO_FILE: &str = "none is there";

/// Why no file of a rank can be read, by the rank that its name tells.
pub(super) type Reasons = BTreeMap<u32, String>;

/// A line for the ranks that have no file that can be read, with the reasons.
pub(super) fn without_file(ranks: &RankSet, reasons: &Reasons, folder: &Path) -> String {
    let mut kinds: BTreeMap<&str, RankSet> = BTreeMap::new();
    for rank in ranks.iter() {
        let reason = reasons.get(&rank).map_or(NO_FILE, String::as_str);
        kinds.entry(reason).or_default().insert(rank);
    }
    let is_one = kinds.len() == 1;
    let mut told: Vec<String> = kinds
        .iter()
        .take(REASONS_MAX)
        .map(|(reason, some)| match is_one {
            true => (*reason).to_owned(),
            false => format!("{}: {reason}", ranks_text(&some.to_string())),
        })
        .collect();
    if kinds.len() > REASONS_MAX {
        told.push(format!("and {} more", kinds.len() - REASONS_MAX));
    }
    format!(
        "{}: no file in '{}' that can be read: {}",
        ranks_text(&ranks.to_string()),
        folder.display(),
        told.join("; ")
    )
}

/// A line for what only their files tell.
pub(super) fn what_they_tell(ranks: &RankSet) -> String {
    let (take, files) = if ranks.len() == 1 {
        ("it takes", "its file tells")
    } else {
        ("they take", "their files tell")
    };
    let ranks = ranks_text(&ranks.to_string());
    format!(
        "whether others wait for {ranks}, and which rank came last where {take} part: only {files}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_without_files_are_told_by_reason() {
        let ranks: RankSet = "0-2,7".parse().expect("ranks");
        let folder = Path::new("events");
        let mut reasons = Reasons::new();
        let told = |reasons: &Reasons| without_file(&ranks, reasons, folder);
        let head = "ranks 0-2,7: no file in 'events' that can be read: ";
        assert_eq!(told(&reasons), head.to_owned() + "none is there");
        reasons.extend([(0, "it is cut".to_owned()), (7, "it is cut".to_owned())]);
        // Of another program, as it seems.
        reasons.insert(9, "it is of a program with 12 ranks".to_owned());
        let kinds = "ranks 0,7: it is cut; ranks 1-2: none is there";
        assert_eq!(told(&reasons), head.to_owned() + kinds);
        reasons.extend([(1, "a".to_owned()), (2, "b".to_owned()), (7, "c".to_owned())]);
        let kinds = "rank 1: a; rank 2: b; rank 7: c; and 1 more";
        assert_eq!(told(&reasons), head.to_owned() + kinds);
    }

    #[test]
    fn what_is_missing_without_them_is_told() {
        let line = |ranks: &str| what_they_tell(&ranks.parse().expect("ranks"));
        let one = "whether others wait for rank 3, and which rank came last where it takes part: \
                   only its file tells";
        assert_eq!(line("3"), one);
        assert!(line("1-2").contains("ranks 1-2, and which rank came last where they take part"));
    }
}
