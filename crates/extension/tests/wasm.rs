//! Filters in WebAssembly, as they lie beside their sources: what they give, and that their limits
//! hold.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{given, make, packet_of, wave_of};
use sapwood_extension::{FilterFile, with_extensions};
use sapwood_filter::{Arrivals, Registry, ShippedFile, State, Verdict};
use sapwood_packet::{RankSet, Values, ValuesRef};

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn name(file: &str, filter: &str) -> String {
    format!("wasm:{}#{filter}", path(file).display())
}

#[test]
fn the_sum_in_c_is_the_same_in_webassembly() {
    let mut sum = make(&name("filters/sums.wasm", "sum3"), ValuesRef::default()).unwrap();
    for length in [2_usize, 128, 100_000, 7] {
        let packets = [1.0, 10.0, 100.0].map(|unit| {
            let numbers: Vec<f64> = (0..length).map(|index| unit * index as f64).collect();
            packet_of(&numbers[..])
        });
        let emitted = given(sum.as_mut(), 0, &packets).unwrap();
        let expected: Vec<f64> = (0..length).map(|index| 111.0 * index as f64).collect();
        assert_eq!(emitted[0].as_ref().array::<f64>(0), Ok(&expected[..]));
    }
    let mixed = [wave_of([1.0]), wave_of([1.0, 2.0])];
    let error = given(sum.as_mut(), 3, &mixed).unwrap_err();
    assert_eq!(error.to_string(), "filter 'sum3': the arrays of a wave differ in length");
}

#[test]
fn the_mean_in_rust_weighs_partial_results() {
    let mut mean = make(&name("filters/mean.wasm", ""), ValuesRef::default()).unwrap();
    let low = given(mean.as_mut(), 0, &[wave_of([1.0, 0.0]), wave_of([2.0, 0.0])]).unwrap();
    let low = packet_of(low[0].clone());
    let all = given(mean.as_mut(), 1, &[low, wave_of([6.0, 3.0])]).unwrap();
    assert_eq!(all[0].as_ref().scalar::<u64>(0), Ok(3));
    assert_eq!(all[0].as_ref().array::<f64>(1), Ok(&[3.0, 1.0][..]));
    let error = given(mean.as_mut(), 2, &[packet_of("text")]).unwrap_err();
    assert!(error.to_string().contains("takes one %alf"), "{error}");
}

#[test]
fn a_state_moves_from_one_instance_to_another() {
    let total = name("filters/sums.wasm", "total");
    let parameters = Values::new().scalar(4_i32);
    let mut first = make(&total, parameters.as_ref()).unwrap();
    let mut second = make(&total, parameters.as_ref()).unwrap();
    assert_eq!(first.state(), State::Composable);
    assert!(first.save().is_none());
    for wave in 0..3 {
        let packets = [7_i64, 8].map(packet_of);
        assert!(given(first.as_mut(), wave, &packets).unwrap().is_empty());
    }
    second.absorb(first.save().expect("it holds three waves").as_ref()).unwrap();
    let emitted = given(second.as_mut(), 3, &[packet_of(5_i64)]).unwrap();
    assert_eq!(emitted[0].as_ref().scalar::<i64>(0), Ok(50));
    assert!(make(&total, ValuesRef::default()).is_err(), "it takes a period");
}

#[test]
fn a_rule_in_webassembly_says_when_a_wave_goes_on() {
    let registry = with_extensions(Registry::empty());
    let parameters = Values::new().scalar(2_i32);
    let quorum = name("filters/sums.wasm", "quorum");
    let mut rule = registry.make_rule(&quorum, parameters.as_ref()).unwrap();
    let contributors = RankSet::range(0, 3);
    let mut arrivals = Arrivals {
        stream: 1,
        wave: 9,
        rank: 12,
        is_root: false,
        arrived: 1,
        expected: 3,
        contributors: contributors.as_ref(),
        back_ends: 12,
        elapsed: Duration::from_secs(1),
    };
    assert_eq!(rule.decide(&arrivals), Ok(Verdict::WaitFor(Duration::from_secs(9))));
    arrivals.arrived = 2;
    assert_eq!(rule.decide(&arrivals), Ok(Verdict::Go));
    // One without an end is ended when its steps are used up.
    let think = name("tests/filters/faults.wasm", "think");
    let mut think = registry.make_rule(&think, ValuesRef::default()).unwrap();
    let error = think.decide(&arrivals).unwrap_err().to_string();
    assert!(think.is_offloaded() && error.contains("runs too long"), "{error}");
}

#[test]
fn a_filter_that_breaks_a_limit_fails_its_wave_and_goes_on_with_the_next() {
    for (filter, reason) in [
        ("refuse", "does not like this wave"),
        ("silent", "failed with 7 and gave no reason"),
        ("rubbish", "emitted a value whose element or shape is none"),
        ("forged", "emitted an array of strings that is none"),
        ("outside", "emitted values that do not lie in its memory"),
        ("grow", "was given no more memory"),
        ("loop", "runs too long: it has used up the 250000000 steps of one call"),
    ] {
        let mut faulty =
            make(&name("tests/filters/faults.wasm", filter), ValuesRef::default()).unwrap();
        for wave in 0..if filter == "loop" { 1 } else { 2 } {
            let error = given(faulty.as_mut(), wave, &[wave_of([1.0])]).unwrap_err();
            assert_eq!(error.to_string(), format!("filter '{filter}': {reason}"));
        }
    }
}

