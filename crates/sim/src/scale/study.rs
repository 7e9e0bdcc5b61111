//! The stages of a study, and the figures of each.

use alloc::format;
use alloc::vec::Vec;

use sapwood_filter::FilterSpec;
use sapwood_node::{Node, Recovery, StreamSpec};
use sapwood_packet::RankSet;

use super::costs::{PER_MICROSECOND, Picoseconds};
use super::forest::{Forest, Seen, TAG, value_of};
use super::{CHILDREN_SIMULATED_MAX, Costs, Prediction, ScaleError, Tree};

/// Most waves of either kind in one study.
const WAVES_MAX: u16 = 1000;

/// The parameters of a study.
#[derive(Clone, Debug)]
pub struct Study {
    /// The tree.
    pub tree: Tree,
    /// What things cost.
    pub costs: Costs,
    /// What the nodes do about processes that are gone. None goes here; it is about the price.
    pub recovery: Recovery,
    /// Waves that are asked for one after another; at least one.
    pub waves: u16,
    /// Waves that are asked for at once; their rate takes at least two, and comes near to what the
    /// tree can do when they are many more than a node has children.
    pub pipelined: u16,
}

/// The phases of a study: between them, a caller may look at its own memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The nodes exist.
    Made,
    /// The whole tree has started.
    Started,
    /// The stream is open at all back-ends.
    Opened,
    /// Waves have been answered one by one.
    Answered,
    /// Pipelined waves have been measured.
    Streamed,
}

/// Bytes over the links of a tree, both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkBytes {
    /// Over the link that carried most.
    pub max: f64,
    /// Over all links, on average.
    pub mean: f64,
}

/// What the front-end had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// How long its processor was kept, microseconds.
    pub busy_us: f64,
    /// Messages that it sent and received.
    pub messages: f64,
}

/// The result of a study. Times are virtual, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// From the front-end's first start of a child until it knows that the whole tree stands.
    pub start_us: f64,
    /// From opening a stream until the last back-end knows of it.
    pub open_us: f64,
    /// From a request until the sum over all back-ends is there: the first wave.
    pub first_wave_us: f64,
    /// The same of the last wave that was asked for by itself.
    pub wave_us: f64,
    /// Longest request over one link, in bytes per wave.
    pub request_bytes: u64,
    /// Longest answer over one link, in bytes per wave.
    pub answer_bytes: u64,
    /// Waves a second in a pipeline: how many more waves than one were asked for at once, by how
    /// much longer the last answer took than that of one wave alone. Each wave is a message of its
    /// own: runs of waves, which real back-ends form, make it faster.
    pub waves_per_s: f64,
    /// Bytes per link until the tree stood.
    pub start_bytes: LinkBytes,
    /// Bytes per link and wave, request and answer.
    pub wave_bytes: LinkBytes,
    /// The front-end's part in the start-up.
    pub start_load: Load,
    /// The front-end's part in a wave.
    pub wave_load: Load,
    /// What the closed form says of the wave, where it applies.
    pub predicted: Option<Prediction>,
    /// Messages and other events that were simulated.
    pub events: u64,
    /// Size of a node's own fields in bytes; what it allocates comes on top.
    pub node_bytes: usize,
}

