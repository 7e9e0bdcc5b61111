//! Programs that answer a question, such as the loader, `squeue` or `scontrol`: they are run to
//! their end within a limit, and their standard output is the answer.

use std::time::{Duration, Instant};

use sapwood_launch::{Exit, Local, Order};

/// How often output is taken while a program answers, so that the program never blocks in a write.
const TAKE_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a program that answers a question within the limit: how it ended and its standard output.
/// # Errors
/// One line when the program cannot be started or does not end within the limit.
pub fn answer(mut order: Order<'_>, limit: Duration) -> Result<(Exit, String), String> {
    order.capture_stdout = true;
    let mut process = Local.start(&order).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + limit;
    let mut output = Vec::new();
    let mut ignored = Vec::new();
    loop {
        let exit = process.wait(TAKE_INTERVAL);
        // What cannot be read any more was not said.
        let _ = process.take_stdout(&mut output);
        let _ = process.take_stderr(&mut ignored);
        if let Some(exit) = exit {
            return Ok((exit, String::from_utf8_lossy(&output).into_owned()));
        }
        if Instant::now() >= deadline {
            return Err(format!("no answer within {} s", limit.as_secs()));
        }
    }
}
