//! The file with the address of a group's first member.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sapwood::{AddressFile, Error, Group, GroupBuilder, Key, Result};

const DEADLINE: Duration = Duration::from_secs(20);
/// An address at which no process listens, as a killed member leaves it.
const OLD: &str = "tcp:127.0.0.1:1\n";

struct Place {
    _folder: tempfile::TempDir,
    file: PathBuf,
    builder: GroupBuilder,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("address");
        let builder = Group::builder(Key::generate().unwrap()).deadline(DEADLINE);
        Self { _folder: folder, file, builder }
    }

    fn create(&self) -> Group {
        self.builder.clone().name(0).create().unwrap()
    }

    fn join(&self, patience: Duration, is_interrupted: impl FnMut() -> bool) -> Result<Group> {
        AddressFile::join(&self.file, &self.builder.clone().name(1), patience, is_interrupted)
    }
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn the_file_is_read_again_until_a_member_listens_at_its_address() {
    let place = Place::new();
    let (mut first, mut written, mut looks) = (None, None, 0);
    let joined = place.join(DEADLINE, || {
        looks += 1;
        // No file at first, then that of a dead member.
        match looks {
            1 => std::fs::write(&place.file, OLD).unwrap(),
            _ => {
                assert!(first.is_none(), "the member listens");
                let member = place.create();
                written = Some(AddressFile::write(&place.file, &member).unwrap());
                first = Some(member);
            }
        }
        false
    });
    let (joined, first) = (joined.unwrap(), first.unwrap());
    assert_eq!((looks, text(&place.file)), (2, format!("{}\n", first.address())));
    first.wait_for(2, DEADLINE).unwrap();
    drop(written);
    assert!(!place.file.exists());
    joined.leave().unwrap();
    first.leave().unwrap();
}

#[test]
fn a_wait_ends_with_its_last_reason_or_when_it_is_interrupted() {
    let place = Place::new();
    let late = place.join(Duration::ZERO, || panic!("the time is over")).unwrap_err();
    assert!(matches!(late, Error::NoAddress { .. }), "{late}");
    assert!(late.to_string().contains(place.file.to_str().unwrap()), "{late}");
    let interrupted = place.join(DEADLINE, || true).unwrap_err();
    assert!(matches!(interrupted, Error::Interrupted { .. }), "{interrupted}");
    std::fs::write(&place.file, OLD).unwrap();
    let unheard = place.join(Duration::ZERO, || panic!("the time is over")).unwrap_err();
    assert!(unheard.to_string().contains("no process listens at tcp:127.0.0.1:1"), "{unheard}");
    std::fs::remove_file(&place.file).unwrap();
    std::fs::create_dir(&place.file).unwrap();
    let unreadable = place.join(DEADLINE, || panic!("a folder stays one")).unwrap_err();
    assert!(matches!(unreadable, Error::File { .. }), "{unreadable}");
}

#[test]
fn only_the_own_address_is_removed() {
    let place = Place::new();
    let member = place.create();
    let written = AddressFile::write(&place.file, &member).unwrap();
    std::fs::write(&place.file, OLD).unwrap();
    drop(written);
    assert_eq!(text(&place.file), OLD, "that of another member stays");
    AddressFile::clear(&place.file, &place.builder).unwrap();
    assert!(!place.file.exists());
    AddressFile::clear(&place.file, &place.builder).unwrap();
    // A link that was put in its place stays.
    for target in ["/dev/null", "/no/such/file"] {
        let written = AddressFile::write(&place.file, &member).unwrap();
        std::fs::remove_file(&place.file).unwrap();
        std::os::unix::fs::symlink(target, &place.file).unwrap();
        drop(written);
        AddressFile::clear(&place.file, &place.builder).unwrap();
        assert_eq!(std::fs::read_link(&place.file).unwrap(), Path::new(target));
    }
    let nowhere = place.file.join("nowhere");
    let error = AddressFile::write(&nowhere, &member).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound), "{error}");
    member.leave().unwrap();
}

#[test]
fn the_file_of_a_member_that_lives_is_not_removed() {
    let place = Place::new();
    let member = place.create();
    let written = AddressFile::write(&place.file, &member).unwrap();
    let stranger = Group::builder(Key::generate().unwrap());
    for builder in [&place.builder, &stranger] {
        let error = AddressFile::clear(&place.file, builder).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        assert!(error.to_string().contains(&member.address()), "{error}");
        assert_eq!(text(&place.file), format!("{}\n", member.address()));
    }
    member.leave().unwrap();
    AddressFile::clear(&place.file, &place.builder).unwrap();
    assert!(!place.file.exists(), "the member is gone");
    drop(written);
}

/// Its process accepts connections and says nothing, as one that is stopped.
#[test]
fn the_file_of_a_member_that_does_not_answer_is_not_removed() {
    let place = Place::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", silent.local_addr().unwrap());
    std::fs::write(&place.file, &address).unwrap();
    let error = AddressFile::clear(&place.file, &place.builder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "{error}");
    let said = error.to_string();
    assert!(said.contains(&address) && said.lines().count() == 1, "{said}");
    assert_eq!(text(&place.file), address);
    drop(silent);
    AddressFile::clear(&place.file, &place.builder).unwrap();
    assert!(!place.file.exists(), "no process listens any more");
    // What is no address names no member.
    std::fs::write(&place.file, "nowhere\n").unwrap();
    AddressFile::clear(&place.file, &place.builder).unwrap();
    assert!(!place.file.exists());
}
