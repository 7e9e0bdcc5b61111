//! Nodesets: the language, its laws, its limits, and folding.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sapwood_topology::{Folding, Groups, NODESET_NAMES_MAX, NodeSet};

fn expand(text: &str) -> Vec<String> {
    text.parse::<NodeSet>().unwrap_or_else(|error| panic!("{error}")).iter().collect()
}

fn fold(text: &str) -> String {
    text.parse::<NodeSet>().unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn refusal(text: &str) -> String {
    text.parse::<NodeSet>().expect_err(text).to_string()
}

#[test]
fn a_set_is_written_as_short_as_it_is_known() {
    let table = [
        ("node[001-128]", "node[001-128]"),
        ("n3,n1,n2", "n[1-3]"),
        ("n09 n10 n9 n11", "n[9,09-11]"),
        ("n1,n01,n2,n02,n10", "n[1-2,01-02,10]"),
        ("n[001-010],n[8-12]", "n[8-12,001-010]"),
        ("n[01-100]", "n[01-99,100]"),
        ("node[008-12]", "node[008-012]"),
        ("rack[1-2]n[1-2]", "rack[1-2]n[1-2]"),
        ("a1b1,a1b2,a2b1", "a1b[1-2],a2b1"),
        ("n1[01-02]", "n[101-102]"),
        ("n[1-2]3", "n[13,23]"),
        ("n[1-2][3-4]", "n[13-14,23-24]"),
        ("n[0-9/3]", "n[0,3,6,9]"),
        ("login", "login"),
        ("b,a[1],a", "a,a1,b"),
        ("10.0.0.[1-3]", "10.0.0.[1-3]"),
        ("n[1-3,2-5]", "n[1-5]"),
        ("x12345678901234567890", "x12345678901234567890"),
        ("", ""),
        ("  n1 , n2  ", "n[1-2]"),
    ];
    for (text, folded) in table {
        assert_eq!(fold(text), folded, "{text}");
        assert_eq!(expand(folded), expand(text), "{text}");
    }
}

#[test]
fn operators_work_from_left_to_right() {
    let table = [
        ("n[1-5]!n3", "n[1-2,4-5]"),
        ("n[1-3]!n2,n2", "n[1-3]"),
        ("n[1-5]&n[4-9]", "n[4-5]"),
        ("n[1-5]^n[4-9]", "n[1-3,6-9]"),
        ("n[1-5]!n[1-5]", ""),
        ("a,b&b,c", "b,c"),
        ("a[1-2]b[1-2]!a1b1", "a2b[1-2],a1b2"),
    ];
    for (text, folded) in table {
        let (got, wanted): (NodeSet, NodeSet) = (text.parse().unwrap(), folded.parse().unwrap());
        assert_eq!(got, wanted, "{text} is {got}");
    }
}

#[test]
fn what_cannot_be_read_is_quoted_with_the_place() {
    let table = [
        ("n[1-", "\"n[1-\", character 2: this bracket is not closed"),
        ("n[1-3", "character 2: this bracket is not closed"),
        ("n1]", "character 3: this bracket was not opened"),
        ("n[]", "character 3: a number or a range such as 1-9 is missing here"),
        ("n,,m", "character 3: a name is missing here"),
        ("n,", "character 3: a name is missing here"),
        ("!n", "character 1: a name is missing here"),
        ("n[5-1]", "character 5: a range ends with its largest number"),
        ("n[1-x]", "character 5: a number of 1 to 17 digits"),
        ("n[1-9/0]", "character 7: a step is at least 1"),
        ("n[1-010]", "leading zeros only if the first"),
        ("node[541-0545]", "leading zeros only if the first has as many digits"),
        ("n[1-1000000000]", "character 2: these are more than 4194304 names"),
        ("n[1-40000]m[1-40000]", "these are more than 4194304 names"),
        ("n[1-4194304],m[1-4194304]", "these are more than 4194304 names"),
        ("a,b@c", "character 4: this character is in no name"),
        ("@unknown", "group \"@unknown\": there is no such group"),
        ("n*", "group \"@*\": the list of all nodes is unknown"),
        ("n[1-2[3]]", "not closed"),
        ("x123456789012345678[1-2]", "character 20: these digits make a number of more than 17"),
        ("x[1-2]123456789012345678", "character 7: these digits make a number of more than 17"),
    ];
    for (text, what) in table {
        let said = refusal(text);
        assert!(said.contains(what), "{text}: {said}");
        assert_eq!(said.lines().count(), 1);
    }
    assert!(refusal(&"x".repeat(256)).contains("at most 255 bytes"));
    // Also where the length is behind the numbers.
    let behind = |bytes| format!("k[1-4]{}", "x".repeat(bytes));
    assert!(refusal(&behind(254)).contains("at most 255 bytes"));
    assert!(behind(253).parse::<NodeSet>().is_ok_and(|set| set.split(3).len() == 3));
    assert!(refusal("n\u{7}").contains("in no name"));
    assert!(refusal("n[1-2]\0[3-4]").contains("in no name"));
}

#[test]
fn the_largest_set_is_taken() {
    let set: NodeSet = "n[1-4194304]".parse().unwrap();
    assert_eq!(set.len(), NODESET_NAMES_MAX);
    assert_eq!(set.to_string(), "n[1-4194304]");
}

/// Two sources of groups, as a site has them.
struct Site;

impl Groups for Site {
    fn members(&self, source: Option<&str>, group: &str) -> Result<Option<String>, String> {
        let text = match (source, group) {
            (None, "compute") => "n[1-8]",
            (None, "io") => "n[7-8],io1",
            (None, "most") => "@compute!@io",
            (None, "ring") => "@gnir",
            (None, "gnir") => "@ring",
            (Some("racks"), "r1") => "n[1-4]",
            (Some("racks"), "r2") => "n[5-8]",
            (Some("racks"), "both") => "@r1,@r2",
            (Some("broken"), _) => return Err("the file is damaged".to_string()),
            _ => return Ok(None),
        };
        Ok(Some(text.to_string()))
    }

    fn all(&self, source: Option<&str>) -> Result<Option<String>, String> {
        Ok(source.is_none().then(|| "@compute,@io".to_string()))
    }

    fn names(&self, source: Option<&str>) -> Result<Option<Vec<String>>, String> {
        let names: &[&str] = match source {
            None => &["compute", "io"],
            Some("racks") => &["r1", "r2"],
            _ => return Ok(None),
        };
        Ok(Some(names.iter().map(ToString::to_string).collect()))
    }
}

#[test]
fn groups_stand_for_their_members() {
    let table = [
        ("@compute", "n[1-8]"),
        ("@compute&@io", "n[7-8]"),
        ("@most", "n[1-6]"),
        ("@racks:r1", "n[1-4]"),
        ("@racks:r[1-2]", "n[1-8]"),
        ("@racks:both!n1", "n[2-8]"),
        ("@racks:r*", "n[1-8]"),
        ("@*", "n[1-8],io1"),
        ("n[1-2]*", "n[1-2]"),
        ("io?", "io1"),
        ("*!n*", "io1"),
        ("@@racks", "r[1-2]"),
    ];
    for (text, folded) in table {
        let got = NodeSet::parse(text, &Site).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(got, folded.parse().unwrap(), "{text} is {got}");
    }
    let refused = |text| NodeSet::parse(text, &Site).expect_err(text).to_string();
    assert!(refused("@ring").contains("it is a member of itself"));
    assert!(refused("@broken:x").contains("the file is damaged"));
    assert!(
        refused("@racks:r9").contains("\"@racks:r9\": there is no such group")
            || refused("@racks:r9").contains("r9\": there is no such group")
    );
}

#[test]
fn parts_of_a_set() {
    let set: NodeSet = "n[1-10]".parse().unwrap();
    assert_eq!(set.slice("0,2-3,99").unwrap().to_string(), "n[1,3-4]");
    let parts: Vec<String> = set.split(3).iter().map(ToString::to_string).collect();
    assert_eq!(parts, ["n[1-4]", "n[5-7]", "n[8-10]"]);
    let set: NodeSet = "a,n[1-3],r[1-2]n[1-2]".parse().unwrap();
    assert!(set.contains("r2n1") && !set.contains("r2n3") && set.contains("a"));
}

/// As ClusterShell 1.9.1 divides the same sets.
#[test]
fn each_contiguous_part_is_one_range_in_every_number() {
    let parts = |text: &str| {
        let set: NodeSet = text.parse().unwrap();
        let parts: Vec<NodeSet> = set.contiguous(&Folding::default()).collect();
        assert_eq!(parts.iter().fold(NodeSet::default(), |all, part| all.union(part)), set);
        assert_eq!(parts.iter().map(NodeSet::len).sum::<usize>(), set.len());
        parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let table = [
        ("a,n[1-3],r[1-2]n[1-2]", "a n[1-3] r[1-2]n[1-2]"),
        ("n[0-3,5,7-8]", "n[0-3] n5 n[7-8]"),
        ("n[0-4/2]", "n0 n2 n4"),
        ("n[0-3],n[01-03,5]", "n[0-3] n5 n[01-03]"),
        ("n[09-11,012]", "n[09-11] n012"),
        ("n[9-11]", "n[9-11]"),
        ("n[0-3,5]m[1-2,4]", "n[0-3]m[1-2] n[0-3]m4 n5m[1-2] n5m4"),
        ("a[0-1,3]b5c[0,2]", "a[0-1]b5c0 a[0-1]b5c2 a3b5c0 a3b5c2"),
        ("x[0-2]y[0-2]!x1y1", "x0y[0-2] x2y[0-2] x1y0 x1y2"),
        ("a!a", ""),
    ];
    for (text, expected) in table {
        assert_eq!(parts(text), expected, "{text}");
    }
    let set: NodeSet = "r[1-2]n[1-2,4]".parse().unwrap();
    let folding = Folding { axes: vec![1], ..Folding::default() };
    let parts: Vec<String> = set.contiguous(&folding).map(|part| part.fold(&folding)).collect();
    assert_eq!(parts, ["r[1-2]n1", "r[1-2]n2", "r[1-2]n4"]);
}

#[test]
fn folding_can_be_told_of_steps_and_axes() {
    let steps = |text: &str, least| {
        let folding = Folding { step_count_min: Some(least), ..Folding::default() };
        text.parse::<NodeSet>().unwrap().fold(&folding)
    };
    assert_eq!(steps("n[0-98/2]", 3), "n[0-98/2]");
    assert_eq!(steps("n[0,2,4,5,6,9,13]", 3), "n[0-4/2,5-6,9,13]");
    assert_eq!(steps("n[0,2,4]", 4), "n[0,2,4]");
    let axes = |text: &str, axis| {
        let folding = Folding { axes: vec![axis], ..Folding::default() };
        text.parse::<NodeSet>().unwrap().fold(&folding)
    };
    assert_eq!(axes("r[1-2]n[1-2]", 1), "r[1-2]n1,r[1-2]n2");
    assert_eq!(axes("r[1-2]n[1-2]", -1), "r1n[1-2],r2n[1-2]");
}

#[test]
fn folding_joins_in_every_dimension() {
    let all = "r[1-3]c[1-4]n[01-16]";
    let mut names = expand(all);
    assert_eq!(names.len(), 3 * 4 * 16);
    names.reverse();
    assert_eq!(fold(&names.join(",")), all);
}

proptest! {
    #[test]
    fn what_is_folded_is_read_as_the_same_set(names in names(), least in 0_usize..6, axis in -3..4_i32) {
        let set = NodeSet::of_names(names.iter().map(String::as_str)).unwrap();
        prop_assert_eq!(set.len(), names.len());
        prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), names);
        let axes = if axis == 0 { vec![] } else { vec![axis] };
        let folding = Folding { step_count_min: (least > 0).then_some(least), axes };
        let text = set.fold(&folding);
        let again: NodeSet = text.parse().unwrap();
        prop_assert_eq!(&again, &set, "{}", text);
        prop_assert_eq!(again.fold(&folding), text);
    }

    #[test]
    fn the_algebra_is_that_of_sets(a in names(), b in names(), c in names()) {
        let of = |names: &BTreeSet<String>| NodeSet::of_names(names.iter().map(String::as_str)).unwrap();
        let (x, y, z) = (of(&a), of(&b), of(&c));
        prop_assert_eq!(&x.union(&y), &of(&a.union(&b).cloned().collect()));
        prop_assert_eq!(&x.intersection(&y), &of(&a.intersection(&b).cloned().collect()));
        prop_assert_eq!(&x.difference(&y), &of(&a.difference(&b).cloned().collect()));
        prop_assert_eq!(&x.symmetric_difference(&y), &of(&a.symmetric_difference(&b).cloned().collect()));
        // Each name is a term of its own, since operators do not wait for one another.
        let minus: String = b.iter().map(|name| format!("!{name}")).collect();
        let either: String = c.iter().map(|name| format!("^{name}")).collect();
        if !x.is_empty() {
            let text = format!("{x}{minus}{either}");
            let read: NodeSet = text.parse().unwrap();
            prop_assert_eq!(read, x.difference(&y).symmetric_difference(&z), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-c0-3,!&^@:*?\\[\\]/ -]{0,24}") {
        match text.parse::<NodeSet>() {
            Ok(set) => prop_assert_eq!(set.to_string().parse::<NodeSet>().unwrap(), set),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}

/// Names with up to three numbers, some with leading zeros.
fn names() -> impl Strategy<Value = BTreeSet<String>> {
    let number = prop_oneof![
        (0_u32..12).prop_map(|n| n.to_string()),
        (0_u32..12).prop_map(|n| format!("{n:02}")),
        (95_u32..103).prop_map(|n| format!("{n:03}")),
        (95_u32..103).prop_map(|n| n.to_string()),
    ];
    let name = (prop::collection::vec(("[ab.-]{1,2}", number), 0..4), "[ab]{0,2}");
    let name = name.prop_map(|(parts, end)| {
        let parts: String = parts.into_iter().map(|(text, number)| text + &number).collect();
        if parts.is_empty() && end.is_empty() { "a".to_string() } else { parts + &end }
    });
    prop::collection::btree_set(name, 0..40)
}
