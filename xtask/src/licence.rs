//! Whether a package's licence is allowed: SPDX expressions of names with `AND`, `OR`, `WITH` and
//! brackets, and the older `/` for `OR`.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;

/// Whether one of the ways to take an expression needs allowed licences only.
///
/// # Errors
/// What of it cannot be read.
pub fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let mut words = words.into_iter().peekable();
    let answer = any(&mut words, allowed)?;
    match words.next() {
        None => Ok(answer),
        Some(word) => Err(format!("'{word}' in '{expression}' follows nothing")),
    }
}

type Words = Peekable<IntoIter<String>>;

fn any(words: &mut Words, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut answer = all(words, allowed)?;
    while words.next_if(|word| word == "OR").is_some() {
        answer |= all(words, allowed)?;
    }
    Ok(answer)
}

fn all(words: &mut Words, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut answer = one(words, allowed)?;
    while words.next_if(|word| word == "AND").is_some() {
        answer &= one(words, allowed)?;
    }
    Ok(answer)
}

fn one(words: &mut Words, allowed: &BTreeSet<String>) -> Result<bool, String> {
    let mut name = words.next().ok_or("a licence is missing at the end")?;
    if name == "(" {
        let answer = any(words, allowed)?;
        let closes = words.next_if(|word| word == ")");
        return closes.map(|_| answer).ok_or_else(|| "a bracket is not closed".to_owned());
    }
    if ["OR", "AND", "WITH", ")"].contains(&name.as_str()) {
        return Err(format!("'{name}' stands in the place of a licence"));
    }
    if words.next_if(|word| word == "WITH").is_some() {
        let exception = words.next().ok_or("an exception is missing at the end")?;
        name = format!("{name} WITH {exception}");
    }
    Ok(allowed.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(expression: &str) -> Result<bool, String> {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        is_allowed(expression, &allowed.map(str::to_owned).into())
    }

    #[test]
    fn one_allowed_way_is_enough_and_every_part_of_it_counts() {
        for fine in
            ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "MIT AND ISC", "(GPL-3.0 OR MIT) AND ISC"]
        {
            assert_eq!(judge(fine), Ok(true), "{fine}");
        }
        for wrong in ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR (MIT AND GPL-2.0)", "Apache-2.0"] {
            assert_eq!(judge(wrong), Ok(false), "{wrong}");
        }
        assert_eq!(judge("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(judge("MIT WITH LLVM-exception"), Ok(false));
    }

    #[test]
    fn what_cannot_be_read_is_no_permission() {
        for wrong in ["", "MIT OR", "(MIT", "MIT ISC", "AND MIT", "MIT WITH"] {
            assert!(judge(wrong).is_err(), "{wrong}");
        }
    }
}
