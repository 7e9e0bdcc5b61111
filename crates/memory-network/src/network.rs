//! Wires between processes, whose bytes arrive at once and are read when the caller says so.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_node::{Input, Instant, LinkId, Node};
use sapwood_packet::Slab;

use crate::pipe::Pipe;
use crate::transfer::{gather, receive, transfer_buffer};

/// Which end of a wire: that of the parent or that of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Upper,
    Lower,
}

/// Both.
pub const SIDES: [Side; 2] = [Side::Upper, Side::Lower];

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Upper => Self::Lower,
            Self::Lower => Self::Upper,
        }
    }
}

/// One end of a wire.
#[derive(Debug)]
struct End {
    /// The process that has it, or none where the caller itself speaks over the wire.
    process: Option<usize>,
    link: LinkId,
    /// Bytes from here to the other end.
    pipe: Pipe,
    /// Whether the node has asked for transmission and not all has been written.
    is_armed: bool,
    /// Whether it closes when all is written.
    is_leaving: bool,
    is_open: bool,
}

/// All wires, and which links they are to the processes.
#[derive(Debug)]
pub struct Network {
    wires: Vec<[End; 2]>,
    /// By process and link: the wire and its side.
    ports: Vec<Vec<Option<(usize, Side)>>>,
    buffer: Slab,
}

impl Default for Network {
    fn default() -> Self {
        Self { wires: Vec::new(), ports: Vec::new(), buffer: transfer_buffer() }
    }
}

impl Network {
    /// How many wires there have been.
    pub fn wires(&self) -> usize {
        self.wires.len()
    }

    /// Joins a parent and a child; gives the wire. The caller tells the nodes of their links, see
    /// [`Network::link`].
    pub fn join(&mut self, parent: Option<usize>, child: Option<usize>) -> usize {
        let wire = self.wires.len();
        let ends = [(parent, Side::Upper), (child, Side::Lower)];
        let ends = ends.map(|(process, side)| End {
            process,
            link: process.map_or(LinkId(0), |process| self.add_port(process, wire, side)),
            pipe: Pipe::default(),
            is_armed: false,
            is_leaving: false,
            is_open: true,
        });
        self.wires.push(ends);
        wire
    }

    /// The smallest number of a link that is free.
    fn add_port(&mut self, process: usize, wire: usize, side: Side) -> LinkId {
        if self.ports.len() <= process {
            self.ports.resize_with(process + 1, Vec::new);
        }
        let ports = &mut self.ports[process];
        let index = ports.iter().position(Option::is_none).unwrap_or(ports.len());
        if index == ports.len() {
            ports.push(None);
        }
        ports[index] = Some((wire, side));
        LinkId(index as u32)
    }

    /// The link that an end of a wire is to its process.
    pub fn link(&self, wire: usize, side: Side) -> LinkId {
        self.end(wire, side).link
    }

    /// The process at an end of a wire, unless that is the caller's.
    pub fn process(&self, wire: usize, side: Side) -> Option<usize> {
        self.end(wire, side).process
    }

    pub fn is_open(&self, wire: usize, side: Side) -> bool {
        self.end(wire, side).is_open
    }

    /// Bytes on their way from an end, to be looked at or altered.
    pub fn pipe(&mut self, wire: usize, side: Side) -> &mut Pipe {
        &mut self.end_mut(wire, side).pipe
    }

    /// Bytes on all wires.
    pub fn bytes(&self) -> usize {
        self.wires.iter().flatten().map(|end| end.pipe.len()).sum()
    }

    /// The open links of a process, with their wires.
    pub fn links_of(&self, process: usize) -> impl Iterator<Item = (LinkId, usize, Side)> {
        let ports = self.ports.get(process).into_iter().flatten().enumerate();
        ports
            .filter_map(|(index, port)| port.map(|(wire, side)| (LinkId(index as u32), wire, side)))
    }

    fn end(&self, wire: usize, side: Side) -> &End {
        &self.wires[wire][side as usize]
    }

    fn end_mut(&mut self, wire: usize, side: Side) -> &mut End {
        &mut self.wires[wire][side as usize]
    }

