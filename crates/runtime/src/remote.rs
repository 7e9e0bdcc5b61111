//! The processes that this one has started on other hosts: reaching the hosts, a few at a time, and
//! replacing those that cannot be reached.
//!
//! A host that does not answer, refuses the client, or has another identity than its name says
//! costs only the back-ends on it: a communication process that was planned there is started on
//! another host of its subtree, and finally on this one. The processes below it are notified of the
//! lost host, so that none tries it again.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sapwood_launch::{
    COPY_VARIABLE, Greeting, LaunchAgentProgram, LaunchError, Launcher, Reserve, Session, Slurm,
    Ssh, Task, quoted,
};
use sapwood_node::{Instant, Node};
use sapwood_random::Random;
use sapwood_topology::{HostName, Role, Subtree};
use sapwood_transport::{Encryption, Interest, Poller};

use crate::answer_time::{AnswerTime, ClientState};
use crate::client_limit::{ClientLimit, Pass};
use crate::environment::STARTED_VARIABLE;
use crate::invitation::Invitation;
use crate::journal;
use crate::token::Token;
use crate::{
    ENCRYPTION_VARIABLE, KEY_VARIABLE, LOG_FILE_VARIABLE, LOG_VARIABLE, PARENT_VARIABLE, Plan,
    RANK_VARIABLE, Reach, RemoteOptions, RuntimeError, TreeOptions,
};

/// How often one host is tried when its server says that it is only busy, if there is time.
const TRIALS_MAX: u32 = 4;

/// The pause before the second trial, in milliseconds; each further one is twice as long, and up to
/// as much again is left to chance.
const RETRY_PAUSE_MS: u64 = 200;

/// How much later than its time is over a host is given up without an extension.
const LATENESS_MAX: Duration = Duration::from_secs(1);

/// On how many hosts a communication process is tried, before it is started on this one.
const PLACES_MAX: usize = 2;

/// The difference from which on a host's clock is reported as wrong.
const CLOCK_ERROR_MAX: Duration = Duration::from_secs(5);

/// The program of this process itself: the path in the plan may not exist on this host.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A process to be started on a host.
#[derive(Debug)]
struct Start {
    child: Subtree,
    trials: u32,
    /// When this host was first called.
    first_called: Option<Instant>,
    /// Hosts that have failed, the planned one first.
    failed: Vec<HostName>,
    not_before: Instant,
}

/// A host that was called.
#[derive(Debug)]
struct Call {
    start: Start,
    session: Session,
    pass: Pass,
    answer_time: AnswerTime,
    has_joined: bool,
    is_writing: bool,
    hears_answers: bool,
    hears_words: bool,
}

/// The result of a start, or what was noticed in it.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The process is to be started on this host.
    Here(Subtree),
    /// The process is not started, for this reason.
    Failed(u32, String),
    /// What the user may want to know.
    Notice(String),
}

/// The starts on other hosts of one process.
pub(crate) struct Remote {
    plan: Plan,
    options: RemoteOptions,
    launcher: Box<dyn Launcher>,
    program: LaunchAgentProgram,
    task: Task,
    waiting: VecDeque<Start>,
    calls: BTreeMap<u32, Call>,
    /// How many of them have not joined. A counter, because every turn of the loop reads it.
    under_way: usize,
    outcomes: Vec<Outcome>,
    client_limit: ClientLimit,
    /// A number for jitter, different in each process.
    random: Random,
}

