//! Options of clush, pdsh, their programs for copies and ClusterShell's nodeset that Sapwood has
//! under another name, or has no need of. A user that types one is told what to use instead.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What to use instead of an option, by the commands in which it is told.
const INSTEAD: [(&[&str], &[&str], &str); 17] = [
    (&RUN, &["-v", "-d", "--debug", "--verbose"], "set SAPWOOD_LOG=info or SAPWOOD_LOG=debug"),
    (&RUN, &["-r", "--regroup"], "'sapwood nodeset regroup' writes a set with groups"),
    (&RUN, &["-c", "--copy", "--dest"], "'sapwood copy' copies files to hosts"),
    (&RUN, &["--rcopy"], "'sapwood copy --gather' copies files from hosts"),
    (&RUN, &["-G", "--groupbase"], "-g has groups, with -s SOURCE for those of one source"),
    (&RUN, &["-m", "--mode", "-O", "--option"], "no file of modes and defaults is read"),
    (&RUN, &["--worker"], "-R or --launcher says by what hosts are reached"),
    (&RUN, &["--topology"], "--shape and -f say which tree is used, --dry-run prints it"),
    (&RUN, &["--conf"], "no file of modes and defaults is read"),
    (
        &RUN,
        &["-k", "--progress"],
        "a host that cannot be reached is missing, and the others go on; the largest exit status is returned",
    ),
    (&COPY, &["-r", "-p", "--preserve"], "folders, permissions and times are copied in any case"),
    (&COPY, &["-v", "-d", "--debug", "--verbose"], "set SAPWOOD_LOG=info or SAPWOOD_LOG=debug"),
    (&NODESET, &["-f", "--fold"], "'sapwood nodeset fold' folds a set"),
    (&NODESET, &["-e", "--expand"], "'sapwood nodeset expand' writes every name"),
    (&NODESET, &["-c", "--count"], "'sapwood nodeset count' counts the names"),
    (&NODESET, &["-r", "--regroup"], "'sapwood nodeset regroup' writes a set with groups"),
    (&NODESET, &["-l", "--list"], "'sapwood nodeset groups' lists the groups"),
];

const RUN: [&str; 1] = ["sapwood run"];
const COPY: [&str; 1] = ["sapwood copy"];
const NODESET: [&str; 1] = ["sapwood nodeset"];

/// The line about an option that this command does not have, if it is one of those.
pub(crate) fn told(error: &clap::Error, command: &str) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let (_, _, instead) = INSTEAD.iter().find(|(commands, options, _)| {
        commands.contains(&command) && options.contains(&option.as_str())
    })?;
    Some(format!("'{command}' has no option {option}: {instead}; see '{command} --help'"))
}
