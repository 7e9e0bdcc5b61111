//! Ranks whose processes were started and have not called `MPI_Init`, or not returned from it.

use sapwood_packet::{Rank, RankSet};
use serde::{Deserialize, Serialize};

use crate::{Missing, printable, quantity, ranks_text};

/// Ranks that are named one by one among those that are missing; the others are in `profile.json`.
const NAMED_MAX: usize = 16;
/// What is said of these others.
const MORE: &str = "they have not called MPI_Init; profile.json names their processes";

/// The state of a process that has ended.
const DEAD: &str = "dead";
/// That of one of which nothing is known.
const UNKNOWN: &str = "unknown";

/// The process of a rank before `MPI_Init`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uninitialised {
    /// The rank, as its launcher has told the process.
    pub rank: Rank,
    /// The number that the process has on its host.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// The name of its program.
    pub program: String,
    /// For how long it has run, or had when it was seen last, in seconds.
    pub for_s: f64,
    /// `computing`, `sleeping`, `stopped`, `dead` or `unknown`.
    pub state: String,
    /// The call of the system in which it sleeps; empty where that is not known.
    pub place: String,
    /// For how long it has been in `MPI_Init`, in seconds; none if it has not called that.
    pub in_init_s: Option<f64>,
}

/// Ranks that are in `MPI_Init`.
#[derive(Clone, Debug, PartialEq)]
pub struct InInit {
    /// These.
    pub ranks: RankSet,
    /// For how long the one has been there that has been longest, in seconds.
    pub longest_s: f64,
}

impl Uninitialised {
    /// The word for the state of a process by its name; that it has ended where there is none.
    #[must_use]
    pub fn state_of(name: Option<&str>) -> String {
        match name {
            None => DEAD.to_owned(),
            Some("") => UNKNOWN.to_owned(),
            Some(name) => name.to_owned(),
        }
    }

