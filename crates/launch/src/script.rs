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
/// as the program runs.
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
for r in "$XDG_RUNTIME_DIR" /tmp /dev/shm "$HOME"; do
  [ -n "$r" ] && d=$(mktemp -d "$r/sapwood-{mark}.XXXXXX" 2>/dev/null) || continue
  : 2>/dev/null >"$d/sapwood" && chmod 700 "$d/sapwood" && [ -x "$d/sapwood" ] && break
  rm -rf "$d"
  d=
done
[ -n "$d" ] || {{ echo "no folder here takes a copy of the program" >&2; exit 126; }}
trap 'rm -rf "$d"' EXIT
trap 'exit 126' HUP INT PIPE TERM
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
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(quoted("/opt/sapwood-1.0/bin"), "/opt/sapwood-1.0/bin");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
