//! Half of the members leave and return while one member broadcasts without a pause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use sapwood::{Rank, RankSet, TreeKind};
use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::median;
use sapwood_group_tool::{Act, MemberProcess, Request};
use serde_json::Value;

use super::scene::{ANSWER_DEADLINE, Place, Scene, left};

/// Broadcasts before members leave, while they are away, and after they are back.
const CASTS: usize = 6;
/// How long a broadcast may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long all broadcasts of one part may take together.
const PART_DEADLINE: Duration = Duration::from_secs(240);

/// One broadcast, as its root has seen it.
struct Cast {
    begun: Instant,
    seconds: f64,
    receivers: RankSet,
}

/// One broadcast beside the others, in seconds since the first one began.
pub(super) struct CastRate {
    pub(super) begin_seconds: f64,
    pub(super) end_seconds: f64,
    /// MB/s until all have acknowledged.
    pub(super) rate: f64,
    /// How many virtual nodes had it, that of the root among them.
    pub(super) reached: u64,
}

/// When half of the members leave and return, in the same seconds.
pub(super) struct ChurnTimes {
    pub(super) leave: f64,
    pub(super) left: f64,
    pub(super) come: f64,
    pub(super) back: f64,
}

/// What came of it.
pub(super) struct Churn {
    pub(super) tree: TreeKind,
    pub(super) bytes: usize,
    pub(super) over_time: Vec<CastRate>,
    pub(super) times: ChurnTimes,
    pub(super) casts: usize,
    /// Virtual nodes that were there all the time and had no broadcast, over all broadcasts; and
    /// values that were wrong or came twice.
    pub(super) lost: u64,
    pub(super) wrong: u64,
    /// Of the broadcasts before.
    pub(super) normal_seconds: f64,
    /// Beside these: the slowest while members left, the first one after it, the slowest while they
    /// returned, and the first one after it.
    pub(super) leaving_ratio: f64,
    pub(super) left_ratio: f64,
    pub(super) returning_ratio: f64,
    pub(super) returned_ratio: f64,
    /// From the last member's return until a broadcast has begun that reached all.
    pub(super) whole_seconds: f64,
}

/// The moments between which members leave and return.
struct Moments {
    leave: Instant,
    left: Instant,
    come: Instant,
    back: Instant,
}

/// Half of the members leave and return under broadcasts by a tree.
pub(super) fn run(scene: &mut Scene<'_>, bytes: usize, tree: TreeKind) -> Result<Churn, Failure> {
    let count = scene.members();
    let before: Vec<FaultCount> = received(scene)?.iter().map(FaultCount::of).collect();
    let address = scene.fleet.address().to_string();
    let (place, members) = (&scene.place, scene.fleet.members_mut());
    let Some((root, others)) = members.split_first_mut() else {
        return Err(Failure::own(&"a group without members"));
    };
    let mut request = Request::new(Act::Publish);
    (request.bytes, request.tree, request.deadline) = (bytes, tree, DEADLINE);
    let is_to_end = AtomicBool::new(false);
    let (sender, casts) = channel();
    let (seen, moments) = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(root, &request, &is_to_end, sender));
        // Members start in this thread: those that another one has started would end with it.
        let conducted = conduct(place, &address, others, &casts);
        is_to_end.store(true, Ordering::Relaxed);
        let published = publisher.join().unwrap_or_else(|_| Err(Failure::own(&"a panic")));
        let (mut seen, moments) = conducted?;
        published?;
        seen.extend(casts.try_iter());
        Ok::<_, Failure>((seen, moments))
    })?;
    scene.fleet.wait_for_all(ANSWER_DEADLINE)?;
    let mut churn = condense(&seen, &moments, &request, count)?;
    (churn.lost, churn.wrong) = judge(scene, &seen, &before)?;
    scene.published += seen.len() as u32;
    Ok(churn)
}

/// Whether a member stays.
fn stays(name: Rank) -> bool {
    name.is_multiple_of(2)
}

