//! A tree whose processes are drivers of one process and take turns in a fixed order.
//!
//! Owns the front-end, one communication process and its back-ends, connected by real links of one
//! transport. Each step of a wave is a function of its own that is never inlined, so that a
//! profiler can tell how many instructions it takes with all that it calls; its name inside keeps
//! the compiler from making one function of two that do the same. All bytes of a step
//! have arrived before the next one begins: the number of turns, reads and writes does not depend
//! on the scheduler.

use std::error::Error;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use sapwood_filter::{FilterSpec, Registry, WaveRule};
use sapwood_node::{Delivery, Event, Policy, Recovery, Role, StreamSpec};
use sapwood_packet::{RankSet, Recipients, StreamId, Tag, Values};
use sapwood_runtime::{Attachment, Driver, ParentLink, Plan, TreeOptions, clock};
use sapwood_topology::{Hosts, Shape, Topology};
use sapwood_transport::{Address, Encryption, Key};

use crate::allocations::Tally;
use crate::links::Links;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The children of the communication process.
pub const BACK_ENDS: u32 = 4;

/// Values of a packet: 64 bytes with the length that precedes them.
const VALUES: usize = 7;
const TAG: Tag = 100;

/// All bytes of a step are there, and a process that waited for them would spin first.
const NO_WAIT: Option<sapwood_node::Instant> = Some(sapwood_node::Instant(0));

/// How long the tree may take to start; under a profiler all is 50 times slower.
const START_LIMIT: Duration = Duration::from_secs(60);
/// A silence that no figure is disturbed by.
const SILENCE: Duration = Duration::from_secs(600);

/// What the streams do on the way up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The communication process folds the answers to their sum.
    Sum,
    /// Each answer is passed on by itself.
    Relay,
}

pub struct Tree {
    front_end: Driver,
    communication: Driver,
    back_ends: Vec<Driver>,
    everyone: RankSet,
    /// The allocations of the steps.
    pub tally: Tally,
}

impl Tree {
    pub fn start(links: Links) -> Result<Self> {
        let key = Key::generate()?;
        let plan = plan(links);
        let mut front_end = Driver::front_end(&plan, key.clone(), Registry::built_in())?;
        let terms = Terms { key, encryption: links.encryption() };
        let root = terms.at(front_end.address(), "the front-end takes no connections")?;
        let link = connected(root, Role::Communication, &mut [&mut front_end])?;
        let mut communication = Driver::join(link, Registry::built_in())?;
        let until = Instant::now() + START_LIMIT;
        while communication.address().is_none() {
            turn_all(&mut [&mut front_end, &mut communication], until)?;
        }
        let mut back_ends = Vec::new();
        for _ in 0..BACK_ENDS {
            let parent = terms.at(communication.address(), "no connections below the root")?;
            let link = connected(parent, Role::BackEnd, &mut [&mut front_end, &mut communication])?;
            back_ends.push(Driver::attach(link, Registry::built_in())?);
        }
        let (everyone, tally) = (RankSet::new(), Tally::default());
        let mut tree = Self { front_end, communication, back_ends, everyone, tally };
        while tree.everyone.len() < u64::from(BACK_ENDS) {
            tree.turn_all(until)?;
            while let Some(event) = tree.front_end.next_event() {
                if let Event::Joined { back_ends } = event {
                    tree.everyone.union_with(back_ends.as_ref());
                }
            }
        }
        Ok(tree)
    }

    fn turn_all(&mut self, until: Instant) -> Result<()> {
        let mut all = vec![&mut self.front_end, &mut self.communication];
        all.extend(&mut self.back_ends);
        turn_all(&mut all, until)
    }

    /// Opens a stream to all back-ends, and has it known everywhere.
    pub fn open(&mut self, kind: Kind) -> Result<StreamId> {
        let spec = StreamSpec {
            members: self.everyone.clone(),
            up: match kind {
                Kind::Sum => vec![FilterSpec::from("sum")],
                Kind::Relay => Vec::new(),
            },
            down: Vec::new(),
            wave: match kind {
                Kind::Sum => WaveRule::All,
                Kind::Relay => WaveRule::Immediate,
            },
            rule: None,
            policy: Policy::default(),
            at_back_ends: false,
            window_bytes: None,
        };
        let stream = self.front_end.application().open_stream(spec)?;
        self.front_end.carry_out()?;
        Ok(stream)
    }

    /// Broadcasts, answers and takes what comes back, step by step.
    pub fn wave(&mut self, stream: StreamId, kind: Kind) -> Result<()> {
        let Self { front_end, communication, back_ends, tally, .. } = self;
        begin_wave();
        tally.step("send", || send(front_end, stream))?;
        tally.step("pass_down", || pass_down(communication))?;
        for back_end in back_ends {
            tally.step("receive", || receive(back_end))?;
            tally.step("answer", || answer(back_end, stream))?;
        }
        match kind {
            Kind::Sum => {
                tally.step("fold", || fold(communication))?;
                tally.step("deliver", || deliver(front_end, 1))
            }
            Kind::Relay => {
                tally.step("relay", || relay(communication))?;
                tally.step("deliver_relayed", || deliver_relayed(front_end, BACK_ENDS))
            }
        }
    }

    /// As [`Tree::wave`], but of functions that no figure is taken of.
    pub fn warm_up(&mut self, stream: StreamId, kind: Kind) -> Result<()> {
        broadcast(&mut self.front_end, stream)?;
        self.communication.turn(NO_WAIT)?;
        for back_end in &mut self.back_ends {
            take(back_end, 1)?;
            respond(back_end, stream)?;
        }
        self.communication.turn(NO_WAIT)?;
        take(&mut self.front_end, if kind == Kind::Sum { 1 } else { BACK_ENDS })
    }
}

