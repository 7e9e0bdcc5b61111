//! What a function does, as its name and its class tell it.

use sapwood_profile::{Class, Function};
use sapwood_trace::CallKind;

/// Calls that wait for a message, without what stands before and behind.
const RECEIVES: [&str; 5] = ["Recv", "Probe", "Mprobe", "Mrecv", "recv"];
/// Calls that wait for both: for a message, and until one is taken.
const EXCHANGES: [&str; 2] = ["Sendrecv", "Sendrecv_replace"];
/// Calls that wait until a message is taken.
const SENDS: [&str; 4] = ["Send", "Ssend", "Rsend", "send"];
/// Calls on a file that all its processes make, beside those with `_all` or `_ordered`.
const FILE_CALLS: [&str; 6] = [
    "File_close",
    "File_set_size",
    "File_preallocate",
    "File_set_view",
    "File_sync",
    "File_set_atomicity",
];
/// The same on a window.
const WINDOW_CALLS: [&str; 2] = ["Win_fence", "Win_free"];

/// Begins of calls that make a window. `MPI_Win_create_keyval` and the like wait for nothing.
const WINDOW_MAKERS: [&str; 2] = ["Win_create", "Win_allocate"];

/// Calls that wait until a part of a window is free.
const LOCK_CALLS: [&str; 6] =
    ["Win_lock", "Win_lock_all", "Win_unlock", "Win_unlock_all", "Win_flush", "Win_flush_all"];

/// How a function is a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is none.
    #[default]
    Other,
    /// It returns once it is complete.
    Blocking,
    /// It returns at once, and is counted by then.
    Started,
    /// The same among neighbours: which others it waits for once it has been started is not
    /// followed.
    StartedAmongNeighbours,
    /// It makes the request of a persistent one, which has the name of this function.
    Persistent,
}

impl Form {
    /// Whether a collective goes on behind the call that has started it, so that a rank waits for
    /// it in another one.
    pub(crate) const fn is_started(self) -> bool {
        matches!(self, Self::Started | Self::Persistent)
    }
}

/// The name of a function without `MPI_` and the end of one with large counts.
pub(super) fn word_of(function: &Function) -> &'static str {
    let word = function.name.strip_prefix("MPI_").unwrap_or(function.name);
    word.strip_suffix("_c").unwrap_or(word)
}

pub(super) fn form_of(function: &Function) -> Form {
    let word = word_of(function);
    match function.class {
        Class::Collective if word.ends_with("_init") => Form::Persistent,
        Class::Collective if word.starts_with("Ineighbor_") => Form::StartedAmongNeighbours,
        Class::Collective if word.starts_with('I') => Form::Started,
        Class::Collective => Form::Blocking,
        _ => Form::Other,
    }
}

/// What kind of call a function is where its communicator, file or window is known.
pub(super) fn kind_of(function: &Function) -> CallKind {
    let word = word_of(function);
    match function.class {
        Class::Collective => match form_of(function) {
            Form::Blocking => CallKind::Collective,
            Form::Started => CallKind::CollectiveStart,
            Form::StartedAmongNeighbours | Form::Persistent | Form::Other => CallKind::Other,
        },
        Class::PointToPoint if matches!(word, "Iprobe" | "Improbe") => CallKind::Poll,
        Class::PointToPoint if RECEIVES.contains(&word) => CallKind::Receive,
        Class::PointToPoint if EXCHANGES.contains(&word) => CallKind::Exchange,
        Class::PointToPoint if SENDS.contains(&word) => CallKind::Send,
        Class::Wait if word.starts_with("Wait") || word == "Work.wait" => CallKind::Wait,
        Class::Wait if word.starts_with("Test") => CallKind::Poll,
        Class::File if word == "File_open" => CallKind::Creation,
        Class::File
            if word.contains("_all") || word.contains("_ordered") || FILE_CALLS.contains(&word) =>
        {
            CallKind::File
        }
        Class::Rma if LOCK_CALLS.contains(&word) => CallKind::Lock,
        Class::Rma if WINDOW_CALLS.contains(&word) => CallKind::Window,
        Class::Rma if WINDOW_MAKERS.iter().any(|maker| word.starts_with(maker)) => {
            CallKind::Creation
        }
        Class::Other if makes(word) => CallKind::Creation,
        _ => CallKind::Other,
    }
}

/// Whether a function makes a communicator together with all processes of another one, or starts
/// processes with them. `MPI_Comm_create_group` waits for those of a group, which is not known.
fn makes(word: &str) -> bool {
    const NO_MAKERS: [&str; 7] = [
        "Comm_create_group",
        "Cart_coords",
        "Cart_get",
        "Cart_rank",
        "Cart_shift",
        "Graph_get",
        "Graph_neighbors",
    ];
    const BEGINS: [&str; 9] = [
        "Comm_dup",
        "Comm_split",
        "Comm_create",
        "Comm_spawn",
        "Intercomm_",
        "Cart_",
        "Graph_",
        "Dist_graph_create",
        "init_process_group",
    ];
    BEGINS.iter().any(|begin| word.starts_with(begin))
        && !NO_MAKERS.iter().any(|begin| word.starts_with(begin))
}
