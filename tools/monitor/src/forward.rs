//! How variables reach ranks on other hosts: by the launcher's own options.
//!
//! A launcher hands its environment on to ranks of its own host at best. Owns the words that are
//! added to its command line, and the way in which what the user preloads stays in front; also
//! where an `env` in the command sets or removes what is to be preloaded.

use std::ffi::OsString;

use super::command_line::{JobCommand, Part};
use super::launcher::{Launcher, LauncherOption};
use super::linkage::Abi;
use super::preload::with_shim;
use super::shim::PRELOAD_VARIABLE;
use super::wrappers::{EnvChange, EnvWord, env_words};

/// Options with a variable's assignment as their argument, or its name.
const OPEN_MPI_VARIABLE: &str = "x";
/// Options with a variable and its value as their two arguments.
const HYDRA_VARIABLE: &str = "genv env";
/// Options with which one part of a command says what of Hydra's own environment its ranks get, and
/// those that say so of all parts.
const HYDRA_OWN: [&str; 2] = ["envnone envlist envall", "genvnone genvlist genvall"];
/// Options by which a launcher hands on less than its environment, or something else.
const ENVIRONMENT_OPTIONS: &str = "x genv env genvlist envlist genvnone envnone export";

/// A command line and the environment that it is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// Whether ranks on the launcher's own host have our environment as it is. A variable that the user
/// sets by an option, or removes before the launcher, would otherwise take the place of ours.
pub(crate) fn hands_on_environment(words: &[OsString], command: &JobCommand) -> bool {
    let is_srun = command.kind == Some(Launcher::Srun);
    let launcher = command.parts.first().map_or(0, |part| part.at);
    let removes = |word: &EnvWord| !matches!(word.change, EnvChange::Sets(_));
    let is_removed = env_of(words, command).iter().any(|word| word.at < launcher && removes(word));
    !is_srun && !is_removed && command.options(ENVIRONMENT_OPTIONS).next().is_none()
}

/// What each `env` does to the list of preloads: before the launcher, and before the programs.
fn env_of(words: &[OsString], command: &JobCommand) -> Vec<EnvWord> {
    let programs = command.parts.iter().map(|part| part.at + part.option_words);
    let mut found = Vec::new();
    for start in std::iter::once(0).chain(programs) {
        let rest = words.get(start..).unwrap_or_default();
        let part = rest.split(|word| word == ":").next().unwrap_or_default();
        let changes = env_words(part, PRELOAD_VARIABLE).into_iter();
        found.extend(changes.map(|word| EnvWord { at: start + word.at, ..word }));
    }
    found
}

/// The words with ours among what an `env` in them has the ranks preload. There are as many.
pub(crate) fn preloading(
    words: &[OsString],
    command: &JobCommand,
    variables: &[(OsString, OsString)],
) -> Vec<OsString> {
    let mut words = words.to_vec();
    let ours = variables.iter().find(|(name, _)| name == PRELOAD_VARIABLE);
    let ours = ours.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default();
    for EnvWord { at, change } in env_of(&words, command) {
        if let EnvChange::Sets(users) = change {
            words[at] = format!("{PRELOAD_VARIABLE}={}", with_own(&users, &ours)).into();
        }
    }
    words
}

/// What an `env` before the launcher has preloaded there, and so where the launcher hands its
/// environment on: that of the last one which says anything of it.
fn preloaded_before(words: &[OsString], command: &JobCommand) -> Option<String> {
    let launcher = command.parts.first().map_or(0, |part| part.at);
    let mut before = env_of(words, command).into_iter().rev().filter(|word| word.at < launcher);
    before.next().map(|word| match word.change {
        EnvChange::Sets(users) => users,
        EnvChange::Unsets | EnvChange::Clears => String::new(),
    })
}

/// The words of an `env` that keep the shim from ranks; none if the ranks get its variables past
/// it, from the options of their launcher.
pub(crate) fn hides_shim(
    words: &[OsString],
    command: &JobCommand,
    launcher_of: Option<Abi>,
) -> Option<&'static str> {
    let launcher = command.parts.first().map_or(0, |part| part.at);
    let has_options = takes_variables(command, launcher_of);
    let changes = env_of(words, command).into_iter();
    let mut hiding = changes.filter(|word| !(has_options && word.at < launcher));
    hiding.find_map(|word| match word.change {
        EnvChange::Clears => Some("env -i"),
        EnvChange::Unsets => Some("env -u LD_PRELOAD"),
        EnvChange::Sets(_) => None,
    })
}

