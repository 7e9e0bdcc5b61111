//! The network, seen from its front-end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Bound;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sapwood_extension::with_extensions;
use sapwood_filter::Registry;
use sapwood_node::{AttachPoint, Event, FILTER_LIMIT, HopQuestion, Recovery, StreamSpec};
use sapwood_packet::{Rank, RankSet, StreamId};
use sapwood_runtime::{Driver, Plan, TransportKind, TreeOptions, clock};
use sapwood_topology::Topology;
use sapwood_transport::Key;

#[cfg(doc)]
use crate::Error;
use crate::inquiry::Question;
use crate::join_file::{JoinFile, absolute};
use crate::launcher::RemoteTerms;
use crate::resumption::StateFile;
use crate::shared::{Interrupt, Shared};
use crate::starting::StartPatience;
use crate::visible::{NetworkName, Publication, check_name};
use crate::{
    Attach, AttachFile, Clocks, Launcher, Program, Result, StartCommand, Status, StreamBuilder,
    node_program,
};

/// How long a tree may take to start by default.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The same where hosts have to be reached, which may have to be given up one after another.
const REMOTE_STARTUP_TIMEOUT: Duration = Duration::from_secs(60);

/// A network that is about to be opened.
#[must_use]
pub struct NetworkBuilder {
    topology: Topology,
    program: Option<Program>,
    node_program: Option<PathBuf>,
    node_arguments: Vec<String>,
    interrupt: Option<Interrupt>,
    transport: TransportKind,
    interface: IpAddr,
    encryption: Option<bool>,
    registry: Registry,
    startup_timeout: Option<Duration>,
    remote: RemoteTerms,
    allow_missing: bool,
    part_after: Option<Duration>,
    recovery: Recovery,
    takes_dynamic_members: bool,
    filter_limit: Duration,
    state_path: Option<PathBuf>,
    visible: Option<String>,
}

impl NetworkBuilder {
    /// The program of the back-ends. Without one, back-ends attach by themselves.
    pub fn back_end(mut self, program: Program) -> Self {
        self.program = Some(program);
        self
    }

