//! `SAPWOOD_LOG`: the events of this process, one line each, on standard error or in a file.
//!
//! Owns how they are chosen and written. What happens is told by the crates in which it happens,
//! through `tracing`; a program of a user that links these installs a subscriber of its own.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use sapwood::{LOG_FILE_VARIABLE, LOG_VARIABLE};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::Failure;

/// What events are about: starts of processes; links; members that come, are lost and adopted;
/// streams.
const PARTS: [&str; 4] = ["sapwood::launch", "sapwood::link", "sapwood::member", "sapwood::stream"];
/// Stands for the number of the process in the name of a file.
const PROCESS: &str = "%p";

/// Writes the events that the environment asks for from now on. Nothing by default.
///
/// # Errors
/// [`Failure`] for directives that cannot be read, and a file that cannot be opened.
pub fn start() -> Result<(), Failure> {
    let asked = std::env::var_os(LOG_VARIABLE).filter(|asked| !asked.is_empty());
    let Some(asked) = asked else { return Ok(()) };
    let targets = read(&asked.to_string_lossy())?;
    // A log that takes no more is told nowhere: the words for that would go to standard error, and
    // a fault there would end the program.
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).log_internal_errors(false);
    let layer = layer.event_format(Line::new());
    let file = std::env::var_os(LOG_FILE_VARIABLE).filter(|file| !file.is_empty());
    let written = match file {
        Some(file) => {
            let file = Arc::new(open(&file.to_string_lossy())?);
            tracing_subscriber::registry().with(targets).with(layer.with_writer(file)).try_init()
        }
        None => {
            let layer = layer.with_writer(std::io::stderr);
            tracing_subscriber::registry().with(targets).with(layer).try_init()
        }
    };
    written.map_err(|error| Failure::own(&error))
}

/// Directives such as `info` and `warn,sapwood::link=debug`. The crate that follows them takes any
/// word for the name of a part, so that one that is spelled wrongly would have no effect.
fn read(text: &str) -> Result<Targets, Failure> {
    let refused = |part: &str| {
        Failure::usage(format!(
            "{LOG_VARIABLE} has '{part}': give a level (error, warn, info, debug, trace, off), or \
             PART=LEVEL with commas between, such as warn,sapwood::link=debug; the parts are {}",
            PARTS.join(", ")
        ))
    };
    let mut targets = Targets::new();
    for part in text.split(',').map(str::trim) {
        let (target, level) = part.rsplit_once('=').unwrap_or(("", part));
        let level = LevelFilter::from_str(level).map_err(|_| refused(part))?;
        // Numbers are levels to the crate, but to no reader.
        let is_number = part.ends_with(|last: char| last.is_ascii_digit());
        let is_part = !part.contains('=') || PARTS.contains(&target);
        targets = match target {
            _ if is_number || !is_part || part.is_empty() => return Err(refused(part)),
            "" => targets.with_default(level),
            target => targets.with_target(target, level),
        };
    }
    Ok(targets)
}

/// Opens the file, at the end of which each line is written in one piece.
fn open(name: &str) -> Result<File, Failure> {
    let name = name.replace(PROCESS, &std::process::id().to_string());
    let opened = OpenOptions::new().create(true).append(true).open(Path::new(&name));
    opened.map_err(|error| {
        Failure::usage(format!("{LOG_FILE_VARIABLE}: cannot write {name}: {error}"))
    })
}

/// One line: time, host and process, level, part, what happened, fields.
struct Line {
    process: String,
}

impl Line {
    fn new() -> Self {
        let name = rustix::system::uname();
        let host = name.nodename().to_string_lossy().into_owned();
        Self { process: format!("{host}[{}]", std::process::id()) }
    }
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let about = event.metadata();
        write!(writer, " {} {} {}: ", self.process, about.level(), about.target())?;
        context.format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn directives_choose_by_part_and_level() {
        let targets = read("warn, sapwood::link=debug").unwrap();
        assert!(targets.would_enable("sapwood::link", &Level::DEBUG));
        assert!(!targets.would_enable("sapwood::link", &Level::TRACE));
        assert!(targets.would_enable("sapwood::member", &Level::WARN));
        assert!(!targets.would_enable("sapwood::member", &Level::INFO));
    }

    #[test]
    fn what_is_no_level_is_refused_with_what_to_write() {
        for wrong in ["inof", "warn,", "sapwood::link", "sapwood::link=all", "3", "=info", "link="]
        {
            let said = read(wrong).unwrap_err().to_string();
            assert!(said.starts_with("SAPWOOD_LOG has '") && said.contains("debug"), "{said}");
        }
    }
}
