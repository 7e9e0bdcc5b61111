//! The front-end of `sapwood top`: asks wave after wave, and shows what came wherever it is wanted.
//!
//! One loop does everything: answers, signals, keys and scrapers are descriptors of the network's
//! own wait. Nothing else waits, so that a slow scraper keeps no wave and a hung host no key.

use std::time::{Duration, Instant};

use ratatui_core::terminal::Terminal;
use sapwood::{Event, Network, RankSet, Stream, Wave, WaveRule};
use sapwood_launch::Signal;
use sapwood_topology::NodeSet;
use sapwood_transport::{Page, PageServer};

use super::agent::{ASK, BEGIN, begin};
use super::exposition;
use super::json;
use super::reduction::HOSTS;
use super::rows;
use super::sample::{Sample, Waves};
use super::view::{Action, View};
use sapwood_command_line::exit::{Failure, complain, print};
use sapwood_hosts::absence;
use sapwood_hosts::notices::Notices;
use sapwood_hosts::signals::Signals;
use sapwood_hosts::unanswered::{Unanswered, had_room};
use sapwood_terminal::Screen;

/// No wait is longer, so that a scraper that is silent does not stay.
const TURN_MAX: Duration = Duration::from_secs(1);

/// The path of the metrics.
const PATH: &str = "/metrics";

/// Where samples are shown.
pub(super) enum Output {
    /// Only the hosts that come and go, on standard error.
    Nothing,
    /// A line of JSON for each.
    Json,
    /// A table for each, with the worst hosts of this metric.
    Table(usize),
    /// A view on the terminal.
    View(Box<Live>),
}

/// A view and the terminal that it is on.
pub(super) struct Live {
    pub(super) terminal: Terminal<Screen>,
    pub(super) view: View,
}

/// How the hosts are watched.
pub(super) struct Terms {
    pub(super) interval: Duration,
    pub(super) wave_timeout: Duration,
    /// How many of the worst hosts are named.
    pub(super) worst: u32,
    /// After this number of waves it ends.
    pub(super) count: Option<u64>,
    pub(super) series_max: usize,
    /// Where the hosts have `proc` and `sys`.
    pub(super) root: String,
}

/// Why it ended.
pub(super) enum Ended {
    /// All waves that were wanted have been, no host is left, or the user has seen enough.
    Done,
    /// A signal.
    By(Signal),
}

/// The front-end.
pub(super) struct Watch<'a> {
    network: &'a mut Network,
    stream: Stream,
    waves: Waves,
    everyone: RankSet,
    unanswered: Unanswered,
    terms: Terms,
    /// The next wave's number and when it is asked for.
    next: (Wave, Instant),
    output: Output,
    server: Option<PageServer>,
    signals: Signals,
    last: Option<Sample>,
    /// What was noticed while the view has the terminal.
    notices: Notices,
}