/// The option of the launcher that keeps from all ranks what an `env` before it preloads, as it
/// does without us; none where there is no such list, or an option names it.
pub(crate) fn withholds_preload(
    words: &[OsString],
    command: &JobCommand,
    launcher_of: Option<Abi>,
) -> Option<String> {
    let is_set = preloaded_before(words, command).is_some_and(|users| !users.is_empty());
    let names_it = |option: &LauncherOption| option.value() == PRELOAD_VARIABLE;
    let is_named = command.options(HYDRA_VARIABLE).any(names_it);
    withholding(command, launcher_of).filter(|_| is_set && !is_named)
}

/// The option by which a launcher keeps the list of its own environment from all ranks.
fn withholding(command: &JobCommand, launcher_of: Option<Abi>) -> Option<String> {
    let of_part = |part: &Part| match (command.kind, launcher_of) {
        (Some(Launcher::Srun), _) => srun_withholding(part),
        (Some(Launcher::Mpirun), Some(Abi::Mpich)) => hydra_withholding(command, part),
        _ => None,
    };
    let of_all: Option<Vec<String>> = command.parts.iter().map(of_part).collect();
    of_all?.into_iter().next()
}

fn srun_withholding(part: &Part) -> Option<String> {
    let (_, option) = of_name(part, "export").last()?;
    let keeps = |word: &str| {
        word.eq_ignore_ascii_case("ALL")
            || word.split('=').next().is_some_and(|it| it == PRELOAD_VARIABLE)
    };
    let is_kept = option.value().split(',').any(keeps);
    (!is_kept).then(|| format!("--export={}", option.value()))
}

fn hydra_withholding(command: &JobCommand, part: &Part) -> Option<String> {
    let [of_part, of_all] = HYDRA_OWN;
    let own = of_name(part, of_part).last().map(|(_, option)| option);
    let option = own.or_else(|| command.options(of_all).last())?;
    let is_listed = option.value().split(',').any(|name| name == PRELOAD_VARIABLE);
    match option.name.as_str() {
        "envnone" | "genvnone" => Some(format!("-{}", option.name)),
        "envlist" | "genvlist" if !is_listed => {
            Some(format!("-{} {}", option.name, option.value()))
        }
        _ => None,
    }
}

/// Whether a launcher is told variables by options of its own.
fn takes_variables(command: &JobCommand, launcher_of: Option<Abi>) -> bool {
    match command.kind {
        Some(Launcher::Mpirun) => matches!(launcher_of, Some(Abi::OpenMpi | Abi::Mpich)),
        Some(Launcher::Prun) => launcher_of == Some(Abi::OpenMpi),
        _ => false,
    }
}

/// The command whose ranks have these variables on every host. `comment` marks the job that `srun`
/// makes.
pub(crate) fn forwarded(
    words: &[OsString],
    command: &JobCommand,
    launcher_of: Option<Abi>,
    variables: &[(OsString, OsString)],
    comment: Option<&str>,
) -> Forwarded {
    // What an option says of the list takes the place of what the launcher's environment has, which
    // an option may keep from the ranks.
    let before = match withholding(command, launcher_of) {
        Some(_) => None,
        None => preloaded_before(words, command),
    };
    let value_of = |name: &OsString, value: &OsString| match &before {
        Some(users) if name == PRELOAD_VARIABLE => with_own(users, &value.to_string_lossy()),
        _ => value.to_string_lossy().into_owned(),
    };
    let all: Vec<(String, String)> = variables
        .iter()
        .map(|(name, value)| (name.to_string_lossy().into(), value_of(name, value)))
        .collect();
    let parts: &[Part] = &command.parts;
    match (command.kind, launcher_of) {
        (Some(Launcher::Mpirun | Launcher::Prun), Some(Abi::OpenMpi)) => {
            let words = edited(words, parts, |part, _| open_mpi(part, &all));
            Forwarded { words, environment: Vec::new() }
        }
        (Some(Launcher::Mpirun), Some(Abi::Mpich)) => {
            let words = edited(words, parts, |part, is_first| hydra(part, &all, is_first));
            Forwarded { words, environment: Vec::new() }
        }
        (Some(Launcher::Srun), _) => {
            let words = edited(words, parts, |part, _| srun(part, &all, comment));
            // What is set in its own environment would win over what it is told to export.
            let is_told = command.options("export").next().is_some();
            let environment = if is_told { Vec::new() } else { variables.to_vec() };
            Forwarded { words, environment }
        }
        _ => Forwarded { words: words.to_vec(), environment: variables.to_vec() },
    }
}

