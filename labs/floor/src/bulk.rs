//! Bytes in bulk: one large array down to every leaf, or one from every leaf up to the root.
//!
//! Owns both transfers at every process. An inner node stores and forwards: it reads what its
//! socket has, up to [`PIECE_BYTES`], and writes it on, so that the first bytes arrive long before
//! the last ones leave. Nothing is added up, except where a sum is asked for: there the pieces of
//! all children are, and the root puts them where the whole sum is to be. What goes down has no
//! headers at all; what goes up has one per piece, since the root has to know whose it is.
//!
//! The receiver puts a packet into memory of its own that is new in every transfer, as a
//! program that gets an array has to; of several packets each takes the place of the one before.
//! One element in every page is compared with what it must be.

use std::io;
use std::time::Instant;

use crate::error::Error;
use crate::link::Link;
use crate::node::{Gather, PROTOCOL_FAULT};
use crate::packet::{self, Command, HEADER_BYTES, Load};
use crate::tree::Floor;

/// Most bytes that an inner node reads before it writes them on.
const PIECE_BYTES: usize = 256 << 10;

/// Payload of a leaf's word that all has come.
pub(crate) const WORD_BYTES: usize = 8;

const ELEMENT_BYTES: usize = 8;

/// Elements between two that are compared: one in every page.
const STRIDE: usize = 512;

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// From before the command to the last byte, or to the last leaf's word that it has come.
    pub seconds: f64,
}

impl Floor {
    /// Sends the same bytes down to every leaf.
    ///
    /// # Errors
    /// [`Error::Argument`] for a load that is none, or what broke.
    pub fn bulk_down(&mut self, load: Load) -> Result<Transfer, Error> {
        self.check_load(load)?;
        let mut array = Array::new(0, load.packet_bytes);
        let begin = Instant::now();
        self.broadcast(Command::Down(load))?;
        for number in 0..load.packets {
            array.number(number);
            // A piece to each child in turn, so that none waits for all that another one gets.
            for piece in array.bytes.chunks(PIECE_BYTES) {
                for child in 0..self.links.len() {
                    let written = self.links[child].write_all(piece);
                    written
                        .map_err(|source| self.fail("bytes on their way down", child, source))?;
                }
            }
        }
        let mut gather = Gather::new();
        let sum = gather.wave(&self.links, 0, WORD_BYTES).map(|_| ());
        sum.map_err(|(child, source)| self.fail("bytes on their way down", child, source))?;
        Ok(Transfer { seconds: begin.elapsed().as_secs_f64() })
    }

