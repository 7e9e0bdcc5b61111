//! The front-end of one command: has hosts begin it, asks them wave after wave, passes live output
//! and standard input on, and hears signals.
//!
//! Hosts that are still being reached when others are there begin it later, as a cohort of their
//! own. Standard input waits for them: each host has it from its begin.
//!
//! It never waits for one thing only: each turn does what can be done, then waits until something
//! happens or the next time has come. So it sends nothing that has to wait for room: a question is
//! left out, and a host that does not read is not asked for ever.

use std::collections::BTreeMap;
use std::io::{Read, Stdin};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sapwood::{Answer, Error, Rank, RankSet, Recipients, StreamId, Values};
use sapwood_launch::Signal;

use super::cohort::{Cohort, HOLD_MAX, tell};
use super::fetched::{FetchEnd, Fetched};
use super::live_output::LiveOutput;
use super::printer::Printer;
use super::protocol::{
    CONTENT, ERRORS, FETCH, INPUT, OUTPUT, Order, PART_BYTES_MAX, SPOOL_BYTES_MAX,
};
use super::results::{Results, Sheet};
use sapwood_command_line::exit::{Failure, complain, complain_all};
use sapwood_hosts::absence::{Absence, NOT_REACHED};
use sapwood_hosts::signals::Signals;
use sapwood_hosts::tree_access::{Channels, StandardInput, Tree};

/// The shortest time between two cohorts, which bounds the streams of a tree that starts slowly.
const COHORT_PAUSE: Duration = Duration::from_secs(1);

/// How long hosts that are there may try to begin once no further one will come.
const LATE_TIME: Duration = Duration::from_secs(10);

/// Two Ctrl-C within this time stop the command.
const STOP_TIME: Duration = Duration::from_secs(1);

/// How long commands may take to end once they have been asked to.
const ENDING_TIME: Duration = Duration::from_secs(4);

/// How long the last live output, or content that was asked for, may stay away.
const CONTENT_TIME: Duration = Duration::from_secs(10);

/// What is said of output that the user did not wait for.
const INTERRUPTED: &str = "the output is incomplete: the command was interrupted";

/// How many hosts with equal outputs are asked for them, where the first have not kept all.
const KEEPERS_MAX: u32 = 8;

/// What takes the pieces of a content.
type Taker<'a> = dyn FnMut(&mut Printer, &[u8]) -> Result<(), Failure> + 'a;

/// The front-end of one command.
pub(super) struct Conductor<'a> {
    tree: &'a mut dyn Tree,
    order: Order,
    standard_input: StandardInput,
    cohorts: Vec<Cohort>,
    /// From when on the next cohort may begin; none once no further host will come.
    next_cohort: Option<Instant>,
    /// Until when hosts that could not begin try again; none while further ones may come.
    late_until: Option<Instant>,
    input: Option<Input>,
    pub(super) results: Results,
    pub(super) printer: Printer,
    live_output: LiveOutput,
    is_live: bool,
    signals: &'a mut Signals,
    interrupted_at: Option<Instant>,
    /// The signal that ends the command, and when it has to have ended.
    ending: Option<(Signal, Instant)>,
    /// The signal that has stopped the writing of what came.
    stopped_by: Option<Signal>,
}

/// Standard input on its way down.
struct Input {
    stdin: Stdin,
    /// Whether the system can tell when there is something; else there always is.
    is_watched: bool,
    can_be_watched: bool,
}

