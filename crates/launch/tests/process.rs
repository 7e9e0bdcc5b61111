//! Real processes: how they start or fail to, what they say, and how they end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, kill_process, waitpid};
use sapwood_launch::{
    DeathSignal, ERROR_TEXT_BYTES_MAX, Exit, INHERITED_MAX, LaunchError, Local, Order, Process,
    Signal, Work,
};

mod written;

use written::write_program;

/// How long anything may take before it counts as hung.
const DEADLINE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Order<'static> {
    let mut order = Order::new("/bin/sh");
    order.arguments = vec!["-c".into(), script.into()];
    order
}

fn start(order: &Order<'_>) -> Process {
    Local::new().start(order).unwrap()
}

fn refusal(order: &Order<'_>) -> String {
    Local::new().start(order).unwrap_err().to_string()
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_process_with_our_own_standard_error_says_nothing_to_us() {
    let mut order = shell("test -e /dev/fd/2 && exit 4");
    order.inherit_stderr = true;
    let mut process = start(&order);
    assert_eq!(process.take_stderr(&mut Vec::new()).unwrap(), 0);
    assert!(process.stderr_ended());
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(4)));
}

#[test]
fn a_program_that_is_looked_up_finds_its_name_as_it_was_ordered() {
    for (program, name) in [("sh", "sh"), ("/bin/sh", "/bin/sh")] {
        let mut order = shell("");
        // Without a word for it, $0 is the name by which the shell was started.
        order.program = program.into();
        order.arguments = vec!["-s".into(), name.into()];
        order.pipe_stdin = true;
        let mut process = start(&order);
        let script = b"test \"$0\" = \"$1\" || exit 9\nexit 4\n";
        std::io::Write::write_all(&mut process.stdin().unwrap(), script).unwrap();
        assert_eq!(process.wait(DEADLINE), Some(Exit::Status(4)), "{program}");
    }
}

#[test]
fn work_is_what_computes_and_not_what_waits() {
    let until = |process: &Process, what: &dyn Fn(Option<Work>) -> bool| {
        let begun = Instant::now();
        while !what(process.work()) {
            assert!(begun.elapsed() < DEADLINE, "{:?}", process.work());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let busy = start(&shell("while :; do :; done"));
    let least = Duration::from_millis(20);
    until(&busy, &|work| work.is_some_and(|work| work.is_computing && work.taken > least));
    let mut waiting = start(&shell("exec sleep 60"));
    until(&waiting, &|work| work.is_some_and(|work| !work.is_computing && !work.taken.is_zero()));
    waiting.kill(Signal::KILL).unwrap();
    assert!(waiting.wait(DEADLINE).is_some());
    assert_eq!(waiting.work(), None);
}

#[test]
fn a_program_that_cannot_run_is_told_at_once_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let missing = refusal(&Order::new(path("nowhere")));
    assert!(missing.contains("nowhere' does not exist: check its path"), "{missing}");
    let bare = refusal(&Order::new("no-such-back-end"));
    assert!(bare.contains("'no-such-back-end' is in no folder of PATH: install it"), "{bare}");
    fs::write(path("notes"), "text").unwrap();
    fs::set_permissions(path("notes"), fs::Permissions::from_mode(0o644)).unwrap();
    let rights = refusal(&Order::new(path("notes")));
    assert!(rights.contains("notes' cannot be run: the file is not executable"), "{rights}");
    write_program(&path("script"), "#!/no/such/interpreter\n");
    let script = refusal(&Order::new(path("script")));
    assert!(script.contains("script': ") && script.contains("interpreter"), "{script}");
}

#[test]
fn a_folder_that_cannot_be_entered_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut order = shell("true");
    order.directory = Some(folder.path().join("absent"));
    let text = refusal(&order);
    assert!(text.starts_with("cannot run '/bin/sh' in folder '"), "{text}");
    assert!(text.contains("absent'") && text.contains("create the folder"), "{text}");
    order.directory = Some("/etc/passwd".into());
    assert!(matches!(Local::new().start(&order), Err(LaunchError::Directory { .. })));

    let mut order = shell("pwd");
    order.directory = Some(folder.path().to_owned());
    order.capture_stdout = true;
    let mut process = start(&order);
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(0)));
    let mut text = Vec::new();
    process.take_stdout(&mut text).unwrap();
    let expected = fs::canonicalize(folder.path()).unwrap();
    assert_eq!(String::from_utf8(text).unwrap().trim_end(), expected.to_str().unwrap());
}

#[test]
fn an_order_that_cannot_be_carried_out_starts_nothing() {
    let (reader, _writer) = std::io::pipe().unwrap();
    let borrowed = std::os::fd::AsFd::as_fd(&reader);
    let mut order = shell("true");
    order.inherit = (0..=INHERITED_MAX).map(|n| (format!("FD{n}"), borrowed)).collect();
    assert!(refusal(&order).contains("at most 16 descriptors"));
    order.inherit = vec![("A=B".into(), borrowed)];
    assert!(refusal(&order).contains("neither '='"));
    let mut order = shell("true");
    order.arguments.push("zero\0byte".into());
    assert!(refusal(&order).starts_with("cannot start '/bin/sh': "));
    assert!(refusal(&Order::new("")).contains("a program has a name"));
}

