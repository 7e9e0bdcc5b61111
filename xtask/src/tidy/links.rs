//! Links between the pages of the repository lead somewhere.

use crate::files::File;
use crate::finding::Finding;

/// Looks at the relative links of a Markdown file; links to the web are not followed.
pub fn broken(file: &File, text: &str, files: &[File]) -> Vec<Finding> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for target in targets(line) {
            let path = resolve(folder, target);
            let exists = files
                .iter()
                .any(|other| other.path == path || other.path.starts_with(&format!("{path}/")));
            if !exists {
                let text = format!("the link to {target} leads nowhere");
                findings.push(Finding::new(file.path.as_str(), index + 1, text));
            }
        }
    }
    findings
}

/// The link targets of a line that are paths, without their anchors.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

/// The path from the root of a path from `folder`.
fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(page: &str) -> usize {
        let files = [File::sample("docs/a.md", page), File::sample("docs/decisions/0001.md", "")];
        broken(&files[0], page, &files).len()
    }

    #[test]
    fn links_to_files_folders_anchors_and_the_web_are_silent() {
        let page = "[a](a.md#top) [b](decisions/) [c](../docs/decisions/0001.md) \
                    [d](https://example.org/x) [e](#here)";
        assert_eq!(count(page), 0);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        assert_eq!(count("see [a](gone.md) and [b](../a.md)"), 2);
    }
}
