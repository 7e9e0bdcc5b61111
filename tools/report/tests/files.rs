//! The files of a report: there as a whole, exact, and as the schema describes them.

use std::fs;

use crate::harness::{report, stacks};
use sapwood_report::record::Settings;
use sapwood_report::stacks::RankStack;
use sapwood_report::why::{Stuck, StuckOdd, StuckWaiting};
use sapwood_report::{Report, RoundsFacts, ToldToEnd};
use sapwood_schema::{assert_fits, faults, read};
use serde_json::Value;

#[test]
fn a_profile_is_as_its_schema_says() {
    for report in [report(), Report::default()] {
        let profile: Value = serde_json::from_str(&report.json()).expect("JSON");
        assert_fits("profile-1", &profile);
    }
}

#[test]
fn a_run_whose_settings_were_changed_says_so_and_tells_rounds_from_iterations() {
    let settings = Settings {
        change: 2,
        groups: vec!["collective".into(), "time".into()],
        groups_known: ["collective", "rma", "time"].map(str::to_owned).to_vec(),
        ranks: "0,2".into(),
        obeyed: "0-4".into(),
        interval_s: 0.2,
        ..Settings::default()
    };
    let facts = RoundsFacts { kept: 5, iterations: 500, stride: 1, ..RoundsFacts::default() };
    let report = Report { settings: Some(settings), rounds_file: Some(facts), ..report() };
    let profile: Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_fits("profile-1", &profile);
    assert_eq!(profile["settings"]["change"], 2);
    assert_eq!(profile["settings"]["obeyed"], "0-4");
    let text = report.text();
    assert!(text.contains("rounds    rounds.ndjson has 5 rounds and 500 iterations\n"), "{text}");
    let line = "settings  changed 2 times while the program ran, so that counts may lack what was \
                left out: collective, time on ranks 0,2, a round every 0.2 s; applied by ranks 0-4\n";
    assert!(text.contains(line), "{text}");
    assert!(!self::report().text().contains("settings "), "they were not changed");
}

#[test]
fn a_profile_with_stacks_is_as_its_schema_says_and_so_are_these_alone() {
    let report = Report { stacks: Some(stacks()), ..report() };
    let mut profile: Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_fits("profile-1", &profile);
    assert_eq!(profile["stacks"]["roots"][0]["children"][0]["ranks"], "0-4,6-7");
    let alone = serde_json::json!({ "schema": "sapwood.stacks/1", "stacks": profile["stacks"] });
    assert_fits("stacks-1", &alone);
    profile["stacks"]["roots"][0]["children"][0]["ranks"] = "all".into();
    assert_eq!(faults(&read("profile-1"), &profile).len(), 1);
    assert!(
        report.text().contains("Call stacks at 4.6 s\n\nranks 0-4,6-7 (7)\n  main (solver.c:7)")
    );
}

/// Ranks 2 and 3 wait for each other.
fn ring() -> Stuck {
    let waiting = |rank: u32, other: u32| StuckWaiting {
        ranks: rank.to_string(),
        function: "MPI_Recv".into(),
        communicator: "MPI_COMM_WORLD".into(),
        with: Some(other),
        tag: Some(7),
        waits_for: other.to_string(),
        longest_s: 10.5,
        shortest_s: 10.5,
        text: format!("rank {rank} in MPI_Recv on MPI_COMM_WORLD for rank {other}, for 10.5 s"),
        ..StuckWaiting::default()
    };
    Stuck {
        seen_s: 12.0,
        for_s: 10.5,
        finding: "ring".into(),
        culprits: "2-3".into(),
        statement: "deadlock in a ring of 2 ranks".into(),
        ring: vec![2, 3],
        waiting: vec![waiting(2, 3), waiting(3, 2)],
        stacks: vec![RankStack { ranks: "2-3".into(), frames: vec!["PMPI_Recv".into()] }],
        ..Stuck::default()
    }
}

