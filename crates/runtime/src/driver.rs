//! The loop: wait, read, let the node decide, write.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_launch::LivenessPipe;
use sapwood_node::{
    Application, Event, Input, Instant, LinkId, Node, Output, Recovery, Role, Settings,
};
use sapwood_packet::{RankSet, StreamId};
use sapwood_transport::{
    Address, Encryption, Interest, InterfaceRule, Key, Listener, Poller, interfaces,
};

use crate::attach::own_interface;
use crate::attempt::Attempt;
use crate::clock::{clock, tell_time, wall};
use crate::failure::Failure;
use crate::invitation::Invitation;
use crate::journal;
use crate::links::SocketTable;
use crate::processes::{GRACE, Processes};
use crate::spin::{SPIN_TIME, Spin};
use crate::token::Token;
use crate::workers::{JOBS_MAX, Workers};
use crate::{JoinPlan, ParentLink, Plan, RuntimeError, TransportKind, TreeOptions};

/// A wake-up that is at least this late shows that this process was not running.
const LATE_MIN: Duration = Duration::from_millis(10);

/// One node with everything that it needs to run in this process.
pub struct Driver {
    node: Node,
    sockets: SocketTable,
    processes: Processes,
    attempt: Attempt,
    /// Threads for offloaded filters, once there was such a one.
    workers: Option<Workers>,
    /// The write end of the liveness pipe, at the front-end of a tree that repairs itself.
    liveness_pipe: Option<LivenessPipe>,
    /// The read end that this process inherited, to be handed to its children.
    liveness_end: Option<BorrowedFd<'static>>,
    poller: Poller,
    ready: Vec<sapwood_transport::Event>,
    events: VecDeque<Event>,
    /// When the node wants to be called, as of the last wait.
    wake: Option<Instant>,
    /// When children that have not connected count as not started, and how long that is.
    startup: Option<(Instant, Duration)>,
    /// Links to write to at the end of the turn.
    dirty: Vec<LinkId>,
    transport: TransportKind,
    spin: Spin,
    foreign_ready: bool,
    /// How many descriptors of the application's are watched.
    watched: usize,
    is_back_end: bool,
    /// Whether this is a communication process that was not planned.
    is_joining: bool,
    /// Whether the tree repairs itself, so that children can go on without this process.
    has_recovery: bool,
    /// The time of the last turn.
    now: Instant,
}

/// Links to be closed or opened once all outputs are known.
#[derive(Default)]
struct LinkChanges {
    leaving: Vec<LinkId>,
    /// The address of a parent to connect to.
    wanted: Option<String>,
}

impl LinkChanges {
    #[inline]
    fn is_empty(&self) -> bool {
        self.leaving.is_empty() && self.wanted.is_none()
    }
}

/// How a process comes below its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// It was started as the plan says, or is a back-end that comes by itself.
    Attaching,
    /// It is a communication process that comes by itself.
    Joining,
}

impl Driver {
    /// A front-end: starts its children as the plan says. Wait for [`Event::Ready`].
    ///
    /// # Errors
    /// [`RuntimeError`] when this process cannot listen.
    pub fn front_end(plan: &Plan, key: Key, registry: Registry) -> Result<Self, RuntimeError> {
        let mut driver = Self::root(plan, key, registry)?;
        let Recovery { is_on, front_end_wait, .. } = plan.options.recovery;
        // Where the tree is to outlive its front-end, nothing of the kernel's may end it.
        if is_on && front_end_wait.is_zero() {
            let (liveness_pipe, end) = LivenessPipe::new()
                .map_err(|source| RuntimeError::System { what: "make a liveness pipe", source })?;
            driver.liveness_pipe = Some(liveness_pipe);
            driver.grow(plan, Some(end.as_fd()))?;
        } else {
            driver.grow(plan, None)?;
        }
        Ok(driver)
    }

