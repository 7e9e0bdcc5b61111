//! What the parent, and an ancestor that was asked, may say. A process believes its parent more
//! than its children: all that it knows of the network it has from there. What would still be wrong
//! from any parent is a breach.

use sapwood_packet::{Order, PacketRef, Rank};
use sapwood_wire::Control;

use crate::interface::Role;
use crate::interface::breach::{Breach, breach};
use crate::members::ancestry::Ancestry;
use crate::members::authority::DYNAMIC_RANGES_MAX;
use crate::members::membership::Membership;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;

impl Membership {
    pub(crate) fn validate_parent(
        &mut self,
        said: &Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), Breach> {
        let is_welcomed = self.ancestry.is_welcomed;
        let name = said.name();
        match said {
            Control::Welcome { .. } if is_welcomed => return breach!("Welcome a second time"),
            Control::Welcome { rank, .. } => {
                turn.validate_own_rank(*rank)?;
                self.ancestry.is_welcomed = true;
            }
            Control::Refused { .. } if is_welcomed => return breach!("Refused behind Welcome"),
            Control::Refused { .. } => {}
            _ if !is_welcomed => return breach!("{name} before Welcome"),
            Control::Open(request) => {
                let members = request.members.as_set();
                let planned = self.total() as usize;
                if members.ranges().len() > planned.saturating_add(DYNAMIC_RANGES_MAX) {
                    return breach!("Open with more members than the network has");
                }
                let is_back_end = turn.settings.role == Role::BackEnd;
                if is_back_end && !turn.rank.is_some_and(|own| members.contains(own)) {
                    return breach!("Open of a stream that this back-end is no member of");
                }
            }
            Control::Credit { stream, bytes } => {
                let open = streams.get(*stream);
                let is_too_much =
                    |open: &Stream| open.sender.exceeds(*bytes, open.request.window_bytes);
                if open.is_some_and(is_too_much) {
                    return breach!("Credit for {bytes} bytes, more than it was sent");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Ancestry {
    /// An ancestor that was asked to take this process in.
    pub(crate) fn validate_ancestor(
        &mut self,
        said: &Control,
        turn: &mut Turn,
    ) -> Result<(), Breach> {
        if let Control::Welcome { rank, .. } = said {
            turn.validate_own_rank(*rank)?;
            self.is_welcomed = true;
        }
        Ok(())
    }
}

impl Turn {
    /// A packet from the parent: there is one behind each.
    #[inline]
    pub(crate) fn validate_packet_down(&self, packet: &PacketRef<'_>) -> Result<(), Breach> {
        match packet.header.order {
            Order::Wave | Order::Part(_) | Order::Direct => Ok(()),
            Order::Single(_) | Order::Last => breach!("a packet of an order that only goes up"),
        }
    }

    pub(crate) fn validate_own_rank(&self, rank: Rank) -> Result<(), Breach> {
        match self.rank {
            Some(own) if own != rank => breach!("Welcome for rank {rank} to rank {own}"),
            _ => Ok(()),
        }
    }
}
