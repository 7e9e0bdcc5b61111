//! How a tree that stays up ends: by itself where no command finds it any more, and beside a
//! command that is just beginning.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Child, Output};
use std::time::Instant;

use rustix::process::{Signal, kill_process};

use crate::cli::user::{User, pid_of};
use crate::cli::{LIMIT, clean_command, code, json, read_until, text, wait_for_end, wait_until};

/// The processes of a tree that is to end by itself.
struct TreeProcesses {
    pids: Vec<u32>,
}

impl TreeProcesses {
    /// All that answer to the only tree of a user.
    fn of(user: &User) -> Self {
        let asked = ["status", "--network", "warm", "--json", "--timeout", "60s"];
        let status = json(&user.say(&asked));
        let nodes = status["nodes"].as_array().unwrap();
        let pid = |node: &serde_json::Value| u32::try_from(node["pid"].as_u64().unwrap()).unwrap();
        Self { pids: nodes.iter().map(pid).collect() }
    }
}

impl Drop for TreeProcesses {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for &pid in &self.pids {
                // Some may have ended before the test failed.
                let _ = kill_process(pid_of(pid), Signal::KILL);
            }
        }
    }
}

#[test]
fn a_tree_without_an_idle_time_ends_when_its_runtime_folder_is_removed() {
    let user = User::new();
    let daemon = user.up(&["-w", "n[0-3]", "-f", "2", "--idle", "0"]);
    let tree = TreeProcesses::of(&user);
    assert!(tree.pids.len() >= 5 && tree.pids.contains(&daemon), "{:?}", tree.pids);
    // As a log-out does. No command is to look for the tree then: without the folder it would look
    // where the trees of the tests' own user are.
    std::fs::remove_dir_all(user.folder.path()).unwrap();
    for &pid in &tree.pids {
        wait_for_end(pid);
    }
}

#[test]
fn down_all_names_a_tree_that_does_not_answer_and_ends_the_others() {
    let user = User::new();
    let stopped = user.up(&["--name", "deaf", "-w", "n0"]);
    user.up(&["--name", "other", "-w", "n1"]);
    kill_process(pid_of(stopped), Signal::STOP).unwrap();
    let [named, all] = [["down", "deaf"], ["down", "--all"]].map(|words| user.say(&words));
    kill_process(pid_of(stopped), Signal::CONT).unwrap();
    assert!(text(&named.stderr).contains(&format!("process {stopped}, is stopped")));
    assert_eq!((code(&named), text(&named.stdout)), (Some(124), ""));
    assert_eq!(text(&all.stderr), text(&named.stderr));
    assert_eq!((code(&all), text(&all.stdout)), (Some(124), "tree 'other' has ended: n1\n"));
    let rest = user.say(&["down", "--all"]);
    assert_eq!((code(&rest), text(&rest.stdout)), (Some(0), "tree 'deaf' has ended: n0\n"));
    wait_for_end(stopped);
}

#[test]
fn a_tree_whose_socket_was_replaced_is_told_in_one_wording() {
    let user = User::new();
    let daemon = user.up(&["-w", "n0"]);
    let socket = user.folder.path().join("sapwood/warm.tree");
    let kept = user.folder.path().join("kept");
    // It would end by itself after some time.
    kill_process(pid_of(daemon), Signal::STOP).unwrap();
    std::fs::rename(&socket, &kept).unwrap();
    std::fs::write(&socket, "").unwrap();
    let asked = [&["run", "--network", "warm", "true"][..], &["down", "warm"], &["down", "--all"]];
    let said = asked.map(|words| user.say(words));
    let other = user.run(&["-w", "n0", "true"]);
    std::fs::rename(&kept, &socket).unwrap();
    kill_process(pid_of(daemon), Signal::CONT).unwrap();
    let place = socket.display();
    let line = format!(
        "sapwood: tree 'warm' cannot be reached: {place} is not its control socket any more; \
         'kill {daemon}' ends its daemon and the tree"
    );
    for (words, output) in asked.iter().zip(&said) {
        assert_eq!(text(&output.stderr), format!("{line}\n"), "{words:?}");
        assert_eq!((code(output), text(&output.stdout)), (Some(125), ""), "{words:?}");
    }
    assert_eq!(text(&other.stderr), format!("{line}; it is ignored\n"));
    assert_eq!(code(&other), Some(0), "it has a tree of its own");
    assert_eq!(code(&user.say(&["down"])), Some(0));
    wait_for_end(daemon);
}

