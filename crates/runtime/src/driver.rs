//! The loop: wait, read, let the node decide, write.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_node::{Event, Input, Instant, LinkId, Node, Output, Recovery, Role, Settings};
use sapwood_transport::{
    Address, Encryption, Interest, Key, Listener, Poller, WhenRefused, connect,
};

use crate::links::{SocketTable, Token};
use crate::processes::{GRACE, Processes};
use crate::{Attachment, Plan, RuntimeError, TransportKind};

/// How long a process waits for its parent to answer when it connects.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// The monotonic clock, as the node wants it. One read costs about 25 ns.
#[must_use]
pub fn clock() -> Instant {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Instant(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// One node with everything that it needs to run in this process.
pub struct Driver {
    node: Node,
    sockets: SocketTable,
    processes: Processes,
    poller: Poller,
    ready: Vec<sapwood_transport::Event>,
    events: VecDeque<Event>,
    wake: Option<Instant>,
    /// When children that have not connected count as not started, and how long that is.
    startup: Option<(Instant, Duration)>,
    /// Links to write to at the end of the turn.
    dirty: Vec<LinkId>,
    transport: TransportKind,
    foreign_ready: bool,
    /// How many descriptors of the application's are watched.
    watched: usize,
    is_back_end: bool,
    /// The time of the last turn.
    now: Instant,
}

impl Driver {
    /// A front-end: starts its children as the plan says. Wait for [`Event::Ready`].
    ///
    /// # Errors
    /// [`RuntimeError`] when this process cannot listen.
    pub fn front_end(plan: &Plan, key: Key, registry: Registry) -> Result<Self, RuntimeError> {
        let settings = Settings {
            role: Role::FrontEnd,
            rank: Some(plan.subtree.rank()),
            is_started: true,
            pid: std::process::id(),
            address: None,
            registry,
            recovery: Recovery::off(),
        };
        let encryption = encryption_of(plan);
        let mut driver = Self::new(settings, key, encryption, plan.options.transport)?;
        driver.grow(plan)?;
        Ok(driver)
    }

    /// A communication process or back-end: connects to its parent.
    ///
    /// # Errors
    /// [`RuntimeError`] when the parent cannot be reached or does not share the key.
    pub fn attach(
        attachment: Attachment,
        role: Role,
        registry: Registry,
    ) -> Result<Self, RuntimeError> {
        let Attachment { parent, rank, key, encryption, is_started } = attachment;
        let link = connect(&parent, &key, encryption, CONNECT_DEADLINE, WhenRefused::Fail)?;
        let settings = Settings {
            role,
            rank,
            is_started,
            pid: std::process::id(),
            address: None,
            registry,
            recovery: Recovery::off(),
        };
        let transport = if parent.is_unix() { TransportKind::Unix } else { TransportKind::Tcp };
        let mut driver = Self::new(settings, key, encryption, transport)?;
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
        Ok(Self {
            node: Node::new(settings),
            sockets: SocketTable::new(key, encryption),
            processes: Processes::default(),
            poller: Poller::new()?,
            ready: Vec::new(),
            events: VecDeque::new(),
            wake: None,
            startup: None,
            dirty: Vec::new(),
            transport,
            foreign_ready: false,
            watched: 0,
            is_back_end,
            now: clock(),
        })
    }

    /// The node, to be asked or told something; call [`Driver::carry_out`] afterwards.
    pub fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    /// The next change in the network.
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

    /// One turn of the loop: waits until something happens or the time has come, and deals with it.
    /// Gives whether a watched descriptor is readable.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process; the network is at an end then.
    pub fn turn(&mut self, until: Option<Instant>) -> Result<bool, RuntimeError> {
        self.carry_out()?;
        let timeout = self.timeout(until);
        self.foreign_ready = false;
        if timeout.is_none()
            && let Some(link) = self.only_link()
        {
            // One system call instead of two, for a back-end that waits for its parent alone.
            self.sockets.read_waiting(link, &mut self.node, self.now);
            self.carry_out()?;
            return Ok(false);
        }
        self.poller.wait(&mut self.ready, timeout)?;
        let now = clock();
        self.now = now;
        for link in self.sockets.take_again() {
            self.sockets.read(link, &mut self.node, now);
        }
        if self.ready.len() > 1 {
            let node = &self.node;
            self.ready.sort_unstable_by_key(|event| match Token::from_number(event.token) {
                Token::Link(link) => node.read_order(link),
                _ => 0,
            });
        }
        for index in 0..self.ready.len() {
            let event = self.ready[index];
            self.handle(event, now)?;
        }
        self.tick(now);
        self.carry_out()?;
        Ok(self.foreign_ready)
    }

    /// The link to the parent, where there is nothing else that this process could wait for. A
    /// back-end's node does not look at the time, so that it need not be read again.
    #[inline]
    fn only_link(&self) -> Option<LinkId> {
        let is_alone = self.is_back_end && self.watched == 0 && self.processes.is_empty();
        if is_alone { self.sockets.only_link() } else { None }
    }

    fn timeout(&self, until: Option<Instant>) -> Option<Duration> {
        // Nothing wakes a caller for an event that is there already.
        if self.sockets.must_not_wait() || !self.events.is_empty() {
            return Some(Duration::ZERO);
        }
        let tick = self.sockets.next_tick().map(Instant);
        let startup = self.startup.map(|(at, _)| at);
        let earliest = [until, self.wake, tick, startup].into_iter().flatten().min()?;
        Some(earliest.since(clock()))
    }

    #[inline]
    fn handle(
        &mut self,
        event: sapwood_transport::Event,
        now: Instant,
    ) -> Result<(), RuntimeError> {
        match Token::from_number(event.token) {
            Token::Link(link) => {
                if event.readable || event.hung_up {
                    self.sockets.read(link, &mut self.node, now);
                }
                if event.writable {
                    self.dirty.push(link);
                }
            }
            Token::Listener => self.sockets.accept(&self.poller, now)?,
            Token::Newcomer(index) => {
                self.sockets.advance(index, &mut self.node, &self.poller, now);
            }
            Token::Exit(rank) => {
                self.processes.ended(rank, &mut self.node, &self.poller, now);
            }
            Token::Words(rank) => self.processes.pass_on_words(rank, &self.poller),
            Token::Foreign => self.foreign_ready = true,
        }
        Ok(())
    }

    fn tick(&mut self, now: Instant) {
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
            self.node.handle_input(now, Input::Timeout);
        }
        if let Some((_, waited)) = self.startup.take_if(|(at, _)| *at <= now) {
            self.processes.give_up(waited, &mut self.node, now);
        }
        if self.sockets.next_tick().is_some_and(|at| at <= now.0) {
            self.sockets.tick(&self.poller, now);
        }
    }

    /// Does what the node has decided, and writes what it has to say.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process.
    pub fn carry_out(&mut self) -> Result<(), RuntimeError> {
        loop {
            let mut leaving = Vec::new();
            while let Some(output) = self.node.poll_output() {
                match output {
                    Output::Transmit(link) => self.dirty.push(link),
                    Output::Hangup(link) => leaving.push(link),
                    Output::Connect { .. } => {}
                    Output::Planned { plan, .. } => self.planned(&plan)?,
                    Output::Event(event) => self.events.push_back(event),
                    Output::Wake(at) => self.wake = Some(at),
                }
            }
            if self.dirty.is_empty() && leaving.is_empty() {
                return Ok(());
            }
            let now = self.now;
            while let Some(link) = self.dirty.pop() {
                self.sockets.write(link, &mut self.node, &self.poller, now);
            }
            for link in leaving {
                self.sockets.hang_up(link, &mut self.node, &self.poller, now);
            }
        }
    }

    /// The parent has said which subtree is this process's.
    fn planned(&mut self, plan: &[u8]) -> Result<(), RuntimeError> {
        if plan.is_empty() {
            return Ok(());
        }
        let plan = Plan::from_bytes(plan)?;
        self.transport = plan.options.transport;
        self.grow(&plan)
    }

    /// Takes connections and starts the children of a plan.
    fn grow(&mut self, plan: &Plan) -> Result<(), RuntimeError> {
        let listener = Listener::bind(&self.door(plan)?)?;
        let door = listener.address().clone();
        self.sockets.listen(listener, &self.poller)?;
        self.node.set_address(door.to_string());
        let back_ends = plan.options.back_ends;
        self.node.expect(plan.children(), plan.attach_ranks(), plan.height(), back_ends);
        let failed = self.processes.start_all(
            plan,
            &door,
            self.sockets.key(),
            self.sockets.encryption(),
            &self.poller,
        )?;
        let now = clock();
        let patience = Duration::from_millis(plan.options.startup_milliseconds.into());
        self.startup = Some((now + patience, patience));
        for (rank, text) in failed {
            self.node.handle_input(now, Input::StartFailed { rank, text });
        }
        Ok(())
    }

    /// Where this process is to take connections.
    fn door(&self, plan: &Plan) -> Result<Address, RuntimeError> {
        match self.transport {
            TransportKind::Tcp => {
                let any_port = SocketAddr::new(plan.options.interface, 0);
                Ok(format!("tcp:{any_port}").parse()?)
            }
            TransportKind::Unix | TransportKind::Automatic => Ok(Address::local_abstract()?),
        }
    }

    /// Ends this process's part of the network: what is queued is written, children are given a
    /// short time to end by themselves, then they are killed.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process.
    pub fn close(&mut self) -> Result<(), RuntimeError> {
        let until = clock() + GRACE;
        self.node.shutdown(clock());
        self.sockets.stop_listening();
        while clock() < until {
            self.carry_out()?;
            if self.sockets.open_count() == 0 && self.processes.is_empty() {
                break;
            }
            self.turn(Some(until))?;
        }
        self.processes.kill_all();
        Ok(())
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

fn encryption_of(plan: &Plan) -> Encryption {
    match (plan.options.encryption, plan.options.transport) {
        (Some(true), _) | (None, TransportKind::Tcp) => Encryption::On,
        _ => Encryption::Off,
    }
}
