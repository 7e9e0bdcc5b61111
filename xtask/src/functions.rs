//! Finds functions and counts their lines, in C and Python; those in Rust are counted by clippy.
//!
//! Works on code whose comments and strings are already blanked (see [`crate::source`]). A
//! function's length is the number of lines from its name to its closing brace (or, in Python, its
//! last line of code), both included, comments and blank lines too: it is what a reader scrolls by.

use crate::source::{Language, is_name};

/// One function of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line that holds its name, from 1.
    pub line: usize,
    /// Lines from there to its end, both included.
    pub length: usize,
}

/// Lists the functions of `code` in the order of their names.
pub fn functions(code: &str, language: Language) -> Vec<Function> {
    match language {
        Language::Rust => Vec::new(),
        Language::C => c_functions(code),
        Language::Python => python_functions(code),
    }
}

/// In C a function is a brace outside all others that follows a closing parenthesis. A closing
/// brace in the first column ends it, whatever `#if` branches did to the balance in between.
fn c_functions(code: &str) -> Vec<Function> {
    let code = without_preprocessor(code);
    let mut scan = CScan::default();
    for (index, text) in code.lines().enumerate() {
        if text.starts_with('}') {
            scan.depth = 1;
        }
        for character in text.chars().chain([' ']) {
            scan.character(character, index + 1);
        }
    }
    scan.found
}

/// Where the scan of a C file is: how deep in braces, and what stands before the next one.
#[derive(Default)]
struct CScan {
    depth: u32,
    /// Characters since the last declaration ended, each with its line.
    head: Vec<(char, usize)>,
    /// Name and first line of the function that the scan is in.
    open: Option<(String, usize)>,
    found: Vec<Function>,
}

impl CScan {
    fn character(&mut self, character: char, line: usize) {
        match character {
            '{' if self.depth == 0 && opens_linkage(&self.head) => self.head.clear(),
            '{' => {
                if self.depth == 0 {
                    self.open = c_function_head(&self.head);
                }
                self.depth += 1;
            }
            '}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.end(line);
                }
            }
            ';' if self.depth == 0 => self.head.clear(),
            _ if self.depth == 0 => self.head.push((character, line)),
            _ => {}
        }
    }

    fn end(&mut self, line: usize) {
        self.head.clear();
        let Some((name, first)) = self.open.take() else { return };
        self.found.push(Function { name, line: first, length: line - first + 1 });
    }
}

/// True for the head of `extern "C" {`, whose inside is still outside all functions.
fn opens_linkage(head: &[(char, usize)]) -> bool {
    let text: String = head.iter().map(|(character, _)| character).collect();
    text.trim_end().ends_with("extern \" \"")
}

/// The name and its line, if the text before a brace is the head of a function.
fn c_function_head(head: &[(char, usize)]) -> Option<(String, usize)> {
    let characters: Vec<char> = head.iter().map(|(character, _)| *character).collect();
    let last = characters.iter().rposition(|character| !character.is_whitespace())?;
    if characters[last] != ')' {
        return None;
    }
    let mut depth = 0_i32;
    let mut at = last;
    loop {
        match characters[at] {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        at = at.checked_sub(1)?;
    }
    let end = characters[..at].iter().rposition(|character| is_name(*character))?;
    let start = characters[..end].iter().rposition(|c| !is_name(*c)).map_or(0, |before| before + 1);
    Some((characters[start..=end].iter().collect(), head[start].1))
}

fn without_preprocessor(code: &str) -> String {
    let mut continues = false;
    let mut kept = String::with_capacity(code.len());
    for line in code.lines() {
        let directive = continues || line.trim_start().starts_with('#');
        continues = directive && line.trim_end().ends_with('\\');
        kept.push_str(if directive { "" } else { line });
        kept.push('\n');
    }
    kept
}

/// In Python a function ends at its last line of code that is indented deeper than its `def`.
fn python_functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, Function)> = Vec::new();
    let mut brackets = 0_i32;
    for (index, text) in code.lines().enumerate() {
        let line = index + 1;
        let indent = text.len() - text.trim_start().len();
        let statement = text.trim_start();
        if !statement.is_empty() {
            let starts = brackets == 0;
            while starts && open.last().is_some_and(|(outer, _)| indent <= *outer) {
                found.extend(open.pop().map(|(_, function)| function));
            }
            for (_, function) in &mut open {
                function.length = line - function.line + 1;
            }
            if let Some(name) = starts.then(|| python_name(statement)).flatten() {
                open.push((indent, Function { name, line, length: 1 }));
            }
        }
        for character in statement.chars() {
            match character {
                '(' | '[' | '{' => brackets += 1,
                ')' | ']' | '}' => brackets -= 1,
                _ => {}
            }
        }
    }
    found.extend(open.into_iter().map(|(_, function)| function));
    found.sort_by_key(|function| function.line);
    found
}

fn python_name(statement: &str) -> Option<String> {
    let statement = statement.strip_prefix("async ").unwrap_or(statement);
    let rest = statement.strip_prefix("def ")?;
    Some(rest.chars().take_while(|character| is_name(*character)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mask;

    fn measured(text: &str, language: Language) -> Vec<(String, usize, usize)> {
        functions(&mask(text, language).code, language)
            .into_iter()
            .map(|function| (function.name, function.line, function.length))
            .collect()
    }

    #[test]
    fn c_functions_are_found_and_tables_are_not() {
        let text = "#define X(a) { \\\n a }\nstatic int table[] = {\n 1,\n};\nextern \"C\" {\n\
                    int add(int a,\n        int b)\n{\n    if (a) { return b; }\n    return a;\n}\n}\n";
        assert_eq!(measured(text, Language::C), [("add".into(), 7, 6)]);
    }

    #[test]
    fn a_brace_in_the_first_column_ends_a_c_function() {
        let text = "int f(void)\n{\n#if A\n    if (x) {\n#else\n    if (y) {\n#endif\n    }\n}\n\
                    int g(void)\n{\n}\n";
        assert_eq!(measured(text, Language::C), [("f".into(), 1, 9), ("g".into(), 10, 3)]);
    }

    #[test]
    fn python_functions_end_with_their_indentation() {
        let text = "def a(x,\n      y):\n    '''doc\nnot code\n'''\n    return [\n  1]\n\n\
                    class B:\n    def c(self):\n        def d():\n            pass\n        d()\nx = 1\n";
        let found = measured(text, Language::Python);
        assert_eq!(found, [("a".into(), 1, 7), ("c".into(), 10, 4), ("d".into(), 11, 2)]);
    }
}
