//! How a command reaches hosts: the options that all commands with trees over hosts have in common.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;
use clap::builder::{PathBufValueParser, TypedValueParser as _};
use sapwood::{Attach, Launcher, NetworkBuilder};
use sapwood_launch::Order;

use sapwood_command_line::exit::{Failure, complain};
use sapwood_command_line::query::answer;
use sapwood_command_line::times::patience;

/// How long Slurm may take to say how a job is.
const JOB_STATE_LIMIT: Duration = Duration::from_secs(3);

/// States of a job whose hosts can still be reached, as `squeue` names them.
const LIVE_STATES: [&str; 6] =
    ["RUNNING", "PENDING", "CONFIGURING", "SUSPENDED", "RESIZING", "SIGNALING"];

/// Says on which interfaces processes listen.
const INTERFACES_VARIABLE: &str = "SAPWOOD_INTERFACES";

/// Options about reaching hosts.
#[derive(clap::Args, Clone, Debug)]
pub struct Launching {
    /// Launcher that starts processes on hosts: auto, local, ssh, slurm, or attach, if another
    /// manager starts the processes.
    #[arg(
        long,
        visible_short_alias = 'R',
        value_name = "NAME",
        default_value = "auto",
        env = "SAPWOOD_LAUNCHER"
    )]
    launcher: Launcher,
    /// Use this remote shell, with its arguments, in place of ssh.
    #[arg(long, value_name = "WORDS", env = "SAPWOOD_RSH")]
    remote_shell: Option<String>,
    /// Give ssh, or the remote shell, these options, too: '-o User=root -p 2222'.
    #[arg(short = 'o', long, value_name = "WORDS", allow_hyphen_values = true)]
    shell_options: Option<String>,
    /// Start the tree inside this Slurm job.
    #[arg(short = 'j', long, value_name = "JOB")]
    jobid: Option<String>,
    /// Treat a host as missing if it does not answer within this time, in seconds.
    #[arg(short = 't', long, value_name = "SECONDS", default_value = "10", value_parser = patience)]
    connect_timeout: Duration,
    /// Reach at most this many hosts at the same time from each process of the tree.
    #[arg(long, value_name = "HOSTS", default_value = "32",
          value_parser = clap::value_parser!(u32).range(1..))]
    concurrent: u32,
    /// Listen only on these interfaces: networks, interface names or name prefixes, separated by
    /// commas; a leading ^ excludes them.
    #[arg(long, value_name = "RULE", default_value = "", env = INTERFACES_VARIABLE)]
    interfaces: String,
    #[command(flatten)]
    joining: Joining,
}

/// Options about processes that another manager starts. Paths are whole from the beginning: the
/// daemon of a tree leaves its caller's folder.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)]
#[command(group = ArgGroup::new("joins").args(["join", "join_port"]).multiple(true))]
struct Joining {
    /// Write this join file and wait for processes that another manager starts with
    /// SAPWOOD_JOIN=FILE. Implies the launcher attach.
    #[arg(long, value_name = "FILE",
          value_parser = PathBufValueParser::new().try_map(std::path::absolute::<PathBuf>))]
    join: Option<PathBuf>,
    /// Accept on this port processes that another manager starts, if they cannot read the join
    /// file; needs --join-key.
    #[arg(long, value_name = "PORT", requires = "join_key",
          value_parser = clap::value_parser!(u16).range(1..))]
    join_port: Option<u16>,
    /// File with the key for --join-port: 64 hexadecimal digits, mode 0600.
    #[arg(long, value_name = "FILE", requires = "join_port",
          value_parser = PathBufValueParser::new().try_map(std::path::absolute::<PathBuf>))]
    join_key: Option<PathBuf>,
    /// Time limit for processes that another manager starts to join, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = patience,
          requires = "joins")]
    join_timeout: Duration,
}

impl Launching {
    /// Options that say to which machine a host's name leads, and as which user.
    pub const WAYS: [&str; 6] =
        ["shell_options", "jobid", "join", "join_port", "join_key", "join_timeout"];
    /// Options that matter only while a tree is started.
    pub const STARTS: [&str; 2] = ["connect_timeout", "concurrent"];

