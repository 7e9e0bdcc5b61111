//! Sources and receivers face to face, with everything between them that can go wrong: what is
//! said gets lost, comes twice or damaged, and either end is gone at any moment.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::blocks::BLOCK_BYTES;
use super::protocol::{Message, Outcome, State, Terms};
use super::receiver::{self, Receiver};
use super::scan::Scan;
use super::source::{Source, Step};

/// What becomes of one message of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    IsLost,
    ComesTwice,
    IsDamaged,
    /// Both ends are gone.
    IsTheLast,
}

fn source_of(roots: &[&Path]) -> Source {
    let mut scan = Scan::new(roots.iter().map(|root| root.to_path_buf()).collect());
    while scan.step() {}
    Source::new(scan.found)
}

fn receiver_at(destination: &Path, names: &[&str], terms: Terms) -> Receiver {
    let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    Receiver::new(destination, &names, terms)
}

/// Has a source and a receiver talk until it is over, or a message is the last. Gives the outcome.
fn carry(
    source: &mut Source,
    receiver: &mut Receiver,
    mut fate: impl FnMut(&Message<'_>) -> Fate,
) -> Option<Outcome> {
    let only = || std::iter::once(0).collect();
    source.announce(only(), 0);
    for _round in 0..100 {
        loop {
            let is_quiet = match source.step() {
                Step::Say(_, message) => {
                    let fate = fate(&message);
                    if fate == Fate::IsTheLast {
                        return None;
                    }
                    let (tag, values) = message.encode();
                    let message = Message::decode(tag, values.as_ref()).unwrap();
                    hand_over(receiver, &message, fate);
                    false
                }
                Step::Busy => false,
                Step::Nothing => true,
            };
            let is_silent = listen(source, receiver);
            if is_quiet && is_silent {
                break;
            }
        }
        let outcome = receiver.outcome();
        match outcome.state {
            State::Done { .. } => return Some(outcome),
            State::Lacking | State::Going(..) => {
                source.begin_round();
                receiver.say_again();
            }
        }
    }
    panic!("it is not over after many rounds");
}

fn hand_over(receiver: &mut Receiver, message: &Message<'_>, fate: Fate) {
    match (fate, message) {
        (Fate::IsLost, _) => {}
        (Fate::IsDamaged, &Message::Part { entry, offset, digest, bytes }) => {
            let mut damaged = bytes.to_vec();
            damaged[bytes.len() / 2] ^= 0x10;
            receiver.take(&Message::Part { entry, offset, digest, bytes: &damaged });
        }
        (Fate::ComesTwice, message) => {
            receiver.take(message);
            receiver.take(message);
        }
        (_, message) => receiver.take(message),
    }
}

/// Lets the receiver work and tells the source what it says. Gives whether it had nothing to do.
fn listen(source: &mut Source, receiver: &mut Receiver) -> bool {
    let mut is_silent = true;
    loop {
        match receiver.step() {
            receiver::Step::Say(Message::Offer { entry, length, digest }) => {
                source.offer(0, entry, length, digest);
            }
            receiver::Step::Say(Message::Ready { known, lacking }) => {
                if known <= source.found.manifest.len() {
                    source.announce(std::iter::once(0).collect(), known);
                } else {
                    source.want(0, lacking);
                    source.serve();
                }
            }
            receiver::Step::Say(other) => panic!("no receiver says {other:?}"),
            receiver::Step::Busy => {}
            receiver::Step::Nothing => return is_silent,
        }
        is_silent = false;
    }
}

fn whole(source: &Path, destination: &Path) -> Outcome {
    let name = source.file_name().unwrap().to_str().unwrap();
    let mut receiver = receiver_at(destination, &[name], Terms::default());
    carry(&mut source_of(&[source]), &mut receiver, |_| Fate::Arrives).unwrap()
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// What is left of temporary names in a folder.
fn parts_in(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_str().unwrap().ends_with(".sapwood-part")).collect()
}

/// A tree with everything that is kept.
fn make_tree(root: &Path) {
    fs::create_dir_all(root.join("folder/empty")).unwrap();
    fs::write(root.join("folder/file"), bytes(3, 3 * BLOCK_BYTES + 5)).unwrap();
    fs::write(root.join("nothing"), b"").unwrap();
    fs::hard_link(root.join("folder/file"), root.join("second name")).unwrap();
    symlink("folder/file", root.join("link")).unwrap();
    symlink("/no/such/place", root.join("dangling")).unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(&bytes(5, 70_000), 1 << 20).unwrap();
    sparse.set_len(4 << 20).unwrap();
    fs::set_permissions(root.join("folder"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(root.join("nothing"), fs::Permissions::from_mode(0o400)).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    for path in ["nothing", "folder", "sparse"] {
        File::open(root.join(path)).unwrap().set_modified(long_ago).unwrap();
    }
}

/// Whether one tree is the copy of another in everything that is kept.
fn assert_same_tree(one: &Path, other: &Path) {
    let entries = |root: &Path| {
        let mut scan = Scan::new(vec![root.to_path_buf()]);
        while scan.step() {}
        scan.found.manifest.entries().to_vec()
    };
    let (expected, found) = (entries(one), entries(other));
    assert_eq!(found.len(), expected.len());
    for (expected, found) in expected.iter().zip(&found) {
        // What a file system says of extents may be finer than they were written.
        let said = |entry: &super::manifest::Entry| {
            let size = entry.content().map(|content| content.size);
            (entry.path.clone(), entry.mode & 0o1777, entry.changed, size)
        };
        let is_link = matches!(expected.kind, super::manifest::Kind::Symlink(_));
        if is_link {
            assert_eq!(found.kind, expected.kind);
        } else {
            assert_eq!(said(found), said(expected));
        }
        if expected.content().is_some() {
            let path = |root: &Path| root.join(std::str::from_utf8(&expected.path).unwrap());
            assert_eq!(fs::read(path(other)).unwrap(), fs::read(path(one)).unwrap());
        }
    }
}

#[test]
fn a_tree_keeps_links_holes_modes_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    make_tree(&tree);
    let outcome = whole(&tree, &copy);
    assert!(outcome.complaints.is_empty(), "{outcome:?}");
    assert_same_tree(&tree, &copy);
    let status = |name: &str| fs::metadata(copy.join(name)).unwrap();
    assert_eq!(status("second name").ino(), status("folder/file").ino());
    assert!(status("sparse").blocks() * 512 < 512 << 10);
    assert!(parts_in(folder.path()).is_empty() && parts_in(&copy).is_empty());
    // Once more, and nothing is sent: everything is there.
    let mut source = source_of(&[&tree]);
    let terms = Terms { is_exact: true, ..Terms::default() };
    let mut receiver = receiver_at(&copy, &["tree"], terms);
    let outcome = carry(&mut source, &mut receiver, |_| Fate::Arrives).unwrap();
    assert!(outcome.complaints.is_empty(), "{outcome:?}");
    assert_eq!(source.said().0, 0);
    assert_same_tree(&tree, &copy);
}

#[test]
fn a_folder_that_is_there_gets_the_copy_inside_as_with_cp() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, there) = (folder.path().join("tree"), folder.path().join("there"));
    make_tree(&tree);
    fs::create_dir(&there).unwrap();
    assert!(whole(&tree, &there).complaints.is_empty());
    assert_same_tree(&tree, &there.join("tree"));
    fs::write(folder.path().join("file"), b"x").unwrap();
    assert!(whole(&folder.path().join("file"), &there).complaints.is_empty());
    assert_eq!(fs::read(there.join("file")).unwrap(), b"x");
}

