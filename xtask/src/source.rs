//! Splits a source file into what the compiler reads and what people read.
//!
//! Owns the one small scanner that knows comments, strings and character literals of Rust, C and
//! Python. Every check that looks for a word in code works on a [`Masked`] copy, so that a word in
//! a comment or a string neither triggers nor hides a finding. It is a scanner and not a parser: it
//! knows nothing of items, types or indentation.

use std::path::Path;

/// A language that the checks can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    C,
    Python,
}

impl Language {
    /// Tells the language by the file's extension or, without one, by its `#!` line.
    pub fn of(path: &Path, text: &str) -> Option<Language> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => Some(Language::Rust),
            Some("c" | "h" | "cpp" | "hpp") => Some(Language::C),
            Some("py") => Some(Language::Python),
            Some(_) => None,
            None => {
                let first = text.lines().next().unwrap_or("");
                (first.starts_with("#!") && first.contains("python")).then_some(Language::Python)
            }
        }
    }
}

/// Two copies of one file, each with the same lines and columns as the file.
#[derive(Debug)]
pub struct Masked {
    /// The code: comments and the insides of strings are blanks.
    pub code: String,
    /// The comments: everything else is blank.
    pub comments: String,
}

/// Blanks comments and strings out of `text`.
pub fn mask(text: &str, language: Language) -> Masked {
    let mut scanner = Scanner {
        characters: text.chars().collect(),
        at: 0,
        code: String::with_capacity(text.len()),
        comments: String::new(),
    };
    while scanner.at < scanner.characters.len() {
        match language {
            Language::Rust => scanner.rust(),
            Language::C => scanner.c(),
            Language::Python => scanner.python(),
        }
    }
    Masked { code: scanner.code, comments: scanner.comments }
}

/// True for a character that may stand inside a name.
pub fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Text,
}

/// Whether a comment may hold another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comments {
    Nest,
    DoNotNest,
}

struct Scanner {
    characters: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

impl Scanner {
    fn rust(&mut self) {
        if self.sees("//") {
            self.line_comment();
        } else if self.sees("/*") {
            self.block_comment(Comments::Nest);
        } else if let Some(hashes) = self.raw_string_hashes() {
            self.raw_string(hashes);
        } else if self.sees("\"") {
            self.quoted("\"");
        } else if self.sees("'") && self.is_character_literal() {
            self.quoted("'");
        } else {
            self.take(1, Kind::Code);
        }
    }

    fn c(&mut self) {
        if self.sees("//") {
            self.line_comment();
        } else if self.sees("/*") {
            self.block_comment(Comments::DoNotNest);
        } else if self.sees("\"") {
            self.quoted("\"");
        } else if self.sees("'") {
            self.quoted("'");
        } else {
            self.take(1, Kind::Code);
        }
    }

    fn python(&mut self) {
        if self.sees("#") {
            self.line_comment();
            return;
        }
        for quote in ["\"\"\"", "'''", "\"", "'"] {
            if self.sees(quote) {
                self.quoted(quote);
                return;
            }
        }
        self.take(1, Kind::Code);
    }

    fn sees(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, wanted)| self.peek(ahead) == Some(wanted))
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    /// Copies `count` characters to the side that `kind` names and blanks to the other.
    fn take(&mut self, count: usize, kind: Kind) {
        for _ in 0..count {
            let Some(character) = self.peek(0) else { return };
            let blank = if character == '\n' { '\n' } else { ' ' };
            self.code.push(if matches!(kind, Kind::Code) { character } else { blank });
            self.comments.push(if matches!(kind, Kind::Comment) { character } else { blank });
            self.at += 1;
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|character| character != '\n') {
            self.take(1, Kind::Comment);
        }
    }

    fn block_comment(&mut self, comments: Comments) {
        self.take(2, Kind::Comment);
        let mut depth = 1;
        while depth > 0 && self.at < self.characters.len() {
            if self.sees("*/") {
                depth -= 1;
                self.take(2, Kind::Comment);
            } else if comments == Comments::Nest && self.sees("/*") {
                depth += 1;
                self.take(2, Kind::Comment);
            } else {
                self.take(1, Kind::Comment);
            }
        }
    }

    /// A string or character literal in which a backslash takes the next character with it.
    fn quoted(&mut self, quote: &str) {
        self.take(quote.len(), Kind::Code);
        while self.at < self.characters.len() && !self.sees(quote) {
            let step = if self.sees("\\") { 2 } else { 1 };
            self.take(step, Kind::Text);
        }
        // A closing triple quote often starts a line; as code it would set that line's indentation.
        self.take(quote.len(), if quote.len() == 1 { Kind::Code } else { Kind::Text });
    }

    /// The number of `#` of a raw string that starts here, `None` where none does.
    fn raw_string_hashes(&self) -> Option<usize> {
        if self.peek(0) != Some('r') || !self.may_start_prefix() {
            return None;
        }
        let hashes = (1..).take_while(|ahead| self.peek(*ahead) == Some('#')).count();
        (self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    /// True unless the `r` here is the end of a longer name; `br` and `cr` are prefixes too.
    fn may_start_prefix(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.characters[at]);
        match before(1) {
            Some('b' | 'c') => !before(2).is_some_and(is_name),
            Some(character) => !is_name(character),
            None => true,
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        self.take(2 + hashes, Kind::Code);
        let end = format!("\"{}", "#".repeat(hashes));
        while self.at < self.characters.len() && !self.sees(&end) {
            self.take(1, Kind::Text);
        }
        self.take(end.len(), Kind::Code);
    }

    /// Tells `'a'` and `'\n'` from the lifetime `'a`.
    fn is_character_literal(&self) -> bool {
        self.peek(1) == Some('\\') || self.peek(2) == Some('\'')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str, language: Language) -> String {
        mask(text, language).code
    }

    #[test]
    fn comments_leave_the_code_and_keep_their_columns() {
        let masked = mask("let a = 1; // one {\nlet b;", Language::Rust);
        assert_eq!(masked.code, "let a = 1;         \nlet b;");
        assert_eq!(masked.comments, "           // one {\n      ");
    }

    #[test]
    fn nested_comments_end_where_rust_ends_them() {
        assert_eq!(code("/* a /* b */ c */ x", Language::Rust).trim(), "x");
        assert_eq!(code("/* a /* b */ x", Language::C).trim(), "x");
    }

    #[test]
    fn strings_are_emptied_in_every_spelling() {
        for text in [r#""{""#, r##"r#"{ " "#"##, r#"b"\"{""#, r#"br"{""#, "'{'", r"'\''"] {
            let code = code(&format!("{text} after"), Language::Rust);
            assert!(!code.contains('{') && code.ends_with(" after"), "{text} gave {code}");
        }
    }

    #[test]
    fn a_lifetime_is_not_a_character() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}", Language::Rust), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn a_raw_name_is_not_a_raw_string() {
        assert_eq!(code("let r#type = for\"{\";", Language::Rust), "let r#type = for\" \";");
    }

    #[test]
    fn python_triple_quotes_and_comments_are_blanked() {
        assert_eq!(code("'''a\n'b' # '''\nx # y", Language::Python), "''' \n         \nx    ");
    }

    #[test]
    fn the_language_comes_from_the_name_or_the_first_line() {
        assert_eq!(Language::of(Path::new("a.rs"), ""), Some(Language::Rust));
        assert_eq!(Language::of(Path::new("a"), "#!/usr/bin/python3\n"), Some(Language::Python));
        assert_eq!(Language::of(Path::new("a"), "#!/bin/sh\n"), None);
    }
}
