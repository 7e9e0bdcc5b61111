//! Right answers pass, and each kind of wrong one is caught by its rule.

use super::*;

const BYTES: usize = 4096;

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn set(text: &str) -> RankSet {
    text.parse().unwrap()
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
        let ask = Ask { collective, number: 5, root: 1, bytes: BYTES, seed: 9 };
        let asked = (0..4).collect();
        let operation = Operation { ask, issued: second(30), asked, answers: BTreeMap::new() };
        let mut scene = Self { lives, operation };
        for process in 0..4 {
            scene.answer(process, "0-3");
        }
        scene
    }

    /// A right answer, with these contributors where a sum has been made.
    fn answer(&mut self, process: ProcessNumber, contributors: &str) {
        let ask = self.operation.ask;
        let is_root = process == 1;
        let (contributors, value) = match ask.collective {
            Collective::Broadcast if is_root => (set(contributors), Some(ask.payload())),
            Collective::Broadcast => (set("1"), Some(ask.payload())),
            Collective::Reduce if !is_root => (set(&process.to_string()), None),
            Collective::Reduce | Collective::Allreduce => {
                let numbers = ask.sum(&set(contributors));
                let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                (set(contributors), Some(bytes))
            }
        };
        let answer = Reported {
            at: second(31),
            took: Duration::from_millis(900),
            known: set("0-3"),
            contributors,
            missing: Vec::new(),
            value: value.map(|value| Digest::of_bytes(&value)),
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
        let asked: &[ProcessNumber] = match collective {
            Collective::Allreduce => &[0, 1, 3],
            _ => &[1],
        };
        for process in asked {
            scene.answer(*process, "0-1,3");
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
        let value = scene.at(1).value.unwrap();
        scene.at(1).value = Some(Digest { mixed: value.mixed ^ 1, ..value });
        scene.is_caught("is not that of");
        scene.at(1).value = Some(Digest { bytes: value.bytes - 8, ..value });
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
    scene.is_caught("has another sum than member 0");
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
    for collective in [Collective::Broadcast, Collective::Allreduce] {
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
    scene.at(2).value = scene.at(1).value;
    scene.is_caught("which only the root gets");
    scene.at(2).value = None;
    scene.at(2).error = Some("operation 5 exists already".to_string());
    scene.is_caught("the call failed: operation 5");
    scene.at(1).value = None;
    scene.is_caught("the root has no value");
}