impl Remote {
    /// For the children of a plan; nothing if none is started on another host.
    pub(crate) fn new(
        plan: &Plan,
        invitation: &Invitation<'_>,
    ) -> Result<Option<Self>, LaunchError> {
        let Some(options) = &plan.options.remote else { return Ok(None) };
        let Some(launcher) = launcher_of(options) else { return Ok(None) };
        let encryption = if invitation.encryption == Encryption::On { "on" } else { "off" };
        // A host that is reached by ssh has none of this process's variables.
        let logging = [LOG_VARIABLE, LOG_FILE_VARIABLE];
        let logging =
            logging.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
        let environment = [
            (PARENT_VARIABLE, invitation.listen_address.to_string()),
            (STARTED_VARIABLE, "1".to_owned()),
            (ENCRYPTION_VARIABLE, encryption.to_owned()),
        ];
        let environment = environment.into_iter().chain(logging);
        let wait = plan.options.recovery.front_end_wait.as_millis();
        let task = Task {
            environment: environment.map(|(name, value)| (name.to_owned(), value)).collect(),
            secret: Some((KEY_VARIABLE.to_owned(), *invitation.key.to_bytes())),
            directory: options.directory.clone(),
            front_end: options.front_end.clone(),
            patience_milliseconds: u32::try_from(wait).unwrap_or(u32::MAX),
            ..Task::default()
        };
        Ok(Some(Self {
            plan: plan.clone(),
            options: options.clone(),
            launcher,
            program: agent_program(&plan.options)?,
            task,
            waiting: VecDeque::new(),
            calls: BTreeMap::new(),
            under_way: 0,
            outcomes: Vec::new(),
            client_limit: ClientLimit::new(),
            // Different in each process, or all that lost the same server would call it again
            // together.
            random: Random::new(
                u64::from(std::process::id()) << 32 | u64::from(plan.subtree.rank()),
            ),
        }))
    }

    /// A child that belongs on another host.
    pub(crate) fn push(&mut self, child: Subtree, now: Instant) {
        let lost = self.lost_reason(child.host());
        let start =
            Start { child, trials: 0, first_called: None, failed: Vec::new(), not_before: now };
        match lost {
            Some(reason) => self.failed(start, &reason, now),
            None => self.waiting.push_back(start),
        }
    }

    fn lost_reason(&self, host: &HostName) -> Option<String> {
        let lost = self.options.lost_hosts.iter().find(|(name, _)| name == host.as_str());
        lost.map(|(_, reason)| reason.clone())
    }

    /// Calls hosts that wait, tells launch agents whose process has joined, and gives up those that
    /// do not answer.
    pub(crate) fn step(&mut self, node: &mut Node, poller: &Poller, now: Instant) {
        for (rank, call) in &mut self.calls {
            if !call.has_joined && node.has_come(*rank) {
                call.has_joined = true;
                self.under_way -= 1;
                call.session.joined();
                write(*rank, call, poller, now);
            }
        }
        // Behind the joins: a process may join in the turn in which its time is over.
        for rank in self.late(now) {
            self.no_answer(rank, poller, now);
        }
        let mut room = self.room_now(now);
        while room > 0
            && let Some(index) = self.waiting.iter().position(|start| start.not_before <= now)
            && let Some(start) = self.waiting.remove(index)
        {
            // A call that failed at once takes no room.
            room -= usize::from(self.call(start, node, poller, now));
        }
    }

    /// Those whose time is over.
    fn late(&mut self, now: Instant) -> Vec<u32> {
        let patience = self.patience();
        let mut late = Vec::new();
        for (&rank, call) in &mut self.calls {
            let session = &call.session;
            let client = || ClientState {
                is_copying: session.is_copying(),
                busy: session.work().map_or(Duration::ZERO, |work| work.busy()),
            };
            if call.answer_time.is_over(now, patience, client) {
                late.push(rank);
            }
        }
        late
    }