/// What a filter has this side do counts among its steps, and what it emits among its memory.
#[test]
fn a_filter_that_floods_is_ended_by_its_limits() {
    let large = packet_of(&vec![1.0_f64; 20_000][..]);
    let small = packet_of(1.0_f64);
    for (filter, packet, reason) in [
        ("flood", large, "emitted more than the 67108864 bytes that one call may"),
        ("flood", small.clone(), "runs too long: it has used up the 250000000 steps of one call"),
        ("nag", small, "runs too long: it has used up the 250000000 steps of one call"),
    ] {
        let mut faulty =
            make(&name("tests/filters/faults.wasm", filter), ValuesRef::default()).unwrap();
        let error = given(faulty.as_mut(), 0, &[packet]).unwrap_err();
        assert_eq!(error.to_string(), format!("filter '{filter}': {reason}"));
    }
}

#[test]
fn a_trap_leaves_a_fresh_instance_behind() {
    let crash = name("tests/filters/faults.wasm", "crash");
    let parameters = Values::new().scalar(12_u32);
    let mut crash = make(&crash, parameters.as_ref()).unwrap();
    for wave in 0..3 {
        let error = given(crash.as_mut(), wave, &[packet_of(5_i64)]).unwrap_err();
        assert!(error.to_string().starts_with("filter 'crash': was ended: wasm"), "{error}");
    }
}

#[test]
fn a_wave_that_has_no_room_fails_and_smaller_ones_do_not() {
    let mut sum = make(&name("filters/sums.wasm", "sum3"), ValuesRef::default()).unwrap();
    let large = packet_of(&vec![1.0_f64; 9 << 20][..]);
    let error = given(sum.as_mut(), 0, &[large]).unwrap_err();
    assert!(error.to_string().contains("has no room in its 67108864 bytes"), "{error}");
    assert!(given(sum.as_mut(), 1, &[wave_of([1.0])]).is_ok());
}

#[test]
fn what_is_no_file_of_filters_is_refused_in_words() {
    let registry = with_extensions(Registry::empty());
    let take = |bytes: &[u8]| {
        let file = FilterFile::new("m.wasm", bytes.to_vec()).unwrap();
        let shipped = ShippedFile { name: file.name(), digest: file.digest(), bytes: file.bytes() };
        registry.take_file(&shipped).unwrap_err().to_string()
    };
    let nothing = b"\0asm\x01\0\0\0";
    for (bytes, expected) in [
        (&b"\0asm and then a text"[..], "no WebAssembly that can be used"),
        (&nothing[..], "exports no 'memory'"),
    ] {
        let text = take(bytes);
        assert!(text.contains(expected), "{text}");
    }
    let text = make("wasm:/etc/passwd#x", ValuesRef::default()).err();
    assert!(text.is_some_and(|text| text.to_string().contains("no WebAssembly")));
    let error = make(&name("filters/sums.wasm", "summ"), ValuesRef::default()).err();
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("has no filter 'summ'; it has: sum3 total quorum"), "{text}");
}

#[test]
fn every_cut_and_every_broken_byte_is_refused_or_harmless() {
    let whole = std::fs::read(path("filters/sums.wasm")).unwrap();
    for length in (0..whole.len()).step_by(whole.len() / 64) {
        assert!(take(&whole[..length]).is_err(), "cut after {length} bytes");
    }
    for at in (0..whole.len()).step_by(whole.len() / 256) {
        let mut broken = whole.clone();
        broken[at] ^= 0xff;
        // Some bytes do not matter, such as those of a name: then it loads as well.
        let _ = take(&broken);
    }
}

#[test]
fn a_module_for_something_else_is_refused_with_what_it_lacks() {
    let import = [&[3][..], b"env", &[5], b"print", &[0, 0]].concat();
    let module = module_of(&[(2, [&[1][..], &import].concat())], &[], None);
    let error = take(&module).unwrap_err();
    assert!(error.contains("does not start") && error.contains("print"), "{error}");
    let error = take(&module_of(&[], &[READY], None)).unwrap_err();
    assert!(error.contains("no table of functions"), "{error}");
    assert!(FilterFile::new("m.wasm", b"\x7fELF".to_vec()).unwrap().name().starts_with("native:"));
}

#[test]
fn a_module_that_never_gets_ready_is_ended() {
    for start in [Some(0), None] {
        let table = (4, vec![1, 0x70, 0, 1]);
        let module = module_of(&[table], &[READY, ("table", 1, 0)], start);
        let error = take(&module).unwrap_err();
        assert!(error.contains("runs too long"), "{error}");
        assert!(error.contains("25000000 steps"), "{error}");
    }
}