    /// The same, as another user on the hosts if one is named.
    ///
    /// # Errors
    /// [`Failure`] where no remote shell is used, which alone changes users, or a job is named to a
    /// launcher that knows none.
    pub fn as_user(&self, user: Option<&str>) -> Result<Self, Failure> {
        let mut launching = self.clone();
        launching.launcher = self.launcher();
        let is_asked = self.joining.is_asked();
        if is_asked != (launching.launcher == Launcher::Attach) {
            return Err(Failure::usage(match is_asked {
                true => "--join and --join-port are for the launcher attach; omit the other one",
                false => "--launcher attach needs --join FILE, or --join-port and --join-key",
            }));
        }
        if let Some(job) = &self.jobid
            && matches!(launching.launcher, Launcher::Local | Launcher::Ssh | Launcher::Attach)
        {
            let text = format!("job {job:?}: only the launcher slurm knows jobs; omit -j");
            return Err(Failure::usage(text));
        }
        if user.is_none() && self.shell_options.is_none() {
            return Ok(launching);
        }
        if !matches!(launching.launcher, Launcher::Automatic | Launcher::Ssh) {
            return Err(Failure::usage(match user {
                Some(user) => {
                    format!("user {user:?}: only the launcher ssh changes the user; omit -l")
                }
                None => "only the launcher ssh has options of a remote shell; omit -o".to_owned(),
            }));
        }
        launching.launcher = Launcher::Ssh;
        let mut shell = self.remote_shell.clone().unwrap_or_else(|| "ssh".to_owned());
        if let Some(options) = &self.shell_options {
            shell = format!("{shell} {options}");
        }
        if let Some(user) = user {
            shell = format!("{shell} -l {user}");
        }
        launching.remote_shell = Some(shell);
        Ok(launching)
    }

    /// What decides which machine a host's name leads to, and as which user, as one line.
    pub fn terms(&self, user: Option<&str>) -> String {
        let variable = |name: &str| std::env::var(name).ok();
        let launcher = self.launcher();
        let is_slurm = matches!(launcher, Launcher::Slurm | Launcher::Automatic);
        let job = self.jobid.clone().or_else(|| variable("SLURM_JOB_ID")).filter(|_| is_slurm);
        let shell = self.remote_shell.as_deref().unwrap_or_default();
        // A tree that is up may be of a command line without such options.
        let options = self.shell_options.as_ref().map(|options| format!(" options {options:?}"));
        let options = options.unwrap_or_default();
        format!(
            "launcher {launcher} shell {shell:?}{options} user {:?} job {:?} join {:?}",
            user.unwrap_or_default(),
            job.unwrap_or_default(),
            self.joining.place().unwrap_or_default()
        )
    }

    /// Whether the command line itself says by which options of the remote shell hosts are reached,
    /// which allocation is meant, or which user connects.
    pub fn is_particular(&self) -> bool {
        self.shell_options.is_some() || self.jobid.is_some() || self.joining.is_asked()
    }

    /// Whether the command line itself says on which interfaces processes listen.
    pub fn names_interfaces(&self) -> bool {
        let around = std::env::var(INTERFACES_VARIABLE).unwrap_or_default();
        !self.interfaces.is_empty() && self.interfaces != around
    }

    /// Which launcher is asked for.
    pub fn launcher(&self) -> Launcher {
        match self.launcher {
            Launcher::Automatic if self.joining.is_asked() => Launcher::Attach,
            launcher => launcher,
        }
    }

    /// Whether processes only know the front-end, so that all of them are its children.
    pub fn knows_front_end_alone(&self) -> bool {
        self.launcher() == Launcher::Attach && self.joining.join.is_none()
    }

    /// By what hosts are reached, where they are: `ssh` or `slurm`.
    pub fn launch_method(&self) -> &'static str {
        let is_inside = || self.jobid.is_some() || std::env::var_os("SLURM_JOB_ID").is_some();
        match self.launcher() {
            Launcher::Slurm => "slurm",
            Launcher::Automatic if is_inside() => "slurm",
            _ => "ssh",
        }
    }

    /// Whether hosts are missing because the allocation that they are in has ended; says so.
    pub fn tell_of_ended_job(&self) -> bool {
        let around = || std::env::var("SLURM_JOB_ID").ok();
        let job = self.jobid.clone().or_else(around).filter(|_| self.launch_method() == "slurm");
        let Some(job) = job else { return false };
        let mut order = Order::new("squeue");
        let words = ["--noheader", "--states=all", "--format=%T", "--jobs", &job];
        order.arguments = words.map(Into::into).into();
        let Ok((_, state)) = answer(order, JOB_STATE_LIMIT) else { return false };
        let state = state.trim();
        let has_ended = !state.is_empty() && !LIVE_STATES.contains(&state);
        if has_ended {
            complain(format_args!(
                "the allocation of job {job} has ended ({state}), and with it all that ran \
                 in it"
            ));
        }
        has_ended
    }

    /// How many hosts one process reaches at the same time.
    pub fn concurrent(&self) -> u32 {
        self.concurrent
    }

    /// Says what another manager is to start, if one is to.
    pub fn announce(&self, builder: &NetworkBuilder) {
        if let Some(command) = builder.attaching_command() {
            let seconds = self.joining.join_timeout.as_secs_f64();
            complain(format_args!("waiting {seconds} s for processes that run: {command}"));
        }
    }

    /// Tells a builder.
    pub fn apply(&self, builder: NetworkBuilder) -> NetworkBuilder {
        let mut builder = builder
            .launcher(self.launcher())
            .connect_timeout(self.connect_timeout)
            .concurrent_starts(self.concurrent)
            .interfaces(&*self.interfaces);
        // A user that names ssh, or options or a user for it, means it for this machine as well.
        if self.launcher() == Launcher::Ssh {
            builder = builder.reach_own_host();
        }
        if let Some(job) = &self.jobid {
            builder = builder.slurm_job(&**job);
        }
        if let Some(words) = &self.remote_shell {
            builder = builder.remote_shell(words.split_whitespace());
        }
        match self.launcher() {
            Launcher::Attach => builder.attach(self.joining.terms()),
            _ => builder,
        }
    }
}