#[test]
fn an_interrupted_copy_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    fs::write(&file, bytes(1, 10 * BLOCK_BYTES)).unwrap();
    let mut parts = 0;
    let mut receiver = receiver_at(&copy, &["file"], Terms::default());
    let ended = carry(&mut source_of(&[&file]), &mut receiver, |message| {
        parts += usize::from(matches!(message, Message::Part { .. }));
        if parts == 7 { Fate::IsTheLast } else { Fate::Arrives }
    });
    assert!(ended.is_none() && !copy.exists());
    drop(receiver);
    let mut source = source_of(&[&file]);
    let mut receiver = receiver_at(&copy, &["file"], Terms::default());
    assert!(carry(&mut source, &mut receiver, |_| Fate::Arrives).is_some());
    assert_eq!(source.said().0, 4 * BLOCK_BYTES as u64);
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap());
    assert!(parts_in(folder.path()).is_empty());
}

#[test]
fn a_beginning_of_something_else_is_not_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    fs::write(&file, bytes(1, 4 * BLOCK_BYTES)).unwrap();
    fs::write(folder.path().join(".copy.sapwood-part"), bytes(2, 3 * BLOCK_BYTES)).unwrap();
    let mut source = source_of(&[&file]);
    let mut receiver = receiver_at(&copy, &["file"], Terms::default());
    carry(&mut source, &mut receiver, |_| Fate::Arrives).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap());
}

