//! The processes that this one has started: the address to which they connect, and their error text
//! when they end early.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::Duration;

use sapwood_launch::{DeathSignal, Exit, LIVENESS_PIPE_VARIABLE, Local, Order, Process};
use sapwood_node::{Cause, Input, Instant, Node};
use sapwood_topology::{Role, Subtree};
use sapwood_transport::{Address, Encryption, Key, Poller};

use crate::environment::STARTED_VARIABLE;
use crate::invitation::Invitation;
use crate::journal;
use crate::remote::{Outcome, Remote, is_here, program_here};
use crate::token::Token;
use crate::{
    ENCRYPTION_VARIABLE, KEY_VARIABLE, PARENT_VARIABLE, Plan, RANK_VARIABLE, RuntimeError,
};

/// How long a process may take to end by itself once its link is closed.
pub(crate) const GRACE: Duration = Duration::from_millis(1000);

/// All processes that this one has started, by rank.
#[derive(Default)]
pub(crate) struct Processes {
    running: BTreeMap<u32, Process>,
    /// The processes on other hosts.
    remote: Option<Box<Remote>>,
    /// The means to start further processes here.
    template: Option<ChildTemplate>,
}

/// The plan for children that are started later.
struct ChildTemplate {
    plan: Plan,
    listen_address: Address,
    key: Key,
    encryption: Encryption,
    liveness_end: Option<std::os::fd::OwnedFd>,
}

impl Processes {
    /// Starts all children of a plan. A failure to start one is reported to the node, which passes
    /// it on to the front-end; the others are started all the same.
    pub(crate) fn start_all(
        &mut self,
        plan: &Plan,
        invitation: &Invitation<'_>,
        poller: &Poller,
    ) -> Result<Vec<(u32, String)>, RuntimeError> {
        self.remote = Remote::new(plan, invitation)?.map(Box::new);
        let mut here = Vec::new();
        let now = crate::clock();
        for child in plan.subtree.child_plans() {
            match &mut self.remote {
                Some(remote) if !is_here(plan, child.host()) => remote.push(child, now),
                _ => here.push(child),
            }
        }
        let own = |cause: std::io::Error| RuntimeError::System {
            what: "keep the liveness pipe",
            source: cause,
        };
        // Kept beyond this call: what cannot be started on another host may have to be started here
        // later.
        if self.remote.is_some() {
            self.template = Some(ChildTemplate {
                plan: plan.clone(),
                listen_address: invitation.listen_address.clone(),
                key: invitation.key.clone(),
                encryption: invitation.encryption,
                liveness_end: invitation
                    .liveness_end
                    .map(|liveness_end| liveness_end.try_clone_to_owned())
                    .transpose()
                    .map_err(own)?,
            });
        }
        self.start_here(plan, here, invitation, poller)
    }

    /// Starts children on this host.
    fn start_here(
        &mut self,
        plan: &Plan,
        children: Vec<Subtree>,
        invitation: &Invitation<'_>,
        poller: &Poller,
    ) -> Result<Vec<(u32, String)>, RuntimeError> {
        let mut failed = Vec::new();
        let key = invitation.key.to_descriptor()?;
        let (mut ranks, mut orders) = (Vec::new(), Vec::new());
        for child in children {
            let Some(mut order) = order_for(plan, &child, invitation) else { continue };
            // By a descriptor: every user of the host can read arguments and, as this user, the
            // environment.
            order.inherit.push((KEY_VARIABLE.to_string(), key.as_fd()));
            let liveness_end = invitation
                .liveness_end
                .map(|liveness_end| (LIVENESS_PIPE_VARIABLE.to_string(), liveness_end));
            order.inherit.extend(liveness_end);
            ranks.push(child.rank());
            orders.push(order);
        }
        for (rank, started) in ranks.into_iter().zip(Local.start_all(&orders)) {
            match started {
                Ok(process) => {
                    journal::started(rank, process.pid());
                    poller.add(process.exit_descriptor(), Token::Exit(rank).to_number(), READ)?;
                    poller.add(process.stderr(), Token::ChildStderr(rank).to_number(), READ)?;
                    self.running.insert(rank, process);
                }
                Err(error) => failed.push((rank, error.to_string())),
            }
        }
        Ok(failed)
    }

