//! How a member is to be, and its entry into a group.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sapwood_group::limits::NAMES_MAX;
use sapwood_group::status::Status;
use sapwood_group::trees::TreeKind;
use sapwood_group::{Config, GroupHopQuestion, Refusal};
use sapwood_packet::{Rank, RankSet, nanoseconds};
use sapwood_runtime::{GroupDriver, GroupOptions, GroupQuestion, RuntimeError, TracedMember};
use sapwood_transport::{Address, Encryption, Error as TransportError, Key};

use super::Group;
use super::engine::EngineThread;
use super::failure::GroupFailure;
use super::shared::{GroupShared, Life};
use crate::{Error, Result};

/// How often a member that is given any free virtual node tries another one.
const NAME_TRIES: u32 = 16;
/// How many pings without an answer make a member dead.
const PINGS: u32 = 3;
/// How long children in a transfer may be silent, besides what distance and length take: processes
/// may have to wait for a processor.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a member may take to enter once it is welcome: to get what it takes over, above all.
const ENTRY: Duration = Duration::from_secs(10);

/// How long it is waited for an answer where there may be no member any more.
const ANSWER: Duration = Duration::from_secs(2);

/// What is at an address at which a member listened.
pub(crate) enum Occupant {
    /// A member answers.
    Member,
    /// No process listens there, or it is no address.
    Absent,
    /// There may be a member.
    Unknown {
        /// What was observed.
        reason: String,
    },
}

/// Builds a [`Group`].
#[derive(Clone, Debug)]
pub struct GroupBuilder {
    key: Key,
    names: RankSet,
    take: RankSet,
    space: u32,
    site: u32,
    listen: String,
    encryption: Option<Encryption>,
    shares_memory: bool,
    tree: TreeKind,
    deadline: Duration,
    join_deadline: Duration,
    silence: Duration,
    inbox_bytes: usize,
    config: Config,
}

