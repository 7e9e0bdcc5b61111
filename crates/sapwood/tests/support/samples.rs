//! What the back-ends of the tests have that does not add up, and how they send it: raw or, every
//! third of them, as a sketch that they have made.

#![allow(dead_code, reason = "a test compares with the samples, the back-ends send them")]

use sapwood::{
    Distinct, HeavyHitters, Histogram, IntoValues, ItemSet, Kll, PrefixTree, Quantiles, Rank, TopK,
    Values,
};

/// Numbers of four magnitudes, 300 of each back-end.
pub fn doubles(rank: Rank) -> Vec<f64> {
    (0..300).map(|step| 1.03_f64.powi(step) * f64::from(rank + 1)).collect()
}

/// Lines, of which one is everywhere and some are only here.
pub fn lines(rank: Rank) -> Vec<String> {
    let line = |step| match step % 4 {
        0 | 1 => "disk full".to_owned(),
        2 => format!("fan {} stopped", step % 3),
        _ => format!("user {rank}-{step} came"),
    };
    (0..60).map(line).collect()
}

/// The stacks of two threads.
pub fn stacks(rank: Rank) -> [Vec<String>; 2] {
    let stack = |frames: &str| frames.split(' ').map(str::to_owned).collect();
    let work = if rank.is_multiple_of(2) { "main solve wait" } else { "main solve send pack" };
    [stack(work), stack("thread poll")]
}

/// One bit of its own among many that all have.
pub fn bits(rank: Rank) -> Vec<u64> {
    vec![0xFF00 | 1 << (rank % 8); 300_000]
}

/// What a back-end sends to a filter.
pub fn of(filter: &str, rank: Rank) -> Values {
    if rank % 3 == 2 { sketch(filter, rank) } else { raw(filter, rank) }
}

fn raw(filter: &str, rank: Rank) -> Values {
    match filter {
        "heavy-hitters" | "union" | "distinct" => Values::new().strings(&lines(rank)),
        "prefix-tree" => {
            stacks(rank).iter().fold(Values::new(), |values, stack| values.strings(stack))
        }
        "bit-and" | "bit-or" => Values::new().large_array(&bits(rank)),
        _ => doubles(rank).into_values(),
    }
}

fn sketch(filter: &str, rank: Rank) -> Values {
    let doubles = doubles(rank);
    match filter {
        "quantiles" => {
            let mut sketch = Quantiles::new(0.01).unwrap();
            doubles.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        }
        "kll" => {
            let mut sketch = Kll::new(200, u64::from(rank)).unwrap();
            doubles.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        }
        "distinct" => {
            let mut sketch = Distinct::new(12).unwrap();
            lines(rank).iter().for_each(|line| sketch.add_text(line.as_bytes()));
            sketch.into_values()
        }
        "heavy-hitters" => {
            let mut sketch = HeavyHitters::new(20).unwrap();
            lines(rank).iter().for_each(|line| sketch.add(line));
            sketch.into_values()
        }
        "top" => {
            let mut sketch = TopK::new(3).unwrap();
            doubles.iter().for_each(|&number| sketch.add(number, rank).unwrap());
            sketch.into_values()
        }
        "histogram" => {
            let mut sketch = Histogram::self_choosing(32).unwrap();
            doubles.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        }
        "union" => {
            let mut set = ItemSet::new(1000).unwrap();
            lines(rank).iter().for_each(|line| set.add(line));
            set.into_values()
        }
        "prefix-tree" => {
            let mut tree = PrefixTree::new(4096).unwrap();
            stacks(rank).iter().for_each(|stack| tree.add(stack, rank));
            tree.into_values()
        }
        _ => raw(filter, rank),
    }
}
