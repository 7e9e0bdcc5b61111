//! Which ranks wait for which at one moment: ranks that have been in one call for long, by the
//! place where they are, and those that have to come or to act before they can go on.
//!
//! A collective is a place with a number: of two processes that wait in number 41 of a
//! communicator, one that has made 40 there and is not inside has not entered. That a process is
//! inside with another function or root, or has been, is the other way of not taking part.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

use crate::instance::Pattern;
use crate::open::{Members, OpenMessages};
use crate::standing::{
    CallKind, ENDING, FILES, Posture, Presence, Seat, Side, Standing, Standpoint, WINDOWS,
};

/// Collectives of which the absent members are kept, at most: each may have as many as there are
/// ranks.
const KEPT_MAX: usize = 1 << 10;

/// Where ranks wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The communicator, or what stands for it; 0 for none.
    pub space: u64,
    /// The number of the collective there; 0 for none.
    pub number: u32,
    /// The function that has not returned.
    pub function: u32,
    /// The function that has started what it waits for, if that is another one; else 0.
    pub behind: u32,
    /// What kind of call it is.
    pub kind: CallKind,
    /// Root, source or destination.
    pub side: Side,
    /// The tag of a message.
    pub tag: Option<i32>,
}

impl Place {
    /// What a member has to call here: function and root.
    pub(crate) const fn operation(&self) -> Operation {
        let function = if self.behind == 0 { self.function } else { self.behind };
        let root = match self.side {
            Side::Rank(root) => Some(root),
            Side::None | Side::Any => None,
        };
        Operation { function, root }
    }
}

/// A collective as a process calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operation {
    /// The function.
    pub function: u32,
    /// The root that it gives.
    pub root: Option<Rank>,
}

/// Ranks that wait alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Where.
    pub place: Place,
    /// These.
    pub ranks: RankSet,
    /// Those for which they wait; none where that is not known or none is missing.
    pub targets: RankSet,
    /// Those for which they may wait, too: the destinations of exchanges, which end when both their
    /// messages have been taken, those that a collective of neighbours lacks, and the senders of
    /// several messages. Which of the two messages has been taken, which of these are neighbours,
    /// and which messages have come, is not known.
    pub also: RankSet,
    /// The messages, where they wait for several.
    pub open: Option<OpenMessages>,
    /// Whether one of the targets is enough.
    pub is_any: bool,
    /// Whether it is known for which ranks they wait.
    pub is_known: bool,
    /// How long the one has waited that came first, in nanoseconds.
    pub longest_ns: u64,
    /// How long the one has waited that came last.
    pub shortest_ns: u64,
}

/// What a process has to do with one number of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turnout {
    /// It is inside, by the same function with the same root.
    Inside,
    /// It has been there.
    Passed,
    /// It is inside, or was, with another function or root.
    Differs(Operation),
    /// It has not come.
    Absent,
    /// It may have started it: it does not know its number, and has started collectives there.
    Unknown,
}

/// How far a process is on a communicator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) made: u32,
    pub(crate) inside: Option<Operation>,
    last: Option<Operation>,
    pub(crate) is_number_lost: bool,
    is_last_started: bool,
}

impl Progress {
    pub(crate) fn of(standing: &Standing, space: u64, rank: Rank) -> Self {
        let posture = standing.postures.get(&rank).copied().unwrap_or_default();
        let call = posture.call.filter(|call| space_of(call) == space && is_joint(call.kind));
        let inside = call.map(|call| Place { side: call.side, ..place_in(&call) }.operation());
        let shared = |kind| u32::try_from(standing.shared_calls(rank, kind)).unwrap_or(u32::MAX);
        match space {
            FILES => Self { made: shared(CallKind::File), inside, ..Self::default() },
            WINDOWS => Self { made: shared(CallKind::Window), inside, ..Self::default() },
            ENDING => {
                let is_inside = posture.presence == Presence::Finalizing;
                let made = u32::from(posture.presence == Presence::Ended);
                let function = posture.call.map_or(0, |call| call.function);
                let inside = is_inside.then_some(Operation { function, root: None });
                Self { made, inside, ..Self::default() }
            }
            _ => {
                let Some(seat) = standing.seats.get(&(space, rank)) else { return Self::default() };
                let (function, root) = (seat.last_function, seat.last_root);
                Self {
                    made: seat.made,
                    inside,
                    last: (function != 0).then_some(Operation { function, root }),
                    is_number_lost: seat.is_number_lost,
                    is_last_started: seat.is_last_started,
                }
            }
        }
    }

