//! A link in shared memory whose peer may write anything over that memory.
//!
//! As long as only its ends use it, the link gives what two queues give. Once the input has
//! written to the memory, a call gives bytes, "would block" or "invalid data" and nothing else; no
//! panic, no signal, no endless loop, and another link is not touched.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::fs::FileExt;

use sapwood_transport::{Link, RING_BYTES, SHARED_LINK_BYTES};

use crate::Target;
use crate::source::Source;

/// Links in shared memory.
pub const TARGET: Target = Target { name: "shm_ring", run, repair: None };

/// Where the ends of both rings tell their positions and whether they wait.
const CONTROL_BYTES: usize = 512;
const STEPS_MAX: usize = 200;

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let (one, two, memory) = Link::shared_pair().expect("there are descriptors left");
    let mut scene = Scene {
        ends: [one, two],
        queues: [VecDeque::new(), VecDeque::new()],
        is_closed: [false; 2],
        next: 0,
        memory: memory.into(),
        is_scribbled: false,
    };
    for _ in 0..STEPS_MAX {
        if source.is_empty() {
            break;
        }
        scene.step(&mut source);
    }
}

struct Scene {
    ends: [Link; 2],
    /// What each end has written and the other has not read.
    queues: [VecDeque<u8>; 2],
    is_closed: [bool; 2],
    next: u8,
    memory: File,
    is_scribbled: bool,
}

impl Scene {
    fn step(&mut self, source: &mut Source<'_>) {
        let what = source.byte();
        let end = usize::from(what & 1);
        match what >> 1 & 7 {
            0 | 1 => self.write(end, source),
            2 | 3 => self.read(end, source),
            4 => {
                let must_not_wait = self.ends[end].announce_wait();
                let expected = !self.queues[1 - end].is_empty() || self.is_closed[1 - end];
                assert!(self.is_scribbled || must_not_wait == expected, "a wake-up would be lost");
            }
            5 => {
                self.ends[end].release_buffers();
            }
            6 => {
                self.is_closed[end] = true;
                // The socket's error, if the other has closed as well.
                let _ = self.ends[end].close_writing();
            }
            _ => self.scribble(source),
        }
    }

    fn write(&mut self, end: usize, source: &mut Source<'_>) {
        if self.is_closed[end] {
            return;
        }
        let size = size(source);
        let bytes: Vec<u8> = (0..size).map(|at| self.next.wrapping_add(at as u8)).collect();
        let (first, rest) = bytes.split_at(source.below(size.min(256)));
        let slices = [IoSlice::new(first), IoSlice::new(rest)];
        let taken = self.ends[end].write_vectored(&slices);
        let taken = self.bytes_of(taken);
        let room = RING_BYTES - self.queues[end].len().min(RING_BYTES);
        assert!(self.is_scribbled || taken == size.min(room), "{taken} of {size}, {room} free");
        assert!(taken <= size);
        self.queues[end].extend(&bytes[..taken]);
        self.next = self.next.wrapping_add(taken as u8);
    }

    fn read(&mut self, end: usize, source: &mut Source<'_>) {
        let mut buffer = vec![0; size(source)];
        let count = self.ends[end].read(&mut buffer);
        let count = self.bytes_of(count);
        assert!(count <= buffer.len());
        if self.is_scribbled {
            return;
        }
        let queue = &mut self.queues[1 - end];
        assert_eq!(count, buffer.len().min(queue.len()));
        assert!(queue.drain(..count).eq(buffer[..count].iter().copied()), "other bytes came");
        assert_eq!(self.ends[end].has_buffered(), !self.queues[1 - end].is_empty());
    }

    /// Writes to the memory as a peer could.
    fn scribble(&mut self, source: &mut Source<'_>) {
        let place = source.byte();
        let at = match place % 4 {
            0 => usize::try_from(source.number()).unwrap_or(0) % SHARED_LINK_BYTES,
            _ => usize::from(place / 4) * 8 % CONTROL_BYTES,
        };
        let number = source.number();
        // Near to what is there, or anything.
        let mut before = [0; 8];
        let at = at.min(SHARED_LINK_BYTES - 8) as u64;
        self.memory.read_exact_at(&mut before, at).expect("the memory is there");
        let near = u64::from_le_bytes(before).wrapping_add(number).wrapping_sub(16);
        let bytes = if place & 128 == 0 { near } else { number }.to_le_bytes();
        self.memory.write_all_at(&bytes, at).expect("the memory is there");
        assert!(self.memory.set_len(0).is_err(), "it is sealed");
        self.is_scribbled = true;
        let (mut good, mut other, _) = Link::shared_pair().expect("there are descriptors left");
        let mut buffer = [0; 8];
        assert_eq!(good.write_vectored(&[IoSlice::new(b"good")]).ok(), Some(4));
        assert_eq!(other.read(&mut buffer).ok(), Some(4));
    }

    /// A call's count of bytes; none where it was refused, as it may be.
    fn bytes_of(&self, outcome: io::Result<usize>) -> usize {
        let error = match outcome {
            Ok(bytes) => return bytes,
            Err(error) => error.kind(),
        };
        let is_permitted =
            error == ErrorKind::WouldBlock || self.is_scribbled && error == ErrorKind::InvalidData;
        assert!(is_permitted, "{error:?}");
        0
    }
}

/// A size up to more than a ring.
fn size(source: &mut Source<'_>) -> usize {
    match source.byte() {
        small @ 0..128 => usize::from(small),
        large => usize::from(large - 128) * (RING_BYTES / 100) + usize::from(source.byte()),
    }
}
