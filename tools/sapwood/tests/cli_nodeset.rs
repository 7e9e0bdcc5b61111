//! `sapwood nodeset`: what it calculates, and what it refuses.

use crate::cli::{assert_refused, run, run_with_input, text};
use sapwood_schema::assert_fits;
use serde_json::Value;

fn calculated(arguments: &[&str]) -> String {
    let output = run(&[&["nodeset"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).trim_end_matches('\n').to_string()
}

#[test]
fn sets_are_expanded_folded_and_counted() {
    let table: [(&[&str], &str); 30] = [
        (&["expand", "n[1-3]"], "n1 n2 n3"),
        (&["fold", "--axis", "2", "n[1-2],r[1-2]n1"], "n1,n2,r1n1,r2n1"),
        (&["fold", "--axis", "-2", "-O", "%s-1", "n[1-2]"], "n[1-2]-1"),
        (&["fold", "--axis", "3", "login"], "login"),
        (&["fold", "--axis", "2", "--split", "3", "a1,r1n[1-2]"], "a1\nr1n1\nr1n2"),
        (&["fold", "--axis", "-3", "--split", "2", "-O", "r%s-1", "a1,n1m1"], "ra1-1\nrn1m1-1"),
        (&["expand", "-S", ",", "-O", "%s.site", "n[1-2]"], "n1.site,n2.site"),
        (&["expand", "-S", "\\n", "n[1-2]"], "n1\nn2"),
        (&["fold", "n1", "n3", "n2"], "n[1-3]"),
        (&["fold", "-O", "p-%s", "a[0-1]"], "p-a[0-1]"),
        (&["fold", "-O", "%s-%s", "a[0-1]"], "a0-a0,a1-a1"),
        (&["count", "-O", "%s hosts", "n[1-3]"], "3 hosts"),
        (&["count", "n[1-1000]", "n5"], "1000"),
        (&["index", "n7", "n[1-9]"], "6"),
        (&["split", "2", "n[1-5]"], "n[1-3]\nn[4-5]"),
        (&["fold", "--split", "2", "n[1-5]"], "n[1-3]\nn[4-5]"),
        (&["intersect", "n[1-5]", "n[3-9]", "n[1-4]"], "n[3-4]"),
        (&["difference", "n[1-5]", "n2", "n4"], "n[1,3,5]"),
        (&["xor", "n[1-3]", "n[2-4]"], "n[1,4]"),
        (&["fold", "n[1-9]", "-x", "n[4-9]"], "n[1-3]"),
        (&["fold", "n[1-9]", "-i", "n[4-20]"], "n[4-9]"),
        (&["fold", "n[1-3]", "-X", "n[3-4]"], "n[1-2,4]"),
        (&["fold", "-I", "0-1,3", "n[1-9]"], "n[1-2,4]"),
        (&["fold", "--contiguous", "a,n[1-2]"], "a\nn[1-2]"),
        (&["fold", "--axis", "1", "r[1-2]n[1-2]"], "r[1-2]n1,r[1-2]n2"),
        (&["fold", "--axis", "1-2", "a[1-2]b[1-2]c[1-2]"], "a[1-2]b[1-2]c1,a[1-2]b[1-2]c2"),
        (&["count", "-O", "%s%%", "n[1-3]"], "3%"),
        (&["fold", "--autostep", "3", "n[0,2,4,6]"], "n[0-6/2]"),
        (&["count", "--pick", "3", "n[1-9]"], "3"),
        (&["fold", "n[1-9]!n[4-9]&n[2-5]"], "n[2-3]"),
    ];
    for (arguments, expected) in table {
        assert_eq!(calculated(arguments), expected, "{arguments:?}");
    }
}

#[test]
fn each_contiguous_part_is_a_line_of_its_own() {
    let table: [(&[&str], &str); 8] = [
        (&["fold", "n[0-3,5,7-8]"], "n[0-3]\nn5\nn[7-8]"),
        (&["expand", "n[0-3,5,7-8]"], "n0 n1 n2 n3\nn5\nn7 n8"),
        (&["count", "n[0-3,5,7-8]"], "4\n1\n2"),
        (&["fold", "n[0-3,5]m[1-2,4]"], "n[0-3]m[1-2]\nn[0-3]m4\nn5m[1-2]\nn5m4"),
        (&["fold", "--autostep", "3", "n[0-4/2]"], "n0\nn2\nn4"),
        (&["difference", "n[1-5]", "n3"], "n[1-2]\nn[4-5]"),
        (&["fold", "-O", "%s-ib", "n[0-1,3]"], "n[0-1]-ib\nn3-ib"),
        (&["count", "n1!n1"], "0"),
    ];
    for (arguments, expected) in table {
        let arguments = [arguments, &["--contiguous"]].concat();
        assert_eq!(calculated(&arguments), expected, "{arguments:?}");
    }
}

#[test]
fn names_are_read_from_standard_input() {
    let output = run_with_input(&["nodeset", "fold"], b"n1\nn2 n3\n\tn5\n");
    assert_eq!(text(&output.stdout), "n[1-3,5]\n");
    let commented = b"# all my hosts\nn[1-3] # but n9\n;n8\n\n#n7\nn5";
    let output = run_with_input(&["nodeset", "fold"], commented);
    assert_eq!(text(&output.stdout), "n[1-3,5]\n");
    let output = run_with_input(&["nodeset", "count", "-"], b"# none\n");
    assert_eq!(text(&output.stdout), "0\n");
    let output = run_with_input(&["nodeset", "difference", "n[1-5]", "-"], b"n2\n");
    assert_eq!(text(&output.stdout), "n[1,3-5]\n");
}

#[test]
fn names_are_read_from_a_file_as_options_that_name_hosts_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    std::fs::write(&path, "n1\nn2 # with more memory\nn3\n").unwrap();
    let file = format!("^{}", path.display());
    assert_eq!(calculated(&["expand", &file]), "n1 n2 n3");
    assert_eq!(calculated(&["fold", "n[2-5]", &file]), "n[1-5]");
    assert_eq!(calculated(&["fold", "n[2-5]", "-x", &file]), "n[4-5]");
    assert_eq!(calculated(&["fold", "n[2-5]", "-i", &file, "-X", "n9"]), "n[2-3,9]");
    for arguments in [["nodeset", "expand", "^/no/file"], ["nodeset", "count", "^/no/file"]] {
        assert_refused(&run(&arguments), "cannot read /no/file: No such file", &arguments);
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_death() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names");
    let script = format!(
        "ulimit -f 0; exec '{}' nodeset expand 'n[1-3]' >'{}'",
        crate::cli::program(),
        file.display()
    );
    let output = crate::cli::clean_command("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{:?}", output.status);
    assert!(text(&output.stderr).contains("File too large"), "{}", text(&output.stderr));
    let both = format!("{script} 2>&1");
    let output = crate::cli::clean_command("sh").args(["-c", &both]).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "no place to say why: {:?}", output.status);
}

#[test]
fn a_program_reads_one_object() {
    let report: Value = serde_json::from_str(&calculated(&["expand", "--json", "n[1-2]"])).unwrap();
    assert_fits("nodeset-1", &report);
    assert_eq!(report["sets"][0]["names"], serde_json::json!(["n1", "n2"]));
    assert_eq!(report["sets"][0]["nodes"], "n[1-2]");
}

#[test]
fn groups_are_listed_and_put_in_the_place_of_their_members() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.yaml");
    std::fs::write(&path, "racks:\n  r1: n[1-4]\n  r2: n[5-8]\n  all: '@r1,@r2,n9'\n").unwrap();
    let asked = |arguments: &[&str]| {
        let output = crate::cli::command()
            .arg("nodeset")
            .args(arguments)
            .env("SAPWOOD_GROUPS", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).to_string()
    };
    assert_eq!(asked(&["regroup", "-s", "racks", "n[1-5]"]), "@racks:r1,n5\n");
    assert_eq!(asked(&["fold", "-s", "racks", "-a"]), "n[1-9]\n");
    assert_eq!(asked(&["fold", "@racks:r[1-2]!n1"]), "n[2-8]\n");
    for (action, without_r1) in [
        ("expand", "n5 n6 n7 n8 n9\n"),
        ("count", "5\n"),
        ("intersect", "n[5-9]\n"),
        ("difference", "n[5-9]\n"),
        ("xor", "n[5-9]\n"),
        ("regroup", "@racks:r2,n9\n"),
    ] {
        assert_eq!(asked(&[action, "-s", "racks", "-a", "-x", "@r1"]), without_r1, "{action}");
    }
    assert_eq!(asked(&["split", "2", "-s", "racks", "-a"]), "n[1-5]\nn[6-9]\n");
    assert_eq!(asked(&["index", "n3", "-s", "racks", "-a"]), "2\n");
    for (option, value, regrouped) in [
        ("-i", "n[1-5]", "@racks:r1,n5\n"),
        ("-X", "n4", "n[1-3,5-6]\n"),
        ("-I", "0-3", "@racks:r1\n"),
        ("--pick", "9", "@racks:r1,n[5-6]\n"),
    ] {
        let all = ["regroup", "-s", "racks", "n[1-6]", option, value];
        assert_eq!(asked(&all), regrouped, "{option}");
    }
    let listed = asked(&["groups", "-s", "racks", "-v"]);
    assert!(listed.contains("@racks:r1 n[1-4]\n"), "{listed}");
}

