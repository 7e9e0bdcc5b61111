//! Half of the members leave and return while another one broadcasts without a pause.

use alloc::vec::Vec;

use sapwood_group::message::PaperTree;
use sapwood_group::trees::TreeKind;
use sapwood_group::{Config, Input, SECOND, Time};

use super::trial::{TimedBroadcast, Trial, enter};

/// How long broadcasts go on before members leave, while they are away, and after they return: some
/// times what the group takes to notice either.
const CALM: Time = 2 * SECOND;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Turnover {
    /// The broadcasts of host 0, one after another.
    pub broadcasts: Vec<TimedBroadcast>,
    /// When the members on all hosts of odd numbers were told to leave.
    pub leave: Time,
    /// When the members that follow them started.
    pub come: Time,
}

impl Turnover {
    /// Has half of a group at rest leave and return under broadcasts by a tree; none where one of
    /// these has no answer within a minute.
    pub fn run(trial: &mut Trial, tree: TreeKind, bytes: usize, config: &Config) -> Option<Self> {
        let movers: Vec<usize> = (1..trial.world.network.hosts()).step_by(2).collect();
        let mut broadcasts = Vec::new();
        publish(trial, tree, bytes, &mut broadcasts)?;
        // The root learns of it while its next broadcast is under way.
        let leave = trial.world.now();
        for &host in &movers {
            trial.world.give(host, Input::Leave);
        }
        publish(trial, tree, bytes, &mut broadcasts)?;
        let come = trial.world.now();
        let root = trial.world.id_of(0);
        for &host in &movers {
            // Of a member that has left by now nothing is there to be ended.
            trial.world.crash(host);
            enter(&mut trial.world, host, config);
            if tree.is_paper() {
                let tree = PaperTree { root, bulk: tree == TreeKind::PaperBandwidth };
                trial.world.give(host, Input::Track { tree });
            }
        }
        publish(trial, tree, bytes, &mut broadcasts)?;
        Some(Self { broadcasts, leave, come })
    }
}

/// Broadcasts for a while.
fn publish(
    trial: &mut Trial,
    tree: TreeKind,
    bytes: usize,
    broadcasts: &mut Vec<TimedBroadcast>,
) -> Option<()> {
    let end = trial.world.now() + CALM;
    while trial.world.now() < end {
        broadcasts.push(trial.time_broadcast(0, tree, bytes)?);
    }
    Some(())
}