#[test]
fn a_file_that_changes_meanwhile_is_reported_and_not_put_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), bytes(1, 3 * BLOCK_BYTES)).unwrap();
    fs::write(tree.join("other"), b"other").unwrap();
    let copy = folder.path().join("copy");
    let mut source = source_of(&[&tree]);
    let mut receiver = receiver_at(&copy, &["tree"], Terms::default());
    let outcome = carry(&mut source, &mut receiver, |message| {
        if matches!(message, Message::Part { offset: 0, .. }) {
            fs::write(tree.join("file"), b"new").unwrap();
        }
        Fate::Arrives
    });
    assert!(source.found.complaints.first[0].reason.contains("was changed while it was copied"));
    assert!(outcome.unwrap().complaints.first[0].reason.contains("not renamed into place"));
    assert!(!copy.exists());
    drop(receiver);
    // The next try finds what was right and sends the rest.
    assert!(whole(&tree, &copy).complaints.is_empty());
    assert_eq!(fs::read(copy.join("file")).unwrap(), b"new");
}

#[test]
fn what_others_prepared_under_a_temporary_name_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let (file, victim) = (folder.path().join("file"), folder.path().join("victim"));
    fs::write(&file, b"new").unwrap();
    fs::write(&victim, b"precious").unwrap();
    symlink(&victim, folder.path().join(".copy.sapwood-part")).unwrap();
    fs::hard_link(&victim, folder.path().join(".more.sapwood-part")).unwrap();
    assert!(whole(&file, &folder.path().join("copy")).complaints.is_empty());
    assert_eq!(whole(&file, &folder.path().join("more")).complaints.count, 1);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(folder.path().join("copy")).unwrap(), b"new");
}

#[test]
fn what_is_in_the_way_is_named_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (file, tree) = (folder.path().join("file"), folder.path().join("tree"));
    fs::write(&file, b"x").unwrap();
    make_tree(&tree);
    let said = |outcome: Outcome| outcome.complaints.first[0].reason.clone();
    let exact = Terms { is_exact: true, ..Terms::default() };
    let mut receiver = receiver_at(&tree, &["file"], exact);
    let outcome = carry(&mut source_of(&[&file]), &mut receiver, |_| Fate::Arrives).unwrap();
    assert!(said(outcome).contains("is a folder"));
    assert!(said(whole(&tree, &file)).contains("is not a folder"));
    assert_eq!(fs::read(&file).unwrap(), b"x");
    let absent = folder.path().join("absent/copy");
    assert!(said(whole(&file, &absent)).contains("No such file"));
}

#[test]
fn two_copies_do_not_write_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    fs::write(&file, bytes(1, 2 * BLOCK_BYTES)).unwrap();
    let mut first = receiver_at(&copy, &["file"], Terms::default());
    let mut parts = 0;
    carry(&mut source_of(&[&file]), &mut first, |message| {
        parts += usize::from(matches!(message, Message::Part { .. }));
        if parts == 2 { Fate::IsTheLast } else { Fate::Arrives }
    });
    let outcome = whole(&file, &copy);
    assert!(outcome.complaints.first[0].reason.contains("another copy"), "{outcome:?}");
    drop(first);
    assert!(whole(&file, &copy).complaints.is_empty());
}