impl GroupBuilder {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            names: RankSet::new(),
            take: RankSet::new(),
            space: 1 << 16,
            site: 0,
            listen: "tcp:127.0.0.1:0".to_string(),
            encryption: None,
            shares_memory: true,
            tree: TreeKind::default(),
            deadline: Duration::from_secs(30),
            join_deadline: Duration::from_secs(10),
            silence: Duration::from_secs(3),
            inbox_bytes: 256 << 20,
            config: Config::default(),
        }
    }

    /// One virtual node to carry. Without any the member takes the smallest free one.
    #[must_use]
    pub fn name(mut self, name: Rank) -> Self {
        self.names.insert(name);
        self
    }

    /// The virtual nodes to carry.
    #[must_use]
    pub fn names(mut self, names: RankSet) -> Self {
        self.names = names;
        self
    }

    /// Virtual nodes to take over from the member that carries them, which stays and keeps others;
    /// besides those of [`GroupBuilder::names`], of which the member then needs none. What is sent
    /// to them meanwhile is delivered by one of the two. [`GroupBuilder::join`] waits for them,
    /// and fails with [`Refusal::NotGiven`] if no one member has them all and others, or if a
    /// reduction with a root among them goes on for five seconds.
    #[must_use]
    pub fn take(mut self, names: RankSet) -> Self {
        self.take = names;
        self
    }

    /// The size of the name space, the same for all: 1 to [`GROUP_NAMES_MAX`]; 65,536 by default.
    ///
    /// [`GROUP_NAMES_MAX`]: crate::GROUP_NAMES_MAX
    #[must_use]
    pub fn space(mut self, space: u32) -> Self {
        self.space = space;
        self
    }

    /// The cluster that the operator gives, for the trees `static` and `list` only.
    #[must_use]
    pub fn site(mut self, site: u32) -> Self {
        self.site = site;
        self
    }

    /// Where to take connections: `tcp:ADDRESS:PORT` or `unix:PATH`; a free port of the loopback
    /// interface by default.
    #[must_use]
    pub fn listen(mut self, address: &str) -> Self {
        self.listen = address.to_string();
        self
    }

    /// Whether bytes are encrypted, the same for all; by default over TCP only.
    #[must_use]
    pub fn encryption(mut self, is_on: bool) -> Self {
        self.encryption = Some(encryption_of(is_on));
        self
    }

    /// Whether links to members of the same user on this host go through shared memory, without
    /// encryption, as in a tree; they do by default. With encryption that is on for all links, and
    /// where a host cannot share memory, links are sockets.
    #[must_use]
    pub fn shared_memory(mut self, is_on: bool) -> Self {
        self.shares_memory = is_on;
        self
    }

    /// By which tree operations go that do not say otherwise.
    #[must_use]
    pub fn tree(mut self, tree: TreeKind) -> Self {
        self.tree = tree;
        self
    }

    /// The deadline of operations that do not say otherwise; 30 seconds by default.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long joining may take; 10 seconds by default.
    #[must_use]
    pub fn join_deadline(mut self, deadline: Duration) -> Self {
        self.join_deadline = deadline;
        self
    }

    /// How long a member may say nothing before it counts as dead; 3 seconds by default. A process
    /// that ends is noticed at once.
    #[must_use]
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// How many bytes of values wait for [`Group::receive`] at most; then the oldest go, and are
    /// counted.
    #[must_use]
    pub fn inbox_bytes(mut self, bytes: usize) -> Self {
        self.inbox_bytes = bytes;
        self
    }

    /// How long a call that leaves a reduction early ([`GroupOperation::bypass`]) may wait for
    /// values that are almost there: 100 microseconds by default, 10 milliseconds at most, and not
    /// at all with 0. It waits only where earlier values have come within that time.
    ///
    /// [`GroupOperation::bypass`]: super::GroupOperation::bypass
    #[must_use]
    pub fn grace(mut self, most: Duration) -> Self {
        self.config.grace_max = nanoseconds(most);
        self
    }

    /// From which length on values travel in segments; for measurements.
    #[must_use]
    pub fn bulk_bytes(mut self, bytes: u64) -> Self {
        self.config.bulk_bytes = bytes;
        self
    }

    /// Begins a new group.
    ///
    /// # Errors
    /// [`Error::Runtime`] where this process cannot listen; [`GroupFailure::Refused`] where it is
    /// to take virtual nodes from others.
    pub fn create(mut self) -> Result<Group> {
        if !self.take.is_empty() {
            return Err(GroupFailure::Refused(Refusal::NotGiven).into());
        }
        if self.names.is_empty() {
            self.names.insert(0);
        }
        self.check()?;
        let mut driver = GroupDriver::new(self.options()?)?;
        driver.create()?;
        self.enter(driver)
    }

    /// Joins the group of the member at an address.
    ///
    /// # Errors
    /// [`GroupFailure::NotJoined`] where no member is there, or it has another key;
    /// [`GroupFailure::Refused`] where it does not take this one in.
    pub fn join(mut self, address: &str) -> Result<Group> {
        if !self.names.is_empty() || !self.take.is_empty() {
            return self.try_join(address);
        }
        let mut tries = 0;
        loop {
            let status = self.ask(address)?;
            self.space = status.space;
            let free = free_name(&status);
            self.names = RankSet::range(free, free);
            tries += 1;
            match self.try_join(address) {
                // Another process was faster.
                Err(Error::Group(GroupFailure::Refused(Refusal::Overlap)))
                    if tries < NAME_TRIES => {}
                outcome => return outcome,
            }
        }
    }

    fn ask(&self, address: &str) -> Result<Status> {
        let failed = |error: RuntimeError| {
            let is_refused =
                matches!(error, RuntimeError::Transport(TransportError::Refused { .. }));
            Error::Group(GroupFailure::NotJoined { reason: error.to_string(), is_refused })
        };
        let place: Address =
            address.parse().map_err(|error| failed(RuntimeError::Transport(error)))?;
        let question = GroupQuestion::default();
        sapwood_runtime::ask_group(&place, &self.key, self.encryption, question, self.join_deadline)
            .map_err(failed)
    }

    /// Whether a member answers at an address: of this group, or of another one.
    pub(crate) fn occupant(&self, address: &str) -> Occupant {
        let Ok(place) = address.parse::<Address>() else { return Occupant::Absent };
        let question = GroupQuestion::default();
        let asked =
            sapwood_runtime::ask_group(&place, &self.key, self.encryption, question, ANSWER);
        match asked {
            Ok(_)
            | Err(
                RuntimeError::SilentMember { has_link: true, .. }
                | RuntimeError::MemberVisit { .. }
                | RuntimeError::Transport(
                    TransportError::WrongKey { .. }
                    | TransportError::EncryptionMismatch { .. }
                    | TransportError::ForeignUser { .. },
                ),
            ) => Occupant::Member,
            Err(RuntimeError::Transport(TransportError::Refused { .. })) => Occupant::Absent,
            // A member that is stopped, overloaded or out of reach may go on.
            Err(error) => Occupant::Unknown { reason: error.to_string() },
        }
    }

    fn try_join(&self, address: &str) -> Result<Group> {
        self.check()?;
        let mut driver = GroupDriver::new(self.options()?)?;
        driver.join(address);
        self.enter(driver)
    }

    fn check(&self) -> Result<()> {
        if !(1..=NAMES_MAX).contains(&self.space) {
            return Err(GroupFailure::Space { space: self.space }.into());
        }
        let space = self.space;
        for names in [&self.names, &self.take] {
            if names.as_ref().last() >= Some(space) {
                return Err(GroupFailure::Outside { names: names.clone(), space }.into());
            }
        }
        Ok(())
    }

    fn options(&self) -> Result<GroupOptions> {
        let listen: Address = self.listen.parse().map_err(RuntimeError::Transport)?;
        let config = Config {
            names: self.names.clone(),
            take: self.take.clone(),
            space: self.space,
            site: self.site,
            ping_timeout: nanoseconds(self.silence) / u64::from(PINGS),
            ping_tries: PINGS,
            patience: nanoseconds(PATIENCE),
            ..self.config.clone()
        };
        Ok(GroupOptions {
            key: self.key.clone(),
            listen,
            encryption: self.encryption,
            shares_memory: self.shares_memory,
            connect_deadline: self.join_deadline.min(Duration::from_secs(5)),
            join_deadline: self.join_deadline,
            config,
        })
    }

    /// Waits until the member is in the group.
    fn enter(&self, driver: GroupDriver) -> Result<Group> {
        let shared = Arc::new(GroupShared::new(driver.waker(), self.inbox_bytes)?);
        let address = driver.address().to_string();
        shared.lock().names.clone_from(&self.names);
        let thread = EngineThread::start(driver, Arc::clone(&shared))?;
        let group = Group {
            shared,
            thread: Some(thread),
            address,
            space: self.space,
            tree: self.tree,
            deadline: self.deadline,
            left: std::sync::Mutex::default(),
        };
        let begun = Instant::now();
        let limit = self.join_deadline.saturating_add(ENTRY);
        let mut state = group.shared.lock();
        while state.life == Life::Joining {
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(Error::Timeout { what: "welcome", waited: limit });
            }
            state = group.shared.wait(state, left);
        }
        state.check_up()?;
        drop(state);
        Ok(group)
    }
}

