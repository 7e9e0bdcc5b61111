//! An agent: the back-end process of `sapwood copy` on each host, which receives what is pushed or
//! is the source of what is gathered.
//!
//! It works in short turns, so that it answers questions meanwhile; only a disk that does not
//! answer keeps it longer, and then the front-end gives the host up.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{BackEnd, Error, Event, Received, StreamId, Wave};
use sapwood_topology::NodeSet;

use super::protocol::{
    AGAIN, ANSWER, Complaints, Message, NOTHING_MORE, ORDER, Order, Outcome, POLL, State,
};
use super::receiver::{self, Receiver};
use super::scan::Scan;
use super::source::{self, Source};
use sapwood_command_line::exit::Failure;
use sapwood_hosts::agent_errors::forgive;
use sapwood_hosts::substitution::substitute;

/// The hidden argument with which this program is an agent.
pub const AGENT: &str = "copy-agent";

/// An agent with nothing to do looks around as often as this.
const IDLE_TURN: Duration = Duration::from_secs(60);

/// For this time packets are taken and work is done before questions are looked at.
const WORK_TIME: Duration = Duration::from_millis(50);

/// The only receiver that an agent serves as a source: the front-end.
const FRONT_END: u32 = 0;

/// Serves until the network ends.
///
/// # Errors
/// When the tree cannot be joined.
pub fn run() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let mut agent = Agent { rank: back_end.rank(), job: None };
    let ended = loop {
        if let Err(error) = agent.turn(&mut back_end) {
            break error;
        }
        if back_end.has_ended() {
            break Error::Ended { reason: "the network has ended".to_string() };
        }
    };
    if let Some(Job { work: Work::Receiving(receiver), .. }) = &mut agent.job {
        receiver.abandon();
    }
    match ended {
        Error::Ended { .. } => Ok(ExitCode::SUCCESS),
        error => Err(error.into()),
    }
}

struct Agent {
    rank: u32,
    job: Option<Job>,
}

/// The copy that this agent takes part in.
struct Job {
    control: StreamId,
    data: StreamId,
    work: Work,
    /// The question that is to be answered, and when at the latest.
    asked: Option<(Wave, Instant)>,
}

enum Work {
    Receiving(Box<Receiver>),
    Scanning(Box<Scan>),
    Sending(Box<Source>, Sending),
}

/// What a source has done so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// The receiver has not said yet what it lacks.
    Announcing,
    Serving,
    Over,
}

impl Agent {
    fn turn(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        while let Some(event) = back_end.next_event() {
            if let Event::StreamClosed { stream } = event {
                self.stream_closed(back_end, stream);
            }
        }
        let until = Instant::now() + WORK_TIME;
        for stream in back_end.waiting_on() {
            let is_data = self.job.as_ref().is_some_and(|job| job.data == stream);
            while !is_data && let Some(received) = back_end.take_from(stream) {
                forgive(self.take_control(&received))?;
            }
        }
        let mut is_busy = false;
        if let Some(job) = &mut self.job {
            while Instant::now() < until {
                is_busy = job.take_data(back_end) | forgive(job.work_on(back_end))?;
                if !is_busy {
                    break;
                }
            }
            forgive(job.answer(back_end))?;
        }
        back_end.flush()?;
        let asked = self.job.as_ref().and_then(|job| job.asked);
        let wait = match asked {
            _ if is_busy => Duration::ZERO,
            Some((_, until)) => until.saturating_duration_since(Instant::now()),
            None => IDLE_TURN,
        };
        back_end.turn(wait)?;
        Ok(())
    }

    fn stream_closed(&mut self, back_end: &mut BackEnd, stream: StreamId) {
        // An order that came before its stream was closed and was not taken until now is not obeyed
        // any more: its user has been told meanwhile that this host is missing.
        if self.job.as_ref().is_none_or(|job| job.data != stream) {
            while back_end.take_from(stream).is_some() {}
        }
        if self.job.as_ref().is_some_and(|job| job.control == stream)
            && let Some(Job { work: Work::Receiving(mut receiver), .. }) = self.job.take()
        {
            receiver.abandon();
        }
    }

