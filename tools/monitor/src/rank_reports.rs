//! What a leaf does with its tables beside rounds: hands settings on, reports what the ranks say of
//! them and how they ended, and gives the program advice.

use sapwood::ValuesRef;
use sapwood_profile::{
    Condition, EndKind, Moment, RankReport, RankState, STATE_OFFSET, TableReader, TimeShare,
    add_programs,
};
use sapwood_transport::ControlPage;

use super::host_time::now_ns;
use super::rank_control::{
    ControlQuestion, ENTRIES, ENTRIES_MAX, ENTRY, ENTRY_BYTES, OBEYED, RankControl, SEQUENCE,
    WANTS_ADVICE,
};
use super::tables::{RankTable, Tables};

impl Tables {
    /// Hands the settings on, and gives what the ranks of this leaf report.
    pub(crate) fn control(&mut self, leaf: u32, question: &ControlQuestion) -> RankReport {
        // Before those of ranks: of ends that are seen at once it is not the first.
        let tool_end = self.tool_rank.as_mut().and_then(|tool| tool.end(question.is_last));
        let mut report = RankReport { leaf, tool_end, ..RankReport::default() };
        self.settings = Some(question.settings.clone());
        for (&number, rank) in &mut self.ranks {
            rank.control.set(&question.settings, number);
            report.wants_advice |= rank.control.load(WANTS_ADVICE) != 0;
            let obeyed = rank.control.load(OBEYED);
            report.obeyed.entry(obeyed).or_default().insert(number);
            if rank.has_finished() {
                report.finished.insert(number);
            }
            report.marks_left_out += rank.marks_left_out();
            add_programs(&mut report.programs, rank.program().map(str::to_owned));
            if question.known_ends.contains(number) {
                continue;
            }
            if let Some((cause, at_ns)) = rank.control.end(question.is_last) {
                let (is_finalized, inside) = rank.last_known();
                let kind = EndKind { cause, is_finalized, inside };
                report.end(number, kind, now_ns().saturating_sub(at_ns));
            }
        }
        report
    }

    /// A rank that comes obeys what the others do.
    pub(crate) fn set_new(&self, rank: u32, control: &RankControl) {
        if let Some(settings) = self.settings.as_ref().filter(|settings| settings.change > 0) {
            control.set(settings, rank);
        }
    }

    /// Whether the settings leave activities of a rank out.
    pub(crate) fn tells_activities(&self, rank: u32) -> bool {
        self.settings.as_ref().is_none_or(|settings| settings.tells_activities(rank))
    }

    /// Writes the front-end's latest result where the program finds it. `values` are those that
    /// `guidance` sends.
    pub(crate) fn advise(&self, values: ValuesRef<'_>) -> Result<(), sapwood::Error> {
        for rank in self.ranks.values() {
            let wants = rank.control.load(WANTS_ADVICE) != 0 && rank.peer.is_some();
            if let Some(page) = rank.control.page.as_ref().filter(|_| wants) {
                write_advice(page, values)?;
            }
        }
        Ok(())
    }
}

fn write_advice(page: &ControlPage, values: ValuesRef<'_>) -> Result<(), sapwood::Error> {
    let names: Vec<&[u8]> = values.strings(6)?.take(ENTRIES_MAX).collect();
    let longs: [&[u64]; 3] = [values.array(7)?, values.array(8)?, values.array(9)?];
    let words: [&[u32]; 2] = [values.array(10)?, values.array(11)?];
    let sequence = page.load(SEQUENCE) | 1;
    page.store(SEQUENCE, sequence);
    page.store(272, values.scalar(1)?);
    page.store(276, values.scalar(2)?);
    page.store_long(280, values.scalar(3)?);
    page.store_long(288, values.scalar(4)?);
    let class = values.string(5)?;
    page.store_text(296, 24, class);
    for (at, name) in names.iter().enumerate() {
        let place = ENTRY + at * ENTRY_BYTES;
        for (column, longs) in longs.iter().enumerate() {
            page.store_long(place + 8 * column, longs.get(at).copied().unwrap_or(0));
        }
        for (column, words) in words.iter().enumerate() {
            page.store(place + 24 + 4 * column, words.get(at).copied().unwrap_or(0));
        }
        page.store_text(place + 32, 32, &String::from_utf8_lossy(name));
    }
    page.store(ENTRIES, u32::try_from(names.len()).unwrap_or(0));
    page.store_long(264, values.scalar(0)?);
    page.store(SEQUENCE, sequence.wrapping_add(1));
    Ok(())
}

impl RankTable {
    /// Whether it takes over no more settings: it has called `MPI_Finalize`, or exits. Its process
    /// may live on.
    fn has_finished(&self) -> bool {
        let word = self.table.load_word(STATE_OFFSET / 8).unwrap_or(0);
        let state = u8::try_from(word & u64::from(u32::MAX)).ok().and_then(RankState::from_code);
        matches!(state, Some(RankState::Finalized | RankState::Exited))
    }

