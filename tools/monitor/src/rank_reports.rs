//! What a leaf does with its tables beside rounds: hands settings on, reports what the ranks say of
//! them and how they ended, and gives the program advice.

use sapwood::ValuesRef;
use sapwood_profile::{
    Condition, EndKind, Moment, RankReport, RankState, TableReader, TimeShare, add_programs,
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
