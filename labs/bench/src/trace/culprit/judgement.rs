//! Which ranks an answer of `sapwood trace why --json` names as the cause, whatever the fault was.
//!
//! Owns the rule, in the order in which docs/trace.md explains one finding by another: the rank
//! that gave another amount of data, for which MPI often ends another one; the rank that died
//! first; the ranks that a standstill names; the senders of slow links; the ranks whose
//! messages came late for another reason than their own waits; the ranks that came last to a
//! collective. Of the last two, in each of which some rank is always the first, only what stands
//! out by the rule of docs/monitor-metrics.md is an accusation.

use std::collections::BTreeSet;

use serde_json::Value;

/// Links that are printed.
const LINKS: usize = 2;
/// Fewer collectives or messages show no habit.
const TIMES_MIN: u64 = 10;
/// Others have waited for a rank for this part of the run, or of all ranks' time, at least.
const RUN_SHARE_MIN: f64 = 0.01;

/// Ranks, and what they are accused of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Accused {
    pub(super) ranks: BTreeSet<u32>,
    /// Such as `stuck` or `link`; empty for no accusation.
    pub(super) by: &'static str,
}

impl Accused {
    /// Whether exactly one rank is accused, which is this one.
    pub(super) fn is_only(&self, rank: u32) -> bool {
        self.ranks.iter().eq([&rank])
    }

    /// The ranks in text, such as `3 (stuck)`.
    pub(super) fn text(&self) -> String {
        if self.by.is_empty() {
            return "none".to_owned();
        }
        let ranks: Vec<String> = self.ranks.iter().map(u32::to_string).collect();
        format!("{} ({})", ranks.join(","), self.by)
    }
}

