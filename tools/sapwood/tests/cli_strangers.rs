//! Another user of the same machine at a tree that is up: gets no word from it, and is not believed
//! where it plays one.

mod cli;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cli::user::User;
use cli::{LIMIT, assert_refused, code, text};

/// What the stranger is to do, and at which socket: variables of its own process.
const PART: &str = "SAPWOOD_TEST_STRANGER";
const PLACE: &str = "SAPWOOD_TEST_SOCKET";

/// The number of a user that owns nothing.
const OTHER_USER: u32 = 65534;

/// The stranger's own process.
fn be_stranger(part: &str) {
    let place = std::env::var_os(PLACE).expect("a socket");
    if part == "listens" {
        let _listener = UnixListener::bind(place).expect("a place of its own");
        println!("stranger listens");
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        return;
    }
    match UnixStream::connect(place) {
        Err(error) => println!("stranger: {:?}", error.kind()),
        Ok(mut socket) => {
            socket.set_read_timeout(Some(LIMIT)).expect("a socket");
            // It may be closed already.
            let _ = socket.write_all(&[0; 64]);
            let mut heard = Vec::new();
            let ended = socket.read_to_end(&mut heard).map_err(|error| error.kind());
            println!("stranger: heard {} bytes, {ended:?}", heard.len());
        }
    }
}

/// Another user, who can run this test's program.
struct Stranger {
    program: PathBuf,
}

impl Stranger {
    fn of(user: &User) -> Self {
        open_to_others(user.folder.path(), 0o755);
        let program = user.folder.path().join("stranger");
        // Another process copies it: it can be run at once, whatever a test beside this one starts.
        let own = std::env::current_exe().unwrap();
        assert!(Command::new("cp").arg(own).arg(&program).status().unwrap().success());
        open_to_others(&program, 0o755);
        Self { program }
    }

    fn begin(&self, part: &str, place: &Path) -> Child {
        Command::new(&self.program)
            .args(["--exact", "a_stranger_gets_no_word_and_is_not_believed", "--nocapture"])
            .env(PART, part)
            .env(PLACE, place)
            .current_dir("/")
            .uid(OTHER_USER)
            .gid(OTHER_USER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// What becomes of an attempt to talk to the process that listens there.
    fn hears_at(&self, place: &Path) -> String {
        let output = self.begin("connects", place).wait_with_output().unwrap();
        let said = text(&output.stdout).lines().find_map(|line| {
            let (_, heard) = line.split_once("stranger: ")?;
            Some(heard.to_string())
        });
        assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
        said.unwrap_or_else(|| panic!("{}", text(&output.stderr)))
    }
}

fn open_to_others(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_stranger_gets_no_word_and_is_not_believed() {
    if let Ok(part) = std::env::var(PART) {
        return be_stranger(&part);
    }
    if !rustix::process::geteuid().is_root() {
        println!("only root can be two users");
        return;
    }
    let user = User::new();
    user.up(&["-w", "n0"]);
    let agent = user.agent(&["-w", "n0"]);
    let stranger = Stranger::of(&user);
    let folder = user.folder.path().join("sapwood");
    let socket = folder.join("warm.tree");
    assert_eq!(stranger.hears_at(&socket), "PermissionDenied");
    // Even if the folder is opened: the daemon asks the kernel which user comes.
    open_to_others(&folder, 0o755);
    open_to_others(&socket, 0o666);
    let heard = stranger.hears_at(&socket);
    assert!(heard.starts_with("heard 0 bytes, "), "{heard}");
    open_to_others(&socket, 0o600);
    open_to_others(&folder, 0o700);
    assert_eq!(user.agent(&["-w", "n0"]), agent, "it goes on");

    // And one that plays a tree, at a socket that got into the user's folder.
    let own = user.folder.path().join("own");
    fs::create_dir(&own).unwrap();
    open_to_others(&own, 0o777);
    let mut player = stranger.begin("listens", &own.join("socket"));
    let mut said = String::new();
    let stdout = player.stdout.as_mut().unwrap();
    let mut byte = [0];
    while !said.contains("stranger listens") {
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "it ended early: {said}");
        said.push(char::from(byte[0]));
    }
    fs::rename(own.join("socket"), folder.join("false.tree")).unwrap();
    let output = user.run(&["-w", "n[0-1]", "true"]);
    assert_eq!((code(&output), text(&output.stdout)), (Some(0), ""));
    let errors = text(&output.stderr);
    assert!(errors.contains("ignored"), "{errors}");
    let output = user.run(&["--tree", "false", "-w", "n0", "true"]);
    let errors = text(&output.stderr);
    assert_eq!(code(&output), Some(125), "{errors}");
    let told = "tree 'false' cannot be reached: the other end runs as user ";
    assert!(errors.contains(told) && errors.lines().count() == 1, "{errors}");
    fs::remove_file(folder.join("false.tree")).unwrap();
    assert_refused(&user.say(&["down", "false"]), "no tree is called 'false'", &[]);
    let output = player.wait_with_output().unwrap();
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
}