impl Study {
    /// Runs the study. `watch` is called after each stage.
    ///
    /// # Errors
    /// [`ScaleError::Children`] for a tree that is too wide for real nodes, [`ScaleError::Shape`]
    /// for no waves or too many, [`ScaleError::Broken`] when a sum is wrong or the tree comes to
    /// rest.
    pub fn run(&self, mut watch: impl FnMut(Stage)) -> Result<Figures, ScaleError> {
        let count = self.tree.fan_out_max();
        if count > CHILDREN_SIMULATED_MAX {
            return Err(ScaleError::Children { count });
        }
        if self.waves == 0 || self.pipelined < 2 || self.waves.max(self.pipelined) > WAVES_MAX {
            let what = format!("a study of {} and {} waves", self.waves, self.pipelined);
            return Err(ScaleError::Shape { what });
        }
        let mut forest = Forest::new(&self.tree, self.costs.exact(), self.recovery);
        watch(Stage::Made);
        let (start_us, start) = self.start(&mut forest)?;
        watch(Stage::Started);
        let open_us = self.open(&mut forest)?;
        watch(Stage::Opened);
        let Answered { first_wave_us, wave_us, waves } = self.answer(&mut forest)?;
        watch(Stage::Answered);
        let waves_per_s = self.stream(&mut forest, wave_us)?;
        watch(Stage::Streamed);
        let (down, up) = waves.bytes_per_wave(self.waves);
        Ok(Figures {
            start_us,
            open_us,
            first_wave_us,
            wave_us,
            request_bytes: down,
            answer_bytes: up,
            waves_per_s,
            start_bytes: start.link_bytes(1),
            wave_bytes: waves.link_bytes(self.waves),
            start_load: start.load(1),
            wave_load: waves.load(self.waves),
            predicted: Prediction::of(&self.tree, &self.costs, down, up),
            events: forest.events(),
            node_bytes: size_of::<Node>(),
        })
    }

    fn start(&self, forest: &mut Forest<'_>) -> Result<(f64, Account), ScaleError> {
        forest.begin();
        forest.run_until("the whole tree stood", 1, |seen| seen.ready.is_some())?;
        let everyone = self.everyone();
        match forest.seen.ready.take() {
            Some((end, back_ends)) if back_ends == everyone => {
                Ok((microseconds(end), Account::take(forest)))
            }
            ready => {
                let there = ready.map(|(_, back_ends)| back_ends).unwrap_or_default();
                let what = format!("of the back-ends {everyone}, only {there} are there");
                Err(ScaleError::Broken { what })
            }
        }
    }

    fn open(&self, forest: &mut Forest<'_>) -> Result<f64, ScaleError> {
        forest.rest();
        let begin = forest.processes[0].processor.free;
        let members = self.everyone();
        let up = Vec::from([FilterSpec::from("sum")]);
        let opened = forest.front_end().0.application().open_stream(StreamSpec {
            members,
            up,
            ..StreamSpec::default()
        });
        let stream = opened.map_err(|error| ScaleError::Broken { what: format!("{error}") })?;
        forest.set_stream(stream);
        forest.wake_front_end();
        let back_ends = self.tree.back_ends();
        forest.run_until("all had opened the stream", 1, |seen| seen.opened == back_ends)?;
        forest.rest();
        Ok(microseconds(forest.processes[0].processor.free - begin))
    }

    /// Waves one by one.
    fn answer(&self, forest: &mut Forest<'_>) -> Result<Answered, ScaleError> {
        Account::take(forest);
        let mut times = Vec::new();
        for wave in 1..=usize::from(self.waves) {
            let begin = forest.processes[0].processor.free;
            self.ask(forest, 1)?;
            forest.run_until("a wave was answered", 1, |seen| seen.answers.len() == wave)?;
            let (end, _) = forest.seen.answers[wave - 1];
            times.push(microseconds(end - begin));
        }
        self.check(forest)?;
        let (first_wave_us, wave_us) = (times[0], times[times.len() - 1]);
        Ok(Answered { first_wave_us, wave_us, waves: Account::take(forest) })
    }

    /// Waves in a pipeline.
    fn stream(&self, forest: &mut Forest<'_>, wave_us: f64) -> Result<f64, ScaleError> {
        forest.seen.answers.clear();
        let begin = forest.processes[0].processor.free;
        self.ask(forest, self.pipelined)?;
        let waves = usize::from(self.pipelined);
        let is_enough = |seen: &Seen| seen.answers.len() == waves;
        forest.run_until("the last wave was answered", self.pipelined, is_enough)?;
        self.check(forest)?;
        let all_us = microseconds(forest.seen.answers[waves - 1].0 - begin);
        Ok((waves - 1) as f64 / (all_us - wave_us) * 1e6)
    }

