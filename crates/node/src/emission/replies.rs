//! Answers packets of the front-end within filters that reply.

use sapwood_filter::Emitter;
use sapwood_packet::{Header, Order, PacketRef, ValuesRef};

use crate::streams::stream::Stream;
use crate::transform::emissions::shared;
use crate::transform::pending_replies::{REPLIES_PER_INPUT, Replies};
use crate::turn::Turn;

impl Stream {
    /// Has what a filter has made of a wave go down, and keeps what cannot go at once. The emitter
    /// is empty then.
    pub(crate) fn answer_down(&mut self, header: Header, made: &mut Emitter, turn: &mut Turn) {
        let count = made.emissions().filter(|(emission, _)| emission.is_reply).count();
        if count == 0 {
            return;
        }
        let header = Header { order: Order::Direct, ..header };
        if count <= REPLIES_PER_INPUT && self.replies.is_empty() && !self.is_choked() {
            for (emission, values) in made.emissions().filter(|(emission, _)| emission.is_reply) {
                self.send_reply(Header { tag: emission.tag, ..header }, values, turn);
            }
            return;
        }
        let replies = Replies { header, made: core::mem::take(made), done: 0 };
        self.replies.push_back(replies);
        self.go_on_replying(turn);
    }

    /// Sends down what waits of a stream's replies, as far as may be now. Gives whether none is
    /// left.
    pub(crate) fn go_on_replying(&mut self, turn: &mut Turn) -> bool {
        let mut left = REPLIES_PER_INPUT;
        while let Some(mut replies) = self.replies.pop_front() {
            let Replies { header, made, done } = &mut replies;
            for (emission, values) in made.emissions_from(*done) {
                if left == 0 || self.is_choked() {
                    break;
                }
                *done += 1;
                if emission.is_reply {
                    left -= 1;
                    self.send_reply(Header { tag: emission.tag, ..*header }, values, turn);
                }
            }
            if replies.made.emissions_from(replies.done).next().is_some() {
                self.replies.push_front(replies);
                break;
            }
            if turn.emitter.is_empty() {
                // Its memory serves the next wave.
                replies.made.clear();
                turn.emitter = replies.made;
            }
        }
        let is_done = self.replies.is_empty();
        if !is_done && !self.is_choked() {
            self.yields = true;
            turn.yields_until = Some(turn.now);
        }
        is_done
    }

    fn send_reply(&mut self, header: Header, values: ValuesRef<'_>, turn: &mut Turn) {
        let (format, body) = (values.format(), values.body());
        match shared(body) {
            Ok(shared) => {
                let packet = PacketRef { header, format, body, ..PacketRef::default() };
                self.send_down(packet, shared.as_ref(), turn);
            }
            Err(lacking) => self.fail_down(&lacking.into(), turn),
        }
    }

    /// Whether some child has as much before it as it may have.
    fn is_choked(&self) -> bool {
        let window = self.request.window_bytes as usize;
        self.slots.iter().any(|slot| slot.alive && slot.down.waiting_bytes() >= window)
    }
}
