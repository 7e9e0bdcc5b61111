//! How trees start, and what is said when they do not.

mod support;

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use sapwood::{Communicator, Error, Event, Hosts, Network, Program, RankSet, Topology};
use support::{
    ENDING, HANG, Links, MARK_VARIABLE, Seen, back_ends, builder, clean_command, is_alone,
    new_mark, sapwood, tags, topology, tree_below_us, trial, wait_until, wait_until_gone,
};

fn error_of(result: sapwood::Result<Network>) -> Error {
    result.err().expect("this network must not open")
}

#[test]
fn a_back_end_program_that_is_missing_is_named_before_anything_starts() {
    let program = Program::new("/nowhere/worker");
    let error = error_of(builder("2x2", Links::Unix).back_end(program).open());
    println!("{error}");
    assert!(error.to_string().contains("/nowhere/worker"), "{error}");
    let error = error_of(builder("2", Links::Unix).back_end(Program::new("no-such-worker")).open());
    assert!(error.to_string().contains("no-such-worker"), "{error}");
    let error = error_of(builder("2", Links::Unix).back_end(Program::new("/etc/passwd")).open());
    println!("{error}");
    assert!(error.to_string().contains("chmod +x"), "{error}");
    let builder = Network::builder(topology("2")).node_program("/nowhere/sapwood");
    let error = error_of(builder.back_end(Program::new(trial())).open());
    assert!(error.to_string().contains("/nowhere/sapwood"), "{error}");
}

#[test]
fn the_words_of_a_back_end_that_fails_reach_the_front_end() {
    for (shape, mode, rank) in [
        ("2", &["fail"][..], None),
        ("2x2", &["fail", "3"][..], Some(3)),
        ("2^3", &["fail", "6"][..], Some(6)),
    ] {
        let mark = new_mark();
        let begin = Instant::now();
        let error = error_of(builder(shape, Links::Unix).back_end(back_ends(&mark, mode)).open());
        println!("{shape}: after {:?}: {error}", begin.elapsed());
        let Error::Start(failures) = &error else { panic!("{error}") };
        assert!(failures[0].text.contains("the sensor is on fire"), "{error}");
        assert!(failures[0].text.contains('3'), "{error}");
        if let Some(rank) = rank {
            assert_eq!(failures[0].rank, rank);
            assert!(error.to_string().starts_with(&format!("rank {rank} did not start: ")));
        }
        wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());
    }
}

#[test]
fn a_program_that_is_no_back_end_is_said_to_have_ended() {
    let error = error_of(builder("2", Links::Unix).back_end(Program::new("/bin/true")).open());
    println!("{error}");
    assert!(error.to_string().contains("/bin/true"), "{error}");
    let builder = Network::builder(topology("2x2")).node_program("/bin/false");
    let error = error_of(builder.back_end(Program::new(trial())).open());
    assert!(error.to_string().contains("/bin/false"), "{error}");
}

#[test]
fn a_program_that_breaks_its_promise_to_bind_itself_does_not_join() {
    let mark = new_mark();
    let script = format!("'{}' back-end serve; exit 1", trial().display());
    let program = Program::new("/bin/sh").argument("-c").argument(script);
    let program = program.variable(MARK_VARIABLE, &mark).binds_itself();
    let error = error_of(builder("2", Links::Unix).back_end(program).open());
    assert!(error.to_string().contains("the process that started this one has ended"), "{error}");
    wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());
}

#[test]
fn a_network_may_open_without_those_that_failed() {
    let mark = new_mark();
    let network = builder("2x2", Links::Unix)
        .back_end(back_ends(&mark, &["fail", "1"]))
        .allow_missing()
        .open()
        .unwrap();
    assert_eq!(network.everyone().ranks(), &"0,2-3".parse().unwrap());
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    assert_eq!(stream.recv_timeout(HANG).unwrap().value().unwrap().scalar::<i64>(0), Ok(5));
    network.close().unwrap();
}

