//! How events and numbers are called in the formats of others.

use sapwood_report::is_hidden;

/// Sizes of a communicator of a size class, such as `5-8`; empty for none.
pub(crate) fn sizes(class: Option<u8>) -> String {
    match class {
        None => String::new(),
        Some(0) => "1".into(),
        Some(1) => "2".into(),
        Some(class) => {
            let largest = 1_u64 << class.min(62);
            format!("{}-{largest}", largest / 2 + 1)
        }
    }
}

/// An event with the sizes of its communicator, such as `MPI_Bcast (5-8)`.
pub(crate) fn full_name(name: &str, class: Option<u8>) -> String {
    match class {
        None => name.to_owned(),
        Some(_) => format!("{name} ({})", sizes(class)),
    }
}

/// A sum in 64 bits: the largest of these where it is larger.
pub(crate) fn in_64_bits(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// A text without control characters, which some formats cannot hold: each as `\xHH`, and the
/// backslash as two. What would turn the text around or is not seen is `\u{HHHH}`.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => shown.push_str("\\\\"),
            letter if letter.is_control() => {
                shown.push_str(&format!("\\x{:02x}", u32::from(letter)))
            }
            letter if is_hidden(letter) => {
                shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
            }
            letter => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_as_its_number() {
        assert_eq!(visible("a\u{1b}\\b\u{202e}c\u{2028}"), "a\\x1b\\\\b\\u{202e}c\\u{2028}");
    }
}
