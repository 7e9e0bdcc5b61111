//! `sapwood mpi control`: changes what a running `sapwood mpi` of this user measures.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use sapwood::{RankSet, VisibleNetwork};
use sapwood_command_line::arguments::explained;
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::{patience, time};
use sapwood_report::ranks_text;

use super::control::ControlRequest;
use super::desk::Reply;

/// How long one question may take, at least.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Between two questions whether the ranks obey.
const PAUSE: Duration = Duration::from_millis(20);
/// What the networks of `sapwood mpi` are called, before the number of their process.
const PREFIX: &str = "mpi-";

/// Change what a running 'sapwood mpi' measures, or print its settings.
#[derive(Debug, Parser)]
#[command(name = "sapwood mpi control", bin_name = "sapwood mpi control", version)]
struct Arguments {
    /// Name of the run, such as mpi-4711; needed only if several run.
    #[arg(long, visible_alias = "tree", value_name = "NAME")]
    network: Option<String>,
    /// Time between two rounds, such as 500ms; 0 stops periodic rounds.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    interval: Option<f64>,
    /// Groups of events that are counted: all, none, or names such as collective,time; -NAME
    /// removes one.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    groups: Option<Vec<String>>,
    /// Ranks whose calls are counted, such as 0-3,7, or all.
    #[arg(long, value_name = "RANKS", value_parser = chosen_ranks)]
    ranks: Option<String>,
    /// Whether ranks record their calls, for waits, freezes and scopes.
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    tracing: Option<bool>,
    /// Time between two samples of stacks; 0 for none.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    sampling: Option<f64>,
    /// Start a round now.
    #[arg(long)]
    flush: bool,
    /// Time limit for the ranks to apply the change.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Its command line.
pub(crate) fn command_line() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

/// Whether the words behind `sapwood` are of this command.
pub(crate) fn is_meant() -> bool {
    std::env::args_os().nth(2).is_some_and(|word| word == "control")
}

/// Reads its command line, asks, and waits until the ranks obey.
///
/// # Errors
/// [`Failure`] when no run or more than one is there, what it answers, and ranks that do not obey.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let words = std::env::args_os().skip(2);
    let arguments = match Arguments::try_parse_from(words.collect::<Vec<OsString>>()) {
        Ok(arguments) => arguments,
        Err(error) => {
            return explained::<()>(&error, "sapwood mpi control").map(|_| ExitCode::SUCCESS);
        }
    };
    let network = find(arguments.network.as_deref())?;
    let request = ControlRequest {
        interval_s: arguments.interval,
        groups: arguments.groups.clone(),
        ranks: arguments.ranks.clone(),
        tracing: arguments.tracing,
        sampling_s: arguments.sampling,
        flush: arguments.flush,
        ..ControlRequest::default()
    };
    // A front-end on a busy machine may take as long as its ranks.
    let limit = arguments.timeout.max(ANSWER_TIME);
    let before = ask_within(&network, &ControlRequest::default(), limit)?;
    let mut reply = ask_within(&network, &request, limit)?;
    if !reply.error.is_empty() {
        return Err(Failure::usage(reply.error));
    }
    let mut late = late_ranks(&reply)?;
    let deadline = Instant::now() + arguments.timeout;
    let is_flushed = |reply: &Reply| !request.flush || reply.rounds > before.rounds;
    while !(is_obeyed(&reply, &late) && is_flushed(&reply)) {
        if Instant::now() >= deadline {
            let who = if is_obeyed(&reply, &late) {
                "no round has arrived within the time-out".into()
            } else if late.is_empty() {
                "no rank has applied the change within the time-out".into()
            } else {
                let (verb, who) =
                    if late.len() == 1 { ("has", "it makes") } else { ("have", "they make") };
                let ranks = ranks_text(&late.to_string());
                format!("{ranks} {verb} not applied the change yet: {who} no MPI call")
            };
            return Err(Failure::own(&who));
        }
        std::thread::sleep(PAUSE);
        reply = ask_within(&network, &ControlRequest::default(), limit)?;
        late = late_ranks(&reply)?;
    }
    print(&if arguments.json { json(&reply) } else { told(&reply) })?;
    Ok(ExitCode::SUCCESS)
}

fn json(reply: &Reply) -> String {
    let text = serde_json::to_string_pretty(reply);
    text.expect("numbers, text and lists of them are always JSON") + "\n"
}

pub(crate) fn ask(network: &VisibleNetwork, request: &ControlRequest) -> Result<Reply, Failure> {
    ask_within(network, request, ANSWER_TIME)
}

fn ask_within(
    network: &VisibleNetwork,
    request: &ControlRequest,
    limit: Duration,
) -> Result<Reply, Failure> {
    let answer = network.ask(request.to_json().as_bytes(), limit)?;
    serde_json::from_slice(&answer).map_err(|_| {
        Failure::own(&format!(
            "network '{}' is of another release and takes no control",
            network.name
        ))
    })
}

/// Whether the settings were never changed, or some ranks obey them and none is late.
fn is_obeyed(reply: &Reply, late: &RankSet) -> bool {
    let settings = reply.settings.as_ref();
    settings.is_none_or(|settings| settings.change == 0 || !settings.obeyed.is_empty())
        && late.is_empty()
}