    fn is_next(&self, number: u32) -> bool {
        self.made.checked_add(1) == Some(number)
    }

    /// With which operation it is in a number, or was, if that is known.
    pub(crate) fn operation(&self, number: u32) -> Option<Operation> {
        if self.is_number_lost {
            return self.inside;
        }
        let inside = self.inside.filter(|_| self.is_next(number));
        inside.or(self.last.filter(|_| self.made == number))
    }

    /// Its part in a number that others call like this.
    pub(crate) fn part(&self, number: u32, operation: Operation) -> Turnout {
        let compared = |one: Operation, same| {
            if one.differs(&operation) { Turnout::Differs(one) } else { same }
        };
        match (self.inside, self.last) {
            (Some(inside), _) if self.is_number_lost || self.is_next(number) => {
                compared(inside, Turnout::Inside)
            }
            _ if self.is_number_lost && self.is_last_started => Turnout::Unknown,
            _ if self.is_number_lost => Turnout::Absent,
            (_, Some(last)) if self.made == number => compared(last, Turnout::Passed),
            _ if self.made >= number => Turnout::Passed,
            _ => Turnout::Absent,
        }
    }
}

impl Operation {
    /// Whether two processes that call these do not meet.
    fn differs(&self, other: &Self) -> bool {
        let roots = (self.root, other.root);
        self.function != other.function || matches!(roots, (Some(one), Some(two)) if one != two)
    }
}

/// The communicator of a call, or what stands for it.
fn space_of(call: &Standpoint) -> u64 {
    match call.kind {
        CallKind::File => FILES,
        CallKind::Window => WINDOWS,
        _ => call.space,
    }
}

/// Whether all processes of something have to make a call of this kind together.
pub(crate) const fn is_joint(kind: CallKind) -> bool {
    matches!(kind, CallKind::Collective | CallKind::Creation | CallKind::File | CallKind::Window)
}

/// The place of a call, without a number.
fn place_in(call: &Standpoint) -> Place {
    let Standpoint { function, kind, side, .. } = *call;
    // That of a collective is what this rank gives, in which others may differ that wait alike.
    let tag = call.tag.filter(|_| !is_joint(kind) && !call.is_collective());
    Place { space: space_of(call), number: 0, function, behind: 0, kind, side, tag }
}

/// Whether a rank waits: in a call that has lasted this long, of a process that lives.
pub(crate) fn waits(posture: &Posture, long_ns: u64) -> bool {
    let is_there = matches!(
        posture.presence,
        Presence::Running | Presence::Computing | Presence::Sleeping | Presence::Finalizing
    );
    let kind = posture.only_call().map(|call| call.kind);
    is_there && posture.for_ns >= long_ns && kind.is_some_and(|kind| kind != CallKind::Poll)
}

/// All ranks that wait, by place.
pub(crate) fn waiting(standing: &Standing, long_ns: u64) -> Vec<Waiting> {
    let mut groups: BTreeMap<(Place, RankKey, RankKey), Waiting> = BTreeMap::new();
    let ends_early = ends_early(standing);
    let mut attendance = Attendance::new(standing);
    for (&rank, posture) in &standing.postures {
        let call = posture.call.filter(|_| waits(posture, long_ns));
        if call.is_some() && posture.presence == Presence::Finalizing && ends_early {
            // It waits for the others, and it is what these wait for.
            continue;
        }
        let found = match call {
            Some(call) => Some(look(&mut attendance, rank, posture, &call)),
            None => polls(&mut attendance, rank, posture),
        };
        let Some(one) = found else { continue };
        // For how long a rank has made tests is not known.
        let for_ns = call.map_or(0, |_| posture.for_ns);
        let ranges = |ranks: &RankSet| ranks.as_ref().ranges().to_vec();
        let key = (one.place, ranges(&one.targets), ranges(&one.also));
        let open = one.open.clone();
        let group = groups.entry(key).or_insert_with(|| Waiting {
            ranks: RankSet::new(),
            shortest_ns: u64::MAX,
            ..one
        });
        if let (Some(all), Some(own)) = (&mut group.open, open) {
            all.merge(own);
        }
        group.ranks.insert(rank);
        group.longest_ns = group.longest_ns.max(for_ns);
        group.shortest_ns = group.shortest_ns.min(for_ns);
    }
    groups.into_values().collect()
}

