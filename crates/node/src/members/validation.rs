//! What each link may say: every control message of a child, judged by who the child is and in
//! which state, before anything is done for it. `packet_validation` judges packets.
//!
//! A process that has the network's key can open a link and send any frame. So a process believes
//! of another only what that one can know: of the back-ends of its own subtree, of streams that
//! lead there, of its own waves and credit. Anything else is a [`Breach`]: the link is broken, its
//! process is named with what it said, and is not taken in again as an orphan.
//!
//! **No process that keeps the rules ever commits a breach**, whatever dies, moves or comes late
//! meanwhile. That is why a subtree is judged by its plan, which never changes, rather than by who
//! is connected now, and why what may be under way while a stream closes is let pass. The simulator
//! counts every breach of its runs as a fault. `docs/security.md` has the table.

use sapwood_link::Position;
use sapwood_packet::{Rank, RankSet, RankSetRef, StreamId};
use sapwood_wire::limits::{
    ANCESTORS_MAX, ATTACH_POINTS_MAX, CONTROL_BYTES_MAX, STATE_BYTES_MAX, TEXT_BYTES_MAX,
};
use sapwood_wire::{Control, control_name, is_control};

use crate::interface::breach::{Breach, breach};
use crate::interface::{DYNAMIC_RANKS_BEGIN, LinkId, Role};
use crate::members::membership::{Child, Membership};
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// Most ranges of back-ends that were not planned in one set: beyond those of the plan, a set in a
/// control message has no more.
pub(crate) const DYNAMIC_RANGES_MAX: usize = 1 << 16;

/// Most ranges of processes that one back-end has left.
const FORMER_RANGES_MAX: usize = 4096;

/// What one range takes in a control message at most, in bytes.
const RANGE_BYTES: usize = 10;

/// What a message takes at most besides its sets, texts, lists and values, in bytes.
const FIXED_BYTES: usize = 4096;

/// What an attach point takes, in bytes.
const ENTRY_BYTES: usize = 256;

/// What those of processes that were not planned take at most, in bytes.
const JOINED_BYTES: usize = 1 << 20;

/// Longest address of an attach point, in bytes.
const ADDRESS_BYTES_MAX: usize = 1024;

/// What the answer to a probe takes, or to a stream that is not open here, in bytes.
const ANSWER_BYTES: usize = 32;

/// Most bytes of answers that wait to be read by one that goes on asking.
const OWED_BYTES_MAX: usize = 1 << 20;

/// Most groups of processes that are told apart by whom they speak for.
const SUPERSEDERS_MAX: usize = 1024;

/// How far a child that was an orphan has come in being taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is no orphan, or has told all.
    #[default]
    Settled,
    /// It has been welcomed, and has to say what it brings.
    Welcomed,
    /// It tells how far its streams are.
    Resuming,
}

/// For whom a child may speak.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// The planned back-ends of its subtree, itself if it is one. Empty for a process that has
    /// joined: it brings only back-ends that were not planned.
    pub(crate) domain: RankSet,
    /// Whether it is a back-end: it speaks for itself alone.
    pub(crate) is_back_end: bool,
    pub(crate) stage: Stage,
    /// Whether it has committed a breach.
    pub(crate) is_distrusted: bool,
    /// How many notices it has sent.
    pub(crate) notices: u32,
}

impl Standing {
    /// Whether all of these back-ends may be below it, or be it. Any communication process may
    /// bring back-ends that were not planned.
    pub(crate) fn speaks_for(&self, back_ends: RankSetRef<'_>) -> bool {
        if self.is_back_end {
            return back_ends.is_within(self.domain.as_ref());
        }
        let (planned, rest) = split_at_dynamic(back_ends);
        rest.first().is_none_or(|range| is_dynamic(range[0]))
            && planned.is_within(self.domain.as_ref())
    }

    /// Most ranges that a set of back-ends of its subtree has.
    fn ranges_max(&self) -> usize {
        let planned = usize::try_from(self.domain.len()).unwrap_or(usize::MAX);
        planned.saturating_add(if self.is_back_end { 0 } else { DYNAMIC_RANGES_MAX })
    }

    /// What lists with an entry for each process of its subtree take at most, in bytes.
    fn lists_max(&self) -> usize {
        let planned = usize::try_from(self.domain.len()).unwrap_or(usize::MAX);
        let processes = planned.saturating_mul(ANCESTORS_MAX);
        processes.saturating_mul(ENTRY_BYTES).saturating_add(JOINED_BYTES)
    }

