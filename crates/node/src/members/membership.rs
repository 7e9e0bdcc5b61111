//! The members of the tree below this node: children that are awaited, there, or gone.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::RankSet;
use sapwood_wire::{Claim, Control, Ranges, StreamRequest, WIRE_VERSION};

use crate::interface::{AttachPoint, ChildPlan, Event, LinkId, NodeError, Output, Role};
use crate::members::ancestry::Ancestry;
use crate::members::children::{Child, Children, State};
use crate::members::dynamic::DynamicRanks;
use crate::members::files::Files;
use crate::members::heartbeat::Heartbeats;
use crate::members::superseded::Superseded;
use crate::members::vacancy::Vacancies;
use crate::members::visitor::Visitors;
use crate::streams::stream::Stream;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// The members below a node, and the state of each.
#[derive(Debug, Default)]
pub(crate) struct Census {
    pub(crate) expected: RankSet,
    pub(crate) connected: RankSet,
    pub(crate) lost: RankSet,
    pub(crate) awaited: RankSet,
}

/// The members below this node, and its parent.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) children: Children,
    pub(crate) ancestry: Ancestry,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) superseded: Superseded,
    /// Ranks kept for back-ends that attach here.
    pub(crate) attach: RankSet,
    pub(crate) attach_points: Vec<AttachPoint>,
    /// Levels to the farthest back-end.
    pub(crate) height: u32,
    /// How many back-ends the network has in all.
    pub(crate) total: u32,
    pub(crate) has_reported: bool,
    pub(crate) is_planned: bool,
    pub(crate) vacancies: Vacancies,
    /// The number that the parent was last asked to echo behind them.
    pub(crate) loss_barrier: u64,
    /// The ranks that this process may give to members that were not planned.
    pub(crate) dynamic_ranks: Option<DynamicRanks>,
    /// Whether this process is such a member, and no back-end.
    pub(crate) is_joining: bool,
    /// Whether this process has ended while its network goes on.
    pub(crate) has_stepped_down: bool,
    /// Files with filters that have come here.
    pub(crate) files: Files,
    /// Visitors that ask for the status of the network without being members of it.
    pub(crate) visitors: Visitors,
    /// See [`Node::last_breach`](crate::Node::last_breach).
    pub(crate) last_breach: Option<String>,
}

impl Membership {
    pub(crate) fn new() -> Self {
        Self {
            children: Children::default(),
            ancestry: Ancestry { has_recovery: true, ..Ancestry::default() },
            heartbeats: Heartbeats::default(),
            superseded: Superseded::default(),
            attach: RankSet::new(),
            attach_points: Vec::new(),
            height: 1,
            total: 0,
            has_reported: false,
            is_planned: false,
            vacancies: Vacancies::default(),
            loss_barrier: 0,
            dynamic_ranks: None,
            is_joining: false,
            has_stepped_down: false,
            files: Files::default(),
            visitors: Visitors::default(),
            last_breach: None,
        }
    }

    /// How many back-ends the network was planned with.
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    /// The back-ends that are connected, or on their way to another parent.
    pub(crate) fn connected(&self) -> RankSet {
        let mut all = RankSet::new();
        for child in self.children.iter() {
            all.union_with(child.connected.as_ref());
        }
        all.union_with(self.vacancies.awaited().as_ref());
        all
    }

    /// The back-ends below, by what has become of them.
    pub(crate) fn census(&self, lost: RankSet) -> Census {
        let mut census = Census { expected: self.attach.clone(), ..Census::default() };
        for child in self.children.iter() {
            census.expected.union_with(child.expected.as_ref());
            census.connected.union_with(child.connected.as_ref());
        }
        for vacancy in &self.vacancies.open {
            census.awaited.union_with(vacancy.awaited.as_ref());
        }
        census.lost = lost;
        census
    }