#[test]
fn what_stood_in_a_hole_does_not_come_back() {
    const BLOCK: u64 = BLOCK_BYTES as u64;
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    let part = folder.path().join(".copy.sapwood-part");
    let (front, back) = (bytes(1, 2 * BLOCK_BYTES), bytes(2, 2 * BLOCK_BYTES));
    let sparse = File::create(&file).unwrap();
    sparse.write_all_at(&front, 0).unwrap();
    sparse.write_all_at(&back, 32 * BLOCK).unwrap();
    sparse.set_len(40 * BLOCK).unwrap();
    let changed = sparse.metadata().unwrap().modified().unwrap();
    // An earlier state of the file, of which the hole has been made since.
    let begin = |path: &Path, has_back: bool| {
        let old = File::create(path).unwrap();
        old.write_all_at(&front, 0).unwrap();
        old.write_all_at(b"old", 4 * BLOCK).unwrap();
        if has_back {
            old.write_all_at(&back, 32 * BLOCK).unwrap();
        }
        old
    };
    for has_back in [true, false] {
        begin(&part, has_back);
        let mut source = source_of(&[&file]);
        let mut receiver = receiver_at(&copy, &["file"], Terms::default());
        carry(&mut source, &mut receiver, |_| Fate::Arrives).unwrap();
        assert!(fs::read(&copy).unwrap() == fs::read(&file).unwrap(), "{has_back}");
        // Where only the end is cut off, the beginning stays.
        assert_eq!(source.said().0, if has_back { 4 * BLOCK } else { 2 * BLOCK });
        fs::remove_file(&copy).unwrap();
    }
    let old = begin(&copy, true);
    old.set_len(40 * BLOCK).unwrap();
    old.set_modified(changed).unwrap();
    assert!(whole(&file, &copy).complaints.is_empty());
    assert!(fs::read(&copy).unwrap() == fs::read(&file).unwrap());
}

#[test]
fn whoever_reads_what_is_there_does_not_seem_to_stand_still() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    fs::write(&file, bytes(1, 10 << 20)).unwrap();
    fs::copy(&file, folder.path().join(".copy.sapwood-part")).unwrap();
    let mut source = source_of(&[&file]);
    let mut receiver = receiver_at(&copy, &["file"], Terms::default());
    source.announce(std::iter::once(0).collect(), 0);
    while let Step::Say(_, message) = source.step() {
        receiver.take(&message);
    }
    let mut told = vec![receiver.outcome().state];
    while matches!(receiver.step(), receiver::Step::Busy) {
        told.push(receiver.outcome().state);
    }
    told.dedup();
    // Finds the part, reads it in three steps, and is ready.
    assert!(told.len() > 3, "{told:?}");
    assert!(told.iter().all(|state| matches!(state, State::Going(0, _))), "{told:?}");
}

#[test]
fn a_copy_that_begins_anew_takes_nothing_from_one_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("one"), b"one").unwrap();
    fs::write(tree.join("two"), b"two").unwrap();
    let mut first = receiver_at(&copy, &["tree"], Terms::default());
    carry(&mut source_of(&[&tree]), &mut first, |message| match message {
        Message::Finish => Fate::IsTheLast,
        _ => Fate::Arrives,
    });
    let anew = Terms { is_anew: true, ..Terms::default() };
    let mut second = receiver_at(&copy, &["tree"], anew);
    let outcome = carry(&mut source_of(&[&tree]), &mut second, |_| Fate::Arrives).unwrap();
    assert!(outcome.complaints.first[0].reason.contains("another copy"), "{outcome:?}");
    second.abandon();
    drop(second);
    assert_eq!(fs::read(folder.path().join(".copy.sapwood-part/two")).unwrap(), b"two");
    drop(first);
    let mut third = receiver_at(&copy, &["tree"], anew);
    assert!(carry(&mut source_of(&[&tree]), &mut third, |_| Fate::Arrives).is_some());
    assert_same_tree(&tree, &copy);
}

#[test]
fn what_another_copy_began_meanwhile_does_not_get_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    let part = folder.path().join(".copy.sapwood-part");
    fs::write(&file, bytes(1, 2 * BLOCK_BYTES)).unwrap();
    let mut receiver = receiver_at(&copy, &["file"], Terms::default());
    let mut other = None;
    let outcome = carry(&mut source_of(&[&file]), &mut receiver, |message| {
        if matches!(message, Message::End { .. }) {
            fs::remove_file(&part).unwrap();
            let begun = File::create(&part).unwrap();
            begun.write_all_at(b"half", 0).unwrap();
            rustix::fs::flock(&begun, rustix::fs::FlockOperation::LockExclusive).unwrap();
            other = Some(begun);
        }
        Fate::Arrives
    });
    assert_eq!(outcome.unwrap().complaints.count, 1);
    assert!(!copy.exists());
    assert_eq!(fs::read(&part).unwrap(), b"half");
    drop(other);
}

#[test]
fn a_copy_that_keeps_nothing_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    make_tree(&tree);
    let anew = Terms { is_anew: true, ..Terms::default() };
    let mut receiver = receiver_at(&copy, &["tree"], anew);
    let outcome = carry(&mut source_of(&[&tree]), &mut receiver, |message| {
        if matches!(message, Message::Part { offset: 0, .. }) {
            fs::write(tree.join("folder/file"), b"new").unwrap();
        }
        Fate::Arrives
    });
    let reason = outcome.unwrap().complaints.first.pop().unwrap().reason;
    assert!(reason.contains("not renamed into place") && !reason.contains("kept"), "{reason}");
    receiver.abandon();
    assert!(!copy.exists() && parts_in(folder.path()).is_empty());
}

