//! Sessions and launch agents, with a shell on this machine in the place of a client to another
//! one.
//!
//! This test has a main of its own, because it starts itself as the launch agent and as what that
//! starts.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood_launch::{Greeting, LaunchAgentProgram, Launcher, Local, Order, Session, Task};
use sapwood_transport::{Accepted, Listener};

/// How long anything may take before it counts as hung.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() {
    match sapwood_launch::run_launch_agent() {
        Ok(Some(exit)) => std::process::exit(exit.code()),
        Ok(None) => {}
        Err(error) => {
            eprintln!("launch agent: {error}");
            std::process::exit(125);
        }
    }
    let tests: [(&str, fn()); 6] = [
        ("a_task_is_carried_out_and_its_end_is_told", a_task_is_carried_out_and_its_end_is_told),
        (
            "a_missing_program_is_copied_and_nothing_left",
            a_missing_program_is_copied_and_nothing_left,
        ),
        ("what_has_not_joined_ends_with_the_session", what_has_not_joined_ends_with_the_session),
        ("what_has_joined_ends_with_the_front_end", what_has_joined_ends_with_the_front_end),
        ("a_host_without_a_program_says_so", a_host_without_a_program_says_so),
        ("a_session_without_a_task_ends", a_session_without_a_task_ends),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

/// A client with a name of its own, as ssh is.
struct Shell;

impl Launcher for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn check_host(&self, _host: &str) -> Result<(), sapwood_launch::LaunchError> {
        Ok(())
    }

    fn client(&self, host: &str, command: &str) -> Order<'static> {
        Local.client(host, command)
    }

    fn is_worth_retrying(&self, _words: &str) -> bool {
        false
    }
}

fn own_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

fn agent_program(path: &Path) -> LaunchAgentProgram {
    LaunchAgentProgram::new(path, Vec::new(), Some(&own_program())).unwrap()
}

fn shell_task(script: &str) -> Task {
    Task {
        program: Some("/bin/sh".into()),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("GREETING".into(), "hello there".into())],
        secret: Some(("KEY".into(), [7; 32])),
        ..Task::default()
    }
}

/// Turns the loop until the launch agent has identified itself.
fn greet(session: &mut Session) -> Greeting {
    let begun = Instant::now();
    loop {
        let _ = session.write();
        let greeting = session.read();
        if let Some(greeting) = greeting {
            return greeting;
        }
        assert!(begun.elapsed() < DEADLINE, "{}", session.reason());
        let limit = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let mut watched = vec![PollFd::from_borrowed_fd(session.answers(), PollFlags::IN)];
        if let Some(stdin) = session.wants_write() {
            watched.push(PollFd::from_borrowed_fd(stdin, PollFlags::OUT));
        }
        poll(&mut watched, Some(&limit)).unwrap();
    }
}

fn begin(program: &LaunchAgentProgram, task: &Task) -> Session {
    let mut session = Session::start(&Shell, "localhost", program, task).unwrap();
    let greeting = greet(&mut session);
    assert_eq!(greeting.is_own_name, Some(true));
    session.accept();
    let _ = session.write();
    session
}

fn words(session: &mut Session) -> String {
    session.client().wait(DEADLINE).expect("it ends");
    session.client().stderr_tail()
}

/// How long a process sleeps, by which it is known: no other run of this test has this number.
fn seconds(index: u32) -> String {
    format!("{}", 1_000_000 + 10 * std::process::id() + index)
}

/// Waits until no process sleeps for this long.
fn assert_gone(seconds: &str) {
    let begun = Instant::now();
    while is_there(seconds) {
        assert!(begun.elapsed() < DEADLINE, "sleep {seconds} is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process sleeps for this long.
fn wait_until_there(seconds: &str) {
    let begun = Instant::now();
    while !is_there(seconds) {
        assert!(begun.elapsed() < DEADLINE, "sleep {seconds} has not begun");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process sleeps for this long.
fn is_there(seconds: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line == format!("sleep\0{seconds}\0")
    })
}

fn a_task_is_carried_out_and_its_end_is_told() {
    let script = "echo $GREETING; echo key: ${KEY%:*} >&2; exit 3";
    let mut session = begin(&agent_program(&own_program()), &shell_task(script));
    let said = words(&mut session);
    assert!(said.contains("hello there") && said.contains("key: fd"), "{said}");
    assert_eq!(session.client().try_wait().unwrap().code(), 3);
    assert!(session.reason().contains("hello there"), "{}", session.reason());
}

fn a_missing_program_is_copied_and_nothing_left() {
    let folder = tempfile::tempdir().unwrap();
    let program = agent_program(&folder.path().join("nothing").join("sapwood"));
    let mut session = begin(&program, &shell_task("echo $SAPWOOD_COPY"));
    assert!(session.is_copying());
    let said = words(&mut session);
    let copy = said.lines().find(|line| line.contains("/sapwood-")).expect("the folder");
    assert!(!Path::new(copy).exists(), "{copy}");
}

fn what_has_not_joined_ends_with_the_session() {
    let sleeping = seconds(0);
    let task = shell_task(&format!("exec sleep {sleeping}"));
    let mut session = begin(&agent_program(&own_program()), &task);
    wait_until_there(&sleeping);
    session.client().close_stdin();
    assert_gone(&sleeping);
    assert!(session.client().wait(DEADLINE).is_some());
}

fn what_has_joined_ends_with_the_front_end() {
    let mut listener = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let [first, second] = [1, 2].map(seconds);
    let mut task = shell_task(&format!("sleep {first} & exec sleep {second}"));
    task.front_end = vec![listener.address().to_string()];
    let mut session = begin(&agent_program(&own_program()), &task);
    wait_until_there(&first);
    wait_until_there(&second);
    session.joined();
    let _ = session.write();
    // The launch agent reads the byte before the end of the stream, which comes behind it.
    session.client().close_stdin();
    // From then on it asks for the front-end; the second time because the first was answered.
    for _ in 0..2 {
        let mut asked = [PollFd::new(&listener, PollFlags::IN)];
        let limit = Timespec::try_from(DEADLINE).unwrap();
        assert_eq!(poll(&mut asked, Some(&limit)), Ok(1), "{}", session.reason());
        while !matches!(listener.accept().unwrap(), Accepted::Empty) {}
    }
    assert!(is_there(&first) && is_there(&second), "{}", session.reason());
    drop(listener);
    assert_gone(&second);
    assert_gone(&first);
}

fn a_host_without_a_program_says_so() {
    let program = LaunchAgentProgram::new("/no/such/sapwood".as_ref(), Vec::new(), None).unwrap();
    let mut session = Session::start(&Shell, "h", &program, &shell_task("true")).unwrap();
    session.client().wait(DEADLINE);
    assert_eq!(session.reason(), "there is no program /no/such/sapwood here: install it");
}

fn a_session_without_a_task_ends() {
    let program = agent_program(&own_program());
    let mut session = Session::start(&Shell, "localhost", &program, &shell_task("true")).unwrap();
    greet(&mut session);
    session.client().close_stdin();
    assert_eq!(session.client().wait(DEADLINE).map(|exit| exit.code()), Some(125));
    assert!(session.reason().contains("has ended"), "{}", session.reason());
}