    /// How long a message of that name may be, in bytes.
    fn length_max(&self, name: &str) -> usize {
        let sets = |sets: usize| sets.saturating_mul(self.ranges_max() * RANGE_BYTES);
        let most = match name {
            "Rejoin" => sets(3).saturating_add(FORMER_RANGES_MAX * RANGE_BYTES + FIXED_BYTES),
            _ if self.is_back_end => FIXED_BYTES + TEXT_BYTES_MAX,
            // Attach points, orphans or streams: some for each process.
            "Reached" | "Repaired" => sets(1).saturating_add(self.lists_max()),
            "State" => sets(1).saturating_add(STATE_BYTES_MAX + FIXED_BYTES),
            "Lost" | "Broken" | "Fault" | "Superseded" | "Failed" | "Notice" => {
                sets(1).saturating_add(TEXT_BYTES_MAX + FIXED_BYTES)
            }
            _ => FIXED_BYTES,
        };
        most.min(CONTROL_BYTES_MAX)
    }
}

/// The ranges of planned back-ends, and those that reach beyond.
fn split_at_dynamic(set: RankSetRef<'_>) -> (RankSetRef<'_>, &[[Rank; 2]]) {
    let ranges = set.ranges();
    let (planned, rest) = ranges.split_at(ranges.partition_point(|r| r[1] < DYNAMIC_RANKS_BEGIN));
    (RankSetRef::from_ranges(planned).unwrap_or_default(), rest)
}

fn is_dynamic(rank: Rank) -> bool {
    rank >= DYNAMIC_RANKS_BEGIN
}

impl Membership {
    /// Whether one of two children may have been above the other, or above what is below it: only
    /// then can one tell what has become of the other.
    pub(crate) fn are_related(&self, one: Rank, other: Rank) -> bool {
        let (Some(first), Some(second)) = (self.child(one), self.child(other)) else { return true };
        let domains = (&first.standing.domain, &second.standing.domain);
        // Where guests come from is not in the plan.
        is_dynamic(one)
            || is_dynamic(other)
            || domains.0.is_empty()
            || domains.1.is_empty()
            || domains.0.as_ref().intersects(domains.1.as_ref())
    }

    /// What an orphan may speak for: no more than the child that it was below.
    pub(crate) fn standing_of_orphan(&self, rank: Rank, between: &[Rank]) -> Standing {
        let through = self.child(between.last().copied().unwrap_or(rank));
        let domain = match through {
            _ if rank < self.total() => RankSet::range(rank, rank),
            Some(child) => child.standing.domain.clone(),
            _ if is_dynamic(rank) => RankSet::new(),
            // A front-end that has taken another's place knows only the network.
            None => self.planned(),
        };
        let is_back_end = rank < self.total();
        Standing { domain, is_back_end, stage: Stage::Welcomed, ..Standing::default() }
    }

    /// Remembers who was named as superseded, and for whom those spoke who said so.
    pub(crate) fn note_superseded(&mut self, ranks: &RankSet, domain: &RankSet) {
        if ranks.is_empty() {
            return;
        }
        let list = &mut self.superseded_by;
        let at = list.iter().position(|(by, _)| by == domain).unwrap_or_else(|| {
            if list.len() == SUPERSEDERS_MAX {
                // No two processes are told apart any more.
                let all = core::mem::take(list).into_iter();
                let mut whole = RankSet::new();
                all.for_each(|(_, ranks)| whole.union_with(ranks.as_ref()));
                list.push((RankSet::new(), whole));
            }
            list.push((domain.clone(), RankSet::new()));
            list.len() - 1
        });
        list[at].1.union_with(ranks.as_ref());
    }

    /// Whether a child was named as superseded by some who could know.
    pub(crate) fn is_superseded(&self, rank: Rank) -> bool {
        let own = self.child(rank).map(|child| child.standing.domain.clone()).unwrap_or_default();
        let could_know = |by: &RankSet| {
            by.as_ref().last().is_none_or(is_dynamic)
                || own.is_empty()
                || by.as_ref().intersects(own.as_ref())
        };
        self.superseded_by.iter().any(|(by, ranks)| ranks.contains(rank) && could_know(by))
    }

    /// All back-ends that the network was planned with.
    fn planned(&self) -> RankSet {
        self.total().checked_sub(1).map_or_else(RankSet::new, |last| RankSet::range(0, last))
    }