    fn root(plan: &Plan, key: Key, registry: Registry) -> Result<Self, RuntimeError> {
        let settings = Settings {
            role: Role::FrontEnd,
            rank: Some(plan.subtree.rank()),
            is_started: true,
            pid: std::process::id(),
            address: None,
            registry,
            recovery: plan.options.recovery,
        };
        let mut driver = Self::new(settings, key, plan.encryption(), plan.options.transport)?;
        driver.node.application().set_filter_limit(plan.options.filter_limit());
        Ok(driver)
    }

    /// A front-end that replaces one that has ended: it listens at the same address and starts no
    /// process. Its streams are numbered from `first_stream` on; no front-end before it has opened
    /// one of that number or a higher one. It assigns no ranks to dynamic members, since it does
    /// not know which are in use; other processes do.
    ///
    /// # Errors
    /// [`RuntimeError`] when this process cannot listen there: the address is in use, or not
    /// permitted.
    pub fn resume(
        plan: &Plan,
        key: Key,
        registry: Registry,
        listen_address: &Address,
        first_stream: StreamId,
    ) -> Result<Self, RuntimeError> {
        let mut driver = Self::root(plan, key, registry)?;
        driver.listen(listen_address, &plan.options)?;
        driver.node.application().begin_streams_at(first_stream);
        let (height, back_ends) = (plan.height(), plan.options.back_ends);
        driver.node.expect(Vec::new(), plan.attach_ranks(), height, back_ends);
        driver.carry_out()?;
        Ok(driver)
    }

    /// Where this process takes connections, if it does.
    #[must_use]
    pub fn address(&self) -> Option<&Address> {
        self.sockets.address()
    }

    /// A communication process or back-end below its parent.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process.
    pub fn attach(parent: ParentLink, registry: Registry) -> Result<Self, RuntimeError> {
        Self::below(parent, registry, Entry::Attaching)
    }

    /// A communication process that joins a running tree.
    ///
    /// # Errors
    /// As [`Driver::attach`].
    pub fn join(parent: ParentLink, registry: Registry) -> Result<Self, RuntimeError> {
        Self::below(parent, registry, Entry::Joining)
    }

    fn below(parent: ParentLink, registry: Registry, entry: Entry) -> Result<Self, RuntimeError> {
        let ParentLink { link, role, rank, key, encryption, is_unix, is_started, liveness_end } =
            parent;
        let settings = Settings {
            role,
            rank,
            is_started,
            pid: std::process::id(),
            address: None,
            registry,
            // The parent's Welcome sets the terms.
            recovery: Recovery::off(),
        };
        let transport = if is_unix { TransportKind::Unix } else { TransportKind::Tcp };
        let mut driver = Self::new(settings, key, encryption, transport)?;
        driver.liveness_end = liveness_end;
        driver.is_joining = entry == Entry::Joining;
        if driver.is_joining {
            driver.node.join();
        }
        let id = driver.sockets.add(link, &driver.poller)?;
        driver.node.handle_input(clock(), Input::ParentUp { link: id });
        driver.carry_out()?;
        Ok(driver)
    }

    fn new(
        settings: Settings,
        key: Key,
        encryption: Encryption,
        transport: TransportKind,
    ) -> Result<Self, RuntimeError> {
        let is_back_end = settings.role == Role::BackEnd;
        let mut node = Node::new(settings);
        // The clock has run before this process; its first input must not look late.
        node.set_time(clock());
        node.set_host(crate::visitor::host_name());
        node.set_wall(wall());
        node.set_memory_advice(sapwood_transport::back_with_pages);
        Ok(Self {
            node,
            sockets: SocketTable::new(key, encryption),
            processes: Processes::default(),
            attempt: Attempt::default(),
            workers: None,
            liveness_pipe: None,
            liveness_end: None,
            poller: Poller::new()?,
            ready: Vec::new(),
            events: VecDeque::new(),
            wake: None,
            startup: None,
            dirty: Vec::new(),
            transport,
            spin: Spin::default(),
            foreign_ready: false,
            watched: 0,
            is_back_end,
            is_joining: false,
            has_recovery: false,
            now: clock(),
        })
    }

