//! From the program's start to its end: asks for rounds, shows them, passes signals on.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood_launch::{DeathSignal, Exit, Local, Order, Process, Signal};

use super::Arguments;
use super::collection::{Collected, Collection};
use super::job::Job;
use super::screen::Screen;
use super::shim;
use sapwood_command_line::exit::{Failure, OWN_FAILURE};
use sapwood_hosts::signals::{Signals, stop_this_process, terminal_signals_our_group};

/// Two interrupts within this time mean: at once.
const URGENT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a launcher may take to end its ranks when it is to end at once.
const URGENT_GRACE: Duration = Duration::from_millis(500);
/// How often a program is looked after when the tree's loop has failed.
const BLIND_TURN: Duration = Duration::from_millis(100);
/// The exit code of a run that was ended at once: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// How the program ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    code: i32,
    /// For how long it was watched.
    pub(crate) elapsed: Duration,
}

impl End {
    /// The code with which this command ends.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::try_from(self.code & 0xff).unwrap_or(OWN_FAILURE))
    }
}

/// Starts the program and watches it until it has ended, then collects what is left. Nothing
/// is collected when the user wants it all to end at once.
///
/// # Errors
/// [`Failure`] when the program cannot be started. The tree has ended then. Once the program runs
/// nothing that fails here ends it.
pub(crate) fn watch(
    job: &Job,
    mut collection: Collection,
    base: &str,
    arguments: &Arguments,
    mut screen: Screen,
) -> Result<(End, Option<Collected>), Failure> {
    let signals = Signals::take_all_over().map_err(|error| Failure::own(&error))?;
    for descriptor in signals.descriptors() {
        collection.watch(descriptor)?;
    }
    let started = Instant::now();
    let program = start(job, base)?;
    let is_blind = collection.watch(program.exit_descriptor()).is_err();
    let mut run = Run { program, signals, interrupted: None, is_blind };
    let exit = run.until_end(&mut collection, started, arguments, &mut screen);
    let elapsed = started.elapsed();
    screen.close();
    // It stays readable, and is not looked at any more. A tree that fails at this will not
    // answer.
    let _ = collection.unwatch(run.program.exit_descriptor());
    Ok(match exit {
        Some(exit) => (End { code: exit.code(), elapsed }, Some(collection.finish())),
        None => (End { code: INTERRUPTED, elapsed }, None),
    })
}

/// The launcher gets the user's own streams and stays in our process group, so that the terminal's
/// Ctrl-C reaches it. It outlives us if we are killed: the program is not ours to end.
fn start(job: &Job, base: &str) -> Result<Process, Failure> {
    let mut order = Order::new(&job.starter);
    order.arguments = job.command[1..].to_vec();
    order.environment = shim::environment(&job.shim, base, &job.leaves);
    order.inherit_stdin = true;
    order.inherit_stderr = true;
    order.own_group = false;
    order.death_signal = DeathSignal::Off;
    Local.start(&order).map_err(Failure::usage)
}

/// A program that runs.
struct Run {
    program: Process,
    signals: Signals,
    /// When the last interrupt came.
    interrupted: Option<Instant>,
    /// Whether the tree's loop has failed, so that the program is waited for without it.
    is_blind: bool,
}

impl Run {
    /// How the program ended; none if it was ended at once because the user insisted.
    fn until_end(
        &mut self,
        collection: &mut Collection,
        started: Instant,
        arguments: &Arguments,
        screen: &mut Screen,
    ) -> Option<Exit> {
        let interval = arguments.interval;
        let mut next = started + interval;
        loop {
            let wait = next.saturating_duration_since(Instant::now());
            if self.is_blind {
                self.program.wait(wait.min(BLIND_TURN));
            } else if let Err(failure) = collection.turn(wait) {
                eprintln!("sapwood: {failure}; the program runs on unobserved");
                self.is_blind = true;
            }
            if self.pass_signals_on() {
                self.end_at_once();
                return None;
            }
            let elapsed = started.elapsed();
            let (has_come, line) = collection.take(elapsed);
            if has_come {
                screen.show(&collection.result, elapsed);
            }
            // The table in place has it already.
            if let Some(line) = line.filter(|_| !arguments.quiet && !screen.is_in_place()) {
                eprintln!("sapwood: {line}");
            }
            if let Some(exit) = self.program.try_wait() {
                return Some(exit);
            }
            let now = Instant::now();
            if now >= next {
                collection.ask();
                // A round that was slept through is not made up for.
                next = (next + interval).max(now);
            }
        }
    }

    /// Passes on what has reached this process alone; gives whether the user insists on an end at
    /// once. The terminal sends what is typed (Ctrl-C, Ctrl-\\, Ctrl-Z) to the program by itself.
    fn pass_signals_on(&mut self) -> bool {
        for signal in self.signals.take() {
            let is_typed = matches!(signal, Signal::INT | Signal::QUIT | Signal::TSTP);
            if signal == Signal::INT {
                let now = Instant::now();
                let before = self.interrupted.replace(now);
                if before.is_some_and(|before| now - before <= URGENT_INTERVAL) {
                    return true;
                }
            }
            if !(is_typed && terminal_signals_our_group()) {
                // A program that has changed its user meanwhile hears its terminal only.
                let _ = self.program.kill(signal);
            }
            if signal == Signal::TSTP {
                // As the program: the shell that has stopped the job waits for that.
                stop_this_process();
            }
        }
        false
    }

    fn end_at_once(&mut self) {
        // It is killed when it is dropped, if it does not end by itself.
        let _ = self.program.kill(Signal::TERM);
        self.program.wait(URGENT_GRACE);
    }
}
