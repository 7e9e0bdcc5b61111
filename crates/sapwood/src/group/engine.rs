//! The thread on which a member lives: it drives the member, starts what the application asks for,
//! and hands back what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sapwood_group::message::PaperTree;
use sapwood_group::{Call, Event, Input, MemberId};
use sapwood_packet::RankSet;
use sapwood_runtime::{GroupDriver, GroupEvent, clock};

use super::expectation::{Assembly, COLLECTIVE, Delivery, Matching, Piece};
use super::failure::GroupFailure;
use super::shared::{Command, GroupMember, GroupShared, Life, Outcome};
use crate::{Error, Result};

/// How many bytes of this member's own calls may be under way; further calls wait.
const CALL_BYTES_MAX: usize = 1 << 30;
/// How many of its calls may be under way.
const CALLS_MAX: usize = 4096;
/// After the sender of an awaited value is gone, others may still pass it on for this long, in
/// nanoseconds.
const ROOT_GRACE: u64 = 2_000_000_000;
/// How often what will not become whole is looked for, in nanoseconds.
const EXPIRY_PERIOD: u64 = 10_000_000_000;
/// How long the last bytes may take to leave, in nanoseconds.
const FLUSH_TIME: u64 = 1_000_000_000;

/// The thread of one member.
pub(super) struct EngineThread(JoinHandle<()>);

impl EngineThread {
    /// Starts it. The driver has its order to create or to join.
    pub(super) fn start(driver: GroupDriver, shared: Arc<GroupShared>) -> Result<Self> {
        let engine = Engine {
            driver,
            shared,
            assembly: Assembly::default(),
            matching: Matching::default(),
            calls: BTreeMap::new(),
            call_bytes: 0,
            forgotten: BTreeSet::new(),
            senders: BTreeMap::new(),
            version: u64::MAX,
            expiry: 0,
        };
        let started = std::thread::Builder::new()
            .name("sapwood-group".to_string())
            .spawn(move || engine.run())
            .map_err(|source| {
                Error::Runtime(sapwood_runtime::RuntimeError::System {
                    what: "start a thread for the member of a group",
                    source,
                })
            })?;
        Ok(Self(started))
    }

    /// Leaves in one of the ways, and waits for the end of the thread.
    pub(super) fn stop(self, shared: &GroupShared, way: Command, deadline: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut state = shared.lock();
        state.commands.push_back(way);
        let _ = shared.engine.wake();
        while matches!(state.life, Life::Joining | Life::Joined) {
            let left = deadline.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(Error::Timeout { what: "end of the member", waited: deadline });
            }
            state = shared.wait(state, left);
        }
        drop(state);
        // The thread ends by itself at once; one that has panicked has ended as well.
        let _ = self.0.join();
        Ok(())
    }
}

struct Engine {
    driver: GroupDriver,
    shared: Arc<GroupShared>,
    assembly: Assembly,
    matching: Matching,
    /// The member's own calls under way, with their bytes.
    calls: BTreeMap<u64, usize>,
    call_bytes: usize,
    /// Requests under way whose outcome is not wanted any more.
    forgotten: BTreeSet<u64>,
    /// The virtual nodes of each member, past ones included: a value may outlive its sender.
    senders: BTreeMap<MemberId, RankSet>,
    version: u64,
    expiry: u64,
}

impl Engine {
    fn run(mut self) {
        let end = self.run_to_end();
        let mut state = self.shared.lock();
        if matches!(state.life, Life::Joining | Life::Joined) {
            state.life = end.map_or_else(Life::Failed, |()| Life::Ended);
        }
        for request in self.calls.keys().copied().chain(self.matching.take_all()) {
            state.outcomes.entry(request).or_insert(Err(GroupFailure::Ended));
        }
        drop(state);
        self.shared.tell();
    }

