//! Failures of the floor as failures of the command.

use sapwood_command_line::exit::Failure;
use sapwood_floor::Error;

/// The floor's error with the exit code that fits.
pub(crate) fn of_floor(error: Error) -> Failure {
    match error {
        Error::Shape { .. } | Error::Argument(_) => Failure::usage(error),
        Error::DeadlinePassed { .. } => Failure::timeout(error),
        error => Failure::own(&error),
    }
}
