//! `sapwood copy` with real processes: pushing and gathering over all shapes of trees, what is in
//! the way, hosts that die or hang meanwhile, and interruptions.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use crate::cli::{assert_refused, assert_signals_end_reaching, code, text, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use sapwood_schema::assert_fits;
use serde_json::Value;
use tempfile::TempDir;

/// What is checked, and taken or not, as a whole.
const BLOCK: usize = 32 << 10;

/// More than all windows of a small tree hold.
const LARGE: usize = 30_000_000;

/// A folder with sources and a folder for each host.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for host in 0..6 {
            fs::create_dir(place.path(&format!("n{host}"))).unwrap();
        }
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn text(&self, below: &str) -> String {
        self.path(below).to_str().unwrap().to_string()
    }

    fn write(&self, below: &str, bytes: &[u8]) -> String {
        fs::write(self.path(below), bytes).unwrap();
        self.text(below)
    }

    fn read(&self, below: &str) -> Vec<u8> {
        fs::read(self.path(below)).unwrap_or_default()
    }

    /// Where each host puts things, as the option for substitution wants it.
    fn of_hosts(&self, below: &str) -> String {
        self.text(&format!("%h/{below}"))
    }

    /// Names below a folder that copies write under before they are whole.
    fn parts(&self, below: &str) -> usize {
        let names = fs::read_dir(self.path(below)).unwrap().map(|it| it.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().ends_with(".sapwood-part")).count()
    }
}

