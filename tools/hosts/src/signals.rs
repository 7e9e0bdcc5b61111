//! Signals as descriptors, for the poll loop: the wish to end, by Ctrl-C, `kill` or a closed
//! terminal; and, for a command that stands in front of another program, all that the program
//! may be meant to get.
//!
//! This belongs to the command, not to a library: only a program's own `main` may take its signals.

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub use sapwood_launch::Signal;

/// The signals that ask a program to end.
const SIGNALS: [(Signal, i32); 3] = [
    (Signal::INT, signal_hook::consts::SIGINT),
    (Signal::TERM, signal_hook::consts::SIGTERM),
    (Signal::HUP, signal_hook::consts::SIGHUP),
];

/// Further signals that end a program which does not expect them, or stop and continue it. Not
/// among them: faults of a program's own, the end of a pipe's reader, a file that is too large, and
/// what is ignored anyhow.
const OTHERS: [(Signal, i32); 10] = [
    (Signal::QUIT, signal_hook::consts::SIGQUIT),
    (Signal::USR1, signal_hook::consts::SIGUSR1),
    (Signal::USR2, signal_hook::consts::SIGUSR2),
    (Signal::ALARM, signal_hook::consts::SIGALRM),
    (Signal::VTALARM, signal_hook::consts::SIGVTALRM),
    (Signal::PROF, signal_hook::consts::SIGPROF),
    (Signal::IO, signal_hook::consts::SIGIO),
    (Signal::XCPU, signal_hook::consts::SIGXCPU),
    (Signal::TSTP, signal_hook::consts::SIGTSTP),
    (Signal::CONT, signal_hook::consts::SIGCONT),
];

/// Between two looks for a signal of a process that waits for nothing else.
const LOOK: Duration = Duration::from_millis(50);

/// Signals that were taken over and have come; by default none are taken over.
#[derive(Default)]
pub struct Signals {
    pipes: Vec<(Signal, PipeReader)>,
}

impl Signals {
    /// Takes the signals over, for as long as the process lives. Those that our starter has
    /// ignored, as `nohup` does, stay ignored.
    ///
    /// # Errors
    /// The system's.
    pub fn take_over() -> std::io::Result<Self> {
        Self::of(&SIGNALS)
    }

    /// Takes over every signal that a program may be meant to get: those that ask it to end, that
    /// it may have a meaning for, and that stop and continue it.
    ///
    /// # Errors
    /// The system's.
    pub fn take_all_over() -> std::io::Result<Self> {
        Self::of(&[&SIGNALS[..], &OTHERS[..]].concat())
    }

    fn of(signals: &[(Signal, i32)]) -> std::io::Result<Self> {
        let mut pipes = Vec::new();
        let ignored = ignored();
        for &(signal, number) in signals {
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            let (reader, writer) = std::io::pipe()?;
            rustix::io::ioctl_fionbio(&reader, true)?;
            signal_hook::low_level::pipe::register(number, std::os::fd::OwnedFd::from(writer))?;
            pipes.push((signal, reader));
        }
        Ok(Self { pipes })
    }

    /// What becomes readable when a signal has come.
    pub fn descriptors(&self) -> impl Iterator<Item = impl AsFd + '_> {
        self.pipes.iter().map(|(_, reader)| reader)
    }

    /// The signals that have come since the last call, each as often as it was seen.
    pub fn take(&mut self) -> Vec<Signal> {
        let mut come = Vec::new();
        for (signal, reader) in &mut self.pipes {
            let mut bytes = [0_u8; 16];
            // The pipe's end cannot come, since its writer is never closed.
            let count = reader.read(&mut bytes).unwrap_or(0);
            come.extend(std::iter::repeat_n(*signal, count));
        }
        come
    }

    /// Waits, but no longer than until a signal comes.
    pub fn sleep(&mut self, time: Duration) -> Option<Signal> {
        let begin = Instant::now();
        loop {
            if let Some(&signal) = self.take().first() {
                return Some(signal);
            }
            let rest = time.saturating_sub(begin.elapsed());
            if rest.is_zero() {
                return None;
            }
            sleep(rest.min(LOOK));
        }
    }
}

/// The signals that this process ignores, signal 1 in the lowest bit.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Stops this process until it is continued, as the signal that was taken over would have.
pub fn stop_this_process() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}

/// Whether Ctrl-C on the terminal reaches the processes of our group by itself.
pub fn terminal_signals_our_group() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| {
        rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
    })
}
