//! Launchers of MPI programs: which words are one, and which of its options have arguments.
//!
//! Owns the lists of options of Open MPI's `mpirun` (`mpiexec`, `orterun`), of MPICH's Hydra, of
//! Slurm's `srun` and of PyTorch's `torchrun`, and the way through the words of one part of a
//! command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A kind of launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// `mpirun` and `mpiexec`, of Open MPI or of MPICH: their options differ where they mean
    /// different things only.
    Mpirun,
    /// Slurm's.
    Srun,
    /// PRRTE's, for its persistent daemons.
    Prun,
    /// `flux run`.
    Flux,
    /// PyTorch's `torchrun`, or `python -m torch.distributed.run`, of one host.
    Torchrun,
}

impl Launcher {
    /// The launcher that a command begins with, by its file's name, and how many words name it.
    pub(crate) fn of(words: &[OsString]) -> Option<(Self, usize)> {
        let name = Path::new(words.first()?).file_name().and_then(OsStr::to_str).unwrap_or("");
        match name.split('.').next().unwrap_or("") {
            "mpirun" | "mpiexec" | "orterun" | "prterun" => Some((Self::Mpirun, 1)),
            "srun" => Some((Self::Srun, 1)),
            "prun" => Some((Self::Prun, 1)),
            "flux" if words.get(1).is_some_and(|word| word == "run") => Some((Self::Flux, 2)),
            "torchrun" => Some((Self::Torchrun, 1)),
            name if name.starts_with("python") && is_torchrun(&words[1..]) => {
                Some((Self::Torchrun, 3))
            }
            _ => None,
        }
    }

    /// Whether nothing here was tried with it.
    pub(crate) fn is_untested(self) -> bool {
        matches!(self, Self::Prun | Self::Flux)
    }
}

/// Whether these words have Python run the module that `torchrun` is.
fn is_torchrun(words: &[OsString]) -> bool {
    let module =
        |word: &OsString| word == "torch.distributed.run" || word == "torch.distributed.launch";
    words.len() >= 2 && words[0] == "-m" && module(&words[1])
}

/// One option of a launcher, where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LauncherOption {
    /// Its name without hyphens.
    pub(crate) name: String,
    /// Its arguments.
    pub(crate) values: Vec<String>,
    /// The place of its first word.
    pub(crate) at: usize,
    /// How many words it has.
    pub(crate) words: usize,
    /// Whether it is in none of the lists.
    pub(crate) is_unknown: bool,
}

impl LauncherOption {
    /// Whether it is one of these.
    pub(crate) fn is(&self, names: &str) -> bool {
        has(names, &self.name)
    }

    /// Its first argument.
    pub(crate) fn value(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

/// Options whose value is the number of ranks.
pub(crate) const RANK_OPTIONS: &str = "n np c ntasks";
/// Options whose value is the folder to run in.
pub(crate) const DIRECTORY_OPTIONS: &str = "wdir wd D chdir";
/// Options with two arguments.
const PAIR_OPTIONS: &str = "mca gmca omca pmixmca prtemca genv env";
/// Options with one argument, beside those above.
const SINGLE_OPTIONS: &str = "\
    am app bind-to bootstrap bootstrap-exec cartofile cf ckpoint-interval configfile \
    cpu-list cpu-set cpus-per-proc cpus-per-rank debugger default-hostfile demux display \
    envlist errfile errfile-pattern f genvlist gpus-per-proc H hnp host hostfile hosts iface \
    launch-agent launcher launcher-exec localhost machine machinefile map-by max-restarts \
    max-vm-size membind N nameserver npernode npersocket ompi-server order-nodes outfile \
    outfile-pattern output output-filename path personality pmi-port ppn ppr prefix \
    preload-files prepend-pattern rank-by rankfile report-events report-pid report-uri rf \
    rmk rr-by runtime-options show stdin timeout topolib tune umask usize with-ft x xml-file \
    xterm";
/// Options without an argument; any other option is taken for one of these, but remembered.
const PLAIN_OPTIONS: &str = "\
    allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous d debug \
    debug-daemons debug-daemons-file debug-devel disable-auto-cleanup \
    disable-hostname-propagation disable-recovery disable-x display-allocation \
    display-devel-allocation display-devel-map display-diffable-map display-map display-topo \
    do-not-launch do-not-resolve dvm enable-instant-on-support enable-recovery enable-x \
    envall envnone fwd-mpirun-port genvall genvnone get-stack-traces index-argv-by-rank info \
    l leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm \
    output-proctable oversubscribe pernode preload-binary prepend-rank print-all-exitcodes \
    profile q quiet report-bindings report-child-jobs-separately s show-progress \
    skip-launch-node tag-output timestamp-output use-hwthread-cpus v verbose";

/// `srun`'s short options with an argument, which may stand in the same word.
const SRUN_SHORT: &str = "ABbcCdDeGiJLmMnNopqrSTtWwx";
/// `srun`'s short options whose argument, if any, stands in the same word.
const SRUN_SHORT_INLINE: &str = "IK";
/// `srun`'s long options without an argument in a word of its own; all others have one.
const SRUN_PLAIN: &str = "\
    bcast compress contiguous cpu-freq-show disable-status exact exclusive get-user-env hold \
    immediate interactive kill-on-bad-exit label multi-prog no-allocate no-kill no-requeue nice \
    overcommit overlap oversubscribe preserve-env propagate pty quiet quit-on-interrupt reboot \
    requeue resv-ports send-libs spread-job test-only unbuffered use-min-nodes verbose whole";

/// `torchrun`'s options without an argument, with hyphens; all others have one.
const TORCHRUN_PLAIN: &str = "\
    enable-gpu-health-check h help m module no-python run-path standalone use-env";

/// The options at the begin of one part of a command, and how many words they are.
///
/// # Errors
/// One line when an option lacks its argument.
pub(crate) fn options(
    launcher: Launcher,
    words: &[OsString],
) -> Result<(Vec<LauncherOption>, usize), String> {
    let mut options = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        let Some(mut option) = option(launcher, word) else { break };
        let more = option.words - 1;
        if at + more >= words.len() {
            return Err(format!("the launcher's option '{word}' lacks its argument"));
        }
        let values = words[at + 1..=at + more].iter().map(|word| word.to_string_lossy().into());
        option.values.extend(values);
        option.at = at;
        at += option.words;
        options.push(option);
    }
    Ok((options, at))
}

/// What a word says of an option, without arguments in words of their own.
fn option(launcher: Launcher, word: &str) -> Option<LauncherOption> {
    let is_long = word.starts_with("--");
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    if name.is_empty() {
        return None;
    }
    if launcher == Launcher::Srun && !is_long {
        return Some(short_option(name));
    }
    let (name, inline) = match name.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (name, None),
    };
    let (count, is_unknown) = match launcher {
        Launcher::Torchrun => (usize::from(!has(TORCHRUN_PLAIN, &name.replace('_', "-"))), false),
        Launcher::Srun => (usize::from(!has(SRUN_PLAIN, name)), false),
        _ if has(PAIR_OPTIONS, name) => (2, false),
        _ if [RANK_OPTIONS, DIRECTORY_OPTIONS, SINGLE_OPTIONS].iter().any(|it| has(it, name)) => {
            (1, false)
        }
        _ => (0, !has(PLAIN_OPTIONS, name)),
    };
    let words = if inline.is_some() { 1 } else { 1 + count };
    let values = inline.into_iter().collect();
    // PyTorch takes both spellings of its options.
    let name =
        if launcher == Launcher::Torchrun { name.replace('_', "-") } else { name.to_owned() };
    Some(LauncherOption { name, values, at: 0, words, is_unknown })
}