    fn run_to_end(&mut self) -> std::result::Result<(), GroupFailure> {
        while !self.driver.has_ended() {
            self.start_commands();
            self.handle_events();
            self.look_at_members();
            if self.driver.has_ended() {
                break;
            }
            let now = clock().0;
            if self.expiry <= now {
                self.expiry = now + EXPIRY_PERIOD;
                self.shared.lock().lost += self.assembly.expire(now);
            }
            let until = self.matching.next_deadline().unwrap_or(u64::MAX).min(self.expiry);
            self.driver.turn(Some(until)).map_err(|error| {
                let reason = error.to_string();
                GroupFailure::NotJoined { reason, is_refused: false }
            })?;
            for (request, answer) in self.matching.expire(clock().0) {
                self.finish(request, Ok(answer));
            }
        }
        self.handle_events();
        let end = clock().0 + FLUSH_TIME;
        while self.driver.queued_bytes() > 0 && clock().0 < end {
            if self.driver.turn(Some(end)).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn start_commands(&mut self) {
        loop {
            let mut state = self.shared.lock();
            for request in std::mem::take(&mut state.dropped) {
                if !state.discard(request) {
                    self.forgotten.insert(request);
                }
            }
            let is_full = self.calls.len() >= CALLS_MAX;
            let bytes = state.commands.front().map_or(0, Command::bytes);
            let is_heavy = self.call_bytes > 0 && self.call_bytes + bytes > CALL_BYTES_MAX;
            if bytes > 0 && (is_full || is_heavy) {
                return;
            }
            let Some(command) = state.commands.pop_front() else { return };
            drop(state);
            self.start(command, bytes);
        }
    }

    fn start(&mut self, command: Command, bytes: usize) {
        match command {
            Command::Call { request, tree, deadline, call } => {
                self.calls.insert(request, bytes);
                self.call_bytes += bytes;
                self.driver.give(Input::Call { request, tree, deadline, call });
                self.handle_events();
            }
            Command::Expect { request, expectation, deadline } => {
                let everyone = self.driver.member().view().everyone();
                let answer = self.matching.expect(request, expectation, deadline, everyone);
                if let Some(answer) = answer {
                    self.finish(request, Ok(answer));
                }
            }
            Command::Status { request, .. } | Command::Hops { request, .. }
                if self.forgotten.remove(&request) => {}
            Command::Status { request, tree, root, bytes } => {
                let status = Box::new(self.driver.member().status(tree, root, bytes));
                self.shared.lock().statuses.insert(request, status);
                self.shared.tell();
            }
            Command::Hops { request, question } => {
                let hops = Box::new(self.driver.hops(&question));
                self.shared.lock().hops.insert(request, hops);
                self.shared.tell();
            }
            Command::Track { root, is_bulk } => {
                if let Some(root) = self.driver.member().view().owner(root) {
                    self.driver.give(Input::Track { tree: PaperTree { root, bulk: is_bulk } });
                }
            }
            Command::Define { operation, definition } => {
                self.driver.give(Input::Define { operation, definition });
            }
            Command::Leave => self.driver.give(Input::Leave),
            Command::LeaveTo(name) => self.driver.give(Input::LeaveTo { heir: Some(name) }),
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.driver.next_event() {
            match event {
                GroupEvent::Member(event) => self.handle(event),
                GroupEvent::NotJoined { reason, is_refused } => {
                    self.fail(GroupFailure::NotJoined { reason, is_refused });
                }
                GroupEvent::Notice(notice) => self.shared.lock().note(notice),
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Joined => {
                self.look_at_members();
                self.note_joined();
            }
            Event::Refused(refusal) => self.fail(GroupFailure::Refused(refusal)),
            Event::Ended => {}
            Event::NamesMoved { .. } => {
                self.look_at_members();
                self.note_joined();
            }
            Event::MemberJoined(_) => self.look_at_members(),
            Event::MemberGone(member, _) => {
                self.look_at_members();
                let mut names = self.senders.get(&member).cloned().unwrap_or_default();
                let everyone = self.driver.member().view().everyone();
                // Other members may carry them by now.
                names.subtract(everyone.as_ref());
                let ended = self.matching.gone(&names, clock().0 + ROOT_GRACE, everyone);
                for (request, answer) in ended {
                    self.finish(request, Ok(answer));
                }
            }
            Event::Delivery { cast, tag, names, offset, data, bytes, .. } => {
                let piece = Piece { cast, names, offset, data, bytes };
                if let Some((names, value)) = self.assembly.take(clock().0, piece) {
                    let sender_names = self.senders.get(&cast.root).cloned().unwrap_or_default();
                    self.deliver(Delivery::new(tag, names, (cast.root, sender_names), value));
                }
            }
            Event::MayLeave(request) => {
                self.shared.lock().may_leave.insert(request);
                self.shared.tell_callers();
            }
            Event::GraceDelay(delay) => self.shared.lock().note_grace(delay),
            Event::Answered(request, answer) => self.finish(request, Ok(answer.into())),
            Event::Failed(request, error) => self.finish(request, Err(GroupFailure::Call(error))),
        }
    }

    /// The application may begin, unless virtual nodes are still to come.
    fn note_joined(&self) {
        let mut state = self.shared.lock();
        if state.life == Life::Joining && !self.driver.member().is_taking() {
            state.life = Life::Joined;
            drop(state);
            self.shared.tell();
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        if delivery.tag < COLLECTIVE {
            self.shared.lock().deliver(delivery);
            self.shared.tell();
            return;
        }
        let everyone = self.driver.member().view().everyone();
        let (ended, lost) = self.matching.come(delivery, everyone);
        if lost > 0 {
            self.shared.lock().lost += lost;
        }
        if let Some((request, answer)) = ended {
            self.finish(request, Ok(answer));
        }
    }

    fn finish(&mut self, request: u64, outcome: Outcome) {
        if let Some(bytes) = self.calls.remove(&request) {
            self.call_bytes -= bytes;
        }
        let mut state = self.shared.lock();
        state.may_leave.remove(&request);
        if self.forgotten.remove(&request) {
            return;
        }
        state.outcomes.insert(request, outcome);
        drop(state);
        self.shared.tell();
    }

    fn fail(&self, failure: GroupFailure) {
        self.shared.lock().life = Life::Failed(failure);
        self.shared.tell();
    }

    /// Shows the application the members, where they have changed.
    fn look_at_members(&mut self) {
        let member = self.driver.member();
        let (view, clusters) = (member.view(), member.clusters());
        let version = view.version() << 16 ^ clusters.table().version;
        if version == self.version {
            return;
        }
        self.version = version;
        let mut members = Vec::new();
        self.senders.retain(|id, _| view.record(*id).is_some());
        for record in view.records() {
            // Those that it has handed over are still the sender's of what came before.
            let names = self.senders.entry(record.id).or_default();
            names.union_with(record.names.as_set());
            if view.is_alive(record.id) {
                members.push(GroupMember {
                    id: record.id,
                    address: record.address.clone(),
                    names: view.names_of(record.id),
                    cluster: clusters.label(record.id),
                });
            }
        }
        let (everyone, names) = (view.everyone().clone(), member.names());
        let mut state = self.shared.lock();
        (state.everyone, state.members) = (everyone, members);
        // None before it has joined, and after it has left.
        if !names.is_empty() {
            state.names = names;
        }
        drop(state);
        self.shared.tell();
    }
}

impl Command {
    /// How many bytes a call sends; none for what costs nothing.
    fn bytes(&self) -> usize {
        let Self::Call { call, .. } = self else { return 0 };
        // A call without a value costs something, too.
        1 + match call {
            Call::Broadcast { value, .. }
            | Call::Direct { value, .. }
            | Call::Reduce { value, .. } => value.len(),
            Call::Scatter { values, .. } => values.iter().map(|entry| entry.1.len()).sum(),
        }
    }
}
