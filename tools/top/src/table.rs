//! What is known of a metric over many hosts, and the table of all metrics.
//!
//! Owns merging and the table's values in a packet. When tables are merged is `reduction`'s
//! matter. Moments, histograms and quantiles are the library's; what is added here are the worst
//! hosts, of which no more than k are ever kept, and which hosts do not have a metric.
//!
//! ```text
//! %auld counts, %alf means, %alf m2, %alf min, %aud min ranks, %alf max, %aud max ranks
//! %ud   k
//! %aud  how many worst hosts each metric has      %alf their values     %aud their ranks
//! %aud  how many ranges lack each metric          %aud first and last rank of every range
//! %as   histograms, %as quantiles: the bodies of their own values
//! ```

use sapwood::{Histogram, IntoValues, Moments, Quantiles, Rank, RankSet, Values, ValuesRef};

use super::metric::{METRICS, TABLE, Unit};

/// Bins of a histogram: fixed ones for shares, at most this number otherwise.
pub(crate) const BINS: u32 = 20;
/// The relative error of quantiles, and the most bins with which it holds over four powers of ten;
/// where hosts differ by more, it doubles.
const QUANTILE_ERROR: f64 = 0.02;
const QUANTILE_BINS: u32 = 256;
/// Number of ranges of hosts that lack a metric that are named.
pub(crate) const LACKING_RANGES_MAX: usize = 16;
/// Bounds of k.
pub(crate) const WORST_MAX: u32 = 100;

/// What is wrong with a packet; the filter's name stands before it.
pub(crate) type Fault = String;

/// One metric over some hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) moments: Moments,
    /// The worst first; of equal ones the lowest rank.
    pub(crate) worst: Vec<(f64, Rank)>,
    /// The hosts that do not have it, as far as ranges allow.
    pub(crate) lacking: RankSet,
    pub(crate) histogram: Histogram,
    pub(crate) quantiles: Quantiles,
}

/// All metrics over some hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    k: u32,
    columns: Vec<Column>,
}

impl Column {
    fn new(unit: Unit) -> Self {
        let histogram = match unit {
            Unit::Ratio => Histogram::fixed(0.0, 1.0, BINS),
            _ => Histogram::self_choosing(BINS),
        };
        let quantiles = Quantiles::with_bins(QUANTILE_ERROR, QUANTILE_BINS);
        Self {
            moments: NOTHING,
            worst: Vec::new(),
            lacking: RankSet::new(),
            histogram: histogram.expect("the bounds of bins are those of the filter"),
            quantiles: quantiles.expect("so are those of quantiles"),
        }
    }

    /// The sum over all hosts.
    pub(crate) fn sum(&self) -> f64 {
        if self.moments.count == 0 { 0.0 } else { self.moments.mean * self.moments.count as f64 }
    }

    fn add(&mut self, place: usize, value: f64, rank: Rank, k: u32) {
        if !value.is_finite() {
            self.lacking.insert(rank);
            return self.bound_lacking();
        }
        self.moments.merge(&Moments::of(value, rank));
        self.histogram.add(value);
        self.quantiles.add(value);
        self.take_worst(place, &[(value, rank)], k);
    }

    fn merge(&mut self, place: usize, other: &Self, k: u32) -> Result<(), Fault> {
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram).map_err(|error| error.to_string())?;
        self.quantiles.merge(&other.quantiles).map_err(|error| error.to_string())?;
        self.take_worst(place, &other.worst, k);
        self.lacking.union_with(other.lacking.as_ref());
        self.bound_lacking();
        Ok(())
    }

    fn take_worst(&mut self, place: usize, others: &[(f64, Rank)], k: u32) {
        self.worst.extend_from_slice(others);
        let badness = |value| TABLE[place].badness(value);
        self.worst.sort_by(|(a, a_rank), (b, b_rank)| {
            badness(*b).total_cmp(&badness(*a)).then(a_rank.cmp(b_rank))
        });
        self.worst.truncate(k as usize);
    }

    fn bound_lacking(&mut self) {
        if self.lacking.as_ref().ranges().len() > LACKING_RANGES_MAX {
            let mut bounded = RankSet::new();
            for &[first, last] in &self.lacking.as_ref().ranges()[..LACKING_RANGES_MAX] {
                bounded.insert_range(first, last);
            }
            self.lacking = bounded;
        }
    }
}