#[test]
fn what_is_no_set_is_refused_in_one_line() {
    let table: [(&[&str], &str); 16] = [
        (&["nodeset", "fold", "n[1-"], "not closed"),
        (&["nodeset", "fold", "--axis", "99", "n1"], "give one from 1 to 1, or from -1 to -1"),
        (&["nodeset", "regroup", "--axis", "0", "n1m1"], "from 1 to 2, or from -2 to -1"),
        (&["nodeset", "split", "2", "--axis", "-3", "n[1-2]m1"], "--axis: no name of the set"),
        (&["nodeset", "-f", "n[1-2]"], "'sapwood nodeset fold' folds a set"),
        (&["nodeset", "-e", "n[1-2]"], "'sapwood nodeset expand' writes every name"),
        (&["nodeset", "expand", "-O", "plain", "n1"], "it has no %s"),
        (&["nodeset", "fold", "-O", "%d", "n1"], "behind % only s and %"),
        (&["nodeset", "count", "-O", "%5s", "n1"], "behind % only s and %"),
        (&["nodeset", "expand", "-O", "%s%", "n1"], "behind % only s and %"),
        (&["nodeset", "fold", "--axis", "2-1", "n1"], "give numbers such as"),
        (&["nodeset", "fold", "-s", "no", "n1"], "no source of groups named \"no\""),
        (&["nodeset", "count", "n[1-1000000000]"], "more than 4194304 names"),
        (&["nodeset", "index", "n9", "n[1-3]"], "is not in the set"),
        (&["nodeset", "fold", "n[1-2],,n3"], "a name is missing"),
        (&["nodeset", "fold", "@no:group"], "no such group"),
    ];
    for (arguments, what) in table {
        assert_refused(&run(arguments), what, arguments);
    }
}