    /// The application's handle of the node; call [`Driver::carry_out`] after a change.
    pub fn application(&mut self) -> Application<'_> {
        tell_time(&mut self.node).application()
    }

    /// The node.
    pub(crate) fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    /// The next event of the network.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A descriptor that is readable when [`Driver::turn`] has something to do.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// Watches a descriptor of the application's, so that [`Driver::turn`] returns when it is
    /// readable.
    ///
    /// # Errors
    /// [`RuntimeError::Transport`] when it cannot be watched.
    pub fn watch(&mut self, descriptor: impl AsFd) -> Result<(), RuntimeError> {
        self.poller.add(descriptor, Token::Foreign.to_number(), Interest::READ)?;
        self.watched += 1;
        Ok(())
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// [`RuntimeError::Transport`] when it is not watched.
    pub fn unwatch(&mut self, descriptor: impl AsFd) -> Result<(), RuntimeError> {
        self.poller.remove(descriptor)?;
        self.watched = self.watched.saturating_sub(1);
        Ok(())
    }

    /// One turn of the loop: waits for an event or `until`, and handles it. Gives whether a watched
    /// descriptor is readable.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process; the network is at an end then.
    pub fn turn(&mut self, until: Option<Instant>) -> Result<bool, RuntimeError> {
        // The application may have changed the node since the last turn.
        self.carry_out()?;
        self.foreign_ready = false;
        // The wait may end at its limit, a power of two, before the deadline: then it waits again.
        while let Some(is_over) = self.wait_in_read(until)? {
            if is_over {
                return Ok(false);
            }
        }
        self.wake = self.node.poll_timeout();
        let timeout = self.timeout(self.wake, until);
        let timeout = self.spin(timeout);
        self.poller.wait(&mut self.ready, timeout)?;
        self.now = clock();
        // Bytes in a link's buffer or ring make no descriptor readable.
        for link in self.sockets.take_again() {
            self.now = self.sockets.read(link, &mut self.node);
        }
        if self.ready.len() > 1 {
            self.sort_ready();
        }
        for index in 0..self.ready.len() {
            let event = self.ready[index];
            match Token::from_number(event.token) {
                Token::Link(link) => self.handle_link(link, event),
                token => self.handle_rare(token)?,
            }
        }
        self.tick(self.now)?;
        self.carry_out()?;
        // Last of all: what is written to a ring from here on wakes this process.
        self.sockets.announce_waits();
        Ok(self.foreign_ready)
    }

    /// Looks at the rings in shared memory for a moment, where that may be cheaper than to sleep.
    /// Gives how long to sleep then.
    #[inline]
    fn spin(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        let is_wait = timeout != Some(Duration::ZERO);
        if !is_wait || !self.sockets.can_spin() || !self.spin.is_due(self.now) {
            return timeout;
        }
        let time = timeout.map_or(SPIN_TIME, |wait| wait.min(SPIN_TIME));
        if !self.sockets.spin(clock() + time) {
            self.spin.note_missed();
            return timeout;
        }
        self.spin.note_met();
        Some(Duration::ZERO)
    }

    /// Waits for bytes in the read itself, if this process has nothing else to wait for: one system
    /// call instead of two, for a back-end that waits only for its parent. Returns whether the turn
    /// is over, or none where this is not possible: then the poller waits, also for the rest of the
    /// time.
    #[inline]
    fn wait_in_read(&mut self, until: Option<Instant>) -> Result<Option<bool>, RuntimeError> {
        let is_alone = self.is_back_end && self.watched == 0 && self.processes.is_empty();
        if !is_alone || self.has_news() || self.attempt.is_under_way() {
            return Ok(None);
        }
        let Some(link) = self.sockets.only_link() else { return Ok(None) };
        self.wake = self.node.poll_timeout();
        let end = [self.wake, until].into_iter().flatten().min();
        let patience = end.map(|end| end.since(clock()));
        if !self.sockets.limit_wait(link, patience) {
            return Ok(None);
        }
        let (now, is_limit) = self.sockets.read_waiting(link, &mut self.node);
        self.now = now;
        let is_over = !is_limit || end.is_none_or(|end| end <= now);
        self.wake_node(now);
        self.carry_out()?;
        Ok(Some(is_over))
    }

    /// Whether there is work for which no descriptor wakes this process.
    #[inline]
    fn has_news(&self) -> bool {
        self.sockets.must_not_wait() || !self.events.is_empty()
    }

    /// How long until the next timer, if no descriptor becomes ready; `None` for ever. For a
    /// program that waits for the descriptor itself, and turns then or when this time is over.
    #[must_use]
    pub fn idle_time(&self) -> Option<Duration> {
        self.timeout(self.node.poll_timeout(), None)
    }

    #[inline]
    fn timeout(&self, wake: Option<Instant>, until: Option<Instant>) -> Option<Duration> {
        if self.has_news() {
            return Some(Duration::ZERO);
        }
        let tick = self.sockets.next_tick().map(Instant);
        let startup = self.startup.map(|(at, _)| at);
        let attempt = self.attempt.next_tick();
        let starts = self.processes.next_tick();
        let earliest = [until, wake, tick, startup, attempt, starts].into_iter().flatten().min()?;
        Some(earliest.since(clock()))
    }

    /// Children in the order of their ranks, so that folds find their inputs in order.
    fn sort_ready(&mut self) {
        let node = &self.node;
        self.ready.sort_unstable_by_key(|event| match Token::from_number(event.token) {
            Token::Link(link) => node.read_order(link),
            _ => 0,
        });
    }

    #[inline]
    fn handle_link(&mut self, link: LinkId, event: sapwood_transport::Event) {
        // A hang-up is read, too: what the peer wrote before its end is still in the socket.
        if event.readable || event.hung_up {
            self.now = self.sockets.read(link, &mut self.node);
        }
        if event.writable {
            let was_awaited = self.sockets.note_writable(link);
            self.dirty.extend(was_awaited.then_some(link));
        }
    }

    #[cold]
    #[inline(never)]
    fn handle_rare(&mut self, token: Token) -> Result<(), RuntimeError> {
        let now = self.now;
        match token {
            Token::Link(_) => {}
            Token::Listener => self.sockets.accept(&self.poller, now)?,
            Token::Newcomer(index) => {
                self.sockets.advance(index, &mut self.node, &self.poller, now);
            }
            Token::Exit(rank) => {
                self.processes.ended(rank, &mut self.node, &self.poller, now);
            }
            Token::ChildStderr(rank) => self.processes.pass_on_words(rank, &self.poller),
            Token::AgentStdout(rank) => self.processes.answers(rank, &self.poller, now),
            Token::AgentStdin(rank) => self.processes.writable(rank, &self.poller, now),
            Token::Attempt => self.advance_attempt(now)?,
            Token::LivenessPipe => {
                if let Some(liveness_pipe) = &self.liveness_pipe {
                    // A hang-up stays pending, and would be reported in every turn.
                    self.poller.remove(liveness_pipe)?;
                }
            }
            Token::Work => {
                let done = self.workers.as_ref().map(Workers::take_done).unwrap_or_default();
                for (job, time) in done {
                    self.node.finish_job(now, job, time);
                }
            }
            Token::Foreign => self.foreign_ready = true,
        }
        Ok(())
    }

    /// Continues the attempt: the ancestor may have answered.
    fn advance_attempt(&mut self, now: Instant) -> Result<(), RuntimeError> {
        match self.attempt.advance(&self.poller) {
            Ok(Some(link)) => {
                let id = self.sockets.add(link, &self.poller)?;
                self.node.handle_input(now, Input::ParentUp { link: id });
            }
            Ok(None) => {}
            Err(failure) => self.tell_failure(failure, now),
        }
        Ok(())
    }

    fn tell_failure(&mut self, Failure { reason, is_refused }: Failure, now: Instant) {
        self.node.handle_input(now, Input::ConnectFailed { reason, is_refused });
    }

    #[inline]
    fn wake_node(&mut self, now: Instant) {
        if let Some(due) = self.wake.take_if(|wake| *wake <= now) {
            self.excuse(now.since(due));
            self.node.set_wall(wall());
            self.node.handle_input(now, Input::Timeout);
            self.sockets.measure(&mut self.node, now);
            self.sockets.close_unacknowledged(&mut self.node, now);
        }
    }

    /// This process was delayed: the time limits of starting processes are extended by as much.
    #[inline]
    fn excuse(&mut self, late: Duration) {
        if late >= LATE_MIN {
            if let Some((at, _)) = &mut self.startup {
                *at = *at + late;
            }
            self.processes.excuse(late);
        }
    }

    fn tick(&mut self, now: Instant) -> Result<(), RuntimeError> {
        self.wake_node(now);
        if self.processes.is_starting() || self.processes.next_tick().is_some_and(|at| at <= now) {
            self.processes.step(&mut self.node, &self.poller, now)?;
        }
        if let Err(failure) = self.attempt.expire(&self.poller, now) {
            self.tell_failure(failure, now);
        }
        if let Some((_, waited)) = self.startup.take_if(|(at, _)| *at <= now) {
            self.processes.give_up(waited, &mut self.node, &self.poller, now);
        }
        if self.sockets.next_tick().is_some_and(|at| at <= now.0) {
            self.sockets.tick(&self.poller, now);
        }
        Ok(())
    }

    /// Carries out the node's outputs, and writes its frames.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process.
    #[inline]
    pub fn carry_out(&mut self) -> Result<(), RuntimeError> {
        loop {
            // In a loop, since written bytes may free credit and cause new outputs.
            let mut changes = LinkChanges::default();
            while let Some(output) = self.node.poll_output() {
                match output {
                    Output::Transmit(link) => self.dirty.push(link),
                    other => self.carry_out_rare(other, &mut changes)?,
                }
            }
            let has_asked = self.node.has_job() && self.give_out_jobs()?;
            if self.dirty.is_empty() && changes.is_empty() && !has_asked {
                self.sockets.free_numbers(&self.poller);
                return Ok(());
            }
            let now = self.now;
            while let Some(link) = self.dirty.pop() {
                self.sockets.write(link, &mut self.node, &self.poller, now);
            }
            if !changes.is_empty() {
                self.change_links(changes, now);
            }
        }
    }

    /// Everything but writing.
    #[cold]
    #[inline(never)]
    fn carry_out_rare(
        &mut self,
        output: Output,
        changes: &mut LinkChanges,
    ) -> Result<(), RuntimeError> {
        match output {
            Output::Transmit(link) => self.dirty.push(link),
            Output::Hangup(link) => changes.leaving.push(link),
            Output::Connect { address } => changes.wanted = Some(address),
            Output::Planned { plan, .. } => {
                self.planned(&plan)?;
                // The terms came with the welcome: before it no silence is too long.
                self.sockets.watch_silence(&self.node);
            }
            Output::Event(event) => {
                if matches!(event, Event::Reattached { .. }) {
                    self.sockets.watch_silence(&self.node);
                }
                journal::told(&self.node, &event);
                self.events.push_back(event);
            }
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn change_links(&mut self, changes: LinkChanges, now: Instant) {
        for link in changes.leaving {
            self.sockets.hang_up(link, &mut self.node, &self.poller, now);
        }
        if let Some(address) = changes.wanted {
            self.turn_to(&address, now);
        }
    }

    /// Has filters run that are offloaded; gives whether the node may have something to say.
    #[cold]
    #[inline(never)]
    fn give_out_jobs(&mut self) -> Result<bool, RuntimeError> {
        let mut has_asked = false;
        while self.node.has_job() && self.node.jobs_out() < JOBS_MAX {
            has_asked = true;
            let Some(job) = self.node.take_job(clock()) else { continue };
            if self.workers.is_none() {
                let waker = self.poller.waker(Token::Work.to_number())?;
                self.workers = Some(Workers::new(waker));
            }
            if let Some(workers) = &self.workers {
                workers.begin(job);
            }
        }
        Ok(has_asked)
    }

    /// Begins to connect to an ancestor.
    fn turn_to(&mut self, address: &str, now: Instant) {
        let (key, encryption) = (self.sockets.key(), self.sockets.encryption());
        let begun = self.attempt.begin(address, key, encryption, &self.poller, now);
        if let Err(failure) = begun {
            self.tell_failure(failure, now);
        }
    }

    /// The parent has said which subtree is this process's.
    fn planned(&mut self, plan: &[u8]) -> Result<(), RuntimeError> {
        // From here on this process reports over its link.
        sapwood_launch::take_over_stderr();
        if plan.is_empty() {
            return Ok(());
        }
        if self.is_joining {
            return self.grow_alone(&JoinPlan::from_bytes(plan)?);
        }
        let plan = Plan::from_bytes(plan)?;
        self.transport = plan.options.transport;
        self.node.application().set_filter_limit(plan.options.filter_limit());
        self.grow(&plan, self.liveness_end)
    }

    /// Takes connections and starts the children of a plan, each with the liveness pipe if there
    /// is one.
    fn grow(
        &mut self,
        plan: &Plan,
        liveness_end: Option<BorrowedFd<'_>>,
    ) -> Result<(), RuntimeError> {
        let is_root = plan.subtree.rank() == plan.subtree.front_end();
        let role = if is_root { Role::FrontEnd } else { Role::Communication };
        let listen_address =
            self.listen(&self.listen_address(&plan.options, role)?, &plan.options)?;
        let plan = if is_root { &plan.with_front_end(&listen_address) } else { plan };
        self.take_dynamic_members(&plan.options, plan.height());
        let back_ends = plan.options.back_ends;
        // First of all: a child that the node does not know cannot be told to it as failed.
        self.node.expect(plan.children(), plan.attach_ranks(), plan.height(), back_ends);
        let invitation = Invitation {
            listen_address: &listen_address,
            key: self.sockets.key(),
            encryption: self.sockets.encryption(),
            liveness_end,
        };
        let failed = self.processes.start_all(plan, &invitation, &self.poller)?;
        let now = clock();
        let patience = Duration::from_millis(plan.options.startup_milliseconds.into());
        self.startup = Some((now + patience, patience));
        for (rank, text) in failed {
            self.node.handle_input(now, Input::StartFailed { rank, text });
        }
        Ok(())
    }

    /// A process that has joined takes connections and starts no process.
    fn grow_alone(&mut self, plan: &JoinPlan) -> Result<(), RuntimeError> {
        self.transport = plan.options.transport;
        self.node.application().set_filter_limit(plan.options.filter_limit());
        self.listen(&self.listen_address(&plan.options, Role::Communication)?, &plan.options)?;
        self.take_dynamic_members(&plan.options, plan.height);
        self.node.expect(Vec::new(), RankSet::new(), plan.height, plan.options.back_ends);
        Ok(())
    }

    /// Takes connections, at all of the given addresses.
    fn listen(
        &mut self,
        listen_address: &Address,
        options: &TreeOptions,
    ) -> Result<Address, RuntimeError> {
        let (listener, listen_address) = bind(listen_address)?;
        self.sockets.listen(listener, listen_address.clone(), &self.poller)?;
        if matches!(options.transport, TransportKind::Automatic | TransportKind::Shm) {
            self.sockets.share_memory();
        }
        self.node.set_address(listen_address.to_string());
        self.has_recovery = options.recovery.is_on;
        Ok(listen_address)
    }

    fn take_dynamic_members(&mut self, options: &TreeOptions, height: u32) {
        if options.takes_dynamic_members {
            self.node.accept_dynamic_members(JoinPlan::below(height, options).to_bytes());
        }
    }

    /// Where this process is to take connections.
    fn listen_address(&self, options: &TreeOptions, role: Role) -> Result<Address, RuntimeError> {
        match self.transport {
            TransportKind::Tcp => {
                let port = options.remote.as_ref().filter(|_| role == Role::FrontEnd);
                let port = port.map_or(0, |remote| remote.front_end_port);
                Ok(Address::at_each(&own_addresses(options, role)?, port))
            }
            TransportKind::Unix | TransportKind::Shm | TransportKind::Automatic => {
                Ok(Address::local_abstract()?)
            }
        }
    }

    /// Ends this process's part of the network: what is queued is written, children are given a
    /// short time to end by themselves, then they are killed, with all other holders of this
    /// front-end's liveness pipe. Where the network goes on without this process, its children do
    /// so too.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process.
    pub fn close(&mut self) -> Result<(), RuntimeError> {
        let until = clock() + GRACE;
        // First the shutdown is queued; from then on no process is accepted or connected to; last
        // end those that no link reaches.
        self.node.application().shutdown(clock());
        self.sockets.stop_listening();
        self.attempt.give_up(&self.poller);
        self.processes.kill_unheard(&self.node, &self.poller);
        self.watch_liveness_pipe()?;
        let mut events = VecDeque::new();
        while clock() < until {
            // The application does not take events meanwhile, and the loop does not wait while some
            // are queued.
            events.append(&mut self.events);
            // Offloaded filters may have finished.
            if self.has_recovery && self.node.has_stepped_down() {
                self.processes.release_all(&self.poller);
            }
            self.carry_out()?;
            let is_over = self.sockets.open_count() == 0 && self.processes.is_empty();
            if is_over && self.liveness_pipe.as_ref().is_none_or(LivenessPipe::is_free) {
                break;
            }
            self.turn(Some(until))?;
        }
        events.append(&mut self.events);
        self.events = events;
        self.processes.kill_all(&self.poller);
        self.liveness_pipe = None;
        Ok(())
    }

    /// Has the loop return when the last process closes the liveness pipe.
    fn watch_liveness_pipe(&self) -> Result<(), RuntimeError> {
        if let Some(liveness_pipe) = &self.liveness_pipe {
            self.poller.add(liveness_pipe, Token::LivenessPipe.to_number(), Interest::NONE)?;
        }
        Ok(())
    }

    /// From which address of this host to which of its parent's its link goes, for people; nothing
    /// where that is no TCP link, or there is none.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        self.sockets.path_of(self.node.parent_link()?)
    }

    /// Whether this process's links are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.sockets.encryption() == Encryption::On
    }

    /// Whether the network has ended for this process.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.node.has_ended()
    }
}

