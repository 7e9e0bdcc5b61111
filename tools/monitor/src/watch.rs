//! From the program's start to its end: asks for rounds, shows them, passes signals on.

use std::cell::LazyCell;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood_launch::{DeathSignal, Exit, Local, Order, Process, Signal};
use sapwood_report::RoundRecord;
use sapwood_report::ends::Ends;
use sapwood_report::freeze::Freeze;
use sapwood_report::record::Death;
use sapwood_report::scope::ScopeRecord;
use sapwood_report::why::Why;

use super::Arguments;
use super::collected::Collected;
use super::collection::Collection;
use super::control::channel::ControlQueue;
use super::job::Job;
use super::launcher_end::{Descendants, LauncherEnd, has_children};
use super::outputs::Outputs;
use super::page::RunPage;
use super::placement::{JobHosts, Placement, job_with_comment};
use super::screen::Screen;
use super::shim;
use super::stacks::StackWatch;
use super::standing::StandingWatch;
use super::stopped_launcher::{StopRemedy, StoppedLauncher, is_stopped};
use super::told_signals::{Telling, ToldSignals};
use super::{events_folder, tallies, waits};
use sapwood_command_line::exit::{Failure, OWN_FAILURE, complain};
use sapwood_hosts::signals::{Signals, stop_this_process, terminal_signals_our_group};

/// How long a launcher may take to end its ranks when it is to end at once.
const URGENT_GRACE: Duration = Duration::from_millis(500);
/// How often a program is looked after when the tree's loop has failed.
const BLIND_TURN: Duration = Duration::from_millis(100);
/// How long ranks wait for a leaf that starts after them.
const LEAF_WAIT: Duration = Duration::from_secs(20);
/// Between two questions where the program runs.
const PLACE_PAUSE: Duration = Duration::from_millis(100);
/// How often in turn these may fail.
const FAILURES_MAX: u32 = 20;
/// Kinds of deaths that are told one by one.
const DEATH_LINES_MAX: usize = 8;
/// How often ranks are asked what they report where no rounds go by time.
pub(crate) const QUIET_INTERVAL: Duration = Duration::from_secs(1);
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
    /// Of a program that was attached to, whose code only its launcher learns.
    pub(crate) fn attached(elapsed: Duration) -> Self {
        Self { code: 0, elapsed }
    }

    /// How it ended, for people.
    pub(crate) fn told(self) -> String {
        format!("exit code {}", self.code)
    }

    /// The code with which this command ends.
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::try_from(self.code & 0xff).unwrap_or(OWN_FAILURE))
    }
}

/// Starts the program and watches it until it has ended, then collects what is left. Nothing
/// more is collected when the user wants it all to end at once: what had come is left as the report
/// before this returns.
///
/// # Errors
/// [`Failure`] when the program cannot be started. The tree has ended then. Once the program runs
/// nothing that fails here ends it.
pub(crate) fn watch(
    job: &Job,
    mut collection: Collection,
    base: &str,
    arguments: &Arguments,
    mut views: Views<'_>,
    requests: ControlQueue,
) -> Result<(End, Option<Collected>), Failure> {
    let signals = Signals::take_all_over().map_err(|error| Failure::own(&error))?;
    for descriptor in signals.descriptors() {
        collection.watch(descriptor)?;
    }
    views.watch(&mut collection)?;
    collection.watch(&requests)?;
    let started = Instant::now();
    let program = start(job, base, arguments, &views, Duration::ZERO)?;
    let mut run = Run::new(program, signals, job, requests);
    views.outputs.begin();
    Ok(follow(&mut run, job, collection, started, arguments, &mut views))
}