    /// A link has something to write.
    pub fn arm(&mut self, process: usize, link: LinkId) {
        self.armed_end(process, link);
    }

    /// A link is to be closed when what it has to write is written.
    pub fn hang_up(&mut self, process: usize, link: LinkId) {
        if let Some(end) = self.armed_end(process, link) {
            end.is_leaving = true;
        }
    }

    fn armed_end(&mut self, process: usize, link: LinkId) -> Option<&mut End> {
        let (wire, side) = (*self.ports.get(process)?.get(link.0 as usize)?)?;
        let end = self.end_mut(wire, side);
        end.is_armed = true;
        Some(end)
    }

    /// Closes an end; the other end reads what has been written. A node that does not close it by
    /// itself is told by the caller.
    pub fn close(&mut self, wire: usize, side: Side) {
        let end = self.end_mut(wire, side);
        end.is_open = false;
        end.pipe.finish();
        let (process, link) = (end.process, end.link);
        self.end_mut(wire, side.other()).pipe.discard();
        let ports = process.and_then(|process| self.ports.get_mut(process));
        if let Some(port) = ports.and_then(|ports| ports.get_mut(link.0 as usize))
            && *port == Some((wire, side))
        {
            *port = None;
        }
    }

    /// Closes all links of a process that has ended.
    pub fn close_all(&mut self, process: usize) {
        let links: Vec<_> = self.links_of(process).collect();
        links.into_iter().for_each(|(_, wire, side)| self.close(wire, side));
    }

    /// Whether there is something to read at an end: bytes, or the end of the link.
    pub fn is_readable(&self, wire: usize, side: Side) -> bool {
        self.end(wire, side).is_open && self.end(wire, side.other()).pipe.is_readable()
    }

    /// The node at an end reads at most this many bytes, or sees that the other end has closed.
    pub fn read(&mut self, now: Instant, wire: usize, side: Side, most: usize, node: &mut Node) {
        let link = self.link(wire, side);
        let pipe = &mut self.wires[wire][side.other() as usize].pipe;
        if pipe.is_at_end() {
            self.close(wire, side);
            let reason = String::from("connection closed");
            return node.handle_input(now, Input::LinkDown { link, reason });
        }
        receive(node, now, link, pipe, most, &mut self.buffer);
    }

    /// The caller's end drops at most this many bytes unread, or sees that the other end has
    /// closed.
    pub fn skip(&mut self, wire: usize, side: Side, most: usize) {
        let pipe = self.pipe(wire, side.other());
        if pipe.is_at_end() {
            return self.close(wire, side);
        }
        pipe.skip(most);
    }

    /// Whether the node at an end has asked to write.
    pub fn is_armed(&self, wire: usize, side: Side) -> bool {
        let end = self.end(wire, side);
        end.process.is_some() && end.is_open && end.is_armed
    }

    /// The node at an end writes at most this many bytes, as long as the pipe has room, and closes
    /// the end if that was the last. Gives how many were written, or nothing when the pipe is full.
    pub fn write(
        &mut self,
        now: Instant,
        wire: usize,
        side: Side,
        (most, room): (usize, usize),
        node: &mut Node,
    ) -> Option<usize> {
        let is_heard = self.is_open(wire, side.other());
        let End { link, pipe, is_leaving, .. } = self.end_mut(wire, side);
        let (link, is_leaving) = (*link, *is_leaving);
        let room = room.saturating_sub(pipe.len()).min(most);
        if is_heard && room == 0 && node.wants_write(link) {
            return None;
        }
        let mut count = 0;
        if is_heard {
            count = gather(node, link, room, |part| pipe.put(part));
        }
        if count > 0 {
            node.handle_input(now, Input::Transmitted { link, bytes: count });
        }
        // What no process reads is not written: the end of the link is seen by reading.
        if !is_heard || !node.wants_write(link) {
            self.end_mut(wire, side).is_armed = false;
            if is_leaving {
                self.close(wire, side);
            }
        }
        Some(count)
    }
}
