//! By what a file is known that a run has left: words that files of its name have at their begin or
//! at their end. A file of the same name without them is the user's.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use sapwood_report::ROUNDS_FILE;

/// Words lie within this many bytes from the begin or the end of their file. Before them there may
/// be the program's command, or facts of its run.
const REACH_BYTES: u64 = 1 << 16;

/// Where in a file its words are.
#[derive(Clone, Copy, Debug)]
enum SignPlace {
    Begin,
    End,
}

/// What files of a name have that a run has left, in every version.
#[derive(Clone, Copy, Debug)]
struct Sign {
    file: &'static str,
    place: SignPlace,
    words: &'static str,
}

const fn begins(file: &'static str, words: &'static str) -> Sign {
    Sign { file, place: SignPlace::Begin, words }
}

const fn ends(file: &'static str, words: &'static str) -> Sign {
    Sign { file, place: SignPlace::End, words }
}

const SIGNS: [Sign; 11] = [
    begins("report.txt", "\nTime by class, inclusive; a region holds what is called in it\n"),
    begins("profile.json", "\"sapwood.profile/"),
    ends("ranks.parquet", "sapwood.ranks/"),
    begins(ROUNDS_FILE, "\"sapwood.round/"),
    begins("sapwood.prom", "# TYPE sapwood_mpi_"),
    ends("rounds.parquet", "sapwood.rounds/"),
    begins("rounds.csv", "number,iteration,elapsed_s,world_size,"),
    ends("caliper.json", "\"sapwood\":\""),
    begins("trace.perfetto-trace", "MPI, share of time"),
    // The name of the scope with its length, as the protocol has it.
    begins("metrics.otlp", "\x0a\x07sapwood"),
    ends("report.html", "<code>sapwood mpi</code></footer></body></html>"),
];
/// Of the profiles of ranks. Those that TAU itself leaves have other metadata behind the metric.
const TAU_SIGN: Sign =
    begins("tau/profile.*", "<value>TIME</value></attribute><attribute><name>Host");

/// Whether a run has left this file: links, pipes and folders are the user's in any case.
pub(crate) fn is_of_run(path: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let sign = match is_of_tau(&name) {
        true => Some(TAU_SIGN),
        false => SIGNS.into_iter().find(|sign| sign.file == name),
    };
    let Some(sign) = sign.filter(|_| found.is_file()) else { return false };
    // A run that was killed before its first round leaves an empty file of rounds.
    let is_empty = found.len() == 0 && sign.file == ROUNDS_FILE;
    is_empty || sign.is_in(path).unwrap_or(false)
}

/// Whether a file has the name of a rank's profile as TAU leaves it, `profile.3.0.0`.
pub(crate) fn is_of_tau(name: &str) -> bool {
    let rank = name.strip_prefix("profile.").and_then(|rest| rest.strip_suffix(".0.0"));
    rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Sign {
    fn is_in(self, path: &Path) -> io::Result<bool> {
        let mut file = File::open(path)?;
        if let SignPlace::End = self.place {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(REACH_BYTES)))?;
        }
        let mut part = Vec::new();
        file.take(REACH_BYTES).read_to_end(&mut part)?;
        let words = self.words.as_bytes();
        Ok(part.windows(words.len()).any(|place| place == words))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use sapwood_export::{Format, Run};
    use sapwood_profile::{Counters, EventKey, RankProfile, RankRows, Round};
    use sapwood_report::{REPORT_FILES, Report, RoundRecord, RoundsFile};

    use super::*;

    /// All files that a run can leave in a folder.
    fn files_of_run(folder: &Path) -> Vec<PathBuf> {
        let mut profile = RankProfile::new(0, 1);
        let counters = Counters { count: 3, time_ns: 500, bytes: 24 };
        profile.events.insert(EventKey::Region("solve".into()), counters);
        let mut round = Round::new(1);
        round.add(&profile).expect("a new rank");
        let record = RoundRecord::new(0, std::time::Duration::ZERO, &round, &[]);
        let mut rounds = RoundsFile::create(folder).expect("it is made");
        rounds.append_last(&record).expect("there is room");
        let rows = RankRows::new(vec![profile]).expect("one rank");
        let report = Report { round, rows, ..Report::default() };
        let mut files = report.write(folder).expect("it is written");
        files.push(folder.join(ROUNDS_FILE));
        let formats = Format::ALL.map(|format| Format::named(format.name()).ok());
        let formats: Vec<Format> = formats.into_iter().flatten().collect();
        let run = Run::read(folder).expect("a run");
        files.extend(run.export(&formats, folder, 1000).expect("it is written"));
        files
    }

    #[test]
    fn every_file_that_a_run_leaves_is_known_by_its_content() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in files_of_run(folder.path()) {
            assert!(is_of_run(&file), "{}", file.display());
            fs::write(&file, "my own").expect("it may be written");
            assert!(!is_of_run(&file), "{}", file.display());
        }
    }

    #[test]
    fn every_name_that_a_run_may_write_has_a_sign() {
        for name in REPORT_FILES.into_iter().chain(Format::FILES) {
            assert!(SIGNS.iter().any(|sign| sign.file == name), "{name}");
        }
    }

    #[test]
    fn the_words_are_found_at_their_end_of_a_long_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("report.html");
        let long = " ".repeat(100_000);
        let words = "<code>sapwood mpi</code></footer></body></html>";
        for (content, is_ours) in
            [(format!("{long}{words}"), true), (format!("{words}{long}"), false)]
        {
            fs::write(&path, content).expect("it may be written");
            assert_eq!(is_of_run(&path), is_ours);
        }
    }
}
