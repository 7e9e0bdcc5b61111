//! A communication process: a node without an application.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_node::{Event, Role};

use crate::{Attachment, Driver, RuntimeError, clock};

/// How long a process that joins waits for the welcome of the one that it turned to.
const WELCOME_DEADLINE: Duration = Duration::from_secs(10);

/// Runs a communication process until its network ends. Called by the program's `node` command. On
/// a host that was reached by ssh or the like it first runs as the launch agent of that process,
/// and then ends this program with its exit code.
///
/// # Errors
/// [`RuntimeError`] when the environment names no parent, the parent cannot be reached, or the
/// system fails this process.
pub fn serve(registry: Registry) -> Result<(), RuntimeError> {
    run(started(registry)?, None)
}

/// As [`serve`], but the process also leaves as soon as a descriptor is readable: what it has is
/// passed on, and its children turn to their ancestors. The program decides what makes the
/// descriptor readable, such as a signal that it handles.
///
/// # Errors
/// As [`serve`].
pub fn serve_until(registry: Registry, leave: impl AsFd) -> Result<(), RuntimeError> {
    run(started(registry)?, Some(leave.as_fd()))
}

/// Joins a network that takes dynamic members as a further communication process, by the first of
/// these places that takes it in, and goes on as [`serve_until`].
///
/// # Errors
/// [`RuntimeError::NotTaken`] when none does; else as [`serve`].
pub fn join_until(
    places: Vec<Attachment>,
    registry: &Registry,
    leave: impl AsFd,
) -> Result<(), RuntimeError> {
    let mut reason = String::from("no attach point takes dynamic members");
    for place in places {
        let address = place.parent.to_string();
        let outcome = place
            .connect(Role::Communication)
            .and_then(|parent| Driver::join(parent, registry.clone()))
            .and_then(|mut driver| Ok((wait_for_welcome(&mut driver)?, driver)));
        match outcome {
            Ok((None, driver)) => return run(driver, Some(leave.as_fd())),
            Ok((Some(refusal), _)) => reason = format!("{address}: {refusal}"),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(RuntimeError::NotTaken { reason })
}

fn started(registry: Registry) -> Result<Driver, RuntimeError> {
    if let Some(exit) = sapwood_launch::run_launch_agent()? {
        // The client that reached this host reads the same exit code.
        std::process::exit(exit.code());
    }
    sapwood_launch::arrange_death_signal()?;
    let attachment = Attachment::from_environment()?;
    Driver::attach(attachment.connect(Role::Communication)?, registry)
}

/// Waits for the welcome; gives why there is none.
fn wait_for_welcome(driver: &mut Driver) -> Result<Option<String>, RuntimeError> {
    let until = clock() + WELCOME_DEADLINE;
    loop {
        if driver.node().is_planned() {
            return Ok(None);
        }
        while let Some(event) = driver.next_event() {
            if let Event::Ended { reason, .. } = event {
                return Ok(Some(reason));
            }
        }
        if clock() >= until {
            let waited = WELCOME_DEADLINE.as_millis();
            return Ok(Some(format!("no welcome within {waited} ms")));
        }
        driver.turn(Some(until))?;
    }
}

fn run(mut driver: Driver, leave: Option<BorrowedFd<'_>>) -> Result<(), RuntimeError> {
    if let Some(leave) = leave {
        driver.watch(leave)?;
    }
    let mut is_asked = false;
    while !driver.has_ended() && !is_asked {
        is_asked = driver.turn(None)?;
        while driver.next_event().is_some() {}
    }
    if let Some(leave) = leave {
        driver.unwatch(leave)?;
    }
    driver.close()
}
