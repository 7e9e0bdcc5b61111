//! Bytes from a pipe into a node, and from a node into a pipe, as a runtime moves them.

use sapwood_node::{Input, Instant, LinkId, Node};
use sapwood_packet::Slab;

use crate::pipe::Pipe;

/// Most bytes that one read takes when the node lends no memory.
const READ_BYTES: usize = 64 << 10;
/// Room for the beginning of a frame that a node asks to have before the bytes that are read.
const TAIL_BYTES: usize = 16 << 10;

/// The buffer into which small frames are read.
pub fn transfer_buffer() -> Slab {
    Slab::of_length(TAIL_BYTES + READ_BYTES)
}

/// Has a node read at most this many of the bytes that have arrived: into the memory that it lends
/// for a large packet, or else through the buffer. The caller carries out what the node decides.
pub fn receive(
    node: &mut Node,
    now: Instant,
    link: LinkId,
    pipe: &mut Pipe,
    most: usize,
    buffer: &mut Slab,
) {
    if let Some(memory) = node.lend(link) {
        assert!(!memory.is_empty(), "memory that is lent has room");
        let length = memory.len().min(most);
        let bytes = pipe.read(&mut memory[..length]);
        if bytes > 0 {
            node.handle_input(now, Input::Filled { link, bytes });
        }
        return;
    }
    let memory = buffer.as_mut_bytes();
    let tail = node.begin_read(link, memory);
    assert!(tail <= TAIL_BYTES, "the beginning of a frame is short");
    let length = most.min(READ_BYTES);
    let bytes = tail + pipe.read(&mut memory[tail..tail + length]);
    if bytes > 0 {
        node.handle_input(now, Input::Bytes { link, bytes: &memory[..bytes] });
    }
}

/// Gives `take` the next bytes that a node has for a link, at most this many, and returns their
/// number. The node still holds them until it is told that they were transmitted.
pub fn gather(node: &Node, link: LinkId, most: usize, mut take: impl FnMut(&[u8])) -> usize {
    let mut left = most;
    node.gather(link, |part| {
        let length = part.len().min(left);
        take(&part[..length]);
        left -= length;
        left > 0
    });
    most - left
}