/// The accused of an answer.
pub(super) fn accused(why: &Value) -> Accused {
    let found = [
        (amounts(why), "amounts"),
        (death(why), "death"),
        (stuck(why), "stuck"),
        (links(why), "link"),
        (messages(why), "messages"),
        (collectives(why), "collectives"),
    ];
    let first = found.into_iter().find_map(|(ranks, by)| ranks.map(|ranks| (ranks, by)));
    first.map_or_else(Accused::default, |(ranks, by)| Accused { ranks, by })
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn real(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(0.0)
}

fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

/// The ranks of a text such as `0,2-3`.
fn ranks(text: &Value) -> BTreeSet<u32> {
    let parts = text.as_str().unwrap_or_default().split(',');
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    parts.filter_map(range).flatten().collect()
}

fn amounts(why: &Value) -> Option<BTreeSet<u32>> {
    let culprit = |one: &Value| u32::try_from(one["culprit"].as_u64()?).ok();
    let all: BTreeSet<u32> = list(why, "amounts").iter().filter_map(culprit).collect();
    (!all.is_empty()).then_some(all)
}

fn death(why: &Value) -> Option<BTreeSet<u32>> {
    let first = list(why, "ends").iter().find(|end| end["is_first"] == true)?;
    Some(ranks(&first["ranks"]))
}

fn stuck(why: &Value) -> Option<BTreeSet<u32>> {
    why["stuck"].is_object().then(|| ranks(&why["stuck"]["culprits"]))
}

fn links(why: &Value) -> Option<BTreeSet<u32>> {
    let from = |link: &Value| u32::try_from(count(link, "from")).ok();
    let all: BTreeSet<u32> = list(why, "links").iter().take(LINKS).filter_map(from).collect();
    (!all.is_empty()).then_some(all)
}

/// From which share on a rank stands out among as many.
fn least_share(why: &Value) -> f64 {
    let equal = 1.0 / real(why, "ranks").max(1.0);
    equal + (1.0 - equal) / 3.0
}

fn messages(why: &Value) -> Option<BTreeSet<u32>> {
    // Those that only pass a delay on are not on the screen either.
    let own = |one: &&Value| one["is_passed_on"] == false;
    let all: Vec<&Value> = list(why, "messages").iter().filter(own).collect();
    let times = |one: &&Value| count(one, "late_sends") + count(one, "late_receives");
    let waits = |one: &&Value| real(one, "send_wait_s") + real(one, "receive_wait_s");
    let all_times: u64 = all.iter().map(times).sum();
    let all_waits: f64 = all.iter().map(waits).sum();
    let least = least_share(why);
    #[allow(clippy::cast_precision_loss, reason = "shares are compared roughly")]
    let stands_out = |one: &&&Value| {
        times(one) >= TIMES_MIN
            && times(one) as f64 >= least * all_times as f64
            && waits(one) >= least * all_waits
            && waits(one) >= RUN_SHARE_MIN * real(why, "elapsed_s")
    };
    let one = all.iter().find(stands_out)?;
    Some(BTreeSet::from([u32::try_from(count(one, "rank")).ok()?]))
}

/// Of the place with the most lost time, the group for which most of it was lost, however seldom
/// it came last. Ranks that wait for each other by turns are none.
fn collectives(why: &Value) -> Option<BTreeSet<u32>> {
    let mut places = list(why, "slow").iter();
    let place = places.find(|place| count(place, "collectives") >= TIMES_MIN)?;
    let group = list(place, "groups").first()?;
    let least = least_share(why);
    let stands_out = group["ranks"] != group["waiting"]
        && real(group, "lost_share") >= least
        && count(group, "times_last") >= TIMES_MIN
        && real(group, "lost_s") >= RUN_SHARE_MIN * real(why, "elapsed_s") * real(why, "ranks");
    stands_out.then(|| ranks(&group["ranks"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(part: &Value) -> (Vec<u32>, &'static str) {
        let mut why = json!({"ranks": 8, "elapsed_s": 10.0, "stuck": null, "ends": []});
        for (name, value) in part.as_object().expect("an object") {
            why[name] = value.clone();
        }
        let Accused { ranks, by } = accused(&why);
        (ranks.into_iter().collect(), by)
    }

    fn group(ranks: &str, times_last: u32, lost_s: f64) -> Value {
        let lost_share = lost_s / 20.0;
        json!({"ranks": ranks, "waiting": "0,2-7", "times_last": times_last, "lost_s": lost_s,
               "lost_share": lost_share})
    }

    fn place(groups: &[Value]) -> Value {
        json!({"slow": [{"collectives": 100, "groups": groups}]})
    }

    #[test]
    fn what_holds_all_comes_before_what_costs_time() {
        let slow = place(&[group("1", 95, 19.0)]);
        assert_eq!(of(&slow), (vec![1], "collectives"));
        let mut all = slow;
        all["links"] = json!([{"from": 2, "to": 3}, {"from": 2, "to": 4}, {"from": 5, "to": 6}]);
        assert_eq!(of(&all), (vec![2], "link"));
        all["stuck"] = json!({"culprits": "3,5-6"});
        assert_eq!(of(&all), (vec![3, 5, 6], "stuck"));
        all["ends"] = json!([{"ranks": "1", "is_first": false}, {"ranks": "4", "is_first": true}]);
        assert_eq!(of(&all), (vec![4], "death"));
        all["ends"] = json!([]);
        all["stuck"] = json!({"culprits": ""});
        assert_eq!(of(&all), (vec![], "stuck"), "a standstill of which the cause is not known");
    }

    #[test]
    fn a_rank_that_gave_another_amount_comes_before_the_one_that_mpi_has_ended() {
        let ends = json!([{"ranks": "4", "is_first": true}]);
        let given = |culprit: Value| json!({"amounts": [{"culprit": culprit}], "ends": ends});
        assert_eq!(of(&given(json!(5))), (vec![5], "amounts"));
        assert_eq!(
            of(&given(Value::Null)),
            (vec![4], "death"),
            "as many gave the one as the other"
        );
    }

    #[test]
    fn a_rank_that_is_only_the_first_of_many_is_not_accused() {
        assert_eq!(of(&place(&[group("1", 10, 19.0)])), (vec![1], "collectives"), "one in ten");
        assert_eq!(of(&place(&[group("1", 9, 19.0)])), (vec![], ""), "hardly ever last");
        assert_eq!(of(&place(&[group("1", 90, 8.0)])), (vec![], ""), "less than 41.7 % of it");
        assert_eq!(of(&place(&[group("0,2-7", 90, 20.0)])), (vec![], ""), "by turns");
        assert_eq!(
            of(&place(&[group("1", 100, 0.05)])),
            (vec![], ""),
            "half a per cent of the run"
        );
        assert_eq!(of(&json!({})), (vec![], ""));
    }

    #[test]
    fn late_messages_that_pass_a_delay_on_accuse_no_rank() {
        let late = |rank: u32, times: u32, wait_s: f64, is_passed_on: bool| {
            json!({"rank": rank, "late_sends": times, "send_wait_s": wait_s,
                   "is_passed_on": is_passed_on})
        };
        let of = |all: &[Value]| of(&json!({"messages": all}));
        let (cause, passed_on) = (late(2, 90, 5.0, false), late(3, 90, 5.0, true));
        assert_eq!(of(&[cause, passed_on.clone()]), (vec![2], "messages"));
        assert_eq!(of(std::slice::from_ref(&passed_on)), (vec![], ""));
        let many: Vec<Value> = [late(2, 90, 5.0, false)]
            .into_iter()
            .chain((3..8).map(|rank| late(rank, 90, 4.0, true)))
            .collect();
        assert_eq!(of(&many), (vec![2], "messages"), "a delay that five others pass on");
        let even: Vec<Value> = (0..8).map(|rank| late(rank, 50, 3.0, false)).collect();
        assert_eq!(of(&even), (vec![], ""));
        let receives = json!({"rank": 5, "late_receives": 90, "receive_wait_s": 5.0,
                              "is_passed_on": false});
        assert_eq!(of(&[receives]), (vec![5], "messages"), "senders waited for it");
    }

    #[test]
    fn the_right_rank_beside_another_is_not_right() {
        let accused = |text: &str| Accused { ranks: ranks(&json!(text)), by: "stuck" };
        assert!(accused("3").is_only(3));
        assert!(!accused("3-4").is_only(3) && !accused("4").is_only(3) && !accused("").is_only(3));
        assert_eq!(accused("3-4,6").text(), "3,4,6 (stuck)");
    }
}
