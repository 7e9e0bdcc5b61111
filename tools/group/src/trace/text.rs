//! What `sapwood group trace` prints.

use std::fmt::Write as _;

use sapwood::MemberId;
use sapwood_trace::ScopeStatistics;
use serde_json::{Value, json};

use super::Reading;
use super::passage::{Figures, LinkEnds, LinkFigures, MemberFigures};

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.group-trace/1";
/// Nanoseconds of a microsecond.
const MICROSECOND: f64 = 1e3;
/// The half, in thousandths.
const HALF: u64 = 500;

impl Reading {
    /// A member's virtual nodes; `?` of one that came later.
    pub(super) fn label(&self, member: MemberId) -> &str {
        self.labels.get(&member).map_or("?", |label| label.names.as_str())
    }

    /// The links in the order of their parents' virtual nodes, then of their children's.
    fn links<'a>(&self, figures: &'a Figures) -> Vec<(&'a LinkEnds, &'a LinkFigures)> {
        let mut links: Vec<_> = figures.links.iter().collect();
        links
            .sort_by_key(|(ends, _)| (self.labels.get(&ends.parent), self.labels.get(&ends.child)));
        links
    }

    /// Events that members still had after the last reading.
    pub(super) fn left_unread(&self) -> u64 {
        self.unread.values().sum()
    }

    /// The members in the order of their virtual nodes.
    fn members<'a>(&self, figures: &'a Figures) -> Vec<(&'a MemberId, &'a MemberFigures)> {
        let mut members: Vec<_> = figures.members.iter().collect();
        members.sort_by_key(|(id, _)| self.labels.get(id));
        members
    }
}

/// A table of links, and one of members.
pub(super) fn table(reading: &Reading, figures: &Figures) -> String {
    let Reading { labels, seconds, noted, lost, lapsed, missing, .. } = reading;
    let Figures { reductions, transfers, .. } = figures;
    let mut text = format!(
        "{} members, {seconds:.1} s: {reductions} reductions and {transfers} transfers; {noted} \
         events, {lost} of them overwritten before they were read\n",
        labels.len()
    );
    if *lapsed > 0 {
        let _ = writeln!(
            text,
            "{lapsed} times a member stopped recording, because no reading arrived in time"
        );
    }
    if reading.left_unread() > 0 {
        let _ =
            writeln!(text, "{} events came too late for the last reading", reading.left_unread());
    }
    for (member, why) in missing {
        let _ = writeln!(text, "member {} did not answer: {why}", reading.label(*member));
    }
    if reductions + transfers == 0 {
        text += "no operation took place in that time\n";
        return text;
    }
    text += "\nlinks, medians in us. last: operations in which this child's part arrived last at the \
             parent, and by how much\n";
    text += "parent  child   operations    last  by        up        down      two-way   error\n";
    for (ends, link) in reading.links(figures) {
        let LinkEnds { parent, child } = ends;
        let (parent, child) = (reading.label(*parent), reading.label(*child));
        let LinkFigures { operations, last, margin, up, down, two_way, error, .. } = link;
        let [margin, up, down, two_way] = [margin, up, down, two_way].map(median_text);
        let error = *error as f64 / MICROSECOND;
        let _ = writeln!(
            text,
            "{parent:<6}  {child:<6}  {operations:>10}  {last:>6}  {margin:<8}  {up:<8}  {down:<8}  \
             {two_way:<8}  {error:.1}"
        );
    }
    let undecided: u64 = figures.links.values().map(|link| link.undecided).sum();
    if undecided > 0 {
        let _ = writeln!(
            text,
            "{undecided} times up and down are shorter than the error of their clocks, and are in no \
             median"
        );
    }
    text += "\nmembers, medians in us. last: operations in which its own call came after the parts from \
             below\n";
    text += "member  calls   time      last    by        left early  taken at the call  late, folded \
             by the progress thread\n";
    for (member, figures) in reading.members(figures) {
        let MemberFigures { calls, last, margin, left_early, .. } = figures;
        let MemberFigures { taken_at_call, folded_late, lateness, .. } = figures;
        let (time, margin, lateness) =
            (median_text(calls), median_text(margin), median_text(lateness));
        let _ = writeln!(
            text,
            "{:<6}  {:<6}  {time:<8}  {last:<6}  {margin:<8}  {left_early:<10}  {taken_at_call:<17}  \
             {folded_late}, by {lateness}",
            reading.label(*member),
            calls.count
        );
    }
    text
}

/// One object.
pub(super) fn to_json(reading: &Reading, figures: &Figures) -> Value {
    let link = |(ends, figures): (&LinkEnds, &LinkFigures)| {
        json!({
            "parent": reading.label(ends.parent),
            "child": reading.label(ends.child),
            "operations": figures.operations,
            "last": figures.last,
            "margin_ns": statistics(&figures.margin),
            "up_ns": statistics(&figures.up),
            "down_ns": statistics(&figures.down),
            "two_way_ns": statistics(&figures.two_way),
            "undecided": figures.undecided,
            "clock_error_ns": figures.error,
        })
    };
    let member = |(id, figures): (&MemberId, &MemberFigures)| {
        json!({
            "member": reading.label(*id),
            "calls_ns": statistics(&figures.calls),
            "last": figures.last,
            "margin_ns": statistics(&figures.margin),
            "left_early": figures.left_early,
            "taken_at_call": figures.taken_at_call,
            "folded_late": figures.folded_late,
            "lateness_ns": statistics(&figures.lateness),
        })
    };
    let missing: Vec<Value> = reading
        .missing
        .iter()
        .map(|(id, why)| json!({ "member": reading.label(*id), "reason": why }))
        .collect();
    let mut labels: Vec<_> = reading.labels.values().collect();
    labels.sort();
    json!({
        "schema": SCHEMA,
        "members": labels.into_iter().map(|label| &label.names).collect::<Vec<_>>(),
        "seconds": reading.seconds,
        "events": { "noted": reading.noted, "overwritten": reading.lost, "unread": reading.left_unread() },
        "lapsed": reading.lapsed,
        "missing": missing,
        "reductions": figures.reductions,
        "transfers": figures.transfers,
        "links": reading.links(figures).into_iter().map(link).collect::<Vec<_>>(),
        "figures": reading.members(figures).into_iter().map(member).collect::<Vec<_>>(),
    })
}

fn median_text(figure: &ScopeStatistics) -> String {
    match figure.count {
        0 => "-".to_string(),
        _ => format!("{:.1}", figure.quantile(HALF) as f64 / MICROSECOND),
    }
}

fn statistics(figure: &ScopeStatistics) -> Value {
    if figure.count == 0 {
        return Value::Null;
    }
    json!({
        "count": figure.count,
        "least": figure.least,
        "median": figure.quantile(HALF),
        "mean": figure.mean(),
        "most": figure.most,
    })
}
