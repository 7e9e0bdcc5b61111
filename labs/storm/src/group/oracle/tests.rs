//! Right answers pass, and each kind of wrong one is caught by its rule.

use super::super::calls::compose;
use super::super::value::{Digest, Part};
use super::*;

const BYTES: usize = 4096;

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn set(text: &str) -> RankSet {
    text.parse().unwrap()
}

fn bytes_of(numbers: &[i64]) -> Given {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Given::Whole(Digest::of_bytes(&bytes))
}

/// What a member gets of these contributions.
fn given(ask: &Ask, name: Rank, contributors: &RankSet) -> Given {
    let part = |name: Rank, bytes: Vec<u8>| Part { name, digest: Digest::of_bytes(&bytes) };
    let of_each =
        |part: &dyn Fn(Rank) -> Part| Given::Parts(contributors.iter().map(part).collect());
    let folded = |fold: fn(&mut [i64], &[i64])| {
        let mut values = contributors.iter().map(|from| ask.odd_numbers(from));
        let first = values.next().unwrap();
        bytes_of(&values.fold(first, |mut folded, value| {
            fold(&mut folded, &value);
            folded
        }))
    };
    match ask.collective {
        Collective::Broadcast | Collective::Send => Given::Whole(Digest::of_bytes(&ask.payload())),
        Collective::Scatter => Given::Parts(vec![part(name, ask.text(ask.root, Some(name)))]),
        Collective::Reduce | Collective::Allreduce => bytes_of(&ask.sum(contributors)),
        Collective::ReduceDefined => folded(|into, value| {
            into.iter_mut().zip(value).for_each(|(one, other)| *one = one.wrapping_mul(*other));
        }),
        Collective::AllreduceInOrder => folded(compose),
        Collective::Gather | Collective::Allgather => {
            of_each(&|from| part(from, ask.text(from, None)))
        }
        Collective::ReduceScatter => {
            let (first, block) = (name as usize * ask.block(), ask.block());
            bytes_of(&ask.sum(contributors)[first..first + block])
        }
        Collective::AllToAll => of_each(&|from| part(from, ask.text(from, Some(name)))),
    }
}

/// Makes a digest wrong: that of the value, or of the last of several.
fn falsify(given: &mut Given, change: impl Fn(&mut Digest)) {
    match given {
        Given::Whole(digest) => change(digest),
        Given::Parts(parts) => change(&mut parts.last_mut().unwrap().digest),
    }
}

/// Four members that have long been there, and an operation of all of them at the virtual node 1.
struct Scene {
    lives: Lives,
    operation: Operation,
}

impl Scene {
    fn new(collective: Collective) -> Self {
        let mut lives = Lives::default();
        for name in 0..4 {
            let process = lives.start(name, Duration::ZERO);
            lives.join(process, second(1));
        }
        let (root, to, members) = (1, if collective == Collective::Send { 2 } else { 1 }, 4);
        let ask = Ask { collective, number: 5, root, to, members, bytes: BYTES, seed: 9 };
        let asked: BTreeSet<ProcessNumber> = match collective {
            Collective::Send => [1, 2].into(),
            _ => (0..4).collect(),
        };
        let answers = BTreeMap::new();
        let operation = Operation { ask, issued: second(30), asked, answers, is_struck: false };
        let mut scene = Self { lives, operation };
        for process in scene.operation.asked.clone() {
            scene.answer(process, "0-3");
        }
        scene
    }

    /// A right answer, with these contributors where all contribute.
    fn answer(&mut self, process: ProcessNumber, contributors: &str) {
        let ask = self.operation.ask;
        let (name, all) = (process as Rank, set(contributors));
        let is_root = name == ask.root;
        let contributors = match ask.collective.flow() {
            Flow::FromRoot if !is_root => set("1"),
            Flow::ToRoot if !is_root => RankSet::range(name, name),
            _ => match ask.collective {
                Collective::Send => set("2"),
                // To itself the root sends nothing.
                Collective::Scatter => all.difference(set("1").as_ref()),
                _ => all.clone(),
            },
        };
        let is_given = match ask.collective {
            Collective::Send => name == ask.to,
            _ => ask.collective.flow() != Flow::ToRoot || is_root,
        };
        let answer = Reported {
            at: second(31),
            took: Duration::from_millis(900),
            known: set("0-3"),
            names: RankSet::range(name, name),
            contributors,
            missing: Vec::new(),
            value: is_given.then(|| given(&ask, name, &all)),
            error: None,
        };
        self.operation.answers.insert(process, answer);
    }

