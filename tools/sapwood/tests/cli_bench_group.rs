//! `sapwood bench group` with few members and rounds on this host: all figures are there, every
//! value was right, and nothing is left running.

use crate::cli::benchmark::assert_leaves_no_process;
use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

const TREES: [&str; 7] =
    ["flat", "binomial", "static", "list", "paper-latency", "paper-bandwidth", "adaptive"];
/// Long enough for the two stripes of adaptive trees.
const FEW: [&str; 12] = [
    "bench",
    "group",
    "--scenario",
    "host",
    "--members",
    "5",
    "--rounds",
    "1",
    "--long",
    "200K",
    "--churn",
    "20K",
];

#[test]
fn members_on_this_host_are_measured_by_all_trees_and_every_value_is_right() {
    let output = run(&[&FEW[..], &["--json"]].concat());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-group-1", &report);
    assert_eq!((&report["right"], &report["where"]), (&true.into(), &"one-host".into()));
    assert_eq!((&report["members"], &report["rounds"]), (&5.into(), &1.into()));
    for experiment in
        [&report["short"], &report["sums"]["bytes8"], &report["sums"]["bytes8192"], &report["long"]]
    {
        for tree in TREES {
            let tree = &experiment["trees"][tree];
            assert!(tree["ms"].as_f64() > Some(0.0), "{report}");
            assert!(tree["simulated"]["ms"].as_f64() > Some(0.0), "{report}");
        }
    }
    assert_eq!(report["short"]["trees"]["adaptive"]["by_member_ms"].as_array().unwrap().len(), 4);
    assert_eq!(report["roots"]["roots"], serde_json::json!([0, 4]));
    let churn = &report["churn"];
    assert_eq!((&churn["lost"], &churn["wrong"]), (&0.into(), &0.into()), "{report}");
    assert!(churn["broadcasts"].as_u64() >= Some(18), "{report}");
}

#[test]
fn a_table_has_a_line_for_each_tree() {
    let output = run(&[&FEW[..], &["--only", "sums"]].concat());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let table = text(&output.stdout);
    for tree in TREES {
        let lines = table.lines().filter(|line| line.trim_start().starts_with(tree));
        assert_eq!(lines.count(), 2, "{tree}: {table}");
    }
    assert!(table.ends_with("right at every member\n"), "{table}");
    assert!(!table.contains("churn") && !table.contains("leave"), "{table}");
}

#[test]
fn a_killed_benchmark_leaves_no_member() {
    let group = ["group", "--scenario", "host", "--members", "5", "--rounds", "1000"];
    assert_leaves_no_process(&group, 6);
}

#[test]
fn networks_that_make_no_sense_are_refused() {
    for (arguments, what) in [
        (&["--scenario", "paper-5"][..], "slow-link"),
        (&["--scenario", "host", "--scale", "2"], "--scale"),
        (&["--scenario", "host", "--members", "2"], "--members"),
        (&["--scenario", "host", "--long", "0"], "--long"),
        (&["--scale", "0"], "--scale"),
        (&["--testbed", "nowhere"], "nowhere"),
    ] {
        assert_refused(&run(&[&["bench", "group"], arguments].concat()), what, arguments);
    }
}
