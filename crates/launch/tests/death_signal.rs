//! What a process gets from its starter and how it ends with it.
//!
//! This test has a main of its own for two reasons: it starts itself again in other roles, and it
//! has one thread only, as a node has, so that the way of starting without a fork is taken.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use sapwood_launch::{
    DeathSignal, Exit, LIVENESS_PIPE_VARIABLE, LivenessPipe, Local, Order, Process,
    STARTER_VARIABLE, STDERR_VARIABLE, Signal, arrange_death_signal, hold_liveness_pipe,
    take_over_stderr,
};

/// How long anything may take before it counts as hung.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("role:starter-of-sleep") => start_and_wait(&sleep_order()),
        Some("role:starter-of-bound") => start_and_wait(&bound_order()),
        Some("role:starter-of-free") => start_free(),
        Some("role:starter-of-free-with-a-thread") => {
            std::thread::spawn(std::thread::park);
            start_free();
        }
        Some("role:bound") => run_bound(),
        Some("role:free") => run_free(),
        Some("role:holder") => hold(),
        Some("role:starter-of-holder") => start_holder(),
        Some("role:taker") => println!("{}", take_over_stderr()),
        Some("role:lister") => list_descriptors(),
        _ => run_tests(),
    }
}

fn run_tests() {
    let tests: [(&str, fn()); 10] = [
        ("a_foreign_program_dies_with_its_starter", a_foreign_program_dies_with_its_starter),
        ("an_own_program_dies_with_its_starter", an_own_program_dies_with_its_starter),
        ("an_own_program_whose_starter_is_gone_ends", an_own_program_whose_starter_is_gone_ends),
        ("the_bond_is_not_passed_on", the_bond_is_not_passed_on),
        ("only_ordered_descriptors_are_inherited", only_ordered_descriptors_are_inherited),
        ("an_inherited_descriptor_works", an_inherited_descriptor_works),
        (
            "a_free_program_outlives_the_pipe_to_its_starter",
            a_free_program_outlives_the_pipe_to_its_starter,
        ),
        ("only_the_starters_pipe_is_exchanged", only_the_starters_pipe_is_exchanged),
        (
            "who_holds_a_liveness_pipe_ends_with_it_and_not_with_its_starter",
            who_holds_a_liveness_pipe_ends_with_it_and_not_with_its_starter,
        ),
        (
            "who_comes_too_late_for_a_liveness_pipe_ends",
            who_comes_too_late_for_a_liveness_pipe_ends,
        ),
    ];
    for (name, test) in tests {
        print!("test {name} ... ");
        std::io::stdout().flush().unwrap();
        test();
        println!("ok");
    }
}

// The roles.

fn sleep_order() -> Order<'static> {
    let mut order = Order::new("sleep");
    order.arguments = vec!["1000".into()];
    order
}

fn bound_order() -> Order<'static> {
    let mut order = Order::new(std::env::current_exe().unwrap());
    order.arguments = vec!["role:bound".into()];
    order.death_signal = DeathSignal::ByProgram;
    order.capture_stdout = true;
    order
}

/// Starts the order, prints the number of its process once that is known to be bound, and waits
/// to be killed.
fn start_and_wait(order: &Order<'_>) {
    let mut process = Local::new().start(order).unwrap();
    if order.capture_stdout {
        let mut text = Vec::new();
        while !text.ends_with(b"\n") {
            wait_readable(process.stdout().unwrap());
            process.take_stdout(&mut text).unwrap();
            assert!(!process.stdout_ended(), "it ended early: {}", process.exit_report());
        }
    }
    println!("{}", process.pid());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn run_bound() {
    if let Err(error) = arrange_death_signal() {
        eprintln!("{error}");
        std::process::exit(125);
    }
    println!("bound");
    loop {
        std::thread::park();
    }
}

/// Starts a process that is to outlive this one, hears it until it has taken over our standard
/// error, and waits to be killed.
fn start_free() {
    let mut order = Order::new(std::env::current_exe().unwrap());
    order.arguments = vec!["role:free".into()];
    order.death_signal = DeathSignal::Off;
    order.hand_stderr = true;
    order.inherit_stdin = true;
    let mut process = Local::new().start(&order).unwrap();
    let mut heard = Vec::new();
    while !process.stderr_ended() {
        wait_readable(process.stderr());
        process.take_stderr(&mut heard).unwrap();
    }
    assert_eq!(heard, b"to the starter\n");
    println!("taken over");
    loop {
        std::thread::park();
    }
}

/// Speaks before and after it has taken over standard error, and once more when it is told to.
fn run_free() {
    eprintln!("to the starter");
    assert!(take_over_stderr() && !take_over_stderr(), "it is done once");
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert_eq!(open, 4, "the standard streams and the listing are open, nothing else");
    eprintln!("to the world");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    eprintln!("after the starter's end");
}

/// Holds the liveness pipe and does nothing else any more, not even look at it.
fn hold() {
    let held = match hold_liveness_pipe() {
        Ok(held) => held,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(125);
        }
    };
    let again = hold_liveness_pipe().unwrap();
    assert_eq!(again.map(AsRawFd::as_raw_fd), held.map(AsRawFd::as_raw_fd), "it is held once");
    // Last: the end that the test brings about afterwards would hide a failed assertion.
    println!("{}", if held.is_some() { "held" } else { "none" });
    loop {
        std::hint::spin_loop();
    }
}