/// Moments of no values.
const NOTHING: Moments =
    Moments { count: 0, mean: 0.0, m2: 0.0, min: 0.0, min_rank: 0, max: 0.0, max_rank: 0 };

impl Table {
    /// The table of no hosts, with the k worst hosts of each metric.
    pub(crate) fn new(k: u32) -> Self {
        Self { k, columns: TABLE.iter().map(|metric| Column::new(metric.unit)).collect() }
    }

    /// What is known of each metric, in the order of the table of metrics.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Takes a host's values; one that is not finite is absent.
    pub(crate) fn add(&mut self, rank: Rank, values: &[f64]) -> Result<(), Fault> {
        if values.len() != METRICS {
            return Err(format!("a host has sent {} metrics for {METRICS}", values.len()));
        }
        for (place, (column, &value)) in self.columns.iter_mut().zip(values).enumerate() {
            column.add(place, value, rank, self.k);
        }
        Ok(())
    }

    /// Takes in the table of other hosts.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Fault> {
        for (place, (mine, other)) in self.columns.iter_mut().zip(&other.columns).enumerate() {
            mine.merge(place, other, self.k)?;
        }
        Ok(())
    }

    /// Its values in a packet.
    pub(crate) fn encode(self) -> Values {
        let columns = &self.columns;
        let of = |field: fn(&Moments) -> f64| -> Vec<f64> {
            columns.iter().map(|column| field(&column.moments)).collect()
        };
        let ranks = |field: fn(&Moments) -> Rank| -> Vec<Rank> {
            columns.iter().map(|column| field(&column.moments)).collect()
        };
        let counts: Vec<u64> = columns.iter().map(|column| column.moments.count).collect();
        let worst = || columns.iter().flat_map(|column| &column.worst);
        let ranges = columns.iter().flat_map(|column| column.lacking.as_ref().ranges());
        let limits: Vec<Rank> = ranges.flatten().copied().collect();
        let lengths = |length: fn(&Column) -> usize| -> Vec<u32> {
            columns.iter().map(|column| length(column) as u32).collect()
        };
        let values = Values::new()
            .array(&counts)
            .array(&of(|moments| moments.mean))
            .array(&of(|moments| moments.m2))
            .array(&of(|moments| moments.min))
            .array(&ranks(|moments| moments.min_rank))
            .array(&of(|moments| moments.max))
            .array(&ranks(|moments| moments.max_rank))
            .scalar(self.k)
            .array(&lengths(|column| column.worst.len()))
            .array(&worst().map(|(value, _)| *value).collect::<Vec<_>>())
            .array(&worst().map(|(_, rank)| *rank).collect::<Vec<_>>())
            .array(&lengths(|column| column.lacking.as_ref().ranges().len()))
            .array(&limits);
        let (mut histograms, mut quantiles) = (Vec::new(), Vec::new());
        for column in self.columns {
            histograms.push(body_of(column.histogram));
            quantiles.push(body_of(column.quantiles));
        }
        values.strings(&histograms).strings(&quantiles)
    }

    /// Reads a table's values.
    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Self, Fault> {
        let k = values.scalar::<u32>(7).map_err(text)?;
        if k > WORST_MAX {
            return Err(format!("a table names {k} hosts for each metric"));
        }
        let mut table = Self::new(k);
        table.read_moments(values)?;
        table.read_worst(values)?;
        table.read_lacking(values)?;
        let histograms = values.strings(13).map_err(text)?;
        let quantiles = values.strings(14).map_err(text)?;
        let mut read = 0;
        let sketches = histograms.zip(quantiles);
        for (column, (histogram, quantile)) in table.columns.iter_mut().zip(sketches) {
            let format = column.histogram.clone().into_values();
            let values = ValuesRef::parse(format.as_ref().format(), histogram).map_err(text)?;
            column.histogram = Histogram::from_values(values).map_err(text)?;
            let format = column.quantiles.clone().into_values();
            let values = ValuesRef::parse(format.as_ref().format(), quantile).map_err(text)?;
            column.quantiles = Quantiles::from_values(values).map_err(text)?;
            read += 1;
        }
        if read == METRICS { Ok(table) } else { Err(torn()) }
    }

    fn read_moments(&mut self, values: ValuesRef<'_>) -> Result<(), Fault> {
        let doubles = |at| values.array::<f64>(at).map_err(text);
        let ranks = |at| values.array::<Rank>(at).map_err(text);
        let counts = values.array::<u64>(0).map_err(text)?;
        let [mean, m2, min, max] = [doubles(1)?, doubles(2)?, doubles(3)?, doubles(5)?];
        let [min_rank, max_rank] = [ranks(4)?, ranks(6)?];
        let lengths = [mean.len(), m2.len(), min.len(), max.len(), min_rank.len(), max_rank.len()];
        if counts.len() != METRICS || lengths.iter().any(|&length| length != METRICS) {
            return Err(torn());
        }
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.moments = Moments {
                count: counts[at],
                mean: mean[at],
                m2: m2[at],
                min: min[at],
                min_rank: min_rank[at],
                max: max[at],
                max_rank: max_rank[at],
            };
        }
        Ok(())
    }

    fn read_worst(&mut self, values: ValuesRef<'_>) -> Result<(), Fault> {
        let lengths = values.array::<u32>(8).map_err(text)?;
        let numbers = values.array::<f64>(9).map_err(text)?;
        let ranks = values.array::<Rank>(10).map_err(text)?;
        let mut all = numbers.iter().copied().zip(ranks.iter().copied());
        if lengths.len() != METRICS || numbers.len() != ranks.len() {
            return Err(torn());
        }
        for (column, &length) in self.columns.iter_mut().zip(lengths) {
            column.worst = all.by_ref().take(length as usize).collect();
            if column.worst.len() != length as usize || length > self.k {
                return Err(torn());
            }
        }
        if all.next().is_some() { Err(torn()) } else { Ok(()) }
    }

    fn read_lacking(&mut self, values: ValuesRef<'_>) -> Result<(), Fault> {
        let lengths = values.array::<u32>(11).map_err(text)?;
        let limits = values.array::<Rank>(12).map_err(text)?;
        let mut ranges = limits.chunks_exact(2);
        if lengths.len() != METRICS {
            return Err(torn());
        }
        for (column, &length) in self.columns.iter_mut().zip(lengths) {
            if length as usize > LACKING_RANGES_MAX {
                return Err(torn());
            }
            for _ in 0..length {
                match ranges.next() {
                    Some(&[first, last]) if first <= last => {
                        column.lacking.insert_range(first, last);
                    }
                    _ => return Err(torn()),
                }
            }
        }
        if ranges.next().is_some() { Err(torn()) } else { Ok(()) }
    }
}

