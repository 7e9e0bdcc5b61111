//! How far a copy is, in one line.

use std::time::{Duration, Instant};

use sapwood_command_line::progress::Line;

/// The shortest time between two states of the line.
const PAUSE: Duration = Duration::from_millis(150);

/// Cells of the bar.
const CELLS: u64 = 24;

/// The line that says so.
pub(super) struct Bar {
    line: Line,
    begun: Instant,
    next: Instant,
}

impl Bar {
    /// `is_wanted` says whether the user did not ask for silence.
    pub(super) fn new(is_wanted: bool) -> Self {
        let now = Instant::now();
        Self { line: Line::new(is_wanted), begun: now, next: now }
    }

    /// Whether a person sees it.
    pub(super) fn is_shown(&self) -> bool {
        self.line.is_shown()
    }

    /// Of `all` bytes, each host has at least `least` and at most `most` thousandths.
    pub(super) fn show_pushed(&mut self, now: Instant, all: u64, least: u32, most: u32) {
        let there = (u128::from(all) * u128::from(least) / 1000) as u64;
        let ahead = match most > least + 10 {
            true => format!(", the fastest host has {} %", most / 10),
            false => String::new(),
        };
        self.show(now, there, all, &ahead);
    }

    /// `there` of `planned` bytes have come from all hosts.
    pub(super) fn show_gathered(&mut self, now: Instant, there: u64, planned: u64) {
        self.show(now, there, planned, "");
    }

    fn show(&mut self, now: Instant, there: u64, all: u64, more: &str) {
        if !self.is_shown() || now < self.next {
            return;
        }
        self.next = now + PAUSE;
        self.line.say(format_args!("{}{more}", line(there, all, now - self.begun)));
    }
}

fn line(there: u64, all: u64, time: Duration) -> String {
    let there = there.min(all);
    let share = |of: u64| (u128::from(there) * u128::from(of) / u128::from(all.max(1))) as u64;
    let full = share(CELLS) as usize;
    let bar =
        format!("{}{}", "=".repeat(full), " ".repeat(CELLS as usize - full.min(CELLS as usize)));
    let rate = there as f64 / time.as_secs_f64().max(1e-3);
    let left = match there {
        0 => String::new(),
        _ => format!(", {:.0} s left", all.saturating_sub(there) as f64 / rate),
    };
    let (there, all_words) = (bytes(there), bytes(all));
    format!("[{bar}] {} %, {there} of {all_words}, {}/s{left}", share(100), bytes(rate as u64))
}

/// A number of bytes, for people.
pub(super) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut number = count as f64 / 1024.0;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    format!("{number:.1} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        let said = line(64 << 20, 256 << 20, Duration::from_secs(2));
        assert_eq!(
            said,
            "[======                  ] 25 %, 64.0 MiB of 256.0 MiB, 32.0 MiB/s, 6 s left"
        );
        assert!(
            line(9, 3, Duration::ZERO).starts_with("[========================] 100 %, 3 bytes")
        );
        assert!(line(0, 0, Duration::ZERO).contains("0 %"));
        assert_eq!((bytes(12), bytes(1536)), ("12 bytes".to_string(), "1.5 KiB".to_string()));
    }
}
