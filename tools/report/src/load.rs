//! How the ranks' time is divided between MPI and computing, in words.

use sapwood_profile::Load;

use crate::quantity;

/// Two lines: the share of MPI, and the efficiencies.
pub(crate) fn lines(load: &Load) -> Vec<String> {
    let share = |ppm: f64| quantity::percent(Some(ppm / 1e6));
    let (least, most) = (load.mpi_ppm.min() as f64, load.mpi_ppm.max() as f64);
    let mut lines = vec![format!(
        "MPI takes {} of the time, mean of ranks; {} (rank {}) to {} (rank {})",
        share(load.mpi_ppm.mean()),
        share(least),
        load.mpi_ppm.min_rank(),
        share(most),
        load.mpi_ppm.max_rank(),
    )];
    let percent = |part: f64| quantity::percent(Some(part));
    lines.extend(load.efficiency().map(|efficiency| {
        format!(
            "parallel efficiency {} = load balance {} x communication efficiency {}",
            percent(efficiency.parallel),
            percent(efficiency.load_balance),
            percent(efficiency.communication),
        )
    }));
    lines
}

/// A line of the interval since the round before; none where no rank had time in it.
pub(crate) fn interval_line(load: &Load) -> Option<String> {
    let percent = |part: f64| quantity::percent(Some(part));
    let efficiency = load.efficiency()?;
    Some(format!(
        "this interval: MPI {}, parallel efficiency {} = {} x {}",
        percent(load.mpi_ppm.mean() / 1e6),
        percent(efficiency.parallel),
        percent(efficiency.load_balance),
        percent(efficiency.communication),
    ))
}
