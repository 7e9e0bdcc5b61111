//! The front-end's half of pushing: one source for all hosts, and one stream down to them.
//!
//! All members of the data stream wait for the slowest among them. One that is given up therefore
//! has to leave it: the others get a new stream, say what they lack, and it goes on from there.

use sapwood::{Answer, Network, Rank, RankSet, Stream, WaveRule};

use super::protocol::Message;
use super::source::{Source, Step};
use sapwood_command_line::exit::Failure;
use sapwood_hosts::unanswered::said;

/// Messages that are sent before the network has its turn.
const STEPS_MAX: usize = 16;

/// The front-end of a push.
pub(super) struct Push {
    pub(super) source: Source,
    pub(super) data: Stream,
    /// Hosts that have not said yet what they lack.
    awaited: RankSet,
    /// Hosts that do not know the whole manifest, and how much of it the least does.
    behind: Option<(RankSet, u64)>,
    is_serving: bool,
}

/// The stream for data.
pub(super) fn open_data(network: &Network, members: RankSet) -> Result<Stream, Failure> {
    let members = sapwood::Communicator::new(members);
    Ok(network.stream(&members).wave(WaveRule::Immediate).open()?)
}

impl Push {
    pub(super) fn begin(mut source: Source, data: Stream) -> Self {
        let members = data.members().ranks().clone();
        source.announce(members.clone(), 0);
        Self { source, data, awaited: members, behind: None, is_serving: false }
    }

    /// Each host that is named will say once more what is lacking, on this stream if there is a
    /// new one.
    pub(super) fn begin_round(&mut self, ranks: RankSet, data: Option<Stream>) {
        if let Some(data) = data {
            self.data = data;
        }
        self.source.begin_round();
        (self.awaited, self.behind, self.is_serving) = (ranks, None, false);
    }

    pub(super) fn lose(&mut self, ranks: &RankSet) {
        self.source.lose(ranks);
        self.awaited.subtract(ranks.as_ref());
        if let Some((behind, _)) = &mut self.behind {
            behind.subtract(ranks.as_ref());
        }
    }

    /// Takes what a receiver says.
    pub(super) fn take(&mut self, answer: &Answer) {
        let (Some(packet), Some(rank)) = (&answer.packet, answer.contributors.as_ref().first())
        else {
            return;
        };
        match Message::decode(packet.tag(), packet.values()) {
            Some(Message::Offer { entry, length, digest }) => {
                self.source.offer(rank, entry, length, digest);
            }
            Some(Message::Ready { known, lacking }) => self.hear_ready(rank, known, lacking),
            _ => {}
        }
    }

    fn hear_ready(&mut self, rank: Rank, known: u64, lacking: Vec<(u64, u64)>) {
        if !self.awaited.contains(rank) {
            return;
        }
        self.awaited.subtract(RankSet::range(rank, rank).as_ref());
        if known <= self.source.found.manifest.len() {
            let (ranks, least) = self.behind.get_or_insert((RankSet::new(), known));
            ranks.insert(rank);
            *least = known.min(*least);
        } else {
            self.source.want(rank, lacking);
        }
    }

    /// Sends what there is room for. Gives whether there is more to do at once.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn work(&mut self) -> Result<bool, Failure> {
        for _ in 0..STEPS_MAX {
            if !self.is_serving && self.awaited.is_empty() {
                match self.behind.take() {
                    Some((ranks, known)) if !ranks.is_empty() => {
                        self.awaited = ranks.clone();
                        self.source.announce(ranks, known);
                    }
                    _ => {
                        self.source.serve();
                        self.is_serving = true;
                    }
                }
            }
            if !self.data.has_room().unwrap_or(false) {
                return Ok(false);
            }
            match self.source.step() {
                Step::Say(to, message) => {
                    let (tag, values) = message.encode();
                    let everybody = self.data.members();
                    said(match to == *everybody.ranks() {
                        true => self.data.broadcast(tag, values),
                        false => self.data.send_to_ranks(&to, tag, values),
                    })?;
                }
                Step::Busy => {}
                Step::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }
}
