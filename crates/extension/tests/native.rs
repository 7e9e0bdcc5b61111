//! Filters in shared objects, compiled by the test: what they are given, what they give, and what
//! is said when they cannot be used.

use crate::harness::{Library, given, make, wave_of};
use sapwood_filter::{Arrivals, Registry, State, Verdict};
use sapwood_packet::{RankSet, Values, ValuesRef};
use std::time::Duration;

use sapwood_extension::{FilterFile, with_extensions};
use sapwood_filter::ShippedFile;

#[test]
fn three_arrays_are_added_up_where_they_lie() {
    let library = Library::build("filters/sums.c", &[]);
    let mut sum = make(&library.filter("sum3"), ValuesRef::default()).unwrap();
    let packets = [1.0, 10.0, 100.0].map(|unit| wave_of([unit, 2.0 * unit]));
    for _ in 0..3 {
        let emitted = given(sum.as_mut(), 0, &packets).unwrap();
        assert_eq!(emitted.len(), 1);
        assert_eq!(emitted[0].as_ref().array::<f64>(0), Ok(&[111.0, 222.0][..]));
    }
    let mixed = [wave_of([1.0]), wave_of([1.0, 2.0])];
    let error = given(sum.as_mut(), 3, &mixed).unwrap_err();
    assert_eq!(error.to_string(), "filter 'sum3': the arrays of a wave differ in length");
}

#[test]
fn a_state_is_saved_and_merged_into_that_of_another_instance() {
    let library = Library::build("filters/sums.c", &[]);
    let parameters = Values::new().scalar(4_i32);
    let total = library.filter("total");
    let mut first = make(&total, parameters.as_ref()).unwrap();
    let mut second = make(&total, parameters.as_ref()).unwrap();
    assert_eq!(first.state(), State::Composable);
    assert!(first.save().is_none());
    for wave in 0..3 {
        assert!(given(first.as_mut(), wave, &[wave_of([7_i64; 0])]).is_err());
        let packets = [7_i64, 8].map(crate::harness::packet_of);
        assert!(given(first.as_mut(), wave, &packets).unwrap().is_empty());
    }
    let saved = first.save().expect("it holds three waves");
    drop(first);
    second.absorb(saved.as_ref()).unwrap();
    let emitted = given(second.as_mut(), 3, &[crate::harness::packet_of(5_i64)]).unwrap();
    assert_eq!(emitted[0].as_ref().scalar::<i64>(0), Ok(50));
    assert!(second.absorb(Values::new().string("no state").as_ref()).is_err());
}

#[test]
fn a_rule_says_when_a_wave_goes_on() {
    let library = Library::build("filters/sums.c", &[]);
    let registry = with_extensions(Registry::empty());
    let parameters = Values::new().scalar(2_i32);
    let quorum = library.filter("quorum");
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
    let error = registry.make_rule(&library.filter("sum3"), ValuesRef::default()).err();
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("no synchronisation rule"), "{text}");
    assert!(make(&quorum, parameters.as_ref()).is_err(), "a rule is no filter");
}

#[test]
fn what_filters_must_not_do_fails_the_wave_with_the_reason() {
    let library = Library::build("tests/filters/faults.c", &[]);
    for (name, reason) in [
        ("refuse", "filter 'refuse': does not like this wave"),
        ("silent", "filter 'silent': failed with 7 and gave no reason"),
        ("rubbish", "filter 'rubbish': emitted a value whose element or shape is none"),
        ("forged", "filter 'forged': emitted an array of strings that is none"),
    ] {
        let mut filter = make(&library.filter(name), ValuesRef::default()).unwrap();
        let error = given(filter.as_mut(), 0, &[wave_of([1.0])]).unwrap_err();
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn an_instance_that_takes_long_is_waited_for_by_its_first_wave() {
    let library = Library::build("tests/filters/faults.c", &[]);
    let slow = library.filter("slow");
    let milliseconds = |time: u32| Values::new().scalar(time);
    for time in [1, 400] {
        let mut filter = make(&slow, milliseconds(time).as_ref()).unwrap();
        let emitted = given(filter.as_mut(), 0, &[wave_of([1.5])]).unwrap();
        assert_eq!(emitted[0].as_ref().array::<f64>(0), Ok(&[1.5][..]), "{time} ms");
        // A state that is dropped before it is made is destroyed once it is made.
        drop(make(&slow, milliseconds(time).as_ref()).unwrap());
    }
    let error = make(&slow, ValuesRef::default()).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("filter 'slow': takes milliseconds, one %ud"));
    // These are waited for only when a wave arrives, and many of them never.
    let unmade = || make(&slow, milliseconds(0).as_ref());
    let error = (0..32).find_map(|_| unmade().err()).map(|error| error.to_string());
    let text = error.unwrap_or_default();
    assert!(text.contains("cannot be made: 16 other calls have not returned"), "{text}");
}

#[test]
fn a_file_that_cannot_be_used_is_refused_in_words() {
    let library = Library::build("tests/filters/faults.c", &[]);
    let other = Library::build("tests/filters/faults.c", &["-DVERSION=7"]);
    let path = library.path();
    let path = path.display();
    let text = |name: &str| make(name, ValuesRef::default()).err().map(|error| error.to_string());
    for (name, expected) in [
        (other.filter("refuse"), "have interface version 7, not 1"),
        (library.filter("sum9"), "has no filter 'sum9'; it has: refuse silent"),
        (format!("native:{path}"), "has several filters; name one with #"),
        ("native:/nowhere/lib.so#x".to_string(), "no file of filters '/nowhere/lib.so' in"),
        ("native:lib-unknown.so#x".to_string(), "SAPWOOD_FILTER_PATH"),
        ("native:/etc/passwd#x".to_string(), "cannot be loaded"),
        ("native:libc.so.6#x".to_string(), "no file of filters"),
        (format!("native:lib.so={}#x", "0".repeat(64)), "have not been shipped"),
    ] {
        let text = text(&name).unwrap_or_default();
        assert!(text.contains(expected), "{name}: {text}");
    }
}

/// The loader would map what is not there, and the process end by a signal.
#[test]
fn a_shared_object_without_its_end_is_refused() {
    let library = Library::build("tests/filters/faults.c", &[]);
    let whole = std::fs::read(library.path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libcut.so");
    for length in [64, 1000, 5000, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length.min(whole.len() - 1)]).unwrap();
        let name = format!("native:{}#refuse", path.display());
        let error = make(&name, ValuesRef::default()).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("cannot be loaded")), "{length} bytes");
    }
}