/// The key of a group that the environment names: `SAPWOOD_KEY` is `fd:N`, an inherited descriptor,
/// or `file:PATH`.
///
/// # Errors
/// [`Error::Runtime`] where it names no key.
pub fn key_from_environment() -> Result<Option<Key>> {
    Ok(sapwood_runtime::key_from_environment()?)
}

/// How a group is, asked from outside of it: by the address of any member, with the tree by which
/// a value of a length would go from a virtual node, or else from that member.
///
/// # Errors
/// [`Error::Runtime`] where no member answers in time, or it has another key.
pub fn ask_group(
    address: &str,
    key: &Key,
    encryption: Option<bool>,
    (tree, root, bytes): (TreeKind, Option<Rank>, u64),
    deadline: Duration,
) -> Result<Status> {
    let address: Address = address.parse().map_err(RuntimeError::Transport)?;
    let encryption = encryption.map(encryption_of);
    let question = GroupQuestion { tree, root, bytes };
    Ok(sapwood_runtime::ask_group(&address, key, encryption, question, deadline)?)
}

/// What the member at an address notes of operations ([`Group::hops`]), asked from outside.
///
/// # Errors
/// As [`ask_group`].
pub fn trace_member(
    address: &str,
    key: &Key,
    encryption: Option<bool>,
    question: GroupHopQuestion,
    deadline: Duration,
) -> Result<TracedMember> {
    let address: Address = address.parse().map_err(RuntimeError::Transport)?;
    let encryption = encryption.map(encryption_of);
    Ok(sapwood_runtime::trace_member(&address, key, encryption, question, deadline)?)
}

const fn encryption_of(is_on: bool) -> Encryption {
    if is_on { Encryption::On } else { Encryption::Off }
}

/// The smallest virtual node that no member carries.
fn free_name(status: &Status) -> Rank {
    let mut taken = RankSet::new();
    for member in &status.members {
        if member.life == sapwood_group::message::Life::Alive {
            taken.union_with(member.names.as_set());
        }
    }
    (0..status.space).find(|name| !taken.contains(*name)).unwrap_or(status.space)
}