    /// Goes on with the starts on other hosts.
    pub(crate) fn step(
        &mut self,
        node: &mut Node,
        poller: &Poller,
        now: Instant,
    ) -> Result<(), RuntimeError> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        remote.step(node, poller, now);
        for outcome in remote.take_outcomes() {
            match outcome {
                Outcome::Failed(rank, text) => {
                    node.handle_input(now, Input::StartFailed { rank, text });
                }
                Outcome::Notice(text) => node.handle_input(now, Input::Notice { text }),
                Outcome::Here(child) => self.start_moved(child, node, poller, now)?,
            }
        }
        Ok(())
    }

    /// A communication process that no other host takes runs here.
    fn start_moved(
        &mut self,
        child: Subtree,
        node: &mut Node,
        poller: &Poller,
        now: Instant,
    ) -> Result<(), RuntimeError> {
        let (Some(remote), Some(template)) = (&self.remote, self.template.take()) else {
            return Ok(());
        };
        // Before it connects: its plan says on which host it runs.
        node.replan(child.rank(), remote.plan_of(&child));
        let ChildTemplate { plan, listen_address, key, encryption, liveness_end } = &template;
        let liveness_end = liveness_end.as_ref().map(AsFd::as_fd);
        let invitation = Invitation { listen_address, key, encryption: *encryption, liveness_end };
        let failed = self.start_here(plan, vec![child], &invitation, poller)?;
        self.template = Some(template);
        for (rank, text) in failed {
            node.handle_input(now, Input::StartFailed { rank, text });
        }
        Ok(())
    }

    /// A client has answered on its standard output.
    pub(crate) fn answers(&mut self, rank: u32, poller: &Poller, now: Instant) {
        if let Some(remote) = &mut self.remote {
            remote.answers(rank, poller, now);
        }
    }

    /// A client takes more on its standard input.
    pub(crate) fn writable(&mut self, rank: u32, poller: &Poller, now: Instant) {
        if let Some(remote) = &mut self.remote {
            remote.writable(rank, poller, now);
        }
    }

    /// Whether [`Processes::step`] may have something to do now, whatever the time.
    pub(crate) fn is_starting(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.is_starting())
    }

    /// When [`Processes::step`] has something to do.
    pub(crate) fn next_tick(&self) -> Option<Instant> {
        self.remote.as_ref()?.next_tick()
    }

    /// A process has written to its standard error: it is passed on to ours.
    pub(crate) fn pass_on_words(&mut self, rank: u32, poller: &Poller) {
        if let Some(remote) = self.remote.as_mut().filter(|remote| remote.has(rank)) {
            return remote.words(rank, poller);
        }
        let Some(process) = self.running.get_mut(&rank) else { return };
        // If our own standard error is closed, the output is dropped.
        let _ = process.forward_stderr("");
        if process.stderr_ended() {
            let _ = poller.remove(process.stderr());
        }
    }

    /// A process has ended: if it never connected, its error text goes to the front-end.
    pub(crate) fn ended(&mut self, rank: u32, node: &mut Node, poller: &Poller, now: Instant) {
        if let Some(remote) = self.remote.as_mut().filter(|remote| remote.has(rank)) {
            return remote.ended(rank, node, poller, now);
        }
        let Some(mut process) = self.running.remove(&rank) else { return };
        forget(&process, poller);
        let text = process.exit_report();
        let cause = process.try_wait().map_or(Cause::Died, cause_of);
        node.handle_input(now, Input::Exited { rank, text, cause });
    }

    /// The time limit is over: processes that have not connected count as not started. They are not
    /// killed, since they may only be slow, and join when they connect.
    pub(crate) fn give_up(
        &mut self,
        waited: Duration,
        node: &mut Node,
        poller: &Poller,
        now: Instant,
    ) {
        let mut slow = Vec::new();
        if let Some(remote) = &mut self.remote {
            slow = remote.give_up(node, poller, waited);
        }
        for (&rank, process) in self.running.iter().filter(|&(&rank, _)| node.is_awaited(rank)) {
            let text = format!(
                "'{}' (process {}) runs, but has not joined the network within {} ms",
                process.program().display(),
                process.pid(),
                waited.as_millis()
            );
            slow.push((rank, text));
        }
        for (rank, text) in slow {
            node.handle_input(now, Input::StartFailed { rank, text });
        }
    }

    /// This process was delayed: the time limits of hosts are extended by as much.
    pub(crate) fn excuse(&mut self, late: Duration) {
        if let Some(remote) = &mut self.remote {
            remote.excuse(late);
        }
    }

    /// Kills the processes that have not connected: no link can tell them that the network ends,
    /// and the liveness pipe does not end them either, since they have not opened it. No further
    /// process is started, and this process closes its own read end: the pipe counts as free only
    /// when no process holds one.
    pub(crate) fn kill_unheard(&mut self, node: &Node, poller: &Poller) {
        // No process is started from here on, also not one that another host refuses.
        self.template = None;
        if let Some(remote) = &mut self.remote {
            remote.end_unheard(node, poller);
        }
        self.running.retain(|&rank, process| {
            let has_come = node.has_come(rank);
            if !has_come {
                forget(process, poller);
            }
            has_come
        });
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.remote.as_ref().is_none_or(|remote| remote.is_empty())
    }

    /// Ends all that are left, at once.
    pub(crate) fn kill_all(&mut self, poller: &Poller) {
        if let Some(remote) = &mut self.remote {
            remote.end_all(poller);
        }
        self.running.clear();
    }

    /// Lets all go on without this process.
    pub(crate) fn release_all(&mut self, poller: &Poller) {
        if let Some(remote) = &mut self.remote {
            // Their clients only carry the streams of processes that go on by themselves.
            remote.end_all(poller);
        }
        for (_, process) in std::mem::take(&mut self.running) {
            forget(&process, poller);
            process.release();
        }
    }
}

