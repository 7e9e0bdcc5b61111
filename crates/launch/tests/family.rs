//! The children of one node: started, watched and ended together.

use std::path::Path;
use std::time::Duration;

use sapwood_launch::{Exit, Family, LaunchError, Local, Manner, Order};

/// How long anything may take before it counts as hung.
const DEADLINE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Order<'static> {
    let mut order = Order::new("/bin/sh");
    order.arguments = vec!["-c".into(), script.into()];
    order
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn each_member_departs_with_its_name_and_reason() {
    let mut family = Family::new();
    for name in 0..8 {
        family.start(name, &shell(&format!("echo I am {name} >&2; exit {name}"))).unwrap();
    }
    assert_eq!(family.len(), 8);
    let mut departed = family.wait_ended(DEADLINE);
    assert!(family.is_empty());
    departed.sort_by_key(|departed| departed.name);
    assert_eq!(departed.len(), 8);
    for (name, departed) in (0..8).zip(&departed) {
        assert_eq!(departed.name, name);
        assert_eq!(departed.exit, Exit::Status(i32::try_from(name).unwrap()));
        assert!(departed.exit_report.contains(&format!("I am {name}")), "{}", departed.exit_report);
        assert!(is_gone(departed.process.pid()), "no zombie is left");
    }
}

#[test]
fn several_starts_are_answered_in_turn_and_one_failure_stops_no_other() {
    let mut orders = [shell("exit 1"), shell("exit 2"), shell("exit 3")];
    orders[1].program = "/nowhere/worker".into();
    let mut started = Local::new().start_all(&orders);
    assert_eq!(started.len(), 3);
    assert!(matches!(started[1], Err(LaunchError::MissingProgram { .. })));
    for (index, status) in [(0, 1), (2, 3)] {
        let exit = started[index].as_mut().unwrap().wait(DEADLINE);
        assert_eq!(exit, Some(Exit::Status(status)));
    }
}

#[test]
fn a_family_is_ended_in_order_and_the_stubborn_are_killed() {
    let mut family = Family::new();
    let willing = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    for (name, script) in [(1, willing), (2, stubborn)] {
        let mut order = shell(script);
        order.capture_stdout = true;
        let process = family.start(name, &order).unwrap();
        // Only a process that has set its trap shows whether it is honoured.
        let mut text = Vec::new();
        while text.is_empty() {
            let watched = rustix::event::PollFd::from_borrowed_fd(
                process.stdout().unwrap(),
                rustix::event::PollFlags::IN,
            );
            let deadline = rustix::event::Timespec::try_from(DEADLINE).unwrap();
            assert_eq!(rustix::event::poll(&mut [watched], Some(&deadline)).unwrap(), 1);
            process.take_stdout(&mut text).unwrap();
        }
    }
    // The clock here is the test's own: the family only ever hears what time it is.
    let seconds = Duration::from_secs;
    family.end(seconds(100), seconds(2), Manner::Terminate);
    assert_eq!(family.step_ending(seconds(100)), Some(seconds(102)));
    let first = family.member(1).unwrap().wait(DEADLINE);
    assert_eq!(first, Some(Exit::Status(5)));
    let departed = family.take_ended();
    assert_eq!(departed.len(), 1);
    assert_eq!(departed[0].name, 1);
    assert!(matches!(
        family.start(3, &shell("true")),
        Err(LaunchError::ApiMisuse { rule: "a family that is being ended starts no process" })
    ));
    assert_eq!(family.step_ending(seconds(101)), Some(seconds(102)));
    assert_eq!(family.step_ending(seconds(102)), None);
    let departed = family.wait_ended(DEADLINE);
    assert_eq!(departed.len(), 1);
    assert_eq!(departed[0].exit, Exit::Signal(9));
    assert!(family.is_empty() && family.step_ending(seconds(103)).is_none());
}

#[test]
fn who_was_told_by_a_closed_pipe_needs_no_signal() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut order = shell("read line <\"/proc/self/fd/${LINK#fd:}\"; exit 6");
    order.inherit = vec![("LINK".into(), std::os::fd::AsFd::as_fd(&reader))];
    let mut family = Family::new();
    family.start(0, &order).unwrap();
    assert!(family.take_ended().is_empty());
    drop(writer);
    let departed = family.end_and_wait(DEADLINE, Manner::Told);
    assert_eq!(departed[0].exit, Exit::Status(6));
}

#[test]
fn a_talkative_member_does_not_hold_up_the_end() {
    let mut family = Family::new();
    let mut order = shell(
        "i=0; while [ $i -lt 4000 ]; do echo 'to both ends ....................'; \
         echo 'to both ends ....................' >&2; i=$((i+1)); done",
    );
    order.capture_stdout = true;
    family.start(0, &order).unwrap();
    let departed = family.wait_ended(DEADLINE);
    assert_eq!(departed[0].exit, Exit::Status(0));
}

#[test]
fn nothing_is_left_of_a_dropped_family() {
    let mut family = Family::new();
    let mut order = Order::new("sleep");
    order.arguments = vec!["1000".into()];
    for name in 0..5 {
        family.start(name, &order).unwrap();
    }
    assert!(matches!(family.start(4, &order), Err(LaunchError::ApiMisuse { .. })));
    let numbers: Vec<u32> = family.members().map(|(_, process)| process.pid()).collect();
    drop(family);
    assert!(numbers.into_iter().all(is_gone));
}