#[test]
fn the_next_try_can_write_into_a_folder_that_is_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    fs::create_dir_all(tree.join("inner")).unwrap();
    fs::write(tree.join("inner/file"), bytes(1, 3 * BLOCK_BYTES)).unwrap();
    fs::set_permissions(tree.join("inner"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut receiver = receiver_at(&copy, &["tree"], Terms::default());
    carry(&mut source_of(&[&tree]), &mut receiver, |message| {
        if matches!(message, Message::Part { offset: 0, .. }) {
            fs::write(tree.join("inner/file"), b"new").unwrap();
        }
        Fate::Arrives
    });
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&folder.path().join(".copy.sapwood-part/inner")), 0o700);
    drop(receiver);
    assert!(whole(&tree, &copy).complaints.is_empty());
    assert_eq!(mode(&copy.join("inner")), 0o755);
}

#[test]
fn a_link_for_which_there_is_no_place_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
    fs::create_dir(&tree).unwrap();
    symlink("somewhere", tree.join("link")).unwrap();
    fs::create_dir_all(copy.join("link")).unwrap();
    let exact = Terms { is_exact: true, ..Terms::default() };
    let mut receiver = receiver_at(&copy, &["tree"], exact);
    let outcome = carry(&mut source_of(&[&tree]), &mut receiver, |_| Fate::Arrives).unwrap();
    assert_eq!(outcome.complaints.count, 1);
    assert!(parts_in(&copy).is_empty());
}

#[test]
fn a_file_whose_length_nobody_knows_is_not_taken_for_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let mut source = source_of(&[Path::new("/proc/version")]);
    let mut receiver = receiver_at(&copy, &["version"], Terms::default());
    assert!(carry(&mut source, &mut receiver, |_| Fate::Arrives).is_some());
    assert_eq!(source.found.complaints.count, 1);
    assert!(!copy.exists());
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        12 => Just(Fate::Arrives),
        2 => Just(Fate::IsLost),
        2 => Just(Fate::ComesTwice),
        2 => Just(Fate::IsDamaged),
        1 => Just(Fate::IsTheLast),
    ];
    proptest::collection::vec(fate, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_on_the_way_a_file_is_whole_or_not_there(
        attempts in proptest::collection::vec((fates(), any::<bool>()), 0..4),
        length in 0..5 * BLOCK_BYTES,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
        let mut contents = vec![bytes(9, length)];
        fs::write(&file, &contents[0]).unwrap();
        let attempts = attempts.into_iter().chain([(Vec::new(), false)]);
        for (attempt, (fates, changes)) in attempts.enumerate() {
            if changes {
                let content = bytes(attempt as u64 + 11, length);
                fs::write(&file, &content).unwrap();
                contents.push(content);
            }
            let mut fates = fates.into_iter();
            let mut receiver = receiver_at(&copy, &["file"], Terms::default());
            carry(&mut source_of(&[&file]), &mut receiver, |_| {
                if let Ok(content) = fs::read(&copy) {
                    assert!(contents.contains(&content), "half a file has the name");
                }
                fates.next().unwrap_or(Fate::Arrives)
            });
        }
        prop_assert_eq!(&fs::read(&copy).unwrap(), contents.last().unwrap());
        prop_assert!(parts_in(folder.path()).is_empty());
    }

    #[test]
    fn whatever_happens_on_the_way_a_new_folder_is_whole_or_not_there(
        attempts in proptest::collection::vec(fates(), 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (tree, copy) = (folder.path().join("tree"), folder.path().join("copy"));
        make_tree(&tree);
        for fates in attempts.into_iter().chain([Vec::new()]) {
            if copy.exists() {
                break;
            }
            let mut fates = fates.into_iter();
            let mut receiver = receiver_at(&copy, &["tree"], Terms::default());
            carry(&mut source_of(&[&tree]), &mut receiver, |_| {
                assert!(!copy.exists(), "a folder that is not whole has its name");
                fates.next().unwrap_or(Fate::Arrives)
            });
        }
        assert_same_tree(&tree, &copy);
    }
}
