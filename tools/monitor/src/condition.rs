//! What the system says of a rank's process: whether it runs, waits or is stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sapwood_profile::{Condition, Figure};
use sapwood_report::nanoseconds;

use super::proc_stat::{self, STRETCH_MIN, USED_PARTS};

/// A process that gives its processor up less often than this wants one, and others have it: it
/// computes as well.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The program that stops ranks for less than a millisecond to read their call stacks.
const STACK_READER: &str = "sapwood-stacks";
/// A rank that is found stopped by it for longer is stopped: the reader hangs or is stopped itself.
const READ_MAX: Duration = Duration::from_secs(1);

/// The conditions of one process from look to look.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// What it was last.
    last: Condition,
    stretch: Option<Stretch>,
    /// Whether it slept through nearly all of the last stretch.
    slept: bool,
    /// Since when it has been found stopped because its call stack is read.
    read_since: Option<Instant>,
}

/// What the process had used at a moment.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Instant,
    cpu_ns: u64,
    pauses: u64,
}

impl Conditions {
    /// The condition of the process, which has used this until now. One that wakes for a moment,
    /// to look whether there is something to do, sleeps, even when it waits for a processor just
    /// then.
    pub(crate) fn now(&mut self, process: i32, figures: &BTreeMap<Figure, u64>) -> Condition {
        let now = Instant::now();
        self.note_use(now, figures);
        let seen = seen(process);
        self.told(now, &seen)
    }

    /// What is said of a process that looks like this.
    fn told(&mut self, now: Instant, seen: &Seen) -> Condition {
        if !seen.is_read {
            self.read_since = None;
            let sleeps = seen.condition == Condition::Computing && self.slept;
            self.last = if sleeps { Condition::Sleeping } else { seen.condition };
            return self.last;
        }
        let since = *self.read_since.get_or_insert(now);
        let hangs = now.saturating_duration_since(since) > READ_MAX;
        if hangs { Condition::Stopped } else { self.last }
    }

    fn note_use(&mut self, now: Instant, figures: &BTreeMap<Figure, u64>) {
        let figure = |figure| figures.get(&figure).copied().unwrap_or(0);
        let cpu_ns = figure(Figure::CpuUserNs).saturating_add(figure(Figure::CpuSystemNs));
        let pauses = figure(Figure::VoluntarySwitches);
        let since = self.stretch.map(|stretch| now.saturating_duration_since(stretch.since));
        if since.is_some_and(|since| since < STRETCH_MIN) {
            return;
        }
        if let (Some(before), Some(since)) = (self.stretch, since) {
            let used = cpu_ns.saturating_sub(before.cpu_ns).saturating_mul(USED_PARTS);
            let paused = pauses.saturating_sub(before.pauses);
            self.slept = used <= nanoseconds(since)
                && paused.saturating_mul(nanoseconds(PAUSE_MAX)) >= nanoseconds(since);
        }
        self.stretch = Some(Stretch { since: now, cpu_ns, pauses });
    }
}

/// What a process looks like.
struct Seen {
    condition: Condition,
    /// Whether it is stopped only as long as its call stack is read.
    is_read: bool,
}

fn seen(process: i32) -> Seen {
    let condition = condition(process);
    if condition != Condition::Stopped || is_read(process) {
        return Seen { condition, is_read: condition == Condition::Stopped };
    }
    // The reader may have let it go between the two looks.
    let condition = self::condition(process);
    Seen { condition, is_read: condition == Condition::Stopped && is_read(process) }
}

/// Whether the process that traces another is the reader of call stacks.
fn is_read(process: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(str::trim);
    let name = |tracer: &str| fs::read_to_string(format!("/proc/{tracer}/comm"));
    tracer.is_some_and(|tracer| name(tracer).is_ok_and(|name| name.trim_end() == STACK_READER))
}

/// The condition of a process of this host; unknown if it has ended. It computes if any of its
/// threads does.
pub(crate) fn condition(process: i32) -> Condition {
    let folder = Path::new("/proc").join(process.to_string());
    let first = of_folder(&folder);
    if first != Condition::Sleeping {
        return first;
    }
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let mut others = threads.map(|thread| of_folder(&thread.path()));
    if others.any(|other| other == Condition::Computing) { Condition::Computing } else { first }
}

/// Whether a thread of a process of this host waits for a lock or a condition, as far as the kernel
/// tells where it sleeps.
pub(crate) fn waits_for_lock(process: i32, thread: u32) -> bool {
    let path = format!("/proc/{process}/task/{thread}/wchan");
    fs::read_to_string(path).is_ok_and(|place| place.starts_with("futex_"))
}

