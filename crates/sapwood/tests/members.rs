//! Members come and go on purpose while a tree of real processes works: no wave lacks a member of
//! its stream, and new streams have all present members.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    HANG, Links, MARK_VARIABLE, Seen, back_ends, builder, clean_command, new_mark, of_rank,
    sapwood, tags, tree_below_us, trial, wait_until_gone,
};
use rustix::process::{Pid, Signal, kill_process};
use sapwood::{AttachFile, BackEnd, Event, Network, RankSet, Stream};

/// Fan-outs 1, 2 and the default of 8.
const SHAPES: [&str; 3] = ["1x1", "2x2", "8"];

/// A network that takes dynamic members, with its attach file.
struct Scene {
    network: Network,
    tree: Vec<Seen>,
    folder: tempfile::TempDir,
    events: Vec<Event>,
}

impl Scene {
    fn of(shape: &str, links: Links) -> Self {
        let mark = new_mark();
        let network = builder(shape, links)
            .dynamic_members()
            .back_end(back_ends(&mark, &["serve"]))
            .open()
            .unwrap();
        let tree = tree_below_us(&mark);
        let folder = tempfile::tempdir().unwrap();
        let scene = Self { network, tree, folder, events: Vec::new() };
        scene.network.write_attach_file(&scene.file(), &scene.folder.path().join("key")).unwrap();
        scene
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("attach")
    }

    fn inner(&self) -> Vec<u32> {
        let topology = self.network.topology();
        let root = topology.root().rank();
        let ranks = topology.breadth_first().into_iter();
        ranks.filter(|&rank| rank != root && !topology.children(rank).is_empty()).collect()
    }

    /// Starts a program of ours with a mark, under the attach file.
    fn start(&mut self, program: &std::path::Path, arguments: &[&str]) -> Child {
        let child = clean_command(program)
            .args(arguments)
            .arg(self.file())
            .env(MARK_VARIABLE, new_mark())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        self.tree.extend(Seen::look(child.id()));
        child
    }

    fn dynamic_member(&mut self) -> Child {
        self.start(trial(), &["back-end", "file"])
    }

    /// A further communication process, once it is an attach point itself.
    fn join(&mut self) -> (Child, u32) {
        let before: BTreeSet<u32> = self.points();
        let child = self.start(sapwood(), &["node", "--join"]);
        let begin = Instant::now();
        while self.points() == before {
            assert!(begin.elapsed() < HANG);
            self.network.turn(Duration::from_millis(10)).unwrap();
        }
        let rank = *self.points().difference(&before).next().unwrap();
        (child, rank)
    }

    fn points(&self) -> BTreeSet<u32> {
        self.network.attach_points().iter().map(|point| point.parent).collect()
    }

    /// Waits for an event, and keeps all.
    fn await_event(&mut self, is_it: impl Fn(&Event) -> bool) {
        let begin = Instant::now();
        while !self.events.iter().any(&is_it) {
            assert!(begin.elapsed() < HANG, "{:?}", self.events);
            self.network.turn(Duration::from_millis(10)).unwrap();
            while let Some(event) = self.network.next_event() {
                self.events.push(event);
            }
        }
    }

    fn end(self, children: Vec<Child>) {
        self.network.close().unwrap();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        wait_until_gone(&self.tree);
    }
}

fn terminate(child: &Child) {
    kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
}

/// One request, and its answer, which all are in.
fn whole(stream: &mut Stream, everyone: &RankSet) {
    stream.broadcast(tags::RANK, ()).unwrap();
    let answer = stream.recv_timeout(HANG).unwrap();
    assert_eq!(&answer.contributors, everyone, "{:?}", answer.missing);
    let sum: i64 = everyone.iter().map(i64::from).sum();
    assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(sum));
}

#[test]
fn back_ends_come_and_leave_while_waves_run() {
    for (shape, links) in SHAPES.into_iter().zip([Links::Unix, Links::EncryptedTcp, Links::Tcp]) {
        let mut scene = Scene::of(shape, links);
        let members = scene.network.everyone().ranks().clone();
        let mut fixed = scene.network.stream(&scene.network.everyone()).up("sum").open().unwrap();
        let mut children = Vec::new();
        for count in 1..=6 {
            children.push(scene.dynamic_member());
            whole(&mut fixed, &members);
            let all = members.len() + count;
            scene.network.wait_for_back_ends(all, HANG).unwrap();
            whole(&mut fixed, &members);
        }
        let everyone = scene.network.everyone();
        assert_eq!(everyone.size(), members.len() + 6);
        let mut new = scene.network.stream(&everyone).up("sum").open().unwrap();
        whole(&mut new, everyone.ranks());
        whole(&mut fixed, &members);
        drop(new);
        drop(fixed);
        scene.end(children);
    }
}