    fn at(&mut self, process: ProcessNumber) -> &mut Reported {
        self.operation.answers.get_mut(&process).unwrap()
    }

    fn misses(&mut self, process: ProcessNumber, names: &str) {
        self.at(process).missing.push((set(names), "the member is dead or cut off".to_string()));
    }

    fn verdict(&self) -> Verdict {
        self.operation.judge(&self.lives)
    }

    /// Asserts that something is wrong, and that it is said in these words.
    fn is_caught(&self, words: &str) {
        let Verdict { faults, .. } = self.verdict();
        assert!(faults.iter().any(|fault| fault.contains(words)), "{words}: {faults:?}");
    }
}

#[test]
fn right_answers_are_right_and_complete() {
    for collective in Collective::ALL {
        let verdict = Scene::new(collective).verdict();
        assert_eq!(verdict, Verdict { is_complete: true, faults: Vec::new() }, "{collective:?}");
    }
}

#[test]
fn what_is_without_a_killed_member_is_incomplete_and_right() {
    for collective in Collective::ALL {
        let mut scene = Scene::new(collective);
        scene.lives.disturb(2, second(29));
        scene.lives.end(2, second(30));
        scene.operation.answers.remove(&2);
        let asked: &[ProcessNumber] = match collective.flow() {
            Flow::ThroughRoot | Flow::BetweenAll => &[0, 1, 3],
            Flow::FromRoot | Flow::ToRoot => &[1],
        };
        for process in asked {
            scene.answer(*process, "0-1,3");
            scene.at(*process).contributors.subtract(set("2").as_ref());
            scene.misses(*process, "2");
        }
        let verdict = scene.verdict();
        assert_eq!(verdict, Verdict { is_complete: false, faults: Vec::new() }, "{collective:?}");
    }
}

#[test]
fn a_wrong_byte_or_a_wrong_sum_is_caught() {
    for collective in Collective::ALL {
        let mut scene = Scene::new(collective);
        let process = if collective == Collective::Send { 2 } else { 1 };
        let right = scene.at(process).value.clone();
        falsify(scene.at(process).value.as_mut().unwrap(), |digest| digest.mixed ^= 1);
        scene.is_caught("is not that of");
        scene.at(process).value = right;
        falsify(scene.at(process).value.as_mut().unwrap(), |digest| digest.bytes -= 8);
        scene.is_caught("is not that of");
    }
}

#[test]
fn a_sum_with_a_contribution_that_is_not_named_is_caught() {
    let mut scene = Scene::new(Collective::Reduce);
    scene.lives.disturb(2, second(29));
    scene.at(1).contributors = set("0-1,3");
    scene.misses(1, "2");
    scene.is_caught("is not that of 0-1,3");
}

#[test]
fn a_calm_member_that_is_missing_or_not_named_is_caught() {
    for collective in [Collective::Broadcast, Collective::Reduce] {
        let mut scene = Scene::new(collective);
        scene.answer(1, "0-2");
        scene.is_caught("does not name 3");
        scene.misses(1, "3");
        scene.is_caught("3 was calm, and is missing: the member is dead");
    }
}

#[test]
fn a_member_that_is_killed_after_the_call_must_be_named() {
    let mut scene = Scene::new(Collective::Reduce);
    scene.lives.disturb(3, Duration::from_millis(30_700));
    scene.answer(1, "0-2");
    scene.is_caught("does not name 3");
    scene.misses(1, "3");
    assert_eq!(scene.verdict().faults, [""; 0]);
}

