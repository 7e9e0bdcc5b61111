//! `sapwood group`: the file with a group's address, and a name under which groups are not
//! measured.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::members::{Folder, HANG, Member, output};

/// An address at which no process listens, as a killed member leaves it.
const OLD: &str = "tcp:127.0.0.1:1\n";

/// The end of a pipe into which a reader looks that has opened it.
fn pipe_with_reader(pipe: &Path) -> File {
    let begun = Instant::now();
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    loop {
        // Refused while there is no reader.
        match File::options().write(true).custom_flags(flags).open(pipe) {
            Ok(file) => return file,
            Err(error) => assert!(begun.elapsed() < HANG, "no reader of the address: {error}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn members_find_the_first_one_by_a_file() {
    let folder = Folder::new();
    let (key, file) = (folder.key("key"), folder.key("address"));
    let place = file.to_str().unwrap();
    // The key is there before the members, as on hosts to which it was copied.
    Member::start(&key, &["create"]).leave();
    let join = ["join", "--address-file", place, "--wait", "1m", "--names", "1"];
    let (mut first, mut second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| Member::start(&folder.key("key"), &join));
        let first = Member::start(&key, &["create", "--address-file", place]);
        (first, second.join().unwrap())
    });
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", first.address));
    first.wait_for("0-1");
    second.wait_for("0-1");
    second.leave();
    first.leave();
    assert!(!file.exists(), "the file is removed with its member");
    // That of another member stays.
    let first = Member::start(&key, &["create", "--address-file", place]);
    std::fs::write(&file, OLD).unwrap();
    first.leave();
    assert!(file.exists());
    std::fs::remove_file(&file).unwrap();
    let key = key.to_str().unwrap();
    for (arguments, expected, words) in [
        (&["join", "--address-file", place, "--wait", "10ms"][..], 124, place),
        (&["join", "tcp:127.0.0.1:1", "--address-file", place], 2, "cannot be used with"),
        (&["join"], 2, "ADDRESS"),
        (&["create", "--address-file", "/no/such/folder/x"], 2, "/no/such/folder/x"),
    ] {
        let (code, stdout, stderr) = output(&[arguments, &["--key", key]].concat());
        assert_eq!((code, stdout.as_str()), (Some(expected), ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words) && stderr.trim_end().lines().count() == 1, "{stderr}");
    }
}

#[test]
fn the_file_of_a_first_member_that_lives_is_not_replaced() {
    let folder = Folder::new();
    let (key, file) = (folder.key("key"), folder.key("address"));
    let place = file.to_str().unwrap();
    let first = Member::start(&key, &["create", "--address-file", place]);
    let create = ["create", "--address-file", place, "--key", key.to_str().unwrap()];
    let (code, stdout, stderr) = output(&create);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains(&first.address) && stderr.trim_end().lines().count() == 1, "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", first.address));
    first.leave();
    assert!(!file.exists());
}

#[test]
fn an_old_address_in_the_file_is_not_the_last_that_a_join_reads() {
    let folder = Folder::new();
    let (key, file) = (folder.key("key"), folder.key("address"));
    let place = file.to_str().unwrap();
    Member::start(&key, &["create"]).leave();
    // The join reads the pipe to its end: there is a first member only after it has begun.
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let join = ["join", "--address-file", place, "--wait", "1m", "--names", "1"];
    let (mut first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| Member::start(&folder.key("key"), &join));
        let mut old = pipe_with_reader(&file);
        old.write_all(OLD.as_bytes()).unwrap();
        let first = Member::start(&key, &["create", "--address-file", place]);
        drop(old);
        (first, second.join().unwrap())
    });
    first.wait_for("0-1");
    second.leave();
    first.leave();
    // After its time the last reason is the answer.
    std::fs::write(&file, OLD).unwrap();
    let key = key.to_str().unwrap();
    let late = ["join", "--address-file", place, "--wait", "10ms", "--key", key];
    let (code, stdout, stderr) = output(&late);
    assert_eq!((code, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(stderr.contains("no process listens at tcp:127.0.0.1:1"), "{stderr}");
}

#[test]
fn a_first_member_removes_an_old_address_before_it_opens_its_group() {
    let folder = Folder::new();
    let (key, file) = (folder.key("key"), folder.key("address"));
    std::fs::write(&file, OLD).unwrap();
    let [key, place] = [&key, &file].map(|path| path.to_str().unwrap());
    let create = ["create", "--address-file", place, "--listen", "unix:/no/such/folder/x"];
    let (code, stdout, stderr) = output(&[&create[..], &["--key", key]].concat());
    assert_eq!((code, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(stderr.contains("cannot listen"), "{stderr}");
    assert!(!file.exists(), "the old address would be read");
}

#[test]
fn the_command_that_measures_groups_is_named() {
    for words in [&["bench"][..], &["bench", "--members", "4"], &["bench", "allreduce"]] {
        let (code, stdout, stderr) = output(words);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains("'sapwood bench group'"), "{stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
}
