//! Who is in the tree below this node: children that are awaited, there, or gone.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Claim, Control, Ranges, WIRE_VERSION};

use crate::interface::{AttachPoint, ChildPlan, Event, Instant, LinkId, Output, Role};
use crate::members::dynamic::DynamicRanks;
use crate::members::files::Files;
use crate::members::search::Search;
use crate::members::vacancy::{Applicant, Vacancy};
use crate::members::validation::Standing;
use crate::members::visitor::Visitors;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Awaited,
    Connected,
    /// Its subtree has started as far as it will.
    Reported,
    /// Never came, or is gone.
    Gone,
}

/// A process that this node has, had, or is to have as a child.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) link: Option<LinkId>,
    pub(crate) expected: RankSet,
    pub(crate) connected: RankSet,
    /// Of an orphan: the back-ends that it speaks for.
    pub(crate) covers: RankSet,
    pub(crate) plan: Vec<u8>,
    pub(crate) state: State,
    pub(crate) is_leaving: bool,
    /// Its process id on its host, by which two processes under one rank are told apart.
    pub(crate) pid: u32,
    /// Whether it is known to have ended, rather than that its link has closed.
    pub(crate) has_exited: bool,
    /// Whether it has been taken in and has not told yet how far its streams are.
    pub(crate) is_resuming: bool,
    /// Whether it had another parent, or another link to this one, before.
    pub(crate) is_orphan: bool,
    /// Whether it answers probes at any time.
    pub(crate) keeps_time: bool,
    /// Whether it has been sent the files that there are, and is sent those that come.
    pub(crate) has_files: bool,
    /// When the probe was sent that it has not answered.
    pub(crate) probed: Option<Instant>,
    /// Since when a process has been waiting to know whether it is there.
    pub(crate) suspected: Option<Instant>,
    /// What it may say.
    pub(crate) standing: Standing,
}

impl Child {
    pub(crate) fn awaited(expected: RankSet, plan: Vec<u8>) -> Self {
        let standing = Standing { domain: expected.clone(), ..Standing::default() };
        Self {
            link: None,
            standing,
            expected,
            connected: RankSet::new(),
            covers: RankSet::new(),
            plan,
            state: State::Awaited,
            is_leaving: false,
            pid: 0,
            has_exited: false,
            is_resuming: false,
            is_orphan: false,
            keeps_time: false,
            has_files: false,
            probed: None,
            suspected: None,
        }
    }

    /// Whether it has ever connected.
    fn has_come(&self) -> bool {
        self.link.is_some() || self.pid != 0
    }
}

/// Who is below a node, and in which state.
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
    pub(crate) children: BTreeMap<Rank, Child>,
    /// Ranks kept for back-ends that attach here.
    pub(crate) attach: RankSet,
    pub(crate) attach_points: Vec<AttachPoint>,
    /// Levels to the farthest back-end.
    pub(crate) height: u32,
    /// How many back-ends the network has in all.
    pub(crate) total: u32,
    has_reported: bool,
    pub(crate) is_planned: bool,
    /// The processes above, nearest first, and where they take connections.
    pub(crate) ancestors: Vec<(Rank, String)>,
    /// The parents that this process has had and left, and those above them that it passed over.
    pub(crate) former: RankSet,
    /// Whether the parent answers probes at any time.
    pub(crate) parent_keeps_time: bool,
    /// Whether those whose parent is gone look for a new one, where the terms allow it.
    pub(crate) repairs: bool,
    /// The search for a new parent, while there is none.
    pub(crate) search: Option<Search>,
    /// Places of children that are gone, held open for those below them.
    pub(crate) vacancies: Vec<Vacancy>,
    /// The number of the next vacancy.
    pub(crate) next_vacancy: u64,
    /// Orphans whose hello waits.
    pub(crate) applicants: Vec<Applicant>,
    /// The number that the parent was last asked to echo behind them.
    pub(crate) loss_barrier: u64,
    /// Processes whose orphans have been taken in: what they have kept must not be used any more,
    /// even when those orphans have left since.
    pub(crate) superseded: RankSet,
    /// Whether the parent has asked since the last beat.
    pub(crate) is_asked: bool,
    /// When a member that does not answer counts as gone.
    pub(crate) judgement_due: Option<Instant>,
    /// By how much this process's own wake-ups have come late: the most, which fades.
    pub(crate) lateness: Duration,
    /// The ranks that this process may give to members that were not planned.
    pub(crate) dynamic_ranks: Option<DynamicRanks>,
    /// Whether this process is such a member, and no back-end.
    pub(crate) is_joining: bool,
    /// Whether this process has ended while its network goes on.
    pub(crate) has_stepped_down: bool,
    /// Whether the parent has said its welcome over the link that there is.
    pub(crate) is_welcomed: bool,
    /// Who was named as superseded, and for whom those spoke who said so.
    pub(crate) superseded_by: Vec<(RankSet, RankSet)>,
    /// Files with filters that have come here.
    pub(crate) files: Files,
    /// Who asks for the status of the network without being part of it.
    pub(crate) visitors: Visitors,
    /// See [`Node::distrusts`](crate::Node::distrusts).
    pub(crate) distrusts: Option<String>,
}