/// Broadcasts until it is told to end.
fn publish(
    root: &mut MemberProcess,
    request: &Request,
    is_to_end: &AtomicBool,
    casts: Sender<Cast>,
) -> Result<(), Failure> {
    while !is_to_end.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let answer = root.ask(request, DEADLINE + ANSWER_DEADLINE)?;
        if let Some(error) = answer["error"].as_str() {
            return Err(Failure::own(&format!("a broadcast to members that leave: {error}")));
        }
        let receivers = answer["contributors"].as_str().unwrap_or_default().parse();
        let receivers = receivers.map_err(|error| Failure::own(&error))?;
        let seconds = begun.elapsed().as_secs_f64();
        // The other end goes only with an error of its own.
        let _ = casts.send(Cast { begun, seconds, receivers });
    }
    Ok(())
}

/// Has half of the members leave and return between broadcasts.
fn conduct(
    place: &Place<'_>,
    address: &str,
    others: &mut [MemberProcess],
    casts: &Receiver<Cast>,
) -> Result<(Vec<Cast>, Moments), Failure> {
    let mut seen = Vec::new();
    await_casts(casts, &mut seen, "before members leave", |_| true)?;
    let leave = Instant::now();
    let leaving = || Instant::now() + ANSWER_DEADLINE;
    for member in others.iter_mut().filter(|member| !stays(member.name())) {
        member.leave()?;
    }
    for member in others.iter_mut().filter(|member| !stays(member.name())) {
        member.wait_for_end(leaving())?;
    }
    let left = Instant::now();
    await_casts(casts, &mut seen, "while members are away", |cast| cast.begun > left)?;
    let come = Instant::now();
    for member in others.iter_mut().filter(|member| !stays(member.name())) {
        let name = member.name();
        *member = MemberProcess::start(name, place.order(name, Some(address)))?;
    }
    for member in others.iter_mut().filter(|member| !stays(member.name())) {
        member.read(leaving())?;
    }
    let back = Instant::now();
    let everyone = others.len() as u64 + 1;
    await_casts(casts, &mut seen, "after members are back", |cast| {
        cast.begun > back && reached(cast) == everyone
    })?;
    Ok((seen, Moments { leave, left, come, back }))
}

/// How many virtual nodes have it; the root has it by itself.
fn reached(cast: &Cast) -> u64 {
    cast.receivers.len() + u64::from(!cast.receivers.contains(0))
}

/// Waits for some broadcasts that are as they should be.
fn await_casts(
    casts: &Receiver<Cast>,
    seen: &mut Vec<Cast>,
    when: &str,
    mut is_one: impl FnMut(&Cast) -> bool,
) -> Result<(), Failure> {
    let until = Instant::now() + PART_DEADLINE;
    let mut count = 0;
    while count < CASTS {
        let cast = casts.recv_timeout(left(until)).map_err(|_| {
            Failure::timeout(format!("{count} of {CASTS} broadcasts {when} have ended"))
        })?;
        count += usize::from(is_one(&cast));
        seen.push(cast);
    }
    Ok(())
}

fn condense(
    seen: &[Cast],
    moments: &Moments,
    request: &Request,
    count: usize,
) -> Result<Churn, Failure> {
    let end = |cast: &Cast| cast.begun + Duration::from_secs_f64(cast.seconds);
    let normal: Vec<f64> =
        seen.iter().filter(|cast| end(cast) < moments.leave).map(|cast| cast.seconds).collect();
    let none = || Failure::own(&"no broadcast ended before members left");
    // The first one finds connections that have carried nothing yet.
    let normal_seconds = median(normal.get(1..).unwrap_or_default()).ok_or_else(none)?;
    let start = seen.first().map_or(moments.leave, |cast| cast.begun);
    let since = |moment: Instant| (moment - start).as_secs_f64();
    let over_time = seen.iter().map(|cast| CastRate {
        begin_seconds: since(cast.begun),
        end_seconds: since(end(cast)),
        rate: request.bytes as f64 / 1e6 / cast.seconds,
        reached: reached(cast),
    });
    let slowest = |from: Instant, to: Instant| {
        let within = seen.iter().filter(|cast| cast.begun < to && end(cast) > from);
        within.map(|cast| cast.seconds).fold(0.0, f64::max) / normal_seconds
    };
    let first = |after: Instant| {
        let found = seen.iter().find(|cast| cast.begun > after);
        found.map_or(f64::NAN, |cast| cast.seconds) / normal_seconds
    };
    let is_whole = |cast: &&Cast| cast.begun > moments.back && reached(cast) == count as u64;
    let whole = seen.iter().find(is_whole).map(|cast| cast.begun - moments.back);
    Ok(Churn {
        tree: request.tree,
        bytes: request.bytes,
        over_time: over_time.collect(),
        times: ChurnTimes {
            leave: since(moments.leave),
            left: since(moments.left),
            come: since(moments.come),
            back: since(moments.back),
        },
        casts: seen.len(),
        lost: 0,
        wrong: 0,
        normal_seconds,
        leaving_ratio: slowest(moments.leave, moments.left),
        left_ratio: first(moments.left),
        returning_ratio: slowest(moments.come, moments.back),
        returned_ratio: first(moments.back),
        whole_seconds: whole.map_or(f64::NAN, |time| time.as_secs_f64()),
    })
}

