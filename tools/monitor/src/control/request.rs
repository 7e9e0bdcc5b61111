//! What may be asked of a run, in its JSON form, and the settings that come of it.

use std::time::Duration;

use sapwood::{RankSet, Values, ValuesRef};
use sapwood_report::{nanoseconds, ranks_text};
use serde::{Deserialize, Serialize};

use super::ScopeRequest;
use crate::{INTERVAL_MAX, INTERVAL_MIN};

/// The groups of metrics by name, with their bits in `bindings/mpi/shim/control.h`: which events
/// are counted, and which of their metrics.
pub const GROUPS: [(&str, u32); 11] = [
    ("collective", 1 << 0),
    ("point-to-point", 1 << 1),
    ("wait", 1 << 2),
    ("rma", 1 << 3),
    ("file", 1 << 4),
    ("other", 1 << 5),
    ("regions", 1 << 6),
    ("calls", 1 << 8),
    ("time", 1 << 9),
    ("bytes", 1 << 10),
    ("activities", 1 << 11),
];
/// Those that say which events are counted.
const EVENTS: u32 = 0x7f;
/// Those that say which metrics of them.
const METRICS: u32 = 0x700;
/// What is told of calls in progress.
pub(crate) const ACTIVITIES: u32 = 1 << 11;
const ALL: u32 = EVENTS | METRICS | ACTIVITIES;

/// A change that a user wants. What is left out stays as it is; without anything it asks only how
/// things are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ControlRequest {
    /// Time between two rounds, in seconds; 0 for none by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<f64>,
    /// The groups that are counted, by name: `all`, `none`, names, or names with `-` in front that
    /// are taken off. Names of events alone leave all metrics, and the other way round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// The ranks that count, as `0-3,7`; `all` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<String>,
    /// Whether ranks record traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing: Option<bool>,
    /// Time between two samples of stacks, in seconds; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_s: Option<f64>,
    /// Whether a round is wanted now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub flush: bool,
    /// Whether it is wanted why the program is slow or stuck: calls that last this long, in
    /// seconds, are such in which ranks wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_s: Option<f64>,
    /// What is to be frozen now; the answer has the number of the freeze.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<FreezeRequest>,
    /// The number of a freeze that is wanted, once it has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<u64>,
    /// A scope that is to be gathered now; the answer has its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeRequest>,
    /// The number of a scope that is to be gathered again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather: Option<u32>,
    /// The number of a scope whose figures are wanted, once they have come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gathered: Option<u32>,
    /// The number of a scope that is not wanted any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_scope: Option<u32>,
}

/// The shortest window.
pub const FREEZE_MIN: Duration = Duration::from_millis(1);
/// The longest.
pub const FREEZE_MAX: Duration = Duration::from_secs(3600);

/// What is frozen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FreezeOrder {
    /// The time before the last call that returned.
    pub(crate) last: Duration,
    /// Empty for all.
    pub(crate) ranks: RankSet,
    /// As a trigger: a rank that comes to a collective later than this freezes the job.
    pub(crate) late: Option<Duration>,
}

/// What is to be frozen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeRequest {
    /// The time before the last call that returned, in seconds.
    pub last_s: f64,
    /// The ranks, as `0-3,7`; empty for all.
    #[serde(default)]
    pub ranks: String,
}

impl FreezeRequest {
    /// The same as it is carried out.
    pub(crate) fn order(&self, world_size: u32) -> Result<FreezeOrder, String> {
        let last = Duration::try_from_secs_f64(self.last_s).ok();
        let last = last.filter(|last| (FREEZE_MIN..=FREEZE_MAX).contains(last));
        let last = last.ok_or_else(|| {
            let (least, most) = (FREEZE_MIN.as_secs_f64(), FREEZE_MAX.as_secs());
            format!("{:?} s cannot be frozen; give a time from {least} s to {most} s", self.last_s)
        })?;
        let ranks = match self.ranks.as_str() {
            "" => RankSet::new(),
            text => chosen(text, world_size)?,
        };
        Ok(FreezeOrder { last, ranks, late: None })
    }
}

