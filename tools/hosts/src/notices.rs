//! What processes of a tree have noticed that costs no answer: lines on standard error.
//!
//! Owns how notices of several hosts that have one cause become one line. A clock of the front-end
//! that is wrong would otherwise be told once for each host. Which words tell hosts apart is
//! `absence`'s.

use std::collections::{BTreeMap, BTreeSet};

use sapwood::{Event, Rank, RankSet};
use sapwood_command_line::exit::complain;
use sapwood_topology::NodeSet;

use crate::absence::{by_reason, counted};

/// What the launcher does about a host that takes no communication process stands behind the cause:
/// `; communication process 101 is started on n4`, or `here`.
const BEFORE_RANK: &str = "; communication process ";
const BEFORE_PLACE: &str = " is started ";
const BEFORE_HOST: &str = "on ";
const HERE: &str = "here";

/// Notices that came together, in their order.
#[derive(Default)]
pub struct Notices {
    told: Vec<String>,
}

impl Notices {
    /// Keeps what is told if the event is a notice.
    pub fn take(&mut self, event: &Event) {
        if let Event::Notice { text, .. } = event {
            self.told.push(text.clone());
        }
    }

    /// Tells all that was kept.
    pub fn tell(&mut self) {
        for line in lines(&std::mem::take(&mut self.told)) {
            complain(line);
        }
    }
}

/// A notice, in its parts.
struct Notice<'a> {
    text: &'a str,
    /// Empty where it is of no host.
    host: &'a str,
    /// What is wrong with the host, behind its name.
    reason: &'a str,
    moved: Option<Moved<'a>>,
}

/// A communication process that is started elsewhere.
struct Moved<'a> {
    rank: Rank,
    /// Where; none where no other host is named.
    host: Option<&'a str>,
}

impl<'a> Notice<'a> {
    fn of(text: &'a str) -> Self {
        let named = text.strip_prefix("host ").and_then(|rest| rest.split_once(": "));
        let host = named.map_or("", |(host, _)| host);
        match Moved::behind(text) {
            Some((reason, moved)) => Self { text, host, reason, moved: Some(moved) },
            None => Self { text, host, reason: text, moved: None },
        }
    }
}

impl<'a> Moved<'a> {
    /// The end of a text, with what stands before it.
    fn behind(text: &'a str) -> Option<(&'a str, Self)> {
        let (reason, done) = text.rsplit_once(BEFORE_RANK)?;
        let (rank, place) = done.split_once(BEFORE_PLACE)?;
        let host = match place {
            HERE => None,
            _ => Some(place.strip_prefix(BEFORE_HOST)?),
        };
        Some((reason, Self { rank: rank.parse().ok()?, host }))
    }
}

/// Notices with one cause.
struct Cause {
    /// The numbers of the notices, in their order.
    notices: RankSet,
    /// The words of the cause, with nothing in the place of each number.
    words: Vec<String>,
    numbers: Vec<Span>,
}

/// The least and the largest number at one place of a cause.
#[derive(Clone, Copy)]
struct Span {
    least: u64,
    most: u64,
}

impl Cause {
    fn of(notices: RankSet, text: &str) -> Self {
        let number = |word: &str| word.parse::<u64>().ok();
        let words = text.split_whitespace();
        let numbers = words.clone().filter_map(number);
        Self {
            notices,
            numbers: numbers.map(|number| Span { least: number, most: number }).collect(),
            words: words.map(|word| number(word).map_or(word, |_| "").to_owned()).collect(),
        }
    }

    fn join(&mut self, other: &Self) {
        self.notices.union_with(other.notices.as_ref());
        for (span, more) in self.numbers.iter_mut().zip(&other.numbers) {
            span.least = span.least.min(more.least);
            span.most = span.most.max(more.most);
        }
    }

