//! `sapwood group`: members of a group, what they do together, and how the group is.
//!
//! Owns the command line. `member` is one member, which reads operations from standard input;
//! `request` reads a line of these, `operation` carries it out and judges the result, `received`
//! judges what others have sent; `fleet` is members as processes, which `run` has do one operation
//! on this host, and `demo` in emulated clusters, on `hosts`; `status` draws a group and explains
//! its trees, `trace` follows operations through it, also for scopes of `sapwood trace`.
//! The benchmark of groups uses the fleet, requests and hosts.

mod demo;
mod fleet;
mod hosts;
mod member;
mod operation;
mod received;
mod request;
mod run;
mod status;
mod trace;

pub use fleet::{Fleet, MemberProcess, MemberWords, is_right};
pub use hosts::TestBed;
pub use request::{Act, Request, bytes};
pub use trace::{GroupHopWishes, GroupLosses, GroupRound, follow_scopes};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{
    AddressFile, GROUP_NAMES_MAX, Group, GroupBuilder, Key, RankSet, TreeKind, key_from_environment,
};
use sapwood_command_line::exit::Failure;
use sapwood_command_line::times::patience;

/// What `sapwood group` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Start members on this host, have them do one operation, and print its result and time.
    Run(run::Arguments),
    /// Start members in three emulated clusters; print the clusters that they infer, and the times
    /// of broadcasts by four trees.
    Demo(demo::Arguments),
    /// Be the first member of a new group; print its address, then read operations.
    Create(CreateArguments),
    /// Join a group by the address of any member, then read operations.
    Join(JoinArguments),
    /// Print members, inferred clusters, measured round trips, changes, and a tree.
    Status(status::ShowArguments),
    /// Print the tree of a transfer, and why each member has its parent.
    Explain(status::Arguments),
    /// Follow operations for a while; print which part arrived last, by how much, and the time on
    /// each link.
    Trace(trace::Arguments),
    /// Groups are measured by another command.
    #[command(hide = true)]
    Bench(Words),
}

/// What stands behind the name of a command that is another one.
#[derive(clap::Args)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// Where the key of the group is.
#[derive(clap::Args)]
struct KeyArguments {
    /// The file with the group's key; 'create' writes a new one if it does not exist. Without this
    /// option SAPWOOD_KEY names the file.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Do not encrypt links over TCP; all members need the same setting.
    #[arg(long)]
    plain: bool,
}

/// What becomes of a key whose file is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingKey {
    /// A new one is written there.
    Made,
    Refused,
}

/// How a member is to be.
#[derive(clap::Args)]
struct Membership {
    #[command(flatten)]
    key: KeyArguments,
    /// The virtual nodes that this member holds, such as 3 or 0-3,8; by default the smallest free
    /// one.
    #[arg(long, value_name = "SET", value_parser = names)]
    names: Option<RankSet>,
    /// Number of virtual nodes of the group, at most 16777216: their names are 0 to N-1.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = space)]
    space: u32,
    /// Address at which other members connect: tcp:ADDRESS:PORT or unix:PATH.
    #[arg(long, value_name = "ADDRESS", default_value = "tcp:127.0.0.1:0")]
    listen: String,
    /// The cluster of this member, for the trees 'static' and 'list' only.
    #[arg(long, value_name = "N", default_value_t = 0)]
    site: u32,
    /// Treat another member as dead after it has sent nothing for this time.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = patience)]
    silence: Duration,
    /// Link members of this host by sockets instead of shared memory.
    #[arg(long)]
    sockets: bool,
    /// Stay in the group when the input ends, until a signal to end.
    #[arg(long)]
    stay: bool,
}

#[derive(clap::Args)]
struct CreateArguments {
    #[command(flatten)]
    membership: Membership,
    /// Write the address of this member to a file, which 'join --address-file' reads; remove the
    /// file when this member leaves.
    #[arg(long, value_name = "FILE")]
    address_file: Option<PathBuf>,
}

#[derive(clap::Args)]
struct JoinArguments {
    /// The address of any member, as 'create' and 'status' print it.
    #[arg(required_unless_present = "address_file", conflicts_with = "address_file")]
    address: Option<String>,
    /// Read the address from the file of 'create --address-file', and wait until it is there and a
    /// member listens at that address.
    #[arg(long, value_name = "FILE")]
    address_file: Option<PathBuf>,
    /// Time limit for that wait.
    #[arg(long, value_name = "TIME", default_value = "30s", conflicts_with = "address",
          value_parser = patience)]
    wait: Duration,
    /// Virtual nodes to take over from one member, such as 3 or 2-3; that member stays and keeps at
    /// least one. Without '--names' this member holds no others.
    #[arg(long, value_name = "SET", value_parser = names)]
    take: Option<RankSet>,
    #[command(flatten)]
    membership: Membership,
}