    /// Has every leaf send so much up to the root. The first transfer of packets of some length
    /// holds the time in which the leaves make them: do not count it.
    ///
    /// # Errors
    /// As [`Floor::bulk_down`].
    pub fn bulk_up(&mut self, load: Load) -> Result<Transfer, Error> {
        self.check_load(load)?;
        let mut arriving: Vec<Arriving> =
            (0..self.leaves).map(|_| Arriving::new(load.packet_bytes)).collect();
        let begin = Instant::now();
        self.broadcast(Command::Up(load))?;
        let mut open: Vec<usize> = (0..self.links.len()).collect();
        while !open.is_empty() {
            for child in std::mem::take(&mut open) {
                let more = take_piece(&self.links[child], &mut arriving);
                if more.map_err(|source| self.fail("bytes on their way up", child, source))? {
                    open.push(child);
                }
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let expected = load.packet_bytes as u64 * load.packets;
        match arriving.iter().all(|arriving| arriving.taken == expected) {
            true => Ok(Transfer { seconds }),
            false => Err(self.fail("bytes on their way up", 0, PROTOCOL_FAULT.into())),
        }
    }

    /// Has every leaf send so much up, of which one sum arrives at the root. As
    /// [`Floor::bulk_up`], the sender reads all of an array, and the receiver has memory for
    /// all of it: [`Floor::pipelined`] sends the same packet again and again, and forgets the sums.
    ///
    /// # Errors
    /// As [`Floor::bulk_down`], and [`Error::WrongPacket`].
    pub fn bulk_sum(&mut self, bytes: usize) -> Result<Transfer, Error> {
        let load = Load { packet_bytes: bytes, packets: 1 };
        self.check_load(load)?;
        let mut sum = vec![0; bytes];
        let mut addend = vec![0; PIECE_BYTES];
        let begin = Instant::now();
        self.broadcast(Command::Sum(load))?;
        for piece in sum.chunks_mut(PIECE_BYTES) {
            let added = add_pieces(&self.links, piece, &mut addend);
            added.map_err(|(child, source)| self.fail("a sum on its way up", child, source))?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let (elements, _) = sum.as_chunks::<ELEMENT_BYTES>();
        let is_right =
            |at: &usize| f64::from_le_bytes(elements[*at]) == packet::sum_value(self.leaves, *at);
        match (0..elements.len()).step_by(STRIDE).all(|at| is_right(&at)) {
            true => Ok(Transfer { seconds }),
            false => Err(Error::WrongPacket { wave: 0 }),
        }
    }

    fn check_load(&self, load: Load) -> Result<(), Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        if !packet::load_is_valid(load) {
            return Err(Error::Argument(
                "a packet in bulk is a multiple of 8 up to 536870912 bytes",
            ));
        }
        Ok(())
    }
}

/// Passes on to all children what comes down.
pub(crate) fn pass_down(parent: &Link, children: &[Link], load: Load) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut left = load.packet_bytes as u64 * load.packets;
    while left > 0 {
        let most = left.min(PIECE_BYTES as u64) as usize;
        let bytes = parent.read_some(&mut piece[..most])?;
        for child in children {
            child.write_all(&piece[..bytes])?;
        }
        left -= bytes as u64;
    }
    Ok(())
}

/// Takes what comes down, at a leaf.
pub(crate) fn take(parent: &Link, load: Load) -> io::Result<()> {
    let mut arriving = Arriving::new(load.packet_bytes);
    for _ in 0..load.packets {
        parent.read_exact(&mut arriving.bytes)?;
        arriving.complete(0)?;
    }
    Ok(())
}

/// Sends as much up as is asked for, at a leaf: pieces with headers, and an empty one at the end.
pub(crate) fn send_up(
    parent: &Link,
    rank: usize,
    load: Load,
    made: &mut Option<Array>,
) -> io::Result<()> {
    let fits = made.take_if(|array| array.bytes.len() == load.packet_bytes);
    let array = made.insert(fits.unwrap_or_else(|| Array::new(rank, load.packet_bytes)));
    for number in 0..load.packets {
        array.number(number);
        for piece in array.bytes.chunks(PIECE_BYTES) {
            parent.write_all(&packet::answer_header(piece.len(), rank as u64))?;
            parent.write_all(piece)?;
        }
    }
    parent.write_all(&packet::answer_header(0, rank as u64))
}

/// Passes on to the parent what comes up, a piece of each child in turn.
pub(crate) fn pass_up(parent: &Link, children: &[Link]) -> io::Result<()> {
    let mut piece = vec![0; HEADER_BYTES + PIECE_BYTES];
    let mut open: Vec<&Link> = children.iter().collect();
    while !open.is_empty() {
        let mut index = 0;
        while index < open.len() {
            let bytes = read_piece(open[index], &mut piece)?;
            if bytes == 0 {
                open.remove(index);
                continue;
            }
            parent.write_all(&piece[..HEADER_BYTES + bytes])?;
            index += 1;
        }
    }
    parent.write_all(&packet::answer_header(0, 0))
}

/// Sends what is to be summed, at a leaf: pieces without headers.
pub(crate) fn send_addends(
    parent: &Link,
    rank: usize,
    load: Load,
    made: &mut Option<Vec<u8>>,
) -> io::Result<()> {
    let element = |at: usize| packet::leaf_value(rank, at).to_le_bytes();
    let make = || (0..load.packet_bytes / ELEMENT_BYTES).flat_map(element).collect();
    let fits = made.take_if(|addends| addends.len() == load.packet_bytes);
    let addends = made.insert(fits.unwrap_or_else(make));
    addends.chunks(PIECE_BYTES).try_for_each(|piece| parent.write_all(piece))
}

/// Passes the sums of the children's pieces on to the parent.
pub(crate) fn pass_sum(parent: &Link, children: &[Link], load: Load) -> io::Result<()> {
    let (mut sum, mut addend) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    let mut left = load.packet_bytes;
    while left > 0 {
        let bytes = left.min(PIECE_BYTES);
        let piece = &mut sum[..bytes];
        add_pieces(children, piece, &mut addend).map_err(|(_, error)| error)?;
        parent.write_all(piece)?;
        left -= bytes;
    }
    Ok(())
}

/// Reads a piece of every child and adds them: the first straight to where the sum is to be. On an
/// error, also tells the child at whose link it arose.
fn add_pieces(
    children: &[Link],
    sum: &mut [u8],
    addend: &mut [u8],
) -> Result<(), (usize, io::Error)> {
    for (index, child) in children.iter().enumerate() {
        if index == 0 {
            child.read_exact(sum).map_err(|error| (index, error))?;
            continue;
        }
        let addend = &mut addend[..sum.len()];
        child.read_exact(addend).map_err(|error| (index, error))?;
        packet::add(sum, addend);
    }
    Ok(())
}

/// Reads a header and the bytes behind it; how many these are.
fn read_piece(child: &Link, piece: &mut [u8]) -> io::Result<usize> {
    child.read_exact(&mut piece[..HEADER_BYTES])?;
    let bytes = u32::from_le_bytes([piece[0], piece[1], piece[2], piece[3]]) as usize;
    let body = piece.get_mut(HEADER_BYTES..HEADER_BYTES + bytes).ok_or(PROTOCOL_FAULT)?;
    child.read_exact(body)?;
    Ok(bytes)
}

/// Reads a piece to where it belongs; whether there are more from that child.
fn take_piece(child: &Link, arriving: &mut [Arriving]) -> io::Result<bool> {
    let mut header = [0; HEADER_BYTES];
    child.read_exact(&mut header)?;
    let bytes = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let rank = usize::from(header[8]) | usize::from(header[9]) << 8;
    if bytes == 0 {
        return Ok(false);
    }
    let arriving = arriving.get_mut(rank).ok_or(PROTOCOL_FAULT)?;
    let at = (arriving.taken % arriving.bytes.len() as u64) as usize;
    child.read_exact(arriving.bytes.get_mut(at..at + bytes).ok_or(PROTOCOL_FAULT)?)?;
    arriving.taken += bytes as u64;
    if at + bytes == arriving.bytes.len() {
        arriving.complete(rank)?;
    }
    Ok(true)
}

/// What a process sends.
pub(crate) struct Array {
    bytes: Vec<u8>,
}

impl Array {
    fn new(rank: usize, bytes: usize) -> Self {
        let element = |at: usize| element(rank, at).to_le_bytes();
        Self { bytes: (0..bytes / ELEMENT_BYTES).flat_map(element).collect() }
    }

    /// The first element is the packet's number.
    fn number(&mut self, number: u64) {
        self.bytes[..ELEMENT_BYTES].copy_from_slice(&number.to_le_bytes());
    }
}

/// What a process receives.
struct Arriving {
    bytes: Vec<u8>,
    packets: u64,
    /// Bytes so far, over all packets.
    taken: u64,
}

impl Arriving {
    fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], packets: 0, taken: 0 }
    }

    /// A packet has come whole.
    fn complete(&mut self, rank: usize) -> io::Result<()> {
        let (elements, _) = self.bytes.as_chunks::<ELEMENT_BYTES>();
        let at = |at: usize| u64::from_le_bytes(elements[at]);
        let mut others = (STRIDE..elements.len()).step_by(STRIDE);
        if at(0) != self.packets || !others.all(|index| at(index) == element(rank, index)) {
            return Err(PROTOCOL_FAULT.into());
        }
        self.packets += 1;
        Ok(())
    }
}

fn element(rank: usize, at: usize) -> u64 {
    ((rank as u64 + 1) << 40) + at as u64
}
