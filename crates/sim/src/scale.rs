//! How a tree grows: the real [`sapwood_node::Node`] of every process, up to a million back-ends,
//! on a virtual clock under a stated LogGP model.
//!
//! Principal type: [`Study`]. It starts a [`Tree`], opens a stream that sums, has waves answered
//! one by one and then in a pipeline, checks every sum and its contributors, and gives
//! [`Figures`]. Nothing fails here, bytes are never cut and no seed is drawn: this is about size.
//! What each cost stands for is with [`Costs`]; `docs/scale.md` says what the figures do and do
//! not show.
//!
//! | file | what it owns |
//! |---|---|
//! | `tree` | the shape, by arithmetic: the children of each node |
//! | `costs` | the parameters of the model, in exact whole picoseconds |
//! | `processor` | when a process is free to send and to receive |
//! | `queue` | messages under way, in the order of their arrival |
//! | `forest` | the nodes, and what happens at each when something arrives |
//! | `study` | the stages and their figures |
//! | `prediction` | what the closed form says of the same tree |

mod costs;
mod error;
mod forest;
mod prediction;
mod processor;
mod queue;
mod study;
mod tree;

pub use costs::{Costs, StartCosts};
pub use error::ScaleError;
pub use prediction::Prediction;
pub use sapwood_node::Recovery;
pub use study::{Figures, LinkBytes, Load, Stage, Study};
pub use tree::{CHILDREN_SIMULATED_MAX, PROCESSES_MAX, Tree};
