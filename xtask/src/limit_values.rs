//! Keeps the values in tables of limits true: `| file | `CONSTANT` | 64 KiB | ... |`.
//!
//! A value is a number with or without thousands separators and a binary unit, and perhaps
//! ` and N bytes` behind it; further words are for the reader. A constant is a number, a shift, a
//! product, or a sum in parentheses, as limits are written.

use crate::files::File;

/// Limits whose names others are computed from.
const LIMITS: &str = "crates/wire/src/limits.rs";

/// What is wrong with a row, if it is one of a limit whose value does not stand in its file.
pub fn wrong_row(line: &str, files: &[File]) -> Option<String> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let ["", path, name, stated, ..] = cells[..] else { return None };
    let name = name.strip_prefix('`')?.strip_suffix('`')?;
    let expression = definition(name, path, files)?;
    match (value_of(expression, files), stated_value(stated)) {
        (Some(value), Some(stated)) if value == stated => None,
        (Some(value), _) => Some(format!("{name} is {value} in {path}, not {stated}")),
        (None, _) => Some(format!("{name} = {expression} in {path} is no plain number")),
    }
}

/// `64`, `4_096`, `64 << 10`, `(128 << 10) + 256`, `KEPT_BYTES / 4`; names are those of the wire's
/// limits.
fn value_of(expression: &str, files: &[File]) -> Option<u64> {
    let expression = expression.trim();
    let split = |sign: &str| {
        let (left, right) = expression.rsplit_once(sign)?;
        Some((value_of(left, files)?, value_of(right, files)?))
    };
    if let Some((left, right)) = split("+") {
        return left.checked_add(right);
    }
    let inner = expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    if let Some(inner) = inner {
        return value_of(inner, files);
    }
    if let Some((left, right)) = split("<<") {
        return left.checked_shl(u32::try_from(right).ok()?);
    }
    if let Some((left, right)) = split("/") {
        return left.checked_div(right);
    }
    if let Some((left, right)) = split("*") {
        return left.checked_mul(right);
    }
    match expression.starts_with(|first: char| first.is_ascii_uppercase()) {
        true => value_of(definition(expression, LIMITS, files)?, files),
        false => expression.replace('_', "").parse().ok(),
    }
}

/// What a constant of a file is set to.
fn definition<'a>(name: &str, path: &str, files: &'a [File]) -> Option<&'a str> {
    let code = files.iter().find(|file| file.path == path)?.text.as_deref()?;
    let behind = code.split_once(&format!("const {name}: "))?.1;
    Some(behind.split_once("= ")?.1.split_once(';')?.0)
}

/// `64`, `4,096`, `16 KiB`, `128 KiB and 256 bytes`, `1 MiB, and what ends the wave`.
fn stated_value(stated: &str) -> Option<u64> {
    let mut words = stated.split_whitespace();
    let number: u64 = words.next()?.replace(',', "").parse().ok()?;
    let shift = match words.next().map(|unit| unit.trim_end_matches(',')) {
        Some("KiB") => 10,
        Some("MiB") => 20,
        Some("GiB") => 30,
        _ => 0,
    };
    let more: u64 = match (words.next(), words.next(), words.next()) {
        (Some("and"), Some(more), Some("bytes")) => more.parse().ok()?,
        _ => 0,
    };
    Some((number << shift) + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(row: &str) -> Option<String> {
        let code = "const ROOM_MAX: usize = (128 << 10) + 256;\nconst LINES: u32 = 4_096;\n\
                    const PART: usize = KEPT / 4 / 2;\nconst TIME: Duration = Duration::from_secs(1);\n";
        let limits = "pub const KEPT: usize = 1 << 20;\n";
        wrong_row(row, &[File::sample("crates/a/src/b.rs", code), File::sample(LIMITS, limits)])
    }

    #[test]
    fn a_true_value_is_silent() {
        assert_eq!(wrong("| crates/a/src/b.rs | `ROOM_MAX` | 128 KiB and 256 bytes | cut |"), None);
        assert_eq!(wrong("| crates/a/src/b.rs | `LINES` | 4,096 lines | cut |"), None);
        assert_eq!(wrong("| crates/a/src/b.rs | `PART` | 128 KiB | cut |"), None);
        assert_eq!(wrong("| a file | what | how much | then |"), None);
    }

    #[test]
    fn another_value_is_found() {
        let text = wrong("| crates/a/src/b.rs | `LINES` | 4 KiB, at most | cut |");
        assert_eq!(text, None, "4 KiB are 4,096");
        let text = wrong("| crates/a/src/b.rs | `LINES` | 2,048 | cut |");
        assert_eq!(text.unwrap(), "LINES is 4096 in crates/a/src/b.rs, not 2,048");
    }

    #[test]
    fn what_cannot_be_compared_is_found() {
        let text = wrong("| crates/a/src/b.rs | `TIME` | 1 s | cut |").unwrap();
        assert!(text.contains("no plain number"), "{text}");
    }
}
