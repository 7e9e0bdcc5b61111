//! What the files say that ranks have kept in a folder (`--events-folder`), when no tree watches
//! the program, whether or not processes of it are alive.
//!
//! `files` finds the files; the ranks of each host are read as a leaf reads its own
//! ([`Tables`]), and the parts are put together as those of a tree are. No tree has compared the
//! clocks of different hosts: what needs that is counted as undecided.

mod ends;
mod files;
mod unread;

use std::path::Path;
use std::time::Duration;

use sapwood::RankSet;
use sapwood_command_line::exit::{Failure, complain_all};
use sapwood_report::freeze::{Freeze, FreezeParts, FreezeReason};
use sapwood_report::why::{Parts, RankEnds, Stuck, Why};
use sapwood_report::{nanoseconds, ranks_text};
use sapwood_trace::{
    Coscheduling, Findings, Frozen, FrozenEvent, Ledger, Presence, Standing, Verdict,
};

use self::ends::KeptEnds;
use self::files::KeptFolder;
use self::unread::{what_they_tell, without_file};
use super::freeze::FreezeQuestion;
use super::freezing::FreezeWishes;
use super::host_time::now_ns;
use super::standing::{STANDING_DEADLINE, long_waits};
use super::tables::{KeptTime, Tables};
use super::waits::{Question, WaitsQuestion};

/// Ends of collectives that are told to all hosts at once.
const SETTLED_MAX: usize = 1 << 15;
/// Readings of all files, at most: each reads tens of thousands of events.
const READINGS_MAX: u64 = 1 << 16;
/// The same while ranks run, which always bring new ones.
const LIVING_READINGS_MAX: u64 = 16;
/// Readings in turn that bring nothing new.
const QUIET_READINGS: u32 = 2;
/// What is not known of waits in which ranks have ended.
const WHEN_KILLED: &str = "when the ranks were killed: a wait is known until the last call \
                           that began or returned, and may have been one of a program that did well";
/// The same where it is known how they ended.
const UNTIL_LAST_CALL: &str = "how long ranks waited after the last call that began or returned";
/// All processor time that a reading wants.
const UNLIMITED_NS: u64 = u64::MAX;

/// Says why a program was slow or stuck, by the files that its ranks have kept in a folder. Files
/// that cannot be read are named on standard error, each in a line.
///
/// # Errors
/// [`Failure`] when no file can be read, or the folder holds those of more than one run.
pub fn why_of_files(folder: &Path) -> Result<Why, Failure> {
    let kept = KeptFolder::read(folder)?;
    let ends = KeptEnds::read(folder, &kept);
    let KeptFolder { mut hosts, world_size, program, ranks, living, notes, reasons, .. } = kept;
    complain_all(&notes);
    let is_over = living.is_empty();
    let readings_max = if is_over { READINGS_MAX } else { LIVING_READINGS_MAX };
    let findings = findings(&mut hosts, world_size, readings_max);
    let KeptVerdict { elapsed, standing, verdict } = verdict(&mut hosts, &living, world_size);
    let mut why = Why::of(&Parts {
        program: &program,
        elapsed,
        has_ended: is_over,
        standing: Some(&standing),
        verdict: verdict.as_ref().map(|verdict| (elapsed, verdict, &standing)),
        stacks: None,
        passed: 0,
        findings: Some((elapsed, &findings)),
        is_recording: false,
    });
    let missing = all_ranks(world_size).difference(ranks.as_ref());
    if !missing.is_empty() {
        let told = [without_file(&missing, &reasons, folder), what_they_tell(&missing)];
        why.unknown.splice(0..0, told);
    }
    if let Some(told) = ends.told() {
        why.ended = RankEnds::of(&told.deaths, told.before.clone());
    }
    why.unknown.extend(ends.unknown(folder, is_over));
    if !is_over {
        note_living(&mut why, &standing, &hosts, &living, &ends);
    } else if why.stuck.is_some() {
        why.unknown.push(waits_unknown(&ends).to_owned());
    }
    Ok(why)
}

