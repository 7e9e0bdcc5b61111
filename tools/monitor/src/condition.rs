//! What the system says of a rank's process: whether it runs, waits or is stopped.

use std::fs;
use std::path::Path;

use sapwood_profile::Condition;

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

/// The condition out of `/proc/PID/stat`: the word behind the program's name, which is in
/// parentheses and may hold any characters.
fn of_stat(stat: &str) -> Condition {
    match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
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

    #[test]
    fn a_thread_that_computes_waits_for_no_lock() {
        let own = std::process::id();
        let thread = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        assert!(!waits_for_lock(i32::try_from(own).unwrap(), thread));
        assert!(!waits_for_lock(i32::MAX, 1));
    }
}
