//! The floor's two packets: the command that goes down and the answer that comes up.
//!
//! ```text
//!  0       4       8               16
//!  | bytes | kind  | wave          | answer bytes, waves, per write, 5 zeros |  command: 80 bytes
//!  | bytes | kind  | wave          | f64, f64, ...                           |  answer: 16 + bytes
//!    u32     u32     u64             u64 each / f64 each, all little-endian
//! ```
//!
//! `bytes` counts what follows the header. This is not Sapwood's wire format and has none of what
//! that needs (streams, contributors, credit): the floor is the least that can be sent and still be
//! summed.

use crate::error::Error;

/// Bytes of a packet before its payload.
pub const HEADER_BYTES: usize = 16;

/// Bytes of payload of every packet that goes down.
pub const COMMAND_PAYLOAD_BYTES: usize = 64;

/// Bytes of a whole packet that goes down.
pub(crate) const COMMAND_BYTES: usize = HEADER_BYTES + COMMAND_PAYLOAD_BYTES;

/// Most payload bytes of an answer: 64 MiB.
pub const ANSWER_PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// Most bytes of a packet in bulk: 512 MiB.
pub const BULK_PACKET_BYTES_MAX: usize = 512 << 20;

const KIND_ANSWER: u32 = 4;
const KIND_DOWN: u32 = 5;
const KIND_UP: u32 = 6;
const KIND_SUM: u32 = 7;
const ELEMENT_BYTES: usize = 8;

/// Elements differ along the array with this period, and the first element differs from wave to
/// wave with the other, so that a shifted array or an old wave gives a wrong sum. Both are small
/// enough for every sum of the largest tree to be exact in an f64.
const ELEMENT_PERIOD: usize = 1024;
const WAVE_PERIOD: u64 = 1 << 20;

/// What the root asks of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Answer once, with `bytes` of payload.
    RoundTrip { wave: u64, bytes: usize },
    /// Answer `waves` times without being asked again.
    Stream { waves: u64, bytes: usize, packets_per_write: usize },
    /// Take what follows, and say when it is there.
    Down(Load),
    /// Send as much.
    Up(Load),
    /// Send as much, of which one sum is to arrive.
    Sum(Load),
    /// End.
    Stop,
}

/// Bytes in bulk: packets of one length, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Length of a packet.
    pub packet_bytes: usize,
    /// How many of them.
    pub packets: u64,
}

impl Command {
    /// The packet of this command.
    pub(crate) fn encode(self) -> [u8; COMMAND_BYTES] {
        let (kind, wave, words) = match self {
            Command::RoundTrip { wave, bytes } => (1, wave, [bytes as u64, 1, 1]),
            Command::Stream { waves, bytes, packets_per_write } => {
                (2, 0, [bytes as u64, waves, packets_per_write as u64])
            }
            Command::Stop => (3, 0, [0, 0, 0]),
            Command::Down(Load { packet_bytes, packets }) => {
                (KIND_DOWN, 0, [packet_bytes as u64, packets, 0])
            }
            Command::Up(Load { packet_bytes, packets }) => {
                (KIND_UP, 0, [packet_bytes as u64, packets, 0])
            }
            Command::Sum(Load { packet_bytes, packets }) => {
                (KIND_SUM, 0, [packet_bytes as u64, packets, 0])
            }
        };
        let mut packet = [0; COMMAND_BYTES];
        packet[..HEADER_BYTES].copy_from_slice(&header(COMMAND_PAYLOAD_BYTES, kind, wave));
        for (slot, word) in packet[HEADER_BYTES..].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        packet
    }

    /// The command in a packet; `None` where it is none.
    pub(crate) fn decode(packet: &[u8; COMMAND_BYTES]) -> Option<Command> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&packet[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let kind = (word(0) >> 32) as u32;
        let (wave, bytes, waves) = (word(8), word(16) as usize, word(24));
        let packets_per_write = word(32) as usize;
        let load = Load { packet_bytes: bytes, packets: waves };
        if word(0) & 0xffff_ffff != COMMAND_PAYLOAD_BYTES as u64 {
            return None;
        }
        match kind {
            1 if bytes_are_valid(bytes) => Some(Command::RoundTrip { wave, bytes }),
            2 if bytes_are_valid(bytes) && packets_per_write > 0 => {
                Some(Command::Stream { waves, bytes, packets_per_write })
            }
            3 => Some(Command::Stop),
            KIND_DOWN if load_is_valid(load) => Some(Command::Down(load)),
            KIND_UP if load_is_valid(load) => Some(Command::Up(load)),
            KIND_SUM if load_is_valid(load) => Some(Command::Sum(load)),
            _ => None,
        }
    }
}

/// Whether an answer may have this many bytes of payload: whole f64s, at least one, under the
/// limit.
pub(crate) fn bytes_are_valid(bytes: usize) -> bool {
    bytes > 0 && bytes <= ANSWER_PAYLOAD_BYTES_MAX && bytes.is_multiple_of(ELEMENT_BYTES)
}

/// Whether there is something to send, in packets of whole elements that are not too long.
pub(crate) fn load_is_valid(load: Load) -> bool {
    let Load { packet_bytes, packets } = load;
    let is_length = packet_bytes > 0 && packet_bytes.is_multiple_of(ELEMENT_BYTES);
    is_length && packet_bytes <= BULK_PACKET_BYTES_MAX && packets > 0
}

/// Header of the answer to a wave.
pub(crate) fn answer_header(bytes: usize, wave: u64) -> [u8; HEADER_BYTES] {
    header(bytes, KIND_ANSWER, wave)
}