/// An option of `srun` as `-N4`, `-N 4` or `-l`. Several letters without arguments may stand in one
/// word, of which the last one decides.
fn short_option(letters: &str) -> LauncherOption {
    let takes = |letter: char| SRUN_SHORT.contains(letter);
    let stop = |letter: char| takes(letter) || SRUN_SHORT_INLINE.contains(letter);
    let place = letters.find(stop).unwrap_or(letters.len() - 1);
    let letter = letters[place..].chars().next().unwrap_or('-');
    let rest = letters[place..].trim_start_matches(letter).trim_start_matches('=');
    let has_value = stop(letter) && !rest.is_empty();
    let words = if takes(letter) && !has_value { 2 } else { 1 };
    let values = if has_value { vec![rest.to_owned()] } else { Vec::new() };
    LauncherOption { name: letter.to_string(), values, at: 0, words, is_unknown: false }
}

/// Whether an option stands in a list.
fn has(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|option| option == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(launcher: Launcher, text: &str) -> Vec<(String, Vec<String>)> {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        let (options, _) = options(launcher, &words).expect("options that can be read");
        options.into_iter().map(|option| (option.name, option.values)).collect()
    }

    fn named(expected: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
        expected.iter().map(|&(name, values)| (name.to_owned(), owned(values))).collect()
    }

    #[test]
    fn the_options_of_srun_are_read_in_all_their_forms() {
        let text =
            "--mpi=pmix -N4 -n 8 --ntasks-per-node 2 -lu -K0 --overlap --export=ALL,A=b a -N 2";
        let expected: [(&str, &[&str]); 8] = [
            ("mpi", &["pmix"]),
            ("N", &["4"]),
            ("n", &["8"]),
            ("ntasks-per-node", &["2"]),
            ("u", &[]),
            ("K", &["0"]),
            ("overlap", &[]),
            ("export", &["ALL,A=b"]),
        ];
        assert_eq!(read(Launcher::Srun, text), named(&expected));
    }

    #[test]
    fn the_options_of_mpirun_have_their_arguments() {
        let text = "-H a:2,b -np 4 --mca btl self,tcp -x A=b --oversubscribe ./a -np 9";
        let expected: [(&str, &[&str]); 5] = [
            ("H", &["a:2,b"]),
            ("np", &["4"]),
            ("mca", &["btl", "self,tcp"]),
            ("x", &["A=b"]),
            ("oversubscribe", &[]),
        ];
        assert_eq!(read(Launcher::Mpirun, text), named(&expected));
    }

    #[test]
    fn launchers_are_known_by_their_files_names() {
        let of = |text: &str| {
            Launcher::of(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        assert_eq!(of("/usr/bin/mpiexec.hydra a"), Some((Launcher::Mpirun, 1)));
        assert_eq!(of("srun -n 2 a"), Some((Launcher::Srun, 1)));
        assert_eq!(of("flux run -n 2 a"), Some((Launcher::Flux, 2)));
        assert_eq!(of("/usr/bin/torchrun a.py"), Some((Launcher::Torchrun, 1)));
        assert_eq!(of("python3 -m torch.distributed.run a.py"), Some((Launcher::Torchrun, 3)));
        assert_eq!(of("python3 -m sapwood.torch a.py"), None);
        assert_eq!(of("flux batch a"), None);
        assert_eq!(of("./a"), None);
    }

    #[test]
    fn no_option_is_listed_twice() {
        let lists = [RANK_OPTIONS, DIRECTORY_OPTIONS, PAIR_OPTIONS, SINGLE_OPTIONS, PLAIN_OPTIONS];
        let mut all: Vec<&str> = lists.iter().flat_map(|list| list.split_whitespace()).collect();
        let listed = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), listed);
    }
}
