//! Peers that broke the protocol or the format: their link is closed, with the reason.

use sapwood_packet::PacketRef;
use sapwood_wire::WireError;

use crate::inbound::Inbound;
use crate::interface::LinkId;
use crate::interface::breach::Breach;
use crate::turn::links::Peer;

impl Inbound<'_> {
    /// Breaks a link whose peer has committed a breach, and names it.
    pub(crate) fn close_for_breach(&mut self, link: LinkId, breach: &Breach) {
        let reason = alloc::format!("{breach}");
        self.members.last_breach = Some(reason.clone());
        match self.turn.links.link(link).map(|open| open.peer) {
            // It is asked last when this process looks for another.
            Some(Peer::Parent) => self.tree_change().link_silent(link, &reason),
            Some(Peer::Child(rank)) => {
                if let Some(child) = self.members.children.get_mut(rank) {
                    child.authority.is_distrusted = true;
                }
                self.tree_change().close_place_because(rank, &reason);
                self.tree_change().link_broken(link, &reason);
            }
            _ => {
                self.tree_change().link_broken(link, &reason);
            }
        }
    }

    /// A peer broke the format: nothing more can be believed of this link.
    pub(crate) fn close_malformed(&mut self, link: LinkId, error: &WireError) {
        let reason = alloc::format!("{error}");
        if self.turn.links.link(link).is_some() {
            self.members.last_breach = Some(reason.clone());
        }
        self.tree_change().link_broken(link, &reason);
    }

    /// A packet of a child on a stream that is not open here, or not to it.
    #[cold]
    pub(crate) fn validate_stray(&mut self, link: LinkId, packet: &PacketRef<'_>) {
        let Some(rank) = self.members.children.rank_of(link) else { return };
        if let Err(breach) = self.members.children.validate_stream(
            rank,
            packet.header.stream,
            "a packet",
            self.streams,
        ) {
            self.close_for_breach(link, &breach);
        }
    }
}