/// What is not known of waits in which ranks have ended, by what is known of their ends.
fn waits_unknown(ends: &KeptEnds) -> &'static str {
    if ends.are_whole() { UNTIL_LAST_CALL } else { WHEN_KILLED }
}

/// Why ranks waited at the last moment of which their files know.
struct KeptVerdict {
    /// From the begin of the program until then.
    elapsed: Duration,
    standing: Standing,
    verdict: Option<Verdict>,
}

fn verdict(hosts: &mut [Tables], living: &RankSet, world_size: u32) -> KeptVerdict {
    let mut standing = Standing::default();
    let mut elapsed = Duration::ZERO;
    for host in hosts {
        let KeptTime { begin_ns, last_ns } = host.close_kept();
        elapsed = elapsed.max(Duration::from_nanos(last_ns.saturating_sub(begin_ns)));
        standing.merge(host.stood_last(living, world_size, last_ns));
    }
    // All calls of those that have ended have lasted until then.
    let verdict = match living.is_empty() {
        true => Verdict::of(&standing, 0),
        false => long_waits(&standing, nanoseconds(STANDING_DEADLINE)),
    };
    KeptVerdict { elapsed, standing, verdict }
}

/// Notes which ranks have died while others run, beside those of which it is known how, and which
/// run on other hosts.
fn note_living(
    why: &mut Why,
    standing: &Standing,
    hosts: &[Tables],
    living: &RankSet,
    ends: &KeptEnds,
) {
    let lost = found_dead(standing, ends);
    if !lost.is_empty() {
        why.ended.note_found_dead(&lost, why.elapsed_s);
    }
    let mut elsewhere = living.clone();
    hosts.iter().for_each(|host| elsewhere.subtract(host.attended().as_ref()));
    if !elsewhere.is_empty() {
        why.unknown.push(format!(
            "how long the calls of {} have lasted: they are made on another machine",
            ranks_text(&elsewhere.to_string())
        ));
    }
}

/// Ranks that have died, without those of which it is known how.
fn found_dead(standing: &Standing, ends: &KeptEnds) -> RankSet {
    let lost = standing.postures.iter().filter(|(_, one)| one.presence == Presence::Lost);
    let lost: RankSet = lost.map(|(&rank, _)| rank).collect();
    lost.difference(ends.known().as_ref())
}

/// Shows the last calls of ranks by the files that they have kept in a folder, as far as they are
/// of one host: times of several ones cannot be put side by side. Why ranks waited and how they
/// ended is told of all.
///
/// # Errors
/// [`Failure`] as those of [`why_of_files`], or when the ranks are on several hosts.
pub fn freeze_of_files(folder: &Path, wishes: &FreezeWishes) -> Result<Freeze, Failure> {
    let kept = KeptFolder::read(folder)?;
    let ends = KeptEnds::read(folder, &kept);
    let KeptFolder { mut hosts, world_size, program, ranks, living, notes, reasons, .. } = kept;
    complain_all(&notes);
    let wanted = match wishes.ranks.is_empty() {
        true => all_ranks(world_size),
        false => wishes.ranks.clone(),
    };
    let KeptVerdict { elapsed, standing, verdict } = verdict(&mut hosts, &living, world_size);
    let stuck = verdict.map(|verdict| Stuck::of(elapsed, &verdict, &standing, None));
    let statement = stuck.map_or_else(String::new, |stuck| stuck.statement);
    hosts.retain(|host| host.ranks.keys().any(|&rank| wanted.contains(rank)));
    let count = hosts.len();
    let [host] = &mut hosts[..] else {
        return Err(Failure::usage(match count {
            0 => format!("no file in '{}' is of ranks {wanted}", folder.display()),
            _ => format!(
                "the files are of {count} hosts, whose clocks were not compared; name ranks of \
                 one host by --ranks"
            ),
        }));
    };
    let KeptTime { begin_ns, last_ns } = host.close_kept();
    let question = FreezeQuestion {
        clocks: Question { world_size, ..Question::default() },
        last_ns: nanoseconds(wishes.last),
        long_ns: 0,
        ranks: wishes.ranks.clone(),
    };
    let frozen = frozen_last(host, &question, last_ns).map_err(Failure::usage)?;
    let is_over = living.is_empty();
    let all = all_ranks(world_size);
    let mut freeze = Freeze::of(
        frozen,
        &FreezeParts {
            program: &program,
            elapsed: Duration::from_nanos(last_ns.saturating_sub(begin_ns)),
            reason: if is_over { FreezeReason::End } else { FreezeReason::Asked },
            statement: &statement,
            last: wishes.last,
            missing: &wanted.difference(all.as_ref()),
        },
    );
    let mut missing = all.difference(ranks.as_ref());
    missing.intersect_with(wanted.as_ref());
    if !missing.is_empty() {
        freeze.unknown.insert(0, without_file(&missing, &reasons, folder));
    }
    note_frozen_ends(&mut freeze, &ends, folder, (!is_over).then_some(&standing));
    if is_over && !statement.is_empty() {
        freeze.unknown.push(waits_unknown(&ends).to_owned());
    }
    Ok(freeze)
}

