//! What each link may say: every control message of a child, judged by the rank of the child and in
//! which state, before anything is done for it. `packet_validation` judges packets.
//!
//! A process that has the network's key can open a link and send any frame. So a process believes
//! of another only what that one can know: of the back-ends of its own subtree, of streams that
//! lead there, of its own waves and credit. Anything else is a [`Breach`]: the link is broken, its
//! process is named with what it said, and is not taken in again as an orphan.
//!
//! **No process that keeps the rules ever commits a breach**, whatever dies, moves or comes late
//! meanwhile. That is why a subtree is judged by its plan, which never changes, rather than by the
//! members that are connected now, and why what may be under way while a stream closes is let pass.
//! The simulator counts every breach of its runs as a fault. `docs/security.md` has the table.

use sapwood_link::Position;
use sapwood_packet::{Rank, RankSet, RankSetRef, StreamId};
use sapwood_wire::limits::ATTACH_POINTS_MAX;
use sapwood_wire::{Control, control_name, is_control};

use crate::interface::breach::{Breach, breach};
use crate::interface::{LinkId, Role};
use crate::members::authority::{Authority, DYNAMIC_RANGES_MAX, Stage, is_dynamic};
use crate::members::children::Child;
use crate::members::children::Children;
use crate::members::membership::Membership;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// Longest address of an attach point, in bytes.
const ADDRESS_BYTES_MAX: usize = 1024;

/// What the answer to a probe takes, or to a stream that is not open here, in bytes.
const ANSWER_BYTES: usize = 32;

/// Most bytes of answers that wait to be read by one that goes on asking.
const OWED_BYTES_MAX: usize = 1 << 20;