/// Why a process that has ended in this way is missing.
fn cause_of(exit: Exit) -> Cause {
    let number = |number: i32| number.unsigned_abs();
    match exit {
        Exit::Status(status) => Cause::Exited { status: number(status) },
        Exit::Signal(signal) => Cause::Killed { signal: number(signal) },
        Exit::Unknown => Cause::Died,
    }
}

/// Watches a process no longer.
fn forget(process: &Process, poller: &Poller) {
    let _ = poller.remove(process.exit_descriptor());
    if !process.stderr_ended() {
        let _ = poller.remove(process.stderr());
    }
}

const READ: sapwood_transport::Interest = sapwood_transport::Interest::READ;

/// What to start as a child of this plan; nothing for a back-end that attaches by itself.
fn order_for<'a>(plan: &Plan, child: &Subtree, invitation: &Invitation<'_>) -> Option<Order<'a>> {
    let mut order;
    // Where a tree repairs itself, children go on without the process that has started them, unless
    // that is a front-end with which all of them end.
    let recovery = plan.options.recovery;
    let is_root = plan.subtree.role() == Role::FrontEnd;
    let is_free = recovery.is_on && !(is_root && recovery.front_end_wait.is_zero());
    let mut environment: &[(String, String)] = &[];
    if child.role() == Role::BackEnd {
        let back_end = plan.options.back_end.as_ref()?;
        order = Order::new(program_here(&back_end.program, &plan.options));
        order.arguments = back_end.arguments.iter().map(OsString::from).collect();
        order.death_signal = match (is_free, back_end.binds_itself) {
            (true, _) => DeathSignal::Off,
            (false, true) => DeathSignal::ByProgram,
            (false, false) => DeathSignal::BeforeExec,
        };
        environment = &back_end.environment;
    } else {
        order = Order::new(program_here(&plan.options.node_program, &plan.options));
        order.arguments = plan.options.node_arguments.iter().map(OsString::from).collect();
        order.arguments.push(OsString::from("node"));
        order.death_signal = if is_free { DeathSignal::Off } else { DeathSignal::ByProgram };
    }
    // A process that outlives this one needs a standard error that does so, too.
    order.hand_stderr = recovery.is_on;
    let mut set = |name: &str, value: String| {
        order.environment.push((OsString::from(name), OsString::from(value)));
    };
    for (name, value) in environment {
        set(name, value.clone());
    }
    set(PARENT_VARIABLE, invitation.listen_address.to_string());
    set(RANK_VARIABLE, child.rank().to_string());
    set(STARTED_VARIABLE, "1".to_string());
    let encryption = if invitation.encryption == Encryption::On { "on" } else { "off" };
    set(ENCRYPTION_VARIABLE, encryption.to_string());
    Some(order)
}
