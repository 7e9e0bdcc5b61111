//! `sapwood bench bindings`, `bench mrnet-style` and `bench filter` with tiny counts: figures for
//! what is there, a clear line for what is missing, and refusals. Programs that stand in for the
//! other languages speak the protocol of turns.

use std::fs;
use std::path::Path;

use crate::cli::{assert_refused, run, text, write_program};
use sapwood_schema::assert_fits;
use serde_json::Value;

/// Takes turns as a program in another language does: the number that it reads, times 30
/// microseconds.
const TAKES_TURNS: &str = "#!/bin/sh
while read times; do
    while [ $times -gt 0 ]; do printf '30000 '; times=$((times - 1)); done
    echo
done
";

fn put(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_program(&path, script);
}

#[test]
fn rows_that_are_there_are_measured_and_the_others_named() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "tests/bare_round_trip", TAKES_TURNS);
    put(folder.path(), "tests/bare_back_end", TAKES_TURNS);
    put(folder.path(), "tests/round_trip", "#!/bin/sh\necho no tree here >&2\nexit 3\n");
    put(folder.path(), "tests/back_end", TAKES_TURNS);
    let (place, python) = (text_of(folder.path()), text_of(&folder.path().join("no-python")));
    let words =
        ["bench", "bindings", "--topology", "2", "--rounds", "60", "--trees", "2", "--json"];
    let output = run(&[&words[..], &["--mrnet", &place, "--python", &python]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-bindings-2", &report);
    assert_eq!((&report["topology"], &report["rounds"]), (&"2".into(), &100.into()));
    for interface in ["c", "c_front_end"] {
        assert_eq!(report["us"][interface], 30.0, "{report}");
        assert!(report["ratio"][interface].as_f64().is_some_and(|ratio| ratio > 0.0));
        assert_eq!(report["ratio"]["spread"][interface]["runs"], 2);
    }
    assert!(report["us"]["rust"].as_f64().is_some_and(|us| us > 0.0), "{report}");
    for (interface, words) in [
        ("mrnet", "no tree here"),
        ("mrnet_front_end", "exit status: 3"),
        ("python", "pip install"),
        ("python_front_end", "--python"),
    ] {
        let why = report["missing"][interface].as_str().unwrap_or_default();
        assert!(why.contains(words), "{interface}: {report}");
        assert!(report["ratio"].get(interface).is_none(), "{report}");
    }
}

#[test]
fn nothing_to_compare_with_is_a_failure_that_says_how_to_build_it() {
    let words = [
        "bench",
        "bindings",
        "--topology",
        "1",
        "--rounds",
        "1",
        "--trees",
        "1",
        "--only",
        "c,mrnet",
    ];
    let output = run(&[&words[..], &["--mrnet", "/nowhere", "--pin"]].concat());
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for needed in ["/nowhere/tests/bare_round_trip", "/nowhere/tests/round_trip"] {
        let line = table.lines().find(|line| line.contains(needed)).unwrap_or(table);
        assert!(line.contains("missing: ") && line.contains("bench-programs"), "{table}");
    }
}

/// Answers as the front-end of MRNet's style does: 2 ms to start, 1 ms a round trip, 10 us a wave.
const MEASURES: &str = "#!/bin/sh
echo 2000000
while read what count; do
    if [ $what = latency ]; then
        while [ $count -gt 0 ]; do printf '1000000 '; count=$((count - 1)); done
    else
        printf $((count * 10000))
    fi
    echo
done
";

#[test]
fn what_mrnet_s_authors_measured_is_measured_beside_rust() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "tests/style_front_end", MEASURES);
    put(folder.path(), "tests/style_back_end", MEASURES);
    let place = text_of(folder.path());
    let words = ["bench", "mrnet-style", "--topology", "2", "--rounds", "5", "--waves", "50"];
    let output = run(&[&words[..], &["--trees", "2", "--json", "--mrnet", &place]].concat());
    assert_eq!(output.status.code(), Some(125), "one tool is missing");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-mrnet-style-1", &report);
    assert_eq!(report["start_ms"]["mrnet"], 2.0, "{report}");
    assert_eq!(report["latency_ms"]["mrnet"], 1.0, "{report}");
    for kind in ["flushed", "queued"] {
        assert_eq!(report["waves_per_s"][kind]["mrnet"], 100_000.0, "{report}");
        let rust = report["waves_per_s"][kind]["rust"].as_f64().unwrap();
        let ratio = report["ratio"]["waves_per_s"][kind]["mrnet"].as_f64().unwrap();
        assert!(rust > 0.0 && ratio > 0.0, "{report}");
        assert_eq!(report["waves_per_s"][kind]["spread"]["rust"]["runs"], 2);
    }
    let why = report["missing"]["mrnet_light"].as_str().unwrap();
    assert!(why.contains("style_light_back_end") && why.contains("bench-programs"), "{why}");
}

#[test]
fn kinds_of_filters_are_measured_without_python_too() {
    let words = ["bench", "filter", "--rounds", "3", "--calls", "20", "--json"];
    let output = run(&[&words[..], &["--python", "/nowhere/python"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-filter-1", &report);
    for kind in ["built_in", "native", "wasm"] {
        assert!(report["ns"][kind].as_f64().is_some_and(|ns| ns > 0.0), "{report}");
        assert!(report["over_direct_ns"][kind].is_number(), "{report}");
    }
    assert!(report["missing"]["python"].as_str().is_some_and(|why| why.contains("/nowhere")));
}

#[test]
fn a_filter_in_python_is_measured_by_an_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    // As the package: asked whether it is there, then for turns, with one figure for all calls.
    put(
        folder.path(),
        "python",
        "#!/bin/sh\n[ $1 = -c ] && exit\nwhile read calls; do echo 7000; done\n",
    );
    let python = text_of(&folder.path().join("python"));
    let words = ["bench", "filter", "--rounds", "3", "--calls", "20", "--json"];
    let output = run(&[&words[..], &["--python", &python]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-filter-1", &report);
    assert_eq!(report["ns"]["python"], 7000.0, "{report}");
}

#[test]
fn counts_and_names_that_make_no_sense_are_refused() {
    for (arguments, what) in [
        (&["bindings", "--rounds", "0"][..], "--rounds 0"),
        (&["mrnet-style", "--waves", "100001"], "--waves 100001"),
        (&["bindings", "--trees", "0"], "--trees 0"),
        (&["bindings", "--only", "cobol"], "cobol"),
        (&["bindings", "--topology", "2y2"], "--topology"),
        (&["filter", "--rounds", "0"], "--rounds 0"),
        (&["filter", "--calls", "0"], "--calls 0"),
    ] {
        assert_refused(&run(&[&["bench"], arguments].concat()), what, arguments);
    }
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}