    /// The results of starts since the last call.
    pub(crate) fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// When [`Remote::step`] has something to do.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        let answers = self.calls.values().filter_map(|call| call.answer_time.by());
        let has_room = self.room() > 0;
        let starts = self.waiting.iter().filter(|_| has_room);
        let starts = starts.map(|start| start.not_before.max(self.client_limit.next_look()));
        // Results that wait are due at once.
        let outcomes = self.outcomes.first().map(|_| Instant::default());
        answers.chain(starts).chain(outcomes).min()
    }

    /// Whether a launch agent is still to be notified that its process has joined.
    pub(crate) fn is_starting(&self) -> bool {
        self.under_way > 0
    }

    /// How many hosts to call now. The order matters only for hosts that have others to reach.
    fn room_now(&mut self, now: Instant) -> usize {
        // Once all are called, a turn of the loop looks no further.
        if !self.waiting.iter().any(|start| start.not_before <= now) {
            return 0;
        }
        let has_others = |start: &Start| start.child.role() != Role::BackEnd;
        let under_way = || self.calls.values().filter(|call| !call.has_joined);
        let mut starts = self.waiting.iter().chain(under_way().map(|call| &call.start));
        // Hosts that reach no others delay only themselves, so their order and number do not
        // matter.
        if !starts.any(has_others) {
            return self.room();
        }
        let under_way = self.calls.values_mut().filter(|call| !call.has_joined);
        let under_way = under_way.map(|call| (&mut call.pass, call.session.work()));
        let room = self.client_limit.room(under_way, now);
        room.min(self.room())
    }

    /// How many more may be called at a time.
    fn room(&self) -> usize {
        (self.options.concurrent.max(1) as usize).saturating_sub(self.under_way)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.waiting.is_empty()
    }

    /// Whether this child was started elsewhere.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.calls.contains_key(&rank)
    }

    fn call(&mut self, start: Start, node: &mut Node, poller: &Poller, now: Instant) -> bool {
        let rank = start.child.rank();
        let host = start.child.host().as_str();
        self.renew_plan(&start, node);
        let task = self.task_for(&start.child);
        // A descriptor is reserved for the link of each started process that has not joined.
        // Otherwise starts take all descriptors, and no process can connect.
        let links = Reserve::of(self.under_way + 1)
            .map_err(|source| RuntimeError::System { what: "keep descriptors for links", source });
        let called = links
            .and_then(|links| {
                let session = Session::start(&*self.launcher, host, &self.program, &task);
                // The reserve is free again for the links themselves.
                drop(links);
                Ok(session?)
            })
            .and_then(|mut session| watch(rank, &mut session, poller).map(|()| session));
        match called {
            Ok(session) => {
                journal::reaching(rank, host);
                // A second trial has only what is left of the first one's time.
                let begun = start.first_called.unwrap_or(now);
                let answer_by = begun + self.patience();
                let call = Call {
                    start,
                    session,
                    pass: Pass::new(now),
                    answer_time: AnswerTime::new(now, answer_by),
                    has_joined: false,
                    is_writing: false,
                    hears_answers: true,
                    hears_words: true,
                };
                self.calls.insert(rank, call);
                self.under_way += 1;
                true
            }
            Err(error) => {
                self.failed(start, &error.to_string(), now);
                false
            }
        }
    }

    /// A process whose plan was made before hosts were lost, or for another host, is notified.
    fn renew_plan(&self, start: &Start, node: &mut Node) {
        if start.child.role() == Role::BackEnd {
            return;
        }
        let is_below = |(name, _): &&(String, String)| {
            start.child.host_names().iter().any(|host| host.as_str() == name.as_str())
        };
        let has_lost = self.options.lost_hosts.iter().any(|lost| is_below(&lost));
        if has_lost || !start.failed.is_empty() {
            node.replan(start.child.rank(), self.plan_for(&start.child).to_bytes());
        }
    }

    fn plan_for(&self, child: &Subtree) -> Plan {
        let mut options = self.plan.options.clone();
        options.remote = Some(self.options.clone());
        Plan { options, subtree: child.clone() }
    }

    fn task_for(&self, child: &Subtree) -> Task {
        let mut task = self.task.clone();
        let options = &self.plan.options;
        task.environment.push((RANK_VARIABLE.to_owned(), child.rank().to_string()));
        match (child.role(), &options.back_end) {
            (Role::BackEnd, Some(back_end)) => {
                let is_own = back_end.program == options.node_program;
                task.program = (!is_own).then(|| back_end.program.clone());
                task.arguments = back_end.arguments.clone();
                // What the tree says counts more than what the program is given.
                task.environment.splice(0..0, back_end.environment.iter().cloned());
            }
            _ => {
                task.arguments = options.node_arguments.clone();
                task.arguments.push("node".to_owned());
            }
        }
        task
    }

    /// The client has said something on standard output.
    pub(crate) fn answers(&mut self, rank: u32, poller: &Poller, now: Instant) {
        let Some(call) = self.calls.get_mut(&rank) else { return };
        let greeting = call.session.read();
        if call.session.answers_ended() && std::mem::take(&mut call.hears_answers) {
            let _ = poller.remove(call.session.answers());
        }
        match greeting {
            Some(greeting) if call.answer_time.is_awaited() => {
                self.greeted(rank, &greeting, poller, now)
            }
            _ => write(rank, call, poller, now),
        }
    }

    /// A launch agent has identified itself: it receives the task, unless it is on another host
    /// than planned.
    fn greeted(&mut self, rank: u32, greeting: &Greeting, poller: &Poller, now: Instant) {
        let Some(call) = self.calls.get_mut(&rank) else { return };
        let asked = call.start.child.host().as_str();
        let others = self.plan.subtree.host_names().iter().map(HostName::as_str);
        if let Some(problem) = greeting.contradiction(asked, others) {
            if let Some(call) = self.forget(rank, poller) {
                self.failed(call.start, &problem, now);
            }
            return;
        }
        self.outcomes.extend(clock_error(asked, greeting, now.since(call.answer_time.begun())));
        let doubt = greeting.doubt(asked).map(|doubt| format!("host {asked}: {doubt}"));
        self.outcomes.extend(doubt.map(Outcome::Notice));
        call.answer_time.answered();
        self.client_limit.has_led(call.session.work());
        call.session.accept();
        write(rank, call, poller, now);
    }

    /// A client can be written to.
    pub(crate) fn writable(&mut self, rank: u32, poller: &Poller, now: Instant) {
        if let Some(call) = self.calls.get_mut(&rank) {
            write(rank, call, poller, now);
        }
    }

    /// A client has something on its standard error: what the process wrote is passed on to ours;
    /// what comes before the launch agent has answered is kept as the reason of a failure.
    pub(crate) fn words(&mut self, rank: u32, poller: &Poller) {
        let Some(call) = self.calls.get_mut(&rank) else { return };
        let client = call.session.client();
        let is_about_its_end = |line: &str| self.launcher.is_about_its_end(line);
        let _ = match call.answer_time.is_awaited() {
            true => client.take_stderr(&mut Vec::new()),
            false => client.forward_stderr_without("", is_about_its_end),
        };
        if client.stderr_ended() && std::mem::take(&mut call.hears_words) {
            let _ = poller.remove(client.stderr());
        }
    }

    /// A client has ended. If the process had joined, its link tells the rest.
    pub(crate) fn ended(&mut self, rank: u32, node: &Node, poller: &Poller, now: Instant) {
        let Some(mut call) = self.forget(rank, poller) else { return };
        if call.has_joined || !node.is_awaited(rank) {
            return;
        }
        let reason = call.session.reason();
        let is_passing = call.answer_time.is_awaited() && self.launcher.is_worth_retrying(&reason);
        let mut start = call.start;
        start.trials += 1;
        let begun = *start.first_called.get_or_insert(call.answer_time.begun());
        let again = now + self.pause(start.trials);
        let has_time = again.since(begun) < self.patience();
        if is_passing && has_time && start.trials < TRIALS_MAX {
            start.not_before = again;
            return self.waiting.push_back(start);
        }
        self.failed(start, &reason, now);
    }

    /// How long a host may take to answer.
    fn patience(&self) -> Duration {
        Duration::from_millis(self.options.connect_milliseconds.into())
    }

    /// A longer pause for each attempt, with a random part, so that clients that were refused
    /// together do not come back together.
    fn pause(&mut self, trials: u32) -> Duration {
        let pause = RETRY_PAUSE_MS << trials.saturating_sub(1).min(8);
        Duration::from_millis(pause + self.random.below(pause))
    }

    fn no_answer(&mut self, rank: u32, poller: &Poller, now: Instant) {
        let Some(mut call) = self.forget(rank, poller) else { return };
        // Of each host the same number, so that those that are silent can be told in one line.
        let waited = now.since(call.start.first_called.unwrap_or(call.answer_time.begun()));
        let limit = self.patience();
        let waited = if waited < limit + LATENESS_MAX { limit } else { waited }.as_millis();
        let words = call.session.last_words();
        let mut reason = format!("no answer within {waited} ms");
        if !words.is_empty() {
            reason = format!("{reason}: {words}");
        }
        self.failed(call.start, &reason, now);
    }

    /// Watches a client no longer.
    fn forget(&mut self, rank: u32, poller: &Poller) -> Option<Call> {
        let mut call = self.calls.remove(&rank)?;
        self.under_way -= usize::from(!call.has_joined);
        unwatch(&mut call, poller);
        Some(call)
    }

    /// A host takes no process: a communication process is started elsewhere.
    fn failed(&mut self, mut start: Start, reason: &str, now: Instant) {
        let host = start.child.host().clone();
        let rank = start.child.rank();
        if self.lost_reason(&host).is_none() {
            self.options.lost_hosts.push((host.to_string(), reason.to_owned()));
        }
        // A back-end belongs to its host: it is started nowhere else.
        if start.child.role() == Role::BackEnd {
            return self.outcomes.push(Outcome::Failed(rank, format!("host {host}: {reason}")));
        }
        start.failed.push(host.clone());
        let is_free =
            |other: &&HostName| !is_here(&self.plan, other) && self.lost_reason(other).is_none();
        let next = start.child.host_names().iter().find(is_free);
        let next = next.filter(|_| start.failed.len() < PLACES_MAX).cloned();
        let is_here = next.is_none();
        let place = next.unwrap_or_else(|| own_host(&self.plan));
        let elsewhere = if is_here { "here".to_owned() } else { format!("on {place}") };
        self.outcomes.push(Outcome::Notice(format!(
            "host {host}: {reason}; communication process {rank} is started {elsewhere}"
        )));
        start.child = start.child.on_host(place);
        start.trials = 0;
        start.first_called = None;
        start.not_before = now;
        match is_here {
            true => self.outcomes.push(Outcome::Here(start.child)),
            false => self.waiting.push_back(start),
        }
    }

    /// The plan of a child that is started here after all.
    pub(crate) fn plan_of(&self, child: &Subtree) -> Vec<u8> {
        self.plan_for(child).to_bytes()
    }

    /// Hosts may take longer to answer by this.
    pub(crate) fn excuse(&mut self, late: Duration) {
        for call in self.calls.values_mut() {
            call.answer_time.excuse(late);
        }
    }

    /// Gives up all that have not joined; returns them, with the reason. A program that runs may
    /// still join.
    pub(crate) fn give_up(
        &mut self,
        node: &Node,
        poller: &Poller,
        waited: Duration,
    ) -> Vec<(u32, String)> {
        let mut unheard = Vec::new();
        for start in self.waiting.drain(..) {
            let host = start.child.host();
            let reason = format!(
                "host {host}: not reached within {} ms, as others came first",
                waited.as_millis()
            );
            unheard.push((start.child.rank(), reason));
        }
        let ranks: Vec<u32> =
            self.calls.keys().copied().filter(|&rank| node.is_awaited(rank)).collect();
        for rank in ranks {
            let Some(call) = self.calls.get(&rank) else { continue };
            // An agent that has answered keeps its call: its program may only be slow, and joins
            // when it connects.
            let (is_silent, host) = (call.answer_time.is_awaited(), call.start.child.host());
            let what = match is_silent {
                true => "has not answered",
                false => "runs the program, which has not joined the network",
            };
            unheard.push((rank, format!("host {host} {what} within {} ms", waited.as_millis())));
            if is_silent {
                self.forget(rank, poller);
            }
        }
        unheard
    }

    /// Ends the sessions of all that have not joined, and starts no others.
    pub(crate) fn end_unheard(&mut self, node: &Node, poller: &Poller) {
        self.waiting.clear();
        let ranks: Vec<u32> =
            self.calls.keys().copied().filter(|&rank| !node.has_come(rank)).collect();
        for rank in ranks {
            self.forget(rank, poller);
        }
    }

    /// Ends all sessions. What has joined goes on as long as the front-end is there.
    pub(crate) fn end_all(&mut self, poller: &Poller) {
        self.waiting.clear();
        self.under_way = 0;
        for (_, mut call) in std::mem::take(&mut self.calls) {
            unwatch(&mut call, poller);
        }
    }
}

