//! All scopes of a run: those that it was started with, and those that other processes ask for.

use std::collections::BTreeMap;

use sapwood::Network;

use super::{Gathering, NamedScope, ScopeWatch};

/// Scopes that were asked for and are kept, at most; one more takes the place of the oldest.
const ASKED_MAX: usize = 16;
/// The number of the first one that was asked for: a leaf tells scopes apart by their numbers.
const ASKED_FIRST: u32 = 1 << 16;

/// The scopes of a run.
#[derive(Default)]
pub(crate) struct Scopes {
    /// Those that it was started with.
    pub(crate) watches: Vec<ScopeWatch>,
    asked: BTreeMap<u32, ScopeWatch>,
    begun: u32,
}

impl Scopes {
    /// Begins a scope that was asked for, and gathers it for the first time. Its number; none where
    /// the tree is gone.
    pub(crate) fn begin(
        &mut self,
        network: &Network,
        named: NamedScope,
        world_size: u32,
    ) -> Option<u32> {
        let number = ASKED_FIRST + self.begun;
        // It is gathered when that is asked for.
        let mut watch = ScopeWatch::open(network, number, named).ok()?;
        watch.ask(world_size);
        self.begun += 1;
        self.asked.insert(number, watch);
        while self.asked.len() > ASKED_MAX {
            self.asked.pop_first();
        }
        Some(number)
    }

    /// Gathers one again.
    pub(crate) fn gather(&mut self, number: u32, world_size: u32) {
        if let Some(watch) = self.asked.get_mut(&number) {
            watch.ask(world_size);
        }
    }

    /// What one has gathered, once it has come.
    pub(crate) fn gathered(&mut self, number: u32) -> Option<(NamedScope, Gathering)> {
        let watch = self.asked.get_mut(&number)?;
        let gathering = watch.take()?;
        Some((watch.named.clone(), gathering))
    }

    /// One is not wanted any more.
    pub(crate) fn end(&mut self, number: u32) {
        self.asked.remove(&number);
    }
}
