//! The command that starts an MPI program: what starts it, on how many ranks, and which program.
//!
//! Owns the reading of a command line into its parts between `:`, of which options with their
//! arguments and the programs are distinguished here, by the lists of `launcher`. It looks at no
//! file: whether the program exists and what it is linked to is `linkage`'s concern.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::launcher::{DIRECTORY_OPTIONS, Launcher, LauncherOption, RANK_OPTIONS, options};
use super::wrappers::wrapper_words;

/// A command, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobCommand {
    /// The launcher as it was written; none when the program is started without one.
    pub(crate) launcher: Option<PathBuf>,
    /// Which kind that is.
    pub(crate) kind: Option<Launcher>,
    /// On how many ranks the program runs, if the command says so for all of its parts.
    pub(crate) ranks: Option<u32>,
    /// The parts between `:`.
    pub(crate) parts: Vec<Part>,
    /// The programs, one for each part that names one, in the order of their ranks.
    pub(crate) programs: Vec<JobProgram>,
    /// An option that is not known here and so was taken for one without an argument.
    pub(crate) unknown_option: Option<String>,
}

/// One part of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The place of its first word in the command.
    pub(crate) at: usize,
    /// How many words its options have.
    pub(crate) option_words: usize,
    /// Its options.
    pub(crate) options: Vec<LauncherOption>,
}

/// A program as it was written, and where it is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobProgram {
    /// Its name or path.
    pub(crate) program: PathBuf,
    /// The folder that the launcher enters first.
    pub(crate) directory: Option<PathBuf>,
}

/// Commands that make an allocation, inside of which this one belongs.
const ALLOCATORS: [&str; 5] = ["salloc", "sbatch", "qsub", "bsub", "flux"];

impl JobCommand {
    /// Takes a command apart.
    ///
    /// # Errors
    /// One line when a number of ranks is no number, or an option lacks its argument.
    pub(crate) fn parse(words: &[OsString]) -> Result<Self, String> {
        if words.is_empty() {
            return Err("a command is missing after '--', as in '-- mpirun -np 8 ./solver'".into());
        }
        let before = wrapper_words(words);
        let first = &words[before];
        let Some((kind, named)) = Launcher::of(&words[before..]) else {
            check_no_allocator(first)?;
            let program = JobProgram { program: program_word(words).into(), directory: None };
            let programs = vec![program];
            return Ok(Self { ranks: Some(1), programs, ..Self::default() });
        };
        let mut command =
            Self { launcher: Some(first.into()), kind: Some(kind), ..Self::default() };
        if kind == Launcher::Torchrun {
            command.torchrun(before + named, &words[before + named..])?;
            return Ok(command);
        }
        let mut total = Some(0_u32);
        let mut at = before + named;
        for part in words[before + named..].split(|word| word == ":") {
            let ranks = command.part(kind, at, part)?;
            total = total.zip(ranks).and_then(|(total, ranks)| total.checked_add(ranks));
            at += part.len() + 1;
        }
        command.ranks = total.filter(|&ranks| ranks > 0);
        Ok(command)
    }

    /// Reads what comes behind `torchrun`, whose command has one part: the program is the script,
    /// also where `sapwood.torch` runs it.
    fn torchrun(&mut self, at: usize, words: &[OsString]) -> Result<(), String> {
        let (options, option_words) = options(Launcher::Torchrun, words)?;
        let count = |name: &str, unsaid: u32| {
            let told = options.iter().rfind(|option| option.name == name);
            told.map_or(Some(unsaid), |option| option.value().parse::<u32>().ok())
        };
        // Of several hosts each has a `torchrun` of its own; `auto` and `gpu` are no numbers.
        let is_alone = count("nnodes", 1) == Some(1);
        self.ranks = count("nproc-per-node", 1).filter(|&ranks| is_alone && ranks > 0);
        let mut rest = words[option_words..].iter().skip_while(|word| *word == "sapwood.torch");
        if let Some(program) = rest.next() {
            self.programs.push(JobProgram { program: program.into(), directory: None });
        }
        self.parts.push(Part { at, option_words, options });
        Ok(())
    }

    /// Reads one part of the command; gives its number of ranks.
    fn part(
        &mut self,
        kind: Launcher,
        at: usize,
        words: &[OsString],
    ) -> Result<Option<u32>, String> {
        let (options, option_words) = options(kind, words)?;
        let mut ranks = None;
        let mut directory = None;
        for option in &options {
            // What asks for processors of a task there is the number of ranks elsewhere.
            let is_other = kind == Launcher::Srun && option.name == "c";
            if option.is(RANK_OPTIONS) && !is_other {
                ranks = Some(rank_count(&option.name, option.value())?);
            } else if option.is(DIRECTORY_OPTIONS) {
                directory = Some(PathBuf::from(option.value()));
            }
            if option.is_unknown {
                self.unknown_option = Some(option.name.clone());
            }
        }
        if let Some(words) = words.get(option_words..).filter(|words| !words.is_empty()) {
            self.programs.push(JobProgram { program: program_word(words).into(), directory });
        }
        self.parts.push(Part { at, option_words, options });
        Ok(ranks)
    }

    /// All options with one of these names.
    pub(crate) fn options(&self, names: &str) -> impl Iterator<Item = &LauncherOption> {
        self.parts.iter().flat_map(|part| &part.options).filter(move |option| option.is(names))
    }
}

/// What makes an allocation runs elsewhere, or later: what it starts is watched there.
fn check_no_allocator(first: &OsStr) -> Result<(), String> {
    let name = Path::new(first).file_name().and_then(OsStr::to_str).unwrap_or("");
    if !ALLOCATORS.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "'{name}' makes an allocation and starts no ranks; put 'sapwood mpi' before the launcher \
         inside of it, as in: {name} ... sapwood mpi mpirun ./solver"
    ))
}

fn rank_count(name: &str, text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(ranks) if ranks > 0 => Ok(ranks),
        _ => Err(format!("'-{name} {text}' names no number of ranks")),
    }
}

/// The program in words that begin with it, or with wrappers before it.
fn program_word(words: &[OsString]) -> &OsStr {
    &words[wrapper_words(words)]
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
    fn wrappers_before_the_launcher_are_passed_over() {
        let command = parse("env A=1 nice -n 5 mpirun -np 8 ./a").expect("a command");
        assert_eq!(command.launcher.as_deref(), Some(Path::new("mpirun")));
        assert_eq!((command.ranks, command.parts[0].at), (Some(8), 6));
        assert_eq!(told("timeout 60 ./a").1, ["./a"]);
        assert_eq!(told("mpirun -n 2 numactl -N 0 ./a").1, ["./a"]);
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
    fn the_script_and_the_ranks_of_torchrun_are_found() {
        let of = |text: &str| {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let command = JobCommand::parse(&words).expect("a command that can be read");
            let program = command.programs.first().map(|one| one.program.display().to_string());
            (command.ranks, program.unwrap_or_default())
        };
        let traced = "torchrun --nproc_per_node 3 --standalone -m sapwood.torch a.py b:c";
        assert_eq!(of(traced), (Some(3), "a.py".to_owned()));
        let spelt = "python3 -m torch.distributed.run --nproc-per-node=2 a.py";
        assert_eq!(of(spelt), (Some(2), "a.py".to_owned()));
        assert_eq!(of("torchrun --nproc_per_node auto a.py"), (None, "a.py".to_owned()));
        assert_eq!(of("torchrun --nnodes 2 --nproc_per_node 4 a.py"), (None, "a.py".to_owned()));
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
}
