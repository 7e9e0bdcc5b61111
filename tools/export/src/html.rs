//! `report.html`: one page to attach to a ticket, without scripts and without anything from
//! elsewhere.
//!
//! It says what was watched, by what and when, what was lost, how the time was spent, and shows it
//! in charts and tables. Light or dark as its reader has it. All text is escaped by the template.

mod charts;
mod sections;
mod series;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sapwood_report::quantity::{bytes, percent, time, whole};
use sapwood_report::record::{Activity, Event, Settings};
use sapwood_report::{Profile, RoundRecord, ranks_text};

use crate::event_names::{full_name, visible};
use series::Series;

/// The file's name.
pub(crate) const FILE: &str = "report.html";
/// Events in the table, those with the most time first.
const EVENTS_MAX: usize = 500;
/// Events that are drawn over time.
const EVENTS_DRAWN: usize = 6;
/// Standstills that are written out.
const STANDSTILLS_MAX: usize = 20;
const STYLE: &str = include_str!("html/style.css");

pub(crate) fn page(
    profile: &Profile,
    rounds: impl Iterator<Item = Result<RoundRecord, String>>,
) -> Result<String, String> {
    let mut events: Vec<&Event> = profile.events.iter().collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.time_ns.sum));
    // What happened before counting began is in no interval.
    let drawn = events.iter().filter(|event| !event.name.starts_with("MPI_Init"));
    let drawn: Vec<&Event> = drawn.take(EVENTS_DRAWN).copied().collect();
    let series = Series::of(rounds, &drawn)?;
    let title = format!("{} on {} ranks", visible(&profile.program), profile.world_size);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (facts(profile))
                    (trouble(profile))
                    (efficiencies(profile))
                    (charts::classes(&profile.classes))
                    (charts::over_time(&series))
                    (event_table(&events))
                    (sections::all(profile))
                    (at_the_end(profile))
                }
                footer { "Sapwood " (profile.sapwood) ", " code { "sapwood mpi" } }
            }
        }
    };
    Ok(page.into_string())
}

fn facts(profile: &Profile) -> Markup {
    let interval = time(profile.interval_s * 1e9);
    let watched = format!("{:.1} s, {} rounds", profile.elapsed_s, whole(profile.rounds.into()));
    let tree = format!("{}, {} processes", profile.tree.topology, profile.tree.nodes);
    let state =
        if profile.is_final { "" } else { "the program had not ended when this was written" };
    let command = profile.command.join(" ");
    let settings = profile.settings.as_ref().and_then(Settings::changed_line);
    let ending = profile.told_to_end.as_ref().map(|told| told.lines().join("; "));
    let rows = [
        ("date", profile.started.clone()),
        ("command", visible(&command)),
        ("hosts", visible(&profile.host_names.join(", "))),
        ("MPI", profile.mpi.clone()),
        ("Sapwood", profile.sapwood.clone()),
        ("tree", tree),
        ("interval", interval),
        ("settings", settings.unwrap_or_default()),
        ("watched", watched),
        ("ranks", format!("{} of {}", profile.ranks_covered, profile.world_size)),
        ("state", state.to_owned()),
        ("ended", ending.unwrap_or_default()),
        ("running", profile.states.running.clone()),
        ("finalized", profile.states.finalized.clone()),
        ("exited", profile.states.exited.clone()),
    ];
    html! {
        dl.facts {
            @for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
                dt { (name) }
                dd { (value) }
            }
        }
    }
}

/// What is not in the numbers.
fn trouble(profile: &Profile) -> Markup {
    let lost_rounds = profile.rounds_file.as_ref().map_or(0, |file| file.lost);
    let mut lines: Vec<String> = Vec::new();
    for loss in &profile.missing {
        lines.push(format!("missing {}: {}", ranks_text(&loss.ranks), visible(&loss.reason)));
    }
    if !profile.states.lost.is_empty() {
        lines.push(format!(
            "ended without MPI_Finalize or exit: {}",
            ranks_text(&profile.states.lost)
        ));
    }
    if profile.dropped > 0 {
        lines.push(format!(
            "{} counts were dropped: a table was full",
            whole(profile.dropped.into())
        ));
    }
    if profile.unreadable > 0 {
        lines.push(format!("{} slots could not be read", whole(profile.unreadable.into())));
    }
    if lost_rounds > 0 {
        lines.push(format!("{} rounds could not be written", whole(lost_rounds.into())));
    }
    html! {
        h2 { "Losses" }
        @if lines.is_empty() {
            p { "none" }
        } @else {
            ul.losses { @for line in &lines { li { (line) } } }
        }
    }
}

