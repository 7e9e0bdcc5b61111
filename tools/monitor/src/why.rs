//! The question why a job is slow or stuck, asked of a program while it runs: for `sapwood trace`.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use sapwood_command_line::exit::{Failure, complain};
use sapwood_report::why::{Parts, RankEnds, Why};

use super::collected::Collected;
use super::control::{ControlChannel, ControlRequest, FreezeOrder};
use super::effort::WaitsEffort;
use super::job::Job;
use super::outputs::Outputs;
use super::page::RunPage;
use super::scope::NamedScope;
use super::screen::Screen;
use super::standing::Deadline;
use super::watch::{End, Listener, News, Views};
use super::{Abi, Arguments, control_command, observe, shim};

/// How long a running program's ranks may take to say where they stand.
const LOOK_TIME: Duration = Duration::from_secs(10);
/// Between two questions whether they have.
const PAUSE: Duration = Duration::from_millis(50);
/// Looks of which a verdict is made.
const LOOKS: u64 = 2;

/// What is to be watched, and how.
#[derive(Clone, Debug, Default)]
pub struct WhyWishes {
    /// Time between two rounds.
    pub interval: Duration,
    /// A call that lasts this long is one that waits.
    pub deadline: Duration,
    /// Ranks of the program, if the command does not say so.
    pub ranks: Option<NonZeroU32>,
    /// The tree, as `sapwood mpi --topology` has it; none for one by the number of ranks.
    pub topology: Option<String>,
    /// MPI of the program, if it cannot be detected.
    pub mpi: Option<Abi>,
    /// What reading the events of waits may cost.
    pub effort: WaitsEffort,
    /// Whether waits are shown in a view on the terminal while the program runs.
    pub is_live: bool,
    /// Whether ranks note hops of bypassed reductions.
    pub has_hops: bool,
    /// Where ranks keep files of their events.
    pub events_folder: Option<PathBuf>,
    /// The command that starts the program.
    pub command: Vec<OsString>,
}

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    arguments: Arguments,
}

/// What is told of a program that is stuck.
#[derive(Clone, Copy, Debug)]
pub enum WhyNews<'a> {
    /// Why ranks wait; each verdict once.
    Verdict(&'a Why),
    /// The same, with the call stacks of the ranks that are named.
    Stacks(&'a Why),
}

impl<'a> WhyNews<'a> {
    /// What is known with it.
    #[must_use]
    pub fn why(&self) -> &'a Why {
        match self {
            Self::Verdict(why) | Self::Stacks(why) => why,
        }
    }
}