fn watch(rank: u32, session: &mut Session, poller: &Poller) -> Result<(), RuntimeError> {
    poller.add(session.answers(), Token::AgentStdout(rank).to_number(), Interest::READ)?;
    let client = session.client();
    poller.add(client.exit_descriptor(), Token::Exit(rank).to_number(), Interest::READ)?;
    poller.add(client.stderr(), Token::ChildStderr(rank).to_number(), Interest::READ)?;
    Ok(())
}

fn unwatch(call: &mut Call, poller: &Poller) {
    // All are closed in any case.
    if call.hears_answers {
        let _ = poller.remove(call.session.answers());
    }
    if call.is_writing
        && let Some(stdin) = call.session.client().stdin()
    {
        let _ = poller.remove(stdin);
    }
    let client = call.session.client();
    let _ = poller.remove(client.exit_descriptor());
    if call.hears_words {
        let _ = poller.remove(client.stderr());
    }
}

/// Writes what waits for a client, and watches for room where it does not take all.
fn write(rank: u32, call: &mut Call, poller: &Poller, now: Instant) {
    if call.session.write() > 0 {
        call.answer_time.moved(now);
    }
    let wants = call.session.wants_write().is_some();
    if wants == call.is_writing {
        return;
    }
    let Some(stdin) = call.session.client().stdin() else { return };
    let changed = match wants {
        true => poller.add(stdin, Token::AgentStdin(rank).to_number(), Interest::WRITE),
        false => poller.remove(stdin),
    };
    if changed.is_ok() {
        call.is_writing = wants;
    }
}

