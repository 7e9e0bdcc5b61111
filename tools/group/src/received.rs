//! What has come by `publish` and `send`: of each sender which counts, none twice, and each right.

use std::collections::BTreeMap;

use sapwood::{Delivery, Rank, RankSet};
use serde_json::{Value, json};

use crate::operation::made;

/// Of one sender.
#[derive(Debug, Default)]
struct FromSender {
    counts: RankSet,
    doubled: u64,
    wrong: u64,
}

/// All that has come.
#[derive(Debug, Default)]
pub(crate) struct ReceivedValues {
    senders: BTreeMap<Rank, FromSender>,
    unreadable: u64,
    texts: Vec<String>,
}

/// How many texts are kept.
const TEXTS_MAX: usize = 1000;

impl ReceivedValues {
    /// Takes one value.
    pub(crate) fn take(&mut self, delivery: &Delivery) {
        let bytes = delivery.bytes();
        if delivery.tag == 1 {
            self.texts.truncate(TEXTS_MAX - 1);
            self.texts.push(String::from_utf8_lossy(bytes).into_owned());
            return;
        }
        let head = bytes.split_first_chunk::<8>();
        let Some((count, rest)) = head else { return self.unreadable += 1 };
        let Some((name, rest)) = rest.split_first_chunk::<4>() else {
            return self.unreadable += 1;
        };
        let (count, name) = (u64::from_le_bytes(*count), u32::from_le_bytes(*name));
        let sender = self.senders.entry(name).or_default();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        sender.doubled += u64::from(sender.counts.contains(count));
        sender.counts.insert(count);
        sender.wrong += u64::from(rest != made(name ^ count, rest.len()));
    }

    /// As JSON, once.
    pub(crate) fn to_json(&self, lost: u64) -> Value {
        let senders: BTreeMap<String, Value> = self
            .senders
            .iter()
            .map(|(name, sender)| {
                let FromSender { counts, doubled, wrong } = sender;
                let counts = counts.to_string();
                (name.to_string(), json!({ "counts": counts, "doubled": doubled, "wrong": wrong }))
            })
            .collect();
        json!({
            "operation": "received",
            "senders": senders,
            "unreadable": self.unreadable,
            "texts": self.texts,
            "lost": lost,
        })
    }
}