#[test]
fn a_tree_that_cannot_be_reached_is_named_and_keeps_no_command_from_the_others() {
    let user = User::new();
    let daemon = user.up(&["-w", "n0"]);
    let socket = user.folder.path().join("sapwood/astray.tree");
    // No folder has this name.
    std::os::unix::fs::symlink("/dev/null/x", &socket).unwrap();
    let told = format!(
        "sapwood: tree 'astray' cannot be reached: cannot connect to unix:{}: ",
        socket.display()
    );
    let [other, all] = [&["run", "-w", "n0", "true"][..], &["down", "--all"]].map(|w| user.say(w));
    for output in [&other, &all] {
        let errors = text(&output.stderr);
        assert!(errors.starts_with(&told) && errors.lines().count() == 1, "{errors}");
    }
    assert_eq!(code(&other), Some(0), "{other:?}");
    assert_eq!((code(&all), text(&all.stdout)), (Some(125), "tree 'warm' has ended: n0\n"));
    wait_for_end(daemon);
}

/// When the second of two commands begins.
#[derive(Clone, Copy, Debug)]
enum Begins {
    /// At once.
    WithTheFirst,
    /// When the first one has opened this number of files and sockets.
    AtOpened(usize),
    /// When the daemon of the tree has taken the first one's connection.
    AtConnection,
    /// When a host runs what it was told.
    AtCommand,
}

/// Two commands at one tree: the first one, and when the second one begins.
#[derive(Clone, Copy, Debug)]
enum Meeting {
    RunThenDown(Begins),
    DownThenRun(Begins),
}

/// Moments while `run` reaches its tree and begins its command.
fn moments_of_run() -> Vec<Begins> {
    use Begins::{AtCommand, AtConnection, AtOpened, WithTheFirst};
    let mut moments = vec![WithTheFirst, AtConnection, AtCommand];
    moments.extend((4..=11).map(AtOpened));
    moments
}

fn meetings() -> Vec<Meeting> {
    use Begins::{AtConnection, AtOpened, WithTheFirst};
    let of_run = moments_of_run();
    let mut of_down = vec![WithTheFirst, AtConnection];
    of_down.extend((4..=8).map(AtOpened));
    let run_first = of_run.into_iter().map(Meeting::RunThenDown);
    run_first.chain(of_down.into_iter().map(Meeting::DownThenRun)).collect()
}

/// A command in the background, which does not outlive a test that fails.
struct Background {
    child: Option<Child>,
}