/// A tree needs only each host's own monotonic clock; wall clocks matter to users who compare the
/// output of hosts.
fn clock_error(asked: &str, greeting: &Greeting, taken: Duration) -> Option<Outcome> {
    let own = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let (ahead, behind) = (
        greeting.clock.saturating_sub(own),
        own.saturating_sub(greeting.clock).saturating_sub(taken),
    );
    let errors = [(ahead, "ahead of"), (behind, "behind")];
    let (error, word) = errors.into_iter().find(|&(error, _)| error > CLOCK_ERROR_MAX)?;
    let text = format!("host {asked}: its clock is {} s {word} its parent's", error.as_secs());
    Some(Outcome::Notice(text))
}

/// What reaches other hosts; nothing where nothing is started there.
fn launcher_of(options: &RemoteOptions) -> Option<Box<dyn Launcher>> {
    // The client gives up a little sooner than this process, so that its error text is the reason.
    let limit = Duration::from_millis(options.connect_milliseconds.into());
    let limit = limit.saturating_sub(limit / 5);
    match &options.reach {
        Reach::Attach => None,
        Reach::Ssh { shell, prefix } => {
            Some(Box::new(Ssh::new(shell.clone(), limit).run_by(prefix.clone())))
        }
        Reach::Slurm { job } => Some(Box::new(Slurm::new(job.clone(), limit))),
    }
}

