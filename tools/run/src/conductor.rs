//! The front-end of one command: tells the agents, asks them wave after wave, passes live output
//! and standard input on, and hears signals.
//!
//! It never waits for one thing only: each turn does what can be done, then waits until something
//! happens or the next time has come. So it sends nothing that has to wait for room: a question is
//! left out, and who does not read is not asked for ever.

use std::collections::BTreeMap;
use std::io::{Read, Stdin};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sapwood::{Answer, Error, Rank, RankSet, Recipients, StreamId, Tag, Values};
use sapwood_launch::Signal;

use super::fetched::{FetchEnd, Fetched};
use super::printer::Printer;
use super::protocol::{
    CONTENT, ERRORS, FETCH, INPUT, OUTPUT, Order, PART_BYTES_MAX, POLL, RUN, SIGNAL,
    SPOOL_BYTES_MAX, poll,
};
use super::results::{Results, Sheet};
use sapwood_command_line::exit::{Failure, complain};
use sapwood_hosts::questions::{QuestionTiming, Questions};
use sapwood_hosts::signals::Signals;
use sapwood_hosts::tree_access::{Channels, Tree, WAVE_MILLISECONDS};

/// For how long the first wave is held for those who have not ended, and the later ones at most.
const FIRST_HOLD: Duration = Duration::from_millis(100);
const HOLD_MAX: Duration = Duration::from_secs(1);

/// How fast questions follow each other.
const TIMING: QuestionTiming = QuestionTiming {
    pause: Duration::from_millis(20),
    hold: HOLD_MAX,
    silence: Duration::from_millis(WAVE_MILLISECONDS as u64),
};

/// Two Ctrl-C within this time stop the command.
const STOP_TIME: Duration = Duration::from_secs(1);

/// How long commands may take to end once they have been asked to.
const ENDING_TIME: Duration = Duration::from_secs(4);

/// How long the last live output, or content that was asked for, may stay away.
const CONTENT_TIME: Duration = Duration::from_secs(10);

/// How many hosts with equal outputs are asked for them, where the first have not kept all.
const KEEPERS_MAX: u32 = 8;

/// What takes the pieces of a content.
type Taker<'a> = dyn FnMut(&mut Printer, &[u8]) -> Result<(), Failure> + 'a;

/// The front-end of one command.
pub(super) struct Conductor<'a> {
    tree: &'a mut dyn Tree,
    channels: Channels,
    /// The hosts that were there at the beginning.
    members: RankSet,
    input: Option<Input>,
    pub(super) results: Results,
    pub(super) printer: Printer,
    /// Bytes of live output that came from each host.
    received: BTreeMap<Rank, u64>,
    is_live: bool,
    signals: &'a mut Signals,
    questions: Questions,
    hold: Duration,
    interrupted_at: Option<Instant>,
    /// The signal that ends the command, and when it has to have ended.
    ending: Option<(Signal, Instant)>,
    /// The signal that has stopped the writing of what came.
    stopped_by: Option<Signal>,
}

/// Standard input on its way down.
struct Input {
    stream: StreamId,
    stdin: Stdin,
    /// Whether the system can tell when there is something; else there always is.
    is_watched: bool,
    can_be_watched: bool,
}