impl ControlRequest {
    /// Reads its JSON form.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        // A list of values without names would be taken in the order of the members.
        let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
        let request = object.and_then(|object| serde_json::from_value(object.into()));
        request.map_err(|error| format!("no control request: {error}"))
    }

    /// Its JSON form.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text are always JSON")
    }
}

/// The settings that ranks and front-end obey.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunSettings {
    /// The number of the change that made them; 0 as long as nothing was changed.
    pub(crate) change: u32,
    /// None for no rounds by time.
    pub(crate) interval: Option<Duration>,
    pub(crate) groups: u32,
    /// The ranks that count; empty for all.
    pub(crate) ranks: RankSet,
    pub(crate) is_tracing: bool,
    pub(crate) sampling: Duration,
    /// Why ranks cannot be told other settings; none if they can. The interval is the front-end's.
    pub(crate) uncontrolled: Option<String>,
}

impl RunSettings {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            change: 0,
            interval: Some(interval),
            groups: ALL,
            ranks: RankSet::new(),
            is_tracing: false,
            sampling: Duration::ZERO,
            uncontrolled: None,
        }
    }

    /// The settings after a request; as they are when it changes nothing. The program has
    /// `world_size` ranks, or 0 if that is not known yet.
    ///
    /// # Errors
    /// One line that says what cannot be done.
    pub(crate) fn changed(
        &self,
        request: &ControlRequest,
        world_size: u32,
    ) -> Result<Self, String> {
        let mut next = self.clone();
        if let Some(seconds) = request.interval_s {
            next.interval = interval(seconds)?;
        }
        if let Some(groups) = &request.groups {
            next.groups = group_bits(groups)?;
        }
        match request.ranks.as_deref() {
            None => {}
            Some("all" | "") => next.ranks = RankSet::new(),
            Some(text) => next.ranks = chosen(text, world_size)?,
        }
        next.is_tracing = request.tracing.unwrap_or(next.is_tracing);
        if let Some(seconds) = request.sampling_s {
            next.sampling = interval(seconds)?.unwrap_or_default();
        }
        match &self.uncontrolled {
            Some(reason) if next.tells_ranks_other_than(self) => {
                Err(format!("groups, ranks, tracing and sampling cannot be changed: {reason}"))
            }
            // Nothing that ranks are to take over.
            Some(_) => Ok(next),
            None => {
                if next != *self {
                    next.change = self.change.saturating_add(1);
                }
                Ok(next)
            }
        }
    }

    fn tells_ranks_other_than(&self, other: &Self) -> bool {
        self.groups != other.groups
            || self.ranks != other.ranks
            || self.is_tracing != other.is_tracing
            || self.sampling != other.sampling
    }

    pub(crate) fn selects(&self, rank: u32) -> bool {
        self.ranks.is_empty() || self.ranks.contains(rank)
    }

    pub(crate) fn tells_activities(&self, rank: u32) -> bool {
        self.groups & ACTIVITIES != 0 && self.selects(rank)
    }

    /// Adds them to a packet: `%ud` change, `%uld` interval in nanoseconds, `%ud` groups, `%aud`
    /// ranges of ranks, `%ud` tracing, `%uld` nanoseconds between samples, `%ud` whether leaves
    /// write them into the pages of ranks.
    pub(crate) fn push(&self, values: Values) -> Values {
        values
            .scalar(self.change)
            .scalar(self.interval.map_or(0, nanoseconds))
            .scalar(self.groups)
            .array(&ranges(&self.ranks))
            .scalar(u32::from(self.is_tracing))
            .scalar(nanoseconds(self.sampling))
            .scalar(u32::from(self.uncontrolled.is_none()))
    }

    pub(crate) fn read(values: ValuesRef<'_>, at: usize) -> Result<Self, sapwood::Error> {
        let interval = Duration::from_nanos(values.scalar(at + 1)?);
        Ok(Self {
            change: values.scalar(at)?,
            interval: (!interval.is_zero()).then_some(interval),
            groups: values.scalar(at + 2)?,
            ranks: rank_set(values.array(at + 3)?),
            is_tracing: values.scalar::<u32>(at + 4)? != 0,
            sampling: Duration::from_nanos(values.scalar(at + 5)?),
            // The reason is of use to the front-end only.
            uncontrolled: (values.scalar::<u32>(at + 6)? == 0).then(String::new),
        })
    }

    pub(crate) fn group_names(&self) -> Vec<String> {
        let named = GROUPS.iter().filter(|(_, bit)| self.groups & bit != 0);
        named.map(|(name, _)| (*name).to_string()).collect()
    }
}

