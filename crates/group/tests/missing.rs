//! What the root of a transfer makes of the virtual nodes that others have given up.

use sapwood_group::message::{Life, Ranges, Record};
use sapwood_group::{
    Answer, Call, CastId, Config, MemberId, Message, Payload, Reason, SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::support::{Lonely, config, record};

const CHILD: MemberId = MemberId(2);
const OTHER: MemberId = MemberId(3);
const REQUEST: u64 = 9;

/// The member with the virtual node 1, from which a transfer starts. The members that carry 2 and
/// 3 exist in its view only.
struct Root(Lonely);

impl Root {
    /// Starts a broadcast of some bytes to the three virtual nodes.
    fn broadcast(tree: TreeKind, bytes: usize) -> Self {
        let config = Config {
            bulk_bytes: 256,
            stripe_bytes: 400,
            segment_bytes: Some(128),
            ..config(MemberId(1))
        };
        let mut root = Self(Lonely::among(config, &[CHILD, OTHER]));
        let call = Call::Broadcast { targets: None, value: vec![7; bytes].into(), tag: 0 };
        root.0.call(REQUEST, tree, 10 * SECOND, call);
        root
    }

    fn answer(&self) -> Option<&Answer> {
        self.0.answer(REQUEST)
    }

    /// The receivers of the transfer's openings since the last look, with stripe and targets.
    fn openings(&mut self) -> Vec<(MemberId, u8, String)> {
        let opening = |(to, message): (MemberId, Message)| match message {
            Message::Open { head, targets, .. } => {
                Some((to, head.stripe, targets.as_set().to_string()))
            }
            _ => None,
        };
        self.0.sent.drain(..).filter_map(opening).collect()
    }

    /// A child says of a stripe which virtual nodes have it, and which one cannot get it.
    fn done(&mut self, from: MemberId, stripe: u8, names: &str, failed: Option<(u32, Reason)>) {
        let cast = CastId { root: self.0.member.id(), number: 1 };
        let names = Ranges::from(&names.parse::<RankSet>().expect("a set"));
        let failed = failed.map(|(name, why)| (Ranges::from(&RankSet::range(name, name)), why));
        let failed = failed.into_iter().collect();
        self.0.hear(from, Message::Done { cast, stripe, names, failed });
    }
}

/// One stripe went by a member that knew of the end in another way than the root.
#[test]
fn a_virtual_node_that_two_stripes_lack_for_two_reasons_is_missing_once() {
    let mut root = Root::broadcast(TreeKind::Adaptive, 3000);
    let stripes = root.openings();
    assert_eq!(stripes, [(CHILD, 0, "2-3".into()), (OTHER, 1, "2-3".into())]);
    root.0.learn(CHILD, vec![Record { life: Life::Dead, ..record(OTHER) }]);
    assert_eq!(root.openings(), [(CHILD, 1, "2".into())], "the other stripe is taken over");
    root.done(CHILD, 0, "", Some((3, Reason::Left)));
    assert_eq!(root.answer(), None);
    root.done(CHILD, 1, "2", None);
    let answer = root.answer().expect("an answer");
    assert_eq!(answer.contributors.to_string(), "1-2");
    assert_eq!(answer.missing, [(RankSet::range(3, 3), Reason::Left)]);
}

/// Its other stripe came so late that it had given the first one up.
#[test]
fn a_virtual_node_that_has_acknowledged_one_stripe_has_all() {
    let mut root = Root::broadcast(TreeKind::Adaptive, 3000);
    root.done(CHILD, 0, "2", None);
    root.done(OTHER, 0, "", Some((3, Reason::Deadline)));
    assert_eq!(root.answer(), None, "the other stripe is under way to it");
    root.done(OTHER, 1, "3", None);
    let answer = root.answer().expect("an answer");
    assert_eq!((answer.contributors.to_string(), &answer.missing), ("1-3".into(), &Vec::new()));
}

/// The child had heard of the end of the member that carried 3 before, and not of the new one.
#[test]
fn a_member_that_a_child_does_not_know_gets_the_transfer_from_the_root() {
    let mut root = Root::broadcast(TreeKind::List, 100);
    assert_eq!(root.openings(), [(CHILD, 0, "2-3".into())]);
    root.done(CHILD, 0, "2", Some((3, Reason::Dead)));
    assert_eq!(root.answer(), None, "the root knows the member that carries 3");
    assert_eq!(root.openings(), [(OTHER, 0, "3".into())]);
    let cast = CastId { root: MemberId(1), number: 1 };
    let segments = (&RankSet::new()).into();
    root.0.hear(OTHER, Message::Have { cast, stripe: 0, segments });
    let value = Payload::from(vec![7; 100]);
    let segment = Message::Segment { cast, stripe: 0, index: 0, data: value };
    assert!(root.0.sent.contains(&(OTHER, segment)));
    root.done(OTHER, 0, "3", None);
    let answer = root.answer().expect("an answer");
    assert_eq!((answer.contributors.to_string(), &answer.missing), ("1-3".into(), &Vec::new()));
}

#[test]
fn what_a_member_says_of_its_own_virtual_nodes_is_the_end() {
    let mut root = Root::broadcast(TreeKind::List, 100);
    root.done(CHILD, 0, "2", Some((3, Reason::Dead)));
    root.done(OTHER, 0, "", Some((3, Reason::Left)));
    let answer = root.answer().expect("an answer");
    assert_eq!(answer.missing, [(RankSet::range(3, 3), Reason::Left)]);
}