#[test]
fn a_network_may_open_while_others_start_and_says_when_none_may_come_any_more() {
    let mark = new_mark();
    // On a machine with other work, too, one has joined long before.
    let mut network = builder("3", Links::Unix)
        .startup_timeout(Duration::from_secs(20))
        .back_end(back_ends(&mark, &["silent", "2"]))
        .allow_missing()
        .open_after(Duration::ZERO)
        .open()
        .unwrap();
    assert!(network.is_starting(), "one never comes");
    network.wait_for_back_ends(2, HANG).unwrap();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    assert_eq!(stream.recv_timeout(HANG).unwrap().value().unwrap().scalar::<i64>(0), Ok(1));
    let begin = Instant::now();
    while network.is_starting() {
        assert!(begin.elapsed() < HANG, "it starts for ever");
        network.turn(Duration::from_secs(1)).unwrap();
    }
    assert_eq!(network.everyone().ranks(), &RankSet::range(0, 1));
    let is_named = |event: Event| matches!(event, Event::StartFailed { rank: 2, .. });
    assert!(std::iter::from_fn(|| network.next_event()).any(is_named), "it was not given up");
    network.close().unwrap();
    wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());
}

#[test]
fn back_ends_that_never_attach_are_named_when_time_is_up() {
    let mark = new_mark();
    // On a machine with other work, too, all others have joined by then.
    let builder = builder("2x2", Links::Unix).startup_timeout(Duration::from_secs(20));
    let error = error_of(builder.back_end(back_ends(&mark, &["silent", "2"])).open());
    println!("{error}");
    let Error::Start(failures) = &error else { panic!("{error}") };
    assert_eq!(failures.len(), 1, "{error}");
    assert_eq!(failures[0].rank, 2);
    assert!(error.to_string().ends_with("has not joined the network within 20000 ms"), "{error}");
    wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());
}

#[test]
fn where_no_back_end_attaches_all_are_named_when_time_is_up() {
    let mark = new_mark();
    // As above.
    let builder = builder("2x2", Links::Unix).startup_timeout(Duration::from_secs(20));
    let error = error_of(builder.back_end(back_ends(&mark, &["silent"])).open());
    println!("{error}");
    let Error::Start(failures) = &error else { panic!("{error}") };
    let named: RankSet = failures.iter().map(|failure| failure.rank).collect();
    assert_eq!(named, RankSet::range(0, 3));
    wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());
}

#[test]
fn a_node_program_may_need_arguments_before_its_command() {
    let mark = new_mark();
    let network = Network::builder(topology("2x2")).node_program("/bin/sh");
    let words = ["-c", "exec \"$0\" \"$@\"", sapwood().to_str().unwrap()];
    let network = words.into_iter().fold(network, |network, word| network.node_argument(word));
    let network = network.back_end(back_ends(&mark, &["serve"])).open().unwrap();
    assert_eq!(network.everyone().size(), 4);
    network.close().unwrap();
}

#[test]
fn a_wait_can_be_interrupted() {
    let mark = new_mark();
    let opening = builder("2", Links::Unix).back_end(back_ends(&mark, &["serve"]));
    let error = error_of(opening.interrupt(|| true).open());
    assert_eq!(error.to_string(), "the wait for the answer of the whole tree was interrupted");
    wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());

    let wants_no_more = Rc::new(Cell::new(false));
    let asked = Rc::clone(&wants_no_more);
    let opening = builder("2", Links::Unix).back_end(back_ends(&mark, &["serve"]));
    let network = opening.interrupt(move || asked.get()).open().unwrap();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    wants_no_more.set(true);
    assert!(matches!(stream.recv(), Err(Error::Interrupted { .. })));
    wants_no_more.set(false);
    stream.broadcast(tags::RANK, ()).unwrap();
    assert_eq!(stream.recv().unwrap().value().unwrap().scalar::<i64>(0), Ok(1));
    network.close().unwrap();
}

