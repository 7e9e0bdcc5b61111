//! Filters from files in trees of real processes: found on the host, shipped through the tree, in
//! shared objects and in WebAssembly; and what becomes of those that cannot be used or that break
//! rules.

mod support;
#[path = "../../launch/tests/written/mod.rs"]
mod written;

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use sapwood::{Answer, Error, Event, FilterSpec, Network, Stream, TransportKind, Values};
use support::{HANG, back_ends, marked, new_mark, tags, topology, tree_below_us, trial};
use support::{of_rank, wait_until_gone};
use written::write_program;

/// Fan-outs 1, 2 and the default of 8, each with and without processes in between.
const SHAPES: [&str; 4] = ["1x1", "2x2", "8", "8x2"];

/// A network whose communication processes are this program, and whose filters need not hurry:
/// steps are what limits WebAssembly, however slow they are.
fn network_of(shape: &str, node: &Path, transport: TransportKind) -> (Network, String) {
    limited(shape, node, transport, HANG)
}

fn limited(
    shape: &str,
    node: &Path,
    transport: TransportKind,
    limit: Duration,
) -> (Network, String) {
    let mark = new_mark();
    let network = Network::builder(topology(shape))
        .node_program(node)
        .transport(transport)
        .filter_limit(limit)
        .back_end(back_ends(&mark, &["serve"]))
        .open()
        .unwrap();
    (network, mark)
}

fn network(shape: &str) -> (Network, String) {
    network_of(shape, trial(), TransportKind::Unix)
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../extension").join(file)
}

/// Compiles filters into a file.
fn compile(source_file: &str, flags: &[&str], library: &Path) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/c/include");
    let compiler = std::env::var("CC").unwrap_or_else(|_| String::from("cc"));
    let status = Command::new(compiler)
        .args(["-std=c11", "-O2", "-shared", "-fPIC", "-I"])
        .arg(include)
        .args(flags)
        .arg("-o")
        .arg(library)
        .arg(source(source_file))
        .status()
        .unwrap();
    assert!(status.success(), "{source_file} does not compile");
}

/// A folder with `libsums.so` and `libfaults.so`, for all tests of this process.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        compile("filters/sums.c", &[], &folder.path().join("libsums.so"));
        compile("tests/filters/faults.c", &[], &folder.path().join("libfaults.so"));
        folder
    });
    folder.path()
}

fn native(file: &str, filter: &str) -> String {
    format!("native:{}#{filter}", libraries().join(file).display())
}

/// One wave: every back-end adds its rank to both numbers.
fn ask(stream: &mut Stream) -> Answer {
    stream.broadcast(tags::ADD_RANK, [1.0_f64, 100.0]).unwrap();
    stream.recv_timeout(HANG).unwrap()
}

fn sums(network: &Network, filter: impl Into<FilterSpec>) {
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up(filter).open().unwrap();
    let count = everyone.size() as f64;
    let ranks = count * (count - 1.0) / 2.0;
    for _ in 0..3 {
        let answer = ask(&mut stream);
        assert!(answer.is_complete(), "{:?}", answer.missing);
        let expected = [count + ranks, 100.0 * count + ranks];
        assert_eq!(answer.value().unwrap().array::<f64>(0).unwrap(), expected);
    }
    stream.close().unwrap();
}

fn reasons(answer: &Answer) -> String {
    let reasons = answer.missing.iter().map(|missing| missing.reason.clone());
    reasons.collect::<Vec<_>>().join("; ")
}

#[test]
fn filters_from_files_give_the_same_at_every_fan_out() {
    for shape in SHAPES {
        let (network, mark) = network(shape);
        let tree = tree_below_us(&mark);
        sums(&network, native("libsums.so", "sum3"));
        sums(&network, format!("wasm:{}#sum3", source("filters/sums.wasm").display()));
        network.close().unwrap();
        wait_until_gone(&tree);
    }
}