type RankKey = Vec<sapwood_packet::RankRange>;

/// Where a rank waits that makes nothing but tests: for a collective that it has started and that
/// another member has not.
fn polls(attendance: &mut Attendance<'_>, rank: Rank, posture: &Posture) -> Option<Waiting> {
    let is_there =
        matches!(posture.presence, Presence::Running | Presence::Computing | Presence::Sleeping);
    if !is_there || !posture.is_polling {
        return None;
    }
    let pending = attendance.unanswered(rank, |seat| seat.is_last_started)?;
    let place = Place { function: posture.polled, kind: CallKind::Wait, ..pending };
    let targets = attendance.absent(rank, &place, Pattern::All);
    let is_known = is_answered(attendance.standing, &place, &targets);
    Some(Waiting { place, targets, is_known, ..Waiting::default() })
}

/// Whether those in `MPI_Finalize` are the few that have left the others.
pub(crate) fn ends_early(standing: &Standing) -> bool {
    let unread = standing.unread();
    2 * (ending(standing) + unread) <= standing.postures.len() + unread
}

/// Whether they are most ranks. Where files are missing it may be known of neither.
fn have_most_ended(standing: &Standing) -> bool {
    2 * ending(standing) > standing.postures.len() + standing.unread()
}

/// Ranks in `MPI_Finalize`, or behind it.
fn ending(standing: &Standing) -> usize {
    let is_ending =
        |posture: &&Posture| matches!(posture.presence, Presence::Finalizing | Presence::Ended);
    standing.postures.values().filter(is_ending).count()
}

/// The ranks for which a rank waits in a call that all members make, and the number of that call.
fn joint(
    attendance: &mut Attendance<'_>,
    rank: Rank,
    call: &Standpoint,
    place: &mut Place,
    one: &mut Waiting,
) {
    let standing = attendance.standing;
    let progress = Progress::of(standing, place.space, rank);
    if progress.is_number_lost || is_for_others(standing, rank, place) {
        one.is_known = false;
        return;
    }
    place.number = progress.made.saturating_add(1);
    let missing = attendance.absent(rank, place, call.pattern);
    if call.pattern == Pattern::Unknown {
        one.also = missing;
        one.is_known = false;
        return;
    }
    one.targets = of_window(standing, rank, call, missing);
    let is_whole = is_whole(standing, place) && is_window_whole(standing, call);
    let is_open = call.space == 0 && one.targets.is_empty() && attendance.has_outsiders(place);
    one.is_known = is_whole && !is_open;
}

/// Where a rank waits, and for which ranks.
fn look(
    attendance: &mut Attendance<'_>,
    rank: Rank,
    posture: &Posture,
    call: &Standpoint,
) -> Waiting {
    let standing = attendance.standing;
    let mut place = place_in(call);
    let mut one = Waiting { is_known: true, ..Waiting::default() };
    if posture.presence == Presence::Finalizing {
        place.space = ENDING;
        place.number = 1;
        if !have_most_ended(standing) {
            one.is_known = false;
            return Waiting { place, ..one };
        }
        one.targets = standing
            .postures
            .keys()
            .copied()
            .filter(|&other| {
                Progress::of(standing, ENDING, other).part(1, place.operation()) == Turnout::Absent
            })
            .collect();
        return Waiting { place, ..one };
    }
    match call.kind {
        kind if is_joint(kind) => joint(attendance, rank, call, &mut place, &mut one),
        CallKind::Receive | CallKind::Send => message(standing, rank, &place, &mut one),
        CallKind::Exchange => exchange(standing, rank, &place, call.destination, &mut one),
        CallKind::Lock => {
            one.targets = holders(standing, rank, &place);
            one.is_known = !one.targets.is_empty();
        }
        CallKind::Wait if call.request > 0 && is_for_others(standing, rank, &place) => {
            one.is_known = false;
        }
        CallKind::Wait if call.request > 0 => {
            place.number = call.request;
            place.behind = started(standing, rank, &place);
            one.targets = attendance.absent(rank, &place, call.pattern);
            one.is_known = is_answered(standing, &place, &one.targets);
        }
        CallKind::Wait if call.is_request_known => message(standing, rank, &place, &mut one),
        CallKind::Wait => match attendance.unanswered(rank, |_| true) {
            Some(pending) => {
                place = Place { function: call.function, kind: call.kind, ..pending };
                one.targets = attendance.absent(rank, &place, call.pattern);
                one.is_known = is_answered(standing, &place, &one.targets);
            }
            None => attendance.several(rank, &mut one),
        },
        _ => one.is_known = false,
    }
    Waiting { place, ..one }
}