/// Opens a network with few descriptors, which must not wait for those that cannot start.
fn opens_with_few_descriptors(shape: &str, links: Links) {
    let (mark, begin) = (new_mark(), Instant::now());
    let opening = builder(shape, links).back_end(back_ends(&mark, &["serve"])).allow_missing();
    // As good as for ever.
    let opening = opening.startup_timeout(10 * HANG);
    let mut network = opening.interrupt(move || begin.elapsed() > HANG).open().unwrap();
    let there = network.everyone();
    let mut named = there.ranks().clone();
    while let Some(event) = network.next_event() {
        if let Event::StartFailed { rank, text } = event {
            assert!(text.contains("open files"), "{text}");
            named.insert(rank);
        }
    }
    println!("{shape} over {links:?} with 40 descriptors: '{}' are there", there.ranks());
    let back_ends = network.topology().back_end_count();
    assert_eq!(named, RankSet::range(0, back_ends - 1), "all others are named");
    assert!((5..u64::from(back_ends)).contains(&there.size()), "{}", there.size());
    let mut stream = network.stream(&there).up("count").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    assert!(stream.recv_timeout(HANG).unwrap().is_complete());
    network.close().unwrap();
    wait_until("nothing left", ENDING, || support::marked(&mark).is_empty());
}

#[test]
fn a_process_for_whose_link_no_descriptor_is_left_is_missing_at_once() {
    if !is_alone("a_process_for_whose_link_no_descriptor_is_left_is_missing_at_once") {
        return;
    }
    // The programs are built with as many descriptors as that takes.
    let _ = (sapwood(), trial());
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(40), ..before }).unwrap();
    opens_with_few_descriptors("64", Links::Unix);
    opens_with_few_descriptors("64", Links::EncryptedTcp);
    setrlimit(Resource::Nofile, before).unwrap();
}

#[test]
fn a_host_that_is_unknown_or_elsewhere_is_refused_by_name() {
    for host in ["no-such-host.invalid", "192.0.2.1"] {
        let hosts: Hosts = host.parse().unwrap();
        let topology = Topology::from_shape(&"2".parse().unwrap(), &hosts);
        let builder = Network::builder(topology).node_program(sapwood());
        let error = error_of(builder.back_end(Program::new(trial())).open());
        println!("{error}");
        assert!(error.to_string().contains(host), "{error}");
    }
}

#[test]
fn a_topology_that_cannot_be_read_is_answered_with_the_place() {
    for text in [
        "a:0 => a:1",
        "a:0 => a:1 ;\nb:0 => b:1 ;",
        "a:0 => a:1 ;\na:1 => a:0 ;",
        "a:0 => a:1 a:1 ;",
        "a:0 => a:0 ;",
        "",
        "=> ;",
    ] {
        let error = Topology::from_file_text(text).err().unwrap();
        println!("{text:?}: {error}");
        assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'));
    }
    for text in ["", "0", "4x", "x4", "4^0", "four", "4^99", "-1", "99999999x9999999"] {
        assert!(text.parse::<sapwood::Shape>().is_err(), "{text}");
    }
    let file = "localhost:0 => localhost:1 localhost:2 ;\nlocalhost:1 => localhost:3 ;\n";
    let topology = Topology::from_file_text(file).unwrap();
    let program = back_ends(&new_mark(), &["serve"]);
    let network = Network::builder(topology).node_program(sapwood()).back_end(program);
    let network = network.open().unwrap();
    assert_eq!(network.everyone().size(), 2);
    network.close().unwrap();
}

