//! Writes beyond the limit on the size of files: ours fail, those of programs that we start end
//! them as always. By itself, since it changes what a signal does to this process.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sapwood_launch::{Exit, Local, Order, survive_file_limit};

/// `SIGXFSZ`, by its number.
const FILE_TOO_LARGE: i32 = 25;

#[test]
fn a_write_beyond_the_limit_fails_here_and_ends_a_program_that_is_started() {
    survive_file_limit();
    let folder = tempfile::tempdir().unwrap();
    let (own, its) = (folder.path().join("own"), folder.path().join("its"));
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(0), ..before }).unwrap();
    let written = std::fs::write(&own, "text");
    let mut order = Order::new("/bin/sh");
    order.arguments =
        vec!["-c".into(), format!("exec head -c 9 /dev/zero >{}", its.display()).into()];
    let started =
        Local::new().start(&order).map(|mut process| process.wait(Duration::from_secs(60)));
    setrlimit(Resource::Fsize, before).unwrap();
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::FileTooLarge);
    assert_eq!(started.unwrap(), Some(Exit::Signal(FILE_TOO_LARGE)));
}