    /// The program that is run as `PROGRAM node` for communication processes.
    pub fn node_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.node_program = Some(program.into());
        self
    }

    /// Puts an argument before `node`, behind those put there before: an interpreter is run as
    /// `PROGRAM ARGUMENTS node`.
    pub fn node_argument(mut self, argument: impl Into<String>) -> Self {
        self.node_arguments.push(argument.into());
        self
    }

    /// Calls this function every tenth of a second while any call waits for the network. If it
    /// returns `true`, the call ends with [`Error::Interrupted`] and changes nothing else; a
    /// network that is being opened is not opened, and no process is left running. For
    /// interpreters, which handle signals between two calls.
    pub fn interrupt(mut self, asks: impl FnMut() -> bool + 'static) -> Self {
        self.interrupt = Some(Interrupt::new(asks));
        self
    }

    /// The transport of links.
    pub fn transport(mut self, transport: TransportKind) -> Self {
        self.transport = transport;
        self
    }

    /// The address of this machine that TCP links listen at; the default is the loopback interface,
    /// which no other machine reaches. Back-ends on other machines attach to the one that is named
    /// here.
    pub fn interface(mut self, address: IpAddr) -> Self {
        self.interface = address;
        self
    }

    /// Whether links are encrypted. The default: TCP yes, Unix sockets no. Links prove the
    /// network's key in any case.
    pub fn encryption(mut self, on: bool) -> Self {
        self.encryption = Some(on);
        self
    }

    /// The filters that the front-end knows. The node program has to know them, too.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// How long each process of the tree may take to start and join. Those that take longer count
    /// as not started. The default is 30 s, and 60 s where other hosts take part.
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = Some(timeout);
        self
    }

    /// How the topology's hosts are reached. The default: by ssh, if one of them is not this
    /// machine.
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.remote.launcher = launcher;
        self
    }

    /// Reaches the host of the process that starts as any other one, where the topology names it.
    /// Without this, what is planned for `localhost` or this machine's own name is started without
    /// a log-in, whatever the launcher is. Has no effect with [`Launcher::Local`] and
    /// [`Launcher::Attach`].
    pub fn reach_own_host(mut self) -> Self {
        self.remote.reaches_own_host = true;
        self
    }

    /// The remote shell and its own arguments, instead of `ssh` or of `SAPWOOD_RSH`.
    pub fn remote_shell(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.remote.shell = Some(words.into_iter().map(Into::into).collect());
        self
    }

    /// The command by which hosts that are reached by a remote shell run what is started there,
    /// such as `nice -n 10`: it is given a program and its arguments behind its own words.
    pub fn remote_prefix(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.remote.prefix = words.into_iter().map(Into::into).collect();
        self
    }

    /// The Slurm allocation in which processes are started, where this process is in none, or in
    /// another: that of a job which runs already.
    pub fn slurm_job(mut self, number: impl Into<String>) -> Self {
        self.remote.slurm_job = Some(number.into());
        self
    }

    /// Has another manager start the back-ends: an MPI launcher, Flux, Kubernetes, or any system
    /// that can run a program with a variable in its environment. The network is started by
    /// [`Launcher::Attach`] then: it starts communication processes on this machine, takes
    /// connections at all its interfaces, tells back-ends where to join as `terms` say, and
    /// [`NetworkBuilder::open`] waits for them. Back-ends that have not joined in time count as not
    /// started. The builder's program is not run; [`NetworkBuilder::commands`] names it.
    pub fn attach(mut self, terms: Attach) -> Self {
        self.remote.launcher = Launcher::Attach;
        self.remote.attach = Some(terms);
        self
    }

    /// How long a host may take to answer before it is given up and its processes are started on
    /// another one; the default is 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.remote.connect_timeout = timeout;
        self
    }

    /// How many hosts one process reaches at the same time; the default is 32.
    pub fn concurrent_starts(mut self, hosts: u32) -> Self {
        self.remote.concurrent = hosts;
        self
    }

    /// Which addresses the processes of a tree over several hosts listen at, by a rule for all
    /// hosts: networks (`10.77.0.0/16`), names (`=eth0`) or beginnings of names (`eth`) of
    /// interfaces, between commas, or all but these behind a `^`. Sockets are bound to the first
    /// address that fits. Without a rule they take connections at all addresses, and a connecting
    /// process tries all of them.
    pub fn interfaces(mut self, rule: impl Into<String>) -> Self {
        self.remote.interfaces = rule.into();
        self
    }

    /// Opens the network even if some processes do not start; they are reported as events.
    pub fn allow_missing(mut self) -> Self {
        self.allow_missing = true;
        self
    }

    /// Opens the network after this time even while processes still start, as soon as one back-end
    /// is there: [`Network::is_starting`] tells whether others may come, and [`Network::everyone`]
    /// has those that have. Back-ends below a communication process come together, once all that it
    /// starts have come or have failed. Without effect unless some may be missing
    /// ([`NetworkBuilder::allow_missing`]), and where another manager starts the back-ends or the
    /// front-end is replaceable.
    pub fn open_after(mut self, time: Duration) -> Self {
        self.part_after = Some(time);
        self
    }

    /// What happens when processes of the tree die. The default: their children find a new parent,
    /// and no wave lacks a living member.
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Takes dynamic members, which the topology does not have, at any time: back-ends that attach
    /// without a rank when all reserved ones are taken, and communication processes (`sapwood-node
    /// --join FILE`). Every process of the tree takes them; [`Network::attach_points`] names all.
    pub fn dynamic_members(mut self) -> Self {
        self.takes_dynamic_members = true;
        self
    }

    /// How long a filter may take for one wave before it is given up: its waves then fail with that
    /// reason, and so do all later ones of its stream at that process. Zero for ever; the default
    /// is [`FILTER_LIMIT`]. It holds for offloaded filters: those of foreign code and those that
    /// were measured slow.
    pub fn filter_limit(mut self, limit: Duration) -> Self {
        self.filter_limit = limit;
        self
    }

    /// Lets another process replace this front-end after its end, within
    /// [`Recovery::front_end_wait`], which must not be zero: see [`Network::resume`]. The state
    /// that it needs is written to this file, of mode 0600, once the tree has started; an older
    /// file is replaced, and closing the network removes it.
    pub fn resumable(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_path = Some(path.into());
        self
    }

    /// Makes the network visible under this name, so that other processes of this user can query
    /// its status: see [`Network::publish`].
    pub fn visible(mut self, name: impl Into<String>) -> Self {
        self.visible = Some(name.into());
        self
    }

    /// The commands by which [`NetworkBuilder::open`] would start the tree. Nothing is started.
    ///
    /// # Errors
    /// As [`NetworkBuilder::open`], for errors before any process starts.
    pub fn commands(&self) -> Result<Vec<StartCommand>> {
        let commands = self.plan()?.0.commands()?;
        let leaves = self.topology.back_end_count();
        let command = |(host, rank, line)| match &self.remote.attach {
            Some(terms) if rank < leaves => {
                let line = terms.command(Some(rank), self.program.as_ref());
                StartCommand { host: "any host".to_owned(), rank, line }
            }
            _ => StartCommand { host, rank, line },
        };
        Ok(commands.into_iter().map(command).collect())
    }

    /// What another manager is to run for each back-end, as a shell would read it: see
    /// [`NetworkBuilder::attach`]. Nothing where the network starts its back-ends itself.
    pub fn attaching_command(&self) -> Option<String> {
        Some(self.remote.attach.as_ref()?.command(None, self.program.as_ref()))
    }

    /// The options of all processes, and the start-up limit of the tree.
    fn plan(&self) -> Result<(Plan, Duration)> {
        let located = |program: &Path| {
            sapwood_launch::locate(program).map_err(sapwood_runtime::RuntimeError::Launch)
        };
        let mut back_end = self.program.clone().map(|Program(back_end)| back_end);
        if let Some(back_end) = &mut back_end {
            back_end.program = located(&back_end.program)?;
        }
        if self.remote.launcher == Launcher::Attach {
            back_end = None;
        }
        let node_program = match &self.node_program {
            Some(named) => located(named)?,
            None => node_program()?,
        };
        let remote = self.remote.options_for(&self.topology)?;
        let (transport, usual) = match (self.transport, &remote) {
            (TransportKind::Automatic, Some(_)) => (TransportKind::Tcp, REMOTE_STARTUP_TIMEOUT),
            (transport, Some(_)) => (transport, REMOTE_STARTUP_TIMEOUT),
            (transport, None) => (transport, STARTUP_TIMEOUT),
        };
        let startup_timeout = self.startup_timeout.unwrap_or(usual);
        let options = TreeOptions {
            node_program,
            node_arguments: self.node_arguments.clone(),
            back_end,
            transport,
            encryption: self.encryption,
            interface: self.interface,
            remote,
            back_ends: self.topology.back_end_count(),
            startup_milliseconds: u32::try_from(startup_timeout.as_millis()).unwrap_or(u32::MAX),
            recovery: self.recovery,
            takes_dynamic_members: self.takes_dynamic_members,
            filter_milliseconds: milliseconds_of(self.filter_limit),
        };
        let root = self.topology.root().rank();
        let subtree = self.topology.subtree(root).expect("a topology has a subtree at its root");
        Ok((Plan { options, subtree }, startup_timeout))
    }

    /// Starts the tree and waits until all processes have joined.
    ///
    /// # Errors
    /// [`Error::Start`] with the failed processes' error texts, [`Error::Timeout`],
    /// [`Error::Runtime`]. Nothing is left running then.
    ///
    /// # Panics
    /// Never: a topology has a subtree at its root.
    pub fn open(self) -> Result<Network> {
        // Before any host is logged in to.
        if let Some(name) = &self.visible {
            check_name(name)?;
        }
        if let Some(path) = &self.state_path {
            crate::resumption::check_terms(path, &self.recovery)?;
        }
        let key = match &self.remote.attach {
            Some(terms) => terms.key()?,
            None => Key::generate()?,
        };
        let (plan, startup_timeout) = self.plan()?;
        let key_copy = Key::from_descriptor(key.to_descriptor()?)?;
        let driver = Driver::front_end(&plan, key, with_extensions(self.registry))?;
        let topology = Rc::new(self.topology);
        let mut shared = Shared::new(driver);
        shared.interrupt = self.interrupt;
        shared.inquiries.topology = Some(Rc::clone(&topology));
        let shared = Rc::new(RefCell::new(shared));
        let mut network = Network {
            shared,
            topology,
            key: key_copy,
            everyone: RankSet::new(),
            takes_dynamic_members: self.takes_dynamic_members,
            is_closed: false,
            publication: None,
            state_file: None,
            join_file: None,
        };
        let takes_part =
            self.allow_missing && self.remote.attach.is_none() && self.state_path.is_none();
        network.wait_until_ready(StartPatience {
            whole: startup_timeout,
            part: if takes_part { self.part_after } else { None },
            allows_missing: self.allow_missing,
        })?;
        if let Some(terms) = &self.remote.attach {
            network.await_leaves(terms, self.allow_missing)?;
        }
        if let Some(path) = self.state_path {
            network.write_state(path, plan)?;
        }
        if let Some(name) = self.visible {
            network.publish(&name)?;
        }
        Ok(network)
    }
}

