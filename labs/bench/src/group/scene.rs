//! The members: processes of this program, each on its host or all on this one.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sapwood::{KEY_VARIABLE, Key, Rank, TreeKind};
use sapwood_command_line::exit::Failure;
use sapwood_group_tool::{Act, Fleet, MemberWords, Request, TestBed};
use sapwood_launch::Order;
use serde_json::Value;

use super::GROUP_MEMBER;
use super::network::EmulatedNetwork;

/// How long a member may take to answer what needs no other.
pub(super) const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
/// How long members probe for the paper's latency tree: 100 probes, one each 40 ms.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// Where the members find their key.
enum KeyPlace {
    File(PathBuf),
    Descriptor(OwnedFd),
}

/// How a member is started.
pub(super) struct Place<'a> {
    network: &'a EmulatedNetwork,
    program: PathBuf,
    key: KeyPlace,
}

/// The group.
pub(super) struct Scene<'a> {
    pub(super) place: Place<'a>,
    pub(super) fleet: Fleet,
    /// From the start of the first member until all knew each other.
    pub(super) joined: Duration,
    /// How many values virtual node 0 has published.
    pub(super) published: u32,
    /// What went wrong, each with operation, tree and member.
    pub(super) faults: Vec<String>,
}

impl<'a> Scene<'a> {
    /// Starts the members; those on hosts find their key in the folder.
    pub(super) fn start(
        network: &'a EmulatedNetwork,
        folder: Option<&Path>,
    ) -> Result<Self, Failure> {
        let own = |error: &dyn std::fmt::Display| Failure::own(&error.to_string());
        let program = std::env::current_exe().map_err(|error| own(&error))?;
        let made = Key::generate().map_err(|error| own(&error))?;
        let key = match folder {
            Some(folder) => {
                let path = folder.join("key");
                made.write_file(&path).map_err(|error| own(&error))?;
                KeyPlace::File(path)
            }
            None => KeyPlace::Descriptor(made.to_descriptor().map_err(|error| own(&error))?),
        };
        let place = Place { network, program, key };
        let count = network.layout.hosts as u32;
        let fleet = Fleet::start(count, |name, address| Ok(place.order(name, address)))?;
        let joined = fleet.begun().elapsed();
        Ok(Self { place, fleet, joined, published: 0, faults: Vec::new() })
    }

    /// How many members there are.
    pub(super) fn members(&self) -> usize {
        self.place.network.layout.hosts
    }

    /// The clusters in which members are.
    pub(super) fn clusters(&self) -> &[usize] {
        &self.place.network.network.placement.clusters
    }

    /// Has all members do it.
    ///
    /// # Errors
    /// [`Failure`] that names a member which has ended or does not answer.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        limit: Duration,
    ) -> Result<Vec<Value>, Failure> {
        self.fleet.ask(request, limit).into_iter().collect()
    }

    /// Has the members probe for both trees of the paper from virtual node 0, and lets them.
    pub(super) fn track_papers(&mut self) -> Result<(), Failure> {
        for tree in TreeKind::ALL.into_iter().filter(|tree| tree.is_paper()) {
            let mut request = Request::new(Act::Track);
            request.tree = tree;
            self.ask(&request, ANSWER_DEADLINE)?;
        }
        std::thread::sleep(PROBE_TIME);
        Ok(())
    }

    /// Has all leave.
    pub(super) fn end(self) -> Result<(), Failure> {
        self.fleet.end()
    }
}

impl Place<'_> {
    /// What starts the member of a virtual node, which joins at an address or creates the group.
    pub(super) fn order(&self, name: Rank, address: Option<&str>) -> Order<'_> {
        let placement = &self.network.network.placement;
        let hosts = self.network.hosts.as_ref();
        let host = hosts.map(|hosts| (hosts, hosts.emulation.host_of[name as usize]));
        let words = MemberWords {
            name,
            address: address.map(String::from),
            site: Some(placement.clusters[name as usize]),
            listen: host.map(|(_, host)| format!("tcp:{}:0", TestBed::address_of(host))),
            key: match &self.key {
                KeyPlace::File(path) => Some(path.clone()),
                KeyPlace::Descriptor(_) => None,
            },
            ..MemberWords::default()
        };
        let words = std::iter::once(GROUP_MEMBER.to_string()).chain(words.arguments());
        let mut order = match host {
            Some((hosts, host)) => {
                let command = std::iter::once(self.program.display().to_string());
                hosts.test_bed.order(host, &command.chain(words).collect::<Vec<_>>())
            }
            None => {
                let mut order = Order::new(&self.program);
                order.arguments = words.map(Into::into).collect();
                order
            }
        };
        if let KeyPlace::Descriptor(descriptor) = &self.key {
            order.inherit = vec![(KEY_VARIABLE.to_string(), descriptor.as_fd())];
        }
        order
    }
}

/// What is left until then.
pub(super) fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
