//! Many back-ends in one process: the leaves of the benchmark of scale.
//!
//! Owns the hidden command that attaches a share of a network's back-ends by themselves, each over
//! a socket of its own, and serves all of them in one thread: an outer poller watches the
//! back-ends' descriptors. Also owns the start of such processes ([`BackEndProcesses`]). What the
//! back-ends answer is that of `leaf`, and for [`ATTACHED_AT`] the moment at which the last one
//! came.
//!
//! A back-end here never waits for room on a stream, since the others could not work meanwhile:
//! the front-end asks for no more than fits into a window.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sapwood::{BackEnd, Error, Received, Tag};
use sapwood_launch::{Local, Order, Process};
use sapwood_random::Random;
use sapwood_transport::{Interest, Poller, monotonic_clock};

use super::leaf::{Payload, Request, TAG};
use super::offload_leaf::{COST, DUMP, Dumper};
use super::tree::own_program;
use sapwood_command_line::exit::Failure;

/// The hidden argument with which this program serves many back-ends.
pub const BACK_ENDS: &str = "bench-back-ends";

/// The tag of the question when a back-end was attached, in nanoseconds of the system's clock.
pub(super) const ATTACHED_AT: Tag = TAG + 1;

/// Descriptors that a back-end takes in its process: a socket and a poller.
const DESCRIPTORS_PER_BACK_END: usize = 2;
/// Those of the process itself: standard streams, the outer poller, files while they are read.
const DESCRIPTORS_OF_PROCESS: usize = 64;

/// How often every back-end is looked at though nothing has come, since its deadlines are known to
/// itself alone.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// The share of the ranks that one process attaches: `first`, `first + step` and so on, in an order
/// that the seed shuffles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub first: u32,
    pub step: u32,
    pub count: u32,
    pub seed: u64,
}

impl Share {
    /// The ranks in the order in which they attach.
    fn ranks(self) -> Vec<u32> {
        let mut ranks: Vec<u32> =
            (0..self.count).map(|index| self.first + index * self.step).collect();
        if self.seed > 0 {
            Random::new(self.seed).shuffle(&mut ranks);
        }
        ranks
    }
}

/// Lets this process, and what it starts from now on, open as many files as the system allows it.
/// Gives how many those are.
pub(super) fn raise_descriptor_limit() -> Result<u64, Failure> {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).map_err(|error| {
        Failure::own(&format!("cannot raise the limit of open files to {hard:?}: {error}"))
    })?;
    Ok(hard.unwrap_or(u64::MAX))
}

/// How many descriptors a process with that many back-ends opens.
pub(super) fn descriptors_of(back_ends: usize) -> usize {
    back_ends * DESCRIPTORS_PER_BACK_END + DESCRIPTORS_OF_PROCESS
}

/// Now, in nanoseconds of a clock that all processes of a machine share.
pub(super) fn machine_nanoseconds() -> u64 {
    monotonic_clock().unsigned_abs()
}

