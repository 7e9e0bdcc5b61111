//! Liars: processes that have the key and say what is not theirs to say. Each kind of lie breaks
//! the liar's link and names it; all other streams go on with exact values, no process is
//! counted twice, and a long message costs its receiver no memory.
#[path = "liars/desk.rs"]
mod desk;

use desk::{COMMUNICATION, Desk, LIAR, OTHERS, PEAK, Speaker, contribution, control, packet, wide};
use sapwood_filter::WaveRule;
use sapwood_packet::{Header, Order, PacketRef, RankSet};
use sapwood_wire::{Cause, Claim, Control, ProbeId, Ranges, WIRE_VERSION};

/// A lie: its name, what is said of it, and the bytes.
struct Lie {
    name: &'static str,
    /// Words of the reason.
    said: &'static str,
    bytes: Vec<u8>,
}

fn lie(name: &'static str, said: &'static str, bytes: Vec<u8>) -> Lie {
    Lie { name, said, bytes }
}

fn ranges(text: &str) -> Ranges {
    Ranges::from(&text.parse::<RankSet>().expect("a set"))
}

/// What a process may never say to its parent.
fn from_above() -> Vec<Lie> {
    let claim = Claim::Started { rank: LIAR };
    let hello = Control::Hello { version: WIRE_VERSION, claim, pid: 1, address: None };
    let welcome = Control::Welcome {
        parent: 9,
        rank: 4,
        back_ends: 4,
        plan: Vec::new(),
        ancestors: Vec::new(),
        terms: Default::default(),
        is_responsive: true,
    };
    let messages = [
        ("hello twice", "Hello a second time", hello),
        ("welcome", "Welcome, which only goes down", welcome),
        ("refused", "Refused, which only goes down", Control::Refused { reason: "no".into() }),
        ("close", "Close, which only goes down", Control::Close { stream: 1 }),
        ("shutdown", "Shutdown, which only goes down", Control::Shutdown),
        ("dissolve", "Dissolve, which only goes down", Control::Dissolve),
        ("ancestry", "Ancestry, which", Control::Ancestry { ancestors: Vec::new(), repairs: true }),
        ("question", "Question, which is for visitors", Control::Question { bytes: vec![1] }),
        ("reply", "Reply", Control::Reply { is_last: true, bytes: Vec::new() }),
    ];
    messages.into_iter().map(|(name, said, message)| lie(name, said, control(&message))).collect()
}

/// What is said of being an orphan by one that never was.
fn of_orphans() -> Vec<Lie> {
    let rejoin = Control::Rejoin {
        back_ends: ranges("0"),
        covers: ranges("0-3"),
        former: ranges("5"),
        files: Vec::new(),
    };
    let resume = Control::Resume { stream: 2, up: (0, 0), down: (0, 0) };
    vec![
        lie("rejoin", "Rejoin, and is no orphan", control(&rejoin)),
        lie("resumed", "Resumed, and is no orphan", control(&Control::Resumed)),
        lie("resume", "Resume", control(&resume)),
    ]
}

/// What a back-end says of others, as a communication process does.
fn of_others() -> Vec<Lie> {
    let said = "which only a communication process says";
    let text = || String::from("gone");
    let (rank, back_ends) = (5, || ranges("1-3"));
    let repaired = Control::Repaired {
        rank,
        adopter: 0,
        orphans: vec![1],
        back_ends: back_ends(),
        waves: Vec::new(),
    };
    let state = Control::State {
        stream: 1,
        filter: 0,
        wave: 0,
        format: Vec::new(),
        values: Vec::new(),
        absorbed: ranges("5"),
    };
    let reached = Control::Reached { back_ends: back_ends(), attach_points: Vec::new() };
    let broken =
        Control::Broken { rank, back_ends: back_ends(), reason: text(), cause: Cause::Died };
    vec![
        lie("superseded", said, control(&Control::Superseded { ranks: ranges("5") })),
        lie("reached", said, control(&reached)),
        lie("failed", said, control(&Control::Failed { rank: 1, text: text() })),
        lie("notice", said, control(&Control::Notice { rank: 1, text: text() })),
        lie(
            "lost",
            said,
            control(&Control::Lost {
                rank,
                back_ends: back_ends(),
                reason: text(),
                cause: Cause::Died,
            }),
        ),
        lie("broken", said, control(&broken)),
        lie("repaired", said, control(&repaired)),
        lie("state", said, control(&state)),
    ]
}

