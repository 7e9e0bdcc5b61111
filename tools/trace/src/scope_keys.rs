//! Keys that scopes of all sources have, and what their values may be.

use std::time::Duration;

use sapwood::RankSet;
use sapwood_trace::WINDOW_MAX;

/// Time between two gatherings of a scope that does not say it.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// The longest name, in letters.
const NAME_MAX: usize = 64;
const EVERY_MIN: Duration = Duration::from_millis(50);
const EVERY_MAX: Duration = Duration::from_secs(3600);
const BYTES_MIN: u64 = 4096;
const BYTES_MAX: u64 = 1 << 30;

/// A key with its values.
pub(crate) type KeyValues = (String, Vec<String>);

/// Sets each key by its values; the error says which key it is of.
///
/// # Errors
/// One line, also for a key without a value and for one that is given twice.
pub(crate) fn set_all(
    all: &[KeyValues],
    mut set: impl FnMut(&str, &[String]) -> Result<(), String>,
) -> Result<(), String> {
    let mut seen: Vec<&str> = Vec::new();
    for (key, values) in all {
        if values.is_empty() {
            return Err(format!("'{key}' has no value"));
        }
        set(key, values).map_err(|error| format!("{key}: {error}"))?;
        if seen.contains(&key.as_str()) {
            return Err(format!("'{key}' is given twice"));
        }
        seen.push(key);
    }
    Ok(())
}

/// The name of a scope.
pub(crate) fn name(text: String) -> Result<String, String> {
    if text.chars().any(sapwood_report::is_hidden) {
        return Err("it has invisible characters".to_owned());
    }
    if text.chars().count() > NAME_MAX {
        return Err(format!("a name has at most {NAME_MAX} letters"));
    }
    Ok(text)
}

/// Ranks, of which there is one at least.
pub(crate) fn ranks(text: &str) -> Result<RankSet, String> {
    let ranks = text.parse::<RankSet>().ok().filter(|ranks| !ranks.is_empty());
    ranks.ok_or_else(|| format!("'{text}' is no set such as 0-3,7"))
}

/// The time between two gatherings; none for one at the end.
pub(crate) fn every(text: &str) -> Result<Option<Duration>, String> {
    if text == "end" {
        return Ok(None);
    }
    let every = sapwood_command_line::times::time(text).ok();
    let every = every.filter(|every| (EVERY_MIN..=EVERY_MAX).contains(every));
    let every = every.ok_or("a time from 50 ms to 3600 s is needed, or end")?;
    Ok(Some(every))
}

/// How many events of each group figures are of.
pub(crate) fn window(text: &str) -> Result<u32, String> {
    let window = text.parse::<u32>().ok().filter(|window| (1..=WINDOW_MAX).contains(window));
    window.ok_or_else(|| format!("a number from 1 to {WINDOW_MAX} is needed"))
}

/// A time in nanoseconds.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, String> {
    let time = sapwood_command_line::times::time(text)?;
    Ok(sapwood_report::nanoseconds(time))
}

/// Bytes per second, such as `64kB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || {
        "bytes per second from 4096 (4KiB; 4kB are 4000) to 1GB are needed, such as 64kB".to_owned()
    };
    let at = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let times = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(times));
    bytes.filter(|bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes)).ok_or_else(wrong)
}
