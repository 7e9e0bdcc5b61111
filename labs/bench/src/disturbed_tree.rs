//! A tree with disturbers in it, and one disturbance of it from its beginning to its end.
//!
//! Owns which back-ends are disturbers and which neighbours, the stream on which the former
//! misbehave, and the account of what became of its packets: received, dropped where they were
//! sent, dropped on the way. `flood` has the cases and the figures, `disturbance` the part of the
//! back-ends.

use std::time::{Duration, Instant};

use sapwood::{
    Answer, Communicator, FilterSpec, Network, Policy, Registry, Stream, Values, WaveRule,
};
use sapwood_floor::process::resident;

use super::disturbance::{BURN, FLOOD, STALL, STOP, register};
use super::flood::Case;
use super::leaf::{ExpectedSum, Request, TAG};
use super::plan::Transport;
use super::processes::{descendants, forget_own_peak, is_communication_process, rank_of};
use super::scale::DEADLINE;
use super::steady::{ANSWERS_PER_TURN, SteadyStream};
use super::tree::{builder, leaf_program, own_program};
use sapwood_command_line::exit::Failure;

/// The tree: sixteen back-ends below four communication processes.
const FAN_OUTS: [u32; 2] = [4, 4];
/// Of this number of back-ends in a row the last one is a disturber.
const DISTURBER_OF: u32 = 4;

/// What a disturbance gets to come into full swing.
const SWING: Duration = Duration::from_millis(50);

/// How long is waited for a first huge packet at a time.
const LEAST_TURN: Duration = Duration::from_millis(1);

/// How long nothing may come before what is still under way counts as dropped.
const QUIET: Duration = Duration::from_millis(200);

/// Bytes of a flooding packet's load.
const FLOOD_BYTES: u64 = 64;
/// The same before a filter that stalls: what lies before it takes its time to pass.
const STALLED_BYTES: u64 = 4096;
/// How long the stalling filter sleeps in each wave, in milliseconds.
const STALL_MS: u32 = 5;

/// Packets that are taken in one turn between the neighbours' answers: as many as these are, so
/// that the front-end itself prefers neither.
const TAKEN_PER_TURN: u64 = ANSWERS_PER_TURN;

/// Longest huge packet, in bytes.
pub(super) const LARGE_BYTES_MAX: u64 = 512 << 20;

/// A running tree with its neighbours' stream.
pub(super) struct DisturbedTree {
    pub(super) neighbours: SteadyStream,
    network: Network,
    disturbers: Communicator,
    processes: Vec<u32>,
}

impl DisturbedTree {
    /// Opens both.
    pub(super) fn open(transport: Transport, elements: usize) -> Result<Self, Failure> {
        let shape = sapwood::Shape::levels(&FAN_OUTS).map_err(Failure::usage)?;
        let before = descendants()?;
        forget_own_peak();
        let network = builder(&shape, transport)?
            // The filter that stalls is only in this program.
            .node_program(own_program()?)
            .back_end(leaf_program()?)
            .registry(register(Registry::built_in()))
            .open()?;
        let processes = descendants()?.into_iter().filter(|pid| !before.contains(pid)).collect();
        let ranks = 0..shape.back_end_count();
        let (bad, good): (Vec<u32>, Vec<u32>) = ranks.partition(|rank| is_disturber(*rank));
        let neighbours = SteadyStream::open(&network, &network.communicator(good), elements)?;
        let disturbers = network.communicator(bad);
        Ok(Self { neighbours, network, disturbers, processes })
    }

    /// Begins a disturbance, and gives it time to come into full swing. If it is `tame`, the same
    /// back-ends only use as much of the processor.
    pub(super) fn disturb(
        &mut self,
        case: Case,
        tame: bool,
        large_bytes: u64,
    ) -> Result<Disturbance, Failure> {
        let members = match case {
            // One flooding back-end is what the others are to bear.
            Case::Flood => self.network.communicator(self.disturbers.ranks().iter().take(1)),
            _ => self.disturbers.clone(),
        };
        let builder = self.network.stream(&members);
        let builder = match case {
            Case::Unread | Case::Flood => builder.wave(WaveRule::Immediate),
            Case::UnreadDropping => builder.wave(WaveRule::Immediate).policy(Policy::DropOldest),
            Case::Stall => builder.up(FilterSpec {
                name: STALL.to_string(),
                parameters: Values::new().scalar(STALL_MS),
            }),
            Case::Large => builder.up("sum"),
        };
        let mut stream = builder.open()?;
        let report = self.network.stream(&members).up("sum").open()?;
        let mut large = None;
        if tame {
            stream.broadcast(BURN, ())?;
        } else if case == Case::Large {
            let mut packets = Large::new(&members, large_bytes);
            packets.ask(&mut stream)?;
            large = Some(packets);
        } else {
            let bytes = if case == Case::Stall { STALLED_BYTES } else { FLOOD_BYTES };
            stream.broadcast(FLOOD, bytes)?;
        }
        self.network.flush()?;
        let begun = Instant::now();
        let mut disturbance = Disturbance { case, stream, report, received: 0, large, begun };
        while begun.elapsed() < SWING || disturbance.awaits_first() {
            self.network.turn(SWING.saturating_sub(begun.elapsed()).max(LEAST_TURN))?;
            disturbance.read_some()?;
            if begun.elapsed() > DEADLINE {
                return Err(Failure::own(&"no huge packet comes"));
            }
        }
        disturbance.begun = Instant::now();
        Ok(disturbance)
    }