/// Serves back-ends until the network ends: `ATTACH-FILE FIRST STEP COUNT SEED`.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let (path, share) = read(arguments)?;
    raise_descriptor_limit()?;
    let mut poller = Poller::new().map_err(|error| Failure::own(&error))?;
    let mut members: Vec<Option<Member>> = Vec::with_capacity(share.count as usize);
    for rank in share.ranks() {
        let back_end = BackEnd::attach_by_file(&path, Some(rank))?;
        let attached_at = machine_nanoseconds();
        poller
            .add(&back_end, members.len() as u64, Interest::READ)
            .map_err(|error| Failure::own(&error))?;
        let (payload, dumper) = (Payload::default(), Dumper::default());
        members.push(Some(Member { back_end, payload, dumper, attached_at }));
    }
    let mut ready = Vec::new();
    let mut left = members.len();
    while left > 0 {
        poller.wait(&mut ready, Some(ROUND_INTERVAL)).map_err(|error| Failure::own(&error))?;
        let all = 0..if ready.is_empty() { members.len() } else { 0 };
        for at in ready.iter().map(|event| event.token as usize).chain(all) {
            let Some(member) = &mut members[at] else { continue };
            if !member.serve()? {
                // Closing its descriptor takes it out of the poller.
                members[at] = None;
                left -= 1;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(arguments: &[OsString]) -> Result<(PathBuf, Share), Failure> {
    let wrong = || Failure::usage(format!("{BACK_ENDS} is started by the benchmark, not by hand"));
    let [path, numbers @ ..] = arguments else { return Err(wrong()) };
    let number = |text: &OsString| text.to_str().and_then(|text| text.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.iter().filter_map(number).collect();
    let [first, step, count, seed] = numbers[..] else { return Err(wrong()) };
    let short = |number: u64| u32::try_from(number).map_err(|_| wrong());
    let share = Share { first: short(first)?, step: short(step)?, count: short(count)?, seed };
    Ok((PathBuf::from(path), share))
}

/// One back-end of the process.
struct Member {
    back_end: BackEnd,
    payload: Payload,
    dumper: Dumper,
    attached_at: u64,
}

impl Member {
    /// Answers what has come; gives whether the network goes on.
    fn serve(&mut self) -> Result<bool, Failure> {
        loop {
            match self.back_end.try_recv() {
                Ok(Some(received)) => match self.answer(&received) {
                    Ok(()) => {}
                    Err(Error::Ended { .. }) => return Ok(false),
                    // The stream was closed meanwhile.
                    Err(Error::Misuse(_)) => {}
                    Err(error) => return Err(error.into()),
                },
                Ok(None) => return Ok(true),
                Err(Error::Ended { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn answer(&mut self, received: &Received) -> Result<(), Error> {
        if received.tag() == ATTACHED_AT {
            return self.back_end.send(received.stream, ATTACHED_AT, self.attached_at);
        }
        if [DUMP, COST].contains(&received.tag()) {
            return self.dumper.answer(&mut self.back_end, received);
        }
        let request = Request::read(received.values())?;
        self.payload.answer(&mut self.back_end, received.stream, request)
    }
}

/// The processes that hold the back-ends of one network. Dropping them ends them.
pub(super) struct BackEndProcesses {
    processes: Vec<Process>,
}

impl BackEndProcesses {
    /// Starts as many processes as it takes to attach `back_ends`, none with more than
    /// `per_process`. Their ranks are dealt out in turn, so that every communication process has
    /// back-ends of every process.
    pub(super) fn start(
        attach_file: &Path,
        back_ends: u32,
        per_process: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        let own = own_program()?;
        let step = back_ends.div_ceil(per_process.max(1));
        let mut processes = Vec::new();
        for first in 0..step {
            let count = (back_ends - first).div_ceil(step);
            // Each process shuffles differently, and a seed of zero means: in order.
            let seed = if seed == 0 { 0 } else { seed + u64::from(first) };
            let mut order = Order::new(&own);
            order.arguments = vec![OsString::from(BACK_ENDS), attach_file.as_os_str().to_owned()];
            for number in [u64::from(first), u64::from(step), u64::from(count), seed] {
                order.arguments.push(OsString::from(number.to_string()));
            }
            processes.push(Local.start(&order).map_err(|error| Failure::own(&error))?);
        }
        Ok(Self { processes })
    }

    /// How many processes there are.
    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    /// Fails with the words of a process that has ended.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        for process in &mut self.processes {
            if process.try_wait().is_some() {
                return Err(Failure::own(&process.exit_report()));
            }
        }
        Ok(())
    }

    /// Waits until all have ended by themselves, as they do with their network.
    pub(super) fn wait_ended(&mut self, limit: Duration) {
        for process in &mut self.processes {
            process.wait(limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_hold_every_rank_once_in_an_order_of_their_seed() {
        let share = Share { first: 1, step: 4, count: 50, seed: 7 };
        let shuffled = share.ranks();
        let mut sorted = shuffled.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).map(|index| 1 + 4 * index).collect::<Vec<_>>());
        assert_ne!(sorted, shuffled);
        assert_eq!(shuffled, share.ranks());
        assert_eq!(Share { seed: 0, ..share }.ranks(), sorted);
    }

    #[test]
    fn arguments_of_a_process_are_four_numbers_behind_a_file() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let (path, share) = read(&words(&["/run/x", "1", "4", "50", "7"])).unwrap();
        assert_eq!((path.to_str(), share.count, share.seed), (Some("/run/x"), 50, 7));
        assert!(read(&words(&["/run/x", "1", "4", "50"])).is_err());
        assert!(read(&[]).is_err());
    }
}