    pub(crate) fn parent_up(&mut self, link: LinkId, turn: &mut Turn) {
        let now = turn.now;
        turn.links.open(link, Peer::Parent, now);
        turn.counted.begin(now);
        turn.parent = Some(link);
        self.ancestry.is_welcomed = false;
        let claim = match (turn.settings.is_started, turn.rank) {
            (true, Some(rank)) => Claim::Started { rank },
            _ if self.is_joining => Claim::Joining,
            (_, rank) => Claim::Attached { rank },
        };
        let hello = Control::Hello {
            version: WIRE_VERSION,
            claim,
            pid: turn.settings.pid,
            address: turn.settings.address.clone(),
        };
        turn.send_control(link, &hello);
    }

    pub(crate) fn report_if_ready(&mut self, turn: &mut Turn) {
        let is_acknowledged = |child: &Child| matches!(child.state, State::Reported | State::Gone);
        let is_ready = self.is_planned
            && !self.has_reported
            && !self.vacancies.open.iter().any(|vacancy| vacancy.is_starting)
            && self.children.iter().all(is_acknowledged);
        if !is_ready {
            return;
        }
        self.has_reported = true;
        let attach_points = core::mem::take(&mut self.attach_points);
        let back_ends = self.connected();
        match (turn.settings.role, turn.parent) {
            (Role::FrontEnd, _) => {
                turn.outputs.push_back(Output::Event(Event::Ready { back_ends, attach_points }));
            }
            // Its parent knows that a back-end is there by its hello.
            (Role::BackEnd, _) => {}
            (_, Some(parent)) => {
                let attach_points = crate::members::dynamic::to_wire(attach_points);
                let back_ends = Ranges::from(&back_ends);
                turn.send_control(parent, &Control::Reached { back_ends, attach_points });
            }
            (_, None) => {}
        }
    }

    pub(crate) fn await_children(
        &mut self,
        children: Vec<ChildPlan>,
        attach: RankSet,
        height: u32,
        total: u32,
        turn: &mut Turn,
    ) {
        turn.links.reserve(children.len() + usize::from(turn.settings.role != Role::FrontEnd));
        let awaited = |child: ChildPlan| (child.rank, Child::awaited(child.back_ends, child.plan));
        self.children.append(children.into_iter().map(awaited).collect());
        let is_open = !attach.is_empty() || self.dynamic_ranks.is_some();
        if let (true, Some(address)) = (is_open, &turn.settings.address) {
            self.attach_points.push(AttachPoint {
                parent: turn.rank(),
                address: address.clone(),
                ranks: attach.clone(),
            });
        }
        self.attach = attach;
        self.height = height;
        self.total = total;
        self.is_planned = true;
        if turn.settings.role == Role::FrontEnd {
            self.begin_heartbeats(turn);
        }
        self.report_if_ready(turn);
    }

    /// Tells the children that the tree above has changed.
    pub(crate) fn tell_ancestry(&mut self, turn: &mut Turn) {
        let ancestors = self.ancestry.of_children(turn);
        for link in self.children.links() {
            let ancestors = ancestors.clone();
            let repairs = self.ancestry.has_recovery;
            turn.send_control(link, &Control::Ancestry { ancestors, repairs });
        }
    }

    /// A stream as its request says, at this node.
    pub(crate) fn new_stream(
        &self,
        request: StreamRequest,
        turn: &Turn,
    ) -> Result<Stream, NodeError> {
        let mut stream = Stream::new(request, &turn.settings.registry, self.height)?;
        stream.chunk_bytes = turn.chunk_bytes;
        stream.mutation = turn.mutation;
        Ok(stream)
    }

    pub(crate) fn open_to_children(&mut self, stream: &mut Stream, turn: &mut Turn) {
        self.vacancies.await_orphans(stream);
        for (link, back_ends) in self.children.links_with_back_ends() {
            if let Some(request) = stream.request_for(link, &back_ends) {
                self.tell_open(link, request, turn);
            }
        }
    }
}