/// What is wrong of any child: contributors, waves, streams and credit that are not its own.
fn of_streams() -> Vec<Lie> {
    let own = |wave: u64| Header { wave, ends_wave: true, ..Header::default() };
    let with = |header: Header, stream: u32, ranks: &str| packet(header, stream, ranks, 1);
    let fault = Control::Fault {
        stream: 1,
        wave: Some(0),
        rank: 0,
        back_ends: ranges("0-3"),
        reason: "lost".into(),
        cause: Cause::Died,
    };
    let acknowledge = Control::Acknowledge { stream: 1, wave: 7, offset: 0, singles: 0 };
    let credit = |stream| control(&Control::Credit { stream, bytes: 1 << 20 });
    vec![
        lie("others' ranks", "for back-ends that are not below it", with(own(0), 1, "0-3")),
        lie("ranks outside", "for back-ends that are not below it", with(own(0), 1, "0,4-2000")),
        lie("faults of others", "about back-ends that are not below it", control(&fault)),
        lie("no such stream", "which has never been opened", with(own(0), 77, "0")),
        lie("credit elsewhere", "which has never been opened", credit(77)),
        lie("not its stream", "which it has no member of", with(own(0), OTHERS, "0")),
        lie("credit", "more than it was sent", credit(1)),
        lie("acknowledge", "which it was not sent", control(&acknowledge)),
        lie("far ahead", "where it was at wave 0", with(own(u64::MAX - 9), 1, "0")),
    ]
}

/// What is wrong of a back-end, and may be right of a communication process.
fn of_back_ends() -> Vec<Lie> {
    let own = Header { ends_wave: true, ..Header::default() };
    let twice = [packet(own, 1, "0", 1), packet(own, 1, "0", 1)].concat();
    let late = Header { late: true, ..own };
    let direct = Header { order: Order::Direct, ..own };
    let end = Header { order: Order::Last, void: true, ..own };
    let end = {
        let header = Header { stream: 1, ..end };
        desk::encoded(&PacketRef { header, ..PacketRef::default() })
    };
    vec![
        lie("own rank twice", "wave 0 a second time", twice),
        lie("late", "that only a communication process sends", packet(late, 1, "0", 1)),
        lie("for no rank", "values for no back-end", packet(own, 1, "", 1)),
        lie("direct", "a reply of a filter, and runs none", packet(direct, 1, "0", 1)),
        lie("the end", "a packet that only a communication process sends", end),
        lie("origin", "a packet of rank 2", packet(Header { origin: 2, ..own }, 1, "0", 1)),
    ]
}

/// Every message that carries a rank set, with one of 500,000 ranges.
fn wide_sets() -> Vec<Lie> {
    let text = String::new;
    let (rank, stream, wave) = (0, 1, 0);
    let none = Ranges::default;
    let point = (0, text(), wide());
    let messages = [
        ("Reached", Control::Reached { back_ends: wide(), attach_points: Vec::new() }),
        ("Reached", Control::Reached { back_ends: none(), attach_points: vec![point] }),
        ("Lost", Control::Lost { rank, back_ends: wide(), reason: text(), cause: Cause::Died }),
        (
            "Fault",
            Control::Fault {
                stream,
                wave: Some(wave),
                rank,
                back_ends: wide(),
                reason: text(),
                cause: Cause::Died,
            },
        ),
        ("Broken", Control::Broken { rank, back_ends: wide(), reason: text(), cause: Cause::Died }),
        ("Superseded", Control::Superseded { ranks: wide() }),
        (
            "Rejoin",
            Control::Rejoin { back_ends: wide(), covers: none(), former: none(), files: vec![] },
        ),
        (
            "Rejoin",
            Control::Rejoin { back_ends: none(), covers: none(), former: wide(), files: vec![] },
        ),
        (
            "Repaired",
            Control::Repaired {
                rank,
                adopter: 0,
                orphans: vec![],
                back_ends: wide(),
                waves: vec![],
            },
        ),
        (
            "State",
            Control::State {
                stream,
                filter: 0,
                wave,
                format: vec![],
                values: vec![],
                absorbed: wide(),
            },
        ),
    ];
    messages.into_iter().map(|(name, message)| lie(name, name, control(&message))).collect()
}