    /// The most memory that a process of each kind has held at once, with its name and label.
    pub(super) fn peaks(&self) -> Result<[(&'static str, &'static str, u64); 4], Failure> {
        let (mut nodes, mut neighbours, mut disturbers) = (0, 0, 0);
        for pid in &self.processes {
            let peak = peak_of(*pid)?;
            let of = match rank_of(*pid) {
                _ if is_communication_process(*pid) => &mut nodes,
                Some(rank) if is_disturber(rank) => &mut disturbers,
                _ => &mut neighbours,
            };
            *of = peak.max(*of);
        }
        Ok([
            ("peak_mib.front_end", "peak memory, front-end", peak_of(std::process::id())?),
            ("peak_mib.communication", "peak memory, communication process", nodes),
            ("peak_mib.neighbour", "peak memory, neighbour", neighbours),
            ("peak_mib.disturber", "peak memory, disturber", disturbers),
        ])
    }

    /// Ends the tree.
    pub(super) fn close(self) -> Result<(), Failure> {
        self.neighbours.close()?;
        Ok(self.network.close()?)
    }
}

fn is_disturber(rank: u32) -> bool {
    rank % DISTURBER_OF == DISTURBER_OF - 1
}

fn peak_of(pid: u32) -> Result<u64, Failure> {
    let resident = resident(pid).map_err(|error| {
        Failure::own(&format!("cannot read the memory of process {pid}: {error}"))
    })?;
    Ok(resident.max_bytes)
}

/// A stream that misbehaves.
pub(super) struct Disturbance {
    case: Case,
    stream: Stream,
    /// Where the disturbers say what they have done.
    report: Stream,
    received: u64,
    large: Option<Large>,
    /// When it was in full swing.
    begun: Instant,
}

impl Disturbance {
    /// Whether it is only being prepared: huge packets take longer to make than to send.
    fn awaits_first(&self) -> bool {
        self.large.is_some() && self.received == 0
    }

    /// Takes what has come on the stream, if the case is one in which the front-end does.
    pub(super) fn read_some(&mut self) -> Result<(), Failure> {
        // A turn of the loop for each look would be the disturbers', of whose packets it is full.
        let has_come = self.large.is_none() || self.stream.waiting() > 0;
        if self.case.is_read() && has_come { self.take().map(drop) } else { Ok(()) }
    }

    /// Takes what has come; gives whether anything has.
    fn take(&mut self) -> Result<bool, Failure> {
        for taken in 0..TAKEN_PER_TURN {
            if self.large.is_some() && self.stream.waiting() == 0 {
                return Ok(taken > 0);
            }
            let Some(answer) = self.stream.try_recv()? else { return Ok(taken > 0) };
            self.received += 1;
            if let Some(large) = &mut self.large {
                large.came(answer);
                large.ask(&mut self.stream)?;
            }
        }
        Ok(true)
    }

    /// Ends it, and gives the account of its packets.
    pub(super) fn end(mut self) -> Result<Account, Failure> {
        match self.case {
            Case::Large => self.end_large(),
            // What lies before a filter that stalls takes long to pass it: it is given up.
            Case::Stall => {
                let received = self.received;
                self.stream.close()?;
                self.report.broadcast(STOP, ())?;
                self.report.recv_timeout(DEADLINE)?;
                self.report.close()?;
                Ok(Account { received, ..Account::default() })
            }
            _ => self.end_flood(),
        }
    }