#[test]
fn a_profile_of_ranks_that_are_stuck_is_as_its_schema_says_and_the_text_has_the_verdict() {
    let report = Report { stuck: Some(ring()), passed: 2, ..report() };
    let mut profile: Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_fits("profile-1", &profile);
    assert_eq!((&profile["stuck"]["culprits"], &profile["passed"]), (&"2-3".into(), &2.into()));
    let text = report.text();
    let section = "\
stuck     seen at 12.0 s
          stuck for 10.5 s: deadlock in a ring of 2 ranks
          waiting: rank 2 in MPI_Recv on MPI_COMM_WORLD for rank 3, for 10.5 s
          waiting: rank 3 in MPI_Recv on MPI_COMM_WORLD for rank 2, for 10.5 s
          ranks 2-3 are in PMPI_Recv
          ranks were found waiting several times before, and went on (2)
";
    assert!(text.contains(section), "{text}");
    assert!(!self::report().text().contains("\nstuck "), "no rank was");
    profile["stuck"]["finding"] = "a ring".into();
    assert_eq!(faults(&read("profile-1"), &profile).len(), 1);
    let odd = StuckOdd { doing: "computing".into(), ..StuckOdd::default() };
    let report = Report { stuck: Some(Stuck { odd: vec![odd], ..ring() }), ..self::report() };
    assert_fits("profile-1", &serde_json::from_str(&report.json()).expect("JSON"));
}

#[test]
fn a_job_that_was_told_to_end_is_as_the_schema_says_and_the_text_has_the_signal() {
    let told = ToldToEnd {
        signal: "SIGTERM".into(),
        received_s: 3.0,
        ended: "0-4".into(),
        ..ToldToEnd::default()
    };
    let report = Report { told_to_end: Some(told), ..report() };
    let profile: Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_fits("profile-1", &profile);
    assert_eq!(profile["told_to_end"]["ended"], "0-4");
    let text = report.text();
    let lines = "\
ended     by SIGTERM, which was received 3.0 s after the start
          ranks 0-4 ended by it
";
    assert!(text.contains(lines), "{text}");
    assert!(!self::report().text().contains("\nended "), "no signal came");
}

#[test]
fn a_profile_of_another_form_is_told_from_it() {
    let mut profile: Value = serde_json::from_str(&report().json()).expect("JSON");
    profile["schema"] = "sapwood.profile/2".into();
    profile["rounds"] = "many".into();
    profile["events"][0]["calls"]["sum"] = (-1).into();
    profile["tree"].as_object_mut().expect("an object").remove("nodes");
    assert_eq!(faults(&read("profile-1"), &profile).len(), 4);
}

#[test]
fn a_profile_holds_the_statistics_and_the_losses() {
    let profile: Value = serde_json::from_str(&report().json()).expect("JSON");
    assert_eq!(profile["ranks_covered"], 6);
    assert_eq!(profile["states"]["lost"], "5");
    assert_eq!(profile["missing"][0]["reason"], "back-end 3 closed its connection");
    assert_eq!(profile["missing"][1]["ranks"], "7");
    let events = profile["events"].as_array().expect("a list");
    let event = |name: &str| events.iter().find(|event| event["name"] == name).expect(name);
    let allreduce = event("MPI_Allreduce");
    assert_eq!(allreduce["communicator_size_class"], 3);
    assert_eq!(allreduce["calls"]["sum"], 6000);
    assert_eq!(allreduce["time_ns"]["max_rank"], 5);
    assert_eq!(allreduce["time_ns"]["mean"], 525e6);
    assert_eq!(event("MPI_Init")["ranks"], 1);
    assert_eq!(event("MPI_Init")["communicator_size_class"], Value::Null);
    assert_eq!(event("MPI_Comm_rank")["imbalance"], Value::Null);
}

#[test]
fn a_report_is_left_in_a_folder_that_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("a").join("b");
    let files = report().write(&out).expect("a folder that may be written");
    for file in &files {
        assert!(fs::metadata(file).expect("it was written").len() > 0);
    }
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), files.len());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("taken");
    fs::write(&file, "").expect("a folder that may be written");
    let error = report().write(&file.join("out")).expect_err("no folder in a file").to_string();
    assert!(error.contains("cannot make the folder") && error.contains("taken"), "{error}");
}

#[cfg(feature = "parquet")]
mod parquet_rows {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use sapwood_profile::SizeClass;

    use super::*;