/// Starts a program and watches it until it has ended: `tell` is given each verdict that is new.
/// The code with which the program ended, and what is known then; nothing where the user had it
/// all end at once.
///
/// # Errors
/// As [`super::run`].
pub fn why(
    wishes: &WhyWishes,
    tell: &mut dyn FnMut(WhyNews<'_>),
) -> Result<(ExitCode, Option<Why>), Failure> {
    let watched = watched_for(wishes, None, &mut |news| match news {
        News::Verdict(why) => tell(WhyNews::Verdict(why)),
        News::Stacks(why) => tell(WhyNews::Stacks(why)),
        News::Frozen(_) | News::Scope(_) => {}
    })?;
    let Watched { end, collected } = watched;
    let why = collected.map(|collected| at_end(end.elapsed, &collected));
    Ok((end.exit_code(), why))
}

/// A program that was watched until it ended.
pub(crate) struct Watched {
    pub(crate) end: End,
    /// Nothing where the user had it all end at once.
    pub(crate) collected: Option<Collected>,
}

/// Starts a program and watches it until it has ended; the first trigger freezes what is ordered.
///
/// # Errors
/// As [`super::run`].
pub(crate) fn watched_for(
    wishes: &WhyWishes,
    freeze: Option<FreezeOrder>,
    listener: Listener<'_>,
) -> Result<Watched, Failure> {
    watched_with(&Arguments { freeze, ..arguments(wishes)? }, listener)
}

/// Starts a program and gathers scopes of its events, and nothing else of these.
///
/// # Errors
/// As [`super::run`].
pub(crate) fn observed(
    wishes: &WhyWishes,
    scopes: &[NamedScope],
    listener: Listener<'_>,
) -> Result<Watched, Failure> {
    let scopes = scopes.to_vec();
    watched_with(
        &Arguments {
            scopes,
            waits: false,
            deadline: Deadline::Never,
            long: None,
            ..arguments(wishes)?
        },
        listener,
    )
}

fn watched_with(arguments: &Arguments, listener: Listener<'_>) -> Result<Watched, Failure> {
    shim::check_transport().map_err(Failure::usage)?;
    let mut job = Job::read(arguments)?;
    let mut outputs = Outputs::prepare(arguments)?;
    let (control, requests) = ControlChannel::open()?;
    let mut page = RunPage::open(&arguments.page, &arguments.command, Some(control.clone()))?;
    let screen = match arguments.live.then(|| Screen::of_waits(&arguments.command)) {
        Some(Ok(screen)) => screen,
        Some(Err(error)) => {
            complain(format_args!(
                "--live needs a terminal: {error}; verdicts are printed without it"
            ));
            Screen::Off
        }
        None => Screen::Off,
    };
    let mut told = |news: News<'_>| listener(news);
    let listener: Option<Listener<'_>> = Some(&mut told);
    let views = Views { screen, outputs: &mut outputs, page: &mut page, listener };
    let (end, collected) = observe(&mut job, arguments, views, requests)?;
    Ok(Watched { end, collected })
}

/// The same options as `sapwood mpi` would have.
fn arguments(wishes: &WhyWishes) -> Result<Arguments, Failure> {
    let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
    let mut words: Vec<OsString> = ["why", "--quiet", "--waits"].map(OsString::from).into();
    words.extend(["--interval".into(), milliseconds(wishes.interval).into()]);
    if let Some(ranks) = wishes.ranks {
        words.extend(["--ranks".into(), ranks.to_string().into()]);
    }
    if let Some(topology) = &wishes.topology {
        words.extend(["--topology".into(), topology.into()]);
    }
    words.push("--".into());
    words.extend(wishes.command.iter().cloned());
    let read = Words::try_parse_from(words);
    // What is wrong is a line; how other commands are used does not follow here.
    let told = |error: clap::Error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Failure::usage(line.strip_prefix("error: ").unwrap_or(line))
    };
    let mut arguments = read.map_err(told)?.arguments;
    arguments.deadline = Deadline::After(wishes.deadline);
    arguments.long = Some(wishes.deadline);
    arguments.live = wishes.is_live;
    arguments.effort = wishes.effort;
    arguments.mpi = wishes.mpi;
    arguments.hops = wishes.has_hops;
    arguments.events_folder.clone_from(&wishes.events_folder);
    Ok(arguments)
}

/// What is known when the program has ended.
fn at_end(elapsed: Duration, collected: &Collected) -> Why {
    let held = collected.held.as_ref();
    let mut why = Why::of(&Parts {
        program: &collected.program,
        elapsed,
        has_ended: collected.has_ended,
        standing: collected.standing.as_ref(),
        verdict: held.map(|held| (held.at, &held.verdict, &held.standing)),
        stacks: collected.still_stacks.as_ref(),
        passed: collected.passed,
        findings: collected.waits.as_ref().map(|waits| (elapsed, waits)),
        is_recording: false,
    });
    why.ended = RankEnds::of(&collected.deaths.section(), collected.deaths.ended_before());
    if let Some(outdated) = &collected.outdated {
        why.unknown.push(format!("counts at the end of the program: {}", outdated.reason));
    }
    if why.ranks == 0 && collected.program.starts_with("python") {
        why.unknown.push(TORCH_HINT.to_owned());
    }
    for missing in &collected.missing {
        why.unknown.push(format!("ranks {}: {}", missing.ranks, missing.reason));
    }
    why
}

/// Of a program of Python that has no rank.
const TORCH_HINT: &str =
    "groups of torch.distributed, if used: start it by 'python3 -m sapwood.torch SCRIPT'";

/// Asks a run of `sapwood mpi` of this user why its program is slow or stuck.
///
/// # Errors
/// [`Failure`] when no run or more than one is there, or it does not answer.
pub fn why_of_running(name: Option<&str>, deadline: Duration) -> Result<Why, Failure> {
    let network = control_command::find(name)?;
    let why_s = Some(deadline.as_secs_f64());
    let request = ControlRequest { why_s, ..ControlRequest::default() };
    let before = control_command::ask(&network, &request)?;
    let limit = Instant::now() + LOOK_TIME;
    loop {
        std::thread::sleep(PAUSE);
        let reply = control_command::ask(&network, &request)?;
        if !reply.error.is_empty() {
            return Err(Failure::usage(reply.error));
        }
        // A verdict is of two looks.
        if let Some(why) = reply.why.filter(|_| reply.looks >= before.looks + LOOKS) {
            return Ok(why);
        }
        if Instant::now() >= limit {
            return Err(Failure::own(&"the ranks did not report their calls in time"));
        }
    }
}