/// Where the profiler begins to count anew.
#[inline(never)]
fn begin_wave() {
    black_box("begin_wave");
}

/// The front-end broadcasts 64 bytes: one system call.
#[inline(never)]
fn send(front_end: &mut Driver, stream: StreamId) -> Result<()> {
    broadcast(front_end, stream)
}

/// The communication process reads one packet and writes it to each child.
#[inline(never)]
fn pass_down(communication: &mut Driver) -> Result<()> {
    black_box("pass_down");
    communication.turn(NO_WAIT)?;
    Ok(())
}

/// A back-end reads one packet, and its application takes it.
#[inline(never)]
fn receive(back_end: &mut Driver) -> Result<()> {
    black_box("receive");
    take(back_end, 1)
}

/// A back-end sends 64 bytes.
#[inline(never)]
fn answer(back_end: &mut Driver, stream: StreamId) -> Result<()> {
    respond(back_end, stream)
}

/// The communication process reads one packet of each child and writes their sum.
#[inline(never)]
fn fold(communication: &mut Driver) -> Result<()> {
    black_box("fold");
    communication.turn(NO_WAIT)?;
    Ok(())
}

/// The communication process reads one packet of each child and passes each of them on.
#[inline(never)]
fn relay(communication: &mut Driver) -> Result<()> {
    black_box("relay");
    communication.turn(NO_WAIT)?;
    Ok(())
}

/// The front-end reads an answer, and its application takes it.
#[inline(never)]
fn deliver(front_end: &mut Driver, expected: u32) -> Result<()> {
    black_box("deliver");
    take(front_end, expected)
}

/// The front-end reads the packets of all back-ends, and its application takes them.
#[inline(never)]
fn deliver_relayed(front_end: &mut Driver, expected: u32) -> Result<()> {
    black_box("deliver_relayed");
    take(front_end, expected)
}

fn broadcast(front_end: &mut Driver, stream: StreamId) -> Result<()> {
    let values = Values::new().array(&[1_i64; VALUES]);
    front_end.application().broadcast(clock(), stream, TAG, values, &Recipients::All)?;
    Ok(front_end.carry_out()?)
}

fn respond(back_end: &mut Driver, stream: StreamId) -> Result<()> {
    let values = Values::new().array(&[1_i64; VALUES]);
    back_end.application().send(stream, TAG, values, None)?;
    Ok(back_end.carry_out()?)
}

/// Turns until this number of packets has come, and takes them.
fn take(process: &mut Driver, expected: u32) -> Result<()> {
    let mut taken = 0;
    while taken < expected {
        process.turn(NO_WAIT)?;
        while let Some(delivery) = process.application().poll_delivery() {
            taken += 1;
            if let Delivery::Answer(answer) = &delivery
                && !answer.missing.is_empty()
            {
                return Err(format!("wave {} lacks members", answer.wave).into());
            }
            process.application().consumed(delivery.stream(), delivery.cost());
            black_box(delivery);
        }
    }
    Ok(())
}

/// What all processes connect with.
struct Terms {
    key: Key,
    encryption: Encryption,
}

impl Terms {
    fn at(&self, parent: Option<&Address>, otherwise: &str) -> Result<Attachment> {
        let parent = parent.ok_or(otherwise)?.clone();
        let (key, encryption) = (self.key.clone(), self.encryption);
        Ok(Attachment { parent, rank: None, key, encryption, is_started: false })
    }
}

/// Connects a process to its parent, which runs meanwhile.
fn connected(attachment: Attachment, role: Role, others: &mut [&mut Driver]) -> Result<ParentLink> {
    let until = Instant::now() + START_LIMIT;
    let connecting = thread::spawn(move || attachment.connect(role));
    while !connecting.is_finished() {
        turn_all(others, until)?;
    }
    Ok(connecting.join().map_err(|_| "the connecting thread panicked")??)
}

/// One turn of each process, without waiting for long.
fn turn_all(processes: &mut [&mut Driver], until: Instant) -> Result<()> {
    if Instant::now() > until {
        return Err(format!("the tree has not started within {START_LIMIT:?}").into());
    }
    for process in processes {
        process.turn(Some(clock() + Duration::from_millis(1)))?;
    }
    Ok(())
}

/// A front-end with nothing below it that lets others join.
fn plan(links: Links) -> Plan {
    let shape = Shape::flat(1).expect("one back-end is a shape");
    // Its one rank is reserved for a back-end that never comes.
    let topology = Topology::attach(&shape, &Hosts::local());
    let root = topology.root().rank();
    let options = TreeOptions {
        node_program: "sapwood-node".into(),
        node_arguments: Vec::new(),
        back_end: None,
        transport: links.transport(),
        encryption: Some(links.encryption() == Encryption::On),
        interface: Ipv4Addr::LOCALHOST.into(),
        remote: None,
        back_ends: topology.back_end_count(),
        startup_milliseconds: u32::try_from(START_LIMIT.as_millis()).unwrap_or(u32::MAX),
        recovery: Recovery { silence: SILENCE, ..Recovery::default() },
        takes_dynamic_members: true,
        filter_milliseconds: 0,
    };
    let subtree = topology.subtree(root).expect("a topology has a subtree at its root");
    Plan { options, subtree }
}
