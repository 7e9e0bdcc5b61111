//! What one process of the floor does: block on its parent, pass the command down, read its
//! children one after another, add, and write one packet up.
//!
//! Owns the loop of an inner node and of a leaf, and the gathering that the root shares with the
//! inner nodes. Does not own how the processes come to be (`tree`) nor what is measured
//! (`experiment`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;

use crate::bulk;
use crate::link::Link;
use crate::packet::{self, COMMAND_BYTES, Command, HEADER_BYTES};

/// First hidden argument of a process of the tree.
pub(crate) const NODE_ARGUMENT: &str = "floor-node";

/// A command that is no command, or an answer of another wave: a fault in the floor.
pub(crate) const PROTOCOL_FAULT: io::ErrorKind = io::ErrorKind::InvalidData;

/// Lowest descriptor that an edge can have: 0, 1 and 2 are the standard ones.
const EDGE_DESCRIPTOR_MIN: RawFd = 3;

/// Reads and adds one packet per child, in order.
pub(crate) struct Gather {
    /// Header and payload of the first child's packet, then the sum: it is read straight into the
    /// buffer that is sent, so the first packet of a wave is never copied.
    sum: Vec<u8>,
    addend: Vec<u8>,
}

impl Gather {
    pub(crate) fn new() -> Gather {
        Gather { sum: Vec::new(), addend: Vec::new() }
    }

    /// Gathers one wave; the sum with its header, ready to be written up. On an error, also tells
    /// the child at whose link it arose.
    pub(crate) fn wave(
        &mut self,
        children: &[Link],
        wave: u64,
        bytes: usize,
    ) -> Result<&[u8], (usize, io::Error)> {
        self.sum.resize(HEADER_BYTES + bytes, 0);
        self.addend.resize(HEADER_BYTES + bytes, 0);
        let header = packet::answer_header(bytes, wave);
        for (index, child) in children.iter().enumerate() {
            let packet = if index == 0 { &mut self.sum } else { &mut self.addend };
            child.read_exact(packet).map_err(|error| (index, error))?;
            if packet[..HEADER_BYTES] != header {
                return Err((index, PROTOCOL_FAULT.into()));
            }
            if index > 0 {
                packet::add(&mut self.sum[HEADER_BYTES..], &self.addend[HEADER_BYTES..]);
            }
        }
        Ok(&self.sum)
    }
}

/// Runs one process of the tree from its hidden arguments: `inner PARENT CHILD,CHILD,...` or
/// `leaf PARENT RANK`, where the edges are numbers of inherited descriptors.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let Some(role) = Role::parse(arguments) else {
        eprintln!("floor-node is started by the floor itself; use --topology instead");
        return ExitCode::from(2);
    };
    let served = match role {
        Role::Inner { parent, children } => serve_inner(&parent, &children),
        Role::Leaf { parent, rank } => serve_leaf(&parent, rank),
    };
    // The root names what broke. A node below it only sees that a neighbour is gone.
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Role {
    Inner { parent: Link, children: Vec<Link> },
    Leaf { parent: Link, rank: usize },
}

impl Role {
    fn parse(arguments: &[OsString]) -> Option<Role> {
        let words: Vec<&str> =
            arguments.iter().map(OsString::as_os_str).map(OsStr::to_str).collect::<Option<_>>()?;
        let &[role, parent, last] = words.as_slice() else { return None };
        let parent = parent.parse::<RawFd>().ok()?;
        match role {
            "leaf" => {
                let rank = last.parse().ok()?;
                Some(Role::Leaf { parent: inherited(&[parent])?.pop()?, rank })
            }
            "inner" => {
                let mut edges = vec![parent];
                for child in last.split(',') {
                    edges.push(child.parse().ok()?);
                }
                let mut links = inherited(&edges)?;
                let children = links.split_off(1);
                Some(Role::Inner { parent: links.pop()?, children })
            }
            _ => None,
        }
    }
}

/// Takes over inherited descriptors by number; `None` where one is not open or is named twice.
fn inherited(numbers: &[RawFd]) -> Option<Vec<Link>> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != numbers.len() || sorted[0] < EDGE_DESCRIPTOR_MIN {
        return None;
    }
    for &number in numbers {
        // SAFETY: only asks whether the number is open, which is harmless for any number.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_getfd(borrowed).ok()?;
    }
    // SAFETY: the process has just begun and runs this before it opens anything, so every open
    // descriptor from 3 on was inherited and has no owner; none is named twice.
    Some(numbers.iter().map(|&number| Link::new(unsafe { OwnedFd::from_raw_fd(number) })).collect())
}

fn serve_inner(parent: &Link, children: &[Link]) -> io::Result<()> {
    let mut gather = Gather::new();
    let mut packet = [0; COMMAND_BYTES];
    loop {
        parent.read_exact(&mut packet)?;
        for child in children {
            child.write_all(&packet)?;
        }
        let (first, waves, bytes) = match Command::decode(&packet).ok_or(PROTOCOL_FAULT)? {
            Command::RoundTrip { wave, bytes } => (wave, 1, bytes),
            Command::Stream { waves, bytes, .. } => (0, waves, bytes),
            Command::Down(load) => {
                bulk::pass_down(parent, children, load)?;
                (0, 1, bulk::WORD_BYTES)
            }
            Command::Up(_) => {
                bulk::pass_up(parent, children)?;
                (0, 0, 0)
            }
            Command::Sum(load) => {
                bulk::pass_sum(parent, children, load)?;
                (0, 0, 0)
            }
            Command::Stop => return Ok(()),
        };
        for wave in first..first + waves {
            let sum = gather.wave(children, wave, bytes).map_err(|(_, error)| error)?;
            parent.write_all(sum)?;
        }
    }
}

fn serve_leaf(parent: &Link, rank: usize) -> io::Result<()> {
    let mut packet = [0; COMMAND_BYTES];
    let mut answer: Vec<u8> = Vec::new();
    let (mut made, mut addends) = (None, None);
    loop {
        parent.read_exact(&mut packet)?;
        match Command::decode(&packet).ok_or(PROTOCOL_FAULT)? {
            Command::RoundTrip { wave, bytes } => {
                if answer.len() != HEADER_BYTES + bytes {
                    answer = packet::leaf_answer(rank, bytes);
                }
                packet::renumber(&mut answer, rank, wave);
                parent.write_all(&answer)?;
            }
            Command::Stream { waves, bytes, packets_per_write } => {
                stream(parent, rank, waves, bytes, packets_per_write)?;
            }
            Command::Down(load) => {
                bulk::take(parent, load)?;
                parent.write_all(&packet::leaf_answer(rank, bulk::WORD_BYTES))?;
            }
            Command::Up(load) => bulk::send_up(parent, rank, load, &mut made)?,
            Command::Sum(load) => bulk::send_addends(parent, rank, load, &mut addends)?,
            Command::Stop => return Ok(()),
        }
    }
}

fn stream(
    parent: &Link,
    rank: usize,
    waves: u64,
    bytes: usize,
    packets_per_write: usize,
) -> io::Result<()> {
    let mut batch = packet::leaf_answer(rank, bytes).repeat(packets_per_write);
    let packet_bytes = HEADER_BYTES + bytes;
    let mut wave = 0;
    while wave < waves {
        let packets = (waves - wave).min(packets_per_write as u64) as usize;
        for packet in batch.chunks_exact_mut(packet_bytes).take(packets) {
            packet::renumber(packet, rank, wave);
            wave += 1;
        }
        parent.write_all(&batch[..packets * packet_bytes])?;
    }
    Ok(())
}
