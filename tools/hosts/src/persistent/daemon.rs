//! The process that owns a tree between commands.
//!
//! It starts the tree, says so, and then serves the commands that come to its control socket
//! until none has used the tree for long, a command asks it to end, a signal does, or all hosts
//! are gone.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sapwood::{Error, runtime_folder};
use sapwood_transport::{Accepted, Interest, Listener, Poller};

use super::message::{Description, VERSION, absence_as_text};
use super::place::{LOOK_PERIOD, Place};
use super::session::{Session, Wish};
use super::{address_of, ending, right_to, socket_path};
use crate::signals::Signals;
use crate::tree_access::{Owned, Tree};
use sapwood_command_line::exit::{Failure, complain};

/// The tokens of the listener and of the first session.
const LISTENER: u64 = 0;
const FIRST_SESSION: u64 = 1;

/// The longest wait of one turn, so that times that have come are noticed.
const TURN_MAX: Duration = LOOK_PERIOD;

/// What of a tree stays the same.
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
}

/// A tree that is kept up.
pub(crate) struct Daemon {
    tree: Owned,
    terms: Terms,
    listener: Listener,
    /// Of the control socket.
    path: PathBuf,
    place: Place,
    poller: Poller,
    signals: Signals,
    sessions: Vec<Session>,
    next_token: u64,
    /// When the listener is looked at again after there was no descriptor left.
    paused_until: Option<Instant>,
    used_at: Instant,
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
        ending::forget(&folder, &terms.name);
        // No other daemon takes this one for what was left of another, or the other way round.
        let right = right_to(&folder).ok_or_else(|| {
            Failure::own(&format!(
                "cannot create the control socket: {} is held by another 'sapwood \
                 up' or 'down'; try again",
                folder.display()
            ))
        })?;
        // Left by a daemon that was killed.
        let _ = std::fs::remove_file(&path);
        let listener = Listener::bind(&address_of(&path)?).map_err(failed)?;
        drop(right);
        let poller = Poller::new().map_err(failed)?;
        poller.add(&listener, LISTENER, Interest::READ).map_err(failed)?;
        Ok(Self {
            tree,
            terms,
            listener,
            place: Place::new(Instant::now()),
            path,
            poller,
            signals,
            sessions: Vec::new(),
            next_token: FIRST_SESSION,
            paused_until: None,
            used_at: Instant::now(),
        })
    }

    /// The tree as a newcomer is told of it.
    pub(crate) fn description(&self) -> Description {
        Description {
            version: VERSION.to_string(),
            name: self.terms.name.clone(),
            terms: self.terms.reach.clone(),
            hosts: self.terms.hosts.clone(),
            pid: std::process::id(),
            commands: self.sessions.iter().map(Session::commands).sum(),
            absent: absence_as_text(&self.tree.absent()),
            suspects: self.tree.suspects().to_string(),
            options: self.terms.options.clone(),
        }
    }

    /// Serves until the tree is to end, and ends it.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn serve(mut self) -> Result<(), Failure> {
        let served = self.serve_on();
        let Self { tree, sessions, listener, poller, terms, .. } = self;
        let is_empty = tree.connected().is_empty();
        let reasons = tree.absent();
        // No new command finds the tree while it ends; those who use it see that it has.
        drop(listener);
        let closed = tree.close();
        drop((sessions, poller));
        if let Err(error) = &served {
            leave_reason(&terms, &error.to_string());
        } else if is_empty {
            let reason = reasons.first().map_or("", |(_, reason)| reason);
            leave_reason(&terms, &format!("no host is left: {reason}"));
        }
        served?;
        Ok(closed?)
    }

    fn serve_on(&mut self) -> Result<(), Error> {
        self.tree.watch(self.poller.as_fd())?;
        for descriptor in self.signals.descriptors() {
            self.tree.watch(descriptor.as_fd())?;
        }
        let mut wait = Duration::ZERO;
        loop {
            self.tree.turn(wait)?;
            if !self.signals.take().is_empty() {
                return Ok(());
            }
            // Before newcomers are told who is not there, and why.
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
            let now = Instant::now();
            let is_in_use = self.sessions.iter().any(|session| session.commands() > 0);
            if is_in_use {
                self.used_at = now;
            }
            let idle = now - self.used_at;
            let is_idle = !self.terms.idle.is_zero() && idle >= self.terms.idle;
            // A command that is still connected has its answers.
            let listener = &self.listener;
            if self.place.is_gone(now, || listener.has_its_file()) && !is_in_use {
                tell_gone(&self.terms.name, &self.path);
                return Ok(());
            }
            if is_idle || self.tree.connected().is_empty() {
                return Ok(());
            }
            let left = match self.terms.idle {
                Duration::ZERO => TURN_MAX,
                limit => limit - idle,
            };
            let paused = self.paused_until.map(|until| until.saturating_duration_since(now));
            wait = if has_more { Duration::ZERO } else { left.min(TURN_MAX) };
            wait = wait.min(paused.unwrap_or(wait));
        }
    }

    /// Takes newcomers in and hears who has something to say.
    fn hear(&mut self) -> Result<Wish, Error> {
        if self.paused_until.is_some_and(|until| until <= Instant::now()) {
            self.paused_until = None;
            self.poller.add(&self.listener, LISTENER, Interest::READ)?;
        }
        let mut events = Vec::new();
        self.poller.wait(&mut events, Some(Duration::ZERO))?;
        for event in events {
            if event.token == LISTENER {
                self.accept()?;
            } else if let Some(session) =
                self.sessions.iter_mut().find(|session| session.token() == event.token)
                && (event.readable || event.hung_up)
                && session.hear(&mut self.tree) == Wish::Stop
            {
                return Ok(Wish::Stop);
            }
        }
        Ok(Wish::Nothing)
    }

    fn accept(&mut self) -> Result<(), Error> {
        match self.listener.accept()? {
            Accepted::Incoming(incoming) => {
                let (link, token) = (incoming.into_own_link()?, self.next_token);
                self.next_token += 1;
                let description = self.description();
                let session = Session::welcome(link, token, &self.poller, description)?;
                self.sessions.push(session);
            }
            Accepted::Pause(pause) => {
                self.poller.remove(&self.listener)?;
                self.paused_until = Some(Instant::now() + pause);
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
    tracing::warn!(target: "sapwood::member", "{line}");
    complain(line);
}

/// For a command that looks for the tree later.
fn leave_reason(terms: &Terms, reason: &str) {
    if let Ok(folder) = runtime_folder() {
        ending::leave(&folder, &terms.name, reason);
    }
}