    fn end_flood(mut self) -> Result<Account, Failure> {
        self.report.broadcast(STOP, ())?;
        let until = Instant::now() + DEADLINE;
        let answer = loop {
            self.take()?;
            if let Some(answer) = self.report.try_recv()? {
                break answer;
            }
            if Instant::now() > until {
                return Err(Failure::own(&"the flooding back-ends do not stop"));
            }
        };
        let words = answer.value()?.array::<u64>(0).map_err(sapwood::Error::from)?;
        let [sent, dropped_where_sent] = *words else {
            return Err(Failure::own(&"a flooding back-end has not said what it did"));
        };
        let mut last = Instant::now();
        while self.received + dropped_where_sent < sent && last.elapsed() < QUIET {
            if self.take()? {
                last = Instant::now();
            }
        }
        let received = self.received;
        let dropped_at_front_end = self.stream.dropped();
        self.stream.close()?;
        self.report.close()?;
        let counted = Account { sent, received, dropped_where_sent, ..Account::default() };
        Ok(Account { dropped_at_front_end, ..counted })
    }

    fn end_large(mut self) -> Result<Account, Failure> {
        let Some(mut large) = self.large.take() else { return Ok(Account::default()) };
        while large.next_wave < large.asked {
            large.came(self.stream.recv_timeout(DEADLINE)?);
            self.received += 1;
        }
        let members = self.stream.members().size();
        let large_mib_per_s = large.mib_per_s(members, self.begun.elapsed());
        large.check()?;
        self.stream.close()?;
        self.report.close()?;
        let (sent, received) = (self.received * members, self.received);
        Ok(Account { sent, received, large_mib_per_s, ..Account::default() })
    }
}

/// Huge packets, one wave of them under way at a time.
pub(super) struct Large {
    expected: ExpectedSum,
    elements: u64,
    asked: u64,
    next_wave: u64,
    /// The last answer; it is compared when nothing is measured.
    last: Option<Answer>,
}

impl Large {
    pub(super) fn new(members: &Communicator, bytes: u64) -> Self {
        let elements = bytes / 8;
        let expected = ExpectedSum::over(members.ranks().iter(), elements as usize);
        Self { expected, elements, asked: 0, next_wave: 0, last: None }
    }

    pub(super) fn ask(&mut self, stream: &mut Stream) -> Result<(), Failure> {
        let request = Request { elements: self.elements, first_wave: self.asked, waves: 1 };
        self.asked += 1;
        Ok(stream.broadcast(TAG, request.values())?)
    }

    pub(super) fn came(&mut self, answer: Answer) {
        self.last = Some(answer);
        self.next_wave += 1;
    }

    /// How fast those behind the first one came, that of all members together.
    pub(super) fn mib_per_s(&self, members: u64, time: Duration) -> f64 {
        let bytes = self.next_wave.saturating_sub(1) * members * self.elements * 8;
        bytes as f64 / f64::from(1 << 20) / time.as_secs_f64()
    }

    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.last.take() {
            Some(answer) => self.expected.check(&answer, self.next_wave - 1),
            None => Ok(()),
        }
    }
}

/// What became of the packets of bad streams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Account {
    sent: u64,
    received: u64,
    dropped_where_sent: u64,
    dropped_at_front_end: u64,
    /// How fast huge packets came, in the last disturbance.
    pub(super) large_mib_per_s: f64,
}

impl Account {
    /// Adds another disturbance of the same case.
    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.dropped_where_sent += other.dropped_where_sent;
        self.dropped_at_front_end += other.dropped_at_front_end;
        self.large_mib_per_s = other.large_mib_per_s;
    }

    /// Packets that were neither received nor counted as dropped at either end: dropped by the
    /// communication processes on their way.
    fn dropped_on_the_way(&self) -> u64 {
        let known = self.received + self.dropped_where_sent + self.dropped_at_front_end;
        self.sent.saturating_sub(known)
    }

    /// As figures with their labels, as far as they say something in that case.
    pub(super) fn lines(&self, case: Case) -> Vec<(&'static str, &'static str, u64)> {
        match case {
            Case::Stall => Vec::new(),
            Case::Large => vec![("large_waves", "huge waves received", self.received)],
            _ => vec![
                ("sent", "packets sent by disturbers", self.sent),
                ("received", "received", self.received),
                ("dropped_where_sent", "dropped where they were sent", self.dropped_where_sent),
                ("dropped_at_front_end", "dropped at the front-end", self.dropped_at_front_end),
                ("dropped_on_the_way", "dropped on their way", self.dropped_on_the_way()),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_counted_was_dropped_on_the_way() {
        let mut account = Account { sent: 10, received: 4, ..Account::default() };
        account.add(Account { sent: 5, dropped_where_sent: 5, ..Account::default() });
        assert_eq!(account.dropped_on_the_way(), 6);
    }

    #[test]
    fn one_back_end_of_each_group_is_a_disturber() {
        let bad: Vec<u32> = (0..16).filter(|rank| is_disturber(*rank)).collect();
        assert_eq!(bad, [3, 7, 11, 15]);
    }
}
