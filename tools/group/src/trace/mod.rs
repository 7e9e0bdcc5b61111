//! `sapwood group trace`: the way of operations through a group, as its members note it.
//!
//! Owns the command line and the reading of all members; `passage` joins what they have noted and
//! makes figures of it, `text` prints them. `measure` gives the same times to scopes, which another
//! command asks for through `scopes`.

mod measure;
mod passage;
mod scopes;
mod text;

pub use scopes::{GroupHopWishes, GroupLosses, GroupRound, follow_scopes};

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::group_status::MemberStatus;
use sapwood::{
    GroupHopCursor, GroupHopQuestion, Key, Life, MemberHops, MemberId, Rank, TracedMember,
    TreeKind, ask_group, trace_member,
};
use sapwood_command_line::exit::{Failure, by_signal, complain, print};
use sapwood_command_line::times::patience;
use sapwood_hosts::signals::{Signal, Signals};
use sapwood_report::nanoseconds;
use sapwood_trace::ScopedHops;

use crate::{KeyArguments, MissingKey};
use measure::Scopes;
use passage::{MemberClock, Trace};

/// How long members go on noting after a question, beside the time in which others may not answer.
const LEASE: Duration = Duration::from_secs(30);
/// How many events one answer brings at most.
const MOST: u32 = 1 << 16;
/// Answers of one member in one reading of all: one that notes faster than it is read is left then.
const ANSWERS_MAX: u32 = 16;
/// Capacity of each member's ring buffer in events, if nothing else is asked for.
const ROOM: u32 = 16_384;
/// A member that does not answer the last question after a signal is not waited for longer.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two readings of all members.
const PAUSE: Duration = Duration::from_millis(250);

/// What `sapwood group trace` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The address of any member.
    address: String,
    #[command(flatten)]
    key: KeyArguments,
    /// Follow operations for this time.
    #[arg(long = "for", value_name = "TIME", default_value = "3s", value_parser = patience)]
    duration: Duration,
    /// Capacity of each member's ring buffer in events; the oldest are overwritten and counted.
    #[arg(long, value_name = "N", default_value_t = ROOM,
          value_parser = clap::value_parser!(u32).range(16..=65_536))]
    room: u32,
    /// Time limit for a member's answer.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// How a group is followed.
struct FollowWishes<'a> {
    address: &'a str,
    key: &'a Key,
    /// What its members do, if it is not as usual.
    encryption: Option<bool>,
    duration: Duration,
    /// Capacity of each member's ring buffer in events.
    room: u32,
    /// For a member's answer.
    timeout: Duration,
    /// Between two readings of all members.
    pause: Duration,
    /// Events of all members that one reading takes at most, but one of each; none for as many as
    /// the answers of a reading may bring.
    events_max: Option<u32>,
}

/// What was read of all members.
pub(crate) struct Reading {
    labels: BTreeMap<MemberId, MemberLabel>,
    /// How long operations were followed.
    seconds: f64,
    noted: u64,
    lost: u64,
    lapsed: u64,
    /// Events that were left at each member when it was read last.
    unread: BTreeMap<MemberId, u64>,
    /// Members that did not answer, and why.
    missing: BTreeMap<MemberId, String>,
}

/// How people know a member: by its virtual nodes, in the order of the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MemberLabel {
    first: Option<Rank>,
    names: String,
}

struct Source {
    address: String,
    cursor: Option<GroupHopCursor>,
}

/// Follows operations and prints what came of them, also when a signal ends it early.
///
/// # Errors
/// [`Failure`] where the member at the address does not answer.
pub(crate) fn show(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let key = arguments.key.read(MissingKey::Refused)?;
    let mut signals = Signals::take_over().map_err(|error| Failure::own(&error))?;
    let wishes = FollowWishes {
        address: &arguments.address,
        key: &key,
        encryption: arguments.key.encryption(),
        duration: arguments.duration,
        room: arguments.room,
        timeout: arguments.timeout,
        pause: PAUSE,
        events_max: None,
    };
    let mut follower = Follower::of_group(&wishes, Vec::new())?;
    let signal = follower.follow(&mut signals, &mut |_| {});
    let (reading, figures) = (follower.reading, follower.trace.finish());
    print(&match arguments.json {
        true => format!("{}\n", text::to_json(&reading, &figures)),
        false => text::table(&reading, &figures),
    })?;
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(by_signal(signal))))
}

/// Reads what the members of a group note.
struct Follower<'a> {
    wishes: &'a FollowWishes<'a>,
    sources: BTreeMap<MemberId, Source>,
    reading: Reading,
    trace: Trace,
}