impl Membership {
    pub(crate) fn new() -> Self {
        Self {
            children: BTreeMap::new(),
            attach: RankSet::new(),
            attach_points: Vec::new(),
            height: 1,
            total: 0,
            has_reported: false,
            is_planned: false,
            ancestors: Vec::new(),
            former: RankSet::new(),
            parent_keeps_time: false,
            repairs: true,
            search: None,
            vacancies: Vec::new(),
            next_vacancy: 0,
            applicants: Vec::new(),
            loss_barrier: 0,
            superseded: RankSet::new(),
            is_asked: false,
            judgement_due: None,
            lateness: Duration::ZERO,
            dynamic_ranks: None,
            is_joining: false,
            has_stepped_down: false,
            is_welcomed: false,
            superseded_by: Vec::new(),
            files: Files::default(),
            visitors: Visitors::default(),
            distrusts: None,
        }
    }

    /// How many back-ends the network was planned with.
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    /// The back-ends that are connected, or on their way to another parent.
    pub(crate) fn connected(&self) -> RankSet {
        let mut all = RankSet::new();
        for child in self.children.values() {
            all.union_with(child.connected.as_ref());
        }
        all.union_with(self.awaited().as_ref());
        all
    }

    /// No place is held open for these any more.
    pub(crate) fn await_no_longer(&mut self, back_ends: &RankSet) {
        for vacancy in &mut self.vacancies {
            vacancy.awaited.subtract(back_ends.as_ref());
        }
    }

    /// The back-ends that are on their way to another parent. Of those that a slow process may
    /// still start, no process has been told.
    pub(crate) fn awaited(&self) -> RankSet {
        let mut all = RankSet::new();
        for vacancy in self.vacancies.iter().filter(|vacancy| !vacancy.is_starting) {
            all.union_with(vacancy.awaited.as_ref());
        }
        all
    }

    /// The back-ends that are connected through other children than this one.
    pub(crate) fn connected_but(&self, rank: Rank) -> RankSet {
        let mut all = RankSet::new();
        for (_, child) in self.children.iter().filter(|(other, _)| **other != rank) {
            all.union_with(child.connected.as_ref());
        }
        all
    }

    /// Whether a child is there and has said what it has.
    pub(crate) fn has_rejoined(&self, rank: Rank) -> bool {
        let is_there = |child: &Child| child.link.is_some() && child.state == State::Reported;
        self.children.get(&rank).is_some_and(is_there)
    }

    /// The same of some of these.
    pub(crate) fn has_rejoined_any(&self, ranks: &RankSet) -> bool {
        self.children.keys().any(|&rank| ranks.contains(rank) && self.has_rejoined(rank))
    }

    /// The child at the other end of a link.
    pub(crate) fn rank_of(&self, link: LinkId) -> Option<Rank> {
        let mut children = self.children.iter();
        children.find(|(_, child)| child.link == Some(link)).map(|(&rank, _)| rank)
    }

    /// Whether a child that was to be started has not come yet.
    pub(crate) fn is_awaited(&self, rank: Rank) -> bool {
        self.children.get(&rank).is_some_and(|child| child.state == State::Awaited)
    }