    fn ask(&self, forest: &mut Forest<'_>, waves: u16) -> Result<(), ScaleError> {
        let (stream, everyone) = (forest.stream(), self.everyone());
        let (front_end, now) = forest.front_end();
        let asked =
            front_end.application().broadcast(now, stream, TAG, u64::from(waves), &everyone.into());
        asked.map_err(|error| ScaleError::Broken { what: format!("{error}") })?;
        forest.wake_front_end();
        Ok(())
    }

    /// Every sum is that of all back-ends.
    fn check(&self, forest: &Forest<'_>) -> Result<(), ScaleError> {
        let expected: u64 = (0..self.tree.back_ends()).map(value_of).sum();
        match forest.seen.answers.iter().find(|(_, sum)| *sum != expected) {
            None => Ok(()),
            Some((_, sum)) => {
                Err(ScaleError::Broken { what: format!("a sum of {sum} is not {expected}") })
            }
        }
    }

    fn everyone(&self) -> RankSet {
        RankSet::range(0, self.tree.back_ends() - 1)
    }
}

/// Waves one by one.
struct Answered {
    first_wave_us: f64,
    /// The time of the last one.
    wave_us: f64,
    waves: Account,
}

/// Bytes and load of one stage.
#[derive(Debug)]
struct Account {
    down_max: u64,
    up_max: u64,
    max: u64,
    total: u64,
    links: usize,
    busy: Picoseconds,
    messages: u32,
}

impl Account {
    /// Adds up what there has been since the last time, and starts anew.
    fn take(forest: &mut Forest<'_>) -> Self {
        let mut account = Self {
            down_max: 0,
            up_max: 0,
            max: 0,
            total: 0,
            links: forest.processes.len() - 1,
            busy: core::mem::take(&mut forest.processes[0].processor.busy),
            messages: core::mem::take(&mut forest.processes[0].processor.messages),
        };
        for process in &mut forest.processes[1..] {
            let down = u64::from(core::mem::take(&mut process.bytes_down));
            let up = u64::from(core::mem::take(&mut process.bytes_up));
            account.down_max = account.down_max.max(down);
            account.up_max = account.up_max.max(up);
            account.max = account.max.max(down + up);
            account.total += down + up;
        }
        account
    }

    /// The most bytes of a wave over one link, down and up.
    fn bytes_per_wave(&self, waves: u16) -> (u64, u64) {
        (self.down_max / u64::from(waves), self.up_max / u64::from(waves))
    }

    fn link_bytes(&self, waves: u16) -> LinkBytes {
        let (waves, links) = (f64::from(waves), self.links as f64);
        LinkBytes { max: self.max as f64 / waves, mean: self.total as f64 / links / waves }
    }

    fn load(&self, waves: u16) -> Load {
        let waves = f64::from(waves);
        let messages = f64::from(self.messages) / waves;
        Load { busy_us: microseconds(self.busy) / waves, messages }
    }
}