fn command(arguments: &[&str]) -> Command {
    crate::cli::on_hosts(&[&["copy", "--substitute"], arguments].concat())
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn assert_silent(output: &Output) {
    assert_eq!((code(output), text(&output.stderr)), (Some(0), ""), "{}", text(&output.stdout));
}

/// What a copy that went well has to say.
fn report_of(output: &Output) -> Value {
    assert_eq!(code(output), Some(0), "{} {}", text(&output.stderr), text(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn large() -> Vec<u8> {
    (0..LARGE as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8).collect()
}

/// The processes below one, with the arguments of each.
fn processes_below(pid: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut wanted = vec![pid];
    while let Some(parent) = wanted.pop() {
        for task in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                found.push((child, String::from_utf8_lossy(&line).replace('\0', " ")));
                wanted.push(child);
            }
        }
    }
    found
}

/// The agent that stands for the host of this rank.
fn agent(child: &Child, rank: u32) -> Pid {
    let wanted = format!("SAPWOOD_RANK={rank}");
    let is_it = |(pid, line): &(u32, String)| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has_rank = environment.split(|&byte| byte == 0).any(|it| it == wanted.as_bytes());
        line.contains("copy-agent") && has_rank
    };
    let mut found = None;
    wait_until(&format!("there is no agent of rank {rank}"), || {
        found = processes_below(child.id()).into_iter().find(is_it);
        found.is_some()
    });
    let (pid, _) = found.unwrap();
    Pid::from_raw(pid as i32).unwrap()
}

fn has_begun(part: &Path) -> bool {
    fs::metadata(part).is_ok_and(|part| part.len() > 0)
}

#[test]
fn a_file_reaches_every_host_whole_by_every_tree() {
    let place = Place::new();
    let content = large();
    let source = place.write("source", &content);
    fs::set_permissions(&source, fs::Permissions::from_mode(0o741)).unwrap();
    for fan_out in ["1", "2", "16"] {
        let name = format!("copy-{fan_out}");
        let output = run(&["-f", fan_out, "-w", "n[0-4]", &source, &place.of_hosts(&name)]);
        assert_silent(&output);
        for host in 0..5 {
            let copy = format!("n{host}/{name}");
            assert!(place.read(&copy) == content, "{copy}");
            let (one, other) =
                (fs::metadata(&source).unwrap(), fs::metadata(place.path(&copy)).unwrap());
            assert_eq!((other.mode(), other.mtime()), (one.mode(), one.mtime()));
            assert_eq!(other.mtime_nsec(), one.mtime_nsec());
            assert_eq!(place.parts(&format!("n{host}")), 0);
        }
    }
}

#[test]
fn a_signal_ends_a_copy_whose_hosts_are_still_being_reached() {
    let place = Place::new();
    let source = place.write("source", b"x");
    let paths = [&*source, &place.of_hosts("copy")];
    assert_signals_end_reaching(|reach| command(&[reach, &paths].concat()));
}

#[test]
fn a_folder_comes_with_its_links_and_holes_and_without_special_files() {
    let place = Place::new();
    fs::create_dir_all(place.path("tree/a/b")).unwrap();
    place.write("tree/a/file", b"content");
    fs::hard_link(place.path("tree/a/file"), place.path("tree/again")).unwrap();
    symlink("a/file", place.path("tree/link")).unwrap();
    let sparse = fs::File::create(place.path("tree/sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path("tree/socket")).unwrap();
    let tree = place.text("tree");
    let output = run(&["-w", "n[0-2]", &tree, &place.of_hosts("copy")]);
    let said = text(&output.stderr);
    assert!(said.ends_with("tree/socket: is a socket, left out\n"), "{said}");
    assert_eq!((code(&output), said.lines().count()), (Some(0), 1));
    for host in ["n0", "n1", "n2"] {
        let status = |name: &str| fs::symlink_metadata(place.path(&format!("{host}/copy/{name}")));
        assert_eq!(place.read(&format!("{host}/copy/a/file")), b"content");
        assert_eq!(status("again").unwrap().ino(), status("a/file").unwrap().ino());
        assert!(status("link").unwrap().is_symlink() && status("a/b").unwrap().is_dir());
        let sparse = status("sparse").unwrap();
        assert_eq!((sparse.len(), sparse.blocks()), (1 << 30, 0));
        assert!(status("socket").is_err());
    }
    // As with cp, a folder that is there gets the copy inside.
    assert_eq!(code(&run(&["-q", "-w", "n0", &tree, &place.of_hosts("copy")])), Some(0));
    assert_eq!(place.read("n0/copy/tree/a/file"), b"content");
    assert_eq!(code(&run(&["-q", "-T", "-w", "n1", &tree, &place.of_hosts("copy")])), Some(0));
    assert!(!place.path("n1/copy/tree").exists());
}

#[test]
fn several_sources_go_into_a_folder() {
    let place = Place::new();
    let (one, two) = (place.write("one", b"1"), place.write("two", b"2"));
    assert_silent(&run(&["-w", "n[0-1]", &one, &two, &place.of_hosts("new")]));
    assert_eq!((place.read("n1/new/one"), place.read("n0/new/two")), (b"1".into(), b"2".into()));
    assert_silent(&run(&["-w", "n2", &one, &place.of_hosts("other/")]));
    assert_eq!(place.read("n2/other/one"), b"1");
}

#[test]
fn files_come_back_into_a_folder_for_each_host() {
    let place = Place::new();
    let content = large();
    for host in 0..5 {
        place.write(&format!("n{host}/log"), &content[host..]);
        fs::create_dir(place.path(&format!("n{host}/conf"))).unwrap();
        place.write(&format!("n{host}/conf/name"), format!("n{host}").as_bytes());
    }
    fs::remove_file(place.path("n3/log")).unwrap();
    for fan_out in ["1", "2", "16"] {
        let back = place.text(&format!("back-{fan_out}"));
        let (log, conf) = (place.of_hosts("log"), place.of_hosts("conf"));
        let output = run(&["--gather", "-f", fan_out, "-w", "n[0-4]", &log, &conf, &back]);
        let said = text(&output.stderr);
        assert!(said.starts_with("sapwood: n3 (1): "), "{said}");
        assert!(said.ends_with("n3/log: No such file or directory\n"), "{said}");
        assert_eq!((code(&output), said.lines().count()), (Some(1), 1));
        for host in [0, 1, 2, 4] {
            let came = place.read(&format!("back-{fan_out}/n{host}/log"));
            assert!(came == content[host..], "{fan_out} {host}");
            let name = place.read(&format!("back-{fan_out}/n{host}/conf/name"));
            assert_eq!(name, format!("n{host}").as_bytes());
        }
        assert_eq!(place.read(&format!("back-{fan_out}/n3/conf/name")), b"n3");
    }
}

#[test]
fn where_nothing_can_be_put_nothing_is_gathered() {
    let place = Place::new();
    let content = large();
    for host in 0..2 {
        place.write(&format!("n{host}/log"), &content);
    }
    place.write("file", b"x");
    // The hosts would wait for a word from here.
    let back = place.text("file/back");
    let output = run(&["--gather", "-w", "n[0-1]", &place.of_hosts("log"), &back]);
    let said = text(&output.stderr);
    assert_eq!((code(&output), said.lines().count()), (Some(1), 2), "{said}");
    assert!(said.contains("file/back/n0: Not a directory"), "{said}");
}

#[test]
fn what_is_in_the_way_on_one_host_stops_no_other() {
    let place = Place::new();
    let source = place.write("source", b"content");
    fs::create_dir(place.path("n1/copy")).unwrap();
    fs::remove_dir(place.path("n2")).unwrap();
    let copy = place.of_hosts("copy");
    let output = run(&["-T", "-w", "n[0-3]", &source, &copy]);
    let said = text(&output.stderr);
    assert!(said.contains("n1 (1): ") && said.contains("n1/copy: is a folder"), "{said}");
    assert!(said.contains("n2 (1): ") && said.contains("n2: No such file or directory"), "{said}");
    assert_eq!((code(&output), said.lines().count()), (Some(1), 2));
    assert_eq!(
        (place.read("n0/copy"), place.read("n3/copy")),
        (b"content".into(), b"content".into())
    );
    let output = run(&["--json", "-T", "-w", "n[0-3]", &source, &copy]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("copy-1", &report);
    assert_eq!(report["exit_code"], 1);
    assert_eq!(report["whole"]["nodes"], "n[0,3]");
    assert_eq!(report["failed"]["nodes"], "n[1-2]");
    assert_eq!(report["errors"].as_array().unwrap().len(), 2);
    assert_eq!((&report["files"], &report["bytes"]), (&2.into(), &14.into()));
}

#[test]
fn a_quiet_copy_names_what_went_wrong_and_not_what_it_skips() {
    let place = Place::new();
    let source = place.write("source", b"content");
    fs::remove_dir(place.path("n2")).unwrap();
    let output = run(&["-q", "-T", "-w", "n[0-2]", &source, &place.of_hosts("copy")]);
    let said = text(&output.stderr);
    assert!(said.contains("n2 (1): ") && said.contains("n2: No such file or directory"), "{said}");
    assert_eq!((code(&output), said.lines().count()), (Some(1), 1), "{said}");
    let words = ["-q", "-f", "1", "-w", "n[0-1]", &source, &place.of_hosts("away")];
    let output = command(&words).env("SAPWOOD_NODE", "/bin/false").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("n[0-1] (2): missing: could not be reached"), "{said}");
    assert_eq!(code(&output), Some(255), "{said}");
    fs::create_dir(place.path("tree")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path("tree/socket")).unwrap();
    assert_silent(&run(&["-q", "-w", "n0", &place.text("tree"), &place.of_hosts("tree")]));
}

#[test]
fn a_host_that_dies_meanwhile_is_named_and_the_others_get_everything() {
    let place = Place::new();
    let content = large();
    let source = place.write("source", &content);
    for (fan_out, signal) in [("2", Signal::KILL), ("16", Signal::KILL)] {
        let name = format!("copy-{fan_out}");
        let arguments = ["-f", fan_out, "-w", "n[0-4]", &source, &place.of_hosts(&name)];
        let child = command(&arguments).spawn().unwrap();
        kill_process(agent(&child, 2), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(said.starts_with("sapwood: n2 (1): missing: "), "{said}");
        assert_eq!((code(&output), said.lines().count()), (Some(255), 1), "{said}");
        for host in [0, 1, 3, 4] {
            assert!(place.read(&format!("n{host}/{name}")) == content, "{fan_out} {host}");
        }
        assert!(!place.path(&format!("n2/{name}")).exists());
    }
}

#[test]
fn a_host_that_hangs_is_given_up_and_the_others_go_on() {
    let place = Place::new();
    let content = large();
    let source = place.write("source", &content);
    let arguments = ["--stall-timeout", "10", "-f", "2", "-w", "n[0-4]", &source];
    let child = command(&arguments).arg(place.of_hosts("copy")).spawn().unwrap();
    let hung = agent(&child, 1);
    let part = place.path("n1/.copy.sapwood-part");
    wait_until("nothing is copied", || has_begun(&part));
    kill_process(hung, Signal::STOP).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(said, "sapwood: n1 (1): missing: gave no answer for 10 s\n");
    assert_eq!(code(&output), Some(255));
    for host in [0, 2, 3, 4] {
        assert!(place.read(&format!("n{host}/copy")) == content, "{host}");
    }
    assert!(!place.path("n1/copy").exists());
}

#[test]
fn an_interrupted_copy_leaves_nothing_half_and_goes_on_when_it_is_asked_again() {
    let place = Place::new();
    // Long enough that no host is done before the interruption.
    let content = large().repeat(4);
    let source = place.write("source", &content);
    let copy = place.of_hosts("copy");
    let child = command(&["-w", "n[0-2]", &source, &copy]).spawn().unwrap();
    let hung = agent(&child, 1);
    let parts = [0, 1, 2].map(|host| place.path(&format!("n{host}/.copy.sapwood-part")));
    wait_until("nothing is copied", || parts.iter().all(|part| has_begun(part)));
    // One that hangs keeps the others from being done.
    kill_process(hung, Signal::STOP).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let _ = kill_process(hung, Signal::CONT);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(code(&output), Some(130), "{said}");
    assert!(said.contains("interrupted before the copy was complete"), "{said}");
    for host in 0..3 {
        assert!(!place.path(&format!("n{host}/copy")).exists(), "half a file has its name");
    }
    let report = report_of(&run(&["--json", "-w", "n[0-2]", &source, &copy]));
    // What all have got is not sent again.
    let sent = report["sent_bytes"].as_u64().unwrap();
    assert!(0 < sent && sent < content.len() as u64, "{report}");
    for host in 0..3 {
        assert!(place.read(&format!("n{host}/copy")) == content);
        assert_eq!(place.parts(&format!("n{host}")), 0);
    }
}

#[test]
fn what_hosts_have_already_is_not_sent_again() {
    let place = Place::new();
    let content = large();
    let source = place.write("source", &content);
    let (half, all) = (LARGE / 2, LARGE as u64);
    // One host has nothing, one a right beginning, one a wrong one, one everything but the name.
    place.write("n1/.copy.sapwood-part", &content[..half]);
    place.write("n2/.copy.sapwood-part", &vec![7; LARGE / 3]);
    place.write("n3/.copy.sapwood-part", &content);
    let sent_to = |hosts: &str| {
        let report = report_of(&run(&["--json", "-w", hosts, &source, &place.of_hosts("copy")]));
        report["sent_bytes"].as_u64().unwrap()
    };
    let whole_blocks = half / BLOCK * BLOCK;
    assert_eq!(sent_to("n[1,3]"), all - whole_blocks as u64);
    // A host with a wrong beginning gets everything once the others have it.
    assert_eq!(sent_to("n[0,2-3]"), 2 * all);
    for host in 0..4 {
        assert!(place.read(&format!("n{host}/copy")) == content, "{host}");
        assert_eq!(place.parts(&format!("n{host}")), 0);
    }
    assert_eq!(sent_to("n[0-3]"), 0);
}

#[test]
fn more_hosts_are_gathered_than_can_be_written_at_a_time() {
    const HOSTS: u32 = 24;
    let place = Place::new();
    for host in 0..HOSTS {
        for folder in ["logs", "conf"] {
            fs::create_dir_all(place.path(&format!("n{host}/{folder}"))).unwrap();
            place.write(&format!("n{host}/{folder}/name"), format!("{folder} {host}").as_bytes());
        }
        // What takes long enough that others would be begun meanwhile.
        place.write(&format!("n{host}/logs/long"), &vec![host as u8; 1 << 20]);
    }
    let (logs, conf, back) = (place.of_hosts("logs"), place.of_hosts("conf"), place.text("back"));
    let nodes = format!("n[0-{}]", HOSTS - 1);
    let gather = ["--gather", "-f", "4", "-w", &nodes, &logs, &conf, &back];
    let child = command(&gather).spawn().unwrap();
    // Enough for the tree, and not for the folders of all hosts.
    let few = Rlimit { current: Some(100), maximum: Some(100) };
    prlimit(Some(Pid::from_child(&child)), Resource::Nofile, few).unwrap();
    assert_silent(&child.wait_with_output().unwrap());
    for host in 0..HOSTS {
        for folder in ["logs", "conf"] {
            let came = place.read(&format!("back/n{host}/{folder}/name"));
            assert_eq!(came, format!("{folder} {host}").as_bytes());
        }
        assert!(place.read(&format!("back/n{host}/logs/long")) == vec![host as u8; 1 << 20]);
    }
}

#[test]
fn a_host_that_hangs_keeps_no_other_waiting_for_its_turn() {
    let place = Place::new();
    let content = large();
    for host in 0..4 {
        place.write(&format!("n{host}/log"), &content);
    }
    let (log, back) = (place.of_hosts("log"), place.text("back"));
    let gather = ["--gather", "--stall-timeout", "10", "-w", "n[0-3]", &log, &back];
    let child = command(&gather).spawn().unwrap();
    // So few that one is written after another.
    let few = Rlimit { current: Some(80), maximum: Some(80) };
    prlimit(Some(Pid::from_child(&child)), Resource::Nofile, few).unwrap();
    let part = |host: &u32| place.path(&format!("back/n{host}/.log.sapwood-part"));
    let mut hung = None;
    wait_until("nothing comes", || {
        hung = (0..4).find(|host| has_begun(&part(host)));
        hung.is_some()
    });
    let hung = hung.unwrap();
    let agent = agent(&child, hung);
    kill_process(agent, Signal::STOP).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(said, format!("sapwood: n{hung} (1): missing: gave no answer for 10 s\n"));
    assert_eq!(code(&output), Some(255));
    for host in (0..4).filter(|host| *host != hung) {
        assert!(place.read(&format!("back/n{host}/log")) == content, "{host}");
    }
}

#[test]
fn what_is_to_be_on_the_disk_is_whole() {
    let place = Place::new();
    let content = large();
    let source = place.write("source", &content);
    assert_silent(&run(&["--fsync", "-w", "n[0-1]", &source, &place.of_hosts("copy")]));
    for host in 0..2 {
        assert!(place.read(&format!("n{host}/copy")) == content, "{host}");
    }
}

#[test]
fn hosts_that_cannot_be_reached_are_missing() {
    let place = Place::new();
    let source = place.write("source", b"x");
    let arguments = ["-f", "1", "-w", "n[0-1]", &source, &place.of_hosts("copy")];
    let output = command(&arguments).env("SAPWOOD_NODE", "/bin/false").output().unwrap();
    assert_eq!(code(&output), Some(255), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("n[0-1] (2): missing: could not be reached"));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let place = Place::new();
    let (source, absent) = (place.write("source", b"x"), place.text("absent"));
    let pipe = place.text("n0/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let cases: [(&[&str], &str); 9] = [
        (&["-w", "n1", &source], "2 values required"),
        (&["-w", "n1", "-q", "--json", &source, "/tmp/x"], "cannot be used with"),
        (&["-w", "n1", &absent, "/tmp/x"], "absent: No such file or directory"),
        (&["-w", "n1", &pipe, "/tmp/x"], "is a named pipe"),
        (&["-w", "n1", &source, &source, "/tmp/x/"], "two sources have the name 'source'"),
        (&["-w", "n1", "--gather", "/", "/tmp/x"], "cannot derive a name for the copy"),
        (&["-w", "n[1-", &source, "/tmp/x"], "this bracket is not closed"),
        (&[&source, "/tmp/x"], "no hosts are given"),
        (&["-w", "n1", "--gather", "-T", &source, "/tmp/x"], "cannot be used with"),
    ];
    for (arguments, what) in cases {
        assert_refused(&run(arguments), what, arguments);
    }
}

#[test]
fn owners_are_kept_by_root_and_refused_to_others() {
    let place = Place::new();
    let source = place.write("source", b"x");
    let output = run(&["--owner", "-w", "n0", &source, &place.of_hosts("copy")]);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(place.path("source"), Some(7), Some(7)).unwrap();
        assert_silent(&run(&["--owner", "-w", "n0", &source, &place.of_hosts("own")]));
        let copied = fs::metadata(place.path("n0/own")).unwrap();
        assert_eq!((copied.uid(), copied.gid()), (7, 7));
    } else {
        let said = text(&output.stderr);
        assert!(said.contains("only root can keep owners; omit --owner"), "{said}");
        assert_eq!(code(&output), Some(1));
    }
}

#[test]
fn a_copy_that_keeps_nothing_and_encrypts_nothing_is_whole() {
    let place = Place::new();
    let source = place.write("source", &large());
    let copy = place.of_hosts("copy");
    assert_silent(&run(&["--no-resume", "--no-encryption", "-w", "n[0-1]", &source, &copy]));
    for host in 0..2 {
        assert!(place.read(&format!("n{host}/copy")) == place.read("source"), "n{host}");
    }
}

#[test]
fn a_dry_run_shows_the_tree_and_copies_nothing() {
    let place = Place::new();
    let source = place.write("source", &[7; 2048]);
    let output = run(&["--dry-run", "-f", "2", "-w", "n[0-3]", &source, &place.of_hosts("copy")]);
    let said = text(&output.stdout);
    assert!(said.contains("4 hosts: n[0-3]"), "{said}");
    assert!(said.contains(": 1 files, 2.0 KiB"), "{said}");
    assert_eq!(code(&output), Some(0));
    assert!(!place.path("n0/copy").exists());
}