fn of_folder(folder: &Path) -> Condition {
    let stat = fs::read_to_string(folder.join("stat"));
    stat.map_or(Condition::Unknown, |stat| of_stat(&stat))
}

/// The condition out of `/proc/PID/stat`.
fn of_stat(stat: &str) -> Condition {
    match proc_stat::fields(stat).and_then(|fields| fields.state()) {
        Some('R') => Condition::Computing,
        Some('S' | 'D' | 'I') => Condition::Sleeping,
        Some('T' | 't') => Condition::Stopped,
        _ => Condition::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_behind_the_name_whatever_that_is() {
        assert_eq!(of_stat("17 (a) R 1 17"), Condition::Computing);
        assert_eq!(of_stat("17 (a) T (b) S 1 17"), Condition::Sleeping);
        assert_eq!(of_stat("17 (sh) D 1"), Condition::Sleeping);
        assert_eq!(of_stat("17 (gdb me) t 1"), Condition::Stopped);
        assert_eq!(of_stat("17 (a) Z 1"), Condition::Unknown);
        assert_eq!(of_stat(""), Condition::Unknown);
    }

    #[test]
    fn a_process_computes_if_one_of_its_threads_does() {
        // The first thread of this program waits for the one of this test.
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(condition(own), Condition::Computing);
        assert_eq!(condition(i32::MAX), Condition::Unknown);
    }

    fn used(cpu_ms: u64, pauses: u64) -> BTreeMap<Figure, u64> {
        BTreeMap::from([
            (Figure::CpuUserNs, cpu_ms * 1_000_000),
            (Figure::VoluntarySwitches, pauses),
        ])
    }

    #[test]
    fn a_process_that_wakes_for_moments_sleeps() {
        let begin = Instant::now();
        let slept = |cpu_ms: u64, pauses: u64| {
            let mut conditions = Conditions::default();
            conditions.note_use(begin, &used(500, 70));
            conditions.note_use(begin + STRETCH_MIN, &used(500 + cpu_ms, 70 + pauses));
            conditions.slept
        };
        assert!(slept(10, 20), "every 10 ms, one tick of processor time in 200 ms");
        assert!(!slept(100, 20), "it computes half of the time");
        assert!(!slept(10, 0), "it wants a processor all the time and gets none");
    }

    #[test]
    fn a_process_that_wakes_and_is_ready_for_a_processor_is_said_to_sleep() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut conditions = Conditions::default();
        assert_eq!(conditions.now(own, &used(0, 0)), Condition::Computing);
        conditions.slept = true;
        // However long the first look was ago, it has slept since.
        assert_eq!(conditions.now(own, &used(0, 1_000_000)), Condition::Sleeping);
    }

    #[test]
    fn a_process_that_is_read_is_what_it_was_before_unless_its_reader_hangs() {
        let begin = Instant::now();
        let mut conditions = Conditions { last: Condition::Sleeping, ..Conditions::default() };
        let mut told = |reads, condition, is_read| {
            conditions.told(begin + READ_MAX * reads, &Seen { condition, is_read })
        };
        assert_eq!(told(0, Condition::Stopped, true), Condition::Sleeping);
        assert_eq!(told(1, Condition::Stopped, true), Condition::Sleeping);
        assert_eq!(told(2, Condition::Stopped, true), Condition::Stopped, "the reader hangs");
        assert_eq!(told(3, Condition::Computing, false), Condition::Computing, "let go");
        assert_eq!(told(4, Condition::Stopped, true), Condition::Computing, "read anew");
        assert_eq!(told(5, Condition::Stopped, false), Condition::Stopped, "by another process");
        assert_eq!(told(6, Condition::Stopped, true), Condition::Stopped, "as it was before");
    }

    #[test]
    fn a_stretch_is_not_cut_by_looks_in_between() {
        let begin = Instant::now();
        let mut conditions = Conditions::default();
        for look in 0..=20_u32 {
            conditions.note_use(begin + STRETCH_MIN * look / 20, &used(0, look.into()));
        }
        assert!(conditions.slept);
        conditions.note_use(begin + STRETCH_MIN * 2, &used(150, 20));
        assert!(!conditions.slept, "it computes now");
    }

    #[test]
    fn a_process_without_a_tracer_is_not_read() {
        assert!(!is_read(i32::try_from(std::process::id()).unwrap()));
        assert!(!is_read(i32::MAX));
    }

    #[test]
    fn a_thread_that_computes_waits_for_no_lock() {
        let own = std::process::id();
        let thread = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        assert!(!waits_for_lock(i32::try_from(own).unwrap(), thread));
        assert!(!waits_for_lock(i32::MAX, 1));
    }
}
