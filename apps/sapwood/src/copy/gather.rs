//! The front-end's half of gathering: a receiver for each host, which puts what comes into a folder
//! of that host's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sapwood::{Answer, Rank, RankSet, Stream};

use super::protocol::{Complaints, Message, NOTHING_MORE, State, Terms};
use super::receiver::{Receiver, Step};
use super::results::Results;
use crate::exit::Failure;
use crate::run::substitute;

/// Steps of one receiver before the others have their turn.
const STEPS_MAX: usize = 16;

/// The front-end of a gathering.
pub(super) struct Gather {
    pub(super) data: Stream,
    hosts: Vec<String>,
    names: Vec<Vec<u8>>,
    destination: PathBuf,
    terms: Terms,
    substitutes: bool,
    receivers: BTreeMap<Rank, Receiver>,
    /// Those who may have something to do.
    busy: BTreeSet<Rank>,
    /// Those whose outcome has been taken into account.
    settled: RankSet,
    /// Those who have been told that nothing more is wanted.
    refused: RankSet,
    /// Those from whom nothing more comes.
    gone: RankSet,
    steps: u64,
}

impl Gather {
    pub(super) fn begin(
        data: Stream,
        hosts: Vec<String>,
        names: Vec<Vec<u8>>,
        destination: PathBuf,
        terms: Terms,
        substitutes: bool,
    ) -> Self {
        // What goes into a host's own folder has the name that it has there.
        let terms = Terms { is_into: true, is_exact: false, ..terms };
        let (receivers, busy) = (BTreeMap::new(), BTreeSet::new());
        Self {
            data,
            hosts,
            names,
            destination,
            terms,
            substitutes,
            receivers,
            busy,
            settled: RankSet::new(),
            refused: RankSet::new(),
            gone: RankSet::new(),
            steps: 0,
        }
    }

    /// Takes what a source says.
    pub(super) fn take(&mut self, answer: &Answer) {
        let (Some(packet), Some(rank)) = (&answer.packet, answer.contributors.as_ref().first())
        else {
            return;
        };
        let Some(message) = Message::decode(packet.tag(), packet.values()) else { return };
        let Some(host) = self.hosts.get(rank as usize) else { return };
        let (destination, terms) = (&self.destination, self.terms);
        let name = |name: &Vec<u8>| match std::str::from_utf8(name) {
            Ok(text) if self.substitutes => substitute(text, host, rank as usize).into_bytes(),
            _ => name.clone(),
        };
        let names = &self.names;
        let receiver = self.receivers.entry(rank).or_insert_with(|| {
            let folder = destination.join(host);
            // Where it cannot be made, the receiver says why nothing can be put there.
            let _ = std::fs::create_dir_all(&folder);
            Receiver::new(&folder, &names.iter().map(name).collect::<Vec<_>>(), terms)
        });
        receiver.take(&message);
        self.busy.insert(rank);
    }

    /// Nothing more comes from these hosts.
    pub(super) fn lose(&mut self, ranks: &RankSet) {
        self.gone.union_with(ranks.as_ref());
    }

    /// How many steps were done.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Does what can be done. Gives whether there is more to do at once.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn work(&mut self) -> Result<bool, Failure> {
        for rank in self.busy.clone() {
            let Some(receiver) = self.receivers.get_mut(&rank) else { continue };
            for _ in 0..STEPS_MAX {
                if !self.data.has_room().unwrap_or(false) {
                    return Ok(false);
                }
                self.steps += 1;
                match receiver.step() {
                    Step::Say(message) => {
                        let (tag, values) = message.encode();
                        self.data.send_to(rank, tag, values)?;
                    }
                    Step::Busy => {}
                    Step::Nothing => {
                        self.busy.remove(&rank);
                        // The host would wait for a word, or send what nobody takes.
                        if receiver.is_over() && !self.refused.contains(rank) {
                            self.refused.insert(rank);
                            let ready = Message::Ready { known: NOTHING_MORE, lacking: Vec::new() };
                            let (tag, values) = ready.encode();
                            self.data.send_to(rank, tag, values)?;
                        }
                        break;
                    }
                }
            }
        }
        Ok(!self.busy.is_empty())
    }

    /// Adds what the receivers have to say of hosts that have sent everything. Gives whether all
    /// of these are done.
    pub(super) fn settle(&mut self, results: &mut Results) -> bool {
        let mut are_done = true;
        for (&rank, receiver) in &self.receivers {
            if self.settled.contains(rank) || results.outcome(rank).is_none() {
                continue;
            }
            if !receiver.is_over() {
                if self.gone.contains(rank) && !self.busy.contains(&rank) {
                    results.withdraw(rank, "was lost before everything had come");
                } else {
                    are_done = false;
                }
                continue;
            }
            let outcome = receiver.outcome();
            let mut complaints = outcome.complaints;
            if outcome.state == State::Lacking {
                complaints = Complaints::default();
                let folder = self.destination.join(&self.hosts[rank as usize]);
                complaints.add(folder.display().to_string(), "did not arrive whole");
            }
            results.complain(rank, &complaints);
            self.settled.insert(rank);
        }
        are_done
    }

    /// Bytes that came, and that will have come, as far as that is known.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let each = self.receivers.values();
        each.fold((0, 0), |(there, planned), receiver| {
            let planned = planned.saturating_add(receiver.planned_bytes());
            (there + receiver.bytes_there(), planned)
        })
    }

    /// Ends what is not over.
    pub(super) fn abandon(&mut self) {
        for receiver in self.receivers.values_mut() {
            receiver.abandon();
        }
    }
}
