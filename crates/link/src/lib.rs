//! One connection between two processes, without its I/O.
//!
//! Bytes that come become frames in the [`Inbox`]; frames that leave become bytes in the
//! [`Outbox`], control messages first. Each stream has a [`Gate`] per connection and direction,
//! which holds frames back until the receiver grants credit. A [`Sender`] is a gate whose frames
//! are held in a [`RetransmitBuffer`] until they are acknowledged, to be sent again over the next
//! connection. Packets longer than a frame are [`cut`] into chunks and put together again by
//! [`Assemblies`]. Several waves may share one frame, a *run*, see [`Outbox::extend_run`].
//!
//! Nothing here knows which position the other process has in a network, nor what its packets are
//! for. All lengths and all credit are in bytes of encoded frames, unless a function says
//! otherwise.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod assembly;
mod chunk;
mod gate;
mod inbox;
mod outbox;
mod retransmit;
mod sender;
mod sequence;
mod spares;

pub use assembly::{Assembled, Assemblies};
pub use chunk::cut;
pub use gate::Gate;
pub use inbox::{Filled, Inbox, LARGE_FRAME_BYTES, MemoryAdvice, Pool};
pub use outbox::{EncodedFrame, EndedRun, GATHER_PARTS_MAX, Outbox, SHARED_BODY_BYTES};
pub use retransmit::RetransmitBuffer;
pub use sender::{Sender, WhenFull};
pub use sequence::{END, FrameInfo, Position, SequenceSpace, bounds_of, has_reached};
pub use spares::{Spares, shorten};