/// What is written has no place for it, or another option leaves none.
#[test]
fn an_option_without_an_effect_is_refused_in_one_line() {
    let folded = ["fold", "intersect", "difference", "xor", "split", "regroup", "count", "index"];
    let mut table: Vec<Vec<&str>> = folded.map(|action| vec![action, "-S", ","]).into();
    for action in ["expand", "count", "index"] {
        table.extend([vec![action, "--axis", "1"], vec![action, "--autostep", "3"]]);
    }
    for action in ["split", "index", "regroup"] {
        table.extend([vec![action, "--split", "2"], vec![action, "--contiguous"]]);
    }
    for action in ["index", "regroup"] {
        table.extend([vec![action, "-O", "%s"], vec![action, "--json"]]);
    }
    table.push(vec!["fold", "--split", "2", "--contiguous"]);
    table.push(vec!["fold", "--json", "-O", "%s.site"]);
    table.push(vec!["expand", "--json", "-S", ","]);
    for mut arguments in table {
        let option = arguments[1];
        if let Some(operand) = ["split", "index"].iter().position(|it| *it == arguments[0]) {
            arguments.push(["2", "n1"][operand]);
        }
        arguments.push("n[1-3]");
        assert_refused(&run(&[&["nodeset"], &arguments[..]].concat()), option, &arguments);
    }
}
