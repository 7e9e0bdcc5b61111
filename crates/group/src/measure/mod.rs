//! What members measure: round trips, and from them the clusters and the distances between those.

mod clusters;
mod prober;
mod registrar;

pub use clusters::Clusters;
pub(crate) use prober::Prober;
pub(crate) use registrar::Registrar;
