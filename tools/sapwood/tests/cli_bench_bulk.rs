//! `sapwood bench bulk` with small arrays: everything that arrived was right, and all figures are
//! there.

use crate::cli::{assert_refused, run, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

#[test]
fn every_case_arrives_whole_on_both_trees() {
    let small = ["bench", "bulk", "--mib", "3", "--runs", "2", "--streams", "20", "--json"];
    for topology in ["2x2", "3"] {
        let output = run(&[&small[..], &["--topology", topology]].concat());
        assert!(output.status.success(), "{topology}: {}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_fits("bench-bulk-1", &report);
        assert_eq!((&report["bytes"], &report["topology"]), (&(3 << 20).into(), &topology.into()));
        for case in ["broadcast", "broadcast_packets", "gather", "gather_packets", "reduce"] {
            for figure in ["mib_per_s", "floor_mib_per_s", "ratio_to_floor", "cpu_ratio_to_floor"] {
                let value = report[case][figure].as_f64();
                assert!(value.is_some_and(|value| value > 0.0), "{case}.{figure} in {report}");
                assert_eq!(report[case]["spread"][figure]["runs"], 2);
            }
            assert!(report[case]["peak_rss_mib"].is_number(), "{case} in {report}");
        }
        assert_eq!(report["streams"]["count"], 20);
        assert!(report["streams"]["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for (name, value) in [("--mib", "0"), ("--mib", "4096"), ("--runs", "0"), ("--streams", "0")] {
        let arguments = ["bench", "bulk", name, value];
        assert_refused(&run(&arguments), name, &arguments);
    }
}
