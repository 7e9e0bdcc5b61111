//! Figures of groups in the simulator.
use sapwood_group::{Config, TreeKind};
use sapwood_sim::group::*;
fn main() {
    let layout = Layout::named("paper-3").unwrap();
    let network = Network::draw(&layout, 0);
    let st = static_completion(&network, 0);
    let opt = near_optimal(&network, 0, 0);
    let t = std::time::Instant::now();
    let mut trial = Trial::start(network, 0, &Config::default());
    println!("{:?} {:?} msgs {}", trial.start, t.elapsed(), trial.world.messages);
    println!("static {st} opt {opt}");
    for tree in [TreeKind::Flat, TreeKind::Binomial, TreeKind::Static, TreeKind::List, TreeKind::Adaptive] {
        for bytes in [1, 1<<20] {
        let t = std::time::Instant::now();
        println!("{tree} {bytes} {:?} {:?}", trial.broadcast(0, tree, bytes), t.elapsed());
        println!("  reduce {tree} {bytes} {:?} {:?}", trial.reduce(0, tree, 8 * (bytes / 8).max(1)), t.elapsed());
        }
    }
}