/// Whether a rank waits for ranks of the other group of an inter-communicator. Its number there is
/// compared with those of its own group only. One that makes a communicator waits for both.
fn is_for_others(standing: &Standing, rank: Rank, place: &Place) -> bool {
    let seat = standing.seats.get(&(place.space, rank));
    place.kind != CallKind::Creation && seat.is_some_and(|seat| seat.is_between)
}

/// Whether a communicator joins two groups, so that a number may be a rank in either.
fn joins_groups(standing: &Standing, space: u64) -> bool {
    standing.members(space).next().is_some_and(|(_, seat)| seat.is_between)
}

/// Whether all members of a place are known.
fn is_whole(standing: &Standing, place: &Place) -> bool {
    match place.kind {
        CallKind::File | CallKind::Window => standing.unread() == 0,
        _ => has_all_members(standing, place.space),
    }
}

/// Whether all processes of a communicator of one group, or of a window, are known.
fn has_all_members(standing: &Standing, space: u64) -> bool {
    let mut members = standing.members(space).peekable();
    let Some(&(_, first)) = members.peek() else { return false };
    let (size, is_between) = (first.size as usize, first.is_between);
    !is_between && size > 0 && members.count() >= size
}

/// Of ranks that have made fewer calls on windows, or none, those that may be missing in one on
/// this window: its processes that are not in the same call. So are those of its processes that
/// have made as many calls as this rank and are in one on another window.
fn of_window(standing: &Standing, rank: Rank, call: &Standpoint, missing: RankSet) -> RankSet {
    if call.kind != CallKind::Window || call.space == 0 {
        return missing;
    }
    let call_of = |other: Rank| standing.postures.get(&other).and_then(|posture| posture.call);
    let has_come = |other: Rank| {
        let same = |own: Standpoint| (own.space, own.function) == (call.space, call.function);
        call_of(other).is_some_and(same)
    };
    let is_elsewhere = |other: Rank| {
        let kind = CallKind::Window;
        call_of(other).is_some_and(|own| own.kind == kind && ![0, call.space].contains(&own.space))
    };
    let may_miss = |&other: &Rank| standing.seats.contains_key(&(call.space, other));
    let made = standing.shared_calls(rank, CallKind::Window);
    let lacks = |&(other, seat): &(Rank, &Seat)| {
        let made_there = standing.shared_calls(other, CallKind::Window);
        // One that has been in this call, which then returns here too, has made more.
        made_there == 0 || made_there == made && !seat.is_freed && is_elsewhere(other)
    };
    let lacking = standing.members(call.space).filter(lacks).map(|(other, _)| other);
    let others = missing.iter().filter(may_miss).chain(lacking);
    others.filter(|&other| !has_come(other)).collect()
}

/// Whether all processes of the window of a call are known, if it is one on a window that is.
fn is_window_whole(standing: &Standing, call: &Standpoint) -> bool {
    call.kind != CallKind::Window || call.space == 0 || has_all_members(standing, call.space)
}

/// Whether it is known for which ranks one waits that has started a collective: for some, or for
/// none of all members, which know their numbers. A member that has not made the request of a
/// persistent one yet is not among them.
fn is_answered(standing: &Standing, place: &Place, targets: &RankSet) -> bool {
    let are_numbered = || standing.members(place.space).all(|(_, seat)| !seat.is_number_lost);
    !targets.is_empty() || has_all_members(standing, place.space) && are_numbered()
}

