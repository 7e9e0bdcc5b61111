//! `sapwood down`: ending trees that are kept up.

use std::process::ExitCode;
use std::time::Duration;

use super::shared::SharedTree;
use super::{Found, KeptTrees, UnusableTree};
use sapwood_command_line::exit::{Failure, complain, complain_all, print};

/// How long a tree may take to end.
const END_TIME: Duration = Duration::from_secs(30);

/// What `sapwood down` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    /// Name of the tree; needed only if several are up.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The same as NAME.
    #[arg(long, visible_alias = "tree", value_name = "NAME", conflicts_with = "name")]
    network: Option<String>,
    /// End all trees of this user on this machine.
    #[arg(long, conflicts_with_all = ["name", "network"])]
    all: bool,
}

/// Ends a tree, or all of them, and says which.
///
/// # Errors
/// [`Failure`] where none is up, or it does not end.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.all {
        return end_all();
    }
    let name = arguments.name.as_ref().or(arguments.network.as_ref());
    print(&end(super::named(name.map(String::as_str))?)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Ends all trees. One that cannot be ended does not keep the others up: it is named, and the exit
/// code is that of `sapwood down` with its name, or the largest where there are several. So is one
/// that cannot be reached.
fn end_all() -> Result<ExitCode, Failure> {
    let KeptTrees { found, unusable } = super::own_trees()?;
    complain_all(&super::ended(|_, _| true));
    let mut failures: Vec<Failure> = unusable.iter().map(UnusableTree::to_failure).collect();
    let mut printed = Ok(());
    for tree in found {
        match end(tree) {
            // Without standard output the others end as well.
            Ok(line) => printed = printed.and(print(&line)),
            Err(failure) => failures.push(failure),
        }
    }
    let mut code = 0;
    for failure in &failures {
        complain(failure);
        code = failure.code().max(code);
    }
    printed?;
    Ok(ExitCode::from(code))
}

/// Ends a tree, and gives the line that says which.
///
/// # Errors
/// [`Failure`] where it does not end.
pub(crate) fn end(tree: Found) -> Result<String, Failure> {
    let told = tree.description.clone();
    let (name, pid) = (&told.name, told.pid);
    if !SharedTree::stop(tree)?.wait_for_end(END_TIME)? {
        return Err(Failure::timeout(format!(
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