/// The same for a launcher that makes an allocation, and for a tree inside the job: the program is
/// started first, and the tree once it is known where it runs. Its ranks wait for their leaves
/// meanwhile.
///
/// # Errors
/// As [`watch`].
pub(crate) fn watch_later(
    job: &mut Job,
    base: &str,
    arguments: &Arguments,
    mut views: Views<'_>,
    requests: ControlQueue,
) -> Result<(End, Option<Collected>), Failure> {
    let signals = Signals::take_all_over().map_err(|error| Failure::own(&error))?;
    let started = Instant::now();
    let program = start(job, base, arguments, &views, LEAF_WAIT)?;
    views.outputs.begin();
    let mut run = Run::new(program, signals, job, requests);
    let settled = match &job.in_world {
        Some(_) => Ok(()),
        None => match run.until_placed(base) {
            Ok(Some(hosts)) => job.settle(hosts, arguments.fan_out.into()),
            Ok(None) => Err("Slurm does not name the hosts of the job step".to_owned()),
            Err(ended) => {
                let code = ended.map_or(INTERRUPTED, Exit::code);
                return Ok((End { code, elapsed: started.elapsed() }, None));
            }
        },
    };
    let program_end = run.program.exit_descriptor().try_clone_to_owned().ok();
    let opened = settled.and_then(|()| {
        Collection::open(job, base, arguments, program_end).map_err(|error| error.to_string())
    });
    match opened {
        Ok(mut collection) => {
            for descriptor in run.signals.descriptors() {
                collection.watch(descriptor)?;
            }
            collection.watch(&run.requests)?;
            views.watch(&mut collection)?;
            Ok(follow(&mut run, job, collection, started, arguments, &mut views))
        }
        Err(error) => {
            match run.program.try_wait() {
                Some(_) => complain("the program ended before its tree had started"),
                None => complain(format_args!("{error}; the program runs on unobserved")),
            }
            let code = run.until_end_alone().map_or(INTERRUPTED, Exit::code);
            Ok((End { code, elapsed: started.elapsed() }, None))
        }
    }
}

/// Watches a program that runs until it has ended.
fn follow(
    run: &mut Run,
    job: &Job,
    mut collection: Collection,
    started: Instant,
    arguments: &Arguments,
    views: &mut Views<'_>,
) -> (End, Option<Collected>) {
    run.is_blind = collection.watch(run.program.exit_descriptor()).is_err();
    run.stacks = Some(StackWatch::new(arguments.stacks, &mut collection));
    let exit = run.until_end(job, &mut collection, started, arguments, views);
    let elapsed = started.elapsed();
    views.close(&mut collection);
    // It stays readable, and is not looked at any more. A tree that fails at this will not
    // answer.
    let _ = collection.unwatch(run.program.exit_descriptor());
    match exit {
        Some(exit) => {
            run.note_last_signal(&mut collection, elapsed);
            let collected = collection.finish(elapsed, exit.code());
            let ends = || collected.ends(elapsed, exit.code());
            views.outputs.finish_ends(&collected.deaths, elapsed, ends);
            // Which rank died first is what an exit code hides, in quiet runs, too. A listener is
            // told why ranks ended.
            let is_said = !arguments.quiet || views.listener.is_none();
            let lines = Death::lines(&collected.deaths.section(), DEATH_LINES_MAX);
            for line in lines.iter().filter(|_| is_said) {
                complain(line);
            }
            (End { code: exit.code(), elapsed }, Some(collected))
        }
        None => {
            // Processes first: a file system may take long, and no signal is read meanwhile.
            run.end_at_once();
            let deaths = &collection.guidance.deaths;
            views.outputs.finish_ends(deaths, elapsed, || ends_so_far(&collection, elapsed));
            if views.listener.is_none() {
                let outputs = (&mut *views.outputs, &mut *views.page);
                super::conclude(job, elapsed, so_far(&collection), outputs, arguments);
            }
            (End { code: INTERRUPTED, elapsed }, None)
        }
    }
}

/// What has come while the program runs.
fn so_far(collection: &Collection) -> Collected {
    let standing = collection.reported();
    Collected {
        settings: Some(collection.guidance.section()),
        has_traced: collection.guidance.has_traced,
        deaths: collection.guidance.deaths.clone(),
        held: standing.and_then(|watch| watch.held().cloned()),
        passed: standing.map_or(0, StandingWatch::passed),
        ..collection.result.clone()
    }
}

/// How ranks have ended while the program runs.
fn ends_so_far(collection: &Collection, elapsed: Duration) -> Ends {
    let (program, ranks) = (&collection.result.program, collection.known_world_size());
    let ends = events_folder::ends_of(&collection.guidance.deaths, program, ranks, elapsed);
    Ends { was_told_to_end: collection.ending.is_some(), ..ends }
}

