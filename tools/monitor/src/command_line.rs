//! The command that starts an MPI program: who starts it, on how many ranks, and which program.
//!
//! Owns the reading of the command lines of Open MPI's `mpirun` (`mpiexec`, `orterun`) and of
//! MPICH's Hydra, of which both options with their arguments and the programs are told apart here.
//! It looks at no file: whether the program exists and what it is linked to is `linkage`'s concern.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A command, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobCommand {
    /// The launcher as it was written; none when the program is started without one.
    pub(crate) launcher: Option<PathBuf>,
    /// On how many ranks the program runs, if the command says so for all of its parts.
    pub(crate) ranks: Option<u32>,
    /// The programs, one for each part between `:`, in the order of their ranks.
    pub(crate) programs: Vec<JobProgram>,
    /// An option that is not known here and so was taken for one without an argument.
    pub(crate) unknown_option: Option<String>,
}

/// A program as it was written, and where it is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobProgram {
    /// Its name or path.
    pub(crate) program: PathBuf,
    /// The folder that the launcher enters first.
    pub(crate) directory: Option<PathBuf>,
}

/// Options whose value is the number of ranks.
const RANK_OPTIONS: &str = "n np c";
/// Options whose value is the folder to run in.
const DIRECTORY_OPTIONS: &str = "wdir wd";
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

impl JobCommand {
    /// Takes a command apart.
    ///
    /// # Errors
    /// One line when a number of ranks is no number, or an option lacks its argument.
    pub(crate) fn parse(words: &[OsString]) -> Result<Self, String> {
        let Some(first) = words.first() else {
            return Err("a command is missing after '--', as in '-- mpirun -np 8 ./solver'".into());
        };
        if !is_launcher(first) {
            let program = JobProgram { program: program_word(words).into(), directory: None };
            let programs = vec![program];
            return Ok(Self { ranks: Some(1), programs, ..Self::default() });
        }
        let mut command = Self { launcher: Some(first.into()), ..Self::default() };
        let mut total = Some(0_u32);
        for part in words[1..].split(|word| word == ":") {
            let ranks = command.part(part)?;
            total = total.zip(ranks).and_then(|(total, ranks)| total.checked_add(ranks));
        }
        command.ranks = total.filter(|&ranks| ranks > 0);
        Ok(command)
    }

    /// Reads one part of the command; gives its number of ranks.
    fn part(&mut self, words: &[OsString]) -> Result<Option<u32>, String> {
        let mut ranks = None;
        let mut directory = None;
        let mut at = 0;
        while let Some(option) = words.get(at).and_then(|word| option_name(word)) {
            let (name, inline) = option;
            let arguments = match inline {
                Some(_) => 0,
                None => self.argument_count(name),
            };
            let value = inline.map(OsString::from).or_else(|| words.get(at + 1).cloned());
            if at + arguments >= words.len() {
                return Err(format!("the launcher's option '-{name}' lacks its argument"));
            }
            if has(RANK_OPTIONS, name) {
                ranks = Some(rank_count(name, value.as_deref())?);
            } else if has(DIRECTORY_OPTIONS, name) {
                directory = value.map(PathBuf::from);
            }
            at += 1 + arguments;
        }
        if at < words.len() {
            let program = program_word(&words[at..]).into();
            self.programs.push(JobProgram { program, directory });
        }
        Ok(ranks)
    }

    fn argument_count(&mut self, name: &str) -> usize {
        if has(PAIR_OPTIONS, name) {
            return 2;
        }
        if [RANK_OPTIONS, DIRECTORY_OPTIONS, SINGLE_OPTIONS].iter().any(|list| has(list, name)) {
            return 1;
        }
        if !has(PLAIN_OPTIONS, name) {
            self.unknown_option = Some(name.to_string());
        }
        0
    }
}

/// Whether an option stands in a list.
fn has(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|option| option == name)
}

/// Whether a word is a launcher by its file's name.
fn is_launcher(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or("");
    let stem = name.split('.').next().unwrap_or("");
    matches!(stem, "mpirun" | "mpiexec" | "orterun" | "prterun")
}

