//! Tallies of call sites, peers and communicators, which are asked for once at the end.

use sapwood::{Error, FIRST_TAG, Tag, Values, ValuesRef};
use sapwood_profile::{RankProfile, RankRows, Round, TallyKind};

use sapwood_report::{Peers, Tallies};

use super::symbols::Symbols;
use super::tables::Tables;

/// Asks for what the ranks have tallied: the same values and `%uc` a [`TallyKind`]. The answer is a
/// [`sapwood_profile::Round`] whose events are the tallies.
pub(crate) const TALLIES: Tag = FIRST_TAG + 6;
/// The same rank by rank, as [`sapwood_profile::RankRows`].
pub(crate) const TALLY_ROWS: Tag = FIRST_TAG + 7;

/// The variable that tells ranks what to tally.
pub(crate) const VARIABLE: &str = "SAPWOOD_MPI_EXTRAS";

/// What is tallied beside the events.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Extras {
    /// Count MPI calls by call site: file and line in the program.
    #[arg(long)]
    pub(crate) call_sites: bool,
    /// Count messages and bytes from each host to each host.
    #[arg(long)]
    pub(crate) peers: bool,
    /// Measure the time in MPI by communicator.
    #[arg(long)]
    pub(crate) communicators: bool,
}

impl Extras {
    /// The words that the shim reads.
    pub(crate) fn words(self) -> String {
        let all = [
            (self.call_sites, "call-sites"),
            (self.peers, "peers"),
            (self.communicators, "communicators"),
        ];
        let words = all.into_iter().filter(|(is_asked, _)| *is_asked).map(|(_, word)| word);
        words.collect::<Vec<_>>().join(",")
    }
}

/// What the leaves have answered, as far as it was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) call_sites: Option<Round>,
    pub(crate) communicators: Option<Round>,
    pub(crate) peers: Option<RankRows>,
}

impl Answers {
    /// The same for the report, with the source lines of call sites, and peers as hosts by the rows
    /// of the ranks.
    pub(crate) fn told(&self, rows: &RankRows) -> Tallies {
        let mut symbols = Symbols::default();
        let nowhere = |_: &str, _| String::new();
        let sites = self.call_sites.as_ref();
        let communicators = self.communicators.as_ref();
        let dropped = sites.or(communicators).map_or_else(
            || self.peers.iter().flat_map(RankRows::profiles).map(|one| one.dropped).sum(),
            Round::dropped,
        );
        Tallies {
            call_sites: sites
                .map(|sites| Tallies::calls(sites, |file, address| symbols.place(file, address))),
            communicators: communicators.map(|round| Tallies::calls(round, nowhere)),
            peers: self.peers.as_ref().map(|peers| Peers::of(peers, rows)),
            dropped,
        }
    }
}

/// The values of a question: those of a round, and the kind.
pub(crate) fn question(question: Values, kind: TallyKind) -> Values {
    question.scalar(kind as u8)
}

/// A leaf's answer.
pub(crate) fn answer(
    tables: &Tables,
    tag: Tag,
    world_size: u32,
    values: ValuesRef<'_>,
) -> Result<Values, Error> {
    let kind = TallyKind::from_code(values.scalar::<u8>(3)?);
    let mut profiles = kind.map_or_else(Vec::new, |kind| tables.tallies(kind));
    profiles.retain(|profile| world_size == 0 || profile.world_size == world_size);
    if tag == TALLIES {
        return Ok(round(world_size, &profiles).encode());
    }
    Ok(RankRows::new(profiles).unwrap_or_default().encode())
}

fn round(world_size: u32, profiles: &[RankProfile]) -> Round {
    let mut round = Round::new(world_size);
    for profile in profiles {
        // What does not fit is missing from the answer, as other ranks are.
        let _ = round.add(profile);
    }
    round
}