#[test]
fn a_symbol_that_is_nowhere_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("lacking.c");
    let text = "#include <stddef.h>\n#include <sapwood_filter.h>\nextern int sapwood_nowhere(void);\n\
                const sapwood_filter_library_t *sapwood_filter_v1(void)\n\
                { return sapwood_nowhere() ? NULL : NULL; }\n";
    std::fs::write(&source, text).unwrap();
    let library = Library::build(&source.display().to_string(), &[]);
    let error = make(&library.filter("x"), ValuesRef::default()).err().unwrap().to_string();
    let words = ["cannot be loaded", "undefined symbol: sapwood_nowhere"];
    assert!(words.iter().all(|words| error.contains(words)), "{error}");
}

#[test]
fn a_constructor_that_exits_ends_the_process_which_says_whose_it_was() {
    const FILE: &str = "SAPWOOD_TEST_LEAVING";
    if let Ok(file) = std::env::var(FILE) {
        // This is the process that ends.
        let _ = make(&format!("native:{file}#first"), ValuesRef::default());
        return;
    }
    let library = Library::build("tests/filters/leaving.c", &[]);
    let name = "native::a_constructor_that_exits_ends_the_process_which_says_whose_it_was";
    let ended = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(FILE, library.path())
        .env("SAPWOOD_RANK", "5")
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{words}");
    let file = library.path();
    let line = format!(
        "sapwood: filters '{}' have ended this process while they were being loaded\n",
        file.display()
    );
    assert!(words.contains(&line), "{words}");
}

#[test]
fn a_file_that_has_travelled_is_used_from_memory() {
    let library = Library::build("filters/sums.c", &[]);
    let file = FilterFile::read(&library.path()).unwrap();
    let registry = with_extensions(Registry::empty());
    let shipped = ShippedFile { name: file.name(), digest: file.digest(), bytes: file.bytes() };
    drop(library);
    let name = file.filter_name("sum3");
    assert!(registry.make(&name, ValuesRef::default()).is_err(), "it has not come yet");
    registry.take_file(&shipped).unwrap();
    registry.take_file(&shipped).unwrap();
    let mut sum = registry.make(&name, ValuesRef::default()).unwrap();
    let emitted = given(sum.as_mut(), 0, &[wave_of([1.5]), wave_of([2.0])]).unwrap();
    assert_eq!(emitted[0].as_ref().array::<f64>(0), Ok(&[3.5][..]));

    let other = Library::build("tests/filters/faults.c", &[]);
    let other = FilterFile::read(&other.path()).unwrap();
    let damaged = ShippedFile { name: other.name(), digest: &[7; 32], bytes: other.bytes() };
    let error = registry.take_file(&damaged).unwrap_err().to_string();
    assert!(error.contains("arrived damaged"), "{error}");
    let second = ShippedFile { digest: other.digest(), ..damaged };
    registry.take_file(&second).unwrap();
    let mut refuse = registry.make(&other.filter_name("refuse"), ValuesRef::default()).unwrap();
    assert!(given(refuse.as_mut(), 0, &[wave_of([1.0])]).is_err(), "it is not the first file");
}

#[test]
fn the_first_filter_of_the_documentation_does_what_the_page_says() {
    let library = Library::of_page("custom-filters.md", "largest.c");
    let mut largest = make(&library.filter("largest"), ValuesRef::default()).unwrap();
    let packets = [(1.5_f64, 7_u32), (9.5, 8), (3.0, 9)].map(crate::harness::packet_of);
    let emitted = given(largest.as_mut(), 0, &packets).unwrap();
    assert_eq!(emitted[0].as_ref().scalar::<f64>(0), Ok(9.5));
    assert_eq!(emitted[0].as_ref().scalar::<u32>(1), Ok(8));
    let error = given(largest.as_mut(), 1, &[crate::harness::packet_of("text")]).unwrap_err();
    assert!(error.to_string().contains("takes %lf %ud"), "{error}");
}

#[test]
fn the_header_is_plain_c_and_plain_cxx() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| String::from("cc"));
    for (language, standard) in [("c", "-std=c11"), ("c++", "-std=c++17")] {
        let source = folder.path().join("header.x");
        let text = "#include <sapwood_filter.h>\nint main(void) { return !sapwood_filter_v1; }\n";
        std::fs::write(&source, text).unwrap();
        let status = std::process::Command::new(&compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"])
            .arg("-Wno-address")
            .arg("-I")
            .arg(root.join("../../bindings/c/include"))
            .args(["-x", language])
            .arg(&source)
            .status()
            .unwrap();
        assert!(status.success(), "{language}");
    }
}
