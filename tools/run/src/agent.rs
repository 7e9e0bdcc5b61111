//! An agent: the back-end process of `sapwood run` on each host.
//!
//! It runs what it is told, one or several commands at a time, each known by its control stream,
//! until the network ends. When it does, or when a command's streams are closed, the command's
//! processes are killed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{BackEnd, Error, Event, Received, StreamId};

use sapwood_hosts::agent_errors::forgive;

use super::job::Job;
use super::protocol::{FETCH, INPUT, Order, POLL, RUN, SIGNAL};
use sapwood_command_line::exit::Failure;

/// An agent with nothing to do looks around as often as this.
const IDLE_TURN: Duration = Duration::from_secs(60);

/// Commands whose input has overtaken them at the same time. What is older is of commands that have
/// ended meanwhile.
const EARLY_INPUTS_MAX: usize = 64;

/// Serves until the network ends.
///
/// # Errors
/// When the tree cannot be joined.
pub fn run() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let (jobs, early) = (BTreeMap::new(), BTreeMap::new());
    let mut agent = Agent { rank: back_end.rank(), jobs, early };
    let ended = agent.serve(&mut back_end);
    for job in agent.jobs.values_mut() {
        job.kill(&mut back_end);
    }
    match ended {
        Error::Ended { .. } => Ok(ExitCode::SUCCESS),
        error => Err(error.into()),
    }
}

struct Agent {
    rank: u32,
    /// The commands, by their control streams.
    jobs: BTreeMap<StreamId, Job>,
    /// The first part of input that has overtaken its command, by its stream, from which no more
    /// is taken until the command is there.
    early: BTreeMap<StreamId, Vec<u8>>,
}

impl Agent {
    fn serve(&mut self, back_end: &mut BackEnd) -> Error {
        loop {
            if let Err(error) = self.turn(back_end) {
                return error;
            }
            if back_end.has_ended() {
                return Error::Ended { reason: "the network has ended".to_string() };
            }
        }
    }

    fn turn(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        while let Some(event) = back_end.next_event() {
            let Event::StreamClosed { stream } = event else { continue };
            // An order that came before its stream was closed and was not taken until now is not
            // obeyed any more: its user has been told meanwhile that this host is missing.
            while back_end.take_from(stream).is_some() {}
            self.early.remove(&stream);
            if let Some(mut job) = self.jobs.remove(&stream) {
                job.kill(back_end);
            }
        }
        let now = Instant::now();
        for stream in back_end.waiting_on() {
            while self.takes(stream) {
                let Some(received) = back_end.take_from(stream) else { break };
                forgive(self.take(back_end, &received, now))?;
            }
        }
        for job in self.jobs.values_mut() {
            forgive(job.turn(back_end, now))?;
        }
        back_end.flush()?;
        // Input that had no place before may have one now.
        if back_end.waiting_on().into_iter().any(|stream| self.takes(stream)) {
            back_end.turn(Duration::ZERO)?;
            return Ok(());
        }
        let next = self.jobs.values().filter_map(|job| job.next_turn(now)).min();
        let wait = next.map_or(IDLE_TURN, |next| next.saturating_duration_since(Instant::now()));
        back_end.turn(wait.min(IDLE_TURN))?;
        Ok(())
    }

    /// Whether a packet of this stream can be dealt with now.
    fn takes(&self, stream: StreamId) -> bool {
        let has_room = self.of_input(stream).is_none_or(|(_, job)| job.takes_input());
        has_room && !self.early.contains_key(&stream)
    }

    fn of_input(&self, stream: StreamId) -> Option<(&StreamId, &Job)> {
        self.jobs.iter().find(|(_, job)| job.input == Some(stream))
    }

    fn take(
        &mut self,
        back_end: &mut BackEnd,
        received: &Received,
        now: Instant,
    ) -> Result<(), Error> {
        let (stream, values) = (received.stream, received.values());
        if received.tag() == RUN {
            let order = Order::decode(values)?;
            let mut job = Job::start(stream, self.rank, &order, now);
            if let Some(part) = self.early.remove(&order.input) {
                job.take_input(&part);
            }
            self.jobs.insert(stream, job);
            return Ok(());
        }
        if received.tag() == INPUT {
            let part = values.string_bytes(0)?;
            let of_stream = |job: &&mut Job| job.input == Some(stream);
            if let Some(job) = self.jobs.values_mut().find(of_stream) {
                job.take_input(part);
                return job.turn(back_end, now);
            }
            self.early.insert(stream, part.to_vec());
            if self.early.len() > EARLY_INPUTS_MAX {
                self.early.pop_first();
            }
            return Ok(());
        }
        let Some(job) = self.jobs.get_mut(&stream) else { return Ok(()) };
        match received.tag() {
            POLL => {
                let hold = Duration::from_millis(u64::from(values.scalar::<u32>(1)?));
                job.poll(back_end, values.scalar(0)?, hold, now)?;
            }
            SIGNAL => job.signal(values.scalar(0)?),
            FETCH => job.fetch(values.scalar(0)?),
            _ => {}
        }
        Ok(())
    }
}
