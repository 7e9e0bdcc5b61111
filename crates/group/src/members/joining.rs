//! Joining by any member, and leaving.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::RankSet;

use crate::error::Refusal;
use crate::identity::{MemberId, SECOND};
use crate::limits::{MEMBERS_MAX, NAMES_MAX};
use crate::member::{Event, Member, Output, Phase, Timer};
use crate::members::{Departure, Handed};
use crate::message::{Life, Message, Record, Table};
use crate::mutation::Mutation;
use crate::random::around;

/// How often a member that leaves looks whether others still need it.
const LEAVE_LOOKS: u32 = 20;

impl Member {
    pub(crate) fn own_record(&self) -> Record {
        self.view.record(self.me).cloned().unwrap_or_else(|| Record {
            address: self.config.address.clone(),
            site: self.config.site,
            ..Record::new(self.me, &self.config.names)
        })
    }

    pub(crate) fn create(&mut self) {
        if self.phase != Phase::Outside {
            return;
        }
        if !self.has_right_space() {
            return self.refused(Refusal::NameSpace);
        }
        let record = self.own_record();
        self.merge(record);
        self.begin();
    }

    pub(crate) fn ask_to_join(&mut self, address: String) {
        if self.phase != Phase::Outside {
            return;
        }
        if !self.has_right_space() {
            return self.refused(Refusal::NameSpace);
        }
        self.outputs.push_back(Output::Connect { member: None, address });
    }

    fn has_right_space(&self) -> bool {
        (1..=NAMES_MAX).contains(&self.config.space)
    }

    fn begin(&mut self) {
        self.phase = Phase::Joined;
        self.tell(Event::Joined);
        let first = around(&mut self.random, self.config.watch_period);
        self.wake_at(self.now + first, Timer::Watch);
        self.measure_first();
        self.begin_to_take();
    }

    pub(crate) fn asked_to_join(&mut self, from: MemberId, space: u32, record: Record) {
        let refusal = self.objection(from, space, &record);
        if let Some(refusal) = refusal {
            self.send(from, Message::Refused { refusal });
            return;
        }
        self.learn(record);
        let records = self.records_to_tell();
        let table = self.clusters.table().clone();
        self.send(from, Message::Welcome { records, table });
    }

    fn objection(&self, from: MemberId, space: u32, record: &Record) -> Option<Refusal> {
        let names = record.names.as_set();
        if self.phase != Phase::Joined || record.id != from || record.life != Life::Alive {
            Some(Refusal::Format)
        } else if space != self.config.space || names.last().is_some_and(|last| last >= space) {
            Some(Refusal::NameSpace)
        } else if self.view.len() >= MEMBERS_MAX {
            Some(Refusal::Full)
        } else {
            self.view.is_carried_beside(from, names).then_some(Refusal::Overlap)
        }
    }

    pub(crate) fn welcome(&mut self, records: Vec<Record>, table: Table) {
        if self.phase != Phase::Outside {
            return;
        }
        for record in records {
            self.merge(record);
        }
        self.adopt_table(table);
        self.begin();
    }

    pub(crate) fn refused(&mut self, refusal: Refusal) {
        if self.phase == Phase::Outside {
            self.phase = Phase::Ended;
            self.tell(Event::Refused(refusal));
        }
    }

    /// Another, smaller member claims one of our names: this member goes, and says why.
    pub(crate) fn yield_names(&mut self) {
        let mine = self.view.record(self.me).map(|record| record.names.as_set().to_set());
        let mut kept = self.view.names_of(self.me);
        // What was given away is the receiver's.
        if let Some(giving) = self.giving.as_ref().filter(|giving| giving.is_given()) {
            kept.union_with(giving.names.as_ref());
        }
        if self.phase == Phase::Joined
            && mine.is_some_and(|mine| mine != kept)
            && !self.breaks(Mutation::KeepNames)
        {
            self.tell(Event::Refused(Refusal::Overlap));
            self.leave();
        }
    }

    pub(crate) fn leave(&mut self) {
        // A hand-over ends first.
        if self.phase == Phase::Joined
            && let Some(giving) = &mut self.giving
        {
            giving.leave_afterwards(Departure::Alone);
            return;
        }
        if self.phase != Phase::Joined {
            self.phase = Phase::Ended;
            self.tell(Event::Ended);
            return;
        }
        self.phase = Phase::Leaving;
        let mut record = self.own_record();
        record.life = Life::Left;
        self.learn(record);
        self.spread_news();
        self.detector.leave_looks = LEAVE_LOOKS;
        self.wake_at(self.now + SECOND / 10, Timer::Leave);
    }

    /// A member that has left serves what it had accepted before, for two seconds at most.
    pub(crate) fn end_when_idle(&mut self) {
        let is_idle = self.lanes.values().all(|lane| lane.is_over())
            && self.folds.values().all(|fold| fold.is_over())
            && !self.credit.is_any_waiting();
        self.detector.leave_looks = self.detector.leave_looks.saturating_sub(1);
        if !is_idle && self.detector.leave_looks > 0 {
            self.wake_at(self.now + SECOND / 10, Timer::Leave);
            return;
        }
        self.phase = Phase::Ended;
        self.lanes.clear();
        self.folds.clear();
        self.pending.clear();
        self.handed = Handed::default();
        self.agenda.clear();
        self.tell(Event::Ended);
    }

    /// Virtual nodes that can be told news: all but the own ones.
    pub(crate) fn others(&self) -> RankSet {
        self.view.everyone().difference(self.view.names_of(self.me).as_ref())
    }
}
