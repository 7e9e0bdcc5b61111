//! `sapwood group status` and `explain`: pictures of groups, and the trees of all roots.

use std::collections::{BTreeMap, BTreeSet};

use crate::members::{Folder, Member, group, output};
use sapwood_schema::assert_fits;
use serde_json::Value;

/// The attributes of the elements of a class, without what begins their names.
fn elements(picture: &str, class: &str) -> Vec<BTreeMap<String, String>> {
    let is_class = |tag: &&str| {
        let classes = tag.split_once("class=\"").and_then(|(_, rest)| rest.split_once('"'));
        classes.is_some_and(|(classes, _)| classes.split(' ').any(|one| one == class))
    };
    let attributes = |tag: &str| {
        let tag = tag.split_once('>').map_or(tag, |(tag, _)| tag);
        let pairs = tag.split(" data-").skip(1).filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_string(), value.trim_matches('"').to_string())).collect()
    };
    picture.split("<g ").skip(1).filter(is_class).map(attributes).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The members and edges of a picture are those of the JSON that was printed with it.
fn assert_same(picture: &str, status: &Value) {
    let steps = status["tree"]["steps"].as_array().unwrap();
    let expected: BTreeSet<[String; 3]> = steps
        .iter()
        .map(|step| ["stripe", "parent", "child"].map(|name| text_of(&step[name])))
        .collect();
    let edges = elements(picture, "edge");
    let drawn: BTreeSet<[String; 3]> = edges
        .iter()
        .map(|edge| ["stripe", "parent", "child"].map(|name| edge[name].clone()))
        .collect();
    assert_eq!((edges.len(), &drawn), (steps.len(), &expected), "{picture}");
    let drawn = elements(picture, "member");
    let stripes: BTreeSet<&String> = drawn.iter().map(|member| &member["stripe"]).collect();
    for stripe in stripes {
        let of_stripe = drawn.iter().filter(|member| &member["stripe"] == stripe);
        let found: BTreeMap<&str, String> = of_stripe
            .map(|member| {
                let cluster = member.get("cluster").map_or("null", String::as_str);
                (member["names"].as_str(), cluster.to_string())
            })
            .collect();
        let members = status["members"].as_array().unwrap().iter();
        let alive = members.filter(|member| member["life"] == "alive");
        let expected: BTreeMap<&str, String> = alive
            .map(|member| (member["names"].as_str().unwrap(), text_of(&member["cluster"])))
            .collect();
        assert_eq!(found, expected, "stripe {stripe}: {picture}");
    }
    let measured = steps.iter().filter(|step| has_round_trip(step, status)).count();
    assert_eq!(picture.matches("class=\"trip\"").count(), measured, "{picture}{status}");
}

/// Whether the distance between the clusters of an edge's ends was measured.
fn has_round_trip(step: &Value, status: &Value) -> bool {
    let cluster = |end: &str| {
        let mut members = status["members"].as_array().unwrap().iter();
        &members.find(|member| member["names"] == step[end]).unwrap()["cluster"]
    };
    let ends = [cluster("parent"), cluster("child")];
    let is_it = |trip: &Value| {
        let trip = [&trip["from"], &trip["to"]];
        trip == ends || trip == [ends[1], ends[0]]
    };
    status["round_trips"].as_array().unwrap().iter().any(is_it)
}

#[test]
fn a_picture_has_the_members_and_the_edges_that_are_printed() {
    let folder = Folder::new();
    let mut members = group(&folder, 7);
    let (key, file) = (folder.key("key"), folder.key("tree.svg"));
    let [key, file] = [&key, &file].map(|path| path.to_str().unwrap());
    let at = members[0].address.clone();
    let status = ["status", &at, "--key", key, "--json", "--svg", file];
    for further in [
        &[][..],
        &["--tree", "list", "--root", "5"],
        &["--tree", "flat", "--root", "3"],
        &["--tree", "binomial"],
        &["--bytes", "4M"],
    ] {
        let (code, text, errors) = output(&[&status[..], further].concat());
        assert_eq!(code, Some(0), "{errors}");
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_fits("group-status-1", &status);
        let picture = std::fs::read_to_string(file).unwrap();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        assert_same(&picture, &status);
    }
    members[6].kill();
    members.pop();
    members[0].wait_for("0-5");
    let (_, text, _) = output(&status);
    let picture = std::fs::read_to_string(file).unwrap();
    assert_same(&picture, &serde_json::from_str(&text).unwrap());
    let others = elements(&picture, "other");
    assert_eq!((others.len(), others[0]["life"].as_str()), (1, "dead"), "{picture}");
    members.into_iter().for_each(Member::leave);
}