/// What is done to one part: options that are replaced, by their place in the part's list, and
/// words that are added behind its options.
#[derive(Default)]
struct Edit {
    replaced: Vec<(usize, Vec<String>)>,
    added: Vec<String>,
    /// Words that are added before its options.
    before: Vec<String>,
}

/// The words with every part edited.
fn edited(words: &[OsString], parts: &[Part], edit: impl Fn(&Part, bool) -> Edit) -> Vec<OsString> {
    let mut result = words.to_vec();
    for (number, part) in parts.iter().enumerate().rev() {
        let Edit { replaced, added, before } = edit(part, number == 0);
        let end = part.at + part.option_words;
        result.splice(end..end, added.into_iter().map(OsString::from));
        for (place, new) in replaced.into_iter().rev() {
            let option = &part.options[place];
            let from = part.at + option.at;
            result.splice(from..from + option.words, new.into_iter().map(OsString::from));
        }
        result.splice(part.at..part.at, before.into_iter().map(OsString::from));
    }
    result
}

/// The preloads of a user's own list with those of ours that are Sapwood's: the shim where it sees
/// all calls, and what stands behind it.
fn with_own(users: &str, ours: &str) -> String {
    let is_own =
        |library: &&str| library.rsplit('/').next().unwrap_or("").starts_with("libsapwood-");
    let mut own = ours.split(':').filter(is_own);
    let is_shim = |library: &str| {
        library.rsplit('/').next().is_some_and(|name| name.starts_with("libsapwood-mpi-"))
    };
    let are_there: Vec<&str> = users.split([' ', ':']).collect();
    let Some(shim) = own.next() else { return users.to_owned() };
    let mut list = match are_there.iter().any(|&library| is_shim(library)) {
        true => users.to_owned(),
        false => with_shim(Some(users.into()), shim.as_ref()).to_string_lossy().into_owned(),
    };
    let missing = own.filter(|library| !are_there.contains(library));
    missing.for_each(|library| list.extend([":", library]));
    list
}

fn open_mpi(part: &Part, variables: &[(String, String)]) -> Edit {
    let mut edit = Edit::default();
    for (name, value) in variables {
        let mut is_set = false;
        for (place, option) in of_name(part, OPEN_MPI_VARIABLE) {
            let (set, users) = option.value().split_once('=').unwrap_or((option.value(), ""));
            if set == name {
                let is_preload = name == PRELOAD_VARIABLE && !users.is_empty();
                let value = if is_preload { with_own(users, value) } else { value.clone() };
                edit.replaced.push((place, vec!["-x".into(), format!("{name}={value}")]));
                is_set = true;
            }
        }
        if !is_set {
            edit.added.extend(["-x".into(), format!("{name}={value}")]);
        }
    }
    edit.replaced.sort();
    edit
}

fn hydra(part: &Part, variables: &[(String, String)], is_first: bool) -> Edit {
    let mut edit = Edit::default();
    let mut preloads = false;
    for (place, option) in of_name(part, HYDRA_VARIABLE) {
        let [name, users] = option.values.as_slice() else { continue };
        if let Some((_, value)) = variables.iter().find(|(known, _)| known == name) {
            let value = with_own(users, value);
            edit.replaced.push((place, vec![format!("-{}", option.name), name.clone(), value]));
            preloads |= option.name == "genv";
        }
    }
    // What is said for all ranks holds for all parts, and is to be said before the others.
    for (name, value) in variables.iter().filter(|_| is_first) {
        if !(preloads && name == PRELOAD_VARIABLE) {
            edit.before.extend(["-genv".into(), name.clone(), value.clone()]);
        }
    }
    edit
}