    #[test]
    fn every_row_is_read_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let report = report();
        report.write(folder.path()).expect("a folder that may be written");
        let file = fs::File::open(folder.path().join("ranks.parquet")).expect("it was written");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let mut read = reader.get_row_iter(None).expect("rows");
        for row in report.rows.rows() {
            let read = read.next().expect("a row").expect("a sound row");
            assert_eq!(read.get_uint(0).expect("mpi_rank"), row.mpi_rank);
            assert_eq!(read.get_string(1).expect("host"), row.host);
            assert_eq!(read.get_uint(2).expect("pid"), row.pid);
            assert_eq!(read.get_string(3).expect("state"), row.state.name());
            assert_eq!(read.get_string(4).expect("event"), &row.event);
            assert_eq!(read.get_string(5).expect("class"), row.class.name());
            let code = read.get_ubyte(6).unwrap_or(SizeClass::NONE.code());
            assert_eq!(code, row.size_class.code());
            assert_eq!(read.get_ulong(7).expect("calls"), row.counters.count);
            assert_eq!(read.get_ulong(8).expect("time_ns"), row.counters.time_ns);
            assert_eq!(read.get_ulong(9).expect("bytes"), row.counters.bytes);
        }
        assert!(read.next().is_none());
        let descriptor = reader.metadata().file_metadata().schema_descr_ptr();
        assert_eq!(descriptor.column(7).name(), "calls", "as in JSON");
    }

    #[test]
    fn numbers_that_settings_have_left_out_are_null_where_none_was_counted() {
        let groups = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let settings = Settings {
            groups: groups(&["calls"]),
            groups_known: groups(&["calls", "time", "bytes"]),
            ..Settings::default()
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let report = Report { settings: Some(settings), ..report() };
        report.write(folder.path()).expect("a folder that may be written");
        let file = fs::File::open(folder.path().join("ranks.parquet")).expect("it was written");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let mut without_bytes = 0;
        for (row, read) in report.rows.rows().zip(reader.get_row_iter(None).expect("rows")) {
            let read = read.expect("a sound row");
            assert_eq!(read.get_ulong(7).expect("calls"), row.counters.count);
            let bytes = read.get_ulong(9).ok();
            assert_eq!(bytes, Some(row.counters.bytes).filter(|&bytes| bytes > 0));
            without_bytes += u32::from(bytes.is_none());
        }
        assert!(without_bytes > 0, "events without bytes are among them");
    }

    #[test]
    fn numbers_of_ranks_that_settings_have_left_out_are_null_where_none_was_counted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = Settings { ranks: "0-1".to_owned(), ..Settings::default() };
        let report = Report { settings: Some(settings), ..report() };
        report.write(folder.path()).expect("a folder that may be written");
        let file = fs::File::open(folder.path().join("ranks.parquet")).expect("it was written");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let mut nulls = 0;
        for (row, read) in report.rows.rows().zip(reader.get_row_iter(None).expect("rows")) {
            let bytes = read.expect("a sound row").get_ulong(9).ok();
            let is_told = row.mpi_rank < 2 || row.counters.bytes > 0;
            assert_eq!(bytes, is_told.then_some(row.counters.bytes), "rank {}", row.mpi_rank);
            nulls += u32::from(bytes.is_none());
        }
        assert!(nulls > 0, "events without bytes are among them");
    }

    #[test]
    fn a_report_without_rows_has_a_table_without_rows() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Report::default().write(folder.path()).expect("a folder that may be written");
        let file = fs::File::open(folder.path().join("ranks.parquet")).expect("it was written");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(reader.metadata().file_metadata().schema().get_fields().len(), 12);
    }
}

#[test]
fn a_record_of_a_round_is_as_its_schema_says() {
    let report = crate::harness::report();
    let elapsed = std::time::Duration::from_secs(2);
    let mut record = sapwood_report::RoundRecord::new(3, elapsed, &report.round, &report.missing);
    report.analysis.fill(&mut record);
    record.stacks = Some(crate::harness::stacks());
    let mut before = record.clone();
    before.events.clear();
    let sums = sapwood_report::record::EventSums::of(&before);
    record.note_event_intervals(Some(&sums));
    assert!(record.event_intervals.as_ref().is_some_and(|intervals| !intervals.is_empty()));
    let json = serde_json::from_str(&record.line()).expect("JSON");
    assert_fits("round-1", &json);
    let mut other: serde_json::Value = json;
    other["number"] = "3".into();
    assert!(!faults(&read("round-1"), &other).is_empty(), "a text is no number");
}
