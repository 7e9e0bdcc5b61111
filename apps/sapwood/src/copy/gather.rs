//! The front-end's half of gathering: a receiver for each host, which puts what comes into a folder
//! of that host's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sapwood::{Answer, Rank, RankSet, Stream};

use super::protocol::{Complaints, Message, State, Terms};
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
        let settled = RankSet::new();
        Self { data, hosts, names, destination, terms, substitutes, receivers, busy, settled }
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
                match receiver.step() {
                    Step::Say(message) => {
                        let (tag, values) = message.encode();
                        self.data.send_to(rank, tag, values)?;
                    }
                    Step::Busy => {}
                    Step::Nothing => {
                        self.busy.remove(&rank);
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
                are_done = false;
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
