//! Reaching hosts by the user's ssh client, or by what the user has in its place.
//!
//! The client is called in batch mode: it never asks for input, since there is no terminal to
//! answer on. All else is the user's own configuration, keys and agent.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::{LaunchError, Launcher, Order, quoted};

/// The variable that names the client and its own arguments, between blanks, in the place of `ssh`.
pub const REMOTE_SHELL_VARIABLE: &str = "SAPWOOD_RSH";

/// What an ssh client says when a server that is up has turned it away for the moment: it has too
/// many unfinished log-ins (`MaxStartups`), or is being started.
const PASSING_TROUBLES: [&str; 3] =
    ["kex_exchange_identification", "Connection closed by remote host", "Connection reset by peer"];

/// Reaches hosts by a remote shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssh {
    words: Vec<String>,
    prefix: Vec<String>,
    connect_timeout: Duration,
}

impl Ssh {
    /// By a client and its own arguments; one that is called `ssh` is given options for batch mode,
    /// and gives up a host that does not answer in time. Any other is called as
    /// `CLIENT ARGUMENTS HOST COMMAND`.
    pub fn new(words: Vec<String>, connect_timeout: Duration) -> Self {
        let words = if words.is_empty() { vec!["ssh".to_owned()] } else { words };
        Self { words, prefix: Vec::new(), connect_timeout }
    }

    /// Has hosts run everything by this command, such as `nice -n 10`, which is given the program
    /// to run and its arguments behind its own words.
    #[must_use]
    pub fn run_by(self, prefix: Vec<String>) -> Self {
        Self { prefix, ..self }
    }

    /// What the shell on the other host is given.
    fn prefixed(&self, command: &str) -> String {
        if self.prefix.is_empty() {
            return command.to_owned();
        }
        let prefix: Vec<String> = self.prefix.iter().map(|word| quoted(word)).collect();
        // `exec` is the shell's own and no program.
        let program = command.strip_prefix("exec ").unwrap_or(command);
        format!("exec {} {program}", prefix.join(" "))
    }

    fn is_open_ssh(&self) -> bool {
        Path::new(&self.words[0]).file_name().is_some_and(|name| name == "ssh")
    }

    /// The options for batch mode. The first that is given for a key counts, so that these go
    /// before the configuration, and behind what the user has named with the client.
    fn options(&self) -> Vec<String> {
        let seconds = self.connect_timeout.as_secs().max(1);
        let timeout = format!("ConnectTimeout={seconds}");
        let settings =
            ["BatchMode=yes", timeout.as_str(), "ControlMaster=no", "ClearAllForwardings=yes"];
        let mut options = vec!["-T".to_owned(), "-x".to_owned(), "-a".to_owned()];
        for setting in settings {
            options.push("-o".to_owned());
            options.push(setting.to_owned());
        }
        options
    }
}

impl Launcher for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    /// Names are the client's matter: its configuration may have names that no resolver knows.
    fn check_host(&self, host: &str) -> Result<(), LaunchError> {
        match host.starts_with('-') || host.is_empty() {
            true => Err(LaunchError::ApiMisuse { rule: "a host has a name, without '-' in front" }),
            false => Ok(()),
        }
    }

    fn client(&self, host: &str, command: &str) -> Order<'static> {
        let mut order = Order::new(&self.words[0]);
        let own = self.words[1..].iter().map(OsString::from);
        order.arguments = own.collect();
        if self.is_open_ssh() {
            order.arguments.extend(self.options().into_iter().map(OsString::from));
            order.arguments.push("--".into());
        }
        order.arguments.push(host.into());
        order.arguments.push(self.prefixed(command).into());
        order
    }

    fn is_worth_retrying(&self, words: &str) -> bool {
        PASSING_TROUBLES.iter().any(|trouble| words.contains(trouble))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> String {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let order = Ssh::new(words, Duration::from_millis(2500)).client("node7", "exec true");
        let arguments = order.arguments.iter().map(|word| word.to_str().unwrap());
        std::iter::once(order.program.to_str().unwrap())
            .chain(arguments)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn ssh_is_called_in_batch_mode_and_other_clients_as_they_are() {
        assert_eq!(
            line(&[]),
            "ssh -T -x -a -o BatchMode=yes -o ConnectTimeout=2 -o ControlMaster=no \
             -o ClearAllForwardings=yes -- node7 exec true"
        );
        assert!(line(&["/opt/bin/ssh", "-p", "2222"]).starts_with("/opt/bin/ssh -p 2222 -T "));
        assert_eq!(line(&["rsh", "-n"]), "rsh -n node7 exec true");
    }

    #[test]
    fn a_host_runs_everything_by_the_command_that_is_named_for_it() {
        let words = ["nice", "-n", "10 or so"].map(str::to_owned).to_vec();
        let ssh = Ssh::new(Vec::new(), Duration::from_secs(1)).run_by(words);
        let order = ssh.client("node7", "exec sh -c 'true'");
        let command = order.arguments.last().and_then(|word| word.to_str());
        assert_eq!(command, Some("exec nice -n '10 or so' sh -c 'true'"));
    }

    #[test]
    fn only_passing_troubles_are_tried_again() {
        let ssh = Ssh::new(Vec::new(), Duration::from_secs(1));
        assert!(ssh.is_worth_retrying("kex_exchange_identification: read: Connection reset"));
        for words in
            ["Connection timed out during banner exchange", "Host key verification failed.", ""]
        {
            assert!(!ssh.is_worth_retrying(words), "{words}");
        }
    }
}
