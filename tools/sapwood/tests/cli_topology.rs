//! `sapwood topology`: what it shows, and every malformed file in one line.

use std::fs;

use crate::cli::{assert_refused, run, run_with_input, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

#[test]
fn a_printed_tree_is_read_back_as_the_same_tree() {
    for spec in ["1", "8", "4^3", "8x8x4", "k:2@16", "g:2:3,1:4x2"] {
        let printed = run(&["topology", "print", spec, "--hosts", "alpha,beta"]);
        assert!(printed.status.success(), "{spec}");
        let again = run_with_input(&["topology", "print", "-"], &printed.stdout);
        assert!(again.status.success(), "{spec}: {}", text(&again.stderr));
        assert_eq!(text(&again.stdout), text(&printed.stdout), "{spec}");
    }
}

#[test]
fn a_file_is_drawn_counted_and_predicted_like_its_specification() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.top");
    fs::write(&path, run(&["topology", "print", "2x4"]).stdout).unwrap();
    let path = path.to_str().unwrap();
    for (action, option) in [("draw", None), ("draw", Some("--dot")), ("count", Some("--json"))] {
        let show = |source| run(&[&["topology", action, source], option.as_slice()].concat());
        assert_eq!(text(&show(path).stdout), text(&show("2x4").stdout), "{action}");
    }
    let cost = |source| -> Value {
        let output = run(&["topology", "cost", source, "--json", "--bytes", "4096"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (from_file, from_spec) = (cost(path), cost("2x4"));
    assert_eq!(from_file["tree"]["round_trip_us"], from_spec["tree"]["round_trip_us"]);
    assert_eq!(from_file["alternatives"], from_spec["alternatives"]);
    assert_fits("topology-cost-1", &from_file);
    assert_fits("topology-cost-1", &from_spec);
    assert_eq!(from_file["bytes"], 4096);
}

#[test]
fn a_drawing_has_boxes_or_is_a_graph() {
    let drawing = run(&["topology", "draw", "2x4"]);
    assert!(text(&drawing.stdout).contains("├─ communication process 9"));
    let placed = run(&["topology", "draw", "2", "--hosts", "alpha,beta"]);
    assert!(text(&placed.stdout).starts_with("front-end 2 alpha:0\n"), "{}", text(&placed.stdout));
    let graph = run(&["topology", "draw", "2x4", "--dot"]);
    assert!(text(&graph.stdout).starts_with("digraph"));
}

#[test]
fn counts_add_up() {
    let output = run(&["topology", "count", "4^3", "--json"]);
    let counted: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("topology-count-1", &counted);
    assert_eq!(counted["nodes"], 85);
    assert_eq!(counted["levels"][3]["back_ends"], 64);
    assert!(text(&run(&["topology", "count", "4^3"]).stdout).contains("85"));
}

fn advice(arguments: &[&str]) -> Value {
    let output = run(&[&["topology", "advise", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let advice = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("topology-advice-1", &advice);
    advice
}

#[test]
fn advice_is_a_tree_that_costs_no_more_than_the_flat_one() {
    let model = ["--loggp", "10,2,2,0.001"];
    for (back_ends, hosts) in [("1", "1"), ("8", "8"), ("64", "1"), ("1000", "1000")] {
        for pattern in ["request", "stream"] {
            let options = ["--backends", back_ends, "--hosts", hosts, "--pattern", pattern];
            let advice = advice(&[&options[..], &model].concat());
            let candidates = advice["candidates"].as_array().unwrap();
            let flat = candidates.iter().find(|candidate| candidate["kind"] == "flat").unwrap();
            let taken = &candidates[0];
            assert_eq!(taken["topology"], advice["topology"]);
            assert!(taken["cost_us"].as_f64() <= flat["cost_us"].as_f64(), "{advice}");
            // It can be given to any command that takes a tree.
            let spec = advice["topology"].as_str().unwrap();
            let counted = run(&["topology", "count", spec, "--json"]);
            let counted: Value = serde_json::from_slice(&counted.stdout).unwrap();
            assert_eq!(counted["back_ends"].to_string(), back_ends);
        }
    }
}

#[test]
fn advice_is_for_the_site_and_the_packets_that_options_describe() {
    let site = ["--processors", "7", "--dedicated", "3", "--fan-out", "4", "--bytes", "4096"];
    let model = ["--backends", "100", "--hosts", "10", "--loggp", "10,2,2,0.001"];
    let described = advice(&[&model[..], &site].concat());
    let expected = serde_json::json!({
        "dedicated_hosts": 3, "fan_out_max": 4, "hosts": 10, "processors": 7
    });
    assert_eq!((&described["site"], &described["bytes"]), (&expected, &4096.into()));
    for candidate in described["candidates"].as_array().unwrap() {
        assert!(candidate["fan_out"].as_u64() <= Some(4), "{candidate}");
    }
}

#[test]
fn advice_without_a_model_measures_this_machine() {
    let measured = advice(&["--backends", "16"]);
    assert_eq!(measured["model"]["is_measured"], true);
    assert!(measured["model"]["overhead_us"].as_f64() >= Some(0.0));
    let table = run(&["topology", "advise", "--backends", "1000", "--hosts", "1000"]);
    assert!(text(&table.stdout).starts_with("take "), "{}", text(&table.stdout));
}

#[test]
fn advice_needs_somebody_to_advise() {
    let advise = ["topology", "advise", "--backends"];
    for (options, what) in [
        (&["0"][..], "0 is not in 1.."),
        (&["4", "--hosts", "0"], "--hosts 0"),
        (&["4", "--loggp", "1,1,1"], "four times in microseconds"),
    ] {
        let command = [&advise, options].concat();
        assert_refused(&run(&command), what, &command);
    }
}

#[test]
fn the_flat_tree_is_among_the_alternatives() {
    let output = run(&["topology", "cost", "4^3", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["alternatives"][0]["topology"], "64");
    let table = run(&["topology", "cost", "4^3", "--loggp", "10,2,3,0.5"]);
    assert!(text(&table.stdout).contains("latency 10 us"));
}

#[test]
fn every_malformed_file_is_refused_with_its_line() {
    let malformed = [
        ("a:0 => a:1\nb:0 => b:1 ;\n", "missing \";\""),
        ("a:0 => a:1 a:2", "line 1: missing \";\""),
        ("a:0 => a:1 ;\nb:0 => b:1 ;\n", "line 2: two roots"),
        ("a:0 => a:1 ;\na:1 => a:0 ;\n", "line 1: no root"),
        ("a:0 => b:0 c:0 ;\nb:0 => d:0 ;\nc:0 => d:0 ;\n", "line 3: \"d:0\" already is a child"),
        ("a:0 => b:0 b:0 ;\n", "already is a child"),
        ("a:0 => b:0 ;\nc:0 => d:0 ;\nd:0 => c:0 ;\n", "cycle"),
        ("a:0 => a:0 ;\n", "its own child"),
        ("a => b:0 ;\n", "is no node"),
        ("", "no node"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.top");
    for (content, what) in malformed {
        fs::write(&path, content).unwrap();
        for action in ["print", "draw", "count", "cost"] {
            let arguments = ["topology", action, path.to_str().unwrap()];
            assert_refused(&run(&arguments), what, &[content, action]);
        }
        assert_refused(&run_with_input(&["topology", "print", "-"], content.as_bytes()), what, &[]);
    }
}

#[test]
fn what_is_neither_a_specification_nor_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("tree.top");
    let arguments = ["topology", "print", absent.to_str().unwrap()];
    assert_refused(&run(&arguments), "there is no file of that name", &arguments);
    fs::write(&absent, b"a:0 =>\n\xff\xfe ;").unwrap();
    assert_refused(&run(&arguments), "line 2 is not UTF-8 text", &arguments);
    for spec in ["", "0", "4x0", "4^", "999999999999", "1^999", "k:1@4", "g:2:3,5,7"] {
        assert_refused(&run(&["topology", "print", spec]), "topology", &[spec]);
    }
}

#[test]
fn a_reader_that_leaves_ends_the_command_in_silence() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = crate::cli::command()
        .args(["topology", "print", "64^2"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}
