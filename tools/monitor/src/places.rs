//! Which ranks run where, as the leaves say: so that a lost host can be named with its ranks.
//!
//! Owns what is known of each leaf's host, and the sentences about hosts without a leaf. Ranks of
//! hosts of which no leaf ever said anything are those that are left when all others are counted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sapwood::{RankSet, Values, ValuesRef};
use sapwood_hosts::absence::{by_reason, counted, named};
use sapwood_profile::Condition;
use sapwood_report::{FirstLost, HostRanks, Missing, Uninitialised};
use sapwood_topology::NodeSet;

use super::late_ranks::LateRanks;
use super::leaves::Leaves;
use super::started::StartedRank;

/// Ranks of one host that end within this time of each other end together. It is shorter than what
/// a launcher takes to end the others.
const TOGETHER_NS: u64 = 10_000_000;
/// Ends on two hosts within this time of each other are not put in an order: the leaves are asked
/// one after another, and on a busy host a leaf sees an end only when it gets a processor.
const UNORDERED_NS: u64 = 100_000_000;

/// What is said of one host, and of several.
pub(crate) type Verb = [&'static str; 2];
pub(crate) const NEVER_WATCHED: Verb = ["will not be watched", "will not be watched"];
pub(crate) const NOT_WATCHED: Verb = ["is not watched", "are not watched"];
pub(crate) const SILENT: Verb = ["does not answer", "do not answer"];
pub(crate) const ANSWERS: Verb = ["answers again", "answer again"];

/// Ranges of ranks that a question has, at most: of the others a leaf looks at more than it need.
const COME_RANGES_MAX: usize = 4096;

/// What leaves are asked: `%ud` the number of the question, `%aud` first and last of each range of
/// ranks that have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceQuestion {
    pub(crate) number: u32,
    /// As far as the front-end knows: also those of other leaves of a host.
    pub(crate) come: RankSet,
}

impl PlaceQuestion {
    pub(crate) fn encode(&self) -> Values {
        let ranges = self.come.as_ref().ranges().iter().take(COME_RANGES_MAX);
        let ends: Vec<u32> = ranges.flatten().copied().collect();
        Values::new().scalar(self.number).array(&ends)
    }

    /// None if these values are no such question.
    pub(crate) fn decode(values: ValuesRef<'_>) -> Option<Self> {
        let number = values.scalar(0).ok()?;
        Some(Self { number, come: rank_set(values.array(1).ok()?)? })
    }
}

/// The ranks of ranges, of which there are first and last; none if these are in no order.
fn rank_set(ends: &[u32]) -> Option<RankSet> {
    let mut ranks = RankSet::new();
    for pair in ends.chunks_exact(2) {
        if pair[0] > pair[1] {
            return None;
        }
        ranks.insert_range(pair[0], pair[1]);
    }
    Some(ranks)
}

/// What one leaf says of its host: `%ud` the number of the question, `%s` its own name for it,
/// `%aud` first and last of each range of ranks, `%aud` ranks that ended without a word, `%auld`
/// how long ago each did, in nanoseconds, `%as` a record of each rank that has not called
/// `MPI_Init`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) question: u32,
    pub(crate) host: String,
    pub(crate) ranks: RankSet,
    pub(crate) lost: Vec<(u32, u64)>,
    /// Ranks of the host that have not called `MPI_Init`.
    pub(crate) started: Vec<StartedRank>,
}

impl Place {
    pub(crate) fn encode(&self) -> Values {
        let ranges = self.ranks.as_ref().ranges();
        let ends: Vec<u32> = ranges.iter().flatten().copied().collect();
        let (lost, ages): (Vec<u32>, Vec<u64>) = self.lost.iter().copied().unzip();
        let head = Values::new().scalar(self.question);
        let head = head.string(&self.host).array(&ends).array(&lost).array(&ages);
        let started: Vec<Vec<u8>> = self.started.iter().map(StartedRank::encode).collect();
        head.strings(&started)
    }

