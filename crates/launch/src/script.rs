//! The script for the shell on another host: run our program if it is there, and else take a copy
//! of it from standard input and run that.
//!
//! The text passes two shells, the user's log-in shell, which may be of any kind, and `sh`. No
//! secret is in it: it can be read by all users of both hosts.

/// The variable that makes our program a launch agent: the name under which its host was reached.
pub const LAUNCH_AGENT_VARIABLE: &str = "SAPWOOD_LAUNCH_AGENT";

/// The variable that names the folder that a copied program lies in.
pub const COPY_VARIABLE: &str = "SAPWOOD_COPY";

/// The line by which the script asks for a copy.
pub(crate) const COPY_REQUEST: &str = "sapwood-copy";

/// How old a folder of a copy is, in minutes, when it counts as left by a log-in that was killed:
/// a copy is there within a minute or not at all, and its folder goes when it runs.
const LEFT_AFTER_MINUTES: u32 = 10;

/// A word as every shell reads it.
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The program that is copied where it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// A mark by which users recognise the file.
    pub(crate) mark: String,
}

/// The command for `host`: to run `program` with these arguments as a launch agent.
///
/// The folder of a copy is made by `mktemp -d`: a name that other users can neither guess nor have
/// taken before, mode 0700. The empty file tells whether programs may be run there. It goes as soon
/// as the program runs. What earlier log-ins have left that were killed before goes first.
pub(crate) fn command(
    host: &str,
    program: &str,
    arguments: &[String],
    copy: Option<&Copy>,
) -> String {
    let call: String = arguments.iter().map(|word| format!(" {}", quoted(word))).collect();
    let host = quoted(host);
    let program = quoted(program);
    let mut script =
        format!("[ -x {program} ] && {LAUNCH_AGENT_VARIABLE}={host} exec {program}{call}\n");
    match copy {
        Some(Copy { bytes, mark }) => script.push_str(&format!(
            r#"umask 077
d=
trap 'rm -rf "$d"' EXIT
trap 'exit 126' HUP INT PIPE TERM
for r in "$XDG_RUNTIME_DIR" /tmp /dev/shm "$HOME"; do
  [ -n "$r" ] || continue
  find "$r"/sapwood-{mark}.?????? -prune -type d -user "$(id -u)" -mmin +{LEFT_AFTER_MINUTES} -exec rm -rf {{}} + 2>/dev/null
  d=$(mktemp -d "$r/sapwood-{mark}.XXXXXX" 2>/dev/null) || continue
  : 2>/dev/null >"$d/sapwood" && chmod 700 "$d/sapwood" && [ -x "$d/sapwood" ] && break
  rm -rf "$d"
  d=
done
[ -n "$d" ] || {{ echo "no folder here takes a copy of the program" >&2; exit 126; }}
echo {COPY_REQUEST}
head -c {bytes} >"$d/sapwood"
[ "$(wc -c <"$d/sapwood")" -eq {bytes} ] || {{ echo "the copy of the program is cut short: is there room in $d?" >&2; exit 126; }}
{COPY_VARIABLE}=$d {LAUNCH_AGENT_VARIABLE}={host} exec "$d/sapwood"{call}
"#
        )),
        None => script.push_str(&format!(
            "echo \"there is no program \"{program}\" here: install it\" >&2\nexit 127\n"
        )),
    }
    format!("exec sh -c {}", quoted(&script))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::{Exit, Local, Order, Process, Signal};

    /// How long anything may take before it counts as hung.
    const DEADLINE: Duration = Duration::from_secs(20);

    /// The script of a host without the program, which puts copies into this folder; once it waits
    /// for one.
    fn host_that_asks(folder: &Path) -> Process {
        let copy = Copy { bytes: 1000, mark: "1.2.3".to_owned() };
        let text = command("n1", "/no/such/program", &[], Some(&copy));
        let mut order = Order::new("/bin/sh");
        order.arguments = vec!["-c".into(), text.into()];
        order.environment = vec![("XDG_RUNTIME_DIR".into(), folder.into())];
        order.capture_stdout = true;
        order.pipe_stdin = true;
        let mut process = Local::new().start(&order).unwrap();
        let limit = Timespec::try_from(DEADLINE).unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"\n") {
            let mut readable = [PollFd::from_borrowed_fd(process.stdout().unwrap(), PollFlags::IN)];
            assert_eq!(poll(&mut readable, Some(&limit)), Ok(1), "it asks for no copy");
            process.take_stdout(&mut said).unwrap();
            assert!(!process.stdout_ended(), "{}", process.stderr_tail());
        }
        assert_eq!(said, format!("{COPY_REQUEST}\n").into_bytes());
        process
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_copy_that_does_not_come_whole_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = host_that_asks(folder.path());
        assert_eq!(names(folder.path()).len(), 1);
        std::io::Write::write_all(&mut process.stdin().unwrap(), b"a part of it").unwrap();
        process.close_stdin();
        assert_eq!(process.wait(DEADLINE), Some(Exit::Status(126)));
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn a_signal_while_a_copy_comes_leaves_nothing() {
        for signal in [Signal::HUP, Signal::INT, Signal::PIPE, Signal::TERM] {
            let folder = tempfile::tempdir().unwrap();
            let mut process = host_that_asks(folder.path());
            process.kill(signal).unwrap();
            process.close_stdin();
            assert_eq!(process.wait(DEADLINE), Some(Exit::Status(126)), "{signal:?}");
            assert_eq!(names(folder.path()), Vec::<String>::new(), "{signal:?}");
        }
    }

    #[test]
    fn what_a_log_in_has_left_that_was_killed_is_removed_by_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["sapwood-1.2.3.killed", "sapwood-1.2.3.comes1", "sapwood-1.2.3"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("sapwood"), "a part").unwrap();
        }
        let before = SystemTime::now() - Duration::from_secs(3600);
        for name in ["sapwood-1.2.3.killed", "sapwood-1.2.3"] {
            fs::File::open(path(name)).unwrap().set_modified(before).unwrap();
        }
        let mut process = host_that_asks(folder.path());
        process.close_stdin();
        assert_eq!(process.wait(DEADLINE), Some(Exit::Status(126)));
        assert_eq!(names(folder.path()), ["sapwood-1.2.3", "sapwood-1.2.3.comes1"]);
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(quoted("/opt/sapwood-1.0/bin"), "/opt/sapwood-1.0/bin");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
