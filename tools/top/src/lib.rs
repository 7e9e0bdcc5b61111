//! `sapwood top`: what the hosts of a set are doing, reduced in the tree.
//!
//! Owns the command line and the order of things. `agent` is the process on each host, `reading`
//! and `proc` what it reads, `metric` the table of metrics; `reduction` is the filter in the tree
//! and `table` what it makes; `watch` is the front-end, `sample` what a wave has brought; `rows`,
//! `view`, `json` and `exposition` are how it is shown. docs/top.md describes it.

pub mod agent;
mod exposition;
mod json;
mod metric;
mod proc;
mod reading;
pub mod reduction;
mod rows;
mod sample;
mod table;
mod view;
mod watch;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use sapwood::{Network, Registry};
use sapwood_terminal::Screen;
use sapwood_transport::PageServer;

use self::exposition::{SERIES_DEFAULT, SERIES_MIN};
use self::sample::Sample;
use self::table::WORST_MAX;
use self::view::View;
use self::watch::{Ended, Live, Output, Terms, Watch};
use sapwood_command_line::arguments::listening_address;
use sapwood_command_line::colour::ColourOption;
use sapwood_command_line::exit::{Failure, UNREACHED, by_signal, complain, print};
use sapwood_command_line::times::time;
use sapwood_hosts::absence;
use sapwood_hosts::deploy::{self, Opened, Targets};
use sapwood_hosts::selection::{Reach, Selection};
use sapwood_hosts::signals::Signals;
use sapwood_hosts::tree::Purpose;

/// Bounds of the interval.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// The longest that silent hosts are waited for, if nothing is said.
const WAVE_TIMEOUT_MAX: Duration = Duration::from_secs(5);

/// What `sapwood top` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 after --count updates or when q is pressed; 255 if more hosts are missing than \
                        --missing-max, 128+n for signal n, 125 for a failure of Sapwood itself."
)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    reach: Reach,
    /// Query the hosts at this interval.
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Time limit for the answers of hosts [default: half the interval, at most 5s].
    #[arg(long, value_name = "TIME", value_parser = interval)]
    wave_timeout: Option<Duration>,
    /// End after one update.
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// End after N updates.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Number of hosts that are named for each metric, those with the worst values.
    #[arg(long, value_name = "K", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WORST_MAX)))]
    worst: u32,
    /// The metric whose worst hosts are shown.
    #[arg(long, value_name = "NAME", default_value = "cpu.busy", value_parser = metric_name)]
    metric: usize,
    /// Print one line of JSON for each update.
    #[arg(long, conflicts_with_all = ["quiet", "metric", "dry_run"])]
    json: bool,
    /// Print no tables; print on standard error which hosts stop and start answering.
    #[arg(short = 'q', long, conflicts_with = "metric")]
    quiet: bool,
    /// Serve the last update as OpenMetrics at ADDRESS:PORT, or at PORT of the loopback interface;
    /// 0 chooses a free port.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listening_address)]
    listen: Option<SocketAddr>,
    /// Maximum number of series that --listen serves.
    #[arg(long, value_name = "N", default_value_t = SERIES_DEFAULT, requires = "listen",
          value_parser = clap::value_parser!(u32).range(i64::from(SERIES_MIN)..=10_000_000))]
    series_max: u32,
    /// Accept up to N missing hosts.
    #[arg(long, alias = "quorum", value_name = "N", default_value_t = 0)]
    missing_max: u64,
    /// Folder that contains proc and sys on the hosts; %h is the host's name.
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: String,
    /// Print the tree and the commands that would start it, and run nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    colour: ColourOption,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = time(text)?;
    match (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        true => Ok(interval),
        false => Err("give a time from 100ms to 1h, such as 500ms".to_owned()),
    }
}

fn metric_name(text: &str) -> Result<usize, String> {
    metric::place(text).ok_or_else(|| {
        let names: Vec<&str> = metric::TABLE.iter().map(|metric| metric.name).collect();
        format!("choose from {}", names.join(", "))
    })
}