/// A set of ranks as first and last of its ranges, in turn.
pub(crate) fn ranges(ranks: &RankSet) -> Vec<u32> {
    ranks.as_ref().ranges().iter().flatten().copied().collect()
}

pub(crate) fn rank_set(words: &[u32]) -> RankSet {
    let mut ranks = RankSet::new();
    for pair in words.chunks_exact(2).filter(|pair| pair[0] <= pair[1]) {
        ranks.insert_range(pair[0], pair[1]);
    }
    ranks
}

/// Ranks of the program.
pub(crate) fn chosen(text: &str, world_size: u32) -> Result<RankSet, String> {
    let wrong = |_| format!("'{text}' is no set of ranks; write 0-3,7 or all");
    let ranks: RankSet = text.parse().map_err(wrong)?;
    let Some(last) = world_size.checked_sub(1) else { return Ok(ranks) };
    let others = ranks.difference(RankSet::range(0, last).as_ref());
    if others.is_empty() {
        return Ok(ranks);
    }
    let ranks = ranks_text(&others.to_string());
    Err(format!("the program has no {ranks}; its ranks are {}", RankSet::range(0, last)))
}

/// A time between rounds or samples; none for 0.
fn interval(seconds: f64) -> Result<Option<Duration>, String> {
    if seconds == 0.0 {
        return Ok(None);
    }
    let time = Duration::try_from_secs_f64(seconds).ok();
    let time = time.filter(|time| (INTERVAL_MIN..=INTERVAL_MAX).contains(time));
    let (least, most) = (INTERVAL_MIN.as_secs_f64(), INTERVAL_MAX.as_secs());
    let wrong =
        format!("{seconds:?} s is no interval; give 0 or a time from {least} s to {most} s");
    time.map(Some).ok_or(wrong)
}