/// A back-end that attaches by itself.
fn attach(file: &Path, rank: Option<u32>) -> Child {
    let mut command = clean_command(trial());
    command.args(["back-end", "file"]).arg(file).args(rank.map(|rank| rank.to_string()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

/// What a back-end that must not be taken says. The front-end works meanwhile.
fn refusal(network: &mut Network, file: &Path, rank: Option<u32>) -> String {
    let mut child = attach(file, rank);
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < HANG);
        network.turn(Duration::from_millis(10)).unwrap();
    }
    rejection(child)
}

fn rejection(child: Child) -> String {
    let output = ended(child);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    println!("{}", text.trim_end());
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text
}

#[test]
fn back_ends_attach_by_themselves_with_and_without_a_rank() {
    for links in [Links::Unix, Links::Tcp, Links::EncryptedTcp] {
        let folder = tempfile::tempdir().unwrap();
        let (file, key) = (folder.path().join("attach"), folder.path().join("key"));
        let mut network = builder("2x2", links).open().unwrap();
        assert_eq!(network.everyone().size(), 0);
        network.write_attach_file(&file, &key).unwrap();
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        let named = [attach(&file, Some(2)), attach(&file, Some(1))];
        network.wait_for_back_ends(2, HANG).unwrap();
        assert_eq!(network.everyone().ranks(), &"1-2".parse().unwrap());
        let refused = refusal(&mut network, &file, Some(2));
        assert!(refused.contains("rank 2 has attached already"), "{refused}");
        let unnamed = [attach(&file, None), attach(&file, None)];
        network.wait_for_back_ends(4, HANG).unwrap();
        assert_eq!(network.everyone().ranks(), &RankSet::range(0, 3));
        let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
        stream.broadcast(tags::RANK, ()).unwrap();
        assert_eq!(stream.recv_timeout(HANG).unwrap().value().unwrap().scalar::<i64>(0), Ok(6));
        let refused = refusal(&mut network, &file, None);
        assert!(refused.contains("no rank is free"), "{refused}");
        let refused = refusal(&mut network, &file, Some(9));
        assert!(refused.contains('9'), "{refused}");
        network.close().unwrap();
        for child in named.into_iter().chain(unnamed) {
            assert!(ended(child).status.success());
        }
        assert!(!rejection(attach(&file, None)).is_empty());
    }
}

#[test]
fn back_ends_attach_at_the_interface_that_was_chosen() {
    for interface in ["127.0.0.2", "::1"] {
        let folder = tempfile::tempdir().unwrap();
        let (file, key) = (folder.path().join("attach"), folder.path().join("key"));
        let builder = builder("1x2", Links::EncryptedTcp).interface(interface.parse().unwrap());
        let mut network = match builder.open() {
            Ok(network) => network,
            // A machine may have no such interface; then that is said.
            Err(error) => {
                assert!(error.to_string().contains(interface), "{error}");
                continue;
            }
        };
        network.write_attach_file(&file, &key).unwrap();
        assert!(network.attach_points()[0].address.contains(interface));
        let children = [attach(&file, None), attach(&file, None)];
        network.wait_for_back_ends(2, HANG).unwrap();
        network.close().unwrap();
        for child in children {
            assert!(ended(child).status.success());
        }
    }
    let nowhere = builder("1x2", Links::Tcp).interface("192.0.2.1".parse().unwrap());
    let error = error_of(nowhere.open());
    println!("{error}");
    assert!(error.to_string().contains("192.0.2.1"), "{error}");
}

#[test]
fn a_wrong_key_and_a_key_that_others_can_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("attach"), folder.path().join("key"));
    let mut network = builder("2", Links::EncryptedTcp).open().unwrap();
    network.write_attach_file(&file, &key).unwrap();
    assert!(network.write_attach_file(&file, &key).is_err(), "a key is not written over");
    let right = fs::read(&key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refusal(&mut network, &file, None).contains("chmod 600"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, "not a key").unwrap();
    assert!(refusal(&mut network, &file, None).contains("key"));
    let mut wrong = right.clone();
    wrong[0] = if wrong[0] == b'0' { b'1' } else { b'0' };
    fs::write(&key, wrong).unwrap();
    assert!(refusal(&mut network, &file, None).contains("key"));
    fs::remove_file(&key).unwrap();
    assert!(refusal(&mut network, &file, None).contains("key"));
    fs::write(&file, "this is no attach file\n").unwrap();
    assert!(refusal(&mut network, &file, None).contains("line 1"));
    fs::remove_file(&file).unwrap();
    assert!(refusal(&mut network, &file, None).contains("attach"));
    assert_eq!(network.everyone().size(), 0);
    network.turn(Duration::ZERO).unwrap();
    network.close().unwrap();
}

