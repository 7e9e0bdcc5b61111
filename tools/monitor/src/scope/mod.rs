//! Event scopes: each is one stream whose leaves select and reduce the events of their ranks beside
//! them. What is selected and how it is merged is `sapwood-trace`'s; a leaf reads rings for a scope
//! only when that scope asks, with cursors of its own.

mod all;
mod leaf;
mod question;
mod watch;

use std::time::Duration;

use sapwood::{FIRST_TAG, Tag};
use sapwood_trace::Scope;

pub(crate) use all::Scopes;
pub(crate) use leaf::LeafScopes;
pub(crate) use question::ScopeQuestion;
pub(crate) use watch::{Gathering, ScopeWatch};

/// Asks for the figures of a scope: a [`ScopeQuestion`]. The answer is a
/// [`sapwood_trace::ScopeFigures`].
pub(crate) const SCOPE: Tag = FIRST_TAG + 13;

/// A scope, what it is called, and how often it is gathered.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedScope {
    /// Its name.
    pub name: String,
    /// Which events, and what of them.
    pub scope: Scope,
    /// Time between two gatherings; none for one at the end only.
    pub every: Option<Duration>,
}