fn efficiencies(profile: &Profile) -> Markup {
    let Some(time) = &profile.time else { return html! {} };
    let share = |ppm: f64| percent(Some(ppm / 1e6));
    let (least, most) = (time.mpi_ppm.min as f64, time.mpi_ppm.max as f64);
    html! {
        h2 { "Efficiency" }
        @if let Some(efficiency) = &time.efficiency {
            div.cards {
                (charts::gauge("parallel efficiency", efficiency.parallel))
                (charts::gauge("load balance", efficiency.load_balance))
                (charts::gauge("communication efficiency", efficiency.communication))
            }
            p.note { "As the POP project defines them; parallel efficiency is the product of the other two." }
        }
        p {
            "MPI takes " (share(time.mpi_ppm.mean)) " of the time, mean of ranks; "
            (share(least)) " (rank " (time.mpi_ppm.min_rank) ") to "
            (share(most)) " (rank " (time.mpi_ppm.max_rank) ")."
        }
    }
}

fn event_table(events: &[&Event]) -> Markup {
    let columns = [
        "calls",
        "time per rank, mean",
        "deviation",
        "min",
        "max",
        "imbalance",
        "bytes",
        "bytes per call",
        "ranks",
    ];
    html! {
        h2 { "Events" }
        p.note { "Times are inclusive: a region holds what is called in it." }
        div.wide {
            table {
                thead { tr { th { "event" } @for column in columns { th.number { (column) } } } }
                tbody {
                    @for event in events.iter().take(EVENTS_MAX) { (event_row(event)) }
                }
            }
        }
        @if events.len() > EVENTS_MAX {
            p { (events.len() - EVENTS_MAX) " more events are in profile.json." }
        }
    }
}

fn event_row(event: &Event) -> Markup {
    let name = visible(&full_name(&event.name, event.communicator_size_class));
    let extreme = |value: u64, rank: u32| format!("{} @ {rank}", time(value as f64));
    let times = &event.time_ns;
    let sent = if event.bytes.sum == 0 { "-".into() } else { bytes(event.bytes.sum as f64) };
    let each = if event.bytes.sum == 0 || event.calls.sum == 0 {
        "-".into()
    } else {
        bytes(event.bytes.sum as f64 / event.calls.sum as f64)
    };
    let cells = [
        whole(event.calls.sum),
        time(times.mean),
        times.standard_deviation.map_or_else(|| "-".into(), time),
        extreme(times.min, times.min_rank),
        extreme(times.max, times.max_rank),
        percent(event.imbalance),
        sent,
        each,
        event.ranks.to_string(),
    ];
    html! {
        tr {
            th scope="row" title=(event.class) { (name) }
            @for cell in cells { td.number { (cell) } }
        }
    }
}

/// Which ranks waited, and the calls that ranks were inside when they were last seen.
fn at_the_end(profile: &Profile) -> Markup {
    let left: Vec<&Activity> =
        profile.activities.iter().filter(|one| one.condition == "lost" || one.is_long).collect();
    html! {
        @if !profile.standstills.is_empty() {
            h2 { "Standstills" }
            @for episode in profile.standstills.iter().take(STANDSTILLS_MAX) {
                p { "No MPI call returned from " (format!("{:.1}", episode.began_s)) " s to "
                    (format!("{:.1}", episode.seen_s)) " s." }
                ul {
                    @for one in &episode.waiting { li { "waiting: " (activity(one)) } }
                    @for one in &episode.absent { li { "not arrived: " (activity(one)) } }
                }
            }
        }
        @if !left.is_empty() {
            h2 { "Last seen" }
            ul { @for one in left { li { (activity(one)) } } }
        }
    }
}

fn activity(one: &Activity) -> String {
    let place = match &one.function {
        Some(function) if one.communicator.is_empty() => format!("in {function}"),
        Some(function) => format!("in {function} on {}", one.communicator),
        None => "outside of MPI".to_owned(),
    };
    let region = match one.region.as_str() {
        "" => String::new(),
        region => format!(", in region {region}"),
    };
    let text = format!(
        "{} {place}{region}, {}, for up to {:.1} s",
        ranks_text(&one.ranks),
        one.condition,
        one.longest_s
    );
    visible(&text)
}