    /// Whether a control message of a child is longer than its link can have to say, before it is
    /// read or memory is taken for it. `frame` is as much as has come.
    #[inline]
    pub(crate) fn validate_length(
        &self,
        peer: Peer,
        frame: &[u8],
        length: usize,
    ) -> Result<(), Breach> {
        match peer {
            Peer::Child(rank) if is_control(frame) => {
                self.validate_child_length(rank, frame, length)
            }
            _ => Ok(()),
        }
    }

    /// Whether a control message may come over this link now.
    pub(crate) fn validate(
        &mut self,
        link: LinkId,
        peer: Peer,
        said: &Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), Breach> {
        match peer {
            Peer::Child(rank) => self.validate_child(link, rank, said, streams, turn),
            Peer::Parent => self.validate_parent(said, streams, turn),
            Peer::Ancestor => self.validate_ancestor(said, turn),
            Peer::Stranger | Peer::Visitor | Peer::Leaving => Ok(()),
        }
    }

    /// Breaks a link whose peer has committed a breach, and names it.
    pub(crate) fn break_off(
        &mut self,
        link: LinkId,
        breach: &Breach,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let reason = alloc::format!("{breach}");
        self.distrusts = Some(reason.clone());
        match turn.links.link(link).map(|open| open.peer) {
            // It is asked last when this process looks for another.
            Some(Peer::Parent) => self.link_silent(link, &reason, streams, turn),
            Some(Peer::Child(rank)) => {
                if let Some(child) = self.child_mut(rank) {
                    child.standing.is_distrusted = true;
                }
                self.close_place_because(rank, &reason, streams, turn);
                turn.outputs.push_back(crate::Output::Hangup(link));
                self.link_down(link, &reason, streams, turn);
            }
            _ => {
                turn.outputs.push_back(crate::Output::Hangup(link));
                self.link_down(link, &reason, streams, turn);
            }
        }
    }

    fn validate_child(
        &mut self,
        link: LinkId,
        rank: Rank,
        said: &Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), Breach> {
        let Some(child) = self.child(rank) else { return Ok(()) };
        may_say(&child.standing, turn.settings.recovery.is_on, said)?;
        self.validate_sets(child, rank, said)?;
        self.validate_streams(link, rank, said, streams, turn)?;
        match said {
            Control::Rejoin { covers, .. } => self.learn_kind(rank, covers.as_set()),
            Control::Resumed => self.set_stage(rank, Stage::Settled),
            Control::Probe { .. } | Control::Resume { .. } => turn.validate_asking(link)?,
            _ => {}
        }
        Ok(())
    }
}

impl Turn {
    /// A child goes on asking, and does not read the answers.
    fn validate_asking(&mut self, link: LinkId) -> Result<(), Breach> {
        let Some(open) = self.links.link_mut(link) else { return Ok(()) };
        open.owed_bytes += ANSWER_BYTES;
        match open.owed_bytes > OWED_BYTES_MAX {
            true => breach!("questions without end, and does not read the answers"),
            false => Ok(()),
        }
    }
}

impl Membership {
    /// An orphan that was not planned is a back-end if it speaks for itself alone.
    fn learn_kind(&mut self, rank: Rank, covers: RankSetRef<'_>) {
        self.set_stage(rank, Stage::Resuming);
        let Some(child) = self.child_mut(rank) else { return };
        if covers.ranges() == [[rank, rank]] {
            child.standing.is_back_end = true;
            child.standing.domain = RankSet::range(rank, rank);
        }
    }