/// Rounded up, because zero would mean no limit.
fn milliseconds_of(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// A set of back-ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    ranks: RankSet,
}

impl Communicator {
    /// The back-ends of these ranks.
    #[must_use]
    pub fn new(ranks: RankSet) -> Self {
        Self { ranks }
    }

    /// Its members.
    #[must_use]
    pub fn ranks(&self) -> &RankSet {
        &self.ranks
    }

    /// The number of back-ends.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.ranks.len()
    }
}

/// A tree of processes, seen from its root.
pub struct Network {
    pub(crate) shared: Rc<RefCell<Shared>>,
    pub(crate) topology: Rc<Topology>,
    pub(crate) key: Key,
    pub(crate) everyone: RankSet,
    pub(crate) takes_dynamic_members: bool,
    pub(crate) is_closed: bool,
    pub(crate) publication: Option<Publication>,
    pub(crate) state_file: Option<StateFile>,
    pub(crate) join_file: Option<JoinFile>,
}

impl Network {
    /// Starts a tree on this machine with a program as every back-end.
    ///
    /// # Errors
    /// As [`NetworkBuilder::open`].
    pub fn open(shape: sapwood_topology::Shape, program: Program) -> Result<Self> {
        let topology = Topology::from_shape(&shape, &sapwood_topology::Hosts::local());
        Self::builder(topology).back_end(program).open()
    }