/// `srun` hands its whole environment on unless it is told otherwise.
fn srun(part: &Part, variables: &[(String, String)], comment: Option<&str>) -> Edit {
    let mut edit = Edit::default();
    let set: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if let Some((place, option)) = of_name(part, "export").last() {
        let mut preloaded = None;
        let mut kept = Vec::new();
        for word in option.value().split(',').filter(|word| !matches!(*word, "NONE" | "NIL")) {
            match word.strip_prefix(PRELOAD_VARIABLE).and_then(|rest| rest.strip_prefix('=')) {
                Some(users) => preloaded = Some(users),
                None => kept.push(word.to_owned()),
            }
        }
        let set = variables.iter().zip(set).map(|((name, value), set)| match preloaded {
            Some(users) if name == PRELOAD_VARIABLE => {
                format!("{name}={}", with_own(users, value))
            }
            _ => set,
        });
        kept.extend(set);
        edit.replaced.push((place, vec![format!("--export={}", kept.join(","))]));
    } else if std::env::var_os("SLURM_EXPORT_ENV").is_some_and(|export| export != "ALL") {
        edit.added.push(format!("--export={}", set.join(",")));
    }
    if let Some(comment) = comment {
        let users = of_name(part, "comment").last().map(|(_, option)| option.value());
        let users = users.map_or_else(String::new, |users| format!("{users} "));
        edit.added.push(format!("--comment={users}{comment}"));
    }
    edit
}

