//! `sapwood group trace`: the way of operations through a group, as its members note it.
//!
//! Owns the command line and the reading of all members; `passage` joins what they have noted and
//! makes figures of it, `text` prints them.

mod passage;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{
    GroupHopCursor, GroupHopQuestion, Key, Life, MemberHops, MemberId, Rank, TracedMember,
    TreeKind, ask_group, trace_member,
};
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::patience;

use crate::KeyArguments;
use passage::{Figures, MemberClock, Trace};

/// How long members go on noting after a question: longer than any reading of all takes.
const LEASE: Duration = Duration::from_secs(30);
/// How many events one answer brings at most.
const MOST: u32 = 1 << 16;
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
    #[arg(long, value_name = "N", default_value_t = 16_384,
          value_parser = clap::value_parser!(u32).range(16..=65_536))]
    room: u32,
    /// Time limit for a member's answer.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What was read of all members.
pub(crate) struct Reading {
    labels: BTreeMap<MemberId, MemberLabel>,
    /// How long operations were followed.
    seconds: f64,
    noted: u64,
    lost: u64,
    lapsed: u64,
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

/// Follows operations and prints what came of them.
///
/// # Errors
/// [`Failure`] where the member at the address does not answer.
pub(crate) fn show(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let key = arguments.key.read(false)?;
    let (reading, figures) = follow(arguments, &key)?;
    print(&match arguments.json {
        true => format!("{}\n", text::to_json(&reading, &figures)),
        false => text::table(&reading, &figures),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn follow(arguments: &Arguments, key: &Key) -> Result<(Reading, Figures), Failure> {
    let encryption = arguments.key.plain.then_some(false);
    let tree = (TreeKind::default(), None, 1);
    let status = ask_group(&arguments.address, key, encryption, tree, arguments.timeout)?;
    let alive = status.members.iter().filter(|member| member.life == Life::Alive);
    let label = |member: &sapwood::group_status::MemberStatus| {
        let names = member.names.as_set();
        (member.id, MemberLabel { first: names.first(), names: names.to_set().to_string() })
    };
    let mut reading = Reading {
        labels: alive.clone().map(label).collect(),
        seconds: 0.0,
        noted: 0,
        lost: 0,
        lapsed: 0,
        missing: BTreeMap::new(),
    };
    let mut sources: BTreeMap<MemberId, Source> = alive
        .map(|member| (member.id, Source { address: member.address.clone(), cursor: None }))
        .collect();
    let mut trace = Trace::default();
    let begun = Instant::now();
    loop {
        let is_last = begun.elapsed() >= arguments.duration;
        read_all(arguments, key, is_last, &mut sources, &mut reading, &mut trace);
        if is_last {
            break;
        }
        let left = arguments.duration.saturating_sub(begun.elapsed());
        std::thread::sleep(left.min(PAUSE));
    }
    reading.seconds = begun.elapsed().as_secs_f64();
    Ok((reading, trace.figures()))
}

/// Asks each member once, and again while it has more.
fn read_all(
    arguments: &Arguments,
    key: &Key,
    is_last: bool,
    sources: &mut BTreeMap<MemberId, Source>,
    reading: &mut Reading,
    trace: &mut Trace,
) {
    let lease = if is_last { 0 } else { LEASE.as_nanos() as u64 };
    let mut done = BTreeSet::new();
    for (id, source) in sources.iter_mut() {
        loop {
            let cursor = source.cursor;
            let question = GroupHopQuestion { cursor, lease, room: arguments.room, most: MOST };
            let encryption = arguments.key.plain.then_some(false);
            let told = trace_member(&source.address, key, encryption, question, arguments.timeout);
            let traced = match told {
                Ok(traced) => traced,
                Err(error) => {
                    reading.missing.insert(*id, error.to_string());
                    done.insert(*id);
                    break;
                }
            };
            take(source, &traced, reading, trace);
            if traced.hops.unread == 0 {
                break;
            }
        }
    }
    // A member that did not answer once is not waited for again.
    sources.retain(|id, _| !done.contains(id));
}

fn take(source: &mut Source, traced: &TracedMember, reading: &mut Reading, trace: &mut Trace) {
    let MemberHops { member, cursor, has_lapsed, lost, hops, .. } = &traced.hops;
    source.cursor = Some(*cursor);
    reading.noted += hops.len() as u64 + lost;
    reading.lost += lost;
    reading.lapsed += u64::from(*has_lapsed);
    let clock = MemberClock { ahead: traced.ahead, error: traced.error };
    trace.absorb(*member, clock, hops);
}
