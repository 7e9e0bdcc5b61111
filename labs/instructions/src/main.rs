//! `sapwood-instructions`: how many instructions a process of a tree spends on one message, and how
//! often it allocates memory.
//!
//! Owns the command line and the comparison with the recorded counts. `tree` is what is measured,
//! `measure` runs it under valgrind's callgrind, `record` is the file of counts. Times on a shared
//! machine differ by more than a change of the program costs; counts of instructions do not, so
//! they may be a test.

mod allocations;
mod links;
mod measure;
mod record;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sapwood_command_line::arguments;
use sapwood_command_line::exit::{Failure, guarded, print};

use links::Links;
use record::Record;

/// Some step takes more instructions than the record allows.
const RISEN: u8 = 1;

/// Count the instructions and allocations per message of each kind of process
///
/// With --record they are compared with those of a file.
#[derive(Parser)]
#[command(name = "sapwood-instructions", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Compare with the counts in this file, and fail if one has risen by more than a share.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the counts to the file instead of comparing.
    #[arg(long, requires = "record")]
    write: bool,
    /// Keep the profiler's files, one for each wave, in this folder, for `callgrind_annotate`.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Count only over these links.
    #[arg(long, value_enum)]
    links: Option<Links>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Part {
    /// What is measured, as valgrind runs it.
    #[command(hide = true)]
    Work { links: Links },
}

fn main() -> ExitCode {
    guarded(|| {
        let read = arguments::read::<Arguments>("sapwood-instructions");
        let result = read.and_then(|read| match read {
            Some(arguments) => run(&arguments),
            None => Ok(ExitCode::SUCCESS),
        });
        result.unwrap_or_else(|failure| failure.report())
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(Part::Work { links }) = arguments.part {
        measure::work(links).map_err(|error| Failure::own(&error))?;
        return Ok(ExitCode::SUCCESS);
    }
    let scratch = tempfile::tempdir().map_err(|error| Failure::own(&error))?;
    let folder = arguments.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    let mut counted = Record::new();
    for links in Links::ALL {
        if arguments.links.is_none_or(|only| only == links) {
            let counts = measure::count(links, folder).map_err(|error| Failure::own(&error))?;
            counted.add(links, counts);
        }
    }
    let Some(path) = &arguments.record else {
        print(&if arguments.json { counted.json() } else { counted.table(None) })?;
        return Ok(ExitCode::SUCCESS);
    };
    if arguments.write {
        counted.write(path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let before = Record::read(path)?;
    print(&if arguments.json { counted.json() } else { counted.table(Some(&before)) })?;
    let risen = counted.risen(&before);
    for line in &risen {
        eprintln!("sapwood-instructions: {line}");
    }
    Ok(if risen.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(RISEN) })
}
