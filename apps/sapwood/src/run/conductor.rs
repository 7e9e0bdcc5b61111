//! The front-end of one command: tells the agents, asks them wave after wave, passes live output
//! and standard input on, and hears signals.
//!
//! It never waits for one thing only: each turn does what can be done, then waits until something
//! happens or the next time has come.

use std::io::{Read, Stdin};
use std::time::{Duration, Instant};

use sapwood::{Answer, Error, Event, Network, Policy, RankSet, Stream, Values, Wave, WaveRule};
use sapwood_launch::Signal;

use super::printer::Printer;
use super::protocol::{
    CONTENT, ERRORS, FETCH, INPUT, OUTPUT, Order, PART_BYTES_MAX, POLL, RUN, SIGNAL, poll,
};
use super::results::{Class, Results};
use crate::exit::Failure;
use crate::mpi::signals::Signals;

/// For how long the first wave is held for those who have not ended, and the later ones at most.
const FIRST_HOLD: Duration = Duration::from_millis(100);
const HOLD_MAX: Duration = Duration::from_secs(1);

/// After the first answer to a wave, those that stay silent are waited for so long.
const WAVE_MILLISECONDS: u32 = 5000;

/// The shortest time between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Two Ctrl-C within this time stop the command.
const STOP_TIME: Duration = Duration::from_secs(1);

/// How long commands may take to end once they have been asked to.
const ENDING_TIME: Duration = Duration::from_secs(4);

/// How long the last live output, or content that was asked for, may stay away.
const CONTENT_TIME: Duration = Duration::from_secs(10);

/// What takes the pieces of a content.
type Taker<'a> = dyn FnMut(&mut Printer, &[u8]) -> Result<(), Failure> + 'a;

/// The front-end of one command.
pub(super) struct Conductor<'a> {
    network: &'a mut Network,
    control: Stream,
    live: Stream,
    input: Option<Input>,
    /// Standard input's stream, when that has ended.
    closed_input: Option<Stream>,
    pub(super) results: Results,
    pub(super) printer: Printer,
    /// Bytes of live output that came from each host.
    received: Vec<u64>,
    is_live: bool,
    signals: Option<Signals>,
    wave: Wave,
    hold: Duration,
    asked_at: Instant,
    is_asked: bool,
    interrupted_at: Option<Instant>,
    /// The signal that ends the command, and when it has to have ended.
    ending: Option<(Signal, Instant)>,
}

/// Standard input on its way down.
struct Input {
    stream: Stream,
    stdin: Stdin,
    /// Whether the system can tell when there is something; else there always is.
    is_watched: bool,
    can_be_watched: bool,
}

