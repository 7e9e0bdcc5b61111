//! The members of the group: the view that each keeps, how they join and leave, and how silence
//! is noticed.

mod detector;
mod giving;
mod handed;
mod joining;
mod owners;
mod past;
mod spread;
mod staying;
mod taking;
mod view;

pub(crate) use detector::Detector;
pub(crate) use giving::Giving;
pub(crate) use handed::Handed;
pub(crate) use past::Past;
pub(crate) use spread::Spread;
pub(crate) use staying::Departure;
pub use view::View;