fn agent_program(options: &TreeOptions) -> Result<LaunchAgentProgram, LaunchError> {
    let mut arguments = options.node_arguments.clone();
    arguments.push("node".to_owned());
    let source = program_here(&options.node_program, options);
    // An interpreter is no use without its modules.
    let source = options.node_arguments.is_empty().then_some(source.as_path());
    LaunchAgentProgram::new(&options.node_program, arguments, source)
}

/// Where a program of the tree is on this host: where a copy of the node program runs, its path
/// leads nowhere.
pub(crate) fn program_here(program: &Path, options: &TreeOptions) -> PathBuf {
    let is_copied = std::env::var_os(COPY_VARIABLE).is_some_and(|folder| !folder.is_empty());
    match is_copied && program == options.node_program {
        true => PathBuf::from(THIS_PROGRAM),
        false => program.to_path_buf(),
    }
}

impl Plan {
    /// The commands by which the tree is started: on which host each is given, the rank of the
    /// process that it starts, and the command as a shell would read it. Secrets are in none of
    /// them: they follow over the standard input of each.
    ///
    /// # Errors
    /// [`RuntimeError::Launch`] when the program is not there or has no path that is text.
    pub fn commands(&self) -> Result<Vec<(String, u32, String)>, RuntimeError> {
        Ok(commands(self)?)
    }
}

