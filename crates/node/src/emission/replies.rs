//! Answers packets of the front-end within filters that reply.

use sapwood_filter::Emitter;
use sapwood_packet::{Header, Order, PacketRef, ValuesRef};

use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::emissions::shared;
use crate::transform::replies::{REPLIES_PER_INPUT, Replies};
use crate::turn::Turn;

impl Streams {
    /// Has what a filter has made of a wave go down, and keeps what cannot go at once. The emitter
    /// is empty then.
    pub(crate) fn answer_down(
        &mut self,
        at: usize,
        header: Header,
        made: &mut Emitter,
        turn: &mut Turn,
    ) {
        let count = made.emissions().filter(|(emission, _)| emission.is_reply).count();
        if count == 0 {
            return;
        }
        let header = Header { order: Order::Direct, ..header };
        let stream = self.at(at);
        if count <= REPLIES_PER_INPUT && stream.replies.is_empty() && !stream.is_choked() {
            for (emission, values) in made.emissions().filter(|(emission, _)| emission.is_reply) {
                self.at(at).send_reply(Header { tag: emission.tag, ..header }, values, turn);
            }
            return;
        }
        let replies = Replies { header, made: core::mem::take(made), done: 0 };
        self.at(at).replies.push_back(replies);
        self.go_on_replying(at, turn);
    }

    /// Sends down what waits of a stream's replies, as far as may be now. Gives whether none is
    /// left.
    pub(crate) fn go_on_replying(&mut self, at: usize, turn: &mut Turn) -> bool {
        let mut left = REPLIES_PER_INPUT;
        while let Some(mut replies) = self.at(at).replies.pop_front() {
            let Replies { header, made, done } = &mut replies;
            for (emission, values) in made.emissions_from(*done) {
                if left == 0 || self.at(at).is_choked() {
                    break;
                }
                *done += 1;
                if emission.is_reply {
                    left -= 1;
                    self.at(at).send_reply(Header { tag: emission.tag, ..*header }, values, turn);
                }
            }
            if replies.made.emissions_from(replies.done).next().is_some() {
                self.at(at).replies.push_front(replies);
                break;
            }
            if turn.emitter.is_empty() {
                // Its memory serves the next wave.
                replies.made.clear();
                turn.emitter = replies.made;
            }
        }
        let stream = self.at(at);
        let is_done = stream.replies.is_empty();
        if !is_done && !stream.is_choked() {
            stream.yields = true;
            self.yields_until = Some(turn.now);
        }
        is_done
    }
}

impl Stream {
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