#[test]
fn a_group_without_encryption_is_asked_without_it_and_stays_when_its_input_ends() {
    let folder = Folder::new();
    let path = folder.key("key");
    let plain = ["--plain", "--sockets", "--stay", "--names"];
    let mut first = Member::start(&path, &[&["create"], &plain[..], &["0"]].concat());
    let at = first.address.clone();
    let mut second = Member::start(&path, &[&["join", &*at], &plain[..], &["1"]].concat());
    first.wait_for("0-1");
    second.wait_for("0-1");
    drop(first.child.stdin.take());
    let key = path.to_str().unwrap();
    for command in ["status", "explain", "trace"] {
        let encrypted = [command, &at, "--key", key, "--timeout", "10s"];
        let (code, _, errors) = output(&encrypted);
        assert_eq!(code, Some(125), "{command}: {errors}");
        assert!(errors.contains("disagrees about encryption"), "{command}: {errors}");
        let further: &[&str] = match command {
            "trace" => &["--for", "10ms", "--room", "64"],
            _ => &[],
        };
        let (code, said, errors) = output(&[&encrypted[..], &["--plain"], further].concat());
        assert_eq!(code, Some(0), "{command}: {errors}");
        assert!(said.contains("member"), "{command}: {said}");
    }
    let status = ["status", &at, "--key", key, "--plain"];
    assert!(output(&status).1.contains("\nchanges\n"));
    assert!(!output(&[&status[..], &["--brief"]].concat()).1.contains("\nchanges\n"));
    first.kill();
    second.wait_for("1");
    second.leave();
}

#[test]
fn the_trees_of_all_roots_are_printed_at_once() {
    let folder = Folder::new();
    let members = group(&folder, 3);
    let (key, file) = (folder.key("key"), folder.key("tree.svg"));
    let [key, file] = [&key, &file].map(|path| path.to_str().unwrap());
    let all = [&members[1].address, "--key", key, "--root", "all", "--tree", "list"];
    let (_, text, _) = output(&[&["explain"], &all[..]].concat());
    let (_, drawn, _) = output(&[&["status"], &all[..]].concat());
    for root in 0..3 {
        let heading = format!("tree 'list' from virtual node {root} for 1 bytes\n");
        assert!(text.contains(&heading) && drawn.contains(&heading), "{text}{drawn}");
    }
    assert_eq!(text.matches("the member before it in the chain").count(), 6, "{text}");
    for (command, schema) in [("explain", "group-tree-1"), ("status", "group-status-1")] {
        let (_, text, _) = output(&[&[command], &all[..], &["--json"]].concat());
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_fits(schema, &all);
        assert!(all["trees"][0]["choice"].is_null(), "the tree 'list' has no choice: {all}");
        let roots = all["trees"].as_array().unwrap().iter().map(|tree| &tree["root"]);
        assert_eq!(roots.collect::<Vec<_>>(), [0, 1, 2], "{all}");
    }
    let one = ["explain", &members[1].address, "--key", key, "--json", "--root", "2"];
    let (_, text, _) = output(&one);
    let one: Value = serde_json::from_str(&text).unwrap();
    assert_fits("group-tree-1", &one);
    assert_eq!(one["root"], 2, "{one}");
    // A value of one byte goes by the latency tree, whatever was measured.
    let why = one["choice"]["why"].as_str().unwrap();
    assert!(one["choice"]["stripes"].is_null(), "{one}");
    assert!(why.starts_with("the latency tree: shorter than "), "{one}");
    let (_, text, _) = output(&["explain", &members[1].address, "--key", key, "--root", "2"]);
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("the latency tree: shorter than "), "{text}");
    for (further, words) in [
        (&["--root", "all", "--svg", file][..], "name its root"),
        (&["--root", "oak"], "a number, or all"),
        (&["--root", "9"], "virtual node 9 belongs to no member"),
        (&["--root", "9", "--svg", file], "virtual node 9 belongs to no member"),
        (&["--svg", "/no/such/folder/x"], "/no/such/folder/x"),
    ] {
        let status = ["status", &members[1].address, "--key", key];
        let (code, stdout, stderr) = output(&[&status[..], further].concat());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(words) && stderr.trim_end().lines().count() == 1, "{stderr}");
    }
    members.into_iter().for_each(Member::leave);
}