fn group_bits(names: &[String]) -> Result<u32, String> {
    let takes_off = names.first().is_some_and(|name| name.starts_with('-'));
    let (mut on, mut off) = (if takes_off { ALL } else { 0 }, 0);
    for name in names {
        let (plain, is_off) = name.strip_prefix('-').map_or((name.as_str(), false), |n| (n, true));
        let bit = match plain {
            "all" => ALL,
            "none" => 0,
            plain => {
                let known = GROUPS.iter().find(|(name, _)| *name == plain);
                known.map(|(_, bit)| *bit).ok_or_else(|| {
                    let all: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
                    format!(
                        "no group is called '{plain}'; there are {}, all and none",
                        all.join(", ")
                    )
                })?
            }
        };
        if is_off { off |= bit } else { on |= bit }
    }
    if on & METRICS == 0 && on & EVENTS != 0 {
        on |= METRICS;
    }
    if on & EVENTS == 0 && on & METRICS != 0 {
        on |= EVENTS;
    }
    Ok(on & !off)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<RunSettings, String> {
        let settings = RunSettings::new(Duration::from_secs(1));
        ControlRequest::parse(text).and_then(|request| settings.changed(&request, 4))
    }

    #[test]
    fn a_request_changes_what_it_names_and_nothing_else() {
        let settings = asked(r#"{"interval_s":0.25,"ranks":"0-3","flush":true}"#).expect("good");
        assert_eq!(settings.interval, Some(Duration::from_millis(250)));
        assert_eq!((settings.change, settings.groups), (1, ALL));
        assert!(settings.selects(3) && !settings.selects(4));
        assert_eq!(asked("{}").expect("a question").change, 0);
        assert_eq!(asked(r#"{"interval_s":0}"#).expect("none by time").interval, None);
    }

    #[test]
    fn groups_of_events_and_of_metrics_complete_one_another() {
        let groups = |text: &str| asked(&format!(r#"{{"groups":[{text}]}}"#)).map(|it| it.groups);
        assert_eq!(groups(r#""collective","wait""#), Ok(METRICS | 0b101));
        assert_eq!(groups(r#""calls""#), Ok(EVENTS | 1 << 8));
        assert_eq!(groups(r#""-bytes","-activities""#), Ok(EVENTS | 0x300));
        assert_eq!((groups(r#""none""#), groups(r#""all""#)), (Ok(0), Ok(ALL)));
        assert!(groups(r#""speed""#).unwrap_err().contains("no group is called 'speed'"));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        assert!(asked(r#"{"interval":1}"#).unwrap_err().contains("unknown field `interval`"));
        assert!(asked(r#"{"interval_s":1e-9}"#).unwrap_err().contains("is no interval"));
        for interval in [r#"{"interval_s":-3}"#, r#"{"interval_s":1e308}"#, r#"{"sampling_s":-3}"#]
        {
            assert!(asked(interval).unwrap_err().contains("s is no interval"), "{interval}");
        }
        assert!(asked(r#"{"ranks":"x"}"#).unwrap_err().contains("no set of ranks"));
        assert!(asked(r#"{"ranks":"0-99999999999"}"#).unwrap_err().contains("no set of ranks"));
        for wrong in ["", "[]", "[1]", "3", "null"] {
            assert!(asked(wrong).unwrap_err().contains("no control request"), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_frozen_is_said() {
        let order = |last_s, ranks: &str| FreezeRequest { last_s, ranks: ranks.into() }.order(4);
        let good = order(2.5, "1-2").expect("there are these");
        assert_eq!(
            (good.last, good.ranks.to_string()),
            (Duration::from_millis(2500), "1-2".into())
        );
        assert!(order(10.0, "").expect("all ranks").ranks.is_empty());
        assert!(order(-1.0, "").unwrap_err().contains("-1.0 s cannot be frozen"));
        assert!(order(f64::NAN, "").unwrap_err().contains("from 0.001 s"));
        assert!(order(1.0, "9").unwrap_err().contains("no rank 9"));
    }

    #[test]
    fn ranks_that_the_program_does_not_have_are_refused() {
        let refused = |text: &str| asked(text).unwrap_err();
        assert_eq!(refused(r#"{"ranks":"9"}"#), "the program has no rank 9; its ranks are 0-3");
        assert!(refused(r#"{"ranks":"2-5"}"#).contains("no ranks 4-5"));
        let settings = RunSettings::new(Duration::from_secs(1));
        let request = ControlRequest { ranks: Some("9".into()), ..ControlRequest::default() };
        assert!(settings.changed(&request, 0).is_ok(), "it is not known yet which there are");
    }

    #[test]
    fn what_ranks_cannot_be_told_is_refused_with_the_reason() {
        let uncontrolled = Some("there is no page".to_owned());
        let settings = RunSettings { uncontrolled, ..RunSettings::new(Duration::from_secs(1)) };
        let asked = |text: &str| {
            ControlRequest::parse(text).and_then(|request| settings.changed(&request, 4))
        };
        let parts =
            [r#""groups":["calls"]"#, r#""ranks":"1""#, r#""tracing":true"#, r#""sampling_s":1"#];
        for part in parts {
            let refused = asked(&format!("{{{part}}}")).unwrap_err();
            assert!(refused.ends_with("cannot be changed: there is no page"), "{refused}");
        }
        let next = asked(r#"{"interval_s":0.5,"flush":true,"tracing":false}"#).expect("its own");
        assert_eq!((next.interval, next.change), (Some(Duration::from_millis(500)), 0));
        let values = next.push(Values::new());
        let read = RunSettings::read(values.as_ref(), 0).expect("as it was sent");
        assert_eq!(read.uncontrolled, Some(String::new()));
    }

    #[test]
    fn settings_travel() {
        let text = r#"{"groups":["rma"],"ranks":"0,2-3","tracing":true,"sampling_s":0.5}"#;
        let settings = asked(text).expect("good");
        let values = settings.push(Values::new().scalar(7_u64));
        assert_eq!(RunSettings::read(values.as_ref(), 1).expect("as it was sent"), settings);
    }
}