/// Tells a lie, and looks whether its teller alone has to bear it.
fn tell(lie: &Lie, speaker: Speaker) {
    let mut desk = Desk::new();
    let unrelated = desk.open(speaker.unrelated(), WaveRule::All);
    let shared = desk.shared;
    desk.say(speaker.link(), &lie.bytes);
    let name = lie.name;
    let reason =
        desk.reason_of(speaker).unwrap_or_else(|| panic!("{name} of {speaker:?} is let be"));
    assert!(reason.contains("broke the protocol: sent"), "{name}: {reason}");
    assert!(reason.contains(lie.said), "{name}: {reason}");
    assert!(desk.is_cut(speaker.link()), "{name}: the link is broken");
    for wave in 0..3 {
        let answer = desk.wave(unrelated, wave, speaker.unrelated());
        assert_eq!(answer.contributors, *speaker.unrelated(), "{name}");
        assert_eq!(desk::value(&answer), contribution(speaker.unrelated()), "{name}");
        assert!(answer.missing.is_empty(), "{name}: {:?}", answer.missing);
    }
    // The stream that the liar is a member of goes on without it; a communication process's place
    // is held for those below it, which are no liars.
    if speaker == Speaker::BackEnd {
        let rest: RankSet = "1-3".parse().expect("a set");
        let answer = desk.wave(shared, 1, &rest);
        assert_eq!(answer.contributors, rest, "{name}");
        assert_eq!(desk::value(&answer), contribution(&rest), "{name}");
        let missing = &answer.missing[0];
        assert!(missing.ranks.contains(LIAR) && missing.reason.contains("broke the protocol"));
    }
    desk.nobody_is_counted_twice();
}

#[test]
fn a_back_end_that_lies_is_broken_off_and_named() {
    let lies = [from_above(), of_orphans(), of_others(), of_streams(), of_back_ends()];
    for lie in lies.iter().flatten() {
        tell(lie, Speaker::BackEnd);
    }
}

#[test]
fn a_communication_process_that_lies_is_broken_off_and_named() {
    let own = Header { ends_wave: true, origin: COMMUNICATION, ..Header::default() };
    let about = "back-ends that are not below it";
    let (rank, back_ends) = (COMMUNICATION, || ranges("0-3"));
    let reached = Control::Reached { back_ends: back_ends(), attach_points: Vec::new() };
    let lost =
        Control::Lost { rank, back_ends: back_ends(), reason: "gone".into(), cause: Cause::Died };
    let fault = Control::Fault {
        stream: 1,
        wave: Some(0),
        rank,
        back_ends: back_ends(),
        reason: "no".into(),
        cause: Cause::Died,
    };
    let credit = Control::Credit { stream: 1, bytes: 1 << 20 };
    let lies = [
        lie("others' ranks", "for back-ends that are not below it", packet(own, 1, "0-3", 1)),
        lie("ranks outside", "for back-ends that are not below it", packet(own, 1, "2-2000", 1)),
        lie("origin", "which is not below it", packet(Header { origin: 1, ..own }, 1, "2", 1)),
        lie("no such stream", "has never been opened", packet(own, 77, "2", 1)),
        lie("not its stream", "no member of", packet(own, 2, "2", 1)),
        lie("reached", about, control(&reached)),
        lie("lost", about, control(&lost)),
        lie("fault", about, control(&fault)),
        lie(
            "superseded",
            "nothing to do with it",
            control(&Control::Superseded { ranks: ranges("0") }),
        ),
        lie("failed", "not below it", control(&Control::Failed { rank: 1, text: "x".into() })),
        lie("notice", "not below it", control(&Control::Notice { rank: 1, text: "x".into() })),
        lie("credit", "more than it was sent", control(&credit)),
        lie("resumed", "Resumed, and is no orphan", control(&Control::Resumed)),
    ];
    for lie in from_above().iter().chain(&lies) {
        tell(lie, Speaker::Communication);
    }
}