fn microseconds(time: Picoseconds) -> f64 {
    time as f64 / PER_MICROSECOND
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::StartCosts;
    use sapwood_topology::LogGp;

    fn study(tree: Tree, gap_per_byte_us: f64) -> Study {
        let loggp = LogGp::new(10.0, 2.0, 3.0, gap_per_byte_us).unwrap();
        let start = StartCosts { spawn_us: 100.0, ready_us: 1000.0, proof_us: 50.0, at_a_time: 1 };
        let costs = Costs::new(loggp, start).unwrap();
        Study { tree, costs, recovery: Recovery::off(), waves: 2, pipelined: 2 }
    }

    #[test]
    fn one_back_end_starts_as_computed_by_hand() {
        let figures = study(Tree::flat(1).unwrap(), 0.0).run(|_| ()).unwrap();
        // Spawn 100, ready 1000, the child's proof 50, a message of 2 + 10 + 2, the parent's proof
        // 50, a message, the proof's end 50, and the hello.
        assert_eq!(figures.start_us, 100.0 + 1000.0 + 3.0 * 50.0 + 3.0 * 14.0);
        // Spawn and proof; it takes two messages, and sends one before it knows.
        assert_eq!(figures.start_load.busy_us, 100.0 + 50.0 + 2.0 * 2.0 + 2.0 * 2.0);
    }

    #[test]
    fn a_second_child_waits_for_the_first_when_only_one_may_be_under_way() {
        let one = study(Tree::flat(1).unwrap(), 0.0).run(|_| ()).unwrap();
        let two = study(Tree::flat(2).unwrap(), 0.0).run(|_| ()).unwrap();
        // The first welcome leaves before the second child is started.
        assert_eq!(two.start_us, 2.0 * one.start_us + 2.0);
    }

    #[test]
    fn a_wave_through_two_levels_takes_what_is_computed_by_hand() {
        let figures = study(Tree::with_fan_out(4, 2).unwrap(), 0.0).run(|_| ()).unwrap();
        // The front-end asks its children at 0 and 3. The first has it at 14 and asks at 14 and
        // 17; the back-ends have it at 28 and 31 and answer at once; the answers are there at 40
        // and 43, taken at 42 and 45. The sum leaves at 45 and arrives at 57; the second child's,
        // 3 later, at 60, which is taken at 62.
        assert_eq!((figures.first_wave_us, figures.wave_us), (62.0, 62.0));
        assert_eq!(figures.wave_load, Load { busy_us: 8.0, messages: 4.0 });
        let predicted = figures.predicted.unwrap();
        assert_eq!(predicted.wave_us, 62.0);
        assert_eq!(predicted.front_end_us, figures.wave_load.busy_us);
        assert_eq!(predicted.front_end_start_us, figures.start_load.busy_us);
    }

    #[test]
    fn bytes_take_their_time_twice() {
        let figures = study(Tree::flat(1).unwrap(), 1.0).run(|_| ()).unwrap();
        let bytes = (figures.request_bytes + figures.answer_bytes) as f64;
        assert_eq!(figures.wave_us, 2.0 * 14.0 + bytes - 2.0);
        assert_eq!(figures.wave_bytes, LinkBytes { max: bytes, mean: bytes });
    }

    #[test]
    fn the_closed_form_and_the_nodes_agree_on_waves() {
        for tree in [Tree::flat(40), Tree::with_fan_out(200, 6), Tree::with_depth(100, 5)] {
            let tree = tree.unwrap();
            let figures = study(tree.clone(), 0.01).run(|_| ()).unwrap();
            let ratio = figures.wave_us / figures.predicted.unwrap().wave_us;
            assert!((ratio - 1.0).abs() < 1e-6, "{}: {ratio}", tree.spec());
        }
    }

    #[test]
    fn a_long_pipeline_comes_near_to_what_the_busiest_node_can_do() {
        let tree = Tree::with_fan_out(64, 4).unwrap();
        let figures = Study { pipelined: 400, ..study(tree, 0.0) }.run(|_| ()).unwrap();
        let ratio = figures.waves_per_s / figures.predicted.unwrap().waves_per_s;
        assert!((0.9..=1.001).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_tree_with_recovery_gives_the_same_sums() {
        let tree = Tree::with_fan_out(100, 8).unwrap();
        let figures = Study { recovery: Recovery::default(), ..study(tree, 0.001) };
        assert!(figures.run(|_| ()).unwrap().wave_us > 0.0);
    }

    #[test]
    fn what_real_nodes_cannot_do_is_not_simulated() {
        let wide = study(Tree::flat(CHILDREN_SIMULATED_MAX + 1).unwrap(), 0.0);
        assert!(matches!(wide.run(|_| ()), Err(ScaleError::Children { .. })));
        let none = Study { waves: 0, ..study(Tree::flat(2).unwrap(), 0.0) };
        assert!(matches!(none.run(|_| ()), Err(ScaleError::Shape { .. })));
    }
}