fn of_name<'a>(
    part: &'a Part,
    names: &'a str,
) -> impl Iterator<Item = (usize, &'a LauncherOption)> {
    part.options.iter().enumerate().filter(move |(_, option)| option.is(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, abi: Abi, comment: Option<&str>) -> String {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        let command = JobCommand::parse(&words).expect("a command that can be read");
        let variables =
            [("LD_PRELOAD", "/libsapwood-mpi.so"), ("S", "1")].map(|(n, v)| (n.into(), v.into()));
        let forwarded = forwarded(&words, &command, Some(abi), &variables, comment);
        let is_exported = text.starts_with("srun") && !text.contains("--export");
        assert_eq!(!forwarded.environment.is_empty(), is_exported, "{text}");
        let words: Vec<_> = forwarded.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn options_that_change_the_environment_are_seen() {
        let hands_on = |text: &str| {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            hands_on_environment(&words, &JobCommand::parse(&words).expect("a command"))
        };
        assert!(hands_on("env LD_PRELOAD=/u.so mpirun -np 2 env -i a"));
        assert!(!hands_on("env -i mpirun -np 2 a"));
        assert!(!hands_on("nice env -u LD_PRELOAD mpirun -np 2 a"));
        assert!(hands_on("mpirun -np 2 a -x LD_PRELOAD=/u.so"));
        assert!(!hands_on("mpirun -np 2 -x LD_PRELOAD=/u.so a"));
        assert!(!hands_on("mpiexec -genv LD_PRELOAD /u.so -n 2 a"));
        assert!(!hands_on("mpiexec -n 1 a : -envnone -n 1 a"));
        assert!(!hands_on("srun -n 2 a"));
    }

    #[test]
    fn what_env_preloads_stays_in_front_of_the_shim() {
        let preloaded = |text: &str| {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let command = JobCommand::parse(&words).expect("a command that can be read");
            let ours = [("LD_PRELOAD".into(), "/b.so:/libsapwood-mpi-x.so".into())];
            let words = preloading(&words, &command, &ours);
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        let shim = "/libsapwood-mpi-x.so";
        assert_eq!(
            preloaded("mpirun env LD_PRELOAD=/u.so a : -np 1 nice env A=1 LD_PRELOAD= b"),
            format!(
                "mpirun env LD_PRELOAD=/u.so:{shim} a : -np 1 nice env A=1 LD_PRELOAD={shim} b"
            )
        );
        assert_eq!(
            preloaded("env LD_PRELOAD=/u.so mpirun a LD_PRELOAD=1"),
            format!("env LD_PRELOAD=/u.so:{shim} mpirun a LD_PRELOAD=1")
        );
        let own = "mpirun env LD_PRELOAD=/y/libsapwood-mpi-x.so a";
        assert_eq!(preloaded(own), own);
    }

    #[test]
    fn what_divides_the_world_stands_behind_a_shim_that_the_user_preloads() {
        let ours = "/libsapwood-mpi-x.so:/libsapwood-world-x.so";
        let users = "/u.so:/y/libsapwood-mpi-x.so";
        assert_eq!(with_own(users, ours), format!("{users}:/libsapwood-world-x.so"));
        assert_eq!(with_own(ours, ours), ours);
        assert_eq!(with_own("/u.so", ours), format!("/u.so:{ours}"));
    }

    #[test]
    fn an_env_that_keeps_the_shim_away_is_found() {
        let hiding = |text: &str, abi| {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let command = JobCommand::parse(&words).expect("a command that can be read");
            hides_shim(&words, &command, abi)
        };
        let abi = Some(Abi::OpenMpi);
        assert_eq!(hiding("mpirun -np 2 env -i A=1 a", abi), Some("env -i"));
        let second = "mpirun a : -np 1 env -u LD_PRELOAD b";
        assert_eq!(hiding(second, abi), Some("env -u LD_PRELOAD"));
        assert_eq!(hiding("env -i mpirun -np 2 a", None), Some("env -i"));
        assert_eq!(hiding("env -i srun -n 2 a", abi), Some("env -i"));
        assert_eq!(hiding("env -i ./a", None), Some("env -i"));
        assert_eq!(hiding("env -i mpirun -np 2 a", abi), None);
        assert_eq!(hiding("mpirun -np 2 env LD_PRELOAD=/u.so a -i", abi), None);
    }

    #[test]
    fn open_mpi_exports_to_the_ranks_of_every_part() {
        assert_eq!(
            told("mpirun -np 2 a -x 1 : -np 1 b", Abi::OpenMpi, None),
            "mpirun -np 2 -x LD_PRELOAD=/libsapwood-mpi.so -x S=1 a -x 1 : -np 1 -x LD_PRELOAD=/libsapwood-mpi.so -x S=1 b"
        );
        assert_eq!(
            told("mpirun -x LD_PRELOAD=/u.so -np 2 a", Abi::OpenMpi, None),
            "mpirun -x LD_PRELOAD=/u.so:/libsapwood-mpi.so -np 2 -x S=1 a"
        );
        assert_eq!(
            told("mpirun -x LD_PRELOAD a", Abi::OpenMpi, None),
            "mpirun -x LD_PRELOAD=/libsapwood-mpi.so -x S=1 a"
        );
    }

    #[test]
    fn what_the_launcher_preloads_itself_goes_to_the_ranks_unless_an_option_says_otherwise() {
        let ours = "LD_PRELOAD=/u.so:/libsapwood-mpi.so -x S=1";
        assert_eq!(
            told("env LD_PRELOAD=/u.so mpirun -x LD_PRELOAD a", Abi::OpenMpi, None),
            format!("env LD_PRELOAD=/u.so mpirun -x {ours} a")
        );
        assert_eq!(
            told("env LD_PRELOAD=/u.so mpirun -x A=1 a", Abi::OpenMpi, None),
            format!("env LD_PRELOAD=/u.so mpirun -x A=1 -x {ours} a")
        );
        assert_eq!(
            told("env LD_PRELOAD=/u.so mpirun -x LD_PRELOAD=/v.so a", Abi::OpenMpi, None),
            "env LD_PRELOAD=/u.so mpirun -x LD_PRELOAD=/v.so:/libsapwood-mpi.so -x S=1 a"
        );
        // The last one before the launcher decides.
        assert_eq!(
            told("env LD_PRELOAD=/u.so env -u LD_PRELOAD mpirun a", Abi::OpenMpi, None),
            "env LD_PRELOAD=/u.so env -u LD_PRELOAD mpirun -x LD_PRELOAD=/libsapwood-mpi.so -x S=1 a"
        );
        // An `env` before the program is behind the launcher.
        assert_eq!(
            told("mpirun -x LD_PRELOAD env LD_PRELOAD=/u.so a", Abi::OpenMpi, None),
            "mpirun -x LD_PRELOAD=/libsapwood-mpi.so -x S=1 env LD_PRELOAD=/u.so a"
        );
        assert_eq!(
            told("env LD_PRELOAD=/u.so mpiexec -genv A 1 -n 2 a", Abi::Mpich, None),
            "env LD_PRELOAD=/u.so mpiexec -genv LD_PRELOAD /u.so:/libsapwood-mpi.so -genv S 1 -genv A 1 -n 2 a"
        );
    }

    #[test]
    fn what_an_option_keeps_from_the_ranks_is_not_preloaded_there_and_the_option_is_named() {
        let kept = |text: &str| {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let command = JobCommand::parse(&words).expect("a command that can be read");
            withholds_preload(&words, &command, Some(Abi::Mpich)).unwrap_or_default()
        };
        assert_eq!(kept("env LD_PRELOAD=/u.so srun --export=NONE a"), "--export=NONE");
        assert_eq!(kept("env LD_PRELOAD=/u.so srun --export=A=1,B a"), "--export=A=1,B");
        assert_eq!(kept("env LD_PRELOAD=/u.so mpiexec -envnone -n 2 a"), "-envnone");
        assert_eq!(kept("env LD_PRELOAD=/u.so mpiexec -genvlist A -n 1 a : b"), "-genvlist A");
        for text in [
            "srun --export=NONE a",
            "env LD_PRELOAD= srun --export=NONE a",
            "env LD_PRELOAD=/u.so srun a",
            "env LD_PRELOAD=/u.so srun --export=ALL,A=1 a",
            "env LD_PRELOAD=/u.so srun --export=LD_PRELOAD a",
            "srun --export=NONE env LD_PRELOAD=/u.so a",
            "env LD_PRELOAD=/u.so mpiexec -n 1 a : -envnone -n 1 b",
            "env LD_PRELOAD=/u.so mpiexec -genvnone -envall -n 1 a",
            "env LD_PRELOAD=/u.so mpiexec -envlist A,LD_PRELOAD -n 1 a",
            "env LD_PRELOAD=/u.so mpiexec -genvnone -genv LD_PRELOAD /v.so -n 1 a",
        ] {
            assert_eq!(kept(text), "", "{text}");
        }
        assert_eq!(
            told("env LD_PRELOAD=/u.so srun --export=NONE a", Abi::OpenMpi, None),
            "env LD_PRELOAD=/u.so srun --export=LD_PRELOAD=/libsapwood-mpi.so,S=1 a"
        );
        assert_eq!(
            told("env LD_PRELOAD=/u.so mpiexec -genvnone -n 2 a", Abi::Mpich, None),
            "env LD_PRELOAD=/u.so mpiexec -genv LD_PRELOAD /libsapwood-mpi.so -genv S 1 -genvnone -n 2 a"
        );
    }

    #[test]
    fn hydra_sets_variables_for_all_parts_at_once() {
        assert_eq!(
            told("mpiexec.hydra -n 2 a : -n 1 b", Abi::Mpich, None),
            "mpiexec.hydra -genv LD_PRELOAD /libsapwood-mpi.so -genv S 1 -n 2 a : -n 1 b"
        );
        assert_eq!(
            told("mpiexec -genv LD_PRELOAD /u.so -n 2 a", Abi::Mpich, None),
            "mpiexec -genv S 1 -genv LD_PRELOAD /u.so:/libsapwood-mpi.so -n 2 a"
        );
        assert_eq!(
            told("mpiexec -n 2 -env LD_PRELOAD /u.so a", Abi::Mpich, None),
            "mpiexec -genv LD_PRELOAD /libsapwood-mpi.so -genv S 1 -n 2 -env LD_PRELOAD /u.so:/libsapwood-mpi.so a"
        );
    }

    #[test]
    fn srun_is_told_what_it_would_not_hand_on() {
        assert_eq!(told("srun -N2 a", Abi::OpenMpi, None), "srun -N2 a");
        assert_eq!(
            told("srun --export=ALL,LD_PRELOAD=/u.so,A=1 -N2 a", Abi::Mpich, None),
            "srun --export=ALL,A=1,LD_PRELOAD=/u.so:/libsapwood-mpi.so,S=1 -N2 a"
        );
        assert_eq!(
            told("srun --export NONE a", Abi::Mpich, None),
            "srun --export=LD_PRELOAD=/libsapwood-mpi.so,S=1 a"
        );
        assert_eq!(
            told("srun --comment=mine -N2 a", Abi::OpenMpi, Some("tag")),
            "srun --comment=mine -N2 --comment=mine tag a"
        );
    }
}