/// Shows the hosts until it is to end.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let targets = Targets::of(arguments.selection.resolve()?)?;
    let mut plan = deploy::plan(&targets, &arguments.reach, Purpose::Kept, agent::AGENT)?;
    plan.builder = plan.builder.registry(reduction::register(Registry::built_in()));
    if arguments.dry_run {
        print(&plan.text(&targets)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let refused = |error| Failure::own(&format!("cannot handle signals: {error}"));
    let signals = Signals::take_over().map_err(refused)?;
    // Before anything is started: the address may be taken.
    let server = arguments.listen.map(PageServer::bind).transpose().map_err(Failure::usage)?;
    plan.launching.announce(&plan.builder);
    let (mut network, signals) = match deploy::open(plan.builder, signals)? {
        Opened::Tree(network, signals) => (*network, signals),
        Opened::Stopped(signal) => return Ok(deploy::stopped(signal)),
    };
    if let Some(server) = &server {
        complain(format_args!("metrics at http://{}/metrics", server.address()));
    }
    let code = watch(arguments, &mut network, &targets, server, signals);
    let closed = network.close();
    let code = code?;
    closed?;
    Ok(ExitCode::from(code))
}

/// Watches the hosts in a network whose back-ends are agents, one for each name.
fn watch(
    arguments: &Arguments,
    network: &mut Network,
    targets: &Targets,
    server: Option<PageServer>,
    signals: Signals,
) -> Result<u8, Failure> {
    let absent = targets.absent_from(network);
    if absent.iter().map(|(ranks, _)| ranks.len()).sum::<u64>() == targets.names.len() as u64 {
        for (ranks, reason) in &absent {
            complain(absence::line(&targets.nodes(ranks), reason));
        }
        if arguments.json {
            let sample = Sample::of_absent(targets.set.iter().collect(), &absent);
            print(&json::line(&sample))?;
        }
        return Ok(UNREACHED);
    }
    let half = (arguments.interval / 2).min(WAVE_TIMEOUT_MAX);
    let terms = Terms {
        interval: arguments.interval,
        wave_timeout: arguments.wave_timeout.unwrap_or(half),
        worst: arguments.worst,
        count: if arguments.once { Some(1) } else { arguments.count },
        series_max: arguments.series_max as usize,
        root: arguments.root.clone(),
    };
    let output = output(arguments, terms.count.is_some())?;
    let mut watch = Watch::begin(network, &targets.set, terms, output, server, signals)?;
    for (ranks, reason) in &absent {
        watch.lose(ranks, reason);
    }
    let ended = watch.run();
    let missing = watch.last().map_or(0, Sample::missing_count);
    watch.end();
    Ok(match ended? {
        Ended::By(signal) => by_signal(signal),
        Ended::Done if missing > arguments.missing_max => UNREACHED,
        Ended::Done => 0,
    })
}

/// Where samples are shown: a view if there is a terminal for it and it is to go on.
fn output(arguments: &Arguments, is_counted: bool) -> Result<Output, Failure> {
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if arguments.json {
        return Ok(Output::Json);
    }
    if arguments.quiet {
        return Ok(Output::Nothing);
    }
    if !is_terminal || is_counted {
        return Ok(Output::Table(arguments.metric));
    }
    let failed =
        |error: std::io::Error| Failure::own(&format!("cannot control the terminal: {error}"));
    let has_colour = arguments.colour.is_wanted_on(&std::io::stdout());
    let interval = format!("{} s", arguments.interval.as_secs_f64());
    let view = View::new(arguments.metric, interval, has_colour);
    let terminal = Terminal::new(Screen::of_streams().map_err(failed)?).map_err(failed)?;
    Ok(Output::View(Box::new(Live { terminal, view })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_within_bounds() {
        for half in ["0.5", "500ms"] {
            assert_eq!(interval(half), Ok(Duration::from_millis(500)));
        }
        for wrong in ["0", "0.01", "1e9", "-1", "NaN", "soon"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
        assert!(metric_name("cpu").is_err_and(|said| said.contains("cpu.busy, ")));
    }
}