/// What a member has counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FaultCount {
    /// Values that were wrong or came twice.
    wrong: u64,
    /// Those for which it had no room.
    lost: u64,
}

impl FaultCount {
    fn of(answer: &Value) -> Self {
        let from = &answer["senders"]["0"];
        let wrong = number(from, "wrong") + number(from, "doubled") + number(answer, "unreadable");
        Self { wrong, lost: number(answer, "lost") }
    }

    /// What has come since then.
    fn since(self, before: Self) -> Self {
        let wrong = self.wrong.saturating_sub(before.wrong);
        Self { wrong, lost: self.lost.saturating_sub(before.lost) }
    }
}

fn received(scene: &mut Scene<'_>) -> Result<Vec<Value>, Failure> {
    scene.ask(&Request::new(Act::Received), ANSWER_DEADLINE)
}

/// What members have received: values that did not come, and those that were wrong or came twice,
/// without what they had counted before.
fn judge(
    scene: &mut Scene<'_>,
    seen: &[Cast],
    before: &[FaultCount],
) -> Result<(u64, u64), Failure> {
    let answers = received(scene)?;
    let (mut lost, mut wrong) = (0, 0);
    let first_cast = scene.published + 1;
    let casts: Vec<(u32, &Cast)> = (first_cast..).zip(seen).collect();
    for (name, answer) in (0..).zip(&answers).skip(1) {
        let from = &answer["senders"]["0"];
        let counts: RankSet = from["counts"]
            .as_str()
            .unwrap_or_default()
            .parse()
            .map_err(|error| Failure::own(&error))?;
        let due = |cast: &&(u32, &Cast)| stays(name) || cast.1.receivers.contains(name);
        // A member that has returned has only what came since; the process before has ended.
        let since = if stays(name) { first_cast } else { counts.iter().next().unwrap_or(u32::MAX) };
        let due: Vec<u32> = casts.iter().filter(due).map(|cast| cast.0).collect();
        let missing: Vec<u32> =
            due.into_iter().filter(|cast| *cast >= since && !counts.contains(*cast)).collect();
        let unsaid = casts.iter().filter(|cast| stays(name) && !cast.1.receivers.contains(name));
        let said_missing = unsaid.count() as u64;
        // The process that has returned counts from its own start.
        let earlier = before.get(name as usize).filter(|_| stays(name)).copied();
        let faults = FaultCount::of(answer).since(earlier.unwrap_or_default());
        if !missing.is_empty() || said_missing > 0 || faults != FaultCount::default() {
            let FaultCount { wrong, lost } = faults;
            scene.faults.push(format!(
                "broadcasts while members leave: member {name} has not {missing:?}, the root says \
                 that {said_missing} have not reached it, {wrong} are wrong or came twice, {lost} \
                 found no room"
            ));
        }
        lost += missing.len() as u64 + said_missing;
        wrong += faults.wrong;
    }
    Ok((lost, wrong))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_of_a_run_before_are_not_counted_again() {
        let answer = |wrong: u64, doubled: u64, unreadable: u64, lost: u64| {
            let senders = json!({ "0": { "wrong": wrong, "doubled": doubled } });
            json!({ "senders": senders, "unreadable": unreadable, "lost": lost })
        };
        let before = FaultCount::of(&answer(1, 2, 3, 4));
        assert_eq!(before, FaultCount { wrong: 6, lost: 4 });
        let after = FaultCount::of(&answer(1, 3, 3, 4));
        assert_eq!(after.since(before), FaultCount { wrong: 1, lost: 0 });
        assert_eq!(FaultCount::of(&json!({})), FaultCount::default());
    }
}