impl<'a> Conductor<'a> {
    /// Has those of `hosts` begin the command that are there. The others are missing from the
    /// beginning, unless the tree still starts.
    ///
    /// # Errors
    /// [`Failure`] when the tree fails.
    pub(super) fn begin(
        tree: &'a mut dyn Tree,
        hosts: BTreeMap<Rank, String>,
        mut order: Order,
        standard_input: StandardInput,
        printer: Printer,
        signals: &'a mut Signals,
    ) -> Result<Self, Failure> {
        let now = Instant::now();
        let is_starting = tree.is_starting();
        let mut members = tree.connected();
        let is_live = order.is_live;
        let mut results = Results::new(hosts, now);
        order.members = results.everyone();
        members.intersect_with(order.members.as_ref());
        // What has been lost before is among those that are absent.
        tree.take_losses();
        if is_starting {
            results.await_start(&order.members.difference(members.as_ref()));
        } else {
            lose_absent(tree, &mut results);
        }
        results.suspect(&tree.suspects());
        let mut cohorts = Vec::new();
        if !members.is_empty() || !is_starting {
            cohorts.push(Cohort::begin(tree, members, &order, standard_input, now)?);
        }
        for descriptor in signals.descriptors() {
            tree.watch(descriptor.as_fd())?;
        }
        let stdin = std::io::stdin();
        let input = Input { stdin, is_watched: false, can_be_watched: true };
        Ok(Self {
            tree,
            order,
            standard_input,
            cohorts,
            next_cohort: is_starting.then(|| now + COHORT_PAUSE),
            late_until: None,
            input: (standard_input == StandardInput::Passed).then_some(input),
            results,
            printer,
            live_output: LiveOutput::default(),
            is_live,
            signals,
            interrupted_at: None,
            ending: None,
            stopped_by: None,
        })
    }

    /// Goes on until every host has told its outcome or is missing, or the user stops it. Gives the
    /// signal that did.
    ///
    /// # Errors
    /// [`Failure`] when the network or the output fails.
    pub(super) fn run(&mut self) -> Result<Option<Signal>, Failure> {
        loop {
            self.take_losses();
            self.take_late_hosts()?;
            self.take_answers()?;
            self.take_live()?;
            self.take_signals()?;
            let now = Instant::now();
            self.results.lose_silent(now);
            let (silent, heard) = self.results.silence();
            self.tree.note_silence(silent, heard);
            if let Some((signal, until)) = self.ending
                && (self.results.is_complete() || now >= until)
            {
                return Ok(Some(signal));
            }
            if self.results.is_complete() {
                return self.finish_live();
            }
            self.ask(now)?;
            let reads_on = self.pass_input_on()?;
            self.printer.flush()?;
            let wait = if reads_on { Duration::ZERO } else { self.wait(now) };
            self.tree.turn(wait)?;
        }
    }

    /// Of an output, piece by piece, all that was kept. Gives how much of it has come.
    ///
    /// # Errors
    /// As [`Conductor::run`], what `take` says, and where the user wants no more of it, which
    /// [`Conductor::stopped_by`] tells.
    pub(super) fn content(
        &mut self,
        sheet: &Sheet,
        take: &mut Taker<'_>,
    ) -> Result<Fetched, Failure> {
        self.go_on_writing()?;
        let length = sheet.digest.length;
        if let Some(content) = &sheet.content {
            take(&mut self.printer, content)?;
            return Ok(Fetched { bytes: length, end: FetchEnd::Told });
        }
        let mut fetched = Fetched { bytes: 0, end: FetchEnd::Lost };
        let mut asked = 0;
        for rank in sheet.ranks.iter() {
            if fetched.bytes >= length.min(SPOOL_BYTES_MAX) || asked == KEEPERS_MAX {
                break;
            }
            if self.tree.connected().contains(rank) {
                asked += 1;
                self.fetch(rank, sheet.which, &mut fetched, take)?;
            }
        }
        Ok(fetched)
    }

    /// Of an output that a host has, what has not come from another one.
    fn fetch(
        &mut self,
        rank: Rank,
        which: usize,
        fetched: &mut Fetched,
        take: &mut Taker<'_>,
    ) -> Result<(), Failure> {
        let to = RankSet::range(rank, rank).into();
        let values = Values::new().scalar(which as u32 + 1);
        fetched.end = FetchEnd::Lost;
        let Some(Channels { control, live, .. }) = self.channels_of(rank) else { return Ok(()) };
        if !tell(self.tree, control, &to, FETCH, values)? {
            return Ok(());
        }
        self.tree.flush()?;
        let mut came: u64 = 0;
        while let Some(answer) = self.next_live(rank, live)? {
            let Some(packet) = &answer.packet else { continue };
            if packet.tag() != CONTENT {
                self.show(&answer)?;
                continue;
            }
            let part = packet.values().string_bytes(0).map_err(Error::from)?;
            if !answer.contributors.contains(rank) {
                continue;
            }
            if part.is_empty() {
                fetched.end = FetchEnd::Told;
                return Ok(());
            }
            let known = usize::try_from(fetched.bytes.saturating_sub(came)).unwrap_or(usize::MAX);
            came += part.len() as u64;
            if let Some(new) = part.get(known..).filter(|new| !new.is_empty()) {
                take(&mut self.printer, new)?;
                fetched.bytes += new.len() as u64;
            }
        }
        if self.tree.connected().contains(rank) {
            fetched.end = FetchEnd::Silent;
        }
        Ok(())
    }