/// Other ranks that have locked the part of a window that one wants.
fn holders(standing: &Standing, rank: Rank, place: &Place) -> RankSet {
    let has_it = |held: Side| match (held, place.side) {
        (Side::None, _) => false,
        (Side::Rank(held), Side::Rank(wanted)) => held == wanted,
        _ => true,
    };
    let others = standing.members(place.space).filter(|&(member, _)| member != rank);
    others.filter(|(_, seat)| has_it(seat.held)).map(|(member, _)| member).collect()
}

/// The other side of a message. On an inter-communicator it is of the other group, whose members
/// are not distinguished from those of the own one.
fn message(standing: &Standing, rank: Rank, place: &Place, one: &mut Waiting) {
    match place.side {
        _ if joins_groups(standing, place.space) => one.is_known = false,
        Side::Rank(local) => {
            one.targets = standing.member(place.space, local).into_iter().collect();
            one.is_known = !one.targets.is_empty();
        }
        // Each of those without a file may be the one that was to send.
        Side::Any if standing.unread_members(place.space) > 0 => one.is_known = false,
        Side::Any => {
            one.is_any = true;
            let members = standing.members(place.space).map(|(member, _)| member);
            one.targets = members.filter(|&member| member != rank).collect();
        }
        Side::None => one.is_known = false,
    }
}

/// Both other sides of an exchange; the destination alone where nothing is received.
fn exchange(standing: &Standing, rank: Rank, place: &Place, destination: Side, one: &mut Waiting) {
    message(standing, rank, place, one);
    let Side::Rank(local) = destination else { return };
    if joins_groups(standing, place.space) {
        return;
    }
    let member = standing.member(place.space, local).filter(|&member| member != rank);
    match place.side {
        Side::None => {
            one.targets = member.into_iter().collect();
            one.is_known = member.is_some();
        }
        // It may wait for its source, whose file is not there.
        _ if !one.is_known && standing.unread() > 0 => {}
        _ => one.also = member.into_iter().collect(),
    }
}

/// The function of a collective that a rank has started, if it is the last one there.
fn started(standing: &Standing, rank: Rank, place: &Place) -> u32 {
    let seat = standing.seats.get(&(place.space, rank));
    seat.filter(|seat| seat.made == place.number).map_or(0, |seat| seat.last_function)
}

/// Which members take no part in which collective. Ranks wait for the same ones, so that what was
/// found for one of them is kept for the others.
struct Attendance<'a> {
    standing: &'a Standing,
    lacking: LackingByNumber,
    /// By rank, the communicators that it has; made for the first rank of which they are needed.
    spaces: Option<BTreeMap<Rank, Vec<u64>>>,
    members: Members,
}

/// By communicator, number, and operation there.
type LackingByNumber = BTreeMap<(u64, u32, Operation), Lacking>;

/// Members that take no part in a collective.
#[derive(Default)]
struct Lacking {
    /// They have not come, or call another operation.
    away: RankSet,
    /// These, and those that were stopped or have died inside: they do not go on there.
    all: RankSet,
    /// Of calls on files, or windows: whether there are ranks that have made none on any.
    has_outsiders: bool,
}

impl<'a> Attendance<'a> {
    fn new(standing: &'a Standing) -> Self {
        Self { standing, lacking: BTreeMap::new(), spaces: None, members: Members::default() }
    }

    /// A collective that a rank has started and that another member has not, on a communicator of
    /// which this holds: what it may wait for where its requests are not known.
    fn unanswered(&mut self, rank: Rank, is_one: impl Fn(&Seat) -> bool) -> Option<Place> {
        let standing = self.standing;
        let Self { lacking, spaces, .. } = self;
        let is_told = |seat: &Seat| {
            seat.made > 0 && !(seat.is_number_lost || seat.is_between || seat.is_last_of_neighbours)
        };
        let spaces = spaces.get_or_insert_with(|| spaces_by_rank(standing));
        for &space in spaces.get(&rank)? {
            let seat = standing.seats.get(&(space, rank));
            let Some(seat) = seat.filter(|seat| is_told(seat) && is_one(seat)) else { continue };
            let (number, behind) = (seat.made, seat.last_function);
            let place = Place { space, number, behind, ..Place::default() };
            let away = &lacking_at(standing, lacking, &place).away;
            if away.len() > u64::from(away.contains(rank)) {
                return Some(place);
            }
        }
        None
    }