    /// A builder for a network of a topology.
    pub fn builder(topology: Topology) -> NetworkBuilder {
        NetworkBuilder {
            topology,
            program: None,
            node_program: None,
            node_arguments: Vec::new(),
            interrupt: None,
            transport: TransportKind::Automatic,
            interface: Ipv4Addr::LOCALHOST.into(),
            encryption: None,
            registry: Registry::built_in(),
            startup_timeout: None,
            remote: RemoteTerms::default(),
            allow_missing: false,
            part_after: None,
            recovery: Recovery::default(),
            takes_dynamic_members: false,
            filter_limit: FILTER_LIMIT,
            state_path: None,
            visible: None,
        }
    }

    /// The shape of the tree.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// All back-ends that are connected now.
    #[must_use]
    pub fn everyone(&self) -> Communicator {
        Communicator::new(self.shared.borrow_mut().driver.application().back_ends())
    }

    /// Some back-ends, by rank.
    #[must_use]
    pub fn communicator(&self, ranks: impl IntoIterator<Item = Rank>) -> Communicator {
        Communicator::new(ranks.into_iter().collect())
    }

    /// A stream to the members of a communicator.
    pub fn stream(&self, members: &Communicator) -> StreamBuilder {
        let spec = StreamSpec { members: members.ranks.clone(), ..StreamSpec::default() };
        StreamBuilder { shared: Rc::clone(&self.shared), spec }
    }