#[test]
fn files_travel_to_every_process_and_leave_nothing_behind() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let library = folder.path().join("libsums.so");
    for shape in SHAPES {
        fs::copy(libraries().join("libsums.so"), &library).unwrap();
        let (mut network, mark) = network_of(shape, trial(), TransportKind::Tcp);
        let tree = tree_below_us(&mark);
        let shared_object = network.ship(&library).unwrap();
        let module = network.ship(source("filters/sums.wasm")).unwrap();
        fs::remove_file(&library).unwrap();
        sums(&network, shared_object.filter("sum3"));
        sums(&network, module.filter("sum3"));
        network.close().unwrap();
        wait_until_gone(&tree);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn those_who_take_in_orphans_have_the_files_too() {
    let (mut network, mark) = network("2x2x2");
    let tree = tree_below_us(&mark);
    let file = network.ship(libraries().join("libsums.so")).unwrap();
    let everyone = network.everyone();
    let mut stream = network.stream(&everyone).up(file.filter("sum3")).open().unwrap();
    let root = network.topology().root().rank();
    for victim in [root + 1, root + 4] {
        assert!(ask(&mut stream).is_complete());
        of_rank(&tree, victim).kill();
        let answer = ask(&mut stream);
        assert!(answer.is_complete(), "{:?}", answer.missing);
        let value = answer.value().unwrap().array::<f64>(0).unwrap().to_vec();
        assert_eq!(value, [8.0 + 28.0, 800.0 + 28.0]);
    }
    // What opens after that finds the file below the adopters as well.
    let later = network.ship(source("filters/sums.wasm")).unwrap();
    sums(&network, later.filter("sum3"));
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_file_that_one_process_lacks_is_named_with_the_process() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Each process finds the library through a descriptor of its own; rank 5 has none.
    let directory = fs::File::open(libraries()).unwrap();
    let directory = rustix::io::fcntl_dupfd_cloexec(&directory, 200).unwrap();
    let number = directory.as_raw_fd();
    let node = folder.path().join("node");
    let script = format!(
        "#!/bin/bash\n[ \"$SAPWOOD_RANK\" = 5 ] || exec {number}<{}\nexec {} \"$@\"\n",
        libraries().display(),
        trial().display()
    );
    write_program(&node, &script);
    let (network, mark) = network_of("2x2", &node, TransportKind::Unix);
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let name = format!("native:/proc/self/fd/{number}/libsums.so#sum3");
    let mut stream = network.stream(&everyone).up(name).open().unwrap();
    let answer = ask(&mut stream);
    // Rank 5 is above the back-ends 0 and 1.
    assert_eq!(answer.contributors.to_string(), "2-3");
    let reasons = reasons(&answer);
    assert!(
        reasons.contains("no file of filters") && reasons.contains("at rank 5 on "),
        "{reasons}"
    );
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn what_cannot_be_used_is_refused_when_the_stream_opens() {
    let (mut network, mark) = network("2");
    let tree = tree_below_us(&mark);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let old = folder.path().join("libold.so");
    compile("tests/filters/faults.c", &["-DVERSION=7"], &old);
    let bad = folder.path().join("bad.wasm");
    fs::write(&bad, b"\0asm and then nothing of it").unwrap();
    let everyone = network.everyone();
    for (name, expected) in [
        (format!("native:{}#refuse", old.display()), "interface version 7, not 1"),
        (native("libsums.so", "sum4"), "has no filter 'sum4'"),
        (native("libnone.so", "sum3"), "no file of filters"),
        (format!("wasm:{}", bad.display()), "no WebAssembly that can be used"),
        (format!("native:libsums.so={}#sum3", "ab".repeat(32)), "have not been shipped"),
    ] {
        let error = network.stream(&everyone).up(name).open().err().unwrap();
        assert!(
            matches!(error, Error::Misuse(_)) && error.to_string().contains(expected),
            "{error}"
        );
    }
    for (file, expected) in [
        (old, "interface version 7"),
        (bad, "no WebAssembly"),
        (folder.path().join("none.so"), "no file of filters"),
        (PathBuf::from("/etc/passwd"), "neither a shared object nor WebAssembly"),
    ] {
        let error = network.ship(file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    sums(&network, native("libsums.so", "sum3"));
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_filter_that_fails_costs_its_waves_and_nothing_else() {
    let (network, mark) = network("2x2");
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let wasm =
        |filter: &str| format!("wasm:{}#{filter}", source("tests/filters/faults.wasm").display());
    for (name, expected) in [
        (native("libfaults.so", "refuse"), "does not like this wave"),
        (native("libfaults.so", "forged"), "an array of strings that is none"),
        (wasm("refuse"), "does not like this wave"),
        (wasm("outside"), "do not lie in its memory"),
        (wasm("grow"), "was given no more memory"),
        (wasm("loop"), "runs too long"),
    ] {
        let mut failing = network.stream(&everyone).up(&name[..]).open().unwrap();
        for _ in 0..2 {
            let answer = ask(&mut failing);
            let reasons = reasons(&answer);
            assert!(answer.packet.is_none() && reasons.contains(expected), "{name}: {answer:?}");
        }
        failing.close().unwrap();
        sums(&network, "sum");
    }
    assert_eq!(marked(&mark).len(), 4, "every process is there");
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_shared_object_that_never_returns_is_given_up_and_harms_nothing_else() {
    let limit = Duration::from_millis(300);
    let (network, mark) = limited("2x2", trial(), TransportKind::Unix, limit);
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    // One whose transform never returns, and one whose instance is never made.
    let unmade = FilterSpec {
        name: native("libfaults.so", "slow"),
        parameters: Values::new().scalar(0_u32),
    };
    for filter in [native("libfaults.so", "loop").into(), unmade] {
        let mut endless = network.stream(&everyone).up(filter).open().unwrap();
        for _ in 0..2 {
            let answer = ask(&mut endless);
            let reasons = reasons(&answer);
            assert!(answer.packet.is_none(), "{answer:?}");
            assert!(reasons.contains("has run for 300 ms"), "{reasons}");
            sums(&network, "sum");
        }
    }
    assert_eq!(marked(&mark).len(), 4, "every process is there");
    // Processes end although one of their threads is in the filter still.
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_rule_that_never_decides_is_given_up_and_harms_nothing_else() {
    let limit = Duration::from_millis(300);
    let (network, mark) = limited("4", trial(), TransportKind::Unix, limit);
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let think = native("libfaults.so", "think");
    let mut stream = network.stream(&everyone).up("sum").rule(think).open().unwrap();
    for wave in 0..2 {
        // One is silent, so that the wave is never whole.
        stream.broadcast(tags::HUSH, &[3_u32][..]).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        let reasons = reasons(&answer);
        assert!(answer.packet.is_none() && answer.wave == wave, "{answer:?}");
        assert!(reasons.contains("rule 'native:"), "{reasons}");
        assert!(reasons.contains("of stream 1 has run for 300 ms and is given up"), "{reasons}");
        sums(&network, "sum");
    }
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_filter_that_crashes_takes_its_process_and_the_tree_goes_on() {
    let (mut network, mark) = network("2x2");
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let crash = FilterSpec {
        name: native("libfaults.so", "crash"),
        parameters: Values::new().scalar(5_u32),
    };
    let mut stream = network.stream(&everyone).up(crash).open().unwrap();
    for _ in 0..2 {
        stream.broadcast(tags::RANK, ()).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert!(answer.is_complete(), "{:?}", answer.missing);
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(6));
    }
    let events: Vec<Event> = std::iter::from_fn(|| network.next_event()).collect();
    let is_broken = |event: &Event| matches!(event, Event::Broken { rank: 5, .. });
    assert!(events.iter().any(is_broken), "{events:?}");
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_constructor_that_exits_is_the_death_of_its_process_which_says_so() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let library = folder.path().join("libleaving.so");
    compile("tests/filters/leaving.c", &[], &library);
    let (mut network, mark) = network("2x2");
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    // Its constructor ends the process of rank 5, which says so in a line that comes to our own
    // error output; its children turn to the front-end.
    let name = format!("native:{}#first", library.display());
    let mut stream = network.stream(&everyone).up(name).open().unwrap();
    stream.broadcast(tags::RANK, ()).unwrap();
    let answer = stream.recv_timeout(HANG).unwrap();
    assert!(answer.is_complete(), "{:?}", answer.missing);
    let events: Vec<Event> = std::iter::from_fn(|| network.next_event()).collect();
    let reason = events.iter().find_map(|event| match event {
        Event::Broken { rank: 5, reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let reason = reason.unwrap_or_else(|| panic!("rank 5 has not died: {events:?}"));
    assert!(reason.starts_with("communication process 5 is gone: "), "{reason}");
    assert!(!reason.contains('\n'), "{reason}");
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn as_many_modules_as_a_network_takes_are_in_use_at_once() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (mut network, mark) = network("2x2");
    let tree = tree_below_us(&mark);
    let module = fs::read(source("filters/sums.wasm")).unwrap();
    let mut files = Vec::new();
    for number in 0..64_u8 {
        // A section of its own makes it another file.
        let path = folder.path().join(format!("sums{number}.wasm"));
        fs::write(&path, [&module[..], &[0, 2, 1, number]].concat()).unwrap();
        files.push(network.ship(&path).unwrap());
    }
    let everyone = network.everyone();
    let open = |file: &sapwood::FilterFile| {
        network.stream(&everyone).up(file.filter("sum3")).open().unwrap()
    };
    let mut streams: Vec<Stream> = files.iter().map(open).collect();
    for stream in &mut streams {
        stream.broadcast(tags::ADD_RANK, [1.0_f64, 100.0]).unwrap();
    }
    for stream in &mut streams {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert!(answer.is_complete(), "{:?}", answer.missing);
        assert_eq!(answer.value().unwrap().array::<f64>(0).unwrap(), [10.0, 406.0]);
    }
    drop(streams);
    network.close().unwrap();
    wait_until_gone(&tree);
}

#[test]
fn a_rule_lets_waves_go_without_the_last() {
    let (network, mark) = network("8");
    let tree = tree_below_us(&mark);
    let everyone = network.everyone();
    let wasm_quorum = format!("wasm:{}#quorum", source("filters/sums.wasm").display());
    // A sum that is offloaded, and crashes at no rank that there is.
    let apart = FilterSpec {
        name: native("libfaults.so", "crash"),
        parameters: Values::new().scalar(999_u32),
    };
    for (rule, sum) in
        [(native("libsums.so", "quorum"), FilterSpec::from("sum")), (wasm_quorum, apart)]
    {
        let quorum = FilterSpec { name: rule, parameters: Values::new().scalar(7_i32) };
        let mut stream = network.stream(&everyone).up(sum).rule(quorum).open().unwrap();
        stream.broadcast(tags::HUSH, &[3_u32][..]).unwrap();
        let answer = stream.recv_timeout(HANG).unwrap();
        assert_eq!(answer.contributors.to_string(), "0-2,4-7");
        assert_eq!(answer.value().unwrap().scalar::<i64>(0), Ok(25));
        assert!(
            reasons(&answer).contains("when the stream's wave rule forwarded wave 0"),
            "{answer:?}"
        );
        stream.close().unwrap();
    }
    network.close().unwrap();
    wait_until_gone(&tree);
}
