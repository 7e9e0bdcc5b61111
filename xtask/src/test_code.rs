//! Tells test code from the code that ships.
//!
//! Knows two forms, which are the only ones that the house uses: an item behind `#[cfg(test)]` in a
//! file, and a file whose `mod` line stands behind `#[cfg(test)]`. Works on masked code.

const ATTRIBUTE: &str = "#[cfg(test)]";

/// Blanks every item behind `#[cfg(test)]`, keeping lines and columns.
pub fn without_tests(code: &str) -> String {
    let mut characters: Vec<char> = code.chars().collect();
    let attribute: Vec<char> = ATTRIBUTE.chars().collect();
    let mut at = 0;
    while at < characters.len() {
        if !characters[at..].starts_with(&attribute) {
            at += 1;
            continue;
        }
        let end = item_end(&characters, at + attribute.len());
        for character in &mut characters[at..end] {
            if *character != '\n' {
                *character = ' ';
            }
        }
        at = end;
    }
    characters.into_iter().collect()
}

/// The modules whose files hold tests only: the names of `#[cfg(test)] mod name;`.
pub fn test_modules(code: &str) -> Vec<String> {
    code.split(ATTRIBUTE)
        .skip(1)
        .filter_map(|rest| {
            let name = rest.trim_start().strip_prefix("mod ")?.split(';').next()?.trim();
            (!name.contains(['{', ' '])).then(|| name.to_owned())
        })
        .collect()
}

/// The paths, from the root, under which the files of module `name` of `parent` may lie.
pub fn module_paths(parent: &str, name: &str) -> [String; 2] {
    let (folder, file) = parent.rsplit_once('/').unwrap_or(("", parent));
    let base = match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
    };
    [format!("{base}/{name}.rs"), format!("{base}/{name}/")]
}

/// An item ends at the semicolon or closing brace that is outside its own brackets.
fn item_end(characters: &[char], from: usize) -> usize {
    let mut depth = 0_i32;
    let mut at = from;
    while at < characters.len() {
        match characters[at] {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => {
                return (matching_brace(characters, at) + 1).min(characters.len());
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// The brace that closes the one at `open`, or the end of the file.
fn matching_brace(characters: &[char], open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, character) in characters.iter().enumerate().skip(open) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    characters.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_behind_the_attribute_is_blanked_and_its_neighbours_stay() {
        let code = "use a;\n#[cfg(test)]\n#[path(x)]\nmod tests { fn f() {} }\nfn g() {}\n";
        let kept = without_tests(code);
        assert_eq!(kept.lines().count(), code.lines().count());
        assert_eq!(kept.split_whitespace().collect::<String>(), "usea;fng(){}");
    }

    #[test]
    fn an_extern_line_behind_the_attribute_is_blanked_alone() {
        let kept = without_tests("#[cfg(test)]\nextern crate std;\nuse std::fs;\n");
        assert_eq!(kept.trim(), "use std::fs;");
    }

    #[test]
    fn test_files_are_named_by_their_mod_line() {
        assert_eq!(test_modules("#[cfg(test)]\nmod story;\nmod a;"), ["story"]);
        assert!(test_modules("#[cfg(test)]\nmod tests {\n}").is_empty());
        assert_eq!(module_paths("crates/a/src/lib.rs", "t")[0], "crates/a/src/t.rs");
        assert_eq!(module_paths("crates/a/src/b.rs", "t")[1], "crates/a/src/b/t/");
    }
}