#[test]
fn a_back_end_outside_of_any_network_is_told_so() {
    let output = clean_command(trial()).args(["back-end", "serve"]).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    println!("{text}");
    assert!(text.contains("SAPWOOD_PARENT is not set"), "{text}");
}

#[test]
fn an_attached_back_end_that_leaves_makes_room_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("attach"), folder.path().join("key"));
    let mut network = builder("1x2", Links::Unix).open().unwrap();
    network.write_attach_file(&file, &key).unwrap();
    let mut children: Vec<Child> = (0..2).map(|rank| attach(&file, Some(rank))).collect();
    network.wait_for_back_ends(2, HANG).unwrap();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    for _ in 0..3 {
        let mut leaver = children.remove(1);
        leaver.kill().unwrap();
        leaver.wait().unwrap();
        let begin = Instant::now();
        while network.everyone().size() != 1 {
            assert!(begin.elapsed() < ENDING);
            network.turn(Duration::from_millis(10)).unwrap();
        }
        stream.broadcast(tags::RANK, ()).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.contributors, RankSet::range(0, 0));
        children.push(attach(&file, Some(1)));
        network.wait_for_back_ends(2, HANG).unwrap();
        stream.broadcast(tags::RANK, ()).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.contributors, RankSet::range(0, 1), "{answer:?}");
    }
    network.close().unwrap();
    for child in children {
        assert!(ended(child).status.success());
    }
}

#[test]
fn a_back_end_that_attaches_in_the_middle_of_a_wave_takes_part_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("attach"), folder.path().join("key"));
    let mut network = builder("1x3", Links::Unix).open().unwrap();
    network.write_attach_file(&file, &key).unwrap();
    let mut children: Vec<Child> = (0..3).map(|rank| attach(&file, Some(rank))).collect();
    network.wait_for_back_ends(3, HANG).unwrap();
    let mut stream = network.stream(&network.everyone()).up("sum").open().unwrap();
    for round in 0..3 {
        // 0 answers at once, 2 late; 1 is gone, and comes back while the wave waits for 2.
        let mut gone = children.remove(1);
        gone.kill().unwrap();
        gone.wait().unwrap();
        let begin = Instant::now();
        while network.everyone().size() != 2 {
            assert!(begin.elapsed() < ENDING);
            network.turn(Duration::from_millis(10)).unwrap();
        }
        let late = Seen::look(children[1].id()).unwrap();
        late.stop();
        stream.broadcast(tags::RANK, ()).unwrap();
        // The answer to a later request says that their parent has passed the earlier one on.
        let mut later =
            network.stream(&Communicator::new(RankSet::range(0, 0))).up("sum").open().unwrap();
        later.broadcast(tags::RANK, ()).unwrap();
        later.recv_timeout(HANG).unwrap();
        children.insert(1, attach(&file, Some(1)));
        network.wait_for_back_ends(3, HANG).unwrap();
        late.signal(Signal::CONT);
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.contributors, "0,2".parse().unwrap(), "round {round}");
        stream.broadcast(tags::RANK, ()).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert!(answer.is_complete(), "round {round}: {answer:?}");
        assert_eq!(answer.contributors, RankSet::range(0, 2));
    }
    network.close().unwrap();
    for child in children {
        assert!(ended(child).status.success());
    }
}

#[test]
fn six_hundred_children_of_one_process_all_start() {
    let mark = new_mark();
    let begin = Instant::now();
    let network = builder("600", Links::Unix).back_end(back_ends(&mark, &["serve"])).open();
    let network = network.unwrap();
    println!("600 back-ends below the front-end stand after {:?}", begin.elapsed());
    let tree = tree_below_us(&mark);
    assert_eq!(tree.len(), 600);
    let mut stream = network.stream(&network.everyone()).up("count").open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    assert!(stream.recv_timeout(HANG).unwrap().is_complete());
    network.close().unwrap();
    println!("closed after {:?}", wait_until_gone(&tree));
}
