//! Names that programs give, which may be any bytes, as text.

use alloc::format;
use alloc::string::String;

use crate::REGION_NAME_BYTES_MAX;

/// A name with what is no UTF-8 as `\xNN`, so that names of any bytes stay apart. Where a name has
/// these characters itself, their backslash becomes `\x5c`.
pub(crate) fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        let mut valid = chunk.valid();
        while let Some(at) = valid.find('\\') {
            let (before, rest) = valid.split_at(at);
            let looks_escaped = matches!(rest.as_bytes(), [_, b'x', high, low, ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit());
            text.push_str(before);
            text.push_str(if looks_escaped { "\\x5c" } else { "\\" });
            valid = &rest[1..];
        }
        text.push_str(valid);
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.truncate(text.floor_char_boundary(REGION_NAME_BYTES_MAX));
    text
}
