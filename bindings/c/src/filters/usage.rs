//! `usage`: what the processes of the tree use, as one table.
//!
//! ```text
//! %aud  ranks
//! %alf  COLUMNS numbers for each of them
//! ```
//!
//! A back-end sends its own row; the filter puts the rows of all children one behind another and
//! adds that of its own process. Columns: seconds of processor time in the program, and in the
//! kernel for it; seconds since the process began; KiB of address space, and of memory. A back-end
//! may send more columns than these: rows are as long as there are numbers for each rank, and the
//! filter fills its own up with zeros.

use std::time::Duration;

use sapwood::{Emitter, Filter, FilterError, Values, ValuesRef, WaveRef};

pub(super) const NAME: &str = "usage";
const TAKES: &str = "%aud %alf: ranks, and as many numbers for each";

/// The resource usage of a process.
const COLUMNS: usize = crate::serve::SAPWOOD_USAGE_COLUMNS;

struct Usage;

/// Makes the filter; it takes no parameters.
pub(super) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(Usage))
    } else {
        Err(FilterError::Parameters { name: NAME, takes: "no parameters" })
    }
}

impl Filter for Usage {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut columns = COLUMNS;
        let (mut ranks, mut numbers) = (Vec::new(), Vec::new());
        for (at, packet) in wave.packets.iter().enumerate() {
            let format = packet.format.to_string();
            let wrong = || FilterError::Format { name: NAME, takes: TAKES, format: format.clone() };
            let values = packet.values();
            let of = values.array::<u32>(0).map_err(|_| wrong())?;
            let rows = values.array::<f64>(1).map_err(|_| wrong())?;
            let width = rows.len().checked_div(of.len()).ok_or_else(wrong)?;
            if at == 0 {
                columns = width;
            }
            if width != columns || width * of.len() != rows.len() || width < COLUMNS {
                return Err(wrong());
            }
            ranks.extend_from_slice(of);
            numbers.extend_from_slice(rows);
        }
        ranks.push(wave.rank);
        let own = own_row();
        numbers.extend_from_slice(&own);
        numbers.resize(numbers.len() + columns - own.len(), 0.0);
        out.emit(first.header.tag, Values::new().array(&ranks).array(&numbers));
        Ok(())
    }
}

/// What this process uses; zeros where the system does not say.
pub(crate) fn own_row() -> [f64; COLUMNS] {
    read("/proc/self/stat", "/proc/uptime").unwrap_or_default()
}

fn read(stat: &str, uptime: &str) -> Option<[f64; COLUMNS]> {
    let stat = std::fs::read_to_string(stat).ok()?;
    // The name of the program is in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let page = rustix::param::page_size() as f64 / 1024.0;
    let uptime = std::fs::read_to_string(uptime).ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age = (uptime - field(22)? / ticks).max(Duration::from_millis(10).as_secs_f64());
    Some([field(14)? / ticks, field(15)? / ticks, age, field(23)? / 1024.0, field(24)? * page])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_memory_and_time() {
        let [_, _, age, virtual_kib, resident_kib] = own_row();
        assert!(age > 0.0 && virtual_kib >= resident_kib && resident_kib > 0.0);
    }
}