    /// Whether a child that was to be started has ever come; so has a process that is no child.
    pub(crate) fn has_come(&self, rank: Rank) -> bool {
        self.children.get(&rank).is_none_or(Child::has_come)
    }

    /// The link of a child that is there.
    pub(crate) fn link_of(&self, rank: Rank) -> Option<LinkId> {
        self.children.get(&rank)?.link
    }

    pub(crate) fn child(&self, rank: Rank) -> Option<&Child> {
        self.children.get(&rank)
    }

    pub(crate) fn child_mut(&mut self, rank: Rank) -> Option<&mut Child> {
        self.children.get_mut(&rank)
    }

    pub(crate) fn put_child(&mut self, rank: Rank, child: Child) {
        self.children.insert(rank, child);
    }

    /// The back-ends of orphans that have not told yet how far their streams are.
    pub(crate) fn resuming(&self) -> RankSet {
        let mut all = RankSet::new();
        for child in self.children.values().filter(|child| child.is_resuming) {
            all.union_with(child.connected.as_ref());
        }
        all
    }

    /// Whether the place of a back-end is held open.
    fn is_held(&self, rank: Rank) -> bool {
        self.vacancies.iter().any(|vacancy| vacancy.awaited.contains(rank))
    }

    /// The other children that say that a back-end is below them.
    pub(crate) fn holders_of(&self, back_end: Rank) -> Vec<Rank> {
        let holds = |(&rank, child): (&Rank, &Child)| {
            (rank != back_end && child.link.is_some() && child.connected.contains(back_end))
                .then_some(rank)
        };
        self.children.iter().filter_map(holds).collect()
    }

    /// A child was not taken in after all.
    pub(crate) fn forget_child(&mut self, rank: Rank) {
        if let Some(child) = self.children.get_mut(&rank) {
            child.link = None;
            child.state = State::Gone;
        }
    }

    /// All children, by rank.
    pub(crate) fn children_mut(&mut self) -> impl Iterator<Item = (Rank, &mut Child)> {
        self.children.iter_mut().map(|(&rank, child)| (rank, child))
    }

    /// The back-ends below, by what has become of them.
    pub(crate) fn census(&self, lost: RankSet) -> Census {
        let mut census = Census { expected: self.attach.clone(), ..Census::default() };
        for child in self.children.values() {
            census.expected.union_with(child.expected.as_ref());
            census.connected.union_with(child.connected.as_ref());
        }
        for vacancy in &self.vacancies {
            census.awaited.union_with(vacancy.awaited.as_ref());
        }
        census.lost = lost;
        census
    }

