//! How a command reaches hosts: the options that all commands with trees over hosts have in common.

use std::fmt::Write as _;
use std::time::Duration;

use sapwood::{Launcher, NetworkBuilder};

use crate::exit::Failure;

/// The longest time that a host may be given, in seconds.
const CONNECT_SECONDS_MAX: f64 = 3600.0;

/// Options about reaching hosts.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Launching {
    /// How hosts are reached: auto, local, ssh or slurm.
    #[arg(long, value_name = "NAME", default_value = "auto", env = "SAPWOOD_LAUNCHER")]
    pub(crate) launcher: Launcher,
    /// The remote shell and its own arguments, in the place of ssh.
    #[arg(long, value_name = "WORDS", env = "SAPWOOD_RSH")]
    remote_shell: Option<String>,
    /// The Slurm job whose hosts are meant, beside which the tree runs.
    #[arg(short = 'j', long, value_name = "JOB")]
    jobid: Option<String>,
    /// How long a host may take to answer, in seconds.
    #[arg(short = 't', long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    connect_timeout: Duration,
    /// How many hosts each process of the tree reaches at the same time.
    #[arg(long, value_name = "HOSTS", default_value = "32")]
    concurrent: u32,
    /// Which addresses the processes listen at: networks, names or beginnings of names of
    /// interfaces, between commas, or all but these behind ^.
    #[arg(long, value_name = "RULE", default_value = "", env = "SAPWOOD_INTERFACES")]
    interfaces: String,
}

impl Launching {
    /// The same, as another user on the hosts if one is named.
    ///
    /// # Errors
    /// [`Failure`] where no remote shell is used, which alone changes users, or a job is named to a
    /// launcher that knows none.
    pub(crate) fn as_user(&self, user: Option<&str>) -> Result<Self, Failure> {
        let mut launching = self.clone();
        if let Some(job) = &self.jobid
            && matches!(self.launcher, Launcher::Local | Launcher::Ssh)
        {
            let text = format!("job {job:?}: only the launcher slurm knows jobs; omit -j");
            return Err(Failure::usage(text));
        }
        let Some(user) = user else { return Ok(launching) };
        if !matches!(self.launcher, Launcher::Automatic | Launcher::Ssh) {
            return Err(Failure::usage(format!(
                "user {user:?}: only the launcher ssh changes the user; omit -l"
            )));
        }
        launching.launcher = Launcher::Ssh;
        let shell = self.remote_shell.as_deref().unwrap_or("ssh");
        launching.remote_shell = Some(format!("{shell} -l {user}"));
        Ok(launching)
    }

    /// What decides which machine a host's name leads to, and as whom, as one line.
    pub(crate) fn terms(&self, user: Option<&str>) -> String {
        let variable = |name: &str| std::env::var(name).ok();
        let is_automatic = self.launcher == Launcher::Automatic;
        let is_slurm = self.launcher == Launcher::Slurm || is_automatic;
        let job = self.jobid.clone().or_else(|| variable("SLURM_JOB_ID")).filter(|_| is_slurm);
        let shell = self.remote_shell.as_deref().unwrap_or_default();
        format!(
            "launcher {} shell {shell:?} user {:?} job {:?}",
            self.launcher,
            user.unwrap_or_default(),
            job.unwrap_or_default()
        )
    }

    /// Tells a builder.
    pub(crate) fn apply(&self, builder: NetworkBuilder) -> NetworkBuilder {
        let mut builder = builder
            .launcher(self.launcher)
            .connect_timeout(self.connect_timeout)
            .concurrent_starts(self.concurrent)
            .interfaces(&*self.interfaces);
        if let Some(job) = &self.jobid {
            builder = builder.slurm_job(&**job);
        }
        if let Some(words) = &self.remote_shell {
            builder = builder.remote_shell(words.split_whitespace());
        }
        builder
    }
}

/// The tree and the commands by which a builder would start it, for `--dry-run`.
pub(crate) fn dry_run(builder: &NetworkBuilder, drawn: &str) -> Result<String, Failure> {
    let mut text = format!("{drawn}\n");
    for command in builder.commands()? {
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "# on {}, for rank {}\n{}", command.host, command.rank, command.line);
    }
    Ok(text)
}

/// A time in seconds, as people write it.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number of seconds".to_owned())?;
    match seconds > 0.0 && seconds <= CONNECT_SECONDS_MAX {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("it is not between 0 and 3600 seconds".to_owned()),
    }
}
