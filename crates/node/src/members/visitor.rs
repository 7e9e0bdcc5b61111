//! Visitors: processes that are no part of the tree and ask the front-end something.
//!
//! The node carries questions and answers, and reads neither.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_wire::{Control, WIRE_VERSION, WireError};

use crate::interface::{Event, LinkId, Output, Role};
use crate::turn::Turn;
use crate::turn::links::Peer;

/// Most visitors at a time.
const VISITORS_MAX: usize = 32;

/// The visitors at hand: links, and the numbers by which the application knows them.
#[derive(Debug, Default)]
pub(crate) struct Visitors {
    next: u64,
    pub(crate) here: Vec<(LinkId, u64)>,
}

impl Visitors {
    pub(crate) fn visitor_down(&mut self, link: LinkId) {
        self.here.retain(|(other, _)| *other != link);
    }

    pub(crate) fn control_from_visitor(
        &mut self,
        link: LinkId,
        control: Control,
        turn: &mut Turn,
    ) -> Result<(), WireError> {
        let here = &self.here;
        let visitor = here.iter().find(|(other, _)| *other == link).map(|&(_, visitor)| visitor);
        let what = control.name();
        let (Control::Question { bytes }, Some(visitor)) = (control, visitor) else {
            return Err(WireError::Unexpected { what });
        };
        turn.outputs.push_back(Output::Event(Event::Asked { visitor, question: bytes }));
        Ok(())
    }

    /// A stranger says that it is a visitor.
    pub(crate) fn admit_visitor(
        &mut self,
        link: LinkId,
        version: u16,
        turn: &mut Turn,
    ) -> Result<(), String> {
        if version != WIRE_VERSION {
            return Err(alloc::format!(
                "wire version {version} is not {WIRE_VERSION}: ask with the release that the \
                 network runs"
            ));
        }
        if turn.settings.role != Role::FrontEnd {
            return Err("only a front-end answers status queries".to_string());
        }
        if turn.has_ended {
            return Err("the network is ending".to_string());
        }
        if self.here.len() == VISITORS_MAX {
            return Err(alloc::format!(
                "{VISITORS_MAX} processes query this front-end already; try again"
            ));
        }
        self.next += 1;
        self.here.push((link, self.next));
        if let Some(open) = turn.links.link_mut(link) {
            open.peer = Peer::Visitor;
        }
        Ok(())
    }
}