#[test]
fn a_new_member_that_the_root_does_not_know_may_be_left_out_for_a_while() {
    let mut scene = Scene::new(Collective::Reduce);
    let newcomer = scene.lives.start(7, second(28));
    scene.lives.join(newcomer, second(29));
    scene.operation.asked.insert(newcomer);
    assert_eq!(scene.verdict().faults, [""; 0]);
    scene.at(1).known = set("0-3,7");
    scene.is_caught("does not name 7");
    scene.at(1).known = set("0-3");
    scene.lives.join(newcomer, second(10));
    scene.is_caught("does not name 7");
}

#[test]
fn who_contributes_and_is_missing_is_caught() {
    let mut scene = Scene::new(Collective::Allreduce);
    scene.misses(0, "3");
    scene.is_caught("3 is in two sets, the second among the missing: 0-3");
    scene.is_caught("has another result than member 0");
}

#[test]
fn contributors_that_were_not_asked_or_have_no_process_are_caught() {
    let mut scene = Scene::new(Collective::Reduce);
    scene.answer(1, "0-4");
    scene.is_caught("4 contributes, and had no process");
    scene.is_caught("0-4 contribute, where 0-3 were asked");
    let mut scene = Scene::new(Collective::Reduce);
    scene.misses(1, "900");
    scene.is_caught("names 900, which never had a process");
}

#[test]
fn a_contributor_without_the_value_is_caught() {
    for collective in [Collective::Broadcast, Collective::Scatter, Collective::Allreduce] {
        let mut scene = Scene::new(collective);
        scene.at(3).value = None;
        scene.is_caught("member 3: contributes, and has no value");
        scene.lives.disturb(3, Duration::from_millis(30_900));
        assert_eq!(scene.verdict().faults, [""; 0], "it was stopped");
    }
}

#[test]
fn a_member_may_lack_the_sum_of_a_root_that_ended_after_its_own_answer() {
    for (collective, faults) in [(Collective::Broadcast, 1), (Collective::Allreduce, 0)] {
        let mut scene = Scene::new(collective);
        scene.at(3).value = None;
        scene.at(3).at = second(42);
        scene.lives.disturb(1, second(32));
        scene.lives.end(1, second(32));
        assert_eq!(scene.verdict().faults.len(), faults, "{collective:?}");
    }
}

#[test]
fn a_value_for_one_that_gets_none_and_a_call_that_failed_are_caught() {
    let mut scene = Scene::new(Collective::Reduce);
    scene.at(2).value = scene.at(1).value.clone();
    scene.is_caught("which only the root gets");
    scene.at(2).value = None;
    scene.at(2).error = Some("operation 5 exists already".to_string());
    scene.is_caught("the call failed: operation 5");
    scene.at(1).value = None;
    scene.is_caught("the root has no value");
}

#[test]
fn a_fold_in_another_order_is_caught() {
    let mut scene = Scene::new(Collective::AllreduceInOrder);
    let ask = scene.operation.ask;
    let mut folded = ask.odd_numbers(1);
    [0, 2, 3].into_iter().for_each(|home| compose(&mut folded, &ask.odd_numbers(home)));
    scene.at(0).value = Some(bytes_of(&folded));
    scene.is_caught("member 0: the value of 1024 bytes is not that of 0-3");
}

#[test]
fn a_part_that_is_lacking_doubled_or_of_another_is_caught() {
    for collective in [Collective::Gather, Collective::Allgather, Collective::AllToAll] {
        let mut scene = Scene::new(collective);
        let Some(Given::Parts(right)) = scene.at(1).value.clone() else { panic!("{collective:?}") };
        let with = |scene: &mut Scene, parts: Vec<Part>, words: &str| {
            scene.at(1).value = Some(Given::Parts(parts));
            scene.is_caught(words);
        };
        with(&mut scene, right[1..].to_vec(), "0 contributes, and its part is not there");
        with(&mut scene, [&right[..], &right[3..]].concat(), "the part of 3 for");
        let swapped = Part { name: 2, ..right[3] };
        with(&mut scene, [&right[..3], &[swapped]].concat(), "the part of 3 is called that of 2");
    }
    let mut scene = Scene::new(Collective::Scatter);
    let ask = scene.operation.ask;
    let part = |name| Part { name, digest: Digest::of_bytes(&ask.text(1, Some(name))) };
    scene.at(2).value = Some(Given::Parts(vec![part(3)]));
    scene.is_caught("has the part for 3, which it does not carry");
    scene.is_caught("carries 2, and has no part for it");
}

