//! What a member gets that was sent to one virtual node: told to the storm as an answer to the
//! operation of that number, whether or not the storm has asked for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sapwood::{Group, Rank, RankSet};
use sapwood_command_line::exit::Failure;
use serde_json::json;

use super::calls::Called;
use super::collective::Collective;
use super::member::say;
use super::oracle::DEADLINE;
use super::value::{Ask, Digest};

/// Values that are to come, and those that have.
#[derive(Debug, Default)]
pub(super) struct Mail {
    awaited: BTreeMap<u64, Awaited>,
    come: BTreeSet<u64>,
}

#[derive(Debug)]
struct Awaited {
    called: Called,
    root: Rank,
}

impl Mail {
    /// Takes an operation in which another member sends a value to this one; says whether it is
    /// one.
    pub(super) fn expects(&mut self, ask: &Ask, group: &Group) -> bool {
        if ask.collective != Collective::Send || group.names().contains(ask.root) {
            return false;
        }
        if !self.come.contains(&ask.number) {
            let awaited = Awaited { called: Called::now(group), root: ask.root };
            self.awaited.insert(ask.number, awaited);
        }
        true
    }

    /// Says what has come, and what has not come in time.
    pub(super) fn answer(&mut self, group: &Group) -> Result<(), Failure> {
        loop {
            // An error is that there is nothing, or that the member has ended, as its calls tell.
            let Ok(delivery) = group.receive(Duration::ZERO) else { break };
            let number = delivery.tag;
            if !self.come.insert(number) {
                say(&json!({ "again": number }))?;
                continue;
            }
            let awaited = self.awaited.remove(&number);
            let called = awaited.map_or_else(|| Called::now(group), |awaited| awaited.called);
            let mut line = called.told(number, &delivery.sender_names, &[]);
            line["value"] = Digest::of_bytes(delivery.bytes()).told();
            say(&line)?;
        }
        let now = Instant::now();
        let is_late = |awaited: &Awaited| now.duration_since(awaited.called.began) >= DEADLINE;
        let late: Vec<u64> =
            self.awaited.iter().filter(|entry| is_late(entry.1)).map(|entry| *entry.0).collect();
        for number in late {
            let Some(Awaited { called, root }) = self.awaited.remove(&number) else { continue };
            let missing = (RankSet::range(root, root), "the deadline passed".to_string());
            say(&called.told(number, &RankSet::new(), &[missing]))?;
        }
        Ok(())
    }
}
