//! `sapwood group`: the file with a group's address, and a name under which groups are not
//! measured.

mod members;

use members::{Folder, Member, output};

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
    std::fs::write(&file, "tcp:127.0.0.1:1\n").unwrap();
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
fn the_command_that_measures_groups_is_named() {
    for words in [&["bench"][..], &["bench", "--members", "4"], &["bench", "allreduce"]] {
        let (code, stdout, stderr) = output(words);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains("'sapwood bench group'"), "{stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
}