#[test]
fn who_leaves_has_left_and_is_not_gone() {
    let mut scene = Scene::of("2x2", Links::Unix);
    let file = scene.file();
    let before = scene.network.everyone().ranks().clone();
    let member = std::thread::spawn(move || {
        let mut member = BackEnd::attach_by_file(&file, None).unwrap();
        let rank = member.rank();
        let stream = member.wait_for_stream(HANG).unwrap();
        for wave in 0..300_i64 {
            member.send(stream, tags::RANK, wave).unwrap();
        }
        member.leave().unwrap();
        rank
    });
    scene.network.wait_for_back_ends(before.len() + 1, HANG).unwrap();
    let everyone = scene.network.everyone();
    let only = everyone.ranks().difference(before.as_ref());
    let mut stream =
        scene.network.stream(&scene.network.communicator(only.iter())).up("sum").open().unwrap();
    for wave in 0..300_i64 {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.contributors, only);
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(wave));
    }
    scene.await_event(
        |event| matches!(event, Event::Lost { reason, .. } if reason.contains("has left")),
    );
    assert_eq!(member.join().unwrap(), only.as_ref().first().unwrap());
    drop(stream);
    scene.end(Vec::new());
}

#[test]
fn communication_processes_join_and_leave_while_waves_run() {
    for (shape, links) in SHAPES.into_iter().zip([Links::Unix, Links::Tcp, Links::EncryptedTcp]) {
        let mut scene = Scene::of(shape, links);
        let mut children = Vec::new();
        let (joined, rank) = scene.join();
        let key = scene.folder.path().join("key");
        // Only the new one is named now.
        let points = scene.network.attach_points();
        let point: Vec<_> = points.into_iter().filter(|point| point.parent == rank).collect();
        let is_encrypted = matches!(links, Links::EncryptedTcp);
        AttachFile::new(&point, is_encrypted, &key)
            .with_dynamic_members(|_| 0)
            .write(&scene.file())
            .unwrap();
        let planned = scene.network.everyone().size();
        for _ in 0..3 {
            children.push(scene.dynamic_member());
        }
        scene.network.wait_for_back_ends(planned + 3, HANG).unwrap();
        let everyone = scene.network.everyone();
        let dynamic =
            everyone.ranks().iter().filter(|&member| member > rank && member < rank + 256);
        assert_eq!(dynamic.count(), 3, "they are below the one that has joined");
        let mut stream = scene.network.stream(&everyone).up("sum").open().unwrap();
        whole(&mut stream, everyone.ranks());

        terminate(&joined);
        for _ in 0..20 {
            whole(&mut stream, everyone.ranks());
        }
        let mut leavers: Vec<u32> = vec![rank];
        for process in scene.inner() {
            let seen = of_rank(&scene.tree, process);
            kill_process(Pid::from_raw(seen.pid.cast_signed()).unwrap(), Signal::TERM).unwrap();
            for _ in 0..20 {
                whole(&mut stream, everyone.ranks());
            }
            leavers.push(process);
        }
        for leaver in leavers {
            let is_it =
                |event: &Event| matches!(event, Event::Repaired { rank, .. } if *rank == leaver);
            scene.await_event(is_it);
            let text = format!("communication process {leaver} has left");
            scene.await_event(
                |event| matches!(event, Event::Broken { reason, .. } if *reason == text),
            );
        }
        let is_lost = |event: &Event| matches!(event, Event::Lost { .. });
        assert!(!scene.events.iter().any(is_lost), "{:?}", scene.events);
        children.push(joined);
        drop(stream);
        scene.end(children);
    }
}

#[test]
fn a_network_without_dynamic_members_says_so() {
    let mark = new_mark();
    let network = builder("2", Links::Unix).back_end(back_ends(&mark, &["serve"])).open().unwrap();
    let tree = tree_below_us(&mark);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("attach");
    network.write_attach_file(&file, &folder.path().join("key")).unwrap();
    let output = clean_command(sapwood()).args(["node", "--join"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("open the network with dynamic_members()"), "{text}");
    network.close().unwrap();
    wait_until_gone(&tree);
}