/// The commands by which one process of a plan starts its children, in order: on which host each
/// runs, the process that it starts, and the command line.
fn commands(plan: &Plan) -> Result<Vec<(String, u32, String)>, LaunchError> {
    let mut lines = Vec::new();
    let program = agent_program(&plan.options)?;
    let own = plan.subtree.host();
    for child in plan.subtree.child_plans() {
        let is_elsewhere = !is_here(plan, child.host());
        let launcher = plan.options.remote.as_ref().filter(|_| is_elsewhere).and_then(launcher_of);
        let line = match launcher {
            Some(launcher) => {
                sapwood_launch::command_line(&*launcher, child.host().as_str(), &program)
            }
            None => local_line(plan, &child),
        };
        lines.push((own.to_string(), child.rank(), line));
        if child.role() != Role::BackEnd {
            let below = Plan { options: plan.options.clone(), subtree: child };
            lines.extend(commands(&below)?);
        }
    }
    Ok(lines)
}

fn local_line(plan: &Plan, child: &Subtree) -> String {
    let options = &plan.options;
    let mut words: Vec<String> = Vec::new();
    match (child.role(), &options.back_end) {
        (Role::BackEnd, Some(back_end)) => {
            words.push(back_end.program.to_string_lossy().into_owned());
            words.extend(back_end.arguments.iter().cloned());
        }
        (Role::BackEnd, None) => return "(attaches by itself)".to_owned(),
        _ => {
            words.push(options.node_program.to_string_lossy().into_owned());
            words.extend(options.node_arguments.iter().cloned());
            words.push("node".to_owned());
        }
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// What the host that a plan's own process runs on is called in plans.
fn own_host(plan: &Plan) -> HostName {
    match plan.subtree.role() {
        Role::FrontEnd => HostName::local(),
        _ => plan.subtree.host().clone(),
    }
}

/// Whether a host of a plan is the one that the plan's own process runs on. No resolver is asked.
pub(crate) fn is_here(plan: &Plan, host: &HostName) -> bool {
    let is_same = host == plan.subtree.host();
    let is_root = plan.subtree.role() == Role::FrontEnd;
    let is_reached = plan.options.remote.as_ref().is_some_and(|remote| remote.reaches_own_host);
    // A front-end runs where the user has started it, whatever its host is called in the plan.
    (is_same && !is_root) || (!is_reached && sapwood_launch::is_own_name(host.as_str()))
}