impl<'a> Follower<'a> {
    /// Of the living members that the one at the address knows.
    fn of_group(wishes: &'a FollowWishes<'a>, scopes: Vec<ScopedHops>) -> Result<Self, Failure> {
        let FollowWishes { address, key, encryption, timeout, .. } = *wishes;
        let tree = (TreeKind::default(), None, 1);
        let status = ask_group(address, key, encryption, tree, timeout)?;
        let alive = status.members.iter().filter(|member| member.life == Life::Alive);
        let label = |member: &MemberStatus| {
            let names = member.names.as_set();
            (member.id, MemberLabel { first: names.first(), names: names.to_set().to_string() })
        };
        let source =
            |member: &MemberStatus| Source { address: member.address.clone(), cursor: None };
        let labels: BTreeMap<MemberId, MemberLabel> = alive.clone().map(label).collect();
        let number = |(id, label): (&MemberId, &MemberLabel)| Some((*id, label.first?));
        let numbers = labels.iter().filter_map(number).collect();
        let reading = Reading {
            labels,
            seconds: 0.0,
            noted: 0,
            lost: 0,
            lapsed: 0,
            unread: BTreeMap::new(),
            missing: BTreeMap::new(),
        };
        let sources = alive.map(|member| (member.id, source(member))).collect();
        let trace = Trace::with_scopes(Scopes { all: scopes, numbers });
        Ok(Self { wishes, sources, reading, trace })
    }

    /// Reads all members again and again, until the time is over or a signal comes. `after` is
    /// called after each reading but the last.
    fn follow(
        &mut self,
        signals: &mut Signals,
        after: &mut dyn FnMut(GroupRound<'_>),
    ) -> Option<Signal> {
        let begun = Instant::now();
        // All others may fail to answer between two questions to one member.
        let others = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        let lease = LEASE.saturating_add(self.wishes.timeout.saturating_mul(others));
        let (mut signal, mut is_told) = (None, false);
        loop {
            let is_last = signal.is_some() || begun.elapsed() >= self.wishes.duration;
            // After a signal the user waits for the end.
            let patience = if signal.is_some() { LAST_TIMEOUT } else { Duration::MAX };
            let timeout = self.wishes.timeout.min(patience);
            let lease = if is_last { Duration::ZERO } else { lease };
            let came = self.read_all(lease, timeout, signals);
            signal = signal.or(came);
            if !is_told && signal.is_none() {
                is_told = true;
                self.say_that_it_follows();
            }
            if is_last {
                break;
            }
            after(self.round(begun.elapsed()));
            if signal.is_none() {
                let left = self.wishes.duration.saturating_sub(begun.elapsed());
                signal = signals.sleep(left.min(self.wishes.pause));
            }
        }
        self.reading.seconds = begun.elapsed().as_secs_f64();
        signal
    }

    fn round(&mut self, elapsed: Duration) -> GroupRound<'_> {
        GroupRound::new(&mut self.trace, &self.reading, elapsed)
    }

    /// From here on operations are in the figures.
    fn say_that_it_follows(&self) {
        let members = self.sources.len();
        let for_s = self.wishes.duration.as_secs_f64();
        complain(format_args!(
            "following the operations of {members} members, for at most {for_s} s"
        ));
    }

    /// Asks each member to go on noting for this time, and reads what it has noted. One that does
    /// not answer is not asked again. A signal ends it between two members: each may take as long
    /// as the time-out.
    fn read_all(
        &mut self,
        lease: Duration,
        timeout: Duration,
        signals: &mut Signals,
    ) -> Option<Signal> {
        let FollowWishes { key, encryption, room, events_max, .. } = *self.wishes;
        let members = u32::try_from(self.sources.len()).unwrap_or(u32::MAX).max(1);
        let (answers, most) = match events_max {
            Some(events) => (1, (events / members).clamp(1, MOST)),
            None => (ANSWERS_MAX, MOST),
        };
        let mut silent = BTreeSet::new();
        let mut signal = None;
        for (id, source) in &mut self.sources {
            signal = signals.take().first().copied();
            if signal.is_some() {
                break;
            }
            for _ in 0..answers {
                let lease = nanoseconds(lease);
                let question = GroupHopQuestion { cursor: source.cursor, lease, room, most };
                let told = trace_member(&source.address, key, encryption, question, timeout);
                let traced = match told {
                    Ok(traced) => traced,
                    Err(error) => {
                        self.reading.missing.insert(*id, error.to_string());
                        silent.insert(*id);
                        break;
                    }
                };
                take(source, &traced, &mut self.reading, &mut self.trace);
                if traced.hops.unread == 0 || traced.hops.hops.is_empty() {
                    break;
                }
            }
        }
        self.sources.retain(|id, _| !silent.contains(id));
        self.trace.end_round();
        signal
    }
}

fn take(source: &mut Source, traced: &TracedMember, reading: &mut Reading, trace: &mut Trace) {
    let MemberHops { member, cursor, has_lapsed, lost, unread, hops, .. } = &traced.hops;
    source.cursor = Some(*cursor);
    reading.noted += hops.len() as u64 + lost;
    reading.lost += lost;
    reading.lapsed += u64::from(*has_lapsed);
    reading.unread.insert(*member, *unread);
    let clock = MemberClock { ahead: traced.ahead, error: traced.error };
    trace.absorb(*member, clock, hops);
}
