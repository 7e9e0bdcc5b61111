//! The front-end of a copy: tells the agents, asks them wave after wave how it goes, drives its own
//! half of the work, and hears signals.

use std::time::{Duration, Instant};

use sapwood::{Event, Network, RankSet, Stream, WaveRule};
use sapwood_launch::Signal;

use super::gather::Gather;
use super::progress::Bar;
use super::protocol::{AGAIN, ORDER, Order, POLL, poll};
use super::push::{Push, open_data};
use super::results::Results;
use sapwood_command_line::exit::Failure;
use sapwood_hosts::notices::Notices;
use sapwood_hosts::questions::{QuestionTiming, Questions};
use sapwood_hosts::signals::Signals;
use sapwood_hosts::unanswered::{had_room, said};

/// For how long a wave is held for hosts for which it is not over.
const HOLD: Duration = Duration::from_millis(400);

/// After the first answer to a wave, those that stay silent are waited for this time, in
/// milliseconds.
const WAVE_MILLISECONDS: u32 = 3000;

/// How fast questions follow each other.
const TIMING: QuestionTiming = QuestionTiming {
    pause: Duration::from_millis(10),
    hold: HOLD,
    silence: Duration::from_millis(WAVE_MILLISECONDS as u64),
};

/// Hosts that lack something when everything has been said are served anew this number of times.
const ROUNDS_MAX: u32 = 8;

/// How much longer than a silent host a copy is waited for that does not go on, though all answer:
/// then something was lost on its way, and all say anew what is lacking.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// The front-end's own half.
pub(super) enum Work {
    Push(Box<Push>),
    Gather(Box<Gather>),
}

/// The front-end of one copy.
pub(super) struct Conductor<'a> {
    network: &'a mut Network,
    control: Stream,
    pub(super) work: Work,
    results: Results,
    signals: Signals,
    stall_limit: Duration,
    bar: Bar,
    questions: Questions,
    rounds: u32,
    /// How far all hosts were when something last went on, and when that was.
    progress: (u64, Instant),
}

