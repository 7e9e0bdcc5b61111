//! A sample as one line of JSON: `docs/schema/top-1.json`.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::metric::{Metric, TABLE};
use super::rows::bins;
use super::sample::Sample;
use super::table::Column;

/// The name and version of the schema.
pub(crate) const SCHEMA: &str = "sapwood.top/1";

/// The sample in a line, with its end of line.
pub(crate) fn line(sample: &Sample) -> String {
    let time = sample.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let missing: Vec<Value> = sample
        .missing
        .iter()
        .map(|(ranks, reason)| {
            json!({
                "nodes": sample.nodes(ranks).to_string(),
                "count": ranks.len(),
                "reason": reason,
            })
        })
        .collect();
    let metrics = TABLE.iter().zip(sample.table.columns()).enumerate();
    let metrics: Vec<Value> =
        metrics.map(|(place, (metric, column))| of_metric(place, metric, column, sample)).collect();
    let object = json!({
        "schema": SCHEMA,
        "sample": sample.number,
        "time_s": time.as_secs_f64(),
        "took_ms": sample.took.as_secs_f64() * 1e3,
        "count": sample.hosts.len(),
        "answered": {
            "nodes": sample.nodes(&sample.answered).to_string(),
            "count": sample.answered.len(),
        },
        "missing": missing,
        "metrics": metrics,
    });
    format!("{object}\n")
}

fn of_metric(place: usize, metric: &Metric, column: &Column, sample: &Sample) -> Value {
    let moments = &column.moments;
    let lacking = sample.answered.len().saturating_sub(moments.count);
    let mut value = json!({
        "name": metric.name,
        "unit": metric.unit.name(),
        "worst_is": metric.worst.name(),
        "count": moments.count,
        "lacking": {
            "count": lacking,
            "nodes": sample.nodes(&column.lacking).to_string(),
            "complete": lacking == column.lacking.len(),
        },
    });
    if moments.count == 0 {
        return value;
    }
    let quantile = |q| column.quantiles.quantile(q);
    let bins: Vec<Value> = bins(place, column)
        .into_iter()
        .map(|bin| json!({ "low": bin.low, "high": bin.high, "count": bin.count }))
        .collect();
    let worst: Vec<Value> = column
        .worst
        .iter()
        .map(|&(value, rank)| json!({ "host": sample.host(rank), "value": value }))
        .collect();
    let more = json!({
        "mean": moments.mean,
        "standard_deviation": moments.standard_deviation(),
        "sum": column.sum(),
        "min": { "value": moments.min, "host": sample.host(moments.min_rank) },
        "max": { "value": moments.max, "host": sample.host(moments.max_rank) },
        "quantiles": {
            "p50": quantile(0.5),
            "p90": quantile(0.9),
            "p99": quantile(0.99),
            "relative_error": column.quantiles.relative_error(),
        },
        "histogram": bins,
        "worst": worst,
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{METRICS, place};
    use crate::sample::tests::sample_of;

    #[test]
    fn a_line_is_as_the_schema_says() {
        for answered in [&[0, 1, 2][..], &[0], &[0, 1, 2, 3]] {
            let line = line(&sample_of(answered));
            assert_eq!(line.lines().count(), 1);
            let value: Value = serde_json::from_str(&line).expect("JSON");
            sapwood_schema::assert_fits("top-1", &value);
            assert_eq!(value["metrics"].as_array().map(Vec::len), Some(METRICS));
        }
    }

    #[test]
    fn a_line_says_who_is_missing_and_who_is_worst() {
        let value: Value = serde_json::from_str(&line(&sample_of(&[0, 1, 2]))).expect("JSON");
        assert_eq!(value["answered"]["nodes"], "n[0-2]");
        assert_eq!(value["missing"][0]["nodes"], "n3");
        let load = &value["metrics"][place("load.1").expect("a metric")];
        assert_eq!(load["worst"][0], json!({ "host": "n2", "value": 2.0 }));
        assert_eq!((&load["mean"], &load["sum"]), (&json!(1.0), &json!(3.0)));
        assert_eq!(load["min"]["host"], "n0");
    }
}
