//! The files of a report: there as a whole, exact, and as the schema describes them.

mod harness;

use std::fs;

use harness::report;
use sapwood_report::Report;
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
            assert_eq!(read.get_ulong(7).expect("count"), row.counters.count);
            assert_eq!(read.get_ulong(8).expect("time_ns"), row.counters.time_ns);
            assert_eq!(read.get_ulong(9).expect("bytes"), row.counters.bytes);
        }
        assert!(read.next().is_none());
    }

    #[test]
    fn a_report_without_rows_has_a_table_without_rows() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Report::default().write(folder.path()).expect("a folder that may be written");
        let file = fs::File::open(folder.path().join("ranks.parquet")).expect("it was written");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        assert_eq!(reader.metadata().file_metadata().schema().get_fields().len(), 10);
    }
}
