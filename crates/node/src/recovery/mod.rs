//! What a death, a lost link or a late packet costs, and how it is made good.

pub(crate) mod adoption;
pub(crate) mod arrival;
pub(crate) mod change;
pub(crate) mod departure;
pub(crate) mod ending;
pub(crate) mod orphan;
pub(crate) mod replay;
pub(crate) mod replica;
pub(crate) mod resumption;
pub(crate) mod silence;
pub(crate) mod switch;
pub(crate) mod vacancies;