    /// Whether its process has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.state == DEAD
    }

    /// Whether it is in `MPI_Init`, where ranks wait for each other.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.in_init_s.is_some() && !self.is_dead()
    }

    /// Those that are in `MPI_Init`, and for how long the one that has been there longest.
    #[must_use]
    pub fn inside(all: &[Self]) -> Option<InInit> {
        let inside = || all.iter().filter(|one| one.is_inside());
        let longest_s = inside().filter_map(|one| one.in_init_s).reduce(f64::max)?;
        Some(InInit { ranks: inside().map(|one| one.rank).collect(), longest_s })
    }

    /// A line for people about these.
    #[must_use]
    pub fn inside_line(all: &[Self]) -> Option<String> {
        let InInit { ranks, longest_s } = Self::inside(all)?;
        let verb = if ranks.len() == 1 { "has" } else { "have" };
        let time = quantity::time(longest_s * 1e9);
        Some(format!("{} {verb} been in MPI_Init for {time}", ranks_text(&ranks.to_string())))
    }

    /// A line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { rank, pid, host, .. } = self;
        printable(&format!("rank {rank} (pid {pid} on host {host}) {}", self.doing()))
    }

    /// Why the rank is missing.
    fn missing(&self) -> Missing {
        let Self { rank, pid, host, .. } = self;
        let reason = format!("pid {pid} on host {host} {}", self.doing());
        Missing { ranks: RankSet::range(*rank, *rank), reason }
    }

    fn doing(&self) -> String {
        let time = quantity::time(self.for_s * 1e9);
        if self.is_dead() && self.in_init_s.is_some() {
            return format!("has ended in MPI_Init, after {time}");
        }
        if self.is_dead() {
            return format!(
                "has ended after {time}, and no MPI_Init was seen of it: it ended before, or ran \
                 without the shim"
            );
        }
        let place = match self.place.is_empty() {
            true => String::new(),
            false => format!(" in {}", self.place),
        };
        match self.state.as_str() {
            UNKNOWN => format!("has not called MPI_Init for {time}"),
            state => format!("has not called MPI_Init for {time}: {state}{place}"),
        }
    }

    /// Why ranks are missing of which these processes are known: the first ones one by one, and
    /// those that are in `MPI_Init` together.
    #[must_use]
    pub fn reasons(all: &[Self]) -> Vec<Missing> {
        let outside = || all.iter().filter(|one| !one.is_inside());
        let mut reasons: Vec<Missing> = outside().take(NAMED_MAX).map(Self::missing).collect();
        if let Some(InInit { ranks, longest_s }) = Self::inside(all) {
            let time = quantity::time(longest_s * 1e9);
            reasons.push(Missing { ranks, reason: format!("in MPI_Init for {time}") });
        }
        let ranks: RankSet = outside().skip(NAMED_MAX).map(|one| one.rank).collect();
        if !ranks.is_empty() {
            reasons.push(Missing { ranks, reason: MORE.to_owned() });
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(rank: Rank, state: &str, place: &str) -> Uninitialised {
        Uninitialised {
            rank,
            pid: 123,
            host: "h".into(),
            program: "solver".into(),
            for_s: 12.0,
            state: Uninitialised::state_of(Some(state).filter(|&state| state != "lost")),
            place: place.into(),
            in_init_s: None,
        }
    }

    #[test]
    fn a_rank_is_told_with_its_process_and_what_that_does() {
        let line = process(3, "sleeping", "nanosleep").line();
        let begin = "rank 3 (pid 123 on host h) has not called MPI_Init for 12";
        assert!(line.starts_with(begin) && line.ends_with(": sleeping in nanosleep"), "{line}");
        let line = process(3, "stopped", "").line();
        assert!(line.starts_with(begin) && line.ends_with(": stopped"), "{line}");
        assert!(process(3, "", "").line().starts_with(begin));
        assert!(process(3, "lost", "").is_dead());
        let line = process(3, "lost", "").line();
        assert!(line.contains(" has ended after 12") && line.contains("no MPI_Init was seen"));
    }

    #[test]
    fn the_first_ones_are_named_one_by_one_and_the_others_together() {
        let all: Vec<_> = (0..20).map(|rank| process(rank, "computing", "")).collect();
        let reasons = Uninitialised::reasons(&all);
        assert_eq!(reasons.len(), NAMED_MAX + 1);
        assert_eq!(reasons[3].ranks.to_string(), "3");
        assert!(reasons[3].reason.starts_with("pid 123 on host h has not called MPI_Init"));
        let last = &reasons[NAMED_MAX];
        assert_eq!((last.ranks.to_string().as_str(), last.reason.as_str()), ("16-19", MORE));
        assert_eq!(Uninitialised::reasons(&[]), []);
    }

    #[test]
    fn ranks_in_mpi_init_wait_there_for_the_others_and_are_told_together() {
        let inside = |rank, seconds| Uninitialised {
            in_init_s: Some(seconds),
            ..process(rank, "sleeping", "")
        };
        let all = [inside(0, 3.0), inside(1, 4.0), process(2, "stopped", ""), inside(3, 1.0)];
        let reasons = Uninitialised::reasons(&all);
        let ranks: Vec<String> = reasons.iter().map(|one| one.ranks.to_string()).collect();
        assert_eq!(ranks, ["2", "0-1,3"]);
        assert!(reasons[1].reason.starts_with("in MPI_Init for 4"), "{reasons:?}");
        let line = Uninitialised::inside_line(&all).expect("three are inside");
        assert!(line.starts_with("ranks 0-1,3 have been in MPI_Init for 4"), "{line}");
        assert_eq!(Uninitialised::inside_line(&all[2..3]), None);
        let dead = Uninitialised { in_init_s: Some(1.0), ..process(3, "lost", "") };
        assert!(dead.line().contains(" has ended in MPI_Init, after 12"), "{}", dead.line());
    }
}
