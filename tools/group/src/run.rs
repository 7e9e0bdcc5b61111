//! `sapwood group run`: members on this host, which do one operation.
//!
//! Owns the words of each member's command line, and what is printed of the answers.

use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{KEY_VARIABLE, Key, Rank, TreeKind};
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::patience;
use sapwood_launch::Order;
use sapwood_report::quantity::counted;
use serde_json::{Value, json};

use crate::fleet::{Fleet, MemberWords, is_right, slowest};
use crate::request::{Act, ROUNDS_MAX, Request, bytes};

/// Most members that are started on one host.
const MEMBERS_MAX: u32 = 256;
/// Beyond the deadline of the operation itself.
const SLACK: Duration = Duration::from_secs(10);

/// What `sapwood group run` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of members to start.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4)]
    members: u32,
    /// The operation: barrier, broadcast, reduce, allreduce, gather, allgather, scatter,
    /// reduce-scatter or all-to-all.
    #[arg(default_value = "allreduce", value_parser = act)]
    operation: Act,
    /// Tree of the operation: adaptive, flat, binomial, static, list, paper-latency or
    /// paper-bandwidth.
    #[arg(long, value_name = "NAME", default_value = "adaptive", value_parser = crate::tree)]
    tree: TreeKind,
    /// Root of the operation: a virtual node from 0 to N-1.
    #[arg(long, value_name = "NAME", default_value_t = 0)]
    root: Rank,
    /// Length of each member's value in bytes, such as 8, 64K or 4M.
    #[arg(long, value_name = "LENGTH", default_value = "8", value_parser = bytes)]
    bytes: usize,
    /// Number of rounds: how often the operation is repeated.
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u64,
    /// Time limit of a round; after it, the answer names the missing members.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = patience)]
    deadline: Duration,
    /// Delay each member's call by a random time of at most this.
    #[arg(long, value_name = "TIME", value_parser = patience)]
    skew: Option<Duration>,
    /// In reduce and gather, let members other than the root return before the values from below
    /// them have arrived.
    #[arg(long)]
    bypass: bool,
    /// Link the members by sockets instead of shared memory: by TCP, or with --unix by Unix
    /// sockets.
    #[arg(long)]
    sockets: bool,
    /// Let members listen at Unix sockets instead of TCP ports.
    #[arg(long)]
    unix: bool,
    /// Do not encrypt links over TCP.
    #[arg(long)]
    plain: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Starts the members, and has them do it.