    /// Those that may send one of several messages for which a rank waits, if these are known.
    fn several(&mut self, rank: Rank, one: &mut Waiting) {
        one.is_known = false;
        let standing = self.standing;
        let Some(open) = standing.open.get(&rank) else { return };
        let senders = self.members.senders(standing, rank, open);
        if !senders.ranks.is_empty() {
            one.is_any = open.is_any;
            one.also = senders.ranks;
            one.open = Some(senders.messages);
        }
    }

    /// Whether ranks have made no call of the kind of this one on any file or window: they may be
    /// among those that share it.
    fn has_outsiders(&mut self, place: &Place) -> bool {
        lacking_at(self.standing, &mut self.lacking, place).has_outsiders
    }

    /// Members that take no part in a collective, as far as a rank waits for them.
    fn absent(&mut self, rank: Rank, place: &Place, pattern: Pattern) -> RankSet {
        let standing = self.standing;
        let lacking = lacking_at(standing, &mut self.lacking, place);
        let absent = lacking.all.difference(RankSet::range(rank, rank).as_ref());
        // What comes from the root, or goes there, waits for it before all others.
        let named = place.operation().root;
        let root = named.and_then(|root| standing.member(place.space, root));
        let is_rooted = pattern != Pattern::All && named.is_some();
        if is_rooted && root.is_none() && standing.unread_members(place.space) > 0 {
            return RankSet::new();
        }
        match root {
            Some(root) if pattern != Pattern::All && root != rank && absent.contains(root) => {
                RankSet::range(root, root)
            }
            _ => absent,
        }
    }
}

impl Lacking {
    fn of(standing: &Standing, place: &Place) -> Self {
        let operation = place.operation();
        let members = members(standing, place.space);
        let is_shared = matches!(place.space, FILES | WINDOWS);
        let has_outsiders = is_shared && members.len() < standing.postures.len();
        let mut lacking = Self { has_outsiders, ..Self::default() };
        for member in members {
            let part = Progress::of(standing, place.space, member).part(place.number, operation);
            let is_away = matches!(part, Turnout::Absent | Turnout::Differs(_));
            let is_halted = || {
                let presence = standing.postures.get(&member).map(|posture| posture.presence);
                matches!(presence, Some(Presence::Stopped | Presence::Lost))
            };
            if is_away {
                lacking.away.insert(member);
            }
            let may_be_there = matches!(part, Turnout::Inside | Turnout::Unknown);
            if is_away || may_be_there && is_halted() {
                lacking.all.insert(member);
            }
        }
        lacking
    }
}

/// Those of a collective, which are looked up once as long as they are kept.
fn lacking_at<'k>(
    standing: &Standing,
    kept: &'k mut LackingByNumber,
    place: &Place,
) -> &'k Lacking {
    let key = (place.space, place.number, place.operation());
    if kept.len() >= KEPT_MAX && !kept.contains_key(&key) {
        kept.clear();
    }
    kept.entry(key).or_insert_with(|| Lacking::of(standing, place))
}

fn spaces_by_rank(standing: &Standing) -> BTreeMap<Rank, Vec<u64>> {
    let mut spaces: BTreeMap<Rank, Vec<u64>> = BTreeMap::new();
    for &(space, rank) in standing.seats.keys() {
        spaces.entry(rank).or_default().push(space);
    }
    spaces
}

/// Members of a communicator, or of what stands for it.
pub(crate) fn members(standing: &Standing, space: u64) -> Vec<Rank> {
    let kind = match space {
        FILES => CallKind::File,
        WINDOWS => CallKind::Window,
        ENDING => return standing.postures.keys().copied().collect(),
        _ => return standing.members(space).map(|(rank, _)| rank).collect(),
    };
    let takes_part = |&(&rank, posture): &(&Rank, &Posture)| {
        posture.call.is_some_and(|call| call.kind == kind) || standing.shared_calls(rank, kind) > 0
    };
    standing.postures.iter().filter(takes_part).map(|(&rank, _)| rank).collect()
}
