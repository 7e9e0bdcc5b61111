//! A conductor over a tree whose hosts come as a test has it.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use sapwood::{Classes, Tag};

use super::*;
use crate::printer::{HostLabel, LiveLines};
use crate::protocol::{POLL, RUN};
use crate::results::SILENCE_MAX;
use crate::results::tests::hosts;

/// What a tree of three hosts is to be, and which of them began together.
#[derive(Default)]
struct Script {
    there: RankSet,
    is_starting: bool,
    /// Whether streams cannot be opened, as where a host has just gone.
    refuses: bool,
    begun: Vec<RankSet>,
    losses: Absence,
    /// The tags of all that was sent.
    sent: Vec<Tag>,
}

struct ScriptedTree(Rc<RefCell<Script>>);

impl Tree for ScriptedTree {
    fn connected(&self) -> RankSet {
        self.0.borrow().there.clone()
    }

    fn absent(&self) -> Absence {
        let absent = RankSet::range(0, 2).difference(self.0.borrow().there.as_ref());
        vec![(absent, NOT_REACHED.to_owned())]
    }

    fn is_starting(&mut self) -> bool {
        self.0.borrow().is_starting
    }

    fn take_losses(&mut self) -> Absence {
        std::mem::take(&mut self.0.borrow_mut().losses)
    }

    fn suspects(&self) -> RankSet {
        RankSet::new()
    }

    fn note_silence(&mut self, _: &RankSet, _: &RankSet) {}

    fn begin(&mut self, members: &RankSet, _: StandardInput) -> Result<Channels, Error> {
        let mut script = self.0.borrow_mut();
        if script.refuses {
            // Any misuse will do.
            return Err(Classes::read(Values::new().as_ref()).map(drop).unwrap_err().into());
        }
        script.begun.push(members.clone());
        Ok(Channels { control: 1, live: 2, input: None })
    }

    fn end(&mut self, _: Channels) {}

    fn send(&mut self, _: StreamId, _: &Recipients, tag: Tag, _: Values) -> Result<(), Error> {
        self.0.borrow_mut().sent.push(tag);
        Ok(())
    }

    fn has_room(&self, _: StreamId) -> bool {
        true
    }

    fn take(&mut self, _: StreamId) -> Result<Option<Answer>, Error> {
        Ok(None)
    }

    fn waiting(&self, _: StreamId) -> usize {
        0
    }

    fn watch(&mut self, _: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn unwatch(&mut self, _: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn turn(&mut self, _: Duration) -> Result<(), Error> {
        Ok(())
    }
}

/// Has the hosts of the tree begin a command without standard input.
fn begin<'a>(tree: &'a mut ScriptedTree, signals: &'a mut Signals) -> Conductor<'a> {
    let printer = Printer::new(LiveLines::Left, HostLabel::None, [None, None]).unwrap();
    let input = StandardInput::Closed;
    Conductor::begin(tree, hosts(3), Order::default(), input, printer, signals).unwrap()
}

#[test]
fn late_hosts_of_which_one_goes_as_they_begin_try_again_though_no_further_one_comes() {
    let there = RankSet::range(0, 0);
    let script = Script { there, is_starting: true, ..Script::default() };
    let script = Rc::new(RefCell::new(script));
    let (mut tree, mut signals) = (ScriptedTree(Rc::clone(&script)), Signals::default());
    let mut conductor = begin(&mut tree, &mut signals);
    {
        let mut script = script.borrow_mut();
        script.there = RankSet::range(0, 1);
        (script.is_starting, script.refuses) = (false, true);
    }
    conductor.take_late_hosts().unwrap();
    assert_eq!(conductor.results.awaited(), &RankSet::range(1, 2));
    script.borrow_mut().refuses = false;
    conductor.take_late_hosts().unwrap();
    assert_eq!(script.borrow().begun, [RankSet::range(0, 0), RankSet::range(1, 1)]);
    assert!(conductor.results.awaited().is_empty());
    assert_eq!(conductor.results.running(), RankSet::range(0, 1), "the third is missing");
}

#[test]
fn late_hosts_that_can_never_begin_are_awaited_for_a_while_only() {
    let there = RankSet::range(0, 0);
    let script = Script { there, is_starting: true, ..Script::default() };
    let script = Rc::new(RefCell::new(script));
    let (mut tree, mut signals) = (ScriptedTree(Rc::clone(&script)), Signals::default());
    let mut conductor = begin(&mut tree, &mut signals);
    {
        let mut script = script.borrow_mut();
        script.there = RankSet::range(0, 1);
        (script.is_starting, script.refuses) = (false, true);
    }
    conductor.take_late_hosts().unwrap();
    assert_eq!(conductor.results.awaited(), &RankSet::range(1, 2), "they try again");
    let until = conductor.late_until.as_mut().expect("no further host comes");
    *until -= LATE_TIME;
    conductor.take_late_hosts().unwrap();
    assert!(conductor.results.awaited().is_empty() && conductor.next_cohort.is_none());
    assert_eq!(conductor.results.running(), RankSet::range(0, 1), "the third is missing");
    conductor.results.lose_silent(Instant::now() + SILENCE_MAX);
    assert!(conductor.results.is_complete());
    assert_eq!(script.borrow().begun, [RankSet::range(0, 0)]);
}

#[test]
fn a_host_whose_start_was_lost_begins_when_it_comes_after_all() {
    let there = RankSet::range(0, 0);
    let script = Script { there, is_starting: true, ..Script::default() };
    let script = Rc::new(RefCell::new(script));
    let (mut tree, mut signals) = (ScriptedTree(Rc::clone(&script)), Signals::default());
    let mut conductor = begin(&mut tree, &mut signals);
    script.borrow_mut().losses.push((RankSet::range(1, 1), "closed".to_owned()));
    conductor.take_losses();
    assert_eq!(conductor.results.awaited(), &RankSet::range(2, 2));
    {
        let mut script = script.borrow_mut();
        (script.there, script.is_starting) = (RankSet::range(0, 1), false);
    }
    conductor.take_late_hosts().unwrap();
    assert_eq!(script.borrow().begun, [RankSet::range(0, 0), RankSet::range(1, 1)]);
    assert_eq!(conductor.results.running(), RankSet::range(0, 1));
    let missing = conductor.results.missing();
    assert_eq!(missing, [(RankSet::range(2, 2), NOT_REACHED.to_owned())]);
}

#[test]
fn a_host_that_counts_as_silent_is_asked_on_though_no_other_one_of_its_cohort_runs() {
    let there = RankSet::range(0, 0);
    let script = Rc::new(RefCell::new(Script { there, ..Script::default() }));
    let (mut tree, mut signals) = (ScriptedTree(Rc::clone(&script)), Signals::default());
    let mut conductor = begin(&mut tree, &mut signals);
    // After this no question before it can be answered any more.
    let later = Instant::now() + SILENCE_MAX;
    conductor.results.lose_silent(later);
    assert!(conductor.results.running().is_empty());
    conductor.ask(later).unwrap();
    assert_eq!(script.borrow().sent, [RUN, POLL]);
}