impl Joining {
    fn is_asked(&self) -> bool {
        self.join.is_some() || self.join_port.is_some()
    }

    /// Where an incoming process is told to go. Names of hosts are only labels there, and mean
    /// other machines anywhere else.
    fn place(&self) -> Option<String> {
        let file = self.join.as_ref().map(|path| path.to_string_lossy().into_owned());
        file.or_else(|| self.join_port.map(|port| port.to_string()))
    }

    fn terms(&self) -> Attach {
        let mut terms = Attach::new().timeout(self.join_timeout);
        if let Some(path) = &self.join {
            terms = terms.join_file(path);
        }
        if let Some(port) = self.join_port {
            terms = terms.port(port);
        }
        if let Some(path) = &self.join_key {
            terms = terms.key_file(path);
        }
        terms
    }
}

/// The tree and the commands by which a builder would start it, for `--dry-run`.
pub fn dry_run(builder: &NetworkBuilder, drawn: &str) -> Result<String, Failure> {
    let mut text = format!("{drawn}\n");
    for command in builder.commands()? {
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "# on {}, for rank {}\n{}", command.host, command.rank, command.line);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tree::TreeTerms;

    /// Options that the environment may set, too. What it says is not meant for one command alone,
    /// so that the kinds that other options need or exclude have none of them.
    const OF_ENVIRONMENT: [&str; 3] = ["launcher", "remote_shell", "interfaces"];

    fn launching(join: Option<&str>) -> Launching {
        Launching {
            launcher: Launcher::Automatic,
            remote_shell: None,
            shell_options: None,
            jobid: None,
            connect_timeout: Duration::from_secs(10),
            concurrent: 32,
            interfaces: String::new(),
            joining: Joining {
                join: join.map(PathBuf::from),
                join_port: None,
                join_key: None,
                join_timeout: Duration::from_secs(60),
            },
        }
    }

    #[test]
    fn hosts_that_come_by_themselves_are_no_others_of_the_same_names() {
        let reached = launching(None);
        let [one, other] = ["/tmp/one", "/tmp/other"].map(|file| launching(Some(file)));
        assert_ne!(reached.terms(None), one.terms(None));
        assert_ne!(one.terms(None), other.terms(None));
        assert_eq!(one.terms(None), launching(Some("/tmp/one")).terms(None));
        assert_ne!(reached.terms(None), reached.terms(Some("root")));
        assert!(one.is_particular() && !reached.is_particular());
        let by_options = Launching { shell_options: Some("-p 22".into()), ..launching(None) };
        assert!(by_options.is_particular());
        assert_ne!(by_options.terms(None), reached.terms(None));
    }

    #[test]
    fn an_option_is_of_one_kind() {
        use clap::Args as _;
        let options = |command: clap::Command| -> BTreeSet<String> {
            command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
        };
        let named = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let kinds = [&Launching::WAYS[..], &Launching::STARTS, &OF_ENVIRONMENT].concat();
        assert_eq!(options(Launching::augment_args(clap::Command::new("x"))), named(&kinds));
        let of_tree = options(TreeTerms::augment_args(clap::Command::new("x")));
        assert_eq!(of_tree, named(&TreeTerms::OPTIONS));
        let command = Launching::augment_args(clap::Command::new("x"));
        for argument in command.get_arguments() {
            let is_among = OF_ENVIRONMENT.contains(&argument.get_id().as_str());
            assert_eq!(argument.get_env().is_some(), is_among, "{argument}");
        }
    }
}