/// The ranks that run and do not obey the settings, as far as the front-end knows.
fn late_ranks(reply: &Reply) -> Result<RankSet, Failure> {
    let late = reply.late.parse::<RankSet>();
    late.map_err(|error| Failure::own(&format!("the ranks that are late: {error}")))
}

fn told(reply: &Reply) -> String {
    let Some(settings) = &reply.settings else { return String::new() };
    let interval = match settings.interval_s {
        0.0 => "no periodic rounds".to_string(),
        seconds => format!("every {seconds} s"),
    };
    let all = |text: &str| if text.is_empty() { "all" } else { text }.to_string();
    let obeyed = match settings.obeyed.as_str() {
        "" => "no rank".to_string(),
        ranks => ranks_text(ranks),
    };
    let sampling = match settings.sampling_s {
        0.0 => "none".to_string(),
        seconds => format!("every {seconds} s"),
    };
    let change = match settings.change {
        0 => "no change".to_string(),
        number => format!("change {number}, applied by {obeyed}"),
    };
    let mut text = format!(
        "{change}\nrounds     {interval}; {} so far\niterations {}; {} marks \
         too close together\ngroups     {}\nranks      {}\ntracing    {}\nsampling   {sampling}\n",
        reply.rounds,
        reply.iterations,
        reply.marks_left_out,
        if settings.groups.is_empty() { "none".to_string() } else { settings.groups.join(", ") },
        all(&settings.ranks),
        if settings.tracing { "on" } else { "off" },
    );
    for death in &reply.deaths {
        let place = if death.is_first { "first" } else { "then" };
        text += &format!("died       {place} {}: {}\n", death.ranks, death.cause);
    }
    text
}

pub(crate) fn find(name: Option<&str>) -> Result<VisibleNetwork, Failure> {
    let mut running = VisibleNetwork::all()?;
    running.retain(|network| network.name.starts_with(PREFIX));
    if let Some(name) = name {
        let at = running.iter().position(|network| network.name == name);
        let none = || Failure::usage(format!("no run of 'sapwood mpi' is called '{name}'"));
        return at.map(|at| running.swap_remove(at)).ok_or_else(none);
    }
    if running.len() > 1 {
        let names: Vec<&str> = running.iter().map(|network| network.name.as_str()).collect();
        let names = names.join(", ");
        return Err(Failure::usage(format!("several runs: {names}; name one of them")));
    }
    running.pop().ok_or_else(|| Failure::usage("no 'sapwood mpi' of this user runs here"))
}

fn seconds(text: &str) -> Result<f64, String> {
    time(text).map(|time| time.as_secs_f64())
}

/// In a request an empty set is all ranks, which is not what a variable without a value means.
fn chosen_ranks(text: &str) -> Result<String, String> {
    match text.chars().all(|letter| letter == ',' || letter.is_whitespace()) {
        true => Err("it is empty; write 0-3,7 or all".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("write on or off".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        let words = ["control", "--groups", "-bytes,-rma", "--interval", "0", "--flush"];
        let arguments = Arguments::try_parse_from(words).expect("a command line");
        assert_eq!(arguments.groups, Some(vec!["-bytes".to_string(), "-rma".to_string()]));
        assert_eq!((arguments.interval, arguments.flush), (Some(0.0), true));
        for (ranks, is_good) in [("0-3,7", true), ("all", true), ("", false), (" , ", false)] {
            let read = Arguments::try_parse_from(["control", "--ranks", ranks]);
            assert_eq!(read.is_ok(), is_good, "'{ranks}'");
        }
    }

    #[test]
    fn ranks_that_run_and_do_not_obey_are_late() {
        let reply = |change, obeyed: &str, late: &str| {
            let (obeyed, late) = (obeyed.to_owned(), late.to_owned());
            let settings =
                sapwood_report::record::Settings { change, obeyed, ..Default::default() };
            Reply { settings: Some(settings), late, ..Reply::default() }
        };
        let is_obeyed = |reply: &Reply| is_obeyed(reply, &late_ranks(reply).expect("a rank set"));
        let late = late_ranks(&reply(1, "0-1", "2-3")).expect("a rank set");
        assert_eq!(late.to_string(), "2-3");
        assert!(!is_obeyed(&reply(1, "0-1", "2-3")) && is_obeyed(&reply(1, "0-1", "")));
        assert!(!is_obeyed(&reply(1, "", "")), "no rank has reported yet");
        assert!(told(&reply(1, "0-1", "")).contains("change 1, applied by ranks 0-1"));
        assert!(is_obeyed(&reply(0, "", "")), "there is nothing to obey");
        assert!(told(&reply(0, "", "")).starts_with("no change\n"));
        let unreadable = late_ranks(&reply(1, "0-1", "two")).expect_err("no rank set").to_string();
        assert!(unreadable.contains("'two' is no rank set"), "{unreadable}");
    }

    #[test]
    fn tracing_and_sampling_are_told() {
        let told = |tracing, sampling_s| {
            let settings =
                sapwood_report::record::Settings { tracing, sampling_s, ..Default::default() };
            told(&Reply { settings: Some(settings), ..Reply::default() })
        };
        let text = told(false, 0.0);
        assert!(text.contains("tracing    off\nsampling   none\n"), "{text}");
        let text = told(true, 0.1);
        assert!(text.contains("tracing    on\nsampling   every 0.1 s\n"), "{text}");
    }
}