#[test]
fn an_early_death_is_explained_by_its_last_words() {
    let mut process = start(&shell("echo loading; echo 'libmpi.so.40: not found' >&2; exit 3"));
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(3)));
    let expected = format!(
        "'/bin/sh' (process {}) exited with status 3; the end of its stderr:\n  \
         libmpi.so.40: not found",
        process.pid()
    );
    assert_eq!(process.exit_report(), expected);
    assert_eq!(process.exit_report(), expected, "it can be asked for again");

    let mut silent = start(&shell("exit 4"));
    silent.wait(DEADLINE);
    assert!(silent.exit_report().ends_with("exited with status 4; it wrote nothing to stderr"));
}

#[test]
fn a_file_that_is_no_program_ends_at_once_and_is_named() {
    // The C library gives a file of unknown format to the shell, which does not know it either.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("junk");
    write_program(&path, "no-such-word\n");
    let mut process = start(&Order::new(&path));
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(127)));
    let exit_report = process.exit_report();
    assert!(
        exit_report.contains("junk' (process") && exit_report.contains("no-such-word"),
        "{exit_report}"
    );
}

#[test]
fn a_death_by_signal_is_named() {
    let mut order = Order::new("sleep");
    order.arguments = vec!["1000".into()];
    let mut process = start(&order);
    assert!(process.exit_report().contains("is still running"));
    process.kill(Signal::KILL).unwrap();
    assert_eq!(process.wait(DEADLINE), Some(Exit::Signal(9)));
    assert!(process.exit_report().contains("killed by signal 9 (KILL)"));
    process.kill(Signal::TERM).expect("to signal the dead is no error");
}

#[test]
fn a_talkative_process_is_drained_and_only_its_end_is_kept() {
    // Three times the size of a pipe, so that it stops unless it is drained.
    let script = "i=0; while [ $i -lt 4000 ]; do \
                  echo \"line $i .........................................\" >&2; \
                  i=$((i+1)); done; exit 1";
    let mut process = start(&shell(script));
    let mut text = Vec::new();
    while !process.stderr_ended() {
        let stderr = process.stderr();
        let mut watched = [PollFd::from_borrowed_fd(stderr, PollFlags::IN)];
        let deadline = Timespec::try_from(DEADLINE).unwrap();
        assert_eq!(poll(&mut watched, Some(&deadline)).unwrap(), 1, "it says nothing any more");
        process.take_stderr(&mut text).unwrap();
    }
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(1)));
    assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 4000);
    let exit_report = process.exit_report();
    assert!(exit_report.contains("\n  line 3999 ..."), "{exit_report}");
    assert!(!exit_report.contains("line 3000 "));
    assert!(exit_report.len() < 2 * ERROR_TEXT_BYTES_MAX);
}

#[test]
fn nothing_is_left_of_a_dropped_process_not_even_what_it_started() {
    let mut order = shell("sleep 1000 & echo $!; wait");
    order.capture_stdout = true;
    let mut process = start(&order);
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        let mut watched = [PollFd::from_borrowed_fd(process.stdout().unwrap(), PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::try_from(DEADLINE).unwrap())).unwrap();
        process.take_stdout(&mut text).unwrap();
        assert!(!process.stdout_ended());
    }
    let number: i32 = String::from_utf8(text).unwrap().trim().parse().unwrap();
    let grandchild = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(number).unwrap(),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    let pid = process.pid();
    assert!(exists(pid));
    drop(process);
    assert!(!exists(pid), "it was reaped");
    let mut watched = [PollFd::new(&grandchild, PollFlags::IN)];
    let deadline = Timespec::try_from(DEADLINE).unwrap();
    assert_eq!(poll(&mut watched, Some(&deadline)).unwrap(), 1, "its group was killed");
}

#[test]
fn the_process_group_is_as_ordered() {
    // The fifth field of this file is the process group; the name before it holds no space.
    let mut order = shell("read _ _ _ _ group _ </proc/$$/stat; echo $group");
    order.capture_stdout = true;
    let mut group = |own_group| {
        order.own_group = own_group;
        let mut process = start(&order);
        assert_eq!(process.wait(DEADLINE), Some(Exit::Status(0)));
        let mut text = Vec::new();
        process.take_stdout(&mut text).unwrap();
        let number: i32 = String::from_utf8(text).unwrap().trim().parse().unwrap();
        (number, i32::try_from(process.pid()).unwrap())
    };
    let (own, pid) = group(true);
    assert_eq!(own, pid);
    let (shared, _) = group(false);
    assert_eq!(shared, rustix::process::getpgrp().as_raw_nonzero().get());
}

#[test]
fn standard_input_is_empty_unless_ordered_otherwise() {
    let mut order = shell("cat; readlink /proc/$$/fd/0");
    order.capture_stdout = true;
    let mut process = start(&order);
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(0)));
    let mut text = Vec::new();
    process.take_stdout(&mut text).unwrap();
    assert_eq!(text, b"/dev/null\n");
}

#[test]
fn a_released_process_goes_on() {
    let mut order = shell("exec sleep 1000");
    order.death_signal = DeathSignal::Off;
    let process = start(&order);
    let number = process.pid();
    let watched = process.exit_descriptor().try_clone_to_owned().unwrap();
    process.release();
    let mut ended = [PollFd::new(&watched, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(poll(&mut ended, Some(&at_once)).unwrap(), 0, "it runs");
    let number = Pid::from_raw(number.cast_signed()).unwrap();
    kill_process(number, Signal::KILL).unwrap();
    waitpid(Some(number), WaitOptions::empty()).unwrap();
}