    /// Where back-ends may attach by themselves, and under which ranks.
    #[must_use]
    pub fn attach_points(&self) -> Vec<AttachPoint> {
        self.shared.borrow().attach_points.clone()
    }

    /// Writes what back-ends need to attach: the key into a file of mode 0600, and the attach
    /// points with that file's path into `path`.
    ///
    /// # Errors
    /// [`Error::File`] when a file cannot be written or exists already.
    pub fn write_attach_file(&self, path: &Path, key_path: &Path) -> Result<()> {
        self.key.write_file(key_path)?;
        self.rewrite_attach_file(path, key_path)
    }

    /// Writes the attach points anew, as they are now, beside a key that was written before.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be written.
    pub fn rewrite_attach_file(&self, path: &Path, key_path: &Path) -> Result<()> {
        let is_encrypted = self.shared.borrow().driver.is_encrypted();
        let key_path = absolute(key_path);
        let file = AttachFile::new(&self.attach_points(), is_encrypted, &key_path);
        if !self.takes_dynamic_members {
            return file.write(path);
        }
        let children = |rank| u32::try_from(self.topology.children(rank).len()).unwrap_or(u32::MAX);
        file.with_dynamic_members(children).write(path)
    }

    /// Waits until this many back-ends are connected.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Ended`].
    pub fn wait_for_back_ends(&mut self, count: u64, timeout: Duration) -> Result<()> {
        self.shared.borrow_mut().wait("full set of back-ends", Some(timeout), |shared| {
            Ok((shared.driver.application().back_ends().len() >= count).then_some(()))
        })
    }

    /// The status of the network, process by process. Processes that do not answer within the time
    /// are named as missing, as is a back-end whose application does not let its node run.
    ///
    /// # Errors
    /// [`Error::Ended`], [`Error::Runtime`] when the system fails this process.
    pub fn status(&mut self, timeout: Duration) -> Result<Status> {
        self.shared.borrow_mut().status(timeout, None)
    }

    /// The status of the network, with the events of waves and packets that its processes have
    /// noted since the session's last question ([`Status::hops`]). The first question of a session
    /// has them begin.
    ///
    /// # Errors
    /// As [`Network::status`].
    pub fn hops(&mut self, question: &HopQuestion, timeout: Duration) -> Result<Status> {
        self.shared.borrow_mut().status(timeout, Some(*question))
    }

    /// The offsets of all processes' clocks from the front-end's, from that many status queries (at
    /// least one) with that timeout: each is a sample of every link.
    ///
    /// # Errors
    /// As [`Network::status`].
    pub fn clocks(&mut self, questions: u32, timeout: Duration) -> Result<Clocks> {
        Clocks::after(questions, || self.status(timeout))
    }

    /// Makes the network visible under this name until it closes: other processes of this user can
    /// query its status, with `sapwood status` or a [`VisibleNetwork`](crate::VisibleNetwork). They
    /// are answered while the application waits for the network or turns it.
    ///
    /// # Errors
    /// [`Error::File`] when the name is invalid or taken, or the file cannot be written.
    pub fn publish(&mut self, name: &str) -> Result<()> {
        let (address, is_encrypted) = self.way_in();
        self.publication = None;
        self.publication = Some(Publication::new(name, &address, is_encrypted, &self.key)?);
        Ok(())
    }

