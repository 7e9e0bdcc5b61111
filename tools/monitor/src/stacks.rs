//! When the front-end asks for call stacks, and which readers get them: by time, once at a
//! standstill, and whenever `sapwood stacks` asks for them.
//!
//! `sapwood stacks` connects to the name of this process and offers a memory file with its hello;
//! it has its answer when the connection is closed:
//!
//! ```text
//!   0  magic        8 bytes  "SWSTACK1"
//!   8  all threads  u32      1 if the stacks of all threads are wanted, else 0
//!  12  reserved     52 bytes 0
//! ```

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use sapwood::RankSet;
use sapwood_report::ENDING_TIME;
use sapwood_report::record::Stacks;
use sapwood_report::stacks::{RankStack, of_ranks};
use sapwood_transport::{TableAccepted, TableListener, TableOffer, TablePeer};

use super::collection::Collection;

/// The name at which `sapwood stacks` asks, before the number of this process.
const NAME: &str = "sapwood-mpi-stacks";
/// Visitors that ask at the same time, at most.
const ASKING_MAX: usize = 64;
/// An answer that does not come within this time does not come.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Of a standstill, this many places are told at once.
const PLACES_MAX: usize = 4;

/// What is wanted of stacks, and what was asked for.
pub(crate) struct StackWatch {
    every: Option<Duration>,
    next: Option<Instant>,
    listener: Option<TableListener>,
    arriving: Vec<TablePeer>,
    waiting: Vec<(TablePeer, File)>,
    /// Since when stacks are on their way, and whether of a standstill.
    asked: Option<(Instant, bool)>,
    /// A question that waits for that.
    wanted: Option<Wanted>,
}

/// What has come.
#[derive(Default)]
pub(crate) struct StackNews {
    /// Whether it is of a standstill.
    pub(crate) is_still: bool,
    /// Lines for the user.
    pub(crate) lines: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    all_threads: bool,
    is_still: bool,
}

impl StackWatch {
    /// Stacks at these times, if any.
    pub(crate) fn new(every: Option<Duration>, collection: &mut Collection) -> Self {
        let listener = TableListener::bind(&format!("{NAME}-{}", std::process::id())).ok();
        // One that is not watched is looked at once in each interval.
        let _ = listener.as_ref().map(|listener| collection.watch(listener));
        Self {
            every,
            next: every.map(|every| Instant::now() + every),
            listener,
            arriving: Vec::new(),
            waiting: Vec::new(),
            asked: None,
            wanted: None,
        }
    }

    /// How long the loop may sleep.
    pub(crate) fn wait(&self, wait: Duration) -> Duration {
        self.next.map_or(wait, |next| wait.min(next.saturating_duration_since(Instant::now())))
    }

    /// Asks for stacks where they are due, and hands out those that have come. `is_still` when a
    /// standstill was told just now.
    pub(crate) fn step(
        &mut self,
        collection: &mut Collection,
        elapsed: Duration,
        is_still: bool,
    ) -> StackNews {
        let mut news = StackNews::default();
        self.accept(collection);
        if let Some(stacks) = collection.take_stacks(elapsed) {
            let is_still = self.asked.take().is_some_and(|(_, is_still)| is_still);
            self.hand_out(&stacks);
            let ending = collection.ending.map(|ending| ending.elapsed());
            if is_still && is_kept(ending, collection.result.still_stacks.is_some()) {
                news.lines = places(&stacks, &collection.absent());
                news.is_still = true;
                collection.result.still_stacks = Some(stacks.clone());
            }
            collection.result.stacks = Some(stacks);
        }
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = self.every.map(|every| now + every);
            self.wanted.get_or_insert_default();
        }
        if is_still {
            self.wanted.get_or_insert_default().is_still = true;
        }
        let is_free = self.asked.is_none_or(|(since, _)| now - since > ANSWER_TIMEOUT);
        if is_free && let Some(wanted) = self.wanted.take() {
            collection.ask_stacks(wanted.all_threads);
            self.asked = Some((now, wanted.is_still));
        }
        news
    }

    /// Takes in the visitors that ask.
    fn accept(&mut self, collection: &mut Collection) {
        while let Some(listener) = &self.listener
            && self.arriving.len() + self.waiting.len() < ASKING_MAX
        {
            match listener.accept() {
                Ok(TableAccepted::Peer(peer)) => {
                    let _ = collection.watch(&peer);
                    self.arriving.push(peer);
                }
                Ok(TableAccepted::ForeignUser(_)) => {}
                Ok(TableAccepted::Empty | TableAccepted::Exhausted) | Err(_) => break,
            }
        }
        for mut peer in std::mem::take(&mut self.arriving) {
            match peer.receive() {
                Ok(None) => self.arriving.push(peer),
                Ok(Some(TableOffer { hello, descriptor, .. })) if hello[..8] == *b"SWSTACK1" => {
                    let wanted = self.wanted.get_or_insert_default();
                    wanted.all_threads |= hello[8] != 0;
                    // It stays readable until it is closed, and is not looked at any more.
                    let _ = collection.unwatch(&peer);
                    self.waiting.push((peer, File::from(descriptor)));
                }
                Ok(Some(_)) | Err(_) => {
                    let _ = collection.unwatch(&peer);
                }
            }
        }
    }

    fn hand_out(&mut self, stacks: &Stacks) {
        let Ok(document) = serde_json::to_vec(stacks) else { return };
        for (_, mut file) in self.waiting.drain(..) {
            // A file that takes no more is the asker's own matter.
            let _ = file.write_all(&document);
        }
    }
}

/// Whether stacks of a standstill take the place of those that are there, if any; the program was
/// told to end this long ago, if at all: its ranks are then where that has found them, or gone.
fn is_kept(ending: Option<Duration>, are_there: bool) -> bool {
    !are_there || ending.is_none_or(|ending| ending >= ENDING_TIME)
}

/// Where ranks are that do not come, the innermost frame first: a line for each place.
fn places(stacks: &Stacks, absent: &RankSet) -> Vec<String> {
    let told = |one: &RankStack| format!("rank {} is in {}", one.ranks, one.frames.join(" < "));
    let mut lines: Vec<String> = of_ranks(stacks, absent).iter().map(told).collect();
    for loss in &stacks.missing {
        let ranks = loss.ranks.parse::<RankSet>().unwrap_or_default();
        if ranks.as_ref().intersects(absent.as_ref()) {
            lines.push(format!("no stack of rank {}: {}", loss.ranks, loss.reason));
        }
    }
    lines.truncate(PLACES_MAX);
    lines
}

#[cfg(test)]
mod tests {
    use sapwood_report::record::StackFrame;

    use super::*;

    #[test]
    fn stacks_of_ranks_that_are_told_to_end_replace_none() {
        assert!(is_kept(None, true) && is_kept(Some(ENDING_TIME), true));
        assert!(is_kept(Some(Duration::ZERO), false));
        assert!(!is_kept(Some(Duration::ZERO), true));
    }

    #[test]
    fn the_places_of_ranks_that_do_not_come_are_told_from_within() {
        let frame = |name: &str, ranks: &str, count, children| StackFrame {
            name: name.into(),
            ranks: ranks.into(),
            count,
            children,
        };
        let below = vec![frame("MPI_Barrier", "0,2", 2, vec![]), frame("sleep", "1", 1, vec![])];
        let stacks = Stacks { roots: vec![frame("main", "0-2", 3, below)], ..Stacks::default() };
        let absent = "1".parse().expect("a rank set");
        assert_eq!(places(&stacks, &absent), ["rank 1 is in sleep < main"]);
    }
}
