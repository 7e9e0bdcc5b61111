//! The advised tree beside the flat one, with real nodes on a virtual clock: what the formula says
//! is what the nodes do.

use sapwood_sim::scale::{Costs, Figures, Recovery, StartCosts, Study, Tree};
use sapwood_topology::{Candidate, FAN_OUT_MAX, Kind, LogGp, Pattern, Shape, Site, advise};

/// Beyond the model: the simulation counts in whole picoseconds, and a node's messages have
/// headers.
const ALLOWANCE: f64 = 1.02;

fn figures(tree: Tree, model: LogGp) -> Figures {
    let costs = Costs::new(model, StartCosts::default()).unwrap();
    let study = Study { tree, costs, recovery: Recovery::off(), waves: 2, pipelined: 40 };
    study.run(|_| {}).unwrap()
}

/// The best of the candidates that the simulator can build: balanced trees and the flat one.
fn advised(model: &LogGp, back_ends: u32, pattern: Pattern) -> Candidate {
    // Each process has a processor of its own there.
    let site =
        Site { hosts: back_ends, processors: 64, dedicated_hosts: 4096, fan_out_max: FAN_OUT_MAX };
    let advice = advise(model, &site, back_ends, 64, pattern).unwrap();
    advice.into_iter().find(|one| one.kind != Kind::Knomial).unwrap()
}

fn as_tree(shape: &Shape, back_ends: u32) -> Tree {
    let is_it = |fan_out: &u32| Shape::even(back_ends, *fan_out).as_ref() == Ok(shape);
    match (2..back_ends).find(is_it) {
        Some(fan_out) => Tree::with_fan_out(back_ends, fan_out).unwrap(),
        None => Tree::flat(back_ends).unwrap(),
    }
}

#[test]
fn the_advised_tree_is_never_slower_than_flat_in_virtual_time() {
    let mut gains = Vec::new();
    for back_ends in [2, 5, 16, 64, 200] {
        for (latency, overhead) in
            [(0.0, 1.0), (2.0, 1.5), (30.0, 10.0), (500.0, 5.0), (5000.0, 1.0)]
        {
            let model = LogGp::new(latency, overhead, overhead, 0.0005).unwrap();
            let flat = figures(Tree::flat(back_ends).unwrap(), model);
            let request = advised(&model, back_ends, Pattern::Request);
            let own = figures(as_tree(&request.shape, back_ends), model);
            let case = format!("{back_ends} back-ends, L {latency}, o {overhead}");
            let what = format!("{case}: {} {} {}", request.shape, own.wave_us, flat.wave_us);
            assert!(own.wave_us <= flat.wave_us * ALLOWANCE, "{what}");
            gains.push(flat.wave_us / own.wave_us);
            let stream = advised(&model, back_ends, Pattern::Stream);
            let own = figures(as_tree(&stream.shape, back_ends), model);
            let what = format!("{case}: {} {} {}", stream.shape, own.waves_per_s, flat.waves_per_s);
            assert!(own.waves_per_s * ALLOWANCE >= flat.waves_per_s, "{what}");
        }
    }
    let best = gains.into_iter().fold(0.0, f64::max);
    println!("a question over the advised tree is up to {best:.1} times as fast");
    assert!(best > 3.0, "the advice is never flat alone");
}
