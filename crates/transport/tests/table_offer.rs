//! A local program hands its table over: one hello, one sealed memory file, nothing else.

mod harness;

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use harness::{open_descriptors, wait_readable};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use sapwood_transport::{
    SharedTable, TABLE_HELLO_BYTES, TableAccepted, TableListener, TableOffer, TablePeer,
};

/// A program that knows where tables are offered.
struct Program(OwnedFd);

impl Program {
    fn meet(name: &str) -> (Self, TablePeer) {
        let listener = TableListener::bind(name).unwrap();
        assert!(matches!(listener.accept().unwrap(), TableAccepted::Empty));
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        let TableAccepted::Peer(peer) = listener.accept().unwrap() else { panic!("no peer") };
        (Self(socket), peer)
    }

    fn offer(&self, hello: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let hello = [IoSlice::new(hello)];
        rustix::net::sendmsg(&self.0, &hello, &mut control, SendFlags::NOSIGNAL).unwrap();
    }
}

fn receive(peer: &mut TablePeer) -> sapwood_transport::Result<Option<TableOffer>> {
    wait_readable(&*peer);
    peer.receive()
}

fn table_of(words: &[u64]) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("table", flags).unwrap());
    for (index, word) in words.iter().enumerate() {
        file.write_all_at(&word.to_ne_bytes(), 8 * index as u64).unwrap();
    }
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    file
}

/// One story, told in order, since descriptors of this process are counted in it.
#[test]
fn a_table_is_taken_over_and_everything_else_refused() {
    let name = format!("sapwood-test-{}", std::process::id());
    let table = table_of(&[3, 4, 5]);
    let hello = [9; TABLE_HELLO_BYTES];
    {
        let (program, mut peer) = Program::meet(&name);
        assert_eq!(peer.credentials().process, std::process::id() as i32);
        assert!(peer.receive().unwrap().is_none());
        program.offer(&hello, &[table.as_fd()]);
        let offer = receive(&mut peer).unwrap().unwrap();
        assert_eq!(offer.hello, hello);
        let mapped = SharedTable::map(offer.descriptor, 24).unwrap();
        assert_eq!(mapped.copy_words(0..3).unwrap(), [3, 4, 5]);
        table.write_all_at(&6_u64.to_ne_bytes(), 0).unwrap();
        assert_eq!(mapped.load_word(0), Some(6));
        assert!(!peer.is_closed());
        drop(program);
        assert!(peer.is_closed());
        assert_eq!(mapped.load_word(2), Some(5), "the table outlives its program");
    }
    let before = open_descriptors();
    let one = table.as_fd();
    {
        let (program, mut peer) = Program::meet(&name);
        program.offer(&hello, &[one, one]);
        let offer = receive(&mut peer).unwrap().unwrap();
        assert!(offer.control.is_some(), "the second one is its control page");
        assert!(offer.events.is_none());
    }
    {
        let (program, mut peer) = Program::meet(&name);
        program.offer(&hello, &[one; 3]);
        let offer = receive(&mut peer).unwrap().unwrap();
        assert!(offer.events.is_some(), "the third one is its event file");
    }
    let refused: [(&[u8], &[BorrowedFd<'_>]); 6] = [
        (&hello, &[]),
        (&hello, &[one; 4]),
        (&hello, &[one; 8]),
        (&hello[..63], &[one]),
        (&[9; 65], &[one]),
        (&[9; 65], &[]),
    ];
    for (hello, descriptors) in refused {
        let (program, mut peer) = Program::meet(&name);
        program.offer(hello, descriptors);
        assert!(receive(&mut peer).is_err());
    }
    let (program, mut peer) = Program::meet(&name);
    drop(program);
    assert!(receive(&mut peer).is_err());
    drop(peer);
    assert_eq!(open_descriptors(), before, "descriptors that came along were closed");
    assert!(TableListener::bind("").is_err());
}
