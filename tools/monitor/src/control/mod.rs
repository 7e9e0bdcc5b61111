//! Control of a run: what is counted, by which ranks, how often; and what ranks say of it.
//!
//! A user's wish is a [`ControlRequest`], from the command `sapwood mpi control`
//! (`control_command`), or from a thread of this process through a [`ControlChannel`], such as a
//! page's server. `desk` answers requests. The front-end keeps the settings and sends them down a
//! stream of their own (`guidance`); a leaf writes them into its ranks' control pages and reports
//! which ranks obey and how ranks ended (`rank_control`, `rank_reports`), of which `deaths` keeps
//! account. Of a job that is attached to, `attached_pages` finds the control pages and says whether
//! they may be written.

mod cause_text;
pub(crate) mod channel;
pub(crate) mod deaths;
pub(crate) mod request;
mod scope_request;
mod tool_death;

pub use channel::ControlChannel;
pub(crate) use request::FreezeOrder;
pub use request::{ControlRequest, FREEZE_MAX, FREEZE_MIN, FreezeRequest, GROUPS};
pub use scope_request::ScopeRequest;