#[test]
fn a_calm_member_that_another_one_lacks_in_an_all_to_all_is_caught() {
    let mut scene = Scene::new(Collective::AllToAll);
    scene.answer(3, "0,2-3");
    scene.misses(3, "1");
    scene.is_caught("member 3: 1 was calm, and is missing: the member is dead");
    scene.at(1).known = set("0-2");
    assert_eq!(scene.verdict().faults, [""; 0], "it did not know of the other");
}

#[test]
fn what_is_sent_to_one_must_come_and_to_no_other() {
    let mut scene = Scene::new(Collective::Send);
    scene.at(2).value = None;
    scene.is_caught("member 2: contributes, and has no value");
    let mut scene = Scene::new(Collective::Send);
    scene.at(1).contributors.clear();
    scene.misses(1, "2");
    scene.is_caught("2 was calm, and is missing");
    let mut scene = Scene::new(Collective::Send);
    let other = Reported { names: set("3"), ..scene.at(2).clone() };
    scene.operation.answers.insert(3, other);
    scene.is_caught("which only the addressee gets");
    scene.is_caught("member 3: has the value, as member 2 has");
}

/// The member 2 has left to the member 3 while the operation was under way.
fn scene_of_heirs(collective: Collective) -> Scene {
    let mut scene = Scene::new(collective);
    scene.lives.hand_over(2, 3, Duration::from_millis(29_900));
    scene.lives.end(2, Duration::from_millis(30_500));
    scene.operation.answers.remove(&2);
    scene.at(3).names = set("2-3");
    scene
}

#[test]
fn what_was_left_to_an_heir_counts_for_the_giver_or_for_nothing() {
    for collective in [Collective::Reduce, Collective::ReduceDefined, Collective::Gather] {
        let mut scene = scene_of_heirs(collective);
        assert_eq!(scene.verdict().faults, [""; 0], "the giver has contributed: {collective:?}");
        let ask = scene.operation.ask;
        scene.at(1).value = Some(given(&ask, 1, &set("0-1,3")));
        assert_eq!(scene.verdict().faults, [""; 0], "the heir did for both: {collective:?}");
        scene.at(1).value = Some(given(&ask, 1, &set("0-1")));
        assert_ne!(scene.verdict().faults, [""; 0], "{collective:?}");
    }
}

#[test]
fn an_heir_has_its_blocks_and_its_place_in_the_order() {
    let mut scene = Scene::new(Collective::ReduceScatter);
    scene.lives.hand_over(0, 3, second(9));
    scene.lives.end(0, second(10));
    scene.operation.asked.remove(&0);
    scene.operation.answers.remove(&0);
    scene.at(3).names = set("0,3");
    let ask = scene.operation.ask;
    let (sum, block) = (ask.sum(&set("1-3")), ask.block());
    for process in 1..3 {
        scene.at(process).value = Some(bytes_of(&sum[process * block..][..block]));
    }
    scene.at(3).value = Some(bytes_of(&[&sum[..block], &sum[3 * block..]].concat()));
    assert_eq!(scene.verdict().faults, [""; 0]);
    scene.at(3).value = Some(bytes_of(&sum[..2 * block]));
    scene.is_caught("member 3: the value of");
    scene.operation.ask.collective = Collective::AllreduceInOrder;
    let ask = scene.operation.ask;
    let mut folded = ask.odd_numbers(3);
    [1, 2].into_iter().for_each(|home| compose(&mut folded, &ask.odd_numbers(home)));
    for process in 1..4 {
        scene.at(process).value = Some(bytes_of(&folded));
    }
    assert_eq!(scene.verdict().faults, [""; 0]);
}

#[test]
fn what_no_member_has_left_is_not_carried_by_another() {
    let mut scene = Scene::new(Collective::Reduce);
    scene.at(3).names = set("2-3");
    scene.is_caught("member 3: carries 2, which no member has left to another");
}
