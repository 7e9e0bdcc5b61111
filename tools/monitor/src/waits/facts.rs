//! What is known of a function: which ranks wait for which in it, and for what else it waits.

use std::sync::LazyLock;

use sapwood_profile::{Class, Function};
use sapwood_trace::{Beside, CallKind, Pattern};

use super::kinds::{Form, form_of, kind_of, word_of};

/// What is known of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The function; of a collective with large counts, as `MPI_Bcast_c`, that with counts of type
    /// int: processes may call the one and the other together.
    pub(crate) procedure: u32,
    /// Which ranks wait for which, if it is a collective.
    pub(crate) pattern: Pattern,
    /// Whether a communicator is among its arguments.
    pub(crate) has_communicator: bool,
    /// What else it waits for, if it receives.
    pub(crate) beside: Beside,
    /// What kind of call it is where its communicator, file or window is known.
    pub(crate) kind: CallKind,
    /// How it is a collective.
    pub(crate) form: Form,
}

pub(crate) fn facts(function: u32) -> Facts {
    /// By the numbers of functions, which begin at 1.
    static ALL: LazyLock<Vec<Facts>> =
        LazyLock::new(|| Function::all().iter().map(facts_by_name).collect());
    let place = usize::try_from(function).ok().and_then(|number| number.checked_sub(1));
    let known = place.and_then(|place| ALL.get(place)).copied();
    known.unwrap_or(Facts { procedure: function, ..Facts::default() })
}

fn facts_by_name(function: &Function) -> Facts {
    let plain = match function.class {
        Class::Collective => function.name.strip_suffix("_c").and_then(Function::named),
        _ => None,
    };
    let (word, form) = (word_of(function), form_of(function));
    let word = match form {
        // A persistent one waits as its blocking form does.
        Form::Persistent => word.strip_suffix("_init").unwrap_or(word),
        _ => word,
    };
    let word = word.to_ascii_lowercase();
    let is = |names: &[&str]| {
        names.contains(&word.as_str()) || word.strip_prefix('i').is_some_and(|w| names.contains(&w))
    };
    // Under PyTorch a sender waits for the receiver, so that a root does for the others as well.
    let pattern = if !function.is_mpi() {
        Pattern::All
    } else if word.contains("neighbor_") || word == "intercomm_create" {
        Pattern::Unknown
    } else if is(&["bcast", "scatter", "scatterv"]) {
        Pattern::FromRoot
    } else if is(&["reduce", "gather", "gatherv"]) {
        Pattern::ToRoot
    } else {
        Pattern::All
    };
    let beside = match word.as_str() {
        "wait" | "recv" | "mrecv" => Beside::Nothing,
        "sendrecv" | "sendrecv_replace" => Beside::Send,
        _ => Beside::Requests,
    };
    let has_communicator = function.class != Class::Wait && !word.starts_with("start");
    let procedure = plain.map_or(function.id, |plain| plain.id);
    let kind = kind_of(function);
    Facts { procedure, pattern, has_communicator, beside, kind, form }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooted_collectives_are_told_by_their_names() {
        let of = |name| {
            let facts = facts(Function::named(name).expect("a function of MPI").id);
            (facts.pattern, facts.has_communicator)
        };
        assert_eq!(of("MPI_Allreduce"), (Pattern::All, true));
        for name in ["MPI_Bcast", "MPI_Ibcast", "MPI_Scatterv_c", "MPI_Iscatter", "MPI_Bcast_init"]
        {
            assert_eq!(of(name), (Pattern::FromRoot, true), "{name}");
        }
        for name in
            ["MPI_Reduce", "MPI_Ireduce_c", "MPI_Gatherv", "MPI_Igather", "MPI_Gather_init_c"]
        {
            assert_eq!(of(name), (Pattern::ToRoot, true), "{name}");
        }
        for name in ["all_reduce", "broadcast", "gather", "all_gather_object"] {
            assert_eq!(of(name), (Pattern::All, true), "{name}");
        }
        let of_some = [
            "MPI_Neighbor_alltoallw",
            "MPI_Ineighbor_allgather_c",
            "MPI_Neighbor_alltoall_init",
            "MPI_Intercomm_create",
        ];
        for name in of_some {
            assert_eq!(of(name), (Pattern::Unknown, true), "{name}");
        }
        for name in ["MPI_Reduce_scatter", "MPI_Allgather", "MPI_Ibarrier", "MPI_Barrier_init"] {
            assert_eq!(of(name), (Pattern::All, true), "{name}");
        }
        let procedure = |name| {
            let number = facts(Function::named(name).expect("a function of MPI").id).procedure;
            Function::of(number).expect("a function of MPI").name
        };
        for (name, plain) in [
            ("MPI_Bcast_c", "MPI_Bcast"),
            ("MPI_Iallreduce_c", "MPI_Iallreduce"),
            ("MPI_Allreduce_init_c", "MPI_Allreduce_init"),
            ("MPI_Bcast", "MPI_Bcast"),
            ("MPI_Send_c", "MPI_Send_c"),
            ("broadcast", "broadcast"),
        ] {
            assert_eq!(procedure(name), plain);
        }
        assert_eq!(facts(u32::MAX).procedure, u32::MAX);
        for name in ["MPI_Waitall", "MPI_Test", "MPI_Start", "MPI_Startall"] {
            assert_eq!(of(name), (Pattern::All, false), "{name}");
        }
    }
}
