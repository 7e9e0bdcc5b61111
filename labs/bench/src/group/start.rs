//! From the start of the first member until the clusters that members infer do not change any more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sapwood_command_line::exit::Failure;
use sapwood_group_tool::{Act, Request};
use serde_json::Value;

use super::scene::{ANSWER_DEADLINE, Scene};

/// How often members are asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// After this time without a change, right clusters will stay.
const QUIET: Duration = Duration::from_secs(1);
/// How long they may take to be right: idle members probe seldom.
const DEADLINE: Duration = Duration::from_secs(20);

/// How the group came to rest.
pub(super) struct Settled {
    /// Until all members knew each other.
    pub(super) joined: Duration,
    /// Until the last change of the clusters at any member.
    pub(super) steady: Duration,
    /// How many clusters virtual node 0 has inferred.
    pub(super) clusters: usize,
    /// Members that have inferred the clusters of the layout.
    pub(super) right: usize,
    /// Probes for measurement until then: of a member on average, and the most.
    pub(super) probes: f64,
    pub(super) probes_most: u64,
}

/// The cluster of each member, numbered in the order in which they appear; none yet of some.
type Clusters = Vec<Option<usize>>;

/// Waits until the clusters do not change any more.
pub(super) fn settle(scene: &mut Scene<'_>) -> Result<Settled, Failure> {
    let begun = scene.fleet.begun();
    let until = Instant::now() + DEADLINE;
    let truth = numbered(scene.clusters().iter().map(|at| Some(*at as u64)));
    let mut last: Vec<Clusters> = Vec::new();
    let (mut steady, mut answers) = (scene.joined, Vec::new());
    loop {
        let asked = scene.ask(&Request::new(Act::Members), ANSWER_DEADLINE)?;
        let now: Vec<Clusters> = asked.iter().map(clusters).collect();
        if now != last {
            steady = begun.elapsed();
            (last, answers) = (now, asked);
        }
        let is_right = last.iter().all(|clusters| *clusters == truth);
        let quiet = begun.elapsed().saturating_sub(steady);
        if is_right && quiet >= QUIET || Instant::now() >= until {
            break;
        }
        std::thread::sleep(ASK_EVERY);
    }
    let probes: Vec<u64> = answers.iter().filter_map(|answer| answer["probes"].as_u64()).collect();
    Ok(Settled {
        joined: scene.joined,
        steady,
        clusters: last
            .first()
            .map_or(0, |at| at.iter().max().map_or(0, |most| most.map_or(0, |most| most + 1))),
        right: last.iter().filter(|clusters| **clusters == truth).count(),
        probes: probes.iter().sum::<u64>() as f64 / probes.len().max(1) as f64,
        probes_most: probes.iter().copied().max().unwrap_or(0),
    })
}

/// What a member says of the clusters, in the order of the virtual nodes.
fn clusters(answer: &Value) -> Clusters {
    let members = answer["members"].as_array().into_iter().flatten();
    let one = |member: &Value| {
        let name = member["names"].as_str()?.parse::<u32>().ok()?;
        Some((name, member["cluster"].as_u64()))
    };
    let by_name: BTreeMap<u32, Option<u64>> = members.filter_map(one).collect();
    numbered(by_name.into_values())
}

fn numbered(labels: impl Iterator<Item = Option<u64>>) -> Clusters {
    let mut numbers = BTreeMap::new();
    let mut number = |label| {
        let next = numbers.len();
        *numbers.entry(label).or_insert(next)
    };
    labels.map(|label| label.map(&mut number)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clusters_are_compared_whatever_their_labels_are() {
        let answer = json!({ "members": [
            { "names": "2", "cluster": 5 },
            { "names": "0", "cluster": 7 },
            { "names": "1", "cluster": 5 },
            { "names": "3", "cluster": null },
        ] });
        assert_eq!(clusters(&answer), [Some(0), Some(1), Some(1), None]);
    }
}