    /// None if these values are no place.
    pub(crate) fn decode(values: ValuesRef<'_>) -> Option<Self> {
        let question = values.scalar(0).ok()?;
        let host = values.string(1).ok()?.to_owned();
        let ranks = rank_set(values.array(2).ok()?)?;
        let lost: &[u32] = values.array(3).ok()?;
        let ages: &[u64] = values.array(4).ok()?;
        let lost = lost.iter().copied().zip(ages.iter().copied()).collect();
        let started = values.strings(5).ok()?.map(StartedRank::decode);
        let started = started.collect::<Option<Vec<StartedRank>>>()?;
        Some(Self { question, host, ranks, lost, started })
    }
}

/// The process of a rank on a host.
fn uninitialised(host: &str, one: &StartedRank) -> Uninitialised {
    let name = Some(one.condition).filter(|&condition| condition != Condition::Lost);
    Uninitialised {
        rank: one.rank,
        pid: one.process,
        host: host.to_owned(),
        program: one.program.clone(),
        for_s: Duration::from_nanos(one.age_ns).as_secs_f64(),
        state: Uninitialised::state_of(name.map(Condition::name)),
        place: one.place.clone(),
        in_init_s: (one.inside_ns > 0).then(|| Duration::from_nanos(one.inside_ns).as_secs_f64()),
    }
}

/// What was asked of the leaves, and told of the answers.
#[derive(Debug, Default)]
pub(crate) struct PlacesAsked {
    /// The number of the latest question.
    pub(crate) number: u32,
    /// When that was.
    pub(crate) at: Option<Instant>,
    /// How many ranks had come then.
    pub(crate) ranks: u64,
    /// Which ranks before `MPI_Init` the user was told of.
    pub(crate) late: LateRanks,
}

/// The leaves' places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    by_leaf: BTreeMap<u32, RankSet>,
    /// Leaves that are not there, and why.
    absent: BTreeMap<u32, String>,
    /// How long ago ranks ended without a word, by leaf, as of the last question.
    lost: BTreeMap<u32, Vec<(u32, u64)>>,
    /// Ranks that had not called `MPI_Init` then, by leaf, with the host.
    started: BTreeMap<u32, (String, Vec<StartedRank>)>,
}

impl Places {
    /// A leaf names the ranks that it serves.
    pub(crate) fn set(&mut self, leaf: u32, place: Place) {
        self.by_leaf.insert(leaf, place.ranks);
        self.lost.insert(leaf, place.lost);
        self.started.insert(leaf, (place.host, place.started));
    }

    /// The ranks that ended before all others that ended without a word, if these are of one host.
    /// All leaves were asked at about the same time. Where a whole host is lost, it is the first.
    pub(crate) fn first_lost(&self, leaves: &Leaves) -> Option<FirstLost> {
        let all =
            || self.lost.iter().flat_map(|(leaf, lost)| lost.iter().map(move |it| (leaf, it)));
        let oldest = all().map(|(_, (_, age))| *age).max()?;
        let host = |leaf: u32| leaves.host(leaf).map(ToString::to_string);
        let (&leaf, _) = all().find(|(_, (_, age))| *age == oldest)?;
        let is_of_host = |other: u32| host(other) == host(leaf);
        let its =
            all().filter(|(other, (_, age))| is_of_host(**other) && oldest - age <= TOGETHER_NS);
        let ranks: RankSet = its.map(|(_, (rank, _))| *rank).collect();
        let others = all().filter(|(_, (rank, _))| !ranks.contains(*rank));
        let next = others.map(|(_, (_, age))| *age).max();
        let is_unordered =
            all().any(|(other, (_, age))| !is_of_host(*other) && oldest - age <= UNORDERED_NS);
        let is_whole_host_lost = self.absent.keys().any(|leaf| !self.ranks(*leaf).is_empty());
        if is_whole_host_lost || is_unordered {
            return None;
        }
        let before = next.map(|next| Duration::from_nanos(oldest - next));
        Some(FirstLost { ranks, host: host(leaf)?, before })
    }