/// The launcher gets the user's own streams and stays in our process group, so that the terminal's
/// Ctrl-C reaches it. It outlives us if we are killed: the program is not ours to end.
fn start(
    job: &Job,
    base: &str,
    arguments: &Arguments,
    views: &Views<'_>,
    leaf_wait: Duration,
) -> Result<Process, Failure> {
    let mut variables = shim::environment(&job.shim, base, &job.leaves, leaf_wait);
    if let Some(in_world) = &job.in_world {
        in_world.add_to(&mut variables, base, &job.shim)?;
    }
    if let Some(every) = arguments.every {
        variables.push(("SAPWOOD_MPI_EVERY".into(), every.variable().into()));
    }
    variables.push((tallies::VARIABLE.into(), arguments.extras.words().into()));
    variables.push((waits::VARIABLE.into(), if arguments.records() { "1" } else { "0" }.into()));
    // For ranks on other hosts.
    if let Some(bytes) = std::env::var_os(waits::RING_VARIABLE) {
        variables.push((waits::RING_VARIABLE.into(), bytes));
    }
    if arguments.notes_hops() {
        variables.push((waits::HOPS_VARIABLE.into(), "1".into()));
    }
    if let Some(folder) = views.outputs.events_folder() {
        variables.push((events_folder::VARIABLE.into(), folder.into()));
    }
    let comment = (job.placement == Placement::Later).then_some(base);
    let forwarded = job.start_with(&variables, comment);
    let mut order = Order::new(&job.starter);
    order.arguments = forwarded.words[1..].to_vec();
    order.environment = forwarded.environment;
    order.inherit_stdin = !(views.has_keys() && std::io::stdin().is_terminal());
    order.inherit_stderr = true;
    order.own_group = false;
    order.death_signal = DeathSignal::Off;
    Local.start(&order).map_err(Failure::usage)
}

/// What is told while the program runs.
pub(crate) enum News<'a> {
    /// Why ranks wait; each verdict once.
    Verdict(&'a Why),
    /// Where the ranks are that the last one names.
    Stacks(&'a Why),
    /// What the first trigger has frozen.
    Frozen(&'a Freeze),
    /// What a scope has gathered.
    Scope(&'a ScopeRecord),
}

/// The listener.
pub(crate) type Listener<'a> = &'a mut dyn FnMut(News<'_>);

/// Where rounds are shown and kept while the program runs.
pub(crate) struct Views<'a> {
    pub(crate) screen: Screen,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) page: &'a mut RunPage,
    pub(crate) listener: Option<Listener<'a>>,
}

impl Views<'_> {
    /// Has the tree's loop look at what they wait for.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn watch(&self, collection: &mut Collection) -> Result<(), Failure> {
        if let Some(server) = self.outputs.server() {
            collection.watch(server)?;
        }
        if let Some(live) = self.screen.live() {
            collection.watch(live.screen().input())?;
            collection.watch(live.screen().resized())?;
        }
        Ok(())
    }

    /// Whether keys that are typed are for a view, and not for the program.
    fn has_keys(&self) -> bool {
        self.screen.live().is_some()
    }

    /// Shows and keeps the latest round.
    pub(crate) fn show(
        &mut self,
        job: &Job,
        collection: &Collection,
        elapsed: Duration,
        interval: Option<Duration>,
    ) {
        let result = &collection.result;
        // Made once, by the first of them that wants it.
        let record = LazyCell::new(|| collection.record(elapsed));
        self.page.publish(|| RoundRecord::clone(&record));
        self.screen.show(result, elapsed, || RoundRecord::clone(&record));
        let interval = interval.unwrap_or_default();
        let report = || super::report(job, elapsed, so_far(collection), interval);
        self.outputs.keep(&record, elapsed, report);
    }

    /// Tells what has come beside rounds to the listener, or of a verdict to the user where there
    /// is none, and keeps how ranks have ended; whether there is a new verdict.
    pub(crate) fn tell_news(&mut self, collection: &mut Collection, elapsed: Duration) -> bool {
        let deaths = &collection.guidance.deaths;
        self.outputs.note_ends(deaths, elapsed, || ends_so_far(collection, elapsed));
        let is_verdict = collection.take_verdict(elapsed);
        let (freeze, scopes) = (collection.take_freezes(elapsed), collection.take_scopes(elapsed));
        let Some(tell) = &mut self.listener else {
            // In quiet runs, too, and beside a table. While a view with keys is open, a line would
            // spoil its screen: the verdict that holds when it is closed is said then.
            if self.screen.live().is_none() {
                collection.verdict_line().iter().for_each(complain);
            }
            return is_verdict;
        };
        if is_verdict {
            tell(News::Verdict(&collection.why(elapsed)));
        }
        if let Some(freeze) = freeze {
            tell(News::Frozen(&freeze));
        }
        for record in scopes {
            tell(News::Scope(&record));
        }
        is_verdict
    }

    /// Gives the terminal back, and looks at its keys no more.
    pub(crate) fn close(&mut self, collection: &mut Collection) {
        if let Some(live) = self.screen.live() {
            // A tree that fails at this will not answer either.
            let _ = collection.unwatch(live.screen().input());
            let _ = collection.unwatch(live.screen().resized());
        }
        self.screen.close();
    }
}

