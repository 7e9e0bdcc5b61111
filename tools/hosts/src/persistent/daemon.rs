//! The process that owns a tree between commands.
//!
//! It starts the tree, says so, and then serves the commands that come to its control socket
//! until none has used the tree for long, a command asks it to end, a signal does, or all hosts
//! are gone.
//!
//! Each tree has a thread and a [`Daemon`] of its own. When hosts have come back, the daemon of a
//! new tree gets all that is there once ([`Charge`]), and the one before ends with the last of its
//! commands.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sapwood::{Error, Network, PreparedName, RankSet, runtime_folder};
use sapwood_topology::HostName;
use sapwood_transport::{Accepted, Interest, Listener, Poller};

use super::ending::{self, Ending, Served};
use super::message::{Asking, Description, VERSION, absence_as_text};
use super::place::{LOOK_PERIOD, Place};
use super::presence::Presence;
use super::returning::{Attempt, Heir, Hosts, Progress, Schedule, Way};
use super::session::{Session, Wish};
use super::succession::{Earlier, Leash, succession};
use super::{address_of, right_to, socket_path};
use crate::absence::{counted, nodes};
use crate::signals::Signals;
use crate::tree_access::{Owned, Tree};
use sapwood_command_line::exit::{Failure, complain};

/// The tokens of the listener, the leash, the bell of an attempt, and the first session.
const LISTENER: u64 = 0;
const LEASH: u64 = 1;
const BELL: u64 = 2;
const FIRST_SESSION: u64 = 3;

/// The longest wait of one turn, so that times that have come are noticed.
const TURN_MAX: Duration = LOOK_PERIOD;

/// How many returns of hosts are told.
const RETURNS_MAX: usize = 8;

/// What stays the same, whichever tree there is.
pub(crate) struct Terms {
    pub(crate) name: String,
    /// How the hosts were reached.
    pub(crate) reach: String,
    /// The hosts, folded.
    pub(crate) hosts: String,
    /// What `sapwood up` was asked.
    pub(crate) options: Vec<String>,
    /// After which time without a command the tree ends; zero for never.
    pub(crate) idle: Duration,
    /// After which time missing hosts are looked for; zero for never.
    pub(crate) return_after: Duration,
    pub(crate) way: Arc<Way>,
}

/// A tree that is kept up, by one thread.
pub(crate) struct Daemon {
    tree: Owned,
    presence: Presence,
    terms: Arc<Terms>,
    poller: Poller,
    sessions: Vec<Session>,
    next_token: u64,
    used_at: Instant,
    role: Role,
    /// The search for missing hosts, while there is one.
    attempt: Option<Attempt<Handover, Ended>>,
}

/// What a tree is for.
enum Role {
    /// New commands use it.
    Newest(Box<Charge>),
    /// There is another in its place; commands that had begun before go on.
    Earlier { leash: Leash, heir: JoinHandle<Option<Ended>> },
}

/// What the newest tree's daemon has, whichever tree that is.
struct Charge {
    listener: Listener,
    /// Of the control socket.
    path: PathBuf,
    place: Place,
    signals: Signals,
    /// When the listener is looked at again after there was no descriptor left.
    paused_until: Option<Instant>,
    schedule: Schedule,
    /// Which hosts have come back, and when.
    returned: Vec<String>,
    /// Trees before this one in which commands go on.
    earlier: Vec<Earlier>,
}

/// What the next tree's daemon gets.
struct Handover {
    charge: Box<Charge>,
    /// That of the tree before, in whose place the tree is visible already.
    name: Option<PreparedName>,
    /// Those without a command.
    sessions: Vec<Session>,
    /// When a command has used the tree last: another tree in its place is no use of it.
    used_at: Instant,
}

/// What became of a tree.
struct Ended {
    result: Result<(), Failure>,
    /// The thread of the tree that was in its place.
    heir: Option<JoinHandle<Option<Ended>>>,
}