/// Holds the liveness pipe, starts another one that does, prints its number, and ends by itself.
fn start_holder() {
    let held = hold_liveness_pipe().unwrap().unwrap();
    let mut process = Local::new().start(&holder_order(held.as_fd())).unwrap();
    hear_held(&mut process);
    println!("{}", process.pid());
    process.release();
}

fn holder_order(line: BorrowedFd<'_>) -> Order<'_> {
    let mut order = Order::new(std::env::current_exe().unwrap());
    order.arguments = vec!["role:holder".into()];
    order.death_signal = DeathSignal::Off;
    order.inherit = vec![(LIVENESS_PIPE_VARIABLE.into(), line)];
    order.capture_stdout = true;
    order
}

/// Waits until a holder says that it is tied.
fn hear_held(process: &mut Process) {
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        wait_readable(process.stdout().unwrap());
        process.take_stdout(&mut text).unwrap();
        assert!(!process.stdout_ended(), "it ended early: {}", process.exit_report());
    }
    assert_eq!(text, b"held\n");
}

/// Prints what was handed over and then each open descriptor, but for the one that lists them.
fn list_descriptors() {
    println!("{}", std::env::var("HANDED").unwrap());
    let listing = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers: Vec<_> = listing.map(|entry| entry.unwrap().path()).collect();
    for path in numbers.iter().filter(|path| path.read_link().is_ok()) {
        println!("{}", path.file_name().unwrap().to_str().unwrap());
    }
}

// The tests.

fn a_foreign_program_dies_with_its_starter() {
    assert_child_dies_with("role:starter-of-sleep");
}

fn an_own_program_dies_with_its_starter() {
    assert_child_dies_with("role:starter-of-bound");
}

fn an_own_program_whose_starter_is_gone_ends() {
    let mut order = bound_order();
    // A process that is not the parent stands for one that was and has ended.
    order.environment = vec![(STARTER_VARIABLE.into(), "1".into())];
    let mut process = Local::new().start(&order).unwrap();
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(125)));
    assert!(
        process.exit_report().contains("has ended: ending as well"),
        "{}",
        process.exit_report()
    );
    order.environment = vec![(STARTER_VARIABLE.into(), "-4x".into())];
    let mut process = Local::new().start(&order).unwrap();
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(125)));
    assert!(process.exit_report().contains("no process number"), "{}", process.exit_report());
}

fn the_bond_is_not_passed_on() {
    let mut order = Order::new("sh");
    order.arguments = vec!["-c".into(), format!("echo \"<${STARTER_VARIABLE}>\"").into()];
    order.capture_stdout = true;
    order.death_signal = DeathSignal::ByProgram;
    assert_eq!(output(&order), format!("<{}>\n", getpid().as_raw_nonzero()));
    for death_signal in [DeathSignal::BeforeExec, DeathSignal::Off] {
        order.death_signal = death_signal;
        assert_eq!(output(&order), "<>\n");
    }
}

fn only_ordered_descriptors_are_inherited() {
    let (own, _writer) = std::io::pipe().unwrap();
    let (handed, _writer) = std::io::pipe().unwrap();
    let (stray, _writer) = std::io::pipe().unwrap();
    for has_stray in [false, true] {
        let flags = if has_stray { FdFlags::empty() } else { FdFlags::CLOEXEC };
        fcntl_setfd(&stray, flags).unwrap();
        for death_signal in [DeathSignal::BeforeExec, DeathSignal::ByProgram, DeathSignal::Off] {
            let mut order = Order::new(std::env::current_exe().unwrap());
            order.arguments = vec!["role:lister".into()];
            order.inherit = vec![("HANDED".into(), handed.as_fd())];
            order.capture_stdout = true;
            order.death_signal = death_signal;
            let text = output(&order);
            let mut lines = text.lines();
            let number = lines.next().unwrap().strip_prefix("fd:").unwrap();
            let mut listed: Vec<&str> = lines.collect();
            listed.sort_by_key(|number| number.parse::<i32>().unwrap());
            assert_eq!(listed, ["0", "1", "2", number], "{death_signal:?}, stray {has_stray}");
            assert_eq!(fcntl_getfd(&stray).unwrap(), flags, "the start leaves it as it was");
        }
    }
    fcntl_setfd(&stray, FdFlags::CLOEXEC).unwrap();
    drop(own);
}

