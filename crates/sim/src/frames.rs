//! Frames as text, for the log.

use alloc::string::String;

use sapwood_packet::{Order, Slab};
use sapwood_wire::{Control, Frame, decode, frame_length};

use crate::world::World;

impl World {
    /// Writes a line for every frame whose last byte has been written to a wire.
    pub(crate) fn tell_frames(&mut self, wire: usize, side: usize) {
        if !self.log.is_on() {
            return;
        }
        loop {
            let end = &mut self.wires[wire].ends[side];
            let length = match frame_length(&end.unread_frame) {
                Ok(Some(length)) if length <= end.unread_frame.len() => length,
                _ => return,
            };
            let frame = Slab::copy_of(&end.unread_frame[..length]);
            end.unread_frame.drain(..length);
            let (process, other) = (end.process, self.wires[wire].ends[1 - side].process);
            let to = self.processes[other].name();
            let text = describe(frame.as_bytes());
            self.note(process, || alloc::format!("-> {to:<8} {text}"));
        }
    }
}

fn describe(frame: &[u8]) -> String {
    match decode(frame) {
        Ok(Frame::Packet(packet)) => {
            let header = packet.header;
            let flag = |is_set: bool, word: &'static str| if is_set { word } else { "" };
            let chunk = packet.chunk.map_or_else(String::new, |chunk| {
                alloc::format!(" from byte {} of {}", chunk.offset, chunk.total)
            });
            alloc::format!(
                "packet: stream {} wave {}{} of '{}'{}{}{}{}{chunk}, {} bytes",
                header.stream,
                header.wave,
                if packet.more_waves > 0 {
                    alloc::format!(" and {} more", packet.more_waves)
                } else {
                    String::new()
                },
                packet.contributors.to_set(),
                flag(header.ends_wave, " ends it"),
                flag(header.late, " late"),
                flag(header.void, " void"),
                order(header.order),
                packet.body.len(),
            )
        }
        Ok(Frame::Control(Control::Open(request))) => {
            alloc::format!("open stream {} from wave {}", request.stream, request.first_wave)
        }
        Ok(Frame::Control(control)) => alloc::format!("{control:?}"),
        Err(error) => alloc::format!("no frame: {error}"),
    }
}

/// The order of a packet, where it is not that of waves.
fn order(order: Order) -> String {
    match order {
        Order::Wave => String::new(),
        Order::Single(number) => alloc::format!(" single {number}"),
        Order::Part(index) => alloc::format!(" part {index}"),
        Order::Direct => " direct".into(),
        Order::Last => " last".into(),
    }
}