    /// Whether `MPI_Finalize` had returned, and what it was inside when it was last seen.
    fn last_known(&self) -> (bool, String) {
        let Ok(words) = self.words() else { return (false, String::new()) };
        let Ok(table) = TableReader::new(&words) else { return (false, String::new()) };
        let is_finalized = table.state() == RankState::Finalized && !table.is_finalizing();
        let condition = Condition::Lost;
        let ended_ns = self.control.closed_ns;
        let moment = Moment { now_ns: now_ns(), long_ns: u64::MAX, condition, ended_ns };
        let activities = table.activities(moment);
        let mut inside = String::new();
        for kind in activities.iter().map(|activity| &activity.kind).filter(|_| !is_finalized) {
            if let Some(function) = kind.function_name() {
                inside = function;
                if !kind.communicator.is_empty() {
                    inside = format!("{inside} on {}", kind.communicator);
                }
            }
            if !kind.region.is_empty() && inside.is_empty() {
                inside.clone_from(&kind.region);
            }
        }
        inside.truncate(inside.floor_char_boundary(200));
        (is_finalized, inside)
    }

    /// The profile without a division of time that settings have made wrong.
    pub(crate) fn time_of(&self, time: TimeShare) -> TimeShare {
        if self.control.is_partly_counted() { TimeShare::default() } else { time }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
    use sapwood::RankSet;
    use sapwood_profile::Cause;

    use super::*;
    use crate::control::deaths::Deaths;
    use crate::control::request::RunSettings;
    use crate::presence::Attachable;

    const RANK: u32 = 2;
    const TABLE_BYTES: u64 = 4096;

    /// The tables of a leaf that watches this process as a rank of four, whose table has nothing
    /// but its state.
    fn watching(process: Pid, state: RankState) -> Tables {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let table = File::from(memfd_create("reports-test", flags).expect("memory"));
        table.set_len(TABLE_BYTES).expect("its length");
        table.write_all_at(&[state.code()], STATE_OFFSET as u64).expect("its state");
        fcntl_add_seals(&table, SealFlags::SHRINK).expect("its seal");
        let name = format!("sapwood-test-reports-{}", process.as_raw_pid());
        let mut tables = Tables::bind(&name).expect("no other test has this name");
        tables.adopt(Attachable {
            process: process.as_raw_pid(),
            world_rank: RANK,
            world_size: 4,
            abi: 1,
            program: String::new(),
            table_bytes: TABLE_BYTES,
            table,
            events: None,
            pidfd: pidfd_open(process, PidfdFlags::empty()).expect("it is a child"),
        });
        tables
    }

    /// What the leaf answers to a question of a front-end that knows of these ends.
    fn answer(tables: &mut Tables, known_ends: &RankSet) -> RankReport {
        tables.look(|_| {});
        let (wave, is_last, known_ends) = (0, false, known_ends.clone());
        let settings = RunSettings::new(Duration::from_secs(1));
        let asked = ControlQuestion { wave, is_last, known_ends, settings }.encode();
        let question = ControlQuestion::decode(asked.as_ref()).expect("a question");
        tables.control(5, &question)
    }

    /// A child that lives until its input ends.
    fn living() -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read line; exit 3"]).stdin(Stdio::piped());
        shell.spawn().expect("a shell")
    }

    /// Ends a child that waits for its input, which stays to be waited for.
    fn end(child: &mut Child) {
        drop(child.stdin.take());
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(child)), options).expect("it is a child");
    }

    #[test]
    fn a_rank_that_has_called_finalize_and_lives_on_takes_over_no_more_settings() {
        let rank = RankSet::range(RANK, RANK);
        for (state, finished) in [
            (RankState::Running, RankSet::new()),
            (RankState::Finalized, rank.clone()),
            (RankState::Exited, rank.clone()),
        ] {
            let mut child = living();
            let mut tables = watching(Pid::from_child(&child), state);
            let report = answer(&mut tables, &RankSet::new());
            assert!(report.ends.is_empty(), "it lives");
            assert_eq!((&report.obeyed[&0], &report.finished), (&rank, &finished), "{state}");
            end(&mut child);
            child.wait().expect("it has ended");
        }
    }

    #[test]
    fn an_end_is_told_again_until_a_question_says_that_it_is_known() {
        let mut child = living();
        let mut tables = watching(Pid::from_child(&child), RankState::Running);
        let (mut deaths, rank) = (Deaths::default(), RankSet::range(RANK, RANK));
        assert!(answer(&mut tables, deaths.known()).ends.is_empty(), "it lives");
        end(&mut child);
        // These answers do not reach the front-end.
        for _ in 0..2 {
            let lost = answer(&mut tables, deaths.known()).ends;
            let told: Vec<_> = lost.iter().map(|(kind, end)| (kind.cause, &end.ranks)).collect();
            assert_eq!(told, [(Cause::Code(3), &rank)]);
        }
        let other = RankSet::range(RANK + 1, RANK + 1);
        assert_eq!(answer(&mut tables, &other).ends.len(), 1, "another end is known");
        deaths.take(&answer(&mut tables, deaths.known()), Duration::from_secs(1));
        assert_eq!(*deaths.known(), rank);
        for _ in 0..2 {
            assert!(answer(&mut tables, deaths.known()).ends.is_empty(), "it is known");
        }
        child.wait().expect("it has ended");
    }
}
