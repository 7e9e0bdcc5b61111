//! Why a process could not be started.
//!
//! What happens to a process after its start is no error of this crate; see
//! [`Exit`](crate::Exit).

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why something could not be started. Each text is one line: what, where, what to do.
#[non_exhaustive]
#[derive(Debug)]
pub enum LaunchError {
    /// No file of that name exists, or no folder of `PATH` has it. Cure: install it or give its
    /// full path.
    MissingProgram {
        /// The program as it was ordered.
        program: PathBuf,
        /// Whether the folders of `PATH` were searched.
        searched_path: bool,
    },
    /// The file is there but may not be executed. Cure: `chmod +x`, or name the right file.
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The folder to run in is not there or may not be entered. Cure: create it or name another.
    Directory {
        /// The program to be run.
        program: PathBuf,
        /// The folder.
        directory: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The system refused to start the program, which was found. Cause and cure: as its text
    /// says, most often a limit on processes, memory or open files.
    Refused {
        /// The program.
        program: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The order cannot be carried out. Cause: a mistake of the caller.
    ApiMisuse {
        /// The rule that was broken.
        rule: &'static str,
    },
    /// A host name has no address. Cure: check its spelling and this machine's resolver.
    UnresolvableHost {
        /// The host.
        host: String,
        /// What the resolver said.
        cause: io::Error,
    },
    /// The host is another machine, which this launcher does not reach. Cure: name this machine,
    /// or let the process attach by itself.
    HostOutOfReach {
        /// The host.
        host: String,
    },
    /// The variable by which a manager numbers its processes holds no number. Cure: set
    /// `SAPWOOD_RANK`.
    ManagerRank {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// The process that started this one has ended already. Cure: none; end as well.
    StarterGone,
    /// The variable that names the starter is damaged. Cause: it was set by another program. Cure:
    /// unset it.
    InvalidStarter {
        /// What it holds.
        text: String,
    },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingProgram { program, searched_path: true } => write!(
                f,
                "program '{}' is in no folder of PATH: install it or give its full path",
                program.display()
            ),
            Self::MissingProgram { program, searched_path: false } => write!(
                f,
                "program '{}' does not exist: check its path, or give a bare name to search PATH",
                program.display()
            ),
            Self::NotExecutable { program, problem } => {
                write!(f, "program '{}' cannot be run: {problem}", program.display())
            }
            Self::Directory { program, directory, cause } => write!(
                f,
                "cannot run '{}' in folder '{}': {cause}; create the folder or name another",
                program.display(),
                directory.display()
            ),
            Self::Refused { program, cause } => write!(
                f,
                "cannot start '{}': {cause}; {}",
                program.display(),
                cure(cause.raw_os_error())
            ),
            Self::ApiMisuse { rule } => write!(f, "this cannot be started: {rule}"),
            Self::UnresolvableHost { host, cause } => write!(
                f,
                "host '{host}' cannot be resolved: {cause}; check its spelling and the resolver"
            ),
            Self::HostOutOfReach { host } => write!(
                f,
                "host '{host}' is another machine: this launcher starts processes on this machine \
                 only; choose the launcher ssh or slurm, \
                 name this machine, or let its back-ends attach by themselves"
            ),
            Self::ManagerRank { variable, value } => {
                write!(f, "variable {variable} holds '{value}', which is no rank: set SAPWOOD_RANK")
            }
            Self::StarterGone => {
                f.write_str("the process that started this one has ended: ending as well")
            }
            Self::InvalidStarter { text } => write!(
                f,
                "variable {} holds '{text}', which is no process number: unset it",
                crate::STARTER_VARIABLE
            ),
        }
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Directory { cause, .. }
            | Self::Refused { cause, .. }
            | Self::UnresolvableHost { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// What to do about the reasons for which a system refuses to start a program that is there.
fn cure(raw: Option<i32>) -> &'static str {
    use rustix::io::Errno;
    match raw.map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN) => "raise the limit on processes (ulimit -u) or start fewer",
        Some(Errno::NOMEM) => "free memory or start fewer",
        Some(Errno::MFILE) => "raise the limit on open files (ulimit -n)",
        Some(Errno::NFILE) => "the whole machine has too many files open",
        Some(Errno::NOEXEC) => {
            "it is no program of this machine: check its architecture, or its first line if a \
             script"
        }
        Some(Errno::NOENT) => "the interpreter or loader that its first bytes name is missing",
        Some(Errno::TOOBIG) => "its arguments and environment are too long",
        Some(Errno::TXTBSY) => "it is being written: wait until it is complete",
        Some(Errno::ACCESS | Errno::PERM) => {
            "check the rights of its folders and whether its file system allows programs"
        }
        Some(Errno::CHILD) => "other code of this process reaps children that are not its own",
        _ => "see the system's message",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_one_line_that_says_what_to_do() {
        let cause = || io::Error::from(rustix::io::Errno::AGAIN);
        let program = || PathBuf::from("/opt/tool/back-end");
        let errors = [
            LaunchError::MissingProgram { program: program(), searched_path: true },
            LaunchError::MissingProgram { program: program(), searched_path: false },
            LaunchError::NotExecutable { program: program(), problem: "it is a folder" },
            LaunchError::Directory { program: program(), directory: "/x".into(), cause: cause() },
            LaunchError::Refused { program: program(), cause: cause() },
            LaunchError::UnresolvableHost { host: "node9".into(), cause: cause() },
            LaunchError::HostOutOfReach { host: "node9".into() },
        ];
        for error in &errors {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert!(text.contains("/opt/tool/back-end") || text.contains("node9"), "{text}");
        }
        assert!(errors[4].to_string().contains("ulimit -u"));
    }
}
