//! Numbers for the eye: three figures and a unit.

use std::fmt::Write;
use std::time::SystemTime;

const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const BYTES: [(&str, f64); 6] =
    [("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15)];

/// A time, as `1.50 ms`.
#[must_use]
pub fn time(ns: f64) -> String {
    scaled(ns, &TIMES)
}

/// A number of bytes, as `1.50 MB`; a kilobyte is 1000 bytes.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, &BYTES)
}

/// A whole number in groups of three digits, as `12,345`.
#[must_use]
pub fn whole(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, as `12,345 calls` or `1 call`, by their plural.
#[must_use]
pub fn counted(number: u128, plural: &str) -> String {
    let things = if number == 1 { singular(plural) } else { plural };
    format!("{} {things}", whole(number))
}

/// Of a plural with an s, and of the few that have more.
fn singular(plural: &str) -> &str {
    let without_es = plural.strip_suffix("es").filter(|word| word.ends_with("ss"));
    match plural {
        "leaves" => "leaf",
        "entries" => "entry",
        _ => without_es.or_else(|| plural.strip_suffix('s')).unwrap_or(plural),
    }
}

/// A fraction in per cent, as `12.5 %`; a dash for none.
#[must_use]
pub fn percent(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "-".to_string(), |fraction| format!("{:.1} %", 100.0 * fraction))
}

/// A time as in RFC 3339, to the second, in UTC.
#[must_use]
pub fn date(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// The number in the largest unit in which it does not show as less than 1.
fn scaled(number: f64, units: &[(&str, f64)]) -> String {
    let larger = units.iter().rev().find(|(_, size)| number / size >= 0.9995);
    let (unit, size) = larger.or(units.first()).copied().unwrap_or(("", 1.0));
    let number = number / size;
    let mut text = String::new();
    // What would round to a fourth figure gets one decimal less.
    let decimals = match number {
        _ if size == 1.0 && number.fract() == 0.0 => 0,
        _ if number < 9.995 => 2,
        _ if number < 99.95 => 1,
        _ => 0,
    };
    write!(text, "{number:.decimals$} {unit}").expect("a string takes all text");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_three_figures() {
        let cases = [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (7.25, "7.25 ns"),
            (999.0, "999 ns"),
            (999.7, "1.00 us"),
            (1_234.0, "1.23 us"),
            (99_960.0, "100 us"),
            (12_345_678.0, "12.3 ms"),
            (1.5e9, "1.50 s"),
            (86_400e9, "86400 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
        }
        assert_eq!(bytes(1_500_000.0), "1.50 MB");
        assert_eq!(bytes(999.0), "999 B");
    }

    #[test]
    fn whole_numbers_are_grouped() {
        assert_eq!(whole(0), "0");
        assert_eq!(whole(999), "999");
        assert_eq!(whole(1_000), "1,000");
        assert_eq!(whole(1_234_567), "1,234,567");
        assert_eq!(percent(Some(0.1234)), "12.3 %");
        assert_eq!(percent(None), "-");
        let calls = [0, 1, 2, 1_000].map(|number| counted(number, "calls"));
        assert_eq!(calls, ["0 calls", "1 call", "2 calls", "1,000 calls"]);
        let one = ["leaves", "processes", "waves", "entries"].map(|word| counted(1, word));
        assert_eq!(one, ["1 leaf", "1 process", "1 wave", "1 entry"]);
    }
}
