//! `sapwood trace tree`: follows the waves of a running network hop by hop, and says which
//! processes and links its answers wait for.
//!
//! `following` has the events read and joined, `hot_spots` says where the time goes and which tree
//! would be better, `text`, `json` and `svg` are the output.

mod following;
mod hot_spots;
mod json;
mod svg;
mod text;
mod times;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{HopForm, StreamId};
use sapwood_command_line::exit::{Failure, by_signal, print};
use sapwood_command_line::times::time;
use sapwood_status::Whom;

use self::following::{Followed, Wishes, follow};
use crate::files::{check, write};
use crate::hop_reading::End;

/// The shortest time between two readings.
const EVERY_MIN: Duration = Duration::from_millis(10);

/// Follow the waves of a running network, and print for which processes and links its answers
/// wait.
#[derive(clap::Args)]
#[command(
    after_help = "Processes record events of waves only while this command runs. docs/trace.md \
    explains each figure."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    whom: Whom,
    /// Follow the waves for this time.
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = time)]
    time: Duration,
    /// Time between two readings of events, at least 10ms.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    every: Duration,
    /// Show this stream only, by its number in the output.
    #[arg(long, value_name = "NUMBER", value_parser = stream)]
    stream: Option<StreamId>,
    /// Read only sums that each process keeps itself: which children's parts arrive last.
    #[arg(long)]
    sums: bool,
    /// Write a picture of the stream with the longest waits to this file: the tree, each link
    /// redder the more often its child's part arrived last.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Capacity of each process's ring buffer in events, at most 1048576.
    #[arg(long, value_name = "EVENTS", default_value = "32768", value_parser = room)]
    room: NonZeroU32,
}

/// Follows the waves, and prints what came of it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.every < EVERY_MIN {
        return Err(Failure::usage("--every: give at least 10ms"));
    }
    if arguments.time.is_zero() {
        return Err(Failure::usage("--for: give a time above 0, such as 5s"));
    }
    if let Some(file) = &arguments.svg {
        check(file).map_err(Failure::usage)?;
    }
    let network = arguments.whom.find()?;
    let wishes = Wishes {
        time: arguments.time,
        every: arguments.every,
        timeout: arguments.whom.timeout,
        stream: arguments.stream,
        form: if arguments.sums { HopForm::Sums } else { HopForm::Events },
        room: arguments.room.get(),
        has_progress: !arguments.whom.json,
    };
    let followed = follow(&network, &wishes)?;
    if let Some(file) = &arguments.svg {
        draw(file, &followed)?;
    }
    print(&match arguments.whom.json {
        true => json::report(&followed),
        false => text::draw(&followed),
    })?;
    match &followed.end {
        End::Over => Ok(ExitCode::SUCCESS),
        End::Signal(signal) => Ok(ExitCode::from(by_signal(*signal))),
        End::NoAnswer(why) => Err(Failure::own(&format!(
            "{} was followed for {:.1} s only: {why}",
            followed.network,
            followed.took.as_secs_f64()
        ))),
    }
}

/// Writes the picture; without a wave there is none.
fn draw(file: &Path, followed: &Followed) -> Result<(), Failure> {
    let by_time = followed.by_time();
    let Some((stream, figures)) = by_time.first() else {
        return Err(Failure::own(&format!(
            "no picture was written to '{}': no wave passed in that time",
            file.display()
        )));
    };
    let picture = svg::encode(*stream, figures, followed);
    let failed = |error| Failure::own(&format!("cannot write '{}': {error}", file.display()));
    write(file, picture.as_bytes()).map_err(failed)
}

fn room(text: &str) -> Result<NonZeroU32, String> {
    let most = sapwood::HOP_EVENTS_MAX;
    let room = text.parse::<NonZeroU32>().ok().filter(|room| room.get() <= most);
    room.ok_or_else(|| format!("give a number of events from 1 to {most}"))
}

fn stream(text: &str) -> Result<StreamId, String> {
    text.parse().map_err(|_| "give the number of a stream, such as 3".to_string())
}