    /// The name under which the network is visible, to be passed on to another one of this process.
    pub fn name(&mut self) -> NetworkName<'_> {
        let (address, is_encrypted) = self.way_in();
        NetworkName { publication: &mut self.publication, key: &self.key, address, is_encrypted }
    }

    /// Where visitors dial this network, and whether encrypted.
    fn way_in(&self) -> (String, bool) {
        let mut shared = self.shared.borrow_mut();
        let address = shared.driver.application().address().unwrap_or_default().to_string();
        (address, shared.driver.is_encrypted())
    }

    /// Makes the network visible no more: another one may have its name.
    pub fn unpublish(&mut self) {
        self.publication = None;
    }

    /// The next question of another process of this user, if there is one; only a network that is
    /// published gets any. Each is to be answered soon: the process that asks waits.
    pub fn next_question(&mut self) -> Option<Question> {
        self.shared.borrow_mut().next_question()
    }

    /// Answers a question.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn answer(&mut self, question: &Question, answer: &[u8]) -> Result<()> {
        self.shared.borrow_mut().answer_question(question, answer)
    }

    /// The next change in the network, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        let mut shared = self.shared.borrow_mut();
        shared.collect();
        shared.events.pop_front()
    }

    /// Turns the loop for at most this long: returns as soon as something has happened, and whether
    /// a watched descriptor is readable.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn turn(&mut self, timeout: Duration) -> Result<bool> {
        self.shared.borrow_mut().turn(Some(clock() + timeout))
    }

    /// Watches a descriptor of the application's beside the network's own.
    ///
    /// # Errors
    /// [`Error::Runtime`] when it cannot be watched.
    pub fn watch(&mut self, descriptor: impl std::os::fd::AsFd) -> Result<()> {
        Ok(self.shared.borrow_mut().driver.watch(descriptor)?)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// [`Error::Runtime`] when it is not watched.
    pub fn unwatch(&mut self, descriptor: impl std::os::fd::AsFd) -> Result<()> {
        Ok(self.shared.borrow_mut().driver.unwatch(descriptor)?)
    }

    /// Writes the packets sent so far, as far as the system takes them.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.shared.borrow_mut().driver.carry_out()?)
    }

    /// A descriptor that is readable when [`Network::turn`] has something to do.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.shared.borrow().driver.descriptor().as_raw_fd()
    }

    /// Switches repairs on or off: without them, the subtree of a process that dies is lost and
    /// named, as with [`Recovery::off`](crate::Recovery::off). Vacancies that are held open already
    /// are not closed. Repairs can be switched on again.
    ///
    /// # Errors
    /// [`Error::Misuse`] when it is to be on and the network was opened without recovery.
    pub fn switch_recovery(&mut self, is_on: bool) -> Result<()> {
        let mut shared = self.shared.borrow_mut();
        shared.change(|application, _| application.switch_recovery(is_on))?;
        Ok(shared.driver.carry_out()?)
    }

    /// How long [`Network::turn`] need not be called while the descriptor is not readable; `None`
    /// for ever.
    #[must_use]
    pub fn idle_time(&self) -> Option<Duration> {
        self.shared.borrow().driver.idle_time()
    }

    /// A stream on which an answer is waiting to be received: the first one with a higher number
    /// than `after`, or the lowest of all.
    #[must_use]
    pub fn answering(&self, after: StreamId) -> Option<StreamId> {
        let shared = self.shared.borrow();
        let waits = |(&id, answers): (&StreamId, &VecDeque<_>)| (!answers.is_empty()).then_some(id);
        let next = (Bound::Excluded(after), Bound::Unbounded);
        let next = shared.answers.range(next).find_map(waits);
        next.or_else(|| shared.answers.iter().find_map(waits))
    }

    /// Ends the tree: packets that were sent are delivered, then every process ends.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn close(mut self) -> Result<()> {
        self.close_once()
    }

    pub(crate) fn close_once(&mut self) -> Result<()> {
        self.publication = None;
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        let closed = self.shared.borrow_mut().driver.close();
        self.state_file = None;
        self.join_file = None;
        Ok(closed?)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // A drop cannot report an error; `close` does.
        let _ = self.close_once();
    }
}