    fn text(&self) -> String {
        let mut numbers = self.numbers.iter();
        let words = self.words.iter().map(|word| match word.is_empty() {
            true => numbers.next().map(Span::text).unwrap_or_default(),
            false => word.clone(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The line of these notices. `places` is where each communication process was started last: a
    /// host that an earlier notice names may have failed since.
    fn line(&self, notices: &[Notice<'_>], places: &BTreeMap<Rank, Option<&str>>) -> String {
        let own = || self.notices.iter().map(move |number| &notices[number as usize]);
        if let (Some(only), None) = (own().next(), own().nth(1)) {
            return only.text.to_owned();
        }
        let hosts: NodeSet = own().map(|notice| notice.host.to_owned()).collect();
        let moved: RankSet = own().filter_map(|notice| Some(notice.moved.as_ref()?.rank)).collect();
        let place = |rank: Rank| places.get(&rank).copied().flatten();
        let elsewhere: NodeSet = moved.iter().filter_map(place).map(str::to_owned).collect();
        let is_elsewhere = |rank: &Rank| place(*rank).is_some();
        let (away, here): (Vec<Rank>, Vec<Rank>) = moved.iter().partition(is_elsewhere);
        let elsewhere = started(&away.into_iter().collect(), &format!("{BEFORE_HOST}{elsewhere}"));
        let here = started(&here.into_iter().collect(), HERE);
        format!("{}: {}{elsewhere}{here}", counted(&hosts), self.text())
    }
}

impl Span {
    fn text(&self) -> String {
        match self.least == self.most {
            true => self.least.to_string(),
            false => format!("{} to {}", self.least, self.most),
        }
    }
}

/// Where communication processes are started; nothing where there are none.
fn started(ranks: &RankSet, place: &str) -> String {
    match ranks.len() {
        0 => String::new(),
        1 => format!("{BEFORE_RANK}{ranks}{BEFORE_PLACE}{place}"),
        _ => format!("; communication processes {ranks} are started {place}"),
    }
}

/// A line for each cause, and for each notice of no host, in the order of the first of each.
fn lines(told: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let each = told.iter().map(String::as_str).filter(|text| seen.insert(*text));
    let notices: Vec<Notice<'_>> = each.map(Notice::of).collect();
    let mut places = BTreeMap::new();
    for moved in notices.iter().filter_map(|notice| notice.moved.as_ref()) {
        places.insert(moved.rank, moved.host);
    }
    let mut lines: BTreeMap<u32, String> = BTreeMap::new();
    let (of_hosts, others): (Vec<_>, Vec<_>) =
        (0..).zip(&notices).partition(|(_, notice)| !notice.host.is_empty());
    lines.extend(others.into_iter().map(|(number, notice)| (number, notice.text.to_owned())));
    let each = of_hosts.iter().map(|(number, notice)| (*number, notice.reason));
    let mut causes: Vec<Cause> = Vec::new();
    for (numbers, text) in by_reason(each, |number| notices[number as usize].host.to_owned()) {
        let cause = Cause::of(numbers, &text);
        match causes.iter_mut().find(|other| other.words == cause.words) {
            Some(other) => other.join(&cause),
            None => causes.push(cause),
        }
    }
    for cause in causes {
        let first = cause.notices.as_ref().first().unwrap_or_default();
        lines.insert(first, cause.line(&notices, &places));
    }
    lines.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(texts: &[&str]) -> Vec<String> {
        lines(&texts.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn moved(host: u32, rank: u32, place: &str) -> String {
        let reason = format!("ssh: connect to host n{host} port 22: No route to host");
        format!("host n{host}: {reason}{BEFORE_RANK}{rank}{BEFORE_PLACE}{place}")
    }

    const NO_ROUTE: &str = "ssh: connect to port 22: No route to host";

    #[test]
    fn notices_with_one_cause_are_one_line() {
        let told = told(&[
            "host n1: its clock is 12 s ahead of its parent's",
            "host n2: its clock is 3 s behind its parent's",
            "host n3: its clock is 13 s ahead of its parent's",
            "host n2: its clock is 3 s behind its parent's",
        ]);
        let expected = [
            "hosts n[1,3] (2): its clock is 12 to 13 s ahead of its parent's",
            "host n2: its clock is 3 s behind its parent's",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn hosts_that_hold_no_communication_process_are_one_line() {
        let texts = [moved(1, 101, "on n4"), moved(2, 102, "on n5"), moved(3, 103, HERE)];
        let expected = format!(
            "hosts n[1-3] (3): {NO_ROUTE}; communication processes 101-102 are started on n[4-5]; \
             communication process 103 is started here"
        );
        assert_eq!(lines(&texts), [expected]);
        assert_eq!(lines(&texts[2..]), texts[2..], "a notice alone stays as it is");
    }

    #[test]
    fn a_communication_process_is_where_it_was_started_last() {
        let expected =
            format!("hosts n[1-2] (2): {NO_ROUTE}; communication process 101 is started on n3");
        assert_eq!(lines(&[moved(1, 101, "on n2"), moved(2, 101, "on n3")]), [expected]);
        let expected =
            format!("host n1: {NO_ROUTE}; communication processes 101-102 are started on n[3-4]");
        assert_eq!(lines(&[moved(1, 101, "on n3"), moved(1, 102, "on n4")]), [expected]);
    }

    #[test]
    fn addresses_of_their_own_do_not_tell_hosts_apart() {
        let closed = |host: u32, address: u32| {
            format!("host n{host}: Connection closed by 10.0.0.{address} port 22")
        };
        let expected = "hosts n[1-2] (2): Connection closed by the host's port 22";
        assert_eq!(lines(&[closed(1, 1), closed(2, 2)]), [expected]);
        let expected = "hosts n[1-2] (2): Connection closed by 10.0.0.9 port 22";
        assert_eq!(lines(&[closed(1, 9), closed(2, 9)]), [expected]);
    }

    #[test]
    fn a_notice_of_no_host_stays_as_it_is() {
        let texts = ["a  line of 3 words", "host", "a  line of 4 words"];
        assert_eq!(told(&texts), texts);
    }
}