impl<'a> Watch<'a> {
    /// Opens the stream and lets the agents begin to count.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn begin(
        network: &'a mut Network,
        hosts: &NodeSet,
        terms: Terms,
        output: Output,
        server: Option<PageServer>,
        signals: Signals,
    ) -> Result<Self, Failure> {
        let milliseconds = terms.wave_timeout.as_millis() as u32;
        let everyone = network.everyone();
        let stream = network.stream(&everyone).up((HOSTS, terms.worst));
        let mut stream = stream.wave(WaveRule::Timeout { milliseconds }).open()?;
        stream.broadcast(BEGIN, begin(&terms.root, hosts))?;
        network.flush()?;
        for descriptor in signals.descriptors() {
            network.watch(descriptor)?;
        }
        if let Some(server) = &server {
            network.watch(server)?;
        }
        if let Output::View(live) = &output {
            network.watch(live.terminal.backend().input())?;
            network.watch(live.terminal.backend().resized())?;
        }
        let waves = Waves::new(hosts.iter().collect(), terms.worst, terms.wave_timeout);
        let next = (0, Instant::now() + terms.interval);
        let (everyone, unanswered) = (everyone.ranks().clone(), Unanswered::default());
        Ok(Self {
            network,
            stream,
            waves,
            everyone,
            unanswered,
            terms,
            next,
            output,
            server,
            signals,
            last: None,
            notices: Notices::default(),
        })
    }

    /// Hosts that could not be reached from the beginning.
    pub(super) fn lose(&mut self, ranks: &RankSet, reason: &str) {
        self.waves.lose(ranks, reason);
    }

    /// Gives the terminal back, and prints what was noticed meanwhile.
    pub(super) fn end(self) {
        let Self { output, mut notices, .. } = self;
        drop(output);
        notices.tell();
    }

    /// The last sample.
    pub(super) fn last(&self) -> Option<&Sample> {
        self.last.as_ref()
    }

    /// Goes on until it is to end.
    ///
    /// # Errors
    /// [`Failure`] when the network or the output fails.
    pub(super) fn run(&mut self) -> Result<Ended, Failure> {
        self.draw()?;
        loop {
            self.take_events();
            self.take_answers()?;
            if let Some(sample) = self.waves.settle(Instant::now()) {
                let is_last = self.terms.count == Some(sample.number);
                self.show(sample)?;
                if is_last || self.waves.all_are_lost() {
                    return Ok(Ended::Done);
                }
            }
            if let Some(signal) = self.signals.take().into_iter().next() {
                return Ok(Ended::By(signal));
            }
            if self.take_keys()? {
                return Ok(Ended::Done);
            }
            self.serve()?;
            self.ask()?;
            let due = self.waves.due().unwrap_or(self.next.1);
            let wait = due.saturating_duration_since(Instant::now());
            self.network.turn(wait.min(TURN_MAX))?;
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.network.next_event() {
            match event {
                notice @ Event::Notice { .. } => self.notices.take(&notice),
                Event::Lost { back_ends, reason, .. } => self.waves.lose(&back_ends, &reason),
                Event::Joined { back_ends } | Event::Repaired { back_ends, .. } => {
                    self.waves.find(&back_ends);
                    self.unanswered.hear(&back_ends);
                }
                _ => {}
            }
        }
        // A line would be drawn over, and spoil the view.
        if !matches!(self.output, Output::View(_)) {
            self.notices.tell();
        }
    }

    fn take_answers(&mut self) -> Result<(), Failure> {
        while self.stream.waiting() > 0 {
            let answer = self.stream.recv()?;
            self.unanswered.hear(&answer.contributors);
            let taken = self.waves.take(&answer, Instant::now());
            taken.map_err(|fault| {
                Failure::own(&format!(
                    "a host sent an invalid answer; install the same release on all hosts: {fault}"
                ))
            })?;
        }
        Ok(())
    }

    /// Asks for the next wave when its time has come and the one before is settled.
    fn ask(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        let (wave, at) = self.next;
        if !self.waves.is_idle() || now < at {
            return Ok(());
        }
        // Questions would pile up for a host that hangs. A front-end that waited for room would
        // hear no key, no signal and no scraper, for as long as it does. A host that is not asked
        // has not answered in time.
        let Self { stream, everyone, unanswered, .. } = self;
        unanswered.ask(everyone, |to| had_room(stream.try_send_to_ranks(to.clone(), ASK, wave)))?;
        self.network.flush()?;
        self.waves.begin(wave, now);
        // One that is late does not make the next ones come in a heap.
        self.next = (wave + 1, (at + self.terms.interval).max(now + self.terms.interval / 2));
        Ok(())
    }

    fn show(&mut self, sample: Sample) -> Result<(), Failure> {
        match &self.output {
            Output::Nothing => self.tell_changes(&sample),
            Output::Json => print(&json::line(&sample))?,
            Output::Table(chosen) => {
                let gap = if self.last.is_some() { "\n" } else { "" };
                print(&format!("{gap}{}", rows::table(&sample, *chosen)))?;
            }
            Output::View(_) => {}
        }
        self.last = Some(sample);
        match &self.output {
            Output::View(live) if live.view.is_paused() => Ok(()),
            _ => self.draw(),
        }
    }

    /// Says on standard error which hosts are missing, when that is not as it was.
    fn tell_changes(&self, sample: &Sample) {
        let before = self.last.as_ref().map_or(&[][..], |last| &last.missing);
        if before == &sample.missing[..] {
            return;
        }
        for (ranks, reason) in &sample.missing {
            complain(absence::line(&sample.nodes(ranks), reason));
        }
        if sample.missing.is_empty() {
            complain("all hosts answer");
        }
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let Output::View(live) = &mut self.output else { return Ok(()) };
        let (view, sample) = (&live.view, self.last.as_ref());
        let drawn = live.terminal.draw(|frame| view.draw(sample, frame.buffer_mut()));
        drawn.map(|_| ()).map_err(|error| Failure::output(&error))
    }

    /// Does what the keys ask; true if that is to end.
    fn take_keys(&mut self) -> Result<bool, Failure> {
        let Output::View(live) = &mut self.output else { return Ok(false) };
        let screen = live.terminal.backend_mut();
        let mut is_changed = screen.was_resized();
        let Some(keys) = screen.keys() else { return Ok(true) };
        for key in keys {
            match live.view.press(key, self.last.as_ref()) {
                Some(Action::Quit) => return Ok(true),
                Some(Action::Redraw) => is_changed = true,
                None => {}
            }
        }
        if is_changed {
            self.draw()?;
        }
        Ok(false)
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let Some(server) = &mut self.server else { return Ok(()) };
        let (sample, series_max) = (self.last.as_ref(), self.terms.series_max);
        let served = server.serve(Instant::now(), &mut |path| {
            (path == PATH).then(|| Page {
                content_type: exposition::CONTENT_TYPE,
                body: exposition::text(sample, series_max).into_bytes(),
            })
        });
        served.map_err(|error| Failure::own(&error))
    }
}
