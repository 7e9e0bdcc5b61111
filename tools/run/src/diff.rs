//! The differences between two texts, line by line, as `diff -u` writes them.

use std::time::Duration;

use similar::TextDiff;

/// How long the fewest differences are looked for. Beyond it, more lines than necessary may count
/// as changed; what is written still leads from one text to the other.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// How many lines that are the same stand around a difference.
const CONTEXT_LINES: usize = 3;

/// Writes what has to be changed in `old` to get `new`, under two header lines. Empty if nothing.
pub(super) fn unified(old: &[u8], new: &[u8], old_name: &str, new_name: &str) -> Vec<u8> {
    let differences = TextDiff::configure().timeout(SEARCH_MAX).diff_lines(old, new);
    let mut form = differences.unified_diff();
    let mut text = Vec::new();
    for hunk in form.context_radius(CONTEXT_LINES).iter_hunks() {
        if text.is_empty() {
            text.extend(format!("--- {old_name}\n+++ {new_name}\n").bytes());
        }
        // Hunk by hunk: the library's writer of all of them changes bytes that are not UTF-8.
        // Writing to memory cannot fail.
        let _ = hunk.to_writer(&mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        String::from_utf8(unified(old.as_bytes(), new.as_bytes(), "a", "b")).unwrap()
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), "");
        assert_eq!(diff("", ""), "");
    }

    #[test]
    fn differences_stand_among_the_lines_around_them() {
        assert_eq!(
            diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(diff("a\n", "a\nb\n"), "--- a\n+++ b\n@@ -1 +1,2 @@\n a\n+b\n");
        assert_eq!(
            diff("x", ""),
            "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn bytes_that_are_no_text_stay_as_they_are() {
        let text = unified(b"\xff\n", b"\xfe\0\n", "a", "b");
        assert_eq!(text, b"--- a\n+++ b\n@@ -1 +1 @@\n-\xff\n+\xfe\0\n");
    }

    #[test]
    fn texts_that_differ_in_too_much_are_replaced() {
        let long = |word: &str| (0..3000).map(|n| format!("{word}{n}\n")).collect::<String>();
        let text = diff(&long("a"), &long("b"));
        assert_eq!(text.lines().filter(|line| line.starts_with("-a")).count(), 3000);
        assert_eq!(text.lines().filter(|line| line.starts_with("+b")).count(), 3000);
    }
}
