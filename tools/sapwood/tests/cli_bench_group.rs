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
    for named in ["lengths", "sum_lengths"] {
        assert_eq!(report[named], Value::Null, "only where it is named");
    }
}

#[test]
fn rates_by_length_and_over_time_stand_beside_those_of_list_and_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (lengths_svg, churn_svg) = (place("lengths.svg"), place("churn.svg"));
    let own = ["--only", "lengths,churn", "--longest", "200K", "--json"];
    let pictures = ["--lengths-svg", &lengths_svg, "--churn-svg", &churn_svg];
    let output = run(&[&FEW[..], &own, &pictures].concat());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-group-1", &report);
    let lengths = report["lengths"].as_array().unwrap();
    let bytes: Vec<u64> = lengths.iter().filter_map(|length| length["bytes"].as_u64()).collect();
    assert_eq!(bytes, [32 << 10, 128 << 10, 200 << 10]);
    for length in lengths {
        assert_eq!(length["trees"]["list"]["rate_to_list"], 1.0, "{length}");
        for tree in ["static", "list", "paper-bandwidth", "adaptive"] {
            assert!(length["trees"][tree]["mb_per_s"].as_f64() > Some(0.0), "{length}");
        }
    }
    for churn in [&report["churn"], &report["churn"]["list"]] {
        assert_eq!((&churn["lost"], &churn["wrong"]), (&0.into(), &0.into()), "{report}");
        let over_time = churn["over_time"].as_array().unwrap();
        assert_eq!(churn["broadcasts"], over_time.len(), "{churn}");
        let reached = |at: usize| over_time[at]["reached"].as_u64();
        let last = over_time.len() - 1;
        assert_eq!((reached(0), reached(last)), (Some(5), Some(5)), "{churn}");
        assert!((0..=last).any(|at| reached(at) == Some(3)), "{churn}");
        let [leave, left, come, back] =
            ["leave_s", "left_s", "come_s", "back_s"].map(|name| churn["moments"][name].as_f64());
        assert!(leave <= left && left <= come && come <= back && leave > Some(0.0), "{churn}");
    }
    for (picture, trees) in [(lengths_svg, 4), (churn_svg, 2)] {
        let svg = std::fs::read_to_string(picture).unwrap();
        assert_eq!(svg.matches("<polyline").count(), trees, "{svg}");
    }
}

#[test]
fn sums_by_length_stand_beside_those_of_static_and_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("sums.svg").to_str().unwrap().to_string();
    let own = ["--only", "sum-lengths", "--longest-sum", "64K", "--sums-svg", &svg];
    let output = run(&[&FEW[..], &own, &["--json"]].concat());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("bench-group-1", &report);
    let lengths = report["sum_lengths"].as_array().unwrap();
    let bytes: Vec<u64> = lengths.iter().filter_map(|length| length["bytes"].as_u64()).collect();
    assert_eq!(bytes, [8, 64, 512, 4 << 10, 32 << 10, 64 << 10]);
    for length in lengths {
        assert_eq!(length["trees"]["static"]["ratio_to_static"], 1.0, "{length}");
        for tree in ["static", "binomial", "paper-latency", "adaptive"] {
            assert!(length["trees"][tree]["ms"].as_f64() > Some(0.0), "{length}");
        }
    }
    assert_eq!(report["sums"], Value::Null, "only what is named");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 4, "{svg}");
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
        (&["--scenario", "host", "--longest", "0"], "--longest"),
        (&["--scenario", "host", "--longest-sum", "0"], "--longest-sum"),
        (&["--scenario", "host", "--longest-sum", "12"], "multiple of 8"),
        (&["--scenario", "host", "--lengths-svg", "x.svg"], "--only"),
        (&["--scenario", "host", "--sums-svg", "x.svg"], "'sum-lengths'"),
        (
            &["--scenario", "host", "--only", "sums", "--svg", "x.svg"],
            "--svg is a picture of 'short'",
        ),
        (&["--scenario", "host", "--only", "short", "--churn-svg", "x.svg"], "'churn'"),
        (&["--scale", "0"], "--scale"),
        (&["--testbed", "nowhere"], "nowhere"),
    ] {
        assert_refused(&run(&[&["bench", "group"], arguments].concat()), what, arguments);
    }
}