#[test]
fn many_turns_of_a_loop_need_no_stack() {
    // Small, so that a turn that took a few bytes of it would be seen.
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let loops = thread.spawn(|| {
        let mut mean = make(&name("filters/mean.wasm", ""), ValuesRef::default()).unwrap();
        let numbers: Vec<f64> = (0..300_000).map(f64::from).collect();
        let packets = [packet_of(&numbers[..]), packet_of(&numbers[..])];
        let emitted = given(mean.as_mut(), 0, &packets).unwrap();
        assert_eq!(emitted[0].as_ref().array::<f64>(1), Ok(&numbers[..]));
        let mut endless =
            make(&name("tests/filters/faults.wasm", "loop"), ValuesRef::default()).unwrap();
        given(endless.as_mut(), 0, &[wave_of([1.0])]).unwrap_err().to_string()
    });
    let error = loops.unwrap().join().unwrap();
    assert!(error.contains("runs too long"), "{error}");
}

#[test]
fn as_many_modules_as_a_network_takes_run_at_once() {
    let registry = with_extensions(Registry::empty());
    let whole = std::fs::read(path("filters/sums.wasm")).unwrap();
    let mut filters = Vec::new();
    for number in 0..64_u8 {
        // A section of its own makes it another file.
        let bytes = [&whole[..], &[0, 2, 1, number]].concat();
        let file = FilterFile::new("sums.wasm", bytes).unwrap();
        registry.take_file(&file.shipped()).unwrap();
        let name = file.filter_name("sum3");
        filters.push(registry.make(&name, ValuesRef::default()).unwrap());
    }
    std::thread::scope(|scope| {
        for filter in &mut filters {
            scope.spawn(|| {
                let packets = [wave_of([1.0, 2.0]), wave_of([10.0, 20.0]), wave_of([0.5, 0.5])];
                for wave in 0..20 {
                    let emitted = given(filter.as_mut(), wave, &packets).unwrap();
                    assert_eq!(emitted[0].as_ref().array::<f64>(0), Ok(&[11.5, 22.5][..]));
                }
            });
        }
    });
}

/// What comes of a file that has travelled.
fn take(bytes: &[u8]) -> Result<(), String> {
    let digest = match FilterFile::for_source("wasm", "m.wasm", bytes.to_vec()) {
        Ok(file) => *file.digest(),
        Err(error) => return Err(error.to_string()),
    };
    let shipped = ShippedFile { name: "wasm:m.wasm", digest: &digest, bytes };
    let registry = with_extensions(Registry::empty());
    registry.take_file(&shipped).map_err(|error| error.to_string())
}

/// The first function, by the name that the interface asks for.
const READY: (&str, u8, u8) = ("sapwood_filter_v1", 0, 0);

/// A module with a memory and one function, which takes nothing and never comes back; with further
/// sections and exports: name, kind and index. It begins with a function if one is named; the
/// function gives no number then.
fn module_of(sections: &[(u8, Vec<u8>)], exports: &[(&str, u8, u8)], start: Option<u8>) -> Vec<u8> {
    let result: &[u8] = if start.is_some() { &[0] } else { &[1, 0x7f] };
    let mut all = vec![(1, [&[1, 0x60, 0][..], result].concat()), (3, vec![1, 0])];
    all.push((5, vec![1, 0, 1]));
    let mut exported = vec![exports.len() as u8 + 1, 6];
    exported.extend(b"memory\x02\x00");
    for (name, kind, index) in exports {
        exported.push(name.len() as u8);
        exported.extend(name.as_bytes());
        exported.extend([*kind, *index]);
    }
    all.push((7, exported));
    all.extend(start.map(|function| (8, vec![function])));
    // loop br 0 end unreachable end
    all.push((10, vec![1, 8, 0, 0x03, 0x40, 0x0c, 0, 0x0b, 0, 0x0b]));
    all.extend(sections.iter().cloned());
    all.sort_by_key(|(kind, _)| *kind);
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    for (kind, bytes) in all {
        module.extend([kind, bytes.len() as u8]);
        module.extend(bytes);
    }
    module
}

#[test]
fn a_module_that_has_travelled_is_used_by_its_checksum() {
    let file = FilterFile::read(&path("filters/mean.wasm")).unwrap();
    assert!(file.name().starts_with("wasm:"));
    let registry = with_extensions(Registry::empty());
    let name = file.filter_name("mean");
    assert!(registry.make(&name, ValuesRef::default()).is_err(), "it has not come yet");
    let shipped = ShippedFile { name: file.name(), digest: file.digest(), bytes: file.bytes() };
    registry.take_file(&shipped).unwrap();
    let mut mean = registry.make(&name, ValuesRef::default()).unwrap();
    let emitted = given(mean.as_mut(), 0, &[wave_of([4.0]), wave_of([5.0])]).unwrap();
    assert_eq!(emitted[0].as_ref().array::<f64>(1), Ok(&[4.5][..]));
}
