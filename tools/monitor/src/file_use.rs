//! Whether a rank that is in a call on a file reads or writes: then it works, for however long the
//! call lasts, and does not wait for other ranks.
//!
//! The kernel counts what a process has read and written. Ranks that wait for one another inside
//! of a call on a file, as in `MPI_File_write_all`, leave these counts as they are. Counts that may
//! not be read, such as those of another user's process, say nothing.

use std::fs;
use std::time::{Duration, Instant};

use sapwood_profile::{Activity, Class, Condition, Function};

/// A process whose counts have stayed the same for this time does not read or write.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The counts of `/proc/PID/io` that are added: what calls have moved, which tells small pieces,
/// and what storage has, which grows while one large call lasts.
const COUNTS: [&str; 4] = ["rchar:", "wchar:", "read_bytes:", "write_bytes:"];

/// What one process has read and written, from look to look.
#[derive(Debug, Default)]
pub(crate) struct FileUse {
    last: Option<Change>,
}

/// The counts as they were first seen, and when.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Instant,
    bytes: u64,
}

impl FileUse {
    /// Whether a process of this host reads or writes. At the first look that is assumed.
    pub(crate) fn moves_data(&mut self, process: i32) -> bool {
        let counts = fs::read_to_string(format!("/proc/{process}/io"));
        let Some(bytes) = counts.ok().as_deref().and_then(sum) else { return false };
        self.has_changed(Instant::now(), bytes)
    }

    /// Whether counts that have this sum now have changed lately.
    fn has_changed(&mut self, now: Instant, bytes: u64) -> bool {
        let last = match self.last {
            Some(last) if last.bytes == bytes => last,
            _ => Change { at: now, bytes },
        };
        self.last = Some(last);
        now.saturating_duration_since(last.at) < PAUSE_MAX
    }
}

/// Whether a thread of a rank that lives and is not stopped is in a call on a file.
pub(crate) fn is_on_file(activity: &Activity) -> bool {
    let function = activity.kind.function.and_then(Function::of);
    activity.kind.condition == Condition::Unknown
        && function.is_some_and(|function| function.class == Class::File)
}

/// The sum of all counts out of `/proc/PID/io`; none where one is missing.
fn sum(counts: &str) -> Option<u64> {
    let count = |name: &str| -> Option<u64> {
        counts.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    COUNTS.iter().try_fold(0_u64, |sum, name| Some(sum.wrapping_add(count(name)?)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use sapwood_profile::{ActivityKind, Peer};

    use super::*;

    #[test]
    fn all_that_a_process_moves_is_added_and_nothing_else() {
        let counts = "rchar: 1000\nwchar: 200\nsyscr: 7\nsyscw: 9\nread_bytes: 30\nwrite_bytes: 4\n\
                      cancelled_write_bytes: 5\n";
        assert_eq!(sum(counts), Some(1234));
        assert_eq!(sum("rchar: 1000\nwchar: 200\n"), None);
        assert_eq!(sum(""), None);
        assert_eq!(sum(&counts.replace("30", "many")), None);
    }

    #[test]
    fn a_process_moves_data_until_its_counts_have_stayed_the_same_for_long() {
        let begin = Instant::now();
        let mut files = FileUse::default();
        let mut moves =
            |half_pauses: u32, bytes| files.has_changed(begin + PAUSE_MAX * half_pauses / 2, bytes);
        assert!(moves(0, 100), "the first look");
        assert!(moves(1, 100));
        assert!(!moves(2, 100));
        assert!(!moves(3, 100));
        assert!(moves(4, 101));
        assert!(moves(5, 101));
        assert!(!moves(6, 101), "looks in between do not count as changes");
        assert!(moves(90, 102), "it has moved since the look before, whenever that was");
    }

    #[test]
    fn the_counts_of_this_process_grow_as_it_writes() {
        let read = || sum(&fs::read_to_string("/proc/self/io").expect("the own counts"));
        let before = read().expect("all counts");
        let mut nowhere = fs::File::create("/dev/null").expect("it is everywhere");
        nowhere.write_all(&[0; 4096]).expect("it takes all");
        assert!(read().expect("all counts") >= before + 4096);
        let own = i32::try_from(std::process::id()).expect("a process number");
        assert!(FileUse::default().moves_data(own));
    }

    #[test]
    fn of_a_process_whose_counts_cannot_be_read_nothing_is_claimed() {
        let mut files = FileUse::default();
        assert!(!files.moves_data(i32::MAX));
        assert!(files.last.is_none());
    }

    #[test]
    fn only_calls_on_files_of_ranks_that_may_go_on_are_looked_at() {
        let activity = |name: Option<&str>, condition| {
            let function = name.map(|name| Function::named(name).expect("a function of MPI").id);
            let kind = ActivityKind { function, condition, ..ActivityKind::default() };
            Activity { kind, peer: Peer::None, for_ns: 1 }
        };
        assert!(is_on_file(&activity(Some("MPI_File_write"), Condition::Unknown)));
        assert!(is_on_file(&activity(Some("MPI_File_read_at_all"), Condition::Unknown)));
        assert!(!is_on_file(&activity(Some("MPI_File_write"), Condition::Stopped)));
        assert!(!is_on_file(&activity(Some("MPI_File_write"), Condition::Lost)));
        assert!(!is_on_file(&activity(Some("MPI_Recv"), Condition::Unknown)));
        assert!(!is_on_file(&activity(None, Condition::Unknown)));
    }
}