    /// The streams of a host that has begun the command.
    fn channels_of(&self, rank: Rank) -> Option<Channels> {
        let cohort = self.cohorts.iter().find(|cohort| cohort.members.contains(rank))?;
        Some(cohort.channels)
    }

    /// The next answer on a live stream, unless the host that it is to come from is gone or silent
    /// for too long.
    fn next_live(&mut self, from: Rank, live: StreamId) -> Result<Option<Answer>, Failure> {
        let until = Instant::now() + CONTENT_TIME;
        loop {
            self.go_on_writing()?;
            if let Some(answer) = self.tree.take(live)? {
                return Ok(Some(answer));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.tree.connected().contains(from) {
                return Ok(None);
            }
            self.tree.turn(left)?;
        }
    }

    fn take_losses(&mut self) {
        for (ranks, reason) in self.tree.take_losses() {
            self.results.lose(&ranks, &reason);
        }
    }

    /// Has hosts begin the command that were still being reached when others began it, also where
    /// their start was reported as lost meanwhile. Those that have not come when the tree has
    /// started are missing.
    fn take_late_hosts(&mut self) -> Result<(), Failure> {
        let Some(from) = self.next_cohort else { return Ok(()) };
        let now = Instant::now();
        let is_starting = self.tree.is_starting();
        if is_starting && now < from {
            return Ok(());
        }
        let mut come = self.tree.connected();
        come.intersect_with(self.order.members.as_ref());
        for cohort in &self.cohorts {
            come.subtract(cohort.members.as_ref());
        }
        let have_begun = come.is_empty() || self.begin_cohort(come, now)?;
        if is_starting {
            return Ok(());
        }
        let until = *self.late_until.get_or_insert(now + LATE_TIME);
        // Those that cannot begin within this time are silent from now on, and are lost for that.
        if have_begun || now >= until {
            self.next_cohort = None;
            lose_absent(self.tree, &mut self.results);
            self.results.await_no_more(now);
        }
        Ok(())
    }

    /// Has these hosts begin the command. Gives whether they have: they are to try again if one of
    /// them has gone meanwhile, as the losses will say.
    fn begin_cohort(&mut self, members: RankSet, now: Instant) -> Result<bool, Failure> {
        self.next_cohort = Some(now + COHORT_PAUSE);
        let begun = Cohort::begin(self.tree, members, &self.order, self.standard_input, now);
        match begun {
            Ok(cohort) => {
                self.results.has_begun(&cohort.members, now);
                self.cohorts.push(cohort);
                Ok(true)
            }
            Err(Error::Misuse(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn take_answers(&mut self) -> Result<(), Failure> {
        for cohort in &mut self.cohorts {
            while let Some(answer) = self.tree.take(cohort.channels.control)? {
                cohort.hear(&answer);
                self.results.take(&answer, Instant::now())?;
            }
        }
        Ok(())
    }

    fn take_live(&mut self) -> Result<(), Failure> {
        for live in self.live_streams() {
            while let Some(answer) = self.tree.take(live)? {
                self.show(&answer)?;
            }
        }
        Ok(())
    }

    fn live_streams(&self) -> Vec<StreamId> {
        self.cohorts.iter().map(|cohort| cohort.channels.live).collect()
    }

    fn show(&mut self, answer: &Answer) -> Result<(), Failure> {
        let (Some(packet), Some(rank)) = (&answer.packet, answer.contributors.as_ref().first())
        else {
            return Ok(());
        };
        let which = match packet.tag() {
            OUTPUT => 0,
            ERRORS => 1,
            _ => return Ok(()),
        };
        let part = packet.values().string_bytes(0).map_err(Error::from)?;
        let Some(host) = self.results.hosts.get(&rank) else { return Ok(()) };
        self.live_output.note(rank, part);
        self.printer.take(host, rank, which, part)
    }

    /// Waits for the live output that was sent before the last outcome, and says what of it has not
    /// come. Gives the signal that has ended this.
    fn finish_live(&mut self) -> Result<Option<Signal>, Failure> {
        let mut until = Instant::now() + CONTENT_TIME;
        while self.lacks_live() && Instant::now() < until {
            self.take_losses();
            self.take_signals()?;
            if self.ending.is_some() {
                break;
            }
            let live = self.live_streams();
            let before: usize = live.iter().map(|&live| self.tree.waiting(live)).sum();
            self.take_live()?;
            self.printer.flush()?;
            // From the end of the writing on: a terminal may be slow, and nothing comes meanwhile.
            if before > 0 {
                until = Instant::now() + CONTENT_TIME;
            }
            if self.lacks_live() {
                self.tree.turn(until.saturating_duration_since(Instant::now()))?;
            }
        }
        self.take_live()?;
        self.printer.flush()?;
        let stopped_by = self.ending.map(|(signal, _)| signal);
        if self.is_live {
            let lines = self.live_output.lines(&self.results, &self.tree.connected());
            match stopped_by {
                Some(_) if !lines.is_empty() => complain(INTERRUPTED),
                _ => complain_all(&lines),
            }
        }
        Ok(stopped_by)
    }

    /// Whether output of hosts that are there has not come.
    fn lacks_live(&self) -> bool {
        self.is_live && self.live_output.lacks(&self.results, &self.tree.connected())
    }

    fn take_signals(&mut self) -> Result<(), Failure> {
        for signal in self.signals.take() {
            let now = Instant::now();
            let is_second = self.interrupted_at.is_some_and(|at| now - at <= STOP_TIME);
            if signal == Signal::INT && !is_second && self.ending.is_none() {
                self.interrupted_at = Some(now);
                self.report_running();
                continue;
            }
            if self.ending.is_some() {
                // A user who asks again does not want to wait.
                self.ending = Some((signal, now));
                continue;
            }
            self.ending = Some((signal, now + ENDING_TIME));
            self.await_no_host();
            let passed_on = if signal == Signal::INT { Signal::TERM } else { signal };
            for cohort in &self.cohorts {
                cohort.signal(self.tree, passed_on)?;
            }
            self.tree.flush()?;
        }
        Ok(())
    }

    /// The command ends: no further host begins it.
    fn await_no_host(&mut self) {
        if self.next_cohort.take().is_some() {
            for (ranks, reason) in self.not_reached() {
                self.results.lose(&ranks, &reason);
            }
            let awaited = self.results.awaited().clone();
            self.results.lose(&awaited, "was still being reached when the command was stopped");
            self.results.await_no_more(Instant::now());
        }
    }

    /// Hosts that are not there, of which it is known why: they are not being reached any more.
    fn not_reached(&self) -> Absence {
        let mut absence = self.tree.absent();
        absence.retain(|(_, reason)| reason != NOT_REACHED);
        absence
    }

    /// The signal that has stopped the writing of what came.
    pub(super) fn stopped_by(&self) -> Option<Signal> {
        self.stopped_by
    }

    /// Hears signals while outputs are written: nothing runs any more to which they could be passed
    /// on.
    fn go_on_writing(&mut self) -> Result<(), Failure> {
        for signal in self.signals.take() {
            let now = Instant::now();
            let is_second = self.interrupted_at.is_some_and(|at| now - at <= STOP_TIME);
            if signal != Signal::INT || is_second {
                self.stopped_by = Some(signal);
                continue;
            }
            self.interrupted_at = Some(now);
            complain(format_args!(
                "outputs are being written; Ctrl-C again within a second stops this"
            ));
        }
        match self.stopped_by {
            Some(_) => Err(Failure::own(&INTERRUPTED)),
            None => Ok(()),
        }
    }

    fn report_running(&self) {
        let mut awaited = self.results.awaited().clone();
        let running = self.results.running().difference(awaited.as_ref());
        for (ranks, _) in self.not_reached() {
            awaited.subtract(ranks.as_ref());
        }
        let (ended, all) = (self.results.ended().len(), self.results.hosts.len());
        let mut line = format!("{ended} of {all} hosts have ended");
        for (what, ranks) in [("running on", &running), ("reaching", &awaited)] {
            if !ranks.is_empty() {
                let nodes = self.results.nodes(ranks);
                line += &format!("; still {what} {nodes} ({})", ranks.len());
            }
        }
        complain(format_args!("{line}; Ctrl-C again within a second stops"));
    }

    /// Asks the subtrees of which some hosts have not ended.
    fn ask(&mut self, now: Instant) -> Result<(), Failure> {
        let asked = self.results.asked();
        for cohort in &mut self.cohorts {
            cohort.ask(self.tree, &asked, now)?;
        }
        Ok(())
    }

    fn wait(&self, now: Instant) -> Duration {
        let next = self.cohorts.iter().map(|cohort| cohort.wait(now)).min();
        // After that moment a host that comes ends the wait by itself.
        let cohort = self.next_cohort.filter(|&at| at > now).map(|at| at - now);
        let ending = self.ending.map(|(_, until)| until.saturating_duration_since(now));
        [next, cohort, ending].into_iter().flatten().min().unwrap_or(HOLD_MAX)
    }

    /// The streams by which standard input is passed on; none once no host is left.
    fn input_streams(&self) -> Vec<StreamId> {
        let there = self.tree.connected();
        let has_reader = |cohort: &&Cohort| cohort.members.as_ref().intersects(there.as_ref());
        let cohorts = self.cohorts.iter().filter(has_reader);
        cohorts.filter_map(|cohort| cohort.channels.input).collect()
    }

    /// Sends standard input down while there is room. Gives whether there may be more at once.
    fn pass_input_on(&mut self) -> Result<bool, Failure> {
        // Hosts that begin later have all of it, too.
        if self.input.is_none() || self.next_cohort.is_some() {
            return Ok(false);
        }
        let streams = self.input_streams();
        let Some(input) = &mut self.input else { return Ok(false) };
        let has_room =
            !streams.is_empty() && streams.iter().all(|&stream| self.tree.has_room(stream));
        if has_room && input.can_be_watched && !input.is_watched {
            // A regular file cannot be waited for, and need not be.
            input.can_be_watched = self.tree.watch(input.stdin.as_fd()).is_ok();
            input.is_watched = input.can_be_watched;
        } else if !has_room && input.is_watched {
            self.tree.unwatch(input.stdin.as_fd())?;
            input.is_watched = false;
        }
        if !has_room || input.is_watched && !is_readable(&input.stdin) {
            return Ok(false);
        }
        let mut part = vec![0; PART_BYTES_MAX];
        let count = match input.stdin.lock().read(&mut part) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(true),
            // What cannot be read has ended.
            read => read.unwrap_or(0),
        };
        for stream in streams {
            let values = Values::new().string(&part[..count]);
            match self.tree.send(stream, &Recipients::All, INPUT, values) {
                // No host is left that could read it.
                Ok(()) | Err(Error::Misuse(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if count == 0 {
            if input.is_watched {
                self.tree.unwatch(input.stdin.as_fd())?;
            }
            self.tree.flush()?;
            // The stream stays open: its end has to travel.
            self.input = None;
        }
        Ok(count > 0)
    }
}

impl Drop for Conductor<'_> {
    fn drop(&mut self) {
        // What is watched no more needs no taking out where the tree itself has ended.
        for descriptor in self.signals.descriptors() {
            let _ = self.tree.unwatch(descriptor.as_fd());
        }
        if let Some(input) = self.input.take().filter(|input| input.is_watched) {
            let _ = self.tree.unwatch(input.stdin.as_fd());
        }
        for cohort in &self.cohorts {
            self.tree.end(cohort.channels);
        }
    }
}

/// Hosts that are not there are missing.
fn lose_absent(tree: &dyn Tree, results: &mut Results) {
    for (ranks, reason) in tree.absent() {
        results.lose(&ranks, &reason);
    }
}

/// Whether a read would not wait.
fn is_readable(stdin: &Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests;
