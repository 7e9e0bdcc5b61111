//! What disturbs a tree on purpose: back-ends that flood, and a filter that stalls.
//!
//! Owns both ends of the order to flood: the tags, what a back-end does until it is told to stop,
//! and what it then says of it. Also owns the filter [`STALL`], which `sapwood node` knows beside
//! the others. The measuring is with `flood`.

use std::hint::spin_loop;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sapwood::{
    BackEnd, Emitter, Error, Filter, FilterError, Received, Registry, StreamId, Tag, ValuesRef,
    WaveRef,
};

use super::leaf::TAG;

/// Asks for packets on the stream that it comes on, as fast as they can be sent: one array with the
/// bytes of a packet.
pub(super) const FLOOD: Tag = TAG + 2;

/// Ends the flood. It comes on another stream, and is answered there by one array: how many packets
/// were sent, and how many of these were dropped where they were sent.
pub(super) const STOP: Tag = TAG + 3;

/// Asks for nothing but the use of a core, until [`STOP`]: what a flood costs the others on a
/// machine of few cores even if none of it reached them.
pub(super) const BURN: Tag = TAG + 4;

/// How long a core is used between two looks at what has come.
const BURN_TIME: Duration = Duration::from_micros(50);

/// Packets between two looks at what has come.
const BURST: usize = 64;

/// The filter that sleeps as many milliseconds in each wave as its parameter says.
pub(super) const STALL: &str = "bench-stall";

/// Longest stall, in milliseconds.
const STALL_MS_MAX: u32 = 1_000;

/// Adds the filter to those that a process can make.
pub fn register(registry: Registry) -> Registry {
    registry.with(STALL, make_stall)
}

fn make_stall(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    let refused = FilterError::Parameters { name: STALL, takes: "%ud, milliseconds up to 1000" };
    match parameters.scalar::<u32>(0) {
        Ok(milliseconds) if milliseconds <= STALL_MS_MAX => {
            Ok(Box::new(Stall(Duration::from_millis(milliseconds.into()))))
        }
        _ => Err(refused),
    }
}

struct Stall(Duration);

impl Filter for Stall {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        sleep(self.0);
        let Some(first) = wave.packets.first() else { return Ok(()) };
        out.emit(first.header.tag, wave.contributors.len());
        Ok(())
    }
}

/// Sends packets of this number of bytes on a stream until it is told to stop or the stream is
/// closed.
pub(super) fn flood(back_end: &mut BackEnd, received: &Received) -> Result<(), Error> {
    let bytes = received.values().scalar::<u64>(0)?;
    let load = vec![0_u8; usize::try_from(bytes).unwrap_or(0)];
    let stream = received.stream;
    let mut sent = 0_u64;
    loop {
        for _ in 0..BURST {
            match back_end.send(stream, TAG, &load[..]) {
                Ok(()) => sent += 1,
                Err(Error::Misuse(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let Some(order) = back_end.try_recv()? else { continue };
        if order.tag() == STOP {
            return stopped(back_end, stream, order.stream, sent);
        }
    }
}

/// Uses a core until it is told to stop.
pub(super) fn burn(back_end: &mut BackEnd, received: &Received) -> Result<(), Error> {
    loop {
        let until = Instant::now() + BURN_TIME;
        while Instant::now() < until {
            spin_loop();
        }
        let Some(order) = back_end.try_recv()? else { continue };
        if order.tag() == STOP {
            return stopped(back_end, received.stream, order.stream, 0);
        }
    }
}

/// Says what a flood has been.
pub(super) fn stopped(
    back_end: &mut BackEnd,
    flooded: StreamId,
    answer_on: StreamId,
    sent: u64,
) -> Result<(), Error> {
    let dropped = back_end.dropped(flooded);
    back_end.send(answer_on, STOP, [sent, dropped])
}