/// The addresses of this machine at which others find a process of this role.
fn own_addresses(options: &TreeOptions, role: Role) -> Result<Vec<IpAddr>, RuntimeError> {
    if let Some(interface) = own_interface()? {
        return Ok(vec![interface]);
    }
    let Some(remote) = &options.remote else { return Ok(vec![options.interface]) };
    if role == Role::FrontEnd && !options.interface.is_loopback() {
        return Ok(vec![options.interface]);
    }
    let rule: InterfaceRule = match remote.interfaces.as_str() {
        "" => InterfaceRule::default(),
        text => text.parse()?,
    };
    let all = interfaces()?;
    let mut chosen = rule.choose(&all);
    if rule.is_given() {
        // Sockets are bound to the chosen address, and a socket has one address or all.
        chosen.truncate(1);
    }
    match (chosen.is_empty(), rule.is_given()) {
        (false, _) => Ok(chosen),
        (true, false) => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
        (true, true) => Err(RuntimeError::NoInterface { rule: rule.to_string() }),
    }
}

/// Binds to an address of this machine; to all of them where the address has several. Gives where
/// others find it.
fn bind(listen_address: &Address) -> Result<(Listener, Address), RuntimeError> {
    let places: Vec<IpAddr> = listen_address.resolve()?.iter().map(SocketAddr::ip).collect();
    if places.len() < 2 {
        let listener = Listener::bind(listen_address)?;
        let listen_address = listener.address().clone();
        return Ok((listener, listen_address));
    }
    let port = listen_address.port().unwrap_or(0);
    let at = |address: IpAddr| Listener::bind(&Address::at_each(&[address], port));
    // Both families by one socket, where the system has both.
    let listener =
        at(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| at(Ipv4Addr::UNSPECIFIED.into()))?;
    let port = listener.address().port().unwrap_or(port);
    Ok((listener, Address::at_each(&places, port)))
}