fn body_of(sketch: impl IntoValues) -> Vec<u8> {
    sketch.into_values().as_ref().body().to_vec()
}

fn text(error: impl std::fmt::Display) -> Fault {
    error.to_string()
}

fn torn() -> Fault {
    "the parts of a table do not fit together".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::place;

    /// Hosts whose values of every metric are their rank, but 3 of each 4 have no pressure.
    fn hosts(ranks: std::ops::Range<Rank>, k: u32) -> Table {
        let mut table = Table::new(k);
        for rank in ranks {
            let mut values = [f64::from(rank); METRICS];
            if rank % 4 != 0 {
                values[place("pressure.io").expect("a metric")] = f64::NAN;
            }
            table.add(rank, &values).expect("all metrics");
        }
        table
    }

    fn column<'a>(table: &'a Table, name: &str) -> &'a Column {
        &table.columns()[place(name).expect("a metric")]
    }

    #[test]
    fn a_metric_has_its_statistics_and_its_worst_hosts_at_the_right_end() {
        let table = hosts(0..100, 3);
        let load = column(&table, "load.1");
        assert_eq!((load.moments.count, load.moments.mean, load.sum()), (100, 49.5, 4950.0));
        assert_eq!(load.worst, [(99.0, 99), (98.0, 98), (97.0, 97)]);
        assert_eq!(column(&table, "memory.available").worst[0], (0.0, 0));
        let median = load.quantiles.quantile(0.5).expect("numbers");
        assert!((median - 49.0).abs() < 0.02 * 49.0, "{median}");
        assert_eq!(load.histogram.count(), 100);
    }

    #[test]
    fn who_lacks_a_metric_is_counted_whole_and_named_within_bounds() {
        let table = hosts(0..100, 3);
        let pressure = column(&table, "pressure.io");
        assert_eq!(pressure.moments.count, 25);
        assert_eq!(pressure.lacking.as_ref().ranges().len(), LACKING_RANGES_MAX);
        assert!(pressure.lacking.contains(1) && !pressure.lacking.contains(4));
        assert!(column(&table, "load.1").lacking.is_empty());
    }

    #[test]
    fn equal_hosts_are_named_from_the_first_one_on_however_they_are_merged() {
        let mut table = Table::new(2);
        let mut other = Table::new(2);
        for rank in [7, 3] {
            table.add(rank, &[1.0; METRICS]).expect("all metrics");
        }
        other.add(1, &[1.0; METRICS]).expect("all metrics");
        table.merge(&other).expect("tables of one kind");
        assert_eq!(table.columns()[0].worst, [(1.0, 1), (1.0, 3)]);
    }

    #[test]
    fn parts_make_the_same_as_the_whole() {
        let whole = hosts(0..64, 5);
        let mut merged = hosts(40..64, 5);
        merged.merge(&hosts(0..40, 5)).expect("tables of one kind");
        for (place, (whole, merged)) in whole.columns().iter().zip(merged.columns()).enumerate() {
            assert_eq!(whole.worst, merged.worst, "{}", TABLE[place].name);
            assert_eq!(whole.histogram, merged.histogram);
            assert_eq!(whole.quantiles, merged.quantiles);
            let deviation = |column: &Column| column.moments.standard_deviation();
            assert!((deviation(whole) - deviation(merged)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_table_passes_a_packet_and_is_bounded_for_ever_so_many_hosts() {
        let table = hosts(0..100, 5);
        assert_eq!(Table::decode(table.clone().encode().as_ref()), Ok(table));
        assert_eq!(Table::decode(Table::new(5).encode().as_ref()), Ok(Table::new(5)));
        // Moments, worst hosts, ranges; then both sketches with their lengths and all their bins.
        let of_metric = 52 + (4 + 5 * 12) + (4 + LACKING_RANGES_MAX * 8);
        let sketches = (8 + 72 + 8 * BINS) + (8 + 88 + 12 * QUANTILE_BINS + 8);
        let lengths = 16 * 16;
        let bound = METRICS * (of_metric + sketches as usize) + lengths;
        let bytes = hosts(0..20_000, 5).encode().as_ref().body().len();
        assert!(bytes <= bound, "{bytes} bytes, bound {bound}");
        assert!(bound < 128 << 10, "{bound}");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert!(Table::decode(Values::new().as_ref()).is_err());
        assert!(Table::new(1).add(0, &[1.0]).is_err());
        let good = hosts(0..3, 2).encode();
        let format = good.as_ref().format();
        let body = good.as_ref().body();
        // Whichever byte is changed: a table or an error, never a panic.
        for at in (0..body.len()).step_by(3) {
            let mut forged = body.to_vec();
            forged[at] ^= 0xff;
            if let Ok(values) = ValuesRef::parse(format, &forged) {
                let _ = Table::decode(values);
            }
        }
    }
}
