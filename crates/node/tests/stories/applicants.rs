//! Orphans that come to a front-end and go again at every step: while their hello waits, and before
//! they have told all.

use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_node::{
    ChildPlan, Event, Input, Instant, LinkId, Node, Output, Recovery, Role, Settings,
};
use sapwood_packet::{Rank, RankSet, Slab};
use sapwood_wire::{
    Claim, Control, Frame, Ranges, WIRE_VERSION, decode, encode_control, frame_length,
};

/// A communication process below the front-end, and what is below it.
const PARENT: Rank = 10;
const FRONT_END: Rank = 8;
const FIRST: LinkId = LinkId(0);
const SECOND: LinkId = LinkId(1);

/// A front-end alone.
struct FrontEnd {
    node: Node,
    now: Instant,
}

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
        Self { node, now: Instant(1) }
    }

    fn input(&mut self, input: Input<'_>) {
        self.node.handle_input(self.now, input);
    }

    fn comes(&mut self, link: LinkId, claim: Claim) {
        self.input(Input::ChildUp { link });
        let address = Some("there".into());
        self.says(link, &Control::Hello { version: WIRE_VERSION, claim, pid: 7 + link.0, address });
    }

    fn says(&mut self, link: LinkId, message: &Control) {
        let mut bytes = Slab::default();
        encode_control(&mut bytes, message).expect("short");
        self.input(Input::Bytes { link, bytes: bytes.as_bytes() });
    }

    /// Lets time pass, and gives the members that are reported lost, each time.
    fn lost_within(&mut self, milliseconds: u64) -> Vec<RankSet> {
        let until = self.now + Duration::from_millis(milliseconds);
        let mut lost = Vec::new();
        while self.now < until {
            self.now = until.min(self.now + Duration::from_millis(100));
            self.input(Input::Timeout);
            while let Some(output) = self.node.poll_output() {
                if let Output::Event(Event::Lost { back_ends, .. }) = output {
                    lost.push(back_ends);
                }
            }
        }
        lost
    }

    fn goes(&mut self, link: LinkId) {
        self.input(Input::LinkDown { link, reason: "connection closed".into() });
    }

    /// The ranks that are welcomed over a link.
    fn welcomed(&mut self, link: LinkId) -> Vec<Rank> {
        while let Some(output) = self.node.poll_output() {
            assert!(!matches!(output, Output::Hangup(gone) if gone == link), "it is hung up");
        }
        let mut bytes = Vec::new();
        self.node.gather(link, |part| {
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

#[test]
fn a_back_end_that_goes_before_it_has_told_all_is_listed_until_it_is_told_of_as_lost() {
    let mut front_end = FrontEnd::new();
    let below = RankSet::range(4, 5);
    front_end.comes(FIRST, Claim::Started { rank: PARENT });
    let back_ends = Ranges::from(&below);
    front_end.says(FIRST, &Control::Reached { back_ends, attach_points: Vec::new() });
    front_end.goes(FIRST);
    front_end.comes(SECOND, Claim::Orphan { rank: 5, between: vec![PARENT] });
    assert_eq!(front_end.welcomed(SECOND), [5]);
    let own = || Ranges::from(&RankSet::range(5, 5));
    let former = Ranges::from(&RankSet::range(PARENT, PARENT));
    let (back_ends, covers, files) = (own(), own(), Vec::new());
    front_end.says(SECOND, &Control::Rejoin { back_ends, covers, former, files });
    front_end.goes(SECOND);
    // Its own place is held for a second, and its parent's for longer.
    assert_eq!(front_end.lost_within(5000), []);
    assert_eq!(front_end.node.application().back_ends(), below);
    assert_eq!(front_end.lost_within(20_000), [below], "once, and both");
    assert_eq!(front_end.node.application().back_ends(), RankSet::new());
}
