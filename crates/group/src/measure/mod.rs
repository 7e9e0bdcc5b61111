//! What members measure: round trips, and from them the clusters and the distances between those;
//! what messages and bytes cost.

mod clusters;
mod costs;
mod prober;
mod registrar;

pub use clusters::{Adopted, Clusters};
pub use costs::{Costs, NearCosts};
pub(crate) use costs::{Flows, span};
pub(crate) use prober::Prober;
pub(crate) use registrar::Registrar;
