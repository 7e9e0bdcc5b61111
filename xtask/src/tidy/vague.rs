//! Words that hide what a sentence is about: pronouns for persons where a process is meant,
//! amounts that are not named, and "told" for reported and distinguished.
//!
//! "The parent", "a member" or "at most N bytes" takes their place. The rule reads whole files, so
//! that names in code are held to it as well. The words are spelled in halves here, so that this
//! file does not hold them either.

use crate::files::File;
use crate::finding::Finding;
use crate::source::{Language, is_name};

/// Each is a row of words, in lower case.
const VAGUE: [&[&str]; 16] = [
    &[concat!("some", "body")],
    &[concat!("no", "body")],
    &[concat!("any", "body")],
    &[concat!("who", "ever")],
    &["so", concat!("ma", "ny")],
    &["so", concat!("lo", "ng")],
    &["so", concat!("of", "ten")],
    &["those", concat!("w", "ho")],
    &["by", concat!("wh", "om")],
    &["for", concat!("wh", "om")],
    &["from", concat!("wh", "om")],
    &["of", concat!("wh", "om")],
    &["to", concat!("wh", "om")],
    &["with", concat!("wh", "om")],
    &["told", concat!("a", "s")],
    &["told", concat!("ap", "art")],
];
/// What may stand between two words of a row: spaces, and the marks of a comment that goes on.
const BETWEEN_WORDS: &str = " \t\r\n/!*#\\";

/// Finds each vague word of a source file or document.
pub fn words(file: &File, text: &str) -> Vec<Finding> {
    if !is_prose(file, text) {
        return Vec::new();
    }
    let words = split(text);
    let starts = (0..words.len()).filter_map(|first| {
        let row = VAGUE.iter().find(|row| stands_at(row, &words[first..], text))?;
        let text = format!("`{}`: name the process, the number or the limit", row.join(" "));
        Some(Finding::new(file.path.as_str(), words[first].line, text))
    });
    starts.collect()
}

/// Whether people read the file as text: source of any language, scripts and documents.
fn is_prose(file: &File, text: &str) -> bool {
    let is_script = text.starts_with("#!") && !file.path.ends_with(".json");
    Language::of(file.path.as_ref(), text).is_some() || file.path.ends_with(".md") || is_script
}

struct Word<'a> {
    text: &'a str,
    begin: usize,
    /// Counted from 1.
    line: usize,
}

fn split(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        for word in line.split(|character| !is_name(character)).filter(|word| !word.is_empty()) {
            // Both are slices of one text.
            let begin = word.as_ptr() as usize - text.as_ptr() as usize;
            words.push(Word { text: word, begin, line: index + 1 });
        }
    }
    words
}

/// Whether the row begins at the first of these words of `text`, over the end of a line as well.
fn stands_at(row: &[&str], words: &[Word<'_>], text: &str) -> bool {
    let is_gap = |pair: &[Word<'_>]| {
        let gap = &text[pair[0].begin + pair[0].text.len()..pair[1].begin];
        gap.chars().all(|character| BETWEEN_WORDS.contains(character))
    };
    let Some(words) = words.get(..row.len()) else { return false };
    words.iter().zip(row).all(|(word, wanted)| word.text.eq_ignore_ascii_case(wanted))
        && words.windows(2).all(is_gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let findings = words(&File::sample(path, text), text);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_word_is_found_in_comments_strings_and_documents() {
        for row in VAGUE {
            let row = row.join(" ");
            assert_eq!(lines("a.rs", &format!("//! A.\n/// {row} waits.\n")), [2], "{row}");
            assert_eq!(lines("a.py", &format!("error = \"{row}\"\n")), [1], "{row}");
            assert_eq!(lines("include/a.h", &format!("/* {row}'s. */\n")), [1], "{row}");
            assert_eq!(lines("docs/a.md", &format!("{}\n", row.to_uppercase())), [1], "{row}");
            assert_eq!(lines("testbed/up", &format!("#!/bin/sh\n# {row}\n")), [2], "{row}");
        }
    }

    #[test]
    fn a_row_is_found_over_the_end_of_a_line() {
        for row in VAGUE.iter().filter(|row| row.len() == 2) {
            let (first, second) = (row[0], row[1]);
            assert_eq!(lines("a.rs", &format!("/// {first}\n    /// {second}\n")), [1]);
            assert_eq!(lines("a.h", &format!("/* {first}\n * {second} */\n")), [1]);
            assert_eq!(lines("a.md", &format!("{first}. {second}\n")), [0; 0], "two sentences");
        }
    }

    #[test]
    fn longer_words_and_other_rows_are_left_alone() {
        assert!(lines("a.rs", "// As long as there are many, often also long.\n").is_empty());
        for row in VAGUE.iter().filter(|row| row.len() == 1) {
            assert!(lines("a.rs", &format!("fn is_{}_left() {{}}\n", row[0])).is_empty());
        }
    }

    #[test]
    fn data_is_left_alone() {
        let text = format!("// {}\n", VAGUE[0][0]);
        assert!(lines("conformance/a.txt", &text).is_empty());
    }
}
