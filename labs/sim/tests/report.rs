//! What `sapwood-sim` prints for programs.

#[path = "../../../crates/launch/tests/surroundings/mod.rs"]
mod surroundings;

use sapwood_schema::assert_fits;
use serde_json::Value;
use surroundings::clean_command;

fn report(arguments: &[&str]) -> Value {
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood-sim"));
    let output = command.args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_report_of_runs_is_as_its_schema_says() {
    let report = report(&["--seeds", "3"]);
    assert_fits("sim-1", &report);
    assert_eq!((&report["schedules"], &report["violations"]), (&3.into(), &0.into()));
}

#[test]
fn runs_begin_with_the_first_seed_and_are_of_nodes_without_recovery_on_demand() {
    let first = ["--seeds", "2", "--first", "5", "--seconds", "600"];
    let report = report(&[&first[..], &["--no-recovery"]].concat());
    assert_fits("sim-1", &report);
    assert_eq!((&report["schedules"], &report["first_seed"]), (&2.into(), &5.into()));
    assert_eq!((&report["expects"], &report["violations"]), (&"losses".into(), &0.into()));
}

#[test]
fn growth_is_by_the_model_that_options_describe_and_is_drawn() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("growth.svg");
    let trees = ["scale", "--back-ends", "10", "--fan-outs", "2", "--depths", "0", "--svg"];
    let model = ["--loggp", "10,2,3,0.001", "--start", "100,200,5,4", "--waves", "1"];
    let drawn = [file.to_str().unwrap(), "--no-recovery"];
    let report = report(&[&trees[..], &drawn, &model].concat());
    let told = ["gap_us", "spawn_us", "ready_us", "proof_us", "at_a_time"];
    let told = told.map(|name| report["model"][name].as_f64());
    assert_eq!(told, [3.0, 100.0, 200.0, 5.0, 4.0].map(Some));
    assert_eq!(report["recovery"], false);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg "));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_modelled_network_and_schedules_of_groups_are_as_options_say() {
    let group = |arguments: &[&str]| {
        let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood-sim"));
        let output = command.arg("group").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lan = ["--scenario", "lan", "--members", "4", "--short", "--scale"];
    let [one, four] = ["1", "4"].map(|scale| group(&[&lan[..], &[scale]].concat()));
    assert!(one.contains("\"scenario\":\"lan\"") && one.contains("\"members\":4"), "{one}");
    assert_ne!(one, four);
    let cards = group(&["--scenario", "cards", "--members", "8", "--short"]);
    assert!(cards.contains("\"scenario\":\"cards\""), "{cards}");
    for further in ["--taking", "--defining"] {
        let told = group(&["--schedules", "2", "--first", "3", further]);
        assert_eq!(told, "2 schedules from seed 3: 0 broke a rule\n", "{further}");
    }
}

#[test]
fn a_report_of_growth_is_as_its_schema_says() {
    let trees = ["--back-ends", "10", "--fan-outs", "2,flat", "--depths", "2"];
    let report = report(&[&["scale"], &trees[..], &["--depth-back-ends", "20"]].concat());
    assert_fits("sim-scale-1", &report);
    assert_eq!(report["trees"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_tree_that_is_only_computed_is_as_the_schema_says() {
    let report = report(&["scale", "--back-ends", "100000", "--fan-outs", "flat", "--depths", "0"]);
    assert_fits("sim-scale-1", &report);
    assert_eq!(report["trees"][0]["simulated"], Value::Null);
}

/// The lines of the paper's figures, each as its schema says.
fn curves(arguments: &[&str]) -> Vec<Value> {
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood-sim"));
    let output = command.arg("group").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| assert_fits("sim-group-figure-1", line));
    lines
}

#[test]
fn figures_6_and_8_have_a_curve_for_each_tree_and_seed() {
    let lines = curves(&["--members", "6", "--figures", "members,sums", "--seeds", "2"]);
    let (members, sums) = lines.split_at(14);
    assert_eq!((&members[7]["tree"], &members[7]["seed"]), (&"flat".into(), &1.into()));
    for line in members {
        let times = line["by_member_ms"].as_array().unwrap();
        let times: Vec<f64> = times.iter().filter_map(Value::as_f64).collect();
        assert_eq!(times.len(), 5, "all but the root: {line}");
        assert!(times[0] > 0.0 && times.is_sorted(), "{line}");
    }
    assert_eq!(sums.len(), 14);
    for line in sums {
        let rows = line["sums"].as_array().unwrap();
        let bytes: Vec<u64> = rows.iter().filter_map(|row| row["bytes"].as_u64()).collect();
        assert_eq!((bytes.first(), bytes.last(), bytes.len()), (Some(&8), Some(&(8 << 20)), 8));
        assert!(rows[7]["ms"].as_f64() > rows[0]["ms"].as_f64(), "{line}");
    }
}

#[test]
fn figures_7_and_9_have_rates_by_length_and_over_time() {
    let lines = curves(&["--members", "4", "--figures", "lengths,churn"]);
    let (lengths, churn) = lines.split_at(6);
    for line in lengths {
        let rows = line["lengths"].as_array().unwrap();
        let bytes = |at: usize| rows[at]["bytes"].as_u64();
        assert_eq!(bytes(0), Some(32 << 10));
        assert_eq!(bytes(rows.len() - 1), Some(64 << 20), "{line}");
        assert!(rows.iter().all(|row| row["mb_per_s"].as_f64() > Some(0.0)), "{line}");
    }
    assert_eq!(churn.len(), 4);
    for line in churn {
        let rows = line["over_time"].as_array().unwrap();
        let reached = |at: usize| rows[at]["reached"].as_u64();
        assert_eq!((reached(0), reached(rows.len() - 1)), (Some(4), Some(4)), "{line}");
        assert!((0..rows.len()).any(|at| reached(at) == Some(2)), "half are away: {line}");
        let [leave, come] = ["leave_s", "come_s"].map(|name| line["moments"][name].as_f64());
        assert!(leave > Some(0.0) && leave < come && come < rows[rows.len() - 1]["end_s"].as_f64());
    }
}

#[test]
fn figures_of_too_many_members_are_refused() {
    let mut command = clean_command(env!("CARGO_BIN_EXE_sapwood-sim"));
    let words = ["group", "--members", "401", "--figures", "members"];
    let output = command.args(words).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("at most 400 members with --figures"), "{text}");
}