/// Notes how ranks ended, and which have died by where they stand while others run.
fn note_frozen_ends(
    freeze: &mut Freeze,
    ends: &KeptEnds,
    folder: &Path,
    running: Option<&Standing>,
) {
    if let Some(told) = ends.told() {
        freeze.ended = RankEnds::of(&told.deaths, told.before.clone());
    }
    freeze.unknown.extend(ends.unknown(folder, running.is_none()));
    let lost = running.map(|standing| found_dead(standing, ends)).unwrap_or_default();
    if !lost.is_empty() {
        freeze.ended.note_found_dead(&lost, freeze.elapsed_s);
    }
}

fn all_ranks(world_size: u32) -> RankSet {
    world_size.checked_sub(1).map_or_else(RankSet::new, |last| RankSet::range(0, last))
}

/// Which ranks waited for which: reads on until nothing new comes, as at the end of a run, at most
/// this often.
fn findings(hosts: &mut [Tables], world_size: u32, readings_max: u64) -> Findings {
    let mut ledger = Ledger::default();
    let is_spread = hosts.len() > 1;
    let mut quiet = 0;
    for wave in 0..readings_max {
        if quiet == QUIET_READINGS {
            break;
        }
        let question = Question {
            wave,
            world_size,
            is_spread,
            clock: ledger.reference().map(|(_, clock)| clock),
            offsets: Vec::new(),
            settled: ledger.take_settled(SETTLED_MAX),
        };
        let asked = WaitsQuestion { question, when: Coscheduling::Any, cpu_ns: UNLIMITED_NS };
        let mut is_new = false;
        for (leaf, host) in (0..).zip(hosts.iter_mut()) {
            is_new |= ledger.absorb(host.waits(leaf, &asked));
        }
        quiet = if is_new || ledger.has_settled() { 0 } else { quiet + 1 };
    }
    ledger.close()
}