fn header(bytes: usize, kind: u32, wave: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    header[4..8].copy_from_slice(&kind.to_le_bytes());
    header[8..].copy_from_slice(&wave.to_le_bytes());
    header
}

/// Adds the f64 array `addend` into `sum`, element by element. Both are little-endian bytes; the
/// compiler makes vector additions of this loop.
pub(crate) fn add(sum: &mut [u8], addend: &[u8]) {
    let (sum, _) = sum.as_chunks_mut::<ELEMENT_BYTES>();
    let (addend, _) = addend.as_chunks::<ELEMENT_BYTES>();
    for (sum, addend) in sum.iter_mut().zip(addend) {
        *sum = (f64::from_le_bytes(*sum) + f64::from_le_bytes(*addend)).to_le_bytes();
    }
}

/// The whole answer of one leaf to wave 0; [`renumber`] makes another wave's of it.
pub(crate) fn leaf_answer(rank: usize, bytes: usize) -> Vec<u8> {
    let mut packet = answer_header(bytes, 0).to_vec();
    for element in 0..bytes / ELEMENT_BYTES {
        packet.extend_from_slice(&leaf_value(rank, element).to_le_bytes());
    }
    packet
}

/// Turns a leaf's answer into its answer to `wave`: the number in the header and the first element.
pub(crate) fn renumber(packet: &mut [u8], rank: usize, wave: u64) {
    packet[8..HEADER_BYTES].copy_from_slice(&wave.to_le_bytes());
    let first = leaf_value(rank, 0) + (wave % WAVE_PERIOD) as f64;
    packet[HEADER_BYTES..HEADER_BYTES + ELEMENT_BYTES].copy_from_slice(&first.to_le_bytes());
}

/// An element of what a leaf sends.
pub(crate) fn leaf_value(rank: usize, element: usize) -> f64 {
    (rank + 1 + element % ELEMENT_PERIOD) as f64
}

/// An element of the sum over all leaves.
pub(crate) fn sum_value(leaves: usize, element: usize) -> f64 {
    (leaves * (leaves + 1) / 2 + leaves * (element % ELEMENT_PERIOD)) as f64
}

/// What the root must receive, computed without the tree.
pub(crate) struct ExpectedSum {
    leaves: usize,
    payload: Vec<u8>,
}

impl ExpectedSum {
    /// For a tree of that many leaves and answers of that many bytes.
    pub(crate) fn new(leaves: usize, bytes: usize) -> ExpectedSum {
        let elements = 0..bytes / ELEMENT_BYTES;
        let value = |element: usize| sum_value(leaves, element).to_le_bytes();
        let payload = elements.flat_map(value).collect();
        ExpectedSum { leaves, payload }
    }

    /// Compares every element of the sum that the tree gave.
    pub(crate) fn check(&mut self, payload: &[u8], wave: u64) -> Result<(), Error> {
        let leaves = self.leaves as f64;
        let ranks = (self.leaves * (self.leaves + 1) / 2) as f64;
        let first = ranks + leaves * (wave % WAVE_PERIOD) as f64;
        self.payload[..ELEMENT_BYTES].copy_from_slice(&first.to_le_bytes());
        if payload == self.payload {
            return Ok(());
        }
        let (found, _) = payload.as_chunks::<ELEMENT_BYTES>();
        let (expected, _) = self.payload.as_chunks::<ELEMENT_BYTES>();
        let element = found.iter().zip(expected).position(|(found, expected)| found != expected);
        let Some(element) = element else { return Err(Error::WrongPacket { wave }) };
        Err(Error::WrongSum {
            wave,
            element,
            expected: f64::from_le_bytes(expected[element]),
            found: f64::from_le_bytes(found[element]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_comes_back_out_of_its_packet() {
        let commands = [
            Command::RoundTrip { wave: 7, bytes: 64 },
            Command::Stream { waves: 1 << 40, bytes: 65_536, packets_per_write: 64 },
            Command::Down(Load { packet_bytes: 1 << 28, packets: 1 }),
            Command::Up(Load { packet_bytes: 1 << 20, packets: 256 }),
            Command::Sum(Load { packet_bytes: 1 << 28, packets: 1 }),
            Command::Stop,
        ];
        for command in commands {
            assert_eq!(Command::decode(&command.encode()), Some(command));
        }
        assert_eq!(Command::decode(&[0; COMMAND_BYTES]), None);
        let empty = Command::RoundTrip { wave: 7, bytes: 0 };
        assert_eq!(Command::decode(&empty.encode()), None);
    }

    #[test]
    fn the_sum_of_all_leaves_is_the_expected_one() {
        let (leaves, bytes, wave) = (5, 16_392, 3);
        let mut sum = leaf_answer(0, bytes);
        renumber(&mut sum, 0, wave);
        for rank in 1..leaves {
            let mut answer = leaf_answer(rank, bytes);
            renumber(&mut answer, rank, wave);
            add(&mut sum[HEADER_BYTES..], &answer[HEADER_BYTES..]);
        }
        let mut expected = ExpectedSum::new(leaves, bytes);
        expected.check(&sum[HEADER_BYTES..], wave).unwrap();
        let stale = expected.check(&sum[HEADER_BYTES..], wave + 1);
        assert!(matches!(stale, Err(Error::WrongSum { element: 0, .. })));
        sum[HEADER_BYTES + 8 * 100] ^= 1;
        let flipped = expected.check(&sum[HEADER_BYTES..], wave);
        assert!(matches!(flipped, Err(Error::WrongSum { element: 100, .. })));
    }
}