/// Whether a signal tells the program to end.
fn is_end(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::QUIT | Signal::HUP)
}

/// A program that runs.
struct Run {
    program: Process,
    signals: Signals,
    /// Those that tell the program to end.
    told: ToldSignals,
    /// One of which the collection does not know yet.
    ending: Option<Signal>,
    /// Whether the tree's loop has failed, so that the program is waited for without it.
    is_blind: bool,
    /// Of a launcher that has all processes of the program as children, or what started them.
    launcher_end: Option<LauncherEnd>,
    stopped: StoppedLauncher,
    /// Once the tree stands.
    stacks: Option<StackWatch>,
    requests: ControlQueue,
}

impl Run {
    fn new(program: Process, signals: Signals, job: &Job, requests: ControlQueue) -> Self {
        Self {
            program,
            signals,
            told: ToldSignals::default(),
            ending: None,
            is_blind: false,
            launcher_end: job.has_all_ranks_below_it().then(LauncherEnd::default),
            stopped: StoppedLauncher::default(),
            stacks: None,
            requests,
        }
    }

    /// Where the program runs, once Slurm says so; none if that cannot be known.
    ///
    /// # Errors
    /// The program's end before that; none if the user insisted on it.
    fn until_placed(&mut self, comment: &str) -> Result<Option<JobHosts>, Option<Exit>> {
        let mut failures = 0;
        loop {
            match job_with_comment(comment) {
                Ok(Some(hosts)) => return Ok(Some(hosts)),
                Ok(None) => failures = 0,
                Err(_) if failures < FAILURES_MAX => failures += 1,
                Err(error) => {
                    complain(error);
                    return Ok(None);
                }
            }
            if let Some(exit) = self.look(PLACE_PAUSE) {
                return Err(exit);
            }
        }
    }

    fn until_end_alone(&mut self) -> Option<Exit> {
        loop {
            if let Some(exit) = self.look(BLIND_TURN) {
                return exit;
            }
        }
    }

    /// Waits for the program without a tree; its end if it came, without an exit if the user
    /// insisted on it.
    fn look(&mut self, wait: Duration) -> Option<Option<Exit>> {
        if self.pass_signals_on() {
            self.end_at_once();
            return Some(None);
        }
        self.end_launcher_that_stays();
        self.program.wait(wait).map(Some)
    }

    /// How the program ended; none if it is to be ended at once because the user insists.
    fn until_end(
        &mut self,
        job: &Job,
        collection: &mut Collection,
        started: Instant,
        arguments: &Arguments,
        views: &mut Views<'_>,
    ) -> Option<Exit> {
        let mut last = started;
        loop {
            let interval = collection.guidance.settings.interval;
            let next = last + interval.unwrap_or(QUIET_INTERVAL);
            let due = views.outputs.ends_due(&collection.guidance.deaths);
            self.turn(collection, due.map_or(next, |due| next.min(started + due)));
            if self.pass_signals_on() {
                return None;
            }
            if let Some(signal) = self.ending.take() {
                collection.note_ending(signal, started.elapsed());
                collection.result.standstills.note_ending(started.elapsed());
            }
            views.outputs.serve();
            if views.screen.react() {
                views.close(collection);
            }
            let elapsed = started.elapsed();
            let (has_come, line) = collection.take(elapsed);
            if has_come {
                views.show(job, collection, elapsed, interval);
            }
            let is_verdict = views.tell_news(collection, elapsed);
            let is_still = line.is_some() || is_verdict;
            let stacks = self.stacks.as_mut().map(|one| one.step(collection, elapsed, is_still));
            let stacks = stacks.unwrap_or_default();
            if let (true, Some(tell)) = (stacks.is_still, &mut views.listener) {
                tell(News::Stacks(&collection.why(elapsed)));
            }
            for record in collection.take_iterations(elapsed) {
                views.outputs.append(&record);
            }
            collection.serve_requests(&mut self.requests, elapsed);
            // The table in place has it already. That ranks do not come is said in quiet runs, too.
            // A listener is told more.
            let is_said = !views.screen.is_in_place() && views.listener.is_none();
            let unjudged = collection.result.standstills.take_unjudged();
            let places = stacks.lines.into_iter().filter(|_| !arguments.quiet);
            let late = if is_said { collection.take_uninitialised_lines() } else { Vec::new() };
            let lines = line.into_iter().chain(unjudged).chain(places).filter(|_| is_said);
            for line in lines.chain(late) {
                complain(line);
            }
            self.end_launcher_that_stays();
            if let Some(exit) = self.program.try_wait() {
                return Some(exit);
            }
            let now = Instant::now();
            if now >= next {
                match interval {
                    Some(_) => collection.ask(elapsed),
                    None => collection.guidance.ask(elapsed),
                }
                // A round that was slept through is not made up for.
                let is_behind = now > next + interval.unwrap_or(QUIET_INTERVAL);
                last = if is_behind { now } else { next };
            }
        }
    }