impl Daemon {
    /// Takes charge of a tree that stands and is visible under its name, so that no other process
    /// has a control socket of that name.
    ///
    /// # Errors
    /// When the control socket cannot be made.
    pub(crate) fn new(tree: Owned, terms: Terms, signals: Signals) -> Result<Self, Failure> {
        let folder = runtime_folder()?;
        let path = socket_path(&folder, &terms.name);
        let failed = |error| Failure::own(&format!("cannot create the control socket: {error}"));
        // No other daemon takes this one for what was left of another, or the other way round.
        let right = right_to(&folder).ok_or_else(|| {
            Failure::own(&format!(
                "cannot create the control socket: {} is held by another 'sapwood \
                 up' or 'down'; try again",
                folder.display()
            ))
        })?;
        // Left by a daemon that was killed, as what is said of it.
        let _ = std::fs::remove_file(&path);
        ending::forget(&folder, &terms.name);
        let listener = Listener::bind(&address_of(&path)?).map_err(failed)?;
        drop(right);
        let charge = Charge {
            listener,
            path,
            place: Place::new(Instant::now()),
            signals,
            paused_until: None,
            schedule: Schedule::new(terms.return_after),
            returned: Vec::new(),
            earlier: Vec::new(),
        };
        let (charge, sessions, used_at) = (Box::new(charge), Vec::new(), Instant::now());
        let handover = Handover { charge, name: None, sessions, used_at };
        Self::succeeding(tree, Arc::new(terms), handover).map_err(Failure::from)
    }

    /// Goes on with what the daemon of the tree before has handed over.
    fn succeeding(tree: Owned, terms: Arc<Terms>, handover: Handover) -> Result<Self, Error> {
        let Handover { charge, sessions, used_at, .. } = handover;
        let poller = Poller::new()?;
        if charge.paused_until.is_none() {
            poller.add(&charge.listener, LISTENER, Interest::READ)?;
        }
        let mut daemon = Self {
            tree,
            presence: Presence::new(terms.way.names.len()),
            terms,
            poller,
            sessions: Vec::new(),
            next_token: FIRST_SESSION,
            used_at,
            role: Role::Newest(charge),
            attempt: None,
        };
        for mut session in sessions {
            let (token, description) = (daemon.new_token(), daemon.description());
            session.enter(token, &daemon.poller, description)?;
            daemon.sessions.push(session);
        }
        Ok(daemon)
    }

    /// Is the thread of a tree that takes the place of another.
    fn keep(mut network: Network, terms: Arc<Terms>, mut handover: Handover) -> Ended {
        if let Some(name) = handover.name.take() {
            network.name().keep(name);
        } else if let Err(error) = network.publish(&terms.name) {
            // It can be used all the same.
            tell(&format!("tree '{}' is not visible: {error}", terms.name));
        }
        let tree = Owned::new(network, &terms.way.names);
        match Self::succeeding(tree, Arc::clone(&terms), handover) {
            Ok(daemon) => daemon.run(),
            Err(error) => {
                leave_reason(&terms, error.to_string());
                Ended { result: Err(error.into()), heir: None }
            }
        }
    }