/// The name of an option, with the value that is written into the same word.
fn option_name(word: &OsStr) -> Option<(&str, Option<&str>)> {
    let text = word.to_str()?;
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    let (name, value) = name.split_once('=').map_or((name, None), |(n, value)| (n, Some(value)));
    (!name.is_empty()).then_some((name, value))
}

fn rank_count(name: &str, value: Option<&OsStr>) -> Result<u32, String> {
    let text = value.map(OsStr::to_string_lossy).unwrap_or_default();
    match text.parse() {
        Ok(ranks) if ranks > 0 => Ok(ranks),
        _ => Err(format!("'-{name} {text}' names no number of ranks")),
    }
}

/// The program in words that begin with it, or with `env` and assignments before it.
fn program_word(words: &[OsString]) -> &OsStr {
    let is_env = |word: &OsStr| Path::new(word).file_name() == Some(OsStr::new("env"));
    if !is_env(&words[0]) {
        return &words[0];
    }
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        at += match word {
            "-u" | "--unset" | "-C" | "--chdir" => 2,
            _ if word.starts_with('-') || word.contains('=') => 1,
            _ => break,
        };
    }
    words.get(at).unwrap_or(&words[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JobCommand, String> {
        JobCommand::parse(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn told(text: &str) -> (Option<u32>, Vec<String>) {
        let command = parse(text).expect("a command that can be read");
        let name = |program: &JobProgram| program.program.display().to_string();
        (command.ranks, command.programs.iter().map(name).collect())
    }

    #[test]
    fn the_number_of_ranks_and_the_program_are_found_behind_the_options() {
        let one = |ranks, program: &str| (ranks, vec![program.to_string()]);
        assert_eq!(told("mpirun -np 8 lmp -in in.melt"), one(Some(8), "lmp"));
        assert_eq!(
            told("/usr/bin/mpiexec --oversubscribe --mca btl self -x A=b -n 4 ./a -np 9"),
            one(Some(4), "./a")
        );
        assert_eq!(told("orterun --bind-to none -c 2 b"), one(Some(2), "b"));
        assert_eq!(
            told("mpiexec.hydra -genv A 1 -ppn 2 -f hosts --np=3 NPmpich2 -h"),
            one(Some(3), "NPmpich2")
        );
        assert_eq!(told("mpirun ./a"), one(None, "./a"));
        assert_eq!(told("./a 3 4"), one(Some(1), "./a"));
    }

    #[test]
    fn the_parts_of_a_command_add_up() {
        let two = vec!["a".to_string(), "b".to_string()];
        assert_eq!(told("mpirun -np 2 a 1 : -np 3 b"), (Some(5), two.clone()));
        assert_eq!(told("mpirun -np 2 a : b"), (None, two));
    }

    #[test]
    fn env_before_the_program_is_passed_over() {
        assert_eq!(told("mpirun -n 2 env A=b -u C ./a D=e").1, ["./a"]);
        assert_eq!(told("/usr/bin/env X=1 ./a").1, ["./a"]);
        assert_eq!(told("mpirun -n 2 env").1, ["env"]);
    }

    #[test]
    fn the_folder_that_the_launcher_enters_is_known() {
        let command = parse("mpirun -wdir /tmp -np 1 a").expect("a command that can be read");
        assert_eq!(command.programs[0].directory.as_deref(), Some(Path::new("/tmp")));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert!(parse("").unwrap_err().contains("a command is missing"));
        assert_eq!(parse("mpirun -np x a").unwrap_err(), "'-np x' names no number of ranks");
        assert_eq!(parse("mpirun -np 0 a").unwrap_err(), "'-np 0' names no number of ranks");
        assert!(parse("mpirun a : -np").unwrap_err().contains("'-np' lacks its argument"));
        assert_eq!(parse("mpirun -np 2").map(|command| command.programs.len()), Ok(0));
        let unknown = parse("mpirun --new thing -np 2 a").expect("it may be a flag");
        assert_eq!(unknown.unknown_option.as_deref(), Some("new"));
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
