//! `sapwood completions`: a script that has a shell complete commands and options.

use std::process::ExitCode;

use clap::{Command, ValueEnum};
use clap_complete::Shell;
use sapwood_command_line::exit::{Failure, print};

#[derive(clap::Args)]
#[command(after_help = "Where a shell looks for it: \
                        bash ~/.local/share/bash-completion/completions/sapwood, \
                        zsh _sapwood in a folder of $fpath, \
                        fish ~/.config/fish/completions/sapwood.fish. \
                        'make install' puts all three where the system's shells look.")]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Scripted,
}

/// The shells whose scripts are tested.
#[derive(Clone, Copy, ValueEnum)]
enum Scripted {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script for these commands.
///
/// # Errors
/// [`Failure`] where it cannot be written.
pub(crate) fn run(arguments: &Arguments, mut commands: Command) -> Result<ExitCode, Failure> {
    let shell = match arguments.shell {
        Scripted::Bash => Shell::Bash,
        Scripted::Zsh => Shell::Zsh,
        Scripted::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut commands, "sapwood", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
