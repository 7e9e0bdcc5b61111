//! Debug.
fn main() {
    let mut bad = 0; let t = std::time::Instant::now();
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let only = std::env::args().nth(2).map(|s| s.parse::<u64>().unwrap());
    for seed in only.unwrap_or(0)..only.map_or(n, |o| o+1) {
        let v = sapwood_sim::group::run_schedule(seed, |_| {});
        if !v.breaches.is_empty() { bad += 1; if bad <= 8 { println!("seed {seed}"); if only.is_some() { for s in &v.story { println!("   {s}"); } } for b in v.breaches.iter().take(4) { println!("  {} | {}", b.rule, b.text); } } }
    }
    println!("bad {bad} of {n} in {:?}", t.elapsed());
}
