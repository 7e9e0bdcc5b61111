//! Orphans whose hello waits, while links close and their numbers are given to others.

use sapwood_filter::Registry;
use sapwood_node::{ChildPlan, Input, Instant, LinkId, Node, Output, Recovery, Role, Settings};
use sapwood_packet::{Rank, RankSet, Slab};
use sapwood_wire::{Claim, Control, Frame, WIRE_VERSION, decode, encode_control, frame_length};

/// A communication process below the front-end, and what is below it.
const PARENT: Rank = 10;
const FRONT_END: Rank = 8;
const FIRST: LinkId = LinkId(0);
const SECOND: LinkId = LinkId(1);

/// A front-end alone, whose clock stands.
struct FrontEnd(Node);

impl FrontEnd {
    fn new() -> Self {
        let mut node = Node::new(Settings {
            role: Role::FrontEnd,
            rank: Some(FRONT_END),
            is_started: true,
            pid: 1,
            address: Some("here".into()),
            registry: Registry::built_in(),
            recovery: Recovery::default(),
        });
        let child = ChildPlan { rank: PARENT, back_ends: RankSet::range(4, 7), plan: vec![1] };
        node.expect(vec![child], RankSet::new(), 3, 8);
        Self(node)
    }

    fn input(&mut self, input: Input<'_>) {
        self.0.handle_input(Instant(1), input);
    }

    fn comes(&mut self, link: LinkId, claim: Claim) {
        self.input(Input::ChildUp { link });
        let mut bytes = Slab::default();
        let address = Some("there".into());
        let hello = Control::Hello { version: WIRE_VERSION, claim, pid: 7 + link.0, address };
        encode_control(&mut bytes, &hello).expect("short");
        self.input(Input::Bytes { link, bytes: bytes.as_bytes() });
    }

    fn goes(&mut self, link: LinkId) {
        self.input(Input::LinkDown { link, reason: "connection closed".into() });
    }

    /// The ranks that are welcomed over a link.
    fn welcomed(&mut self, link: LinkId) -> Vec<Rank> {
        while let Some(output) = self.0.poll_output() {
            assert!(!matches!(output, Output::Hangup(gone) if gone == link), "it is hung up");
        }
        let mut bytes = Vec::new();
        self.0.gather(link, |part| {
            bytes.extend_from_slice(part);
            true
        });
        let slab = Slab::copy_of(&bytes);
        let (mut rest, mut ranks) = (slab.as_bytes(), Vec::new());
        while let Ok(Some(length)) = frame_length(rest) {
            if let Ok(Frame::Control(Control::Welcome { rank, .. })) = decode(&rest[..length]) {
                ranks.push(rank);
            }
            rest = &rest[length..];
        }
        ranks
    }
}

#[test]
fn an_orphan_is_not_taken_for_one_that_waited_on_a_link_of_the_same_number() {
    let mut front_end = FrontEnd::new();
    front_end.comes(FIRST, Claim::Started { rank: PARENT });
    // A process below that one comes, which is not known to be gone, and goes before it is.
    front_end.comes(SECOND, Claim::Orphan { rank: 13, between: vec![PARENT] });
    assert_eq!(front_end.welcomed(SECOND), [] as [Rank; 0], "it waits");
    front_end.goes(SECOND);
    // A child of its comes over the next link, which has the same number.
    front_end.comes(SECOND, Claim::Orphan { rank: 5, between: vec![13, PARENT] });
    front_end.goes(FIRST);
    assert_eq!(front_end.welcomed(SECOND), [5]);
}
