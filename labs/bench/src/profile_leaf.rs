//! A back-end that serves synthetic MPI ranks, as the monitor's leaf serves real ones.
//!
//! It answers rounds and the questions of the monitor's analysis. It can be told to die, hang or
//! come late at a given moment, so that what becomes of an answer then can be looked at.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{BackEnd, Error, FIRST_TAG, Rank, Received, Tag, Values, Wave};
use sapwood_command_line::exit::Failure;
use sapwood_monitor::analysis::{Head, Moments, Question};
use sapwood_profile::{RankProfile, Round};

use super::synthetic::{advance, profile};

/// The hidden argument with which this program is such a back-end.
pub const PROFILE_LEAF: &str = "bench-profile-leaf";

/// Asks for a round: `%uld` number of the moment, `%uld` wave.
pub const ROUND: Tag = FIRST_TAG;

/// What a leaf does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// It ends when it is asked this.
    Die,
    /// It answers nothing any more when it is asked this.
    Hang,
    /// It has no ranks before this moment.
    Late,
}

/// A fault of one leaf at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    harm: Harm,
    leaf: Rank,
    round: u64,
    /// Whether it is at a question that comes back to a moment.
    is_second: bool,
}

impl Fault {
    /// Reads `die:LEAF:ROUND:first`, `hang:LEAF:ROUND:second` or `late:LEAF:ROUND:first`.
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(':').collect();
        let [harm, leaf, round, phase] = words[..] else { return None };
        let harm = match harm {
            "die" => Harm::Die,
            "hang" => Harm::Hang,
            "late" => Harm::Late,
            _ => return None,
        };
        let is_second = match phase {
            "first" => false,
            "second" => true,
            _ => return None,
        };
        Some(Self { harm, leaf: leaf.parse().ok()?, round: round.parse().ok()?, is_second })
    }
}

/// The ranks of one leaf.
struct Ranks {
    profiles: Vec<RankProfile>,
    world_size: u32,
    fault: Option<Fault>,
}

/// Serves until the network ends: `WORLD_SIZE RANKS_PER_LEAF EVENTS [FAULT]...`.
///
/// # Errors
/// [`Failure`] for wrong arguments, or when the tree cannot be joined.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let wrong =
        || Failure::usage(format!("{PROFILE_LEAF} is started by the benchmark, not by hand"));
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let [world_size, per_leaf, events, faults @ ..] = &words[..] else { return Err(wrong()) };
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (world_size, per_leaf, events) = (number(world_size)?, number(per_leaf)?, number(events)?);
    let faults: Option<Vec<Fault>> = faults.iter().map(|text| Fault::read(text)).collect();
    let faults = faults.ok_or_else(wrong)?;

    let mut back_end = BackEnd::attach()?;
    let leaf = back_end.rank();
    let first = leaf.saturating_mul(per_leaf).min(world_size);
    let last = first.saturating_add(per_leaf).min(world_size);
    let profiles = (first..last).map(|rank| profile(rank, world_size, events, 0)).collect();
    let fault = faults.into_iter().find(|fault| fault.leaf == leaf);
    let mut ranks = Ranks { profiles, world_size, fault };
    let mut moments = Moments::default();
    loop {
        let answered = back_end.recv().and_then(|received| {
            ranks.suffer(&received);
            ranks.answer(&mut back_end, &mut moments, &received)
        });
        match answered {
            // The stream was closed, or the wave has passed.
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Ranks {
    /// Dies or hangs, if this is the question for it.
    fn suffer(&self, received: &Received) {
        let Some(fault) = self.fault else { return };
        let Ok(Some((head, _, question))) = Question::decode(received.tag(), received.values())
        else {
            return;
        };
        if head.round < fault.round || question.is_first() == fault.is_second {
            return;
        }
        match fault.harm {
            Harm::Die => std::process::exit(7),
            Harm::Hang => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            Harm::Late => {}
        }
    }

    fn answer(
        &mut self,
        back_end: &mut BackEnd,
        moments: &mut Moments,
        received: &Received,
    ) -> Result<(), Error> {
        let (tag, values) = (received.tag(), received.values());
        if tag == ROUND {
            let (round, wave): (u64, Wave) = (values.scalar(0)?, values.scalar(1)?);
            let answer = self.round(round);
            back_end.send_in_wave(received.stream, wave, tag, answer)?;
            return back_end.flush();
        }
        let seed = u64::from(back_end.rank());
        let read = |head: Head| self.at(head.round).to_vec();
        if let Ok(Some((wave, answer))) = moments.answer((tag, values), seed, read) {
            back_end.send_in_wave(received.stream, wave, tag, answer)?;
        }
        back_end.flush()
    }

    /// The profiles at a moment.
    fn at(&mut self, round: u64) -> &[RankProfile] {
        let is_late = |fault: Fault| fault.harm == Harm::Late && round < fault.round;
        if self.fault.is_some_and(is_late) {
            return &[];
        }
        self.profiles.iter_mut().for_each(|profile| advance(profile, round));
        &self.profiles
    }

    fn round(&mut self, number: u64) -> Values {
        let mut round = Round::new(self.world_size);
        for profile in self.at(number) {
            round.add(profile).expect("every synthetic rank is there once");
        }
        round.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_who_when_and_how() {
        let fault = Fault { harm: Harm::Hang, leaf: 3, round: 2, is_second: true };
        assert_eq!(Fault::read("hang:3:2:second"), Some(fault));
        for wrong in ["", "hang", "hang:3:2", "kill:3:2:first", "die:x:2:first", "die:3:2:third"] {
            assert_eq!(Fault::read(wrong), None, "{wrong}");
        }
    }
}