impl Membership {
    /// What an orphan may speak for: no more than the child that it was below.
    pub(crate) fn authority_of_orphan(&self, rank: Rank, between: &[Rank]) -> Authority {
        let through = self.children.get(between.last().copied().unwrap_or(rank));
        let domain = match through {
            _ if rank < self.total() => RankSet::range(rank, rank),
            Some(child) => child.authority.domain.clone(),
            _ if is_dynamic(rank) => RankSet::new(),
            // A front-end that has taken another's place knows only the network.
            None => self.planned(),
        };
        let is_back_end = rank < self.total();
        Authority { domain, is_back_end, stage: Stage::Welcomed, ..Authority::default() }
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
                self.children.validate_child_length(rank, frame, length)
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
            Peer::Ancestor => self.ancestry.validate_ancestor(said, turn),
            Peer::Stranger | Peer::Visitor | Peer::Leaving => Ok(()),
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
        let Some(child) = self.children.get(rank) else { return Ok(()) };
        may_say(&child.authority, turn.settings.recovery.is_on, said)?;
        self.validate_sets(child, rank, said)?;
        self.validate_streams(link, rank, said, streams, turn)?;
        match said {
            Control::Rejoin { covers, .. } => self.children.learn_kind(rank, covers.as_set()),
            Control::Resumed => self.children.set_stage(rank, Stage::Settled),
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
    /// The sets and ranks of a message: those of others are not its sender's to speak of.
    fn validate_sets(&self, child: &Child, rank: Rank, said: &Control) -> Result<(), Breach> {
        let (name, authority) = (said.name(), &child.authority);
        let of = |back_ends: RankSetRef<'_>| match authority.speaks_for(back_ends) {
            true => Ok(()),
            false => breach!("{name} about back-ends that are not below it"),
        };
        match said {
            Control::Reached { back_ends, attach_points } => {
                of(back_ends.as_set())?;
                let known = child.connected.as_ref().ranges().len();
                let news = back_ends.as_set().ranges().len();
                if known + news > 2 * authority.ranges_max()
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
            // An orphan tells of all that it has lost, also of those that have come back since.
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
                self.children.validate_names(rank, former.as_set(), name)
            }
            Control::Superseded { ranks } => {
                self.children.validate_names(rank, ranks.as_set(), name)
            }
            Control::State { absorbed, .. } => {
                self.children.validate_names(rank, absorbed.as_set(), name)
            }
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
        let Some(at) = self.children.validate_stream(rank, stream, name, streams)? else {
            return Ok(());
        };
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
}

impl Children {
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
            let is_orphan = self.get(child).is_none_or(|child| child.is_orphan);
            // Another front-end before this one has had other streams.
            return match is_orphan || id <= streams.latest() {
                true => Ok(None),
                false => breach!("{name} on stream {id}, which has never been opened"),
            };
        };
        let Some(child) = self.get(child) else { return Ok(None) };
        let members = &streams.at(at).members;
        // A stream that cannot be made here has none.
        match members.is_empty() || child.authority.leads_to(members.as_ref()) {
            true => Ok(Some(at)),
            false => breach!("{name} on stream {id}, which it has no member of"),
        }
    }

    /// An orphan that was not planned is a back-end if it speaks for itself alone.
    fn learn_kind(&mut self, rank: Rank, covers: RankSetRef<'_>) {
        self.set_stage(rank, Stage::Resuming);
        let Some(child) = self.get_mut(rank) else { return };
        if covers.ranges() == [[rank, rank]] {
            child.authority.is_back_end = true;
            child.authority.domain = RankSet::range(rank, rank);
        }
    }
}

impl Authority {
    /// Whether some of these back-ends may be below it.
    fn leads_to(&self, members: RankSetRef<'_>) -> bool {
        let dynamic_ranks = !self.is_back_end && members.last().is_some_and(is_dynamic);
        dynamic_ranks || members.intersects(self.domain.as_ref())
    }
}

/// The table of what a child says: by its kind, and by how far it has been taken in.
fn may_say(authority: &Authority, repairs: bool, said: &Control) -> Result<(), Breach> {
    use Control as C;
    let name = said.name();
    let is_resuming = authority.stage == Stage::Resuming;
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
        C::Rejoin { .. } if authority.stage == Stage::Welcomed => return Ok(()),
        _ if authority.stage == Stage::Welcomed => return breach!("{name} before Rejoin"),
        C::Rejoin { .. } => return breach!("Rejoin, and is no orphan"),
        C::Resumed if !is_resuming => return breach!("Resumed, and is no orphan"),
        // A communication process also says it when it has members again.
        C::Resume { .. } if !is_resuming && authority.is_back_end => {
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
            if authority.is_back_end =>
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
    /// A process that a child names: its own, or one below it.
    pub(crate) fn validate_name(&self, child: Rank, named: Rank, name: &str) -> Result<(), Breach> {
        let is_planned_back_end = named < self.total();
        let is_below = |authority: &Authority| authority.domain.contains(named);
        let speaks = self.children.get(child).is_none_or(|child| is_below(&child.authority));
        if named != child
            && (is_planned_back_end && !speaks || self.children.is_elsewhere(child, named))
        {
            return breach!("{name} about rank {named}, which is not below it");
        }
        Ok(())
    }
}

impl Children {
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
        let others = self.linked().map(|(rank, _, _)| rank);
        let mut others = others.filter(|&rank| named.contains(rank));
        match others.find(|&rank| self.is_elsewhere(child, rank)) {
            Some(rank) => breach!("{name} about rank {rank}, which has nothing to do with it"),
            None => Ok(()),
        }
    }

    /// Whether a rank is that of a child which another one cannot know anything of.
    pub(crate) fn is_elsewhere(&self, child: Rank, named: Rank) -> bool {
        let is_there = self.link_of(named).is_some();
        named != child && is_there && !self.are_related(child, named)
    }

    pub(crate) fn validate_child_length(
        &self,
        rank: Rank,
        frame: &[u8],
        length: usize,
    ) -> Result<(), Breach> {
        let Some(child) = self.get(rank) else { return Ok(()) };
        let name = control_name(frame);
        let most = child.authority.length_max(name.unwrap_or("Reached"));
        if length <= most {
            return Ok(());
        }
        let name = name.unwrap_or("a control message");
        breach!("{name} of {length} bytes, where the size of its subtree allows {most}")
    }

    pub(crate) fn set_stage(&mut self, rank: Rank, stage: Stage) {
        if let Some(child) = self.get_mut(rank) {
            child.authority.stage = stage;
        }
    }
}