/// Does what was asked.
///
/// # Errors
/// [`Failure`] where that does not work.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.subject {
        Subject::Run(arguments) => run::run(arguments),
        Subject::Demo(arguments) => demo::run(arguments),
        Subject::Create(CreateArguments { membership, address_file }) => {
            let builder = membership.builder(MissingKey::Made)?;
            if let Some(file) = address_file {
                AddressFile::clear(file, &builder)
                    .map_err(|error| failed("remove", file, &error))?;
            }
            let group = builder.create()?;
            let written = |file: &PathBuf| {
                AddressFile::write(file, &group).map_err(|error| failed("write", file, &error))
            };
            // Removed at the end of this member, however it ends its work.
            let _file = address_file.as_ref().map(written).transpose()?;
            member::serve(group, membership.stay)
        }
        Subject::Join(arguments) => {
            let membership = &arguments.membership;
            // What is wrong with the key is said before a wait.
            let builder = membership.builder(MissingKey::Refused)?;
            member::serve(arguments.join(builder)?, membership.stay)
        }
        Subject::Status(arguments) => status::show(arguments),
        Subject::Explain(arguments) => status::explain(arguments),
        Subject::Trace(arguments) => trace::show(arguments),
        Subject::Bench(_) => Err(Failure::usage(
            "groups are measured by 'sapwood bench group'; see 'sapwood bench group --help'",
        )),
    }
}

impl JoinArguments {
    /// A member of the group whose address was given, or is in the file.
    fn join(&self, mut builder: GroupBuilder) -> Result<Group, Failure> {
        if let Some(names) = &self.take {
            builder = builder.take(names.clone());
        }
        match (&self.address, &self.address_file) {
            (Some(address), _) => Ok(builder.join(address)?),
            (None, Some(file)) => Ok(AddressFile::join(file, &builder, self.wait, || false)?),
            (None, None) => Err(Failure::usage("name the address of a member")),
        }
    }
}

impl Membership {
    fn builder(&self, missing: MissingKey) -> Result<GroupBuilder, Failure> {
        let mut builder = Group::builder(self.key.read(missing)?)
            .space(self.space)
            .site(self.site)
            .silence(self.silence)
            .listen(&self.listen)
            .shared_memory(!self.sockets);
        if let Some(names) = &self.names {
            builder = builder.names(names.clone());
        }
        if self.key.plain {
            builder = builder.encryption(false);
        }
        Ok(builder)
    }
}

impl KeyArguments {
    /// Whether links are encrypted, if it is not as usual.
    fn encryption(&self) -> Option<bool> {
        self.plain.then_some(false)
    }

    /// The key of the file, or of the environment where no file is named.
    fn read(&self, missing: MissingKey) -> Result<Key, Failure> {
        let Some(path) = &self.key else {
            return key_from_environment()?.ok_or_else(|| {
                Failure::usage(
                    "a group has a key: name its file with --key FILE, or in SAPWOOD_KEY",
                )
            });
        };
        let failed = |error| Failure::usage(format!("{error}"));
        if missing == MissingKey::Made && !path.exists() {
            let key = Key::generate().map_err(failed)?;
            key.write_file(path).map_err(failed)?;
            return Ok(key);
        }
        Key::from_file(path).map_err(failed)
    }
}

/// What could not be done with the address file.
fn failed(what: &str, file: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot {what} '{}': {error}", file.display()))
}

fn names(text: &str) -> Result<RankSet, String> {
    let names: RankSet = text.parse().map_err(|error| format!("{error}"))?;
    if names.is_empty() {
        return Err("name at least one virtual node, such as 3".to_string());
    }
    Ok(names)
}

fn space(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a name space has at least one virtual node".to_string()),
        Ok(space) if space > GROUP_NAMES_MAX => {
            Err(format!("a name space has at most {GROUP_NAMES_MAX} virtual nodes"))
        }
        Ok(space) => Ok(space),
        Err(_) => Err(format!("'{text}' is no number of virtual nodes")),
    }
}

fn tree(text: &str) -> Result<TreeKind, String> {
    text.parse().map_err(|error: sapwood::UnknownTree| error.to_string())
}
