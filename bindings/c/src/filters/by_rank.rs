//! `by-rank`: another filter at each process.
//!
//! Its parameter is a text such as `sum@9;max@11-12;null@*`: names of filters, each with the ranks
//! of the processes that use it; `*` stands for all that are not named. A second text is given to
//! filters from files as their one parameter. Which filter it is, is known when the first wave
//! comes.

use sapwood::{Emitter, Filter, FilterError, RankSet, Values, ValuesRef, WaveRef};

pub(super) const NAME: &str = "by-rank";

struct ByRank {
    assignments: Vec<Assignment>,
    /// For filters from files.
    parameters: Values,
    chosen: Option<Box<dyn Filter>>,
}

struct Assignment {
    filter: String,
    /// None stands for all processes that are not named.
    ranks: Option<RankSet>,
}

/// Makes the filter of its one text.
pub(super) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    let wrong = FilterError::Parameters { name: NAME, takes: "a text such as sum@9;null@*" };
    let text = |index| parameters.string(index).map_err(|_| wrong.clone());
    let (text, parameters) = match parameters.len() {
        1 => (text(0)?, Values::new()),
        2 => (text(0)?, Values::new().string(text(1)?)),
        _ => return Err(wrong),
    };
    let mut assignments = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (filter, ranks) = part.rsplit_once('@').ok_or_else(|| wrong.clone())?;
        let ranks = match ranks.trim() {
            "*" => None,
            ranks => Some(ranks.parse::<RankSet>().map_err(|_| wrong.clone())?),
        };
        let filter = filter.trim().to_owned();
        make_one(&filter, &parameters)?;
        assignments.push(Assignment { filter, ranks });
    }
    if assignments.is_empty() {
        return Err(wrong);
    }
    Ok(Box::new(ByRank { assignments, parameters, chosen: None }))
}

/// One of the assigned filters.
fn make_one(name: &str, parameters: &Values) -> Result<Box<dyn Filter>, FilterError> {
    let parameters =
        if super::is_from_file(name) { parameters.as_ref() } else { ValuesRef::default() };
    super::assignable().make(name, parameters)
}

impl ByRank {
    fn choose(&self, rank: u32) -> Result<Box<dyn Filter>, FilterError> {
        let named = |part: &&Assignment| part.ranks.as_ref().is_some_and(|set| set.contains(rank));
        let other = |part: &&Assignment| part.ranks.is_none();
        let found = self.assignments.iter().find(named);
        let found = found.or_else(|| self.assignments.iter().find(other));
        let name = found.map_or("null", |part| part.filter.as_str());
        make_one(name, &self.parameters)
    }
}

impl Filter for ByRank {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let mut filter = match self.chosen.take() {
            Some(filter) => filter,
            None => self.choose(wave.rank)?,
        };
        let outcome = filter.transform(wave, out);
        self.chosen = Some(filter);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood::Values;

    fn made(text: &str) -> Result<Box<dyn Filter>, FilterError> {
        make(Values::new().string(text).as_ref())
    }

    #[test]
    fn assignments_name_filters_that_are_known() {
        assert!(made("sum@9;max@11-12;null@*").is_ok());
        assert!(matches!(made("summ@9").err(), Some(FilterError::Unknown { .. })));
        for bad in ["", "sum", "sum@x", "sum@3-1"] {
            assert!(matches!(made(bad).err(), Some(FilterError::Parameters { .. })), "{bad}");
        }
    }
}