///
/// # Errors
/// [`Failure`] where a member does not start or does not answer.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { members: count, root, .. } = *arguments;
    if !(1..=MEMBERS_MAX).contains(&count) {
        return Err(Failure::usage(format!("give 1 to {MEMBERS_MAX} members")));
    }
    if root >= count {
        return Err(Failure::usage(format!(
            "virtual node {root} belongs to no member: members hold 0 to {}",
            count - 1
        )));
    }
    if !(1..=ROUNDS_MAX).contains(&arguments.rounds) {
        return Err(Failure::usage(format!("give 1 to {ROUNDS_MAX} rounds")));
    }
    let mut request = Request::new(arguments.operation);
    (request.root, request.tree, request.bytes) = (root, arguments.tree, arguments.bytes);
    (request.rounds, request.deadline) = (arguments.rounds, arguments.deadline);
    request.skew = arguments.skew.unwrap_or_default();
    request.has_bypass = arguments.bypass;
    if arguments.bypass && !matches!(arguments.operation, Act::Reduce | Act::Gather) {
        return Err(Failure::usage("--bypass is for reduce and gather, which have one root"));
    }
    let has_no_root = matches!(
        arguments.operation,
        Act::Barrier | Act::Allgather | Act::ReduceScatter | Act::AllToAll
    );
    if root != 0 && has_no_root {
        return Err(Failure::usage(
            "--root is for broadcast, reduce, allreduce, gather and scatter, whose tree has a root",
        ));
    }
    let mut fleet = start(arguments)?;
    let rounds = u32::try_from(arguments.rounds).unwrap_or(u32::MAX);
    let limit = arguments.deadline.saturating_mul(rounds).saturating_add(SLACK);
    // The answers of the others count where one has ended.
    let answers = fleet.answers(&request, limit);
    fleet.end()?;
    let is_right = answers.iter().all(is_right);
    if arguments.json {
        print(&format!(
            "{}\n",
            json!({ "members": count, "answers": answers, "right": is_right })
        ))?;
    } else {
        print(&summary(arguments, &answers))?;
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Starts the members on this host.
fn start(arguments: &Arguments) -> Result<Fleet, Failure> {
    let own = |error: &dyn std::fmt::Display| Failure::own(&error.to_string());
    let program = std::env::current_exe().map_err(|error| own(&error))?;
    let key = Key::generate().map_err(|error| own(&error))?;
    let descriptor = key.to_descriptor().map_err(|error| own(&error))?;
    Fleet::start(arguments.members, |name, address| {
        let words = MemberWords {
            name,
            address: address.map(String::from),
            listen: arguments.unix.then(|| unix_address(name)),
            has_sockets: arguments.sockets,
            is_plain: arguments.plain,
            ..MemberWords::default()
        };
        let mut order = Order::new(&program);
        let words = std::iter::once("group".to_string()).chain(words.arguments());
        order.arguments = words.map(Into::into).collect();
        order.inherit = vec![(KEY_VARIABLE.to_string(), descriptor.as_fd())];
        Ok(order)
    })
}

fn unix_address(name: Rank) -> String {
    format!("unix:@sapwood-group-{}-{name}", std::process::id())
}

fn summary(arguments: &Arguments, answers: &[Value]) -> String {
    let Arguments { members, tree, root, bytes, rounds, .. } = arguments;
    let name = arguments.operation.name();
    let (members, rounds) =
        (counted(u128::from(*members), "members"), counted(u128::from(*rounds), "rounds"));
    let mut text = format!(
        "{name} of {bytes} bytes by tree '{tree}' at virtual node {root}, {members}, {rounds}\n"
    );
    let slowest = slowest(answers);
    let asked = answers.get(*root as usize).unwrap_or(&Value::Null);
    text += &format!("time    {:.3} ms a round at the slowest member\n", slowest * 1e3);
    if arguments.skew.is_some() || arguments.bypass {
        text += &blocked(answers, *root as usize);
    }
    if let Some(value) = asked["value"].as_str() {
        text += &format!("value   {value} at virtual node {root}\n");
    }
    let contributors = asked["contributors"].as_str().unwrap_or_default();
    text += &format!("from    {contributors}\n");
    for (name, answer) in answers.iter().enumerate().filter(|entry| !is_right(entry.1)) {
        let missing = answer["missing"].to_string();
        let error = answer["error"].as_str().unwrap_or_default();
        text += &format!(
            "wrong   at member {name}: {} wrong, {} without a value, {} incomplete, missing \
             {missing} {error}\n",
            answer["wrong"], answer["without_value"], answer["incomplete"]
        );
    }
    if answers.iter().all(is_right) {
        text += "right   at every member\n";
    }
    text
}

/// How long a call keeps its caller, as each member's median: inner members of the tree wait for
/// those below them, its leaves for nothing.
fn blocked(answers: &[Value], root: usize) -> String {
    let median = |answer: &Value| answer["seconds"]["median"].as_f64().unwrap_or(0.0) * 1e3;
    let others = answers.iter().enumerate().filter(|(name, _)| *name != root);
    let mut times: Vec<f64> = others.map(|(_, answer)| median(answer)).collect();
    times.sort_by(f64::total_cmp);
    let (least, most) = (times.first().unwrap_or(&0.0), times.last().unwrap_or(&0.0));
    let at_root = answers.get(root).map_or(0.0, median);
    format!(
        "blocked {least:.3} to {most:.3} ms a call at the other members, {at_root:.3} ms at the root\n"
    )
}

fn act(text: &str) -> Result<Act, String> {
    match text.parse() {
        Ok(act) if Act::is_collective(act) => Ok(act),
        _ => Err(format!(
            "there is no operation '{text}' of all members; take {}",
            Act::collectives()
        )),
    }
}