impl<'a> Conductor<'a> {
    /// Opens the streams and tells the agents what to run: those of `hosts` that are there. The
    /// others are missing from the beginning.
    ///
    /// # Errors
    /// [`Failure`] when the tree fails.
    pub(super) fn begin(
        tree: &'a mut dyn Tree,
        hosts: BTreeMap<Rank, String>,
        mut order: Order,
        reads_input: bool,
        printer: Printer,
        signals: &'a mut Signals,
    ) -> Result<Self, Failure> {
        let now = Instant::now();
        let mut members = tree.connected();
        let is_live = order.is_live;
        let mut results = Results::new(hosts, now);
        members.intersect_with(results.everyone().as_ref());
        // What has been lost before is among those who are absent.
        tree.take_losses();
        for (ranks, reason) in tree.absent() {
            results.lose(&ranks, &reason);
        }
        results.suspect(&tree.suspects());
        let channels = tree.begin(&members, reads_input)?;
        order.members = results.everyone();
        order.live = channels.live;
        order.input = channels.input.unwrap_or(channels.control);
        order.hold = FIRST_HOLD;
        tree.send(channels.control, &Recipients::All, RUN, order.encode())?;
        tree.flush()?;
        for descriptor in signals.descriptors() {
            tree.watch(descriptor.as_fd())?;
        }
        let stdin = std::io::stdin();
        let input = channels.input.map(|stream| Input {
            stream,
            stdin,
            is_watched: false,
            can_be_watched: true,
        });
        Ok(Self {
            tree,
            channels,
            members,
            input,
            results,
            printer,
            received: BTreeMap::new(),
            is_live,
            signals,
            questions: Questions::new(TIMING, now),
            hold: FIRST_HOLD,
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
                return self.finish_live().map(|()| None);
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
        if !self.tell(&to, FETCH, values)? {
            return Ok(());
        }
        self.tree.flush()?;
        let mut came: u64 = 0;
        while let Some(answer) = self.next_live(rank)? {
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

    /// The next answer on the live stream, unless the host that it is to come from is gone or
    /// silent for too long.
    fn next_live(&mut self, from: Rank) -> Result<Option<Answer>, Failure> {
        let until = Instant::now() + CONTENT_TIME;
        loop {
            self.go_on_writing()?;
            if let Some(answer) = self.tree.take(self.channels.live)? {
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

    fn take_answers(&mut self) -> Result<(), Failure> {
        while let Some(answer) = self.tree.take(self.channels.control)? {
            self.questions.hear(&answer);
            self.results.take(&answer, Instant::now())?;
        }
        Ok(())
    }

    fn take_live(&mut self) -> Result<(), Failure> {
        while let Some(answer) = self.tree.take(self.channels.live)? {
            self.show(&answer)?;
        }
        Ok(())
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
        *self.received.entry(rank).or_default() += part.len() as u64;
        self.printer.take(host, rank, which, part)
    }

    /// Waits for the live output that was sent before the last outcome.
    fn finish_live(&mut self) -> Result<(), Failure> {
        let mut until = Instant::now() + CONTENT_TIME;
        while self.is_live && self.lacks_live() && Instant::now() < until {
            self.take_losses();
            self.take_signals()?;
            if self.ending.is_some() {
                break;
            }
            let before = self.tree.waiting(self.channels.live);
            self.take_live()?;
            if before > 0 {
                until = Instant::now() + CONTENT_TIME;
            }
            self.printer.flush()?;
            if self.lacks_live() {
                self.tree.turn(until.saturating_duration_since(Instant::now()))?;
            }
        }
        self.take_live()?;
        self.printer.flush()
    }

    /// Whether output of hosts that are there has not come.
    fn lacks_live(&self) -> bool {
        let mut ended = self.results.ended().clone();
        ended.intersect_with(self.tree.connected().as_ref());
        self.results.classes().iter().any(|class| {
            let sent = class.outcome.output.length + class.outcome.errors.length;
            let received = |rank: Rank| self.received.get(&rank).copied().unwrap_or(0);
            let lacks = |rank: Rank| received(rank) < sent && ended.contains(rank);
            sent > 0 && class.ranks.iter().any(lacks)
        })
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
            let passed_on = if signal == Signal::INT { Signal::TERM } else { signal };
            let values = || Values::new().scalar(passed_on.as_raw());
            if !self.tell(&Recipients::All, SIGNAL, values())? {
                let others = self.questions.audience(&self.members);
                if !others.is_empty() {
                    self.tell(&others.into(), SIGNAL, values())?;
                }
            }
            self.tree.flush()?;
        }
        Ok(())
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
            Some(_) => Err(Failure::own(&"the output is incomplete: the command was interrupted")),
            None => Ok(()),
        }
    }

    fn report_running(&self) {
        let running = self.results.running();
        let ended = self.results.ended().len();
        complain(format_args!(
            "{ended} of {} hosts have ended; still running on {} ({}); Ctrl-C again \
             within a second stops",
            self.results.hosts.len(),
            self.results.nodes(&running),
            running.len(),
        ));
    }

    /// Asks the next question when the last has been answered.
    fn ask(&mut self, now: Instant) -> Result<(), Failure> {
        let hold = (self.hold * 2).min(HOLD_MAX);
        let (tree, control) = (&mut *self.tree, self.channels.control);
        let send = |to: &Recipients, wave| tell(tree, control, to, POLL, poll(wave, hold));
        if self.questions.ask(&self.members, now, send)? {
            self.hold = hold;
        }
        Ok(())
    }

    /// Tells these hosts, if that need not wait; whether it did not.
    fn tell(&mut self, to: &Recipients, tag: Tag, values: Values) -> Result<bool, Failure> {
        tell(self.tree, self.channels.control, to, tag, values)
    }

    fn wait(&self, now: Instant) -> Duration {
        let next = self.questions.wait(now);
        let ending = self.ending.map(|(_, until)| until.saturating_duration_since(now));
        next.min(ending.unwrap_or(next))
    }

    /// Sends standard input down while there is room. Gives whether there may be more at once.
    fn pass_input_on(&mut self) -> Result<bool, Failure> {
        let Some(input) = &mut self.input else { return Ok(false) };
        let has_room = self.tree.has_room(input.stream);
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
        let values = Values::new().string(&part[..count]);
        match self.tree.send(input.stream, &Recipients::All, INPUT, values) {
            // No host is left that could read it.
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(error) => return Err(error.into()),
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
        self.tree.end(self.channels);
    }
}

/// Tells these hosts, if that need not wait; whether it did not.
fn tell(
    tree: &mut dyn Tree,
    control: StreamId,
    to: &Recipients,
    tag: Tag,
    values: Values,
) -> Result<bool, Failure> {
    match tree.try_send(control, to, tag, values) {
        // All have gone; the losses say so, too.
        Err(Error::Misuse(_)) => Ok(true),
        told => Ok(told?),
    }
}

/// Whether a read would not wait.
fn is_readable(stdin: &Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}