fn an_inherited_descriptor_works() {
    for death_signal in [DeathSignal::BeforeExec, DeathSignal::ByProgram] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"the key\n").unwrap();
        drop(writer);
        let mut order = Order::new("sh");
        // By path, since some shells take no number above 9 after "<&".
        let script = "cat <\"/proc/self/fd/${KEY#fd:}\"";
        order.arguments = vec!["-c".into(), script.into()];
        order.inherit = vec![("KEY".into(), reader.as_fd())];
        order.capture_stdout = true;
        order.death_signal = death_signal;
        assert_eq!(output(&order), "the key\n");
    }
}

fn a_free_program_outlives_the_pipe_to_its_starter() {
    for role in ["role:starter-of-free", "role:starter-of-free-with-a-thread"] {
        let mut starter = Command::new(std::env::current_exe().unwrap())
            .arg(role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = starter.stdout.take().unwrap();
        wait_readable(&stdout);
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_eq!(line, "taken over\n");
        starter.kill().unwrap();
        let mut told = starter.stdin.take().unwrap();
        starter.wait().unwrap();
        told.write_all(b"speak\n").unwrap();
        let mut words = String::new();
        let mut stderr = starter.stderr.take().unwrap();
        wait_readable(&stderr);
        stderr.read_to_string(&mut words).unwrap();
        assert_eq!(words, "to the world\nafter the starter's end\n");
    }
}

fn only_the_starters_pipe_is_exchanged() {
    let own = std::env::current_exe().unwrap();
    let redirected = format!("exec '{}' role:taker 2>/dev/null", own.display());
    let script = format!("echo \"<${STDERR_VARIABLE}>\"");
    for (hand_stderr, script, expected) in
        [(true, &redirected, "false\n"), (false, &redirected, "false\n"), (false, &script, "<>\n")]
    {
        let mut order = Order::new("sh");
        order.arguments = vec!["-c".into(), script.into()];
        order.capture_stdout = true;
        order.hand_stderr = hand_stderr;
        assert_eq!(output(&order), expected);
    }
    let mut order = Order::new(own);
    order.arguments = vec!["role:taker".into()];
    order.capture_stdout = true;
    for hand_stderr in [true, false] {
        order.hand_stderr = hand_stderr;
        assert_eq!(output(&order), format!("{hand_stderr}\n"));
    }
}

fn who_holds_a_liveness_pipe_ends_with_it_and_not_with_its_starter() {
    let (liveness_pipe, line) = LivenessPipe::new().unwrap();
    let mut child = Local::new().start(&holder_order(line.as_fd())).unwrap();
    hear_held(&mut child);
    let mut order = holder_order(line.as_fd());
    order.arguments = vec!["role:starter-of-holder".into()];
    // Its group is killed when it ends, and the process that it starts has one of its own.
    let number: i32 = output(&order).trim().parse().unwrap();
    drop(order);
    drop(line);
    let grandchild = pidfd_open(Pid::from_raw(number).unwrap(), PidfdFlags::empty()).unwrap();
    child.kill(Signal::STOP).unwrap();
    assert!(!liveness_pipe.is_free() && !is_readable(&grandchild), "both run");
    drop(liveness_pipe);
    assert_eq!(child.wait(DEADLINE), Some(Exit::Signal(Signal::KILL.as_raw())));
    wait_readable(&grandchild);
}

fn who_comes_too_late_for_a_liveness_pipe_ends() {
    let (liveness_pipe, line) = LivenessPipe::new().unwrap();
    drop(liveness_pipe);
    let mut process = Local::new().start(&holder_order(line.as_fd())).unwrap();
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(125)));
    assert!(
        process.exit_report().contains("has ended: ending as well"),
        "{}",
        process.exit_report()
    );
}

/// Starts a starter, kills it without warning, and waits for the end of what it started.
fn assert_child_dies_with(role: &str) {
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .arg(role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = starter.stdout.take().unwrap();
    wait_readable(&stdout);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let number: i32 = line.trim().parse().unwrap();
    let child = pidfd_open(Pid::from_raw(number).unwrap(), PidfdFlags::empty()).unwrap();
    assert!(!is_readable(&child), "it runs until its starter ends");
    starter.kill().unwrap();
    starter.wait().unwrap();
    wait_readable(&child);
}

fn output(order: &Order<'_>) -> String {
    let mut process = Local::new().start(order).unwrap();
    assert_eq!(process.wait(DEADLINE), Some(Exit::Status(0)), "{}", process.exit_report());
    let mut text = Vec::new();
    process.take_stdout(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Of a process: whether it has ended.
fn is_readable(descriptor: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&at_once)).unwrap() == 1
}

fn wait_readable(descriptor: impl AsFd) {
    let descriptor: OwnedFd = descriptor.as_fd().try_clone_to_owned().unwrap();
    let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
    let count = poll(&mut watched, Some(&Timespec::try_from(DEADLINE).unwrap())).unwrap();
    assert_eq!(count, 1, "nothing came on descriptor {}", descriptor.as_raw_fd());
}
