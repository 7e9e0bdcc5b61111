//! A scope as another process asks for it.

use std::time::Duration;

use sapwood::RankSet;
use sapwood_trace::{
    Coscheduling, EventKind, Scope, ScopeBy, ScopeReduction, ScopeValue, WINDOW_MAX,
};
use serde::{Deserialize, Serialize};

use super::request::chosen;
use crate::scope::NamedScope;

/// A scope that a running program is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeRequest {
    name: String,
    functions: Vec<u32>,
    kinds: Vec<u8>,
    communicators: Vec<String>,
    ranks: String,
    longer_ns: u64,
    is_gap: bool,
    /// As [`ScopeReduction::code`] has it.
    reduction: u32,
    by_rank: bool,
    by_function: bool,
    by_communicator: bool,
    by_kind: bool,
    by_thread: bool,
    window: u32,
    cpu_ppm: u32,
    bytes_per_s: u64,
    every_s: Option<f64>,
    when: u32,
}

impl ScopeRequest {
    /// The request for a scope.
    #[must_use]
    pub fn of(named: &NamedScope) -> Self {
        let scope = &named.scope;
        Self {
            name: named.name.clone(),
            functions: scope.functions.iter().copied().collect(),
            kinds: scope.kinds.iter().map(|&kind| kind as u8).collect(),
            communicators: scope.communicators.clone(),
            ranks: scope.ranks.to_string(),
            longer_ns: scope.at_least_ns,
            is_gap: scope.value == ScopeValue::Gap,
            reduction: scope.reduction.code(),
            by_rank: scope.by.rank,
            by_function: scope.by.function,
            by_communicator: scope.by.communicator,
            by_kind: scope.by.kind,
            by_thread: scope.by.thread,
            window: scope.window,
            cpu_ppm: scope.cpu_ppm,
            bytes_per_s: scope.bytes_per_s,
            every_s: named.every.map(|every| every.as_secs_f64()),
            when: scope.when as u32,
        }
    }

    /// The scope.
    ///
    /// # Errors
    /// One line, for ranks that the program does not have.
    pub(crate) fn named(&self, world_size: u32) -> Result<NamedScope, String> {
        let ranks = match self.ranks.as_str() {
            "" => RankSet::new(),
            text => chosen(text, world_size)?,
        };
        let scope = Scope {
            functions: self.functions.iter().copied().collect(),
            kinds: self.kinds.iter().filter_map(|&kind| EventKind::from_code(kind)).collect(),
            communicators: self.communicators.clone(),
            ranks,
            at_least_ns: self.longer_ns,
            value: if self.is_gap { ScopeValue::Gap } else { ScopeValue::Span },
            reduction: ScopeReduction::from_code(self.reduction),
            by: ScopeBy {
                rank: self.by_rank,
                function: self.by_function,
                communicator: self.by_communicator,
                kind: self.by_kind,
                thread: self.by_thread,
            },
            window: self.window.min(WINDOW_MAX),
            cpu_ppm: self.cpu_ppm.min(1_000_000),
            bytes_per_s: self.bytes_per_s,
            when: Coscheduling::from_code(self.when),
        };
        let every = self.every_s.and_then(|every| Duration::try_from_secs_f64(every).ok());
        Ok(NamedScope { name: self.name.clone(), scope, every })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_scope_that_it_was_made_of() {
        let scope = Scope {
            functions: [3, 4].into(),
            kinds: vec![EventKind::Send, EventKind::Receive],
            communicators: vec!["grid".into()],
            ranks: "1-2".parse().expect("ranks"),
            at_least_ns: 5,
            value: ScopeValue::Gap,
            reduction: ScopeReduction::Top { groups: 5 },
            by: ScopeBy { rank: true, kind: true, thread: true, ..ScopeBy::default() },
            window: 100,
            cpu_ppm: 7,
            bytes_per_s: 8,
            when: Coscheduling::Waiting,
        };
        let every = Some(Duration::from_millis(500));
        let named = NamedScope { name: "some".into(), scope, every };
        let text = serde_json::to_string(&ScopeRequest::of(&named)).expect("numbers and text");
        let read: ScopeRequest = serde_json::from_str(&text).expect("it was just written");
        assert_eq!(read.named(4), Ok(named));
        assert!(read.named(2).expect_err("two ranks").contains('2'));
    }
}
