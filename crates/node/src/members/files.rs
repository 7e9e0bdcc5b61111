//! Files with filters that travel down the tree, so that hosts need not share a file system.
//!
//! The front-end sends a file in parts; each communication process passes a part on as it comes, to
//! its children of the same kind, and keeps all parts for those that come later: newcomers are sent
//! every file behind their welcome, and orphans what they do not have. Parts go with the packets,
//! at the cost of those, so that control messages overtake them; from the first file on Opens go
//! that way too, which is why a process that is told of a stream has its files. Once a file is
//! whole, the registry takes it; what is wrong with it is said when a filter of it is asked for.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_filter::ShippedFile;
use sapwood_link::EncodedFrame;
use sapwood_packet::{Body, Slab};
use sapwood_wire::limits::{FILE_BYTES_MAX, FILES_BYTES_MAX, FILES_MAX};
use sapwood_wire::{Control, StreamRequest, WireError, encode_control};

use crate::interface::{LinkId, Role};
use crate::members::children::Children;
use crate::members::membership::Membership;
use crate::turn::Turn;

/// One file, or its first parts.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) digest: [u8; 32],
    pub(crate) name: String,
    pub(crate) total: u32,
    /// How much of it is here.
    pub(crate) length: u32,
    /// What is here, until the registry has it.
    pub(crate) bytes: Vec<u8>,
    /// The same as it travels on.
    pub(crate) parts: Vec<EncodedFrame>,
}

/// The files that have come here, in order.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) list: Vec<File>,
}

impl Files {
    /// The checksums of those that are whole.
    pub(crate) fn whole(&self) -> Vec<[u8; 32]> {
        let whole = self.list.iter().filter(|file| file.length == file.total);
        whole.map(|file| file.digest).collect()
    }

    /// Whether there is room for one more.
    pub(crate) fn takes(&self, total: u32) -> bool {
        let bytes: u64 = self.list.iter().map(|file| u64::from(file.total)).sum();
        total as usize <= FILE_BYTES_MAX
            && total > 0
            && self.list.len() < FILES_MAX
            && bytes + u64::from(total) <= FILES_BYTES_MAX as u64
    }
}

/// Lengths and offsets of a file's parts must agree.
const NOT_ITS_FILE: WireError =
    WireError::Unexpected { what: "a part of a file that does not fit to its other parts" };

impl Membership {
    /// A part of a file has come from the parent.
    pub(crate) fn file_part(&mut self, part: Control, turn: &mut Turn) -> Result<(), WireError> {
        let Control::File { digest, total, offset, bytes, .. } = &part else {
            return Err(WireError::Unexpected { what: part.name() });
        };
        if turn.settings.role != Role::Communication {
            return Ok(());
        }
        let known = self.files.list.iter().find(|known| known.digest == *digest);
        let expected = match known {
            Some(known) if known.total != *total => return Err(NOT_ITS_FILE),
            Some(known) => known.length,
            None if *total as usize > FILE_BYTES_MAX || *total == 0 => {
                return Err(NOT_ITS_FILE);
            }
            // A front-end that has come in the place of another does not know what that one sent.
            // A process that asks for a filter of this file is told that it has not come.
            None if !self.files.takes(*total) => return Ok(()),
            None => 0,
        };
        let end = u64::from(*offset) + bytes.len() as u64;
        if *offset > expected || end > u64::from(*total) {
            return Err(NOT_ITS_FILE);
        }
        if *offset == expected {
            self.keep_part(part, turn);
        }
        Ok(())
    }

    /// The next part of a file is kept and passed on, and with the last one the file is taken.
    pub(crate) fn keep_part(&mut self, part: Control, turn: &mut Turn) {
        let mut slab = Slab::default();
        let encoded = encode_control(&mut slab, &part);
        debug_assert!(encoded.is_ok(), "a part is short");
        let Control::File { name, digest, total, bytes, .. } = part else { return };
        let frame = EncodedFrame::whole(Body::from(slab));
        for link in self.children.carriers() {
            if let Some(outbox) = turn.links.outbox(link) {
                outbox.push_frame(&frame);
            }
        }
        let list = &mut self.files.list;
        let at = list.iter().position(|known| known.digest == digest).unwrap_or_else(|| {
            let (bytes, parts) = (Vec::new(), Vec::new());
            list.push(File { digest, name, total, length: 0, bytes, parts });
            list.len() - 1
        });
        let file = &mut list[at];
        file.length += bytes.len() as u32;
        file.parts.push(frame);
        if turn.settings.role == Role::FrontEnd {
            // It took the file before it sent it.
            return;
        }
        file.bytes.extend_from_slice(&bytes);
        if file.length == file.total {
            let bytes = core::mem::take(&mut file.bytes);
            let whole = ShippedFile { name: &file.name, digest: &file.digest, bytes: &bytes };
            // A process that asks for a filter of it is told what is wrong.
            let _ = turn.settings.registry.take_file(&whole);
        }
    }

    /// Sends a child that has come what it does not have of the files.
    pub(crate) fn send_files(&mut self, link: LinkId, known: &[[u8; 32]], turn: &mut Turn) {
        let Turn { links, .. } = turn;
        if let Some(child) =
            self.children.rank_of(link).and_then(|rank| self.children.get_mut(rank))
        {
            if !child.is_responsive {
                return;
            }
            child.has_files = true;
        }
        let Some(outbox) = links.outbox(link) else { return };
        for file in self.files.list.iter().filter(|file| !known.contains(&file.digest)) {
            file.parts.iter().for_each(|part| outbox.push_frame(part));
        }
    }

    /// Tells a child of a stream, behind the files that were sent to it.
    pub(crate) fn tell_open(&mut self, link: LinkId, request: StreamRequest, turn: &mut Turn) {
        let open = Control::Open(request);
        if self.files.list.is_empty() {
            return turn.send_control(link, &open);
        }
        let mut frame = Slab::default();
        // What is too long was refused when the stream was opened.
        if let (Ok(_), Some(outbox)) = (encode_control(&mut frame, &open), turn.links.outbox(link))
        {
            outbox.push_bytes(frame.as_bytes());
        }
    }
}

impl Children {
    /// The links of the children that are communication processes, and have been told so.
    fn carriers(&self) -> Vec<LinkId> {
        let children = self.linked();
        let carries =
            |&(rank, _, _): &(u32, LinkId, &_)| self.get(rank).is_some_and(|child| child.has_files);
        children.filter(carries).map(|(_, link, _)| link).collect()
    }
}