#[test]
fn a_wide_set_costs_its_receiver_no_memory() {
    for lie in wide_sets() {
        for speaker in [Speaker::BackEnd, Speaker::Communication] {
            tell(&lie, speaker);
            let mut desk = Desk::new();
            let before = desk::begin_peak();
            desk.say(speaker.link(), &lie.bytes);
            // The message has three megabytes. It is refused when its first bytes have come.
            let most = 128 << 10;
            let peak = PEAK.get() - before;
            assert!(peak < most, "{} of {speaker:?} took {peak} bytes", lie.name);
            let left = desk::BYTES.get() - before;
            assert!(left < 64 << 10, "{} of {speaker:?} left {left} bytes", lie.name);
        }
    }
}

#[test]
fn an_orphan_speaks_for_nobody_else() {
    for (name, covers, former, said) in [
        ("covers others", "0-3", "", "about back-ends that are not below it"),
        ("left another process's parent", "0", "5", "rank 5, which has nothing to do with it"),
    ] {
        let mut desk = Desk::new();
        let unrelated = desk.open(Speaker::BackEnd.unrelated(), WaveRule::All);
        desk.orphan(LIAR, 7);
        let rejoin = Control::Rejoin {
            back_ends: ranges("0"),
            covers: ranges(covers),
            former: ranges(former),
            files: Vec::new(),
        };
        desk.say(7, &control(&rejoin));
        let reason = desk.reason_of(Speaker::BackEnd).expect(name);
        assert!(reason.contains(said), "{name}: {reason}");
        let answer = desk.wave(unrelated, 0, Speaker::BackEnd.unrelated());
        assert_eq!(desk::value(&answer), contribution(Speaker::BackEnd.unrelated()), "{name}");
    }
}

#[test]
fn notices_of_one_child_are_bounded_and_the_last_says_so() {
    let mut desk = Desk::new();
    let notice = Control::Notice { rank: COMMUNICATION, text: "its clock is off".into() };
    let (bytes, link) = (control(&notice), Speaker::Communication.link());
    for _ in 0..5000 {
        desk.say(link, &bytes);
    }
    assert!(!desk.is_cut(link), "a notice is no breach");
    let notices = desk.notices();
    assert_eq!(notices.len(), 1024);
    let last = format!("further notices from below rank {COMMUNICATION} are dropped");
    assert_eq!(notices.last(), Some(&last.as_str()));
    assert!(notices[..1023].iter().all(|text| *text == "its clock is off"));
}

#[test]
fn an_echo_that_was_not_asked_for_changes_nothing() {
    let mut desk = Desk::new();
    let link = Speaker::Communication.link();
    let probes = [None, Some(ProbeId::Barrier(7)), Some(ProbeId::Heartbeat(u64::MAX))];
    for probe in probes {
        desk.say(link, &control(&Control::Echo { probe, clock: 3 }));
        assert!(!desk.is_cut(link), "{probe:?}");
    }
    let everyone = RankSet::range(0, 1);
    let stream = desk.open(&everyone, WaveRule::All);
    assert!(desk.wave(stream, 0, &everyone).missing.is_empty());
}