impl<'a> Conductor<'a> {
    /// Opens the streams and tells the agents what to run.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn begin(
        network: &'a mut Network,
        hosts: Vec<String>,
        mut order: Order,
        reads_input: bool,
        printer: Printer,
        signals: Option<Signals>,
    ) -> Result<Self, Failure> {
        let now = Instant::now();
        let everyone = network.everyone();
        let live = network.stream(&everyone).wave(WaveRule::Immediate).policy(Policy::Block);
        let live = live.open()?;
        let input = if reads_input { Some(network.stream(&everyone).open()?) } else { None };
        let rule = WaveRule::Timeout { milliseconds: WAVE_MILLISECONDS };
        let mut control = network.stream(&everyone).up("classes").wave(rule).open()?;
        order.live = live.id();
        order.input = input.as_ref().map_or(control.id(), Stream::id);
        order.hold = FIRST_HOLD;
        control.broadcast(RUN, order.encode())?;
        network.flush()?;
        if let Some(signals) = &signals {
            for descriptor in signals.descriptors() {
                network.watch(descriptor)?;
            }
        }
        let stdin = std::io::stdin();
        let input =
            input.map(|stream| Input { stream, stdin, is_watched: false, can_be_watched: true });
        Ok(Self {
            received: vec![0; hosts.len()],
            results: Results::new(hosts, now),
            network,
            control,
            live,
            input,
            closed_input: None,
            printer,
            is_live: order.is_live,
            signals,
            wave: 0,
            hold: FIRST_HOLD,
            asked_at: now,
            is_asked: true,
            interrupted_at: None,
            ending: None,
        })
    }

    /// Goes on until every host has told its outcome or is missing, or the user stops it. Gives the
    /// signal that did.
    ///
    /// # Errors
    /// [`Failure`] when the network or the output fails.
    pub(super) fn run(&mut self) -> Result<Option<Signal>, Failure> {
        loop {
            self.take_events();
            self.take_answers()?;
            self.take_live()?;
            self.take_signals()?;
            let now = Instant::now();
            self.results.lose_silent(now);
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
            self.network.turn(wait)?;
        }
    }

    /// Hosts that could not be reached from the beginning.
    pub(super) fn lose(&mut self, ranks: &RankSet, reason: &str) {
        self.results.lose(ranks, reason);
    }

    /// One output of a class, piece by piece: 0 is standard output, 1 standard error. Gives whether
    /// all that was kept has come.
    ///
    /// # Errors
    /// As [`Conductor::run`], and what `take` says.
    pub(super) fn content(
        &mut self,
        class: &Class,
        which: usize,
        take: &mut Taker<'_>,
    ) -> Result<bool, Failure> {
        if let Some(outputs) = class.outputs() {
            take(&mut self.printer, outputs[which])?;
            return Ok(true);
        }
        let digest = [class.outcome.output, class.outcome.errors][which];
        if digest.length == 0 {
            return Ok(true);
        }
        for rank in class.ranks.iter() {
            if !self.network.everyone().ranks().contains(rank) {
                continue;
            }
            let came = self.fetch(rank, which, take)?;
            if came > 0 {
                return Ok(came == digest.kept);
            }
        }
        Ok(false)
    }

    fn fetch(&mut self, rank: u32, which: usize, take: &mut Taker<'_>) -> Result<u64, Failure> {
        self.control.send_to(rank, FETCH, which as u32 + 1)?;
        let mut came = 0;
        loop {
            let answer = match self.live.recv_timeout(CONTENT_TIME) {
                Ok(answer) => answer,
                Err(Error::Timeout { .. } | Error::NobodyLeft { .. }) => return Ok(came),
                Err(error) => return Err(error.into()),
            };
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
                return Ok(came);
            }
            came += part.len() as u64;
            take(&mut self.printer, part)?;
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.network.next_event() {
            match event {
                Event::Lost { back_ends, reason, .. } => self.results.lose(&back_ends, &reason),
                Event::Ended { reason, .. } => {
                    let running = self.results.running();
                    self.results.lose(&running, &reason);
                }
                _ => {}
            }
        }
    }

    fn take_answers(&mut self) -> Result<(), Failure> {
        while self.control.waiting() > 0 {
            let answer = self.control.recv()?;
            self.results.take(&answer, Instant::now())?;
            if answer.wave >= self.wave && !answer.is_late {
                self.is_asked = false;
            }
        }
        Ok(())
    }

    fn take_live(&mut self) -> Result<(), Failure> {
        while self.live.waiting() > 0 {
            let answer = self.live.recv()?;
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
        let Some(host) = self.results.hosts.get(rank as usize) else { return Ok(()) };
        self.received[rank as usize] += part.len() as u64;
        self.printer.take(host, rank, which, part)
    }

    /// Waits for the live output that was sent before the last outcome.
    fn finish_live(&mut self) -> Result<(), Failure> {
        let mut until = Instant::now() + CONTENT_TIME;
        while self.is_live && self.lacks_live() && Instant::now() < until {
            self.take_events();
            self.take_signals()?;
            if self.ending.is_some() {
                break;
            }
            let before = self.live.waiting();
            self.take_live()?;
            if before > 0 {
                until = Instant::now() + CONTENT_TIME;
            }
            self.printer.flush()?;
            if self.lacks_live() {
                self.network.turn(until.saturating_duration_since(Instant::now()))?;
            }
        }
        self.take_live()?;
        self.printer.flush()
    }

    /// Whether output of hosts that are there has not come.
    fn lacks_live(&self) -> bool {
        let connected = self.network.everyone();
        let mut ended = self.results.ended().clone();
        ended.intersect_with(connected.ranks().as_ref());
        self.results.classes().iter().any(|class| {
            let sent = class.outcome.output.length + class.outcome.errors.length;
            let lacks = |rank: u32| self.received[rank as usize] < sent;
            sent > 0 && class.ranks.iter().any(|rank| lacks(rank) && ended.contains(rank))
        })
    }

    fn take_signals(&mut self) -> Result<(), Failure> {
        let Some(signals) = &mut self.signals else { return Ok(()) };
        for signal in signals.take() {
            let now = Instant::now();
            let is_second = self.interrupted_at.is_some_and(|at| now - at <= STOP_TIME);
            if signal == Signal::INT && !is_second && self.ending.is_none() {
                self.interrupted_at = Some(now);
                self.report_running();
                continue;
            }
            if self.ending.is_some() {
                // Whoever asks again does not want to wait.
                self.ending = Some((signal, now));
                continue;
            }
            self.ending = Some((signal, now + ENDING_TIME));
            let passed_on = if signal == Signal::INT { Signal::TERM } else { signal };
            self.control.broadcast(SIGNAL, passed_on.as_raw())?;
            self.network.flush()?;
        }
        Ok(())
    }

    fn report_running(&self) {
        let running = self.results.running();
        let ended = self.results.ended().len();
        eprintln!(
            "sapwood: {ended} of {} hosts have ended; still running on {} ({}); Ctrl-C again \
             within a second stops",
            self.results.hosts.len(),
            self.results.nodes(&running),
            running.len(),
        );
    }

    /// Asks the next question when the last has been answered.
    fn ask(&mut self, now: Instant) -> Result<(), Failure> {
        let silence = Duration::from_millis(u64::from(WAVE_MILLISECONDS)) + HOLD_MAX;
        let is_lost = now - self.asked_at > silence * 2;
        if self.is_asked && !is_lost || now < self.asked_at + PAUSE {
            return Ok(());
        }
        self.hold = (self.hold * 2).min(HOLD_MAX);
        self.wave += 1;
        match self.control.broadcast(POLL, poll(self.wave, self.hold)) {
            // All have gone; the events say so, too.
            Err(Error::Misuse(_)) => {}
            asked => asked?,
        }
        (self.asked_at, self.is_asked) = (now, true);
        Ok(())
    }

    fn wait(&self, now: Instant) -> Duration {
        let next = if self.is_asked { HOLD_MAX } else { PAUSE };
        let ending = self.ending.map(|(_, until)| until.saturating_duration_since(now));
        next.min(ending.unwrap_or(next))
    }

    /// Sends standard input down while there is room. Gives whether there may be more at once.
    fn pass_input_on(&mut self) -> Result<bool, Failure> {
        let Some(input) = &mut self.input else { return Ok(false) };
        let has_room = input.stream.has_room().unwrap_or(false);
        if has_room && input.can_be_watched && !input.is_watched {
            // A regular file cannot be waited for, and need not be.
            input.can_be_watched = self.network.watch(&input.stdin).is_ok();
            input.is_watched = input.can_be_watched;
        } else if !has_room && input.is_watched {
            self.network.unwatch(&input.stdin)?;
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
        input.stream.broadcast(INPUT, Values::new().string(&part[..count]))?;
        if count == 0 {
            if input.is_watched {
                self.network.unwatch(&input.stdin)?;
            }
            self.network.flush()?;
            // The stream stays open: its end has to travel.
            self.closed_input = self.input.take().map(|input| input.stream);
        }
        Ok(count > 0)
    }
}

/// Whether a read would not wait.
fn is_readable(stdin: &Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}
