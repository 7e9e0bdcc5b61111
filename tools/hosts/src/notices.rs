//! What processes of a tree have noticed that costs no answer: lines on standard error.
//!
//! Owns how notices of several hosts that have one cause become one line. A clock of the front-end
//! that is wrong would otherwise be told once for each host.

use sapwood::{Event, RankSet};
use sapwood_command_line::exit::complain;
use sapwood_topology::NodeSet;

use crate::cause::without_name;

/// Stands between the cause and what is done about it, in the words of the launcher.
const MOVED: (&str, &str) = ("; communication process ", " is started ");

/// Notices that came together, in their order.
#[derive(Default)]
pub struct Notices {
    told: Vec<Told>,
}

impl Notices {
    /// Keeps what is told if the event is a notice.
    pub fn take(&mut self, event: &Event) {
        if let Event::Notice { text, .. } = event {
            self.add(text);
        }
    }

    /// Tells all that was kept.
    pub fn tell(&mut self) {
        for told in std::mem::take(&mut self.told) {
            complain(told.line());
        }
    }

    fn add(&mut self, text: &str) {
        let told = Told::of(text);
        let same = self.told.iter_mut().find(|other| other.is_like(&told));
        match same {
            Some(same) => same.join(told),
            None => self.told.push(told),
        }
    }
}

/// A notice, or several with one cause.
struct Told {
    /// The first one, word for word.
    first: String,
    /// How many others have joined it.
    joined: usize,
    hosts: NodeSet,
    /// The words of the cause, without numbers.
    words: Vec<String>,
    /// In place of each number the least and the largest of all.
    numbers: Vec<(u64, u64)>,
    /// Communication processes that are started elsewhere.
    moved: RankSet,
    /// Where; none where no other host is named.
    places: NodeSet,
}

impl Told {
    fn of(text: &str) -> Self {
        let mut told = Self {
            first: text.to_owned(),
            joined: 0,
            hosts: NodeSet::default(),
            words: vec![text.to_owned()],
            numbers: Vec::new(),
            moved: RankSet::new(),
            places: NodeSet::default(),
        };
        let named = text.strip_prefix("host ").and_then(|rest| rest.split_once(": "));
        let Some((host, _)) = named else { return told };
        told.hosts = one(host);
        let (reason, moved) = text.rsplit_once(MOVED.0).unwrap_or((text, ""));
        if let Some((rank, place)) = moved.split_once(MOVED.1) {
            told.moved = rank.parse().unwrap_or_default();
            told.places = place.strip_prefix("on ").map(one).unwrap_or_default();
        }
        let cause = without_name(reason, host);
        let number = |word: &str| word.parse::<u64>().ok();
        told.numbers = cause.split(' ').filter_map(number).map(|it| (it, it)).collect();
        let words = cause.split(' ').map(|word| if number(word).is_some() { "" } else { word });
        told.words = words.map(str::to_owned).collect();
        told
    }

    fn is_like(&self, other: &Self) -> bool {
        let kind = |told: &Self| (told.hosts.is_empty(), told.moved.is_empty());
        let has_place = |told: &Self| !told.places.is_empty();
        self.words == other.words
            && kind(self) == kind(other)
            && has_place(self) == has_place(other)
    }

    fn join(&mut self, other: Self) {
        self.joined += 1;
        self.hosts = self.hosts.union(&other.hosts);
        self.places = self.places.union(&other.places);
        self.moved.union_with(other.moved.as_ref());
        for (range, more) in self.numbers.iter_mut().zip(other.numbers) {
            *range = (range.0.min(more.0), range.1.max(more.1));
        }
    }

    fn line(self) -> String {
        let is_repeated = self.hosts.len() < 2 && self.moved.len() < 2;
        if self.joined == 0 || is_repeated {
            return self.first;
        }
        let mut numbers = self.numbers.iter();
        let words = self.words.iter().map(|word| match (word.as_str(), numbers.len()) {
            ("", 1..) => match numbers.next() {
                Some((least, most)) if least != most => format!("{least} to {most}"),
                number => number.map(|number| number.0.to_string()).unwrap_or_default(),
            },
            (word, _) => word.to_owned(),
        });
        let cause = words.collect::<Vec<_>>().join(" ");
        let mut line = format!("hosts {} ({}): {cause}", self.hosts, self.hosts.len());
        if !self.moved.is_empty() {
            let place = match self.places.is_empty() {
                true => "here".to_owned(),
                false => format!("on {}", self.places),
            };
            line += &format!("; communication processes {} are started {place}", self.moved);
        }
        line
    }
}

fn one(host: &str) -> NodeSet {
    std::iter::once(host.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        let mut notices = Notices::default();
        texts.iter().for_each(|text| notices.add(text));
        notices.told.into_iter().map(Told::line).collect()
    }

    #[test]
    fn notices_with_one_cause_are_one_line() {
        let told = lines(&[
            "host n1: its clock is 12 s ahead of ours",
            "host n2: its clock is 3 s behind ours",
            "host n3: its clock is 13 s ahead of ours",
            "host n2: its clock is 3 s behind ours",
        ]);
        let expected = [
            "hosts n[1,3] (2): its clock is 12 to 13 s ahead of ours",
            "host n2: its clock is 3 s behind ours",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn hosts_that_hold_no_communication_process_are_one_line() {
        let moved = |host: u32, rank: u32, place: &str| {
            let reason = format!("ssh: connect to host n{host} port 22: No route to host");
            format!("host n{host}: {reason}; communication process {rank} is started {place}")
        };
        let texts = [moved(1, 101, "on n4"), moved(2, 102, "on n5"), moved(3, 103, "here")];
        let told = lines(&texts.each_ref().map(String::as_str));
        let expected = [
            "hosts n[1-2] (2): ssh: connect to port 22: No route to host; communication processes \
             101-102 are started on n[4-5]",
            &texts[2],
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_notice_of_no_host_stays_as_it_is() {
        assert_eq!(lines(&["a  line of 3 words", "host"]), ["a  line of 3 words", "host"]);
    }
}