    /// The ranks that have not called `MPI_Init`, each once, of those that are wanted.
    pub(crate) fn uninitialised(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<Uninitialised> {
        let mut all = BTreeMap::<u32, Uninitialised>::new();
        let present = self.started.iter().filter(|(leaf, _)| !self.is_absent(**leaf));
        for (host, one) in
            present.flat_map(|(_, (host, all))| all.iter().map(move |one| (host, one)))
        {
            // Another leaf of the host may know less.
            let is_known = all.contains_key(&one.rank);
            if is_wanted(one.rank) && (one.condition != Condition::Lost || !is_known) {
                all.insert(one.rank, uninitialised(host, one));
            }
        }
        all.into_values().collect()
    }

    /// A leaf did not start, or is lost.
    pub(crate) fn lose(&mut self, leaf: u32, reason: &str) {
        self.absent.entry(leaf).or_insert_with(|| reason.to_owned());
    }

    /// Whether a leaf is known to be lost.
    pub(crate) fn is_absent(&self, leaf: u32) -> bool {
        self.absent.contains_key(&leaf)
    }

    /// The ranks of a leaf, as far as it has told them.
    pub(crate) fn ranks(&self, leaf: u32) -> RankSet {
        self.by_leaf.get(&leaf).cloned().unwrap_or_default()
    }

    /// The ranks whose leaf has told of them.
    pub(crate) fn told(&self) -> RankSet {
        let mut told = RankSet::new();
        self.by_leaf.values().for_each(|ranks| told.union_with(ranks.as_ref()));
        told
    }

    /// The ranks of several leaves, as far as these have told them.
    pub(crate) fn ranks_of(&self, leaves: &RankSet) -> RankSet {
        let mut ranks = RankSet::new();
        leaves.iter().for_each(|leaf| ranks.union_with(self.ranks(leaf).as_ref()));
        ranks
    }

    /// The ranks and the hosts of these leaves.
    fn of(&self, leaves: &Leaves, lost: &RankSet) -> (RankSet, NodeSet) {
        let host = |leaf| leaves.host(leaf).map(ToString::to_string);
        (self.ranks_of(lost), lost.iter().filter_map(host).collect())
    }

    /// The ranks of leaves that are missing for one cause.
    pub(crate) fn missing(&self, leaves: &Leaves, lost: &RankSet, cause: &str) -> Missing {
        let (ranks, hosts) = self.of(leaves, lost);
        Missing { ranks, reason: format!("{}: {cause}", counted(&hosts)) }
    }

    /// What is said of the hosts of these leaves, with their number where no rank of theirs is
    /// known; nothing where none has a host.
    pub(crate) fn line(
        &self,
        leaves: &Leaves,
        lost: &RankSet,
        [one, several]: Verb,
        cause: &str,
    ) -> Option<String> {
        let (ranks, hosts) = self.of(leaves, lost);
        let verb = match hosts.len() {
            0 => return None,
            1 => one,
            _ => several,
        };
        Some(match (ranks.is_empty(), cause.is_empty()) {
            (true, true) => format!("{} {verb}", counted(&hosts)),
            (true, false) => format!("{} {verb}: {cause}", counted(&hosts)),
            (false, true) => format!("{} {verb}", named(&hosts)),
            (false, false) => format!("{} (ranks {ranks}) {verb}: {cause}", named(&hosts)),
        })
    }

    /// Why ranks may be missing that no leaf has told of; `world_size` are there in all.
    pub(crate) fn untold(&self, leaves: &Leaves, world_size: u32) -> Option<Missing> {
        if leaves.hosts().is_empty() || world_size == 0 {
            return None;
        }
        let is_untold = |leaf: u32| self.ranks(leaf).is_empty() && leaves.host(leaf).is_some();
        let untold = self.absent.iter().filter(|(leaf, _)| is_untold(**leaf));
        let untold = by_reason(untold.map(|(&leaf, reason)| (leaf, reason.as_str())), |leaf| {
            leaves.host_name(leaf)
        });
        let ranks = RankSet::range(0, world_size - 1);
        let line =
            |(lost, cause): &(RankSet, String)| format!("{}: {cause}", self.of(leaves, lost).1);
        let told: Vec<String> = untold.iter().map(line).collect();
        let reason = if told.is_empty() {
            let hosts: NodeSet = leaves.hosts().iter().map(ToString::to_string).collect();
            format!(
                "they are not watched: they run on none of the hosts {hosts}, or without the shim; \
                 name all hosts by --hosts"
            )
        } else {
            format!("they are not watched: no leaf on their host: {}", told.join("; "))
        };
        Some(Missing { ranks, reason })
    }

    /// Every host with its ranks.
    pub(crate) fn hosts(&self, leaves: &Leaves) -> Vec<HostRanks> {
        let mut hosts: Vec<HostRanks> = Vec::new();
        for (number, host) in leaves.hosts().iter().enumerate() {
            let first = u32::try_from(number).unwrap_or(u32::MAX).saturating_mul(leaves.per_host);
            let its = first..first.saturating_add(leaves.per_host);
            let mut ranks = RankSet::new();
            its.clone().for_each(|leaf| ranks.union_with(self.ranks(leaf).as_ref()));
            let reason = its.clone().find_map(|leaf| self.absent.get(&leaf).cloned());
            hosts.push(HostRanks { host: host.to_string(), ranks, reason });
        }
        hosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaves::Wishes;

    fn leaves(hosts: &str) -> Leaves {
        let hosts: sapwood::Hosts = hosts.parse().expect("hosts");
        let wishes = Wishes { fan_out: 8, ..Wishes::default() };
        Leaves::on_hosts(hosts.names(), None, 8, &wishes).expect("leaves")
    }

    fn ranks(text: &str) -> RankSet {
        text.parse().expect("a rank set")
    }

    fn place(of: &str, lost: &[(u32, u64)]) -> Place {
        Place { ranks: ranks(of), lost: lost.to_vec(), ..Place::default() }
    }

    #[test]
    fn the_first_ranks_that_were_lost_are_told_apart_if_they_are_of_one_host() {
        let leaves = leaves("a,b");
        let first = |one: &[(u32, u64)], other: &[(u32, u64)]| {
            let mut places = Places::default();
            places.set(0, place("0-1", one));
            places.set(1, place("2-3", other));
            places.first_lost(&leaves).map(|first| (first.ranks.to_string(), first.host))
        };
        let second = 1_000_000_000;
        let told = |ranks: &str, host: &str| Some((ranks.to_owned(), host.to_owned()));
        assert_eq!(first(&[(0, 5), (1, 6)], &[(2, second), (3, 7)]), told("2", "b"));
        assert_eq!(first(&[(0, 5)], &[(2, second), (3, second - 9)]), told("2-3", "b"));
        // The launcher ended rank 3 soon after.
        let after = second - 40_000_000;
        assert_eq!(first(&[(0, 5)], &[(2, second), (3, after)]), told("2", "b"));
        assert_eq!(first(&[(0, after)], &[(2, second), (3, 9)]), None, "which host is not known");
        assert_eq!(first(&[(0, 5)], &[(2, 7)]), None);
        assert_eq!(first(&[], &[]), None);
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let lost = vec![(3, 5), (7, 1)];
        let started = vec![
            StartedRank {
                rank: 5,
                process: 77,
                age_ns: 12,
                condition: Condition::Sleeping,
                program: "solver".into(),
                place: "nanosleep".into(),
                inside_ns: 9,
            },
            StartedRank { rank: 6, condition: Condition::Lost, ..StartedRank::default() },
        ];
        let place = Place { question: 4, host: "a".into(), ranks: ranks("0-3,7"), lost, started };
        assert_eq!(Place::decode(place.encode().as_ref()), Some(place));
        assert_eq!(Place::decode(Values::new().scalar(1_u32).as_ref()), None);
        let none: [u32; 0] = [];
        let head = Values::new().scalar(4_u32).string("a").array(&none).array(&none);
        let wrong = head.array(&[0_u64; 0]).strings(&["no record"]);
        assert_eq!(Place::decode(wrong.as_ref()), None);
    }

    #[test]
    fn a_question_has_the_ranks_that_have_come() {
        for come in ["", "0-3,7"] {
            let question = PlaceQuestion { number: 5, come: ranks(come) };
            assert_eq!(PlaceQuestion::decode(question.encode().as_ref()), Some(question));
        }
        let wrong = Values::new().scalar(5_u32).array(&[3_u32, 2]);
        assert_eq!(PlaceQuestion::decode(wrong.as_ref()), None);
        let come = (0..3 * 4096).step_by(2).collect();
        let question = PlaceQuestion { number: 5, come };
        let read = PlaceQuestion::decode(question.encode().as_ref()).expect("a question");
        assert_eq!(read.come.len(), COME_RANGES_MAX as u64, "the first of those");
    }

    #[test]
    fn a_rank_before_mpi_init_is_told_once_by_a_leaf_that_is_there() {
        let one = |rank, condition| StartedRank { rank, condition, ..StartedRank::default() };
        let told = |host: &str, started: Vec<StartedRank>| {
            let host = host.to_owned();
            Place { host, started, ..Place::default() }
        };
        let mut places = Places::default();
        places.set(0, told("a", vec![one(4, Condition::Stopped), one(5, Condition::Lost)]));
        places.set(1, told("a", vec![one(4, Condition::Lost), one(9, Condition::Computing)]));
        let seen = |places: &Places| -> Vec<(u32, String)> {
            let all = places.uninitialised(|rank| rank < 8);
            all.into_iter().map(|one| (one.rank, one.state)).collect()
        };
        let stopped = (4, "stopped".to_owned());
        assert_eq!(seen(&places), [stopped.clone(), (5, "dead".to_owned())]);
        places.lose(1, "gone");
        assert_eq!(seen(&places)[0], stopped);
        places.lose(0, "gone");
        assert_eq!(seen(&places), []);
    }

    #[test]
    fn hosts_that_are_lost_have_their_ranks_and_a_reason() {
        let mut places = Places::default();
        places.set(0, place("0-1", &[]));
        places.set(1, place("2-3", &[]));
        places.lose(1, "gone");
        let hosts = places.hosts(&leaves("a,b"));
        assert_eq!(hosts[1].host, "b");
        assert_eq!(hosts[1].ranks, ranks("2-3"));
        assert_eq!(hosts[1].reason.as_deref(), Some("gone"));
        assert_eq!(hosts[0].reason, None);
    }

    #[test]
    fn hosts_with_one_cause_are_one_line_and_one_entry() {
        let leaves = leaves("n1,n2,n3,n4");
        let mut places = Places::default();
        (0..4).for_each(|leaf| places.set(leaf, place(&format!("{leaf}"), &[])));
        let each = (0..3).map(|leaf| (leaf, format!("back-end {leaf} is gone: closed")));
        let lost = by_reason(each, |leaf| leaves.host_name(leaf));
        let lines: Vec<_> = lost
            .iter()
            .map(|(lost, cause)| places.line(&leaves, lost, NOT_WATCHED, cause).unwrap())
            .collect();
        assert_eq!(lines, ["hosts n[1-3] (ranks 0-2) are not watched: closed"]);
        let missing = places.missing(&leaves, &lost[0].0, &lost[0].1);
        assert_eq!(missing.reason, "hosts n[1-3] (3): closed");
        assert_eq!(missing.ranks, ranks("0-2"));
        let one = |lost| places.line(&leaves, &ranks(lost), SILENT, "late").unwrap();
        assert_eq!(one("3"), "host n4 (ranks 3) does not answer: late");
        let back = places.line(&leaves, &ranks("2-3"), ANSWERS, "");
        assert_eq!(back.unwrap(), "hosts n[3-4] answer again");
        assert_eq!(places.line(&leaves, &RankSet::new(), ANSWERS, ""), None);
        let unheard = |lost| Places::default().line(&leaves, &ranks(lost), NEVER_WATCHED, "late");
        assert_eq!(unheard("0-2").unwrap(), "hosts n[1-3] (3) will not be watched: late");
        assert_eq!(unheard("3").unwrap(), "host n4 will not be watched: late");
    }

    #[test]
    fn ranks_that_no_leaf_tells_of_are_on_hosts_without_one_or_on_unnamed_hosts() {
        let leaves = leaves("a,b,c");
        let mut places = Places::default();
        places.set(0, place("0-1", &[]));
        let reason = |places: &Places| places.untold(&leaves, 6).expect("several hosts").reason;
        assert!(reason(&places).contains("name all hosts by --hosts"));
        places.lose(1, "no route");
        places.lose(2, "no route");
        assert!(reason(&places).ends_with("b,c: no route"), "{}", reason(&places));
        assert!(places.untold(&leaves, 0).is_none());
    }
}