impl Background {
    fn begin(user: &User, arguments: &[&str]) -> Self {
        Self { child: Some(user.command(arguments).spawn().unwrap()) }
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    fn output(mut self) -> Output {
        wait_until("a command does not end", || self.has_ended());
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How much a process has open; nothing of one that has ended.
fn opened(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Both commands at a tree that has just been started.
struct Encounter<'a> {
    user: &'a User,
    daemon: u32,
    /// What the daemon has open without a command.
    opened: usize,
    /// Is there when a host has begun the command.
    mark: &'a Path,
}

impl Encounter<'_> {
    fn run(&self) -> Background {
        let script = format!(": >{}; echo here", self.mark.display());
        Background::begin(self.user, &["run", "-b", "-w", "n[0-1]", &script])
    }

    fn down(&self) -> Background {
        Background::begin(self.user, &["down"])
    }

    fn has_come(&self, begins: Begins, first: &Background) -> bool {
        match begins {
            Begins::WithTheFirst => true,
            Begins::AtOpened(count) => opened(first.pid()) >= count,
            Begins::AtConnection => opened(self.daemon) > self.opened,
            Begins::AtCommand => self.mark.exists(),
        }
    }

    /// Waits for the moment, which has passed if the first one has ended.
    fn wait(&self, first: &mut Background, begins: Begins) {
        let until = Instant::now() + LIMIT;
        // Without a pause: the moments are less than a millisecond apart.
        while !self.has_come(begins, first) && !first.has_ended() {
            assert!(Instant::now() < until, "{begins:?} has not come");
            std::thread::yield_now();
        }
    }

    /// Waits for the moment, or for the command of `run`, after which it may not come any more.
    fn wait_unless_begun(&self, run: &Background, begins: Begins) {
        let until = Instant::now() + LIMIT;
        while !self.has_come(begins, run) && !self.mark.exists() {
            assert!(Instant::now() < until, "{begins:?} has not come");
            std::thread::yield_now();
        }
    }

    /// Gives what `run` and what `down` came to.
    fn meet(&self, meeting: Meeting) -> Ends {
        let (run, down) = match meeting {
            Meeting::RunThenDown(begins) => {
                let mut run = self.run();
                self.wait(&mut run, begins);
                (run, self.down())
            }
            Meeting::DownThenRun(begins) => {
                let mut down = self.down();
                self.wait(&mut down, begins);
                (self.run(), down)
            }
        };
        Ends { run: run.output(), down: down.output() }
    }
}

struct Ends {
    run: Output,
    down: Output,
}

impl Ends {
    /// Either all hosts have told how they ended, in this tree or in one that `run` has started, or
    /// the missing ones are named.
    fn assert_promised(&self, meeting: Meeting) {
        let [said, errors] = [&self.run.stdout, &self.run.stderr].map(|bytes| text(bytes));
        let names_missing = |line: &str| line.starts_with("sapwood: n") && line.contains("missing");
        match code(&self.run) {
            Some(0) => assert!(
                said.contains("n[0-1] (2)\n") && said.ends_with("here\n"),
                "{meeting:?}: {said}{errors}"
            ),
            Some(255) => assert!(errors.lines().any(names_missing), "{meeting:?}: {errors}"),
            other => panic!("{meeting:?}: {other:?}: {said}{errors}"),
        }
        let errors = text(&self.down.stderr);
        assert_eq!(code(&self.down), Some(0), "{meeting:?}: {errors}");
    }
}

#[test]
fn a_run_that_begins_while_its_tree_ends_has_all_hosts_or_names_the_missing() {
    let user = User::new();
    // Which moment a meeting hits depends on the machine, and either end is right. Many are less
    // than a millisecond apart, so that each is tried by its neighbours, too.
    // `cli_up::a_running_command_ends_with_its_tree` has one that always hits its moment.
    for (number, meeting) in meetings().into_iter().enumerate() {
        let daemon = user.up(&["-w", "n[0-1]"]);
        let mark = user.folder.path().join(format!("begun-{number}"));
        let encounter = Encounter { user: &user, daemon, opened: opened(daemon), mark: &mark };
        encounter.meet(meeting).assert_promised(meeting);
        wait_for_end(daemon);
    }
}

#[test]
fn no_process_of_a_command_is_left_in_a_tree_whenever_its_caller_is_killed() {
    let user = User::new();
    let daemon = user.up(&["-w", "n[0-1]"]);
    let alone = opened(daemon);
    let pipe = user.folder.path().join("pipe");
    assert!(clean_command("mkfifo").arg(&pipe).status().unwrap().success());
    for begins in moments_of_run() {
        let mark = user.folder.path().join(format!("begun-{begins:?}"));
        // Each process of the command holds the pipe open.
        let script =
            format!("exec 3>{}; sleep 1000 & : >'{}'; wait", pipe.display(), mark.display());
        // With a writer the opening for reading waits for none.
        let writer = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let mut reader = File::open(&pipe).unwrap();
        let encounter = Encounter { user: &user, daemon, opened: alone, mark: &mark };
        let caller = Background::begin(&user, &["run", "-w", "n[0-1]", &script]);
        encounter.wait_unless_begun(&caller, begins);
        // Dropping it kills it.
        drop(caller);
        // Hosts that have carried out the next command start none of the killed caller any more.
        assert_eq!(code(&user.run(&["-w", "n[0-1]", "true"])), Some(0), "{begins:?}");
        drop(writer);
        assert_eq!(read_until(&mut reader, |_| false), "", "{begins:?}");
    }
}

#[test]
fn what_a_command_leaves_behind_in_a_tree_goes_on_when_the_tree_has_ended() {
    let user = User::new();
    user.up(&["-w", "n[0-1]"]);
    let tree = TreeProcesses::of(&user);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // It goes on until a file is there.
    let script = format!(
        "sh -c 'while ! test -e {path}/go-on && test -d {path}; do sleep 0.02; done; \
         echo >{path}/$SAPWOOD_RANK' >/dev/null 2>&1 </dev/null & echo started"
    );
    let output = user.run(&["-w", "n[0-1]", &script]);
    assert_eq!((code(&output), text(&output.stderr)), (Some(0), ""));
    assert_eq!(text(&output.stdout).matches(": started\n").count(), 2);
    assert_eq!(code(&user.say(&["down"])), Some(0));
    for &pid in &tree.pids {
        wait_for_end(pid);
    }
    std::fs::write(folder.path().join("go-on"), "").unwrap();
    for rank in ["0", "1"] {
        wait_until("what was left behind", || folder.path().join(rank).exists());
    }
}
