//! Inputs, messages and timers to the part of the member that handles them.

use super::{Input, Member, Phase, Timer};
use crate::identity::{MemberId, Time};
use crate::message::{Life, Message};
use crate::operations::Opening;

impl Member {
    /// Changes the member once. Drain [`Member::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Time, input: Input) {
        self.now = self.now.max(now);
        if self.phase == Phase::Ended {
            return;
        }
        match input {
            Input::Create => self.create(),
            Input::Join { address } => self.ask_to_join(address),
            Input::Leave => self.leave(),
            Input::LeaveTo { heir } => self.leave_to(heir),
            Input::LinkUp { member, address } => self.link_up(member, address.is_some()),
            Input::LinkDown { member } => self.link_down(member),
            Input::Drained { member, queued_bytes } => self.drained(member, queued_bytes),
            Input::ConnectFailed { member } => self.connect_failed(member),
            Input::Message { from, message } => self.message(from, message),
            Input::Wake => {}
            Input::Call { request, tree, deadline, call } => {
                self.call(request, tree, deadline, call);
            }
            Input::Track { tree } => self.track(tree),
            Input::Define { operation, definition } => self.definitions.add(operation, definition),
        }
        self.asked_wake = None;
        while let Some(&(time, timer)) = self.agenda.first().filter(|entry| entry.0 <= self.now) {
            self.agenda.remove(&(time, timer));
            self.prober.note_timer(time, self.now);
            self.note_lateness(time);
            self.timer(timer);
        }
        self.give_when_drained();
    }

    fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::Spread => self.spread_news(),
            Timer::Compute => self.compute_clusters(),
            Timer::Probe => self.probe_now(),
            Timer::Watch => self.watch(),
            Timer::Redial(member) => self.redial(member),
            Timer::Ping(number) => self.ping_is_late(number),
            Timer::Deadline(request) => self.deadline(request),
            Timer::Patience(cast, stripe) => self.lane_patience(cast, stripe),
            Timer::FoldPatience(fold) => self.fold_patience(fold),
            Timer::Grace(fold) => self.grace_over(fold),
            Timer::Linger(cast, stripe) => self.lane_linger(cast, stripe),
            Timer::LoneStripe(cast, stripe) => self.lone_stripe(cast, stripe),
            Timer::FoldLinger(fold) => self.fold_linger(fold),
            Timer::Finish => self.tell_finished(),
            Timer::Paper(kind) => self.paper_step(kind),
            Timer::Giving => self.giving_step(),
            Timer::Taking => self.taking_step(),
            Timer::Leave => self.end_when_idle(),
        }
    }

    fn message(&mut self, from: MemberId, message: Message) {
        self.heard(from);
        self.note_arrival(from, &message);
        match message {
            Message::Join { space, record } => self.asked_to_join(from, space, record),
            Message::Welcome { records, table } => self.welcome(records, table),
            Message::Refused { refusal } => self.refused(refusal),
            Message::Update { targets, records } => self.update(from, &targets, records),
            Message::Ping { number, digest, table, .. } => {
                self.pinged(from, number, digest, table);
            }
            Message::Pong { number, digest, table } => self.ponged(from, number, digest, table),
            Message::Report { distances } => self.reported(from, &distances),
            Message::Clusters { targets, table } => self.clusters_came(&targets, table),
            Message::Open { head, targets, route, ask, receipt, data } => {
                self.opened(from, Opening { head, targets, route, ask, receipt, data });
            }
            Message::Segment { cast, stripe, index, data } => {
                self.segment(cast, stripe, index, data);
            }
            Message::Have { cast, stripe, segments } => {
                self.have(from, cast, stripe, &segments);
            }
            Message::Receipt { cast, stripe } => self.receipt(from, cast, stripe),
            Message::Done { cast, stripe, names, failed } => {
                self.done(from, cast, stripe, &names, &failed);
            }
            Message::Part { head, names, data } => self.part(head, &names, data),
            Message::Pull { fold, names, segments } => self.pulled(from, fold, &names, &segments),
            Message::Finished { folds, targets } => self.finished(&folds, &targets),
            Message::Mismatch { fold } => self.mismatched(fold),
            Message::Probe { kind, number, .. } => self.probed(from, kind, number),
            Message::ProbeReply { kind, number, positions } => {
                self.probe_replied(from, kind, number, positions);
            }
            Message::Attach { tree, names } => self.attached(from, tree, &names),
            Message::Detach { tree } => self.detached(from, tree),
            Message::Above { tree, position } => self.above(from, tree, position),
            Message::Costs { costs } => self.costs_reported(from, costs),
            Message::Offer { names } => self.offered(from, &names),
            Message::Take { names } => self.asked_to_give(from, &names),
            Message::Decline { names } => self.declined(from, &names),
            Message::Later { names } => self.put_off_offer(from, &names),
            Message::Give { gift } => self.given(from, &gift),
            Message::Absent { fold, names } => self.absent(fold, &names),
            Message::Return { names } => self.returned(from, &names),
            Message::Broken { fold, names, reason } => {
                self.broken(from, fold, &names, reason);
            }
        }
    }

    /// A member that is taken for dead is told so, and then says that it lives.
    fn heard(&mut self, from: MemberId) {
        let record = self.view.record(from).filter(|record| record.life == Life::Dead);
        if let Some(record) = record.cloned()
            && self.detector.may_tell_dead(from, self.now)
        {
            let targets = (&sapwood_packet::RankSet::new()).into();
            self.send(from, Message::Update { targets, records: alloc::vec![record] });
        }
    }
}