    /// The sets and ranks of a message: those of others are not its sender's to speak of.
    fn validate_sets(&self, child: &Child, rank: Rank, said: &Control) -> Result<(), Breach> {
        let (name, standing) = (said.name(), &child.standing);
        let of = |back_ends: RankSetRef<'_>| match standing.speaks_for(back_ends) {
            true => Ok(()),
            false => breach!("{name} about back-ends that are not below it"),
        };
        match said {
            Control::Reached { back_ends, attach_points } => {
                of(back_ends.as_set())?;
                let known = child.connected.as_ref().ranges().len();
                let news = back_ends.as_set().ranges().len();
                if known + news > 2 * standing.ranges_max()
                    || attach_points.len() > ATTACH_POINTS_MAX
                {
                    return breach!("{name} with more back-ends than a subtree has");
                }
                for (_, address, ranks) in attach_points {
                    of(ranks.as_set())?;
                    if address.len() > ADDRESS_BYTES_MAX {
                        return breach!("{name} with an address of {} bytes", address.len());
                    }
                }
                Ok(())
            }
            Control::Failed { rank: named, .. } | Control::Notice { rank: named, .. } => {
                self.validate_name(rank, *named, name)
            }
            // An orphan tells of all whom it has lost, also of those who have come back since.
            Control::Lost { back_ends, .. } if back_ends.as_set().is_empty() => Ok(()),
            Control::Lost { rank: named, back_ends, .. }
            | Control::Broken { rank: named, back_ends, .. }
            | Control::Fault { rank: named, back_ends, .. } => {
                of(back_ends.as_set())?;
                self.validate_name(rank, *named, name)
            }
            Control::Repaired { rank: named, adopter, orphans, back_ends, .. } => {
                of(back_ends.as_set())?;
                let named = [*named, *adopter];
                named
                    .iter()
                    .chain(orphans)
                    .try_for_each(|&named| self.validate_name(rank, named, name))
            }
            Control::Rejoin { back_ends, covers, former, .. } => {
                of(back_ends.as_set())?;
                of(covers.as_set())?;
                if !back_ends.as_set().is_within(covers.as_set()) {
                    return breach!("{name} with back-ends that it does not cover");
                }
                self.validate_names(rank, former.as_set(), name)
            }
            Control::Superseded { ranks } => self.validate_names(rank, ranks.as_set(), name),
            Control::State { absorbed, .. } => self.validate_names(rank, absorbed.as_set(), name),
            _ => Ok(()),
        }
    }

    /// The streams of a message, and what it says of its place in them.
    fn validate_streams(
        &mut self,
        link: LinkId,
        rank: Rank,
        said: &Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), Breach> {
        let name = said.name();
        let (Control::Credit { stream, .. }
        | Control::Acknowledge { stream, .. }
        | Control::Fault { stream, .. }
        | Control::State { stream, .. }
        | Control::Resume { stream, .. }) = *said
        else {
            return Ok(());
        };
        let Some(at) = self.validate_stream(rank, stream, name, streams)? else { return Ok(()) };
        let is_root = turn.settings.role == Role::FrontEnd;
        let stream = streams.at(at);
        let (id, window) = (stream.id, stream.request.window_bytes);
        let known = if is_root { stream.next_down } else { stream.down_next.wave };
        let slot = stream.slot_of(link).map(|slot| &stream.slots[slot]);
        match (said, slot) {
            (Control::Credit { bytes, .. }, Some(slot)) if slot.down.exceeds(*bytes, window) => {
                breach!("Credit for {bytes} bytes on stream {id}, more than it was sent")
            }
            (&Control::Acknowledge { wave, offset, singles, .. }, Some(slot))
                if singles != 0 || slot.down_sent < (Position { wave, offset }) =>
            {
                breach!("Acknowledge of packet {wave} on stream {id}, which it was not sent")
            }
            (&Control::Resume { down: (wave, _), .. }, _) if wave > known.saturating_add(1) => {
                breach!("Resume behind packet {wave} of stream {id}, which was not sent")
            }
            (&Control::Resume { up: (wave, _), .. }, None) => {
                stream.validate_wave(wave, stream.ended)
            }
            (&Control::State { wave, .. }, Some(slot)) => match slot.replicas.is_full() {
                true => breach!("more copies of states on stream {id} than waves can be under way"),
                false => stream.validate_wave(wave, slot.next.wave),
            },
            _ => Ok(()),
        }
    }

    /// A stream that a child names, if it is open. A child is in those with members below it; one
    /// that is closed here may still be open there.
    pub(crate) fn validate_stream(
        &mut self,
        child: Rank,
        id: StreamId,
        name: &str,
        streams: &mut Streams,
    ) -> Result<Option<usize>, Breach> {
        let Some(at) = streams.find(id) else {
            let is_orphan = self.child(child).is_none_or(|child| child.is_orphan);
            // Another front-end before this one has had other streams.
            return match is_orphan || id <= streams.latest() {
                true => Ok(None),
                false => breach!("{name} on stream {id}, which has never been opened"),
            };
        };
        let Some(child) = self.child(child) else { return Ok(None) };
        let members = &streams.at(at).members;
        // A stream that cannot be made here has none.
        match members.is_empty() || child.standing.leads_to(members.as_ref()) {
            true => Ok(Some(at)),
            false => breach!("{name} on stream {id}, which it has no member of"),
        }
    }
}

impl Standing {
    /// Whether some of these back-ends may be below it.
    fn leads_to(&self, members: RankSetRef<'_>) -> bool {
        let dynamic_ranks = !self.is_back_end && members.last().is_some_and(is_dynamic);
        dynamic_ranks || members.intersects(self.domain.as_ref())
    }
}