    /// The children that are there, with the back-ends that they lead to.
    pub(crate) fn linked_children(&self) -> impl Iterator<Item = (Rank, LinkId, &RankSet)> {
        let there = |(&rank, child): (&Rank, &'_ Child)| child.link.map(|link| (rank, link));
        self.children.iter().filter_map(move |entry| {
            there(entry).map(|(rank, link)| (rank, link, &entry.1.connected))
        })
    }

    /// The links of all children that are there.
    pub(crate) fn child_links(&self) -> Vec<LinkId> {
        self.children.values().filter_map(|child| child.link).collect()
    }

    pub(crate) fn parent_up(&mut self, link: LinkId, turn: &mut Turn) {
        let now = turn.now;
        turn.links.open(link, Peer::Parent, now);
        turn.counted.begin(now);
        turn.parent = Some(link);
        self.is_welcomed = false;
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

    /// A stranger says who it is: it becomes a child, or is told why not.
    pub(crate) fn hello(
        &mut self,
        link: LinkId,
        version: u16,
        claim: Claim,
        pid: u32,
        keeps_time: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        turn.counted.begin(turn.now);
        if claim == Claim::Visitor {
            let admitted = self.admit_visitor(link, version, turn);
            return admitted.unwrap_or_else(|reason| turn.refuse(link, reason));
        }
        let admitted = match (self.admit(version, &claim, streams, turn), claim) {
            (Ok(rank), Claim::Orphan { between, .. }) => self
                .orphan_hello(link, rank, between, pid, keeps_time, streams, turn)
                .map(|()| None),
            (admitted, _) => admitted.map(Some),
        };
        match admitted {
            Ok(None) => {}
            Ok(Some(rank)) => {
                if let Some(child) = self.children.get_mut(&rank) {
                    child.keeps_time = keeps_time || !child.plan.is_empty();
                    child.pid = pid;
                }
                self.welcome(link, rank, streams, turn);
            }
            Err(reason) => turn.refuse(link, reason),
        }
    }

    fn admit(
        &mut self,
        version: u16,
        claim: &Claim,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<Rank, String> {
        if version != WIRE_VERSION {
            return Err(alloc::format!(
                "wire version {version} is not {WIRE_VERSION}: install the same release on both sides"
            ));
        }
        if turn.has_ended {
            return Err("the network is ending".to_string());
        }
        match *claim {
            Claim::Started { rank } => {
                let child = self.children.get(&rank);
                match child.map(Child::has_come) {
                    // One that was given up was only slow.
                    Some(false) => Ok(rank),
                    Some(true) => Err(alloc::format!("rank {rank} has connected already")),
                    None => Err(alloc::format!("rank {rank} is no child of this process")),
                }
            }
            Claim::Attached { rank } => self.admit_attached(rank, streams, turn),
            Claim::Orphan { rank, .. } => Ok(rank),
            Claim::Visitor => Err("this process answers no visitors".to_string()),
            Claim::Joining => self.admit_joining(turn),
        }
    }

    fn admit_attached(
        &mut self,
        rank: Option<Rank>,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<Rank, String> {
        let children = &self.children;
        let is_free =
            |rank: &Rank| children.get(rank).is_none_or(|child| child.state == State::Gone);
        let rank = match rank {
            Some(rank) if !self.attach.contains(rank) => {
                return Err(alloc::format!(
                    "rank {rank} may not attach here; kept ranks are '{}'",
                    self.attach
                ));
            }
            Some(rank) if !is_free(&rank) => {
                return Err(alloc::format!("rank {rank} has attached already"));
            }
            Some(rank) => rank,
            None => {
                // A process whose rank is held open may come back.
                let is_held = |rank: &Rank| self.is_held(*rank);
                let kept = self.attach.iter().find(|rank| is_free(rank) && !is_held(rank));
                kept.map_or_else(|| self.admit_dynamic(), Ok)?
            }
        };
        // A new process under a rank whose place was held open for the old one.
        self.close_place_of(rank, streams, turn);
        let child = Child::awaited(RankSet::range(rank, rank), Vec::new());
        self.children.insert(rank, child);
        Ok(rank)
    }

    fn welcome(&mut self, link: LinkId, rank: Rank, streams: &mut Streams, turn: &mut Turn) {
        let Some(child) = self.children.get_mut(&rank) else { return };
        let plan = core::mem::take(&mut child.plan);
        let is_back_end = plan.is_empty();
        let expected = child.expected.clone();
        child.standing.is_back_end = is_back_end;
        self.take_as_child(link, rank, plan, turn);
        self.open_streams_to(link, &expected, streams, turn);
        if is_back_end {
            self.reached(rank, expected, Vec::new(), streams, turn);
        }
    }

    /// The process at the other end of a link is a child from now on, and is told its place. An
    /// orphan has a plan already, and says itself what it has.
    pub(crate) fn take_as_child(
        &mut self,
        link: LinkId,
        rank: Rank,
        plan: Vec<u8>,
        turn: &mut Turn,
    ) {
        if let Some(child) = self.children.get_mut(&rank) {
            child.link = Some(link);
            child.state = State::Connected;
        }
        if let Some(open) = turn.links.link_mut(link) {
            open.peer = Peer::Child(rank);
        }
        let welcome = Control::Welcome {
            parent: turn.rank(),
            rank,
            back_ends: self.total,
            plan,
            ancestors: self.ancestry_of_children(turn),
            terms: turn.settings.recovery.to_terms(),
            keeps_time: turn.settings.role == Role::Communication,
        };
        turn.send_control(link, &welcome);
        if !self.repairs {
            let ancestors = self.ancestry_of_children(turn);
            turn.send_control(link, &Control::Ancestry { ancestors, repairs: false });
        }
        let carries = |child: &Child| child.keeps_time && !child.is_orphan;
        if self.child(rank).is_some_and(carries) {
            self.send_files(link, &[], turn);
        }
    }

    /// The back-ends below an orphan are there again. Those who were thought lost are news.
    pub(crate) fn returned(
        &mut self,
        rank: Rank,
        back_ends: RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        // Another of the places that were held for them may have been given up.
        let known = self.awaited().difference(turn.losses.ranks().as_ref());
        let Some(child) = self.children.get_mut(&rank) else { return };
        child.connected = back_ends.clone();
        child.state = State::Reported;
        let news = back_ends.difference(known.as_ref());
        if !news.is_empty() || !self.has_reported {
            self.reached(rank, news, Vec::new(), streams, turn);
        }
    }

    /// The children that are there, with the back-ends that they lead to.
    pub(crate) fn children_with_links(&self) -> Vec<(LinkId, RankSet)> {
        let there = |child: &Child| child.link.map(|link| (link, child.connected.clone()));
        self.children.values().filter_map(there).collect()
    }

    /// Tells a child that has just come of the streams that it is a member of.
    fn open_streams_to(
        &mut self,
        link: LinkId,
        back_ends: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        for at in 0..streams.len() {
            if let Some(request) = streams.at(at).request_for(link, back_ends) {
                self.tell_open(link, request, turn);
                streams.at(at).take_back_end(turn);
            }
        }
    }

    /// A child's subtree has started, or more back-ends have come to it.
    pub(crate) fn reached(
        &mut self,
        rank: Rank,
        back_ends: RankSet,
        points: Vec<AttachPoint>,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(child) = self.children.get_mut(&rank) else { return };
        child.connected.union_with(back_ends.as_ref());
        child.state = State::Reported;
        self.close_place_of_slow(rank, &back_ends, streams, turn);
        let Some(child) = self.children.get_mut(&rank) else { return };
        if !child.is_resuming {
            self.admit_members(rank, &back_ends, streams, turn);
        }
        turn.losses.forget(&back_ends);
        if !self.has_reported {
            self.attach_points.extend(points);
            return self.report_if_ready(turn);
        }
        if turn.settings.role == Role::FrontEnd {
            if !back_ends.is_empty() {
                turn.outputs.push_back(Output::Event(Event::Joined { back_ends }));
            }
            if !points.is_empty() {
                turn.outputs.push_back(Output::Event(Event::Offered { attach_points: points }));
            }
        } else if let Some(parent) = turn.parent {
            let attach_points = crate::members::dynamic::to_wire(points);
            let back_ends = Ranges::from(&back_ends);
            turn.send_control(parent, &Control::Reached { back_ends, attach_points });
        }
    }

    /// Back-ends have come to a child: it takes part in the streams that they are members of.
    fn admit_members(
        &mut self,
        rank: Rank,
        back_ends: &RankSet,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(link) = self.link_of(rank) else { return };
        for at in 0..streams.len() {
            let stream = streams.at(at);
            let members = stream.members_in(back_ends);
            if members.is_empty() {
                continue;
            }
            if let Some(slot) = stream.slot_of(link) {
                stream.slots[slot].members.union_with(members.as_ref());
                stream.gain(&members);
            } else if let Some(request) = stream.request_for(link, back_ends) {
                self.tell_open(link, request, turn);
                streams.at(at).take_back_end(turn);
            }
        }
    }

    pub(crate) fn report_if_ready(&mut self, turn: &mut Turn) {
        let is_acknowledged = |child: &Child| matches!(child.state, State::Reported | State::Gone);
        let is_ready = self.is_planned
            && !self.has_reported
            && !self.vacancies.iter().any(|position| position.is_starting)
            && self.children.values().all(is_acknowledged);
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
        turn.links.expect(children.len() + usize::from(turn.settings.role != Role::FrontEnd));
        let awaited = |child: ChildPlan| (child.rank, Child::awaited(child.back_ends, child.plan));
        let mut planned: BTreeMap<Rank, Child> = children.into_iter().map(awaited).collect();
        self.children.append(&mut planned);
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
}