    /// Lets the tree's loop run until something comes, until this moment at most.
    fn turn(&mut self, collection: &mut Collection, until: Instant) {
        let wait = until.saturating_duration_since(Instant::now());
        let wait = self.stacks.as_ref().map_or(wait, |stacks| stacks.wait(wait));
        let wait = self.launcher_end.as_ref().map_or(wait, |end| end.wait(wait));
        let wait = self.stopped.wait(wait);
        let wait = collection.wait_for_scopes(wait);
        if self.is_blind {
            self.program.wait(wait.min(BLIND_TURN));
        } else if let Err(failure) = collection.turn(wait) {
            complain(format_args!("{failure}; the program runs on unobserved"));
            self.is_blind = true;
        }
    }

    /// Passes on what has reached this process alone; gives whether the user insists on an end at
    /// once. The terminal sends what is typed (Ctrl-C, Ctrl-\\, Ctrl-Z) to the program by itself.
    fn pass_signals_on(&mut self) -> bool {
        for signal in self.signals.take() {
            match is_end(signal).then(|| self.note_told(signal)) {
                Some(Telling::Same) => continue,
                Some(Telling::Urgent) if signal == Signal::INT => return true,
                Some(Telling::Urgent | Telling::New) | None => {}
            }
            let is_typed = matches!(signal, Signal::INT | Signal::QUIT | Signal::TSTP);
            if !(is_typed && terminal_signals_our_group()) {
                // A program that has changed its user meanwhile hears its terminal only.
                let _ = self.program.kill(signal);
            }
            if signal == Signal::TSTP {
                // As the program: the shell that has stopped the job waits for that.
                stop_this_process();
            }
        }
        self.rouse_launcher()
    }

    /// Has a launcher that is stopped hear that it was told to end, once the user insists; gives
    /// whether it stays stopped, so that all is to end at once.
    fn rouse_launcher(&mut self) -> bool {
        let pid = self.program.pid();
        match self.stopped.remedy(Instant::now(), || is_stopped(pid)) {
            StopRemedy::Nothing => false,
            StopRemedy::Continue => {
                complain("the launcher was asked to end, and is stopped; it is continued");
                let _ = self.program.kill(Signal::CONT);
                false
            }
            StopRemedy::EndAtOnce => {
                complain("the launcher was asked to end, and stays stopped; it is killed");
                true
            }
        }
    }

    /// Notes a signal that tells the program to end.
    fn note_told(&mut self, signal: Signal) -> Telling {
        let at = Instant::now();
        self.ending.get_or_insert(signal);
        self.launcher_end.iter_mut().for_each(|end| end.tell(at));
        self.stopped.tell(at);
        self.told.note(signal, at)
    }

    /// Notes a signal that has come together with the program's end, as one to the whole process
    /// group may.
    fn note_last_signal(&mut self, collection: &mut Collection, elapsed: Duration) {
        let come = self.signals.take().into_iter().find(|&signal| is_end(signal));
        if let Some(signal) = self.ending.take().or(come) {
            collection.note_ending(signal, elapsed);
        }
    }

    fn end_launcher_that_stays(&mut self) {
        let pid = self.program.pid();
        let Some(end) = &mut self.launcher_end else { return };
        let grace = end.grace();
        if end.is_overdue(Instant::now(), || has_children(pid)) {
            complain(format_args!(
                "the launcher was asked to end, and stays {} s after the last of its processes; \
                 it is killed",
                grace.as_secs()
            ));
            let _ = self.program.kill(Signal::KILL);
        }
    }

    /// Ends the program and all that it has started on this host.
    fn end_at_once(&mut self) {
        // Once the launcher has ended, the system no longer says what was below it.
        let below = Descendants::of(self.program.pid());
        let _ = self.program.kill(Signal::TERM);
        below.signal(Signal::TERM);
        let until = Instant::now() + URGENT_GRACE;
        self.program.wait(until.saturating_duration_since(Instant::now()));
        below.wait(until);
        if self.program.try_wait().is_none() {
            // A script that is deaf goes on with its next command.
            let later = Descendants::of(self.program.pid());
            let _ = self.program.kill(Signal::KILL);
            later.signal(Signal::KILL);
        }
        below.signal(Signal::KILL);
    }
}