/// The table of what a child says: by its kind, and by how far it has been taken in.
fn may_say(standing: &Standing, repairs: bool, said: &Control) -> Result<(), Breach> {
    use Control as C;
    let name = said.name();
    let is_resuming = standing.stage == Stage::Resuming;
    match said {
        C::Hello { .. } => return breach!("Hello a second time"),
        C::Welcome { .. }
        | C::Refused { .. }
        | C::Open(_)
        | C::Close { .. }
        | C::Shutdown
        | C::Dissolve
        | C::Ancestry { .. }
        | C::File { .. }
        | C::Referred { .. } => {
            return breach!("{name}, which only goes down");
        }
        C::Question { .. } | C::Reply { .. } => {
            return breach!("{name}, which is for visitors");
        }
        C::Acknowledge { .. }
        | C::Rejoin { .. }
        | C::Resumed
        | C::Broken { .. }
        | C::Repaired { .. }
        | C::State { .. }
        | C::Superseded { .. }
            if !repairs =>
        {
            return breach!("{name} in a network that does not repair itself");
        }
        C::Rejoin { .. } if standing.stage == Stage::Welcomed => return Ok(()),
        _ if standing.stage == Stage::Welcomed => return breach!("{name} before Rejoin"),
        C::Rejoin { .. } => return breach!("Rejoin, and is no orphan"),
        C::Resumed if !is_resuming => return breach!("Resumed, and is no orphan"),
        // A communication process also says it when it has members again.
        C::Resume { .. } if !is_resuming && standing.is_back_end => {
            return breach!("Resume, and is no orphan");
        }
        C::Reached { .. }
        | C::Failed { .. }
        | C::Notice { .. }
        | C::Lost { .. }
        | C::Broken { .. }
        | C::Repaired { .. }
        | C::State { .. }
        | C::Superseded { .. }
            if standing.is_back_end =>
        {
            return breach!("{name}, which only a communication process says");
        }
        C::Reached { .. }
        | C::Failed { .. }
        | C::Notice { .. }
        | C::Lost { .. }
        | C::Fault { .. }
        | C::Credit { .. }
        | C::Acknowledge { .. }
        | C::Leaving
        | C::Probe { .. }
        | C::Echo { .. }
        | C::Resume { .. }
        | C::Resumed
        | C::Broken { .. }
        | C::Repaired { .. }
        | C::State { .. }
        | C::Superseded { .. } => {}
    }
    Ok(())
}

impl Membership {
    /// Whether a rank is that of a child which another one cannot know anything of.
    pub(crate) fn is_elsewhere(&self, child: Rank, named: Rank) -> bool {
        let is_there = self.link_of(named).is_some();
        named != child && is_there && !self.are_related(child, named)
    }

    pub(crate) fn set_stage(&mut self, rank: Rank, stage: Stage) {
        if let Some(child) = self.child_mut(rank) {
            child.standing.stage = stage;
        }
    }

    pub(crate) fn validate_child_length(
        &self,
        rank: Rank,
        frame: &[u8],
        length: usize,
    ) -> Result<(), Breach> {
        let Some(child) = self.child(rank) else { return Ok(()) };
        let name = control_name(frame);
        let most = child.standing.length_max(name.unwrap_or("Reached"));
        if length <= most {
            return Ok(());
        }
        let name = name.unwrap_or("a control message");
        breach!("{name} of {length} bytes, where the size of its subtree allows {most}")
    }

    /// A process that a child names: its own, or one below it.
    pub(crate) fn validate_name(&self, child: Rank, named: Rank, name: &str) -> Result<(), Breach> {
        let is_planned_back_end = named < self.total();
        let is_below = |standing: &Standing| standing.domain.contains(named);
        let speaks = self.child(child).is_none_or(|child| is_below(&child.standing));
        if named != child && (is_planned_back_end && !speaks || self.is_elsewhere(child, named)) {
            return breach!("{name} about rank {named}, which is not below it");
        }
        Ok(())
    }

    /// Communication processes that a child names as left or replaced.
    pub(crate) fn validate_names(
        &self,
        child: Rank,
        named: RankSetRef<'_>,
        name: &str,
    ) -> Result<(), Breach> {
        if named.ranges().len() > DYNAMIC_RANGES_MAX {
            return breach!("{name} about more processes than a network has");
        }
        let others = self.linked_children().map(|(rank, _, _)| rank);
        let mut others = others.filter(|&rank| named.contains(rank));
        match others.find(|&rank| self.is_elsewhere(child, rank)) {
            Some(rank) => breach!("{name} about rank {rank}, which has nothing to do with it"),
            None => Ok(()),
        }
    }
}
