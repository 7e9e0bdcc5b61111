//! `sapwood trace scope` gathers figures of the hops of networks of other processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::cli::benchmark::{Running, ask};
use crate::cli::{assert_refused, json, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A process of a tree, as `sapwood status` has it.
#[derive(Debug)]
struct Process {
    parent: Option<u64>,
    role: String,
}

fn processes(folder: &Path) -> BTreeMap<u64, Process> {
    let status = json(&ask(folder, &["status", "--json", "--timeout", "60s"]));
    let process = |node: &Value| {
        let role = node["role"].as_str().expect("a role").to_owned();
        (number(&node["rank"]), Process { parent: node["parent"].as_u64(), role })
    };
    list(&status["nodes"]).iter().map(process).collect()
}

/// The records of these scopes, each as its schema says.
fn gathered(folder: &Path, network: &str, scopes: &[&str]) -> Vec<Value> {
    let mut arguments =
        vec!["trace", "scope", "--network", network, "--for", "2s", "--ndjson", "-"];
    arguments.extend(["--timeout", "10s"]);
    arguments.extend(scopes.iter().flat_map(|scope| ["--scope", *scope]));
    let output = ask(folder, &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for record in &records {
        assert_fits("scope-1", record);
        assert_eq!(record["source"], "hops", "{record}");
        let counts = list(&record["groups"]).iter().map(|group| number(&group["count"]));
        assert_eq!(counts.sum::<u64>(), number(&record["events_selected"]), "{record}");
        assert_eq!(number(&record["silent_ranks"]), 0, "{record}");
    }
    records
}

fn of<'a>(records: &'a [Value], scope: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["scope"] == scope).collect()
}

fn groups<'a>(records: &[&'a Value]) -> Vec<&'a Value> {
    records.iter().flat_map(|record| list(&record["groups"])).collect()
}

/// 4x4 is the shape of a benchmark for which none is named.
#[test]
fn each_link_and_each_process_has_its_figures_at_fan_outs_1_2_and_the_default() {
    for shape in ["1x1", "2x2", "4x4"] {
        let folder = tempfile::tempdir().unwrap();
        let running = Running::start(folder.path(), shape);
        let tree = processes(folder.path());
        let records = gathered(
            folder.path(),
            &running.name,
            &[
                "source=hops name=waits value=wait by=edge every=200ms",
                "source=hops name=both value=two-way by=edge,kind every=end",
                "source=hops name=inside value=inside by=process,kind every=end",
                "source=hops name=leaves value=inside by=process kinds=back-end every=end",
                "source=hops name=streams value=up by=stream reduce=sums every=end",
                "source=hops name=largest value=down by=edge reduce=top=1 every=end",
            ],
        );
        drop(running);
        let edges: BTreeSet<(u64, u64)> =
            tree.iter().filter_map(|(&rank, one)| Some((one.parent?, rank))).collect();
        let edge = |group: &&Value| (number(&group["parent"]), number(&group["rank"]));
        let waits = of(&records, "waits");
        assert!(waits.len() > 1, "{shape}: it is gathered while the network is followed");
        let last: Vec<bool> = waits.iter().map(|one| one["is_last"] == true).collect();
        assert_eq!(last.iter().position(|is_last| *is_last), Some(last.len() - 1), "{shape}");
        let found: BTreeSet<(u64, u64)> = groups(&waits).iter().map(edge).collect();
        assert_eq!(found, edges, "{shape}");
        if shape == "1x1" {
            // An only child waits for no other.
            assert!(groups(&waits).iter().all(|group| number(&group["sum_ns"]) == 0), "{waits:?}");
        }
        let both = groups(&of(&records, "both"));
        assert_eq!(both.iter().map(edge).collect::<BTreeSet<_>>(), edges, "{shape}");
        let inside = groups(&of(&records, "inside"));
        assert_eq!(inside.len(), tree.len(), "{shape}: {inside:?}");
        for group in both.iter().chain(&inside) {
            assert_eq!(group["kind"], tree[&number(&group["rank"])].role.as_str(), "{shape}");
        }
        let leaves = groups(&of(&records, "leaves"));
        let back_ends = tree.values().filter(|one| one.role == "back-end").count();
        assert_eq!(leaves.len(), back_ends, "{shape}: {leaves:?}");
        let streams = groups(&of(&records, "streams"));
        assert!(!streams.is_empty(), "{shape}");
        for group in &streams {
            assert!(group["stream"].is_u64() && group["median_ns"].is_null(), "{shape}: {group}");
        }
        let largest = groups(&of(&records, "largest"));
        let others = largest.iter().filter(|group| group["is_others"] == true).count();
        assert_eq!((largest.len() - others, others), (1, usize::from(edges.len() > 1)), "{shape}");
    }
}

#[test]
fn processes_and_streams_are_chosen_and_a_table_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), "2x2");
    let waits = "source=hops name=all value=wait by=edge,stream every=end";
    let some = "source=hops name=some value=wait by=edge ranks=0-1 every=end";
    let records = gathered(folder.path(), &running.name, &[waits, some]);
    let chosen = groups(&of(&records, "some"));
    let ranks: BTreeSet<u64> = chosen.iter().map(|group| number(&group["rank"])).collect();
    assert_eq!(ranks, BTreeSet::from([0, 1]));
    let all = groups(&of(&records, "all"));
    let streams: BTreeSet<u64> = all.iter().map(|group| number(&group["stream"])).collect();
    let absent = streams.iter().max().unwrap() + 1_000;
    let none = format!("source=hops name=none streams={absent} every=end");
    let records = gathered(folder.path(), &running.name, &[none.as_str()]);
    assert!(groups(&of(&records, "none")).is_empty(), "{records:?}");
    let last = records.last().expect("a record");
    assert_eq!(last["unseen_streams"], serde_json::json!([absent]), "{last}");
    let arguments = ["trace", "scope", "--for", "1s", "--scope", "source=hops by=edge every=end"];
    let output = ask(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with("scope scope-1 after "), "{table}");
    assert!(table.contains(" 7 processes") && table.contains("\nparent  process "), "{table}");
}

#[test]
fn wrong_words_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, what) in [
        (&["--scope", "source=hops functions=MPI_Send"][..], "functions: hops have no such key"),
        (&["--scope", "source=hops by=rank"], "none of edge, process, stream, kind"),
        (&["--scope", "source=hops value=inside by=edge"], "use by=process"),
        (&["--scope", "value=wait"], "add source=hops"),
        (&["--scope", "source=hops", "--scope", "by=rank"], "of several sources"),
        (&["--network", "none", "--scope", "by=rank"], "--network is for scopes with source=hops"),
        (&["--scope", "source=hops", "--job", "mpi-1"], "leave out the command, --job"),
        (&["--scope", "source=hops", "--", "true"], "leave out the command"),
        (&["--scope", "source=hops", "--for", "0s"], "--for"),
        (&["--scope", "source=hops", "--network", "none"], "no visible network"),
    ] {
        let mut all = vec!["trace", "scope"];
        all.extend(arguments);
        assert_refused(&ask(folder.path(), &all), what, arguments);
    }
}