/// The last events of the ranks that are wanted, until the last moment of their host.
///
/// # Errors
/// One line when this machine runs for less time than the host of the files did, so that the
/// times of calls in progress would be wrong.
fn frozen_last(
    host: &mut Tables,
    question: &FreezeQuestion,
    last_ns: u64,
) -> Result<Frozen, String> {
    if now_ns() < last_ns {
        return Err("this machine has been started later than the one of the files had been \
                    when they end; read them on the machine on which they were written"
            .to_owned());
    }
    let mut frozen = host.freeze(0, question);
    // Not the moment of this reading, unless ranks run.
    let is_over = host.attended().is_empty();
    if is_over && let Some(end) = frozen.events.iter().map(FrozenEvent::end).max() {
        frozen.ranks.values_mut().for_each(|rank| rank.now = end);
    }
    Ok(frozen)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use sapwood_profile::Function;
    use sapwood_report::ends::{ENDS_SCHEMA, Ends};
    use sapwood_report::record::Death;

    use super::ends::WHEN_TOLD_TO_END;
    use super::*;

    /// The handle and the identity of the one communicator.
    const HANDLE: u64 = 77;
    const IDENTITY: u64 = 7;
    const TABLE_WORDS: usize = 72;
    const RECORDS: usize = 16;
    /// Where the ring begins: behind the header and one communicator.
    const RING: usize = 40;

    fn barrier() -> u64 {
        Function::named("MPI_Barrier").expect("a function of MPI").id.into()
    }

    /// A rank of three that has made one barrier, into which it came at this time, or none, and is
    /// in the next one or outside since then.
    struct Kept {
        rank: u64,
        made: u64,
        came: u64,
        is_inside: bool,
        since: u64,
    }

    impl Kept {
        /// As `bindings/mpi/shim/table.h` draws it, with one activity.
        fn table(&self, host: u8) -> Vec<u64> {
            let mut words = vec![0; TABLE_WORDS];
            words[0] = u64::from_le_bytes(*b"SWPROFIL");
            words[1] = 5 | 512 << 32;
            words[2] = self.rank | 3 << 32;
            words[4] = 1;
            words[5] = 500;
            words[6] = host.into();
            words[23] = 512;
            words[24] = 512 << 32;
            words[26] = 576;
            words[27] = 1;
            words[30] = 1 << 32;
            words[31] = HANDLE;
            words[32] = 576;
            words[33] = 576 << 32;
            words[64] = if self.is_inside { barrier() } else { 0 };
            words[65] = self.since;
            words[66] = HANDLE;
            words[67] = 0x8000_0000_8000_0000;
            words[69] = 1;
            words
        }

        /// As `bindings/mpi/shim/events.h` draws it, with one communicator and one record.
        fn events(&self) -> Vec<u64> {
            let mut words = vec![0; RING + 8 + RECORDS * 4];
            words[0] = u64::from_le_bytes(*b"SWEVENTS");
            words[1] = 1 | 256 << 32;
            words[2] = self.rank | 3 << 32;
            words[7] = 1 << 32;
            words[8] = 1 | 1 << 32;
            words[9] = 1 | 1 << 32;
            words[10] = RECORDS as u64 | ((RING * 8) as u64) << 32;
            words[32] = HANDLE;
            words[33] = IDENTITY;
            words[34] = self.made | 3 << 32;
            words[35] = self.rank;
            words[37] = barrier() | u64::from(u32::MAX) << 32;
            words[RING] = self.made;
            words[RING + 8] = self.came;
            words[RING + 9] = barrier() | (10_000 - self.came) << 16;
            words[RING + 10] = 1 << 16 | 1 << 24 | 1 << 32;
            words[RING + 11] = u32::MAX.into();
            words
        }

        fn leave(&self, folder: &Path, host: u8) {
            let stem = format!("rank-{}.{}.{}", self.rank, char::from(host), 100 + self.rank);
            let leave = |end: &str, words: Vec<u64>| {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                fs::write(folder.join(format!("{stem}.{end}")), bytes).expect("it may be written");
            };
            leave("profile", self.table(host));
            leave("events", self.events());
        }
    }

    /// Rank 2 came last to the first barrier, and not to the second one.
    fn ranks() -> [Kept; 3] {
        [
            Kept { rank: 0, made: 1, came: 1_000, is_inside: true, since: 20_000 },
            Kept { rank: 1, made: 1, came: 2_000, is_inside: true, since: 30_000 },
            Kept { rank: 2, made: 1, came: 9_000, is_inside: false, since: 10_000 },
        ]
    }

    fn folder_on(hosts: [u8; 3]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (rank, host) in ranks().iter().zip(hosts) {
            rank.leave(folder.path(), host);
        }
        folder
    }

    #[test]
    fn files_tell_who_had_not_come_when_no_process_is_alive() {
        let folder = folder_on(*b"aaa");
        let why = why_of_files(folder.path()).expect("three ranks");
        assert_eq!((why.ranks, why.collectives, why.elapsed_s), (3, 1, 29.5e-6));
        let stuck = why.stuck.expect("two ranks wait");
        assert_eq!(stuck.culprits, "2");
        assert_eq!(
            stuck.statement,
            "rank 2 was last seen outside MPI, and has not entered MPI_Barrier number 2 on \
             MPI_COMM_WORLD"
        );
        let [waiting] = &stuck.waiting[..] else { panic!("one place: {:?}", stuck.waiting) };
        assert_eq!((waiting.ranks.as_str(), waiting.waits_for.as_str()), ("0-1", "2"));
        assert_eq!((waiting.longest_s, waiting.shortest_s), (10e-6, 0.0));
        assert_eq!(why.slow[0].groups[0].ranks, "2");
        assert!(why.unknown.iter().any(|line| line.starts_with("when the ranks were killed")));
    }

    #[test]
    fn a_rank_that_ended_in_a_barrier_which_the_others_had_left_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [first, second, third] = ranks();
        let third = Kept { made: 0, is_inside: true, since: 9_000, ..third };
        [first, second, third].iter().for_each(|rank| rank.leave(folder.path(), b'a'));
        let why = why_of_files(folder.path()).expect("three ranks");
        assert!(why.has_ended);
        let lines = why.lines();
        assert!(lines[0].ends_with("stuck when it ended"), "no call is known of all: {lines:?}");
        let stuck = why.stuck.expect("ranks wait");
        assert_eq!((stuck.culprits.as_str(), stuck.odd[0].held.as_str()), ("2", "0-1"));
        assert_eq!(
            stuck.statement,
            "rank 2 was last seen in MPI_Barrier number 1 on MPI_COMM_WORLD, which all others have \
             left"
        );
        assert!(stuck.line().starts_with("stuck: rank 2 was last"), "{}", stuck.line());
    }

    /// Its file may be lost, and it in the barrier as the others.
    #[test]
    fn a_rank_without_files_is_not_the_one_that_is_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        ranks()[..2].iter().for_each(|rank| rank.leave(folder.path(), b'a'));
        let why = why_of_files(folder.path()).expect("two ranks");
        assert!(why.unknown[0].starts_with("rank 2: no file in '"), "{:?}", why.unknown);
        let stuck = why.stuck.expect("two ranks wait");
        assert_eq!((stuck.waiting.len(), stuck.culprits.as_str()), (1, ""), "{}", stuck.statement);
    }

    #[test]
    fn of_a_rank_that_has_not_come_it_is_said_that_others_without_files_may_not_have_either() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [first, _, third] = ranks();
        [first, third].iter().for_each(|rank| rank.leave(folder.path(), b'a'));
        let why = why_of_files(folder.path()).expect("two ranks");
        let without = "rank 1: no file in '";
        assert!(why.unknown[0].starts_with(without), "{:?}", why.unknown);
        assert!(why.unknown[0].ends_with(": none is there"), "{:?}", why.unknown);
        let only = "whether others wait for rank 1, and which rank came last";
        assert!(why.unknown[1].starts_with(only), "{:?}", why.unknown);
        let stuck = why.stuck.expect("one rank waits");
        assert_eq!(
            (stuck.culprits.as_str(), stuck.statement.as_str()),
            (
                "2",
                "rank 2 was last seen outside MPI, and has not entered MPI_Barrier number 2 on \
                 MPI_COMM_WORLD; whether another member has is unknown without its file"
            )
        );
    }

    #[test]
    fn how_ranks_ended_is_told_by_the_file_that_a_monitor_has_left() {
        let folder = folder_on(*b"aaa");
        let told = || why_of_files(folder.path()).expect("three ranks");
        let has = |why: &Why, text: &str| why.unknown.iter().any(|line| line.starts_with(text));
        assert!(has(&told(), "how ranks ended, and which of them first: no monitor has left '"));
        let death = |ranks: &str, cause: &str| {
            let (ranks, cause) = (ranks.to_owned(), cause.to_owned());
            Death { ranks, cause, elapsed_s: 1.5, ..Death::default() }
        };
        let first = Death { is_first: true, ..death("2", "signal 9 (killed)") };
        let deaths = vec![first, death("0-1", "signal 15 (terminated)")];
        let schema = ENDS_SCHEMA.to_owned();
        let ends = Ends { schema, ranks: 3, has_ended: true, deaths, ..Ends::default() };
        let told_by = |ends: &Ends| {
            ends.write(folder.path()).expect("it may be written");
            told()
        };
        let why = told_by(&ends);
        let line = "rank 2 died first, 1.500 s after the start: signal 9 (killed)";
        assert_eq!((why.ended.deaths[0].as_str(), why.ended.ends.len()), (line, 2));
        let unknown = ["how ranks ended", "when the ranks were killed"];
        assert!(!unknown.iter().any(|text| has(&why, text)), "{:?}", why.unknown);
        // Its monitor may be killed before it.
        let gone = Ends { has_ended: false, elapsed_s: 2.0, ..ends.clone() };
        assert!(has(&told_by(&gone), "how ranks ended after 2.0 s: the monitor"));
        let ended = told_by(&Ends { was_told_to_end: true, ..ends.clone() });
        assert!(ended.ended.ends.len() == 2 && has(&ended, "how ranks would have ended"));
        let other = told_by(&Ends { ranks: 4, ..ends.clone() });
        assert!(other.ended.deaths.is_empty() && has(&other, "how ranks ended: '"), "{other:?}");
        set_word(&folder, 0, 52, 1_000_000_000_000);
        assert!(has(&told_by(&ends), "how ranks ended: '"), "the file was made after it");
    }

    #[test]
    fn damaged_records_are_left_out_and_counted() {
        let folder = folder_on(*b"aaa");
        // A function that is none, a root that no communicator of three has, and a later time than
        // the file was written at.
        set_word_of(&folder, 0, "events", RING + 9, 65_535 | 5 << 16);
        set_word_of(&folder, 1, "events", RING + 11, 4_000_000);
        set_word_of(&folder, 2, "events", RING + 8, 3_600_000_000_000);
        let why = why_of_files(folder.path()).expect("three ranks");
        assert_eq!((why.collectives, why.slow.len()), (0, 0));
        let line = "3 damaged records of calls left out";
        assert!(why.unknown.iter().any(|told| told == line), "{:?}", why.unknown);
        let freeze = frozen(&folder).expect("three ranks");
        assert!(freeze.unknown.iter().any(|told| told == line), "{:?}", freeze.unknown);
        assert!(freeze.events.iter().all(|event| event.is_open), "{:?}", freeze.events);
    }

    #[test]
    fn ranks_whose_tracing_is_paused_are_named() {
        let folder = folder_on(*b"aaa");
        // Without the bit that says that records are written, since this moment.
        set_word_of(&folder, 2, "events", 8, 1 << 32);
        set_word_of(&folder, 2, "events", 14, 20_000);
        let why = why_of_files(folder.path()).expect("three ranks");
        let line = "calls of rank 2: its tracing is paused, for 10.0 us";
        assert!(why.unknown.iter().any(|told| told == line), "{:?}", why.unknown);
    }

    #[test]
    fn of_hosts_whose_clocks_were_not_compared_it_is_not_told_who_came_last() {
        let folder = folder_on(*b"aba");
        let why = why_of_files(folder.path()).expect("three ranks");
        let undecided = "1 collective whose last rank is unknown, as the hosts' clocks are not \
                         exact enough";
        assert!(why.unknown.iter().any(|line| line == undecided), "{:?}", why.unknown);
        // Of one host the times are known.
        let mut groups = why.slow.iter().flat_map(|place| &place.groups);
        assert!(groups.all(|group| !group.waiting.contains('1')), "{:?}", why.slow);
        // Numbers of collectives need no clock.
        assert_eq!(why.stuck.expect("two ranks wait").culprits, "2");
    }

    #[test]
    fn a_file_that_is_cut_forged_or_no_file_is_named_and_the_rest_is_read() {
        let folder = folder_on(*b"aaa");
        let path = |name: &str| folder.path().join(name);
        let cut = fs::OpenOptions::new().write(true).open(path("rank-1.a.101.events"));
        cut.and_then(|file| file.set_len(400)).expect("it may be cut");
        fs::write(path("rank-7.a.9.profile"), [9_u8; 4096]).expect("it may be written");
        fs::write(path("rank-7.a.9.events"), [9_u8; 4096]).expect("it may be written");
        symlink(path("rank-0.a.100.profile"), path("rank-8.a.9.profile")).expect("a link");
        fs::write(path("notes.txt"), "no rank's").expect("it may be written");
        let kept = KeptFolder::read(folder.path()).expect("two ranks");
        assert_eq!(kept.ranks.to_string(), "0,2");
        let told: Vec<&str> = kept.notes.iter().map(String::as_str).collect();
        let [first, second, third] = told[..] else { panic!("three lines: {told:?}") };
        let cut = "events' is left out: event file: it is cut: it has 400 bytes of 896";
        assert!(first.contains("/rank-1.a.101.") && first.ends_with(cut), "{first}");
        assert!(second.contains("rank-7.a.9.profile' is left out: "), "{second}");
        assert!(third.contains("rank-8.a.9.profile' is left out: "), "{third}");
        let why = why_of_files(folder.path()).expect("two ranks");
        assert!(why.unknown[0].starts_with("rank 1: no file in '"), "{:?}", why.unknown);
    }

    fn frozen(folder: &tempfile::TempDir) -> Result<Freeze, Failure> {
        let last = Duration::from_secs(10);
        let wishes = FreezeWishes { last, ranks: RankSet::new(), late: None };
        freeze_of_files(folder.path(), &wishes)
    }

    #[test]
    fn the_last_calls_are_read_from_files_of_one_host() {
        let folder = folder_on(*b"aaa");
        let freeze = frozen(&folder).expect("three ranks");
        let returned: Vec<u32> =
            freeze.events.iter().filter(|one| !one.is_open).map(|one| one.rank).collect();
        assert_eq!((freeze.ranks, returned), (3, vec![0, 1, 2]));
        assert_eq!(
            freeze.statement,
            "rank 2 was last seen outside MPI, and has not entered MPI_Barrier number 2 on \
             MPI_COMM_WORLD"
        );
        let [ends, killed] = &freeze.unknown[..] else { panic!("two lines: {freeze:?}") };
        assert!(ends.starts_with("how ranks ended, and which of them first: no monitor"), "{ends}");
        assert_eq!((killed.as_str(), freeze.ended.ends.len()), (WHEN_KILLED, 0));
        let error = frozen(&folder_on(*b"aba")).expect_err("two hosts");
        assert!(error.to_string().contains("the files are of 2 hosts"), "{error}");
    }

    #[test]
    fn a_freeze_names_how_ranks_ended_as_why_does() {
        let folder = folder_on(*b"aaa");
        let death = |ranks: &str, is_first| Death {
            ranks: ranks.to_owned(),
            cause: "signal 9 (killed)".to_owned(),
            elapsed_s: 1.5,
            is_first,
            ..Death::default()
        };
        let schema = ENDS_SCHEMA.to_owned();
        let deaths = vec![death("2", true), death("0-1", false)];
        let ends = Ends { schema, ranks: 3, has_ended: true, deaths, ..Ends::default() };
        ends.write(folder.path()).expect("it may be written");
        let why = why_of_files(folder.path()).expect("three ranks");
        let freeze = frozen(&folder).expect("three ranks");
        assert_eq!(freeze.ended, why.ended);
        assert_eq!(freeze.ended.ends.len(), 2);
        assert_eq!(freeze.unknown, [UNTIL_LAST_CALL]);
        let line = "rank 2 died first, 1.500 s after the start: signal 9 (killed)";
        assert!(freeze.summary().iter().any(|told| told == line), "{:?}", freeze.summary());
        // Of a program that was told to end it is said that ranks may have died of that.
        let told = Ends { was_told_to_end: true, ..ends };
        told.write(folder.path()).expect("it may be written");
        let freeze = frozen(&folder).expect("three ranks");
        assert_eq!((freeze.ended.ends.len(), freeze.unknown[0].as_str()), (2, WHEN_TOLD_TO_END));
    }

    #[test]
    fn of_files_that_are_cut_or_empty_that_is_told_and_their_ranks_have_no_file() {
        let folder = folder_on(*b"aaa");
        let path = |name: &str| folder.path().join(name);
        let cut = |name: &str, bytes: u64| {
            let file = fs::OpenOptions::new().write(true).open(path(name));
            file.and_then(|file| file.set_len(bytes)).expect("it may be cut");
        };
        cut("rank-0.a.100.events", 0);
        cut("rank-2.a.102.profile", 520);
        let KeptFolder { notes, reasons, .. } = KeptFolder::read(folder.path()).expect("one rank");
        let [first, second] = &notes[..] else { panic!("two lines: {notes:?}") };
        assert!(first.ends_with(".events' is left out: it is cut: it has 0 bytes"), "{first}");
        let cut = ".profile' is left out: profile table: it is cut: it has 520 bytes of ";
        assert!(second.contains(cut), "{second}");
        let freeze = frozen(&folder).expect("one rank");
        let missing = without_file(&"0,2".parse().expect("ranks"), &reasons, folder.path());
        let why = "rank 0: it is cut: it has 0 bytes; \
                   rank 2: profile table: it is cut: it has 520 bytes of 576";
        assert!(missing.starts_with("ranks 0,2: no file in '"), "{missing}");
        assert!(missing.ends_with(why), "{missing}");
        let unknown = &freeze.unknown;
        assert_eq!(unknown.first(), Some(&missing));
        assert!(!unknown.iter().any(|line| line.contains("did not answer")), "{unknown:?}");
    }

    #[test]
    fn files_of_two_runs_are_not_mixed() {
        let folder = folder_on(*b"aaa");
        ranks()[1].leave(folder.path(), b'b');
        let error = why_of_files(folder.path()).expect_err("rank 1 is there twice");
        assert!(error.to_string().contains("of two runs, rank 1 is in both"), "{error}");
    }

    /// Writes a word into the table of a rank.
    fn set_word(folder: &tempfile::TempDir, rank: u64, at: usize, word: u64) {
        set_word_of(folder, rank, "profile", at, word);
    }

    /// The same into its file of a kind.
    fn set_word_of(folder: &tempfile::TempDir, rank: u64, kind: &str, at: usize, word: u64) {
        let path = folder.path().join(format!("rank-{rank}.a.{}.{kind}", 100 + rank));
        let mut bytes = fs::read(&path).expect("its file");
        bytes[at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        fs::write(&path, bytes).expect("it may be written");
    }

    #[test]
    fn files_of_different_ranks_are_of_two_runs_if_the_launcher_says_so() {
        let folder = folder_on(*b"aaa");
        set_word(&folder, 0, 51, 5);
        set_word(&folder, 1, 51, 5);
        assert_eq!(why_of_files(folder.path()).expect("one of them has no name").ranks, 3);
        set_word(&folder, 2, 51, 6);
        let error = why_of_files(folder.path()).expect_err("two runs");
        let wanted = "holds files of two runs: 'rank-0.a.100' and 'rank-2.a.102'; give each run";
        assert!(error.to_string().contains(wanted), "{error}");
    }

    #[test]
    fn files_of_different_ranks_are_of_two_runs_if_one_had_ended_when_the_other_began() {
        const SECOND: u64 = 1_000_000_000;
        let folder = folder_on(*b"aaa");
        (0..2).for_each(|rank| set_word(&folder, rank, 52, 1_000 * SECOND));
        set_word(&folder, 2, 52, 1_005 * SECOND);
        assert_eq!(why_of_files(folder.path()).expect("it came late to MPI_Init").ranks, 3);
        set_word(&folder, 2, 52, 1_060 * SECOND);
        let error = why_of_files(folder.path()).expect_err("two runs");
        assert!(error.to_string().contains(": 'rank-0.a.100' and 'rank-2.a.102'"), "{error}");
    }

    #[test]
    fn a_folder_without_files_says_how_to_get_some() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = why_of_files(folder.path()).expect_err("it is empty");
        assert!(error.to_string().contains("--events-folder DIR"), "{error}");
        let error = why_of_files(&folder.path().join("none")).expect_err("there is none");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
