//! Every source file opens with prose: what it owns and what it does not.

use crate::files::File;
use crate::finding::Finding;
use crate::source::Language;

/// Looks for the opening comment, past inner attributes and `#!` lines.
pub fn opening(file: &File, text: &str, language: Language) -> Option<Finding> {
    let first = text.lines().map(str::trim).find(|line| !is_before_prose(line, language))?;
    let (opens, form) = match language {
        Language::Rust => (first.starts_with("//!"), "//!"),
        Language::C => (first.starts_with("/*") || first.starts_with("//"), "a comment"),
        Language::Python => (is_python_prose(first), "a docstring"),
    };
    (!opens).then(|| {
        let text = format!("opens without prose: say in {form} what this file owns");
        Finding::new(file.path.as_str(), 1, text)
    })
}

fn is_before_prose(line: &str, language: Language) -> bool {
    match language {
        Language::Rust => line.is_empty() || line.starts_with("#!["),
        Language::C => line.is_empty(),
        Language::Python => line.is_empty() || line.starts_with("#!"),
    }
}

fn is_python_prose(line: &str) -> bool {
    ["\"\"\"", "'''", "r\"\"\"", "#"].iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(path: &str, text: &str, language: Language) -> bool {
        opening(&File::sample(path, text), text, language).is_none()
    }

    #[test]
    fn rust_opens_with_inner_documentation() {
        assert!(opens("a.rs", "#![no_std]\n\n//! A.\n", Language::Rust));
        assert!(!opens("a.rs", "use a;\n//! A.\n", Language::Rust));
        assert!(!opens("a.rs", "// A.\n", Language::Rust));
    }

    #[test]
    fn c_and_python_open_with_a_comment() {
        assert!(opens("a.c", "\n/* A. */\n", Language::C));
        assert!(!opens("a.c", "#include <a.h>\n", Language::C));
        assert!(opens("a.py", "#!/usr/bin/python3\n\"\"\"A.\"\"\"\n", Language::Python));
        assert!(!opens("a.py", "import os\n", Language::Python));
    }
}