    fn new_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token - 1
    }

    /// The tree as a newcomer is told of it, which only the newest one has.
    fn description(&self) -> Description {
        let (returned, asking) = match &self.role {
            Role::Newest(charge) => (charge.returned.clone(), self.asking(charge)),
            Role::Earlier { .. } => Default::default(),
        };
        Description {
            version: VERSION.to_string(),
            name: self.terms.name.clone(),
            terms: self.terms.reach.clone(),
            hosts: self.terms.hosts.clone(),
            pid: std::process::id(),
            commands: self.commands(),
            absent: absence_as_text(&self.tree.absent()),
            suspects: self.tree.suspects().to_string(),
            returned,
            asking,
            options: self.terms.options.clone(),
        }
    }

    fn asking(&self, charge: &Charge) -> Option<Asking> {
        let asking = charge.schedule.asking(Instant::now())?;
        let next = if self.attempt.is_some() { Duration::ZERO } else { asking.next };
        Some(Asking { next, ..asking })
    }

    fn commands(&self) -> usize {
        self.sessions.iter().map(Session::commands).sum()
    }

    /// Serves until the tree is to end, and ends it, with all trees that were in its place.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn serve(self) -> Result<(), Failure> {
        let mut ended = self.run();
        while let Some(heir) = ended.heir.take() {
            // Its own words say why a thread has failed.
            let failed = || Failure::own(&"the thread of the tree has failed");
            ended = heir.join().ok().flatten().ok_or_else(failed)?;
        }
        ended.result
    }

    fn run(mut self) -> Ended {
        let served = self.serve_on();
        let Self { tree, sessions, poller, terms, role, attempt, .. } = self;
        let is_empty = tree.connected().is_empty();
        let reasons = tree.absent();
        let charge = match role {
            Role::Newest(charge) => charge,
            Role::Earlier { leash, heir } => {
                let closed = tree.close();
                if let Err(error) = served.and(closed) {
                    tell(&format!("an earlier tree '{}' has failed: {error}", terms.name));
                }
                drop((sessions, poller, leash));
                return Ended { result: Ok(()), heir: Some(heir) };
            }
        };
        let Charge { listener, earlier, .. } = *charge;
        // A command that finds no tree from now on finds out why.
        if let Err(error) = &served {
            leave_reason(&terms, error.to_string());
        } else if is_empty {
            let reason = reasons.first().map_or("", |(_, reason)| reason);
            leave_reason(&terms, format!("no host is left: {reason}"));
        }
        // No new command finds the tree while it ends; commands that use it see that it has.
        drop(listener);
        let cancelled = attempt.map(Attempt::cancel);
        let closed = tree.close();
        // A thread that has failed has said so.
        let _ = cancelled.map(JoinHandle::join);
        Earlier::end(earlier);
        drop((sessions, poller));
        Ended { result: served.and(closed).map_err(Failure::from), heir: None }
    }

    fn serve_on(&mut self) -> Result<(), Error> {
        self.tree.watch(self.poller.as_fd())?;
        if let Role::Newest(charge) = &self.role {
            for descriptor in charge.signals.descriptors() {
                self.tree.watch(descriptor.as_fd())?;
            }
        }
        let mut wait = Duration::ZERO;
        loop {
            self.tree.turn(wait)?;
            if let Role::Newest(charge) = &mut self.role
                && !charge.signals.take().is_empty()
            {
                return Ok(());
            }
            // Before newcomers are told which hosts are not there, and why.
            let losses = self.tree.take_losses();
            for session in &mut self.sessions {
                session.tell(&losses);
            }
            if self.hear()? == Wish::Stop {
                return Ok(());
            }
            let mut has_more = false;
            for session in &mut self.sessions {
                has_more |= session.pass_on(&mut self.tree)?;
                session.watch(&self.poller)?;
            }
            self.dismiss_gone();
            self.presence.note(self.tree.connected());
            let now = Instant::now();
            self.return_hosts(now)?;
            if self.is_over(now) {
                return Ok(());
            }
            wait = if has_more { Duration::ZERO } else { self.pause(now) };
        }
    }

    /// Whether the tree is to end now.
    fn is_over(&mut self, now: Instant) -> bool {
        let has_commands = self.commands() > 0;
        let is_in_use = match &mut self.role {
            Role::Newest(charge) => {
                charge.earlier.retain(Earlier::is_there);
                let Charge { place, listener, earlier, path, .. } = &mut **charge;
                let is_in_use = has_commands || earlier.iter().any(Earlier::is_in_use);
                // A command that is still connected has its answers.
                if place.is_gone(now, || listener.has_its_file()) && !is_in_use {
                    tell_gone(&self.terms.name, path);
                    return true;
                }
                is_in_use
            }
            Role::Earlier { .. } if self.sessions.is_empty() => return true,
            Role::Earlier { .. } => has_commands,
        };
        if is_in_use {
            self.used_at = now;
        }
        let is_idle = !self.terms.idle.is_zero() && now - self.used_at >= self.terms.idle;
        is_idle || self.presence.there().is_empty()
    }

    /// How long nothing is to be done unless something happens.
    fn pause(&self, now: Instant) -> Duration {
        let left = match self.terms.idle {
            Duration::ZERO => TURN_MAX,
            limit => limit.saturating_sub(now - self.used_at).min(TURN_MAX),
        };
        let Role::Newest(charge) = &self.role else { return left };
        let times = [charge.paused_until, charge.schedule.due()].into_iter().flatten();
        times.map(|time| time.saturating_duration_since(now)).fold(left, Duration::min)
    }

    /// Has missing hosts looked for when it is time, and gives way to a tree that has them.
    fn return_hosts(&mut self, now: Instant) -> Result<(), Error> {
        let Role::Newest(charge) = &mut self.role else { return Ok(()) };
        let Some(attempt) = &mut self.attempt else {
            let is_whole = self.presence.missing().is_empty();
            if charge.schedule.is_due(now, if is_whole { Hosts::All } else { Hosts::Missing }) {
                self.look_for_missing()?;
            }
            return Ok(());
        };
        match attempt.progress() {
            Progress::Running => {}
            Progress::Over => {
                self.poller.remove(attempt.bell())?;
                self.attempt = None;
                charge.schedule.put_off();
            }
            Progress::Stands(anew) => {
                let there = self.presence.there();
                let returned = anew.difference(there.as_ref());
                let is_better = there.difference(anew.as_ref()).is_empty() && !returned.is_empty();
                match is_better.then(succession) {
                    Some(Ok((leash, earlier))) => self.give_way(leash, earlier, &returned)?,
                    _ => {
                        attempt.refuse();
                        tracing::info!(
                            target: "sapwood::member",
                            "a host answered, but the tree that was started anew is no better"
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn look_for_missing(&mut self) -> Result<(), Error> {
        let Role::Newest(charge) = &mut self.role else { return Ok(()) };
        charge.schedule.begin();
        let way = Arc::clone(&self.terms.way);
        let missing = self.presence.missing().iter();
        let missing: Vec<HostName> = missing.map(|rank| way.names[rank as usize].clone()).collect();
        let asked = charge.schedule.turn_of(&missing);
        let terms = Arc::clone(&self.terms);
        let keep = move |network, handover| Self::keep(network, terms, handover);
        match Attempt::begin(self.terms.name.clone(), way, asked, keep) {
            Ok(attempt) => {
                self.poller.add(attempt.bell(), BELL, Interest::READ)?;
                self.attempt = Some(attempt);
            }
            // There may be room for a thread the next time.
            Err(_) => charge.schedule.put_off(),
        }
        Ok(())
    }

    /// Leaves all but the commands that run to the tree that the attempt has started.
    fn give_way(&mut self, leash: Leash, earlier: Earlier, back: &RankSet) -> Result<(), Error> {
        let Some(attempt) = self.attempt.take() else { return Ok(()) };
        self.poller.remove(attempt.bell())?;
        let Some(Heir { mut name, offer, thread }) = attempt.take() else { return Ok(()) };
        self.poller.add(leash.end(), LEASH, Interest::READ)?;
        let role = std::mem::replace(&mut self.role, Role::Earlier { leash, heir: thread });
        let Role::Newest(mut charge) = role else { return Ok(()) };
        for descriptor in charge.signals.descriptors() {
            self.tree.unwatch(descriptor.as_fd())?;
        }
        if charge.paused_until.is_none() {
            self.poller.remove(&charge.listener)?;
        }
        let hosts = counted(&nodes(&self.terms.way.names, back));
        let time = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
        let line = format!("{hosts} came back at {time}");
        tell(&format!("tree '{}': {line}", self.terms.name));
        charge.returned.push(line);
        let surplus = charge.returned.len().saturating_sub(RETURNS_MAX);
        charge.returned.drain(..surplus);
        charge.schedule.put_off();
        let sessions = std::mem::take(&mut self.sessions).into_iter();
        let (running, waiting): (Vec<_>, Vec<_>) = sessions.partition(|one| one.commands() > 0);
        charge.earlier.push(if running.is_empty() { earlier.unused() } else { earlier });
        self.sessions = running;
        for session in &waiting {
            session.leave(&self.poller)?;
        }
        // Its name is the next one's from here on: a command that looks for it finds one of both.
        if !self.tree.leave_name_to(name.as_mut()) {
            name = None;
        }
        // If that thread has failed, what it was to get is gone, and the leash ends this tree.
        let _ = offer.send(Handover { charge, name, sessions: waiting, used_at: self.used_at });
        Ok(())
    }

    /// Takes newcomers in and reads from those that have something to say.
    fn hear(&mut self) -> Result<Wish, Error> {
        if let Role::Newest(charge) = &mut self.role
            && charge.paused_until.is_some_and(|until| until <= Instant::now())
        {
            charge.paused_until = None;
            self.poller.add(&charge.listener, LISTENER, Interest::READ)?;
        }
        let mut events = Vec::new();
        self.poller.wait(&mut events, Some(Duration::ZERO))?;
        for event in events {
            match event.token {
                LISTENER => self.accept()?,
                // The newest tree is to end, and all with it.
                LEASH => return Ok(Wish::Stop),
                // It is looked at in every turn.
                BELL => {}
                token => {
                    if let Some(session) =
                        self.sessions.iter_mut().find(|session| session.token() == token)
                        && (event.readable || event.hung_up)
                        && session.hear(&mut self.tree) == Wish::Stop
                    {
                        return Ok(Wish::Stop);
                    }
                }
            }
        }
        Ok(Wish::Nothing)
    }

    fn accept(&mut self) -> Result<(), Error> {
        let Role::Newest(charge) = &mut self.role else { return Ok(()) };
        match charge.listener.accept()? {
            Accepted::Incoming(incoming) => {
                let link = incoming.into_own_link()?;
                let (token, description) = (self.new_token(), self.description());
                let session = Session::welcome(link, token, &self.poller, description)?;
                self.sessions.push(session);
            }
            Accepted::Pause(pause) => {
                self.poller.remove(&charge.listener)?;
                charge.paused_until = Some(Instant::now() + pause);
            }
            Accepted::Empty | Accepted::ForeignUser(_) => {}
        }
        Ok(())
    }

    fn dismiss_gone(&mut self) {
        let mut at = 0;
        while at < self.sessions.len() {
            if self.sessions[at].is_gone() {
                self.sessions.swap_remove(at).dismiss(&mut self.tree, &self.poller);
            } else {
                at += 1;
            }
        }
    }
}

/// Says why the tree ends, where it has a log or a service manager.
fn tell_gone(name: &str, path: &Path) {
    let line = format!(
        "tree '{name}' ends: its control socket {} was removed, so that no command finds it",
        path.display()
    );
    tell(&line);
}

/// For the log, and for a service manager.
fn tell(line: &str) {
    tracing::warn!(target: "sapwood::member", "{line}");
    complain(line);
}

/// For a command that looks for the tree later.
fn leave_reason(terms: &Terms, reason: String) {
    if let Ok(folder) = runtime_folder() {
        let served = Served { reach: terms.reach.clone(), hosts: terms.hosts.clone() };
        ending::leave(&folder, &terms.name, &Ending { reason, served: Some(served) });
    }
}
