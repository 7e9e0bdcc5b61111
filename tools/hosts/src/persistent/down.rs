//! `sapwood down`: ending trees that are kept up.

use std::process::ExitCode;
use std::time::Duration;

use super::Found;
use super::shared::SharedTree;
use sapwood_command_line::exit::{Failure, complain_all, print};

/// How long a tree may take to end.
const END_TIME: Duration = Duration::from_secs(30);

/// What `sapwood down` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    /// Name of the tree; needed only if several are up.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// End all trees of this user on this machine.
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Ends a tree, and says which.
///
/// # Errors
/// [`Failure`] where none is up, or it does not end.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let trees = match arguments.all {
        true => {
            let trees = super::all()?;
            complain_all(&super::ended(|_, _| true));
            trees
        }
        false => vec![super::named(arguments.name.as_deref())?],
    };
    for tree in trees {
        print(&end(tree)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends a tree, and gives the line that says which.
///
/// # Errors
/// [`Failure`] where it does not end.
pub(crate) fn end(tree: Found) -> Result<String, Failure> {
    let told = tree.description.clone();
    let (name, pid) = (&told.name, told.pid);
    if !SharedTree::stop(tree)?.wait_for_end(END_TIME)? {
        return Err(Failure::own(&format!(
            "tree '{name}' has not ended within {} s: its daemon, process {pid}, is stopped or \
             busy; 'kill -CONT {pid}' continues it if it is stopped, 'kill -KILL {pid}' ends it \
             and its tree",
            END_TIME.as_secs(),
        )));
    }
    let commands = match told.commands {
        0 => String::new(),
        1 => "; a command was running".to_string(),
        count => format!("; {count} commands were running"),
    };
    Ok(format!("tree '{}' has ended: {}{commands}\n", told.name, told.hosts))
}
