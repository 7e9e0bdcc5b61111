//! The front-end is gone: the tree ends within a stated time, or waits for another one that proves
//! the key.

use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    ENDING, HANG, Links, MARK_VARIABLE, Seen, back_ends, builder, clean_command, marked, new_mark,
    sapwood, trial, wait_until, wait_until_gone,
};
use sapwood::{Error, Network, Recovery};

/// A front-end in a process of its own that may be replaced, and its tree.
struct Scene {
    front_end: Child,
    lines: BufReader<ChildStdout>,
    tree: Vec<Seen>,
    folder: tempfile::TempDir,
}

impl Scene {
    fn of(shape: &str, transport: &str, wait: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = new_mark();
        let mut front_end = clean_command(trial())
            .args(["resumable", shape, transport])
            .arg(folder.path().join("state"))
            .arg(wait.as_millis().to_string())
            .env("SAPWOOD_NODE", sapwood())
            .env(MARK_VARIABLE, &mark)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(front_end.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut tree = marked(&mark);
        tree.retain(|seen| seen.pid != front_end.id());
        Self { front_end, lines, tree, folder }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn kill_front_end(&mut self) {
        self.front_end.kill().unwrap();
        self.front_end.wait().unwrap();
    }

    /// Another front-end comes, asks all, and ends the network.
    fn resume(&self) -> Output {
        clean_command(trial()).arg("resume").arg(self.state()).output().unwrap()
    }
}

fn says(output: &Output, line: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().collect::<Vec<_>>(), [line; 15], "{errors}");
}

#[test]
fn a_front_end_that_was_restarted_has_everybody_back() {
    for (shape, transport, line) in
        [("2x2", "unix", "4 6"), ("2x2x2", "tcp", "8 28"), ("3", "unix", "3 3")]
    {
        let mut scene = Scene::of(shape, transport, HANG);
        scene.kill_front_end();
        let begin = Instant::now();
        says(&scene.resume(), line);
        println!("{shape} {transport}: resumed, asked and closed within {:?}", begin.elapsed());
        wait_until_gone(&scene.tree);
        assert!(!scene.state().exists(), "the file goes with the network");
    }
}

#[test]
fn a_tree_that_is_struck_without_its_front_end_is_whole_again() {
    let mut scene = Scene::of("2x2x2", "unix", HANG);
    scene.kill_front_end();
    // One below the root, and one below the other.
    for rank in [9, 13] {
        crate::support::of_rank(&scene.tree, rank).kill();
    }
    says(&scene.resume(), "8 28");
    wait_until_gone(&scene.tree);
}

#[test]
fn a_front_end_may_be_replaced_more_than_once() {
    let mut scene = Scene::of("2x2", "unix", HANG);
    scene.kill_front_end();
    for _ in 0..2 {
        let mut next = clean_command(trial())
            .args(["resume-and-wait".as_ref(), scene.state().as_os_str()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(next.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "4 6\n");
        next.kill().unwrap();
        next.wait().unwrap();
    }
    says(&scene.resume(), "4 6");
    wait_until_gone(&scene.tree);
}

/// A process that has joined the network, and a back-end that has attached to it.
fn joined_of(scene: &mut Scene) -> [Child; 2] {
    let attach_file = scene.folder.path().join("state-attach");
    let mut start = |program: &Path, arguments: &[&str], told: &str| {
        let child = clean_command(program).args(arguments).arg(&attach_file).spawn().unwrap();
        let mut line = String::new();
        scene.lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), told);
        scene.tree.extend(Seen::look(child.id()));
        child
    };
    let joined = start(sapwood(), &["node", "--join"], "offered");
    [joined, start(trial(), &["back-end", "file"], "joined")]
}

#[test]
fn dynamic_members_come_back_to_another_front_end() {
    let mut scene = Scene::of("2x2x2", "unix", HANG);
    let children = joined_of(&mut scene);
    scene.kill_front_end();
    let mut network = Network::resume(&scene.state(), HANG).unwrap();
    network.wait_for_back_ends(9, HANG).unwrap();
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up("sum").open().unwrap();
    stream.broadcast(crate::support::tags::RANK, ()).unwrap();
    assert_eq!(stream.recv_timeout(HANG).unwrap().contributors, *everyone.ranks());
    drop(stream);
    network.close().unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    wait_until_gone(&scene.tree);
}

#[test]
fn dynamic_members_end_when_no_front_end_comes() {
    let mut scene = Scene::of("2x2x2", "unix", Duration::from_millis(1_000));
    let children = joined_of(&mut scene);
    scene.kill_front_end();
    wait_until_gone(&scene.tree);
    for mut child in children {
        child.wait().unwrap();
    }
}

#[test]
fn nothing_is_left_when_no_front_end_comes() {
    for (shape, wait) in [("2x2", 600), ("2x2x2", 2_000)] {
        let mut scene = Scene::of(shape, "unix", Duration::from_millis(wait));
        scene.kill_front_end();
        let took = wait_until_gone(&scene.tree);
        println!("{shape}: nothing left after {took:?}, of a wait of {wait} ms");
        assert!(matches!(
            Network::resume(&scene.state(), Duration::from_millis(100)),
            Err(Error::Timeout { .. })
        ));
    }
}

#[test]
fn a_stranger_at_the_address_is_not_followed() {
    let mut scene = Scene::of("2x2", "unix", Duration::from_secs(20));
    let state = std::fs::read_to_string(scene.state()).unwrap();
    let name = state.lines().nth(3).unwrap().strip_prefix("unix:@").unwrap().to_owned();
    scene.kill_front_end();
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let stranger = UnixListener::bind_addr(&address).unwrap();
    // It takes connections and answers to none, or hangs up.
    let mut taken = Vec::new();
    for count in 0..6 {
        let (link, _) = stranger.accept().unwrap();
        if count % 2 == 0 {
            taken.push(link);
        }
    }
    let busy = Network::resume(&scene.state(), HANG).err().unwrap().to_string();
    assert!(busy.contains(&name), "{busy}");
    drop(taken);
    drop(stranger);
    says(&scene.resume(), "4 6");
    wait_until_gone(&scene.tree);
}

#[test]
fn a_network_that_ends_with_its_front_end_cannot_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    for recovery in [Recovery::default(), Recovery::off()] {
        let error = builder("2", Links::Unix)
            .back_end(back_ends(&new_mark(), &["serve"]))
            .recovery(recovery)
            .resumable(&path)
            .open()
            .err()
            .unwrap();
        assert!(error.to_string().contains("front_end_wait"), "{error}");
    }
    let error = Network::resume(Path::new("/nowhere/state"), HANG).err().unwrap();
    assert!(error.to_string().starts_with("/nowhere/state: "), "{error}");
}

#[test]
fn by_default_everything_ends_with_the_front_end() {
    for is_struck in [false, true] {
        let mark = new_mark();
        let mut front_end = clean_command(trial())
            .args(["front-end", "2x2x2", "wait", "serve"])
            .env("SAPWOOD_NODE", sapwood())
            .env(MARK_VARIABLE, &mark)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(front_end.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut tree = marked(&mark);
        tree.retain(|seen| seen.pid != front_end.id());
        assert_eq!(tree.len(), 14);
        if is_struck {
            let victim = crate::support::of_rank(&tree, 9).clone();
            victim.kill();
            wait_until("the victim gone", ENDING, || !victim.is_alive());
        }
        let begin = Instant::now();
        front_end.kill().unwrap();
        front_end.wait().unwrap();
        wait_until_gone(&tree);
        println!("struck before {is_struck}: nothing left after {:?}", begin.elapsed());
    }
}