impl<'a> Conductor<'a> {
    /// Opens the streams and tells the agents what to do; `begin` makes the front-end's half.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn begin(
        network: &'a mut Network,
        mut order: Order,
        results: Results,
        signals: Signals,
        stall_limit: Duration,
        bar: Bar,
        begin: impl FnOnce(Stream) -> Work,
    ) -> Result<Self, Failure> {
        let everyone = network.everyone();
        let data = open_data(network, everyone.ranks().clone())?;
        // A host that answers is not to seem silent because another is waited for.
        let milliseconds = u32::try_from((stall_limit / 3).as_millis()).unwrap_or(u32::MAX);
        let milliseconds = milliseconds.clamp(1, WAVE_MILLISECONDS);
        let rule = WaveRule::Timeout { milliseconds };
        let mut control = network.stream(&everyone).up("classes").wave(rule).open()?;
        order.data = data.id();
        control.broadcast(ORDER, order.encode())?;
        control.broadcast(POLL, poll(0, HOLD))?;
        network.flush()?;
        for descriptor in signals.descriptors() {
            network.watch(descriptor)?;
        }
        Ok(Self {
            network,
            control,
            work: begin(data),
            results,
            signals,
            stall_limit,
            bar,
            questions: Questions::new(TIMING, Instant::now()),
            rounds: 0,
            progress: (0, Instant::now()),
        })
    }

    /// Goes on until it is over on every host, or the user stops it. Gives the signal that did.
    ///
    /// # Errors
    /// [`Failure`] when the network fails.
    pub(super) fn run(&mut self) -> Result<Option<Signal>, Failure> {
        loop {
            self.take_events();
            self.take_answers()?;
            if let Some(signal) = self.signals.take().first() {
                if let Work::Gather(gather) = &mut self.work {
                    gather.abandon();
                }
                return Ok(Some(*signal));
            }
            let now = Instant::now();
            self.give_up_silent(now)?;
            let is_busy = match &mut self.work {
                Work::Push(push) => push.work()?,
                Work::Gather(gather) => gather.work()?,
            };
            let is_settled = match &mut self.work {
                Work::Gather(gather) => gather.settle(&mut self.results),
                Work::Push(_) => true,
            };
            if self.results.is_complete() && is_settled {
                if let Work::Gather(gather) = &mut self.work {
                    gather.abandon();
                }
                return Ok(None);
            }
            self.serve_again(now)?;
            self.give_up_incomplete(now);
            self.ask(now)?;
            self.show(now);
            self.network.turn(if is_busy { Duration::ZERO } else { self.questions.wait(now) })?;
        }
    }

    /// What is known of the hosts. The line about progress goes.
    pub(super) fn into_results(self) -> Results {
        self.results
    }

    fn take_events(&mut self) {
        let mut notices = Notices::default();
        while let Some(event) = self.network.next_event() {
            notices.take(&event);
            let (ranks, reason) = match event {
                Event::Lost { back_ends, reason, .. } => (back_ends, reason),
                Event::Ended { reason, .. } => (self.results.running(), reason),
                _ => continue,
            };
            self.results.lose(&ranks, &reason);
            match &mut self.work {
                Work::Push(push) => push.lose(&ranks),
                Work::Gather(gather) => gather.lose(&ranks),
            }
        }
        notices.tell();
    }

    fn take_answers(&mut self) -> Result<(), Failure> {
        while self.control.waiting() > 0 {
            let answer = self.control.recv()?;
            let over = self.results.over();
            self.questions.hear(&answer);
            self.results.take(&answer, Instant::now())?;
            let newly = self.results.over().difference(over.as_ref());
            if let Work::Push(push) = &mut self.work
                && !newly.is_empty()
            {
                // A host that has failed is told nothing more.
                push.lose(&newly);
            }
        }
        let data = match &mut self.work {
            Work::Push(push) => &mut push.data,
            Work::Gather(gather) => &mut gather.data,
        };
        let mut answers = Vec::new();
        while data.waiting() > 0 {
            answers.push(data.recv()?);
        }
        for answer in &answers {
            self.results.hear(&answer.contributors, Instant::now());
            match &mut self.work {
                Work::Push(push) => push.take(answer),
                Work::Gather(gather) => gather.take(answer),
            }
        }
        Ok(())
    }

    /// Hosts that are silent for too long are given up, and the others go on without them.
    fn give_up_silent(&mut self, now: Instant) -> Result<(), Failure> {
        let silent = self.results.lose_silent(self.stall_limit, now);
        if silent.is_empty() {
            return Ok(());
        }
        let push = match &mut self.work {
            Work::Push(push) => push,
            Work::Gather(gather) => {
                gather.pass_over(&silent);
                return Ok(());
            }
        };
        push.lose(&silent);
        let rest = self.results.running();
        if rest.is_empty() {
            return Ok(());
        }
        let data = open_data(self.network, rest.clone())?;
        let number = data.id();
        push.begin_round(rest.clone(), Some(data));
        self.say_again(&rest, number)
    }

    /// Each host that lacks something when everything has been said is served anew.
    fn serve_again(&mut self, now: Instant) -> Result<(), Failure> {
        let Work::Push(push) = &mut self.work else { return Ok(()) };
        let progress = self.results.progress() + push.source.steps();
        if progress != self.progress.0 {
            self.progress = (progress, now);
        }
        let is_quiet = now - self.progress.1 > self.stall_limit + QUIET_TIME;
        let lacking = self.results.all_lacking();
        let lacking = lacking.or_else(|| is_quiet.then(|| self.results.running()));
        let Some(lacking) = lacking.filter(|lacking| !lacking.is_empty()) else { return Ok(()) };
        self.progress.1 = now;
        if self.rounds >= ROUNDS_MAX {
            self.results.lose(&lacking, "did not receive all files completely in several rounds");
            return Ok(());
        }
        self.rounds += 1;
        let number = push.data.id();
        push.begin_round(lacking.clone(), None);
        self.say_again(&lacking, number)
    }

    /// What hosts say that they have sent has to come some time.
    fn give_up_incomplete(&mut self, now: Instant) {
        let Work::Gather(gather) = &mut self.work else { return };
        let progress = self.results.progress() + gather.steps();
        if progress != self.progress.0 {
            self.progress = (progress, now);
        }
        if self.results.is_complete() && now - self.progress.1 > self.stall_limit + QUIET_TIME {
            gather.lose(&self.results.over());
        }
    }

    fn say_again(&mut self, ranks: &RankSet, data: u32) -> Result<(), Failure> {
        self.results.ask_again(self.questions.last() + 1);
        said(self.control.send_to_ranks(ranks, AGAIN, data))?;
        Ok(self.network.flush()?)
    }

    /// Asks the next question when the last has been answered.
    fn ask(&mut self, now: Instant) -> Result<(), Failure> {
        let control = &mut self.control;
        let members = control.members();
        self.questions.ask(members.ranks(), now, |to, wave| {
            had_room(control.try_send_to_ranks(to.clone(), POLL, poll(wave, HOLD)))
        })?;
        Ok(())
    }

    fn show(&mut self, now: Instant) {
        match &self.work {
            Work::Push(push) => {
                let all = push.source.found.manifest.data_bytes();
                let (least, most) = self.results.thousandths();
                self.bar.show_pushed(now, all, least, most);
            }
            Work::Gather(gather) => {
                let (there, planned) = gather.bytes();
                self.bar.show_gathered(now, there, planned);
            }
        }
    }
}