    fn take_control(&mut self, received: &Received) -> Result<(), Error> {
        let (stream, values) = (received.stream, received.values());
        match (received.tag(), &mut self.job) {
            (ORDER, _) => {
                let order = Order::decode(values)?;
                self.job = Some(Job::begin(stream, self.rank, &order));
            }
            (POLL, Some(job)) if job.control == stream => {
                let hold = Duration::from_millis(u64::from(values.scalar::<u32>(1)?));
                job.asked = Some((values.scalar(0)?, Instant::now() + hold));
            }
            (AGAIN, Some(job)) if job.control == stream => {
                job.data = values.scalar(0)?;
                if let Work::Receiving(receiver) = &mut job.work {
                    receiver.say_again();
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Job {
    fn begin(control: StreamId, rank: u32, order: &Order) -> Self {
        let hosts: NodeSet = order.hosts.parse().unwrap_or_default();
        let host = hosts.iter().nth(rank as usize).unwrap_or_default();
        let path = |bytes: &[u8]| -> PathBuf {
            match std::str::from_utf8(bytes) {
                Ok(text) if order.substitutes => substitute(text, &host, rank as usize).into(),
                _ => OsString::from_vec(bytes.to_vec()).into(),
            }
        };
        let work = if order.gathers {
            let roots = order.sources.iter().map(|source| path(source)).collect();
            Work::Scanning(Box::new(Scan::new(roots)))
        } else {
            let destination = path(&order.destination);
            Work::Receiving(Box::new(Receiver::new(&destination, &order.sources, order.terms)))
        };
        Self { control, data: order.data, work, asked: None }
    }

    /// Takes one packet of data, if there is one.
    fn take_data(&mut self, back_end: &mut BackEnd) -> bool {
        let Some(received) = back_end.take_from(self.data) else { return false };
        let Some(message) = Message::decode(received.tag(), received.values()) else { return true };
        match (&mut self.work, message) {
            (Work::Receiving(receiver), message) => receiver.take(&message),
            (Work::Sending(source, _), Message::Offer { entry, length, digest }) => {
                source.offer(FRONT_END, entry, length, digest);
            }
            (Work::Sending(source, sending), Message::Ready { known, lacking })
                if *sending != Sending::Over =>
            {
                *sending = answer_ready(source, known, lacking);
            }
            _ => {}
        }
        true
    }

    /// Does one step of the work; gives whether there is more that can be done at once.
    fn work_on(&mut self, back_end: &mut BackEnd) -> Result<bool, Error> {
        match &mut self.work {
            Work::Receiving(receiver) => match receiver.step() {
                receiver::Step::Say(message) => {
                    let (tag, values) = message.encode();
                    back_end.send(self.data, tag, values)?;
                    Ok(true)
                }
                receiver::Step::Busy => Ok(true),
                receiver::Step::Nothing => Ok(false),
            },
            Work::Scanning(scan) => {
                if !scan.step() {
                    let mut source = Source::new(std::mem::take(&mut scan.found));
                    source.announce([FRONT_END].into_iter().collect(), 0);
                    self.work = Work::Sending(Box::new(source), Sending::Announcing);
                }
                Ok(true)
            }
            Work::Sending(source, sending) => {
                if *sending == Sending::Over || !back_end.has_room(self.data)? {
                    return Ok(false);
                }
                match source.step() {
                    source::Step::Say(_, message) => {
                        if message == Message::Finish {
                            *sending = Sending::Over;
                        }
                        let (tag, values) = message.encode();
                        back_end.send(self.data, tag, values)?;
                        Ok(true)
                    }
                    source::Step::Busy => Ok(true),
                    source::Step::Nothing => Ok(false),
                }
            }
        }
    }

    /// Answers the question, if there is one and it is time.
    fn answer(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        let Some((wave, until)) = self.asked else { return Ok(()) };
        let outcome = self.outcome();
        if matches!(outcome.state, State::Going(..)) && Instant::now() < until {
            return Ok(());
        }
        self.asked = None;
        back_end.send_in_wave(self.control, wave, ANSWER, outcome.encode())
    }

    fn outcome(&self) -> Outcome {
        let going = |thousandths| Outcome {
            state: State::Going(thousandths, 0),
            complaints: Complaints::default(),
        };
        match &self.work {
            Work::Receiving(receiver) => receiver.outcome(),
            Work::Scanning(_) => going(0),
            Work::Sending(source, sending) => {
                let (bytes, files) = source.said();
                if *sending != Sending::Over {
                    let all = source.found.manifest.data_bytes().max(1);
                    return going((u128::from(bytes) * 1000 / u128::from(all)) as u32);
                }
                let complaints = source.found.complaints.clone();
                Outcome { state: State::Done { files, bytes }, complaints }
            }
        }
    }
}

/// The receiver says what it lacks, which may be the end of the list itself.
fn answer_ready(source: &mut Source, known: u64, lacking: Vec<(u64, u64)>) -> Sending {
    if known <= source.found.manifest.len() {
        source.announce([FRONT_END].into_iter().collect(), known);
        return Sending::Announcing;
    }
    if known == NOTHING_MORE {
        source.begin_round();
    }
    source.want(FRONT_END, lacking);
    source.serve();
    Sending::Serving
}

/// The name of a source, which its copy gets.
pub(super) fn name_of(source: &Path) -> Option<Vec<u8>> {
    source.file_name().map(|name| name.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> (tempfile::TempDir, Source) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"text").unwrap();
        let mut scan = Scan::new(vec![folder.path().join("file")]);
        while scan.step() {}
        (folder, Source::new(scan.found))
    }

    fn said(source: &mut Source) -> Vec<&'static str> {
        let mut said = Vec::new();
        loop {
            said.push(match source.step() {
                source::Step::Nothing => return said,
                source::Step::Busy => continue,
                source::Step::Say(_, Message::Entries { .. }) => "entries",
                source::Step::Say(_, Message::Planned { .. }) => "planned",
                source::Step::Say(_, Message::Part { .. }) => "part",
                source::Step::Say(_, Message::End { .. }) => "end",
                source::Step::Say(_, Message::Finish) => "finish",
                source::Step::Say(_, other) => panic!("{other:?}"),
            });
        }
    }

    #[test]
    fn a_receiver_gets_the_list_that_it_lacks_and_nothing_that_it_does_not_want() {
        let (_folder, mut source) = source();
        assert!(answer_ready(&mut source, 0, Vec::new()) == Sending::Announcing);
        assert_eq!(said(&mut source), ["entries", "planned"]);
        assert!(answer_ready(&mut source, 2, vec![(0, 1)]) == Sending::Serving);
        assert_eq!(said(&mut source), ["part", "end", "finish"]);
        // It can put nothing anywhere, and says so while it is told something.
        source.announce([FRONT_END].into_iter().collect(), 0);
        assert!(answer_ready(&mut source, NOTHING_MORE, Vec::new()) == Sending::Serving);
        assert_eq!(said(&mut source), ["finish"]);
        source.want(FRONT_END, vec![(0, 1)]);
        source.serve();
        assert!(answer_ready(&mut source, NOTHING_MORE, Vec::new()) == Sending::Serving);
        assert_eq!(said(&mut source), ["finish"]);
    }
}
