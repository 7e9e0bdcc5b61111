//! `metrics.otlp`: the last round as a request of OpenTelemetry's protocol for metrics, as it is
//! sent to `/v1/metrics` of a collector.
//!
//! Sums are cumulative from the program's start. Of the protocol's messages only the fields that
//! are written are declared.

use std::time::{Duration, SystemTime};

use prost::Message;
use sapwood_report::record::Event;
use sapwood_report::{Profile, RoundRecord, nanoseconds};

use crate::event_names::{in_64_bits, sizes};

/// The file's name.
pub(crate) const FILE: &str = "metrics.otlp";
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<MetricMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Text>,
}

/// An `AnyValue` that is a string.
#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(message, optional, tag = "5")]
    gauge: Option<Gauge>,
    #[prost(message, optional, tag = "7")]
    sum: Option<Sum>,
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<Point>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(double, optional, tag = "4")]
    as_double: Option<f64>,
    #[prost(sfixed64, optional, tag = "6")]
    as_int: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<Attribute>,
}

pub(crate) fn encode(record: &RoundRecord, profile: &Profile) -> Vec<u8> {
    let started = humantime::parse_rfc3339(&profile.started).unwrap_or(SystemTime::UNIX_EPOCH);
    let since_1970 = |time: SystemTime| {
        nanoseconds(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    };
    let elapsed = Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default();
    let time = Moment { start: since_1970(started), now: since_1970(started + elapsed) };
    let scope = Scope { name: "sapwood".into(), version: env!("CARGO_PKG_VERSION").into() };
    let scope_metrics = ScopeMetrics { scope: Some(scope), metrics: metrics(record, time) };
    let resource = Resource {
        attributes: vec![
            attribute("service.name", &profile.program),
            attribute("process.command_line", &profile.command.join(" ")),
            attribute("mpi.library", &profile.mpi),
        ],
    };
    let of_the_run =
        ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope_metrics] };
    Request { resource_metrics: vec![of_the_run] }.encode_to_vec()
}

#[derive(Clone, Copy)]
struct Moment {
    start: u64,
    now: u64,
}

type SumOf = fn(&Event) -> u128;

fn metrics(record: &RoundRecord, time: Moment) -> Vec<MetricMessage> {
    let sums: [(&str, &str, &str, SumOf); 3] = [
        ("mpi.event.calls", "Calls of all ranks", "{call}", |event| event.calls.sum),
        ("mpi.event.time", "Inclusive time of all ranks", "ns", |event| event.time_ns.sum),
        ("mpi.event.bytes", "Bytes of all ranks", "By", |event| event.bytes.sum),
    ];
    let mut metrics = Vec::new();
    for (name, description, unit, of) in sums {
        let points = record.events.iter().map(|event| Point {
            as_int: Some(i64::try_from(in_64_bits(of(event))).unwrap_or(i64::MAX)),
            ..point(time, labels(event))
        });
        let sum = Sum {
            data_points: points.collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        };
        metrics.push(MetricMessage { sum: Some(sum), ..named(name, description, unit) });
    }
    let efficiency = record.time.as_ref().and_then(|time| time.efficiency.as_ref());
    let points = efficiency.into_iter().flat_map(|efficiency| {
        [
            ("parallel", efficiency.parallel),
            ("load_balance", efficiency.load_balance),
            ("communication", efficiency.communication),
        ]
    });
    let points = points.map(|(kind, value)| Point {
        as_double: Some(value),
        ..point(time, vec![attribute("kind", kind)])
    });
    let gauge = Gauge { data_points: points.collect() };
    let description = "Efficiencies as the POP project defines them";
    metrics.push(MetricMessage { gauge: Some(gauge), ..named("mpi.efficiency", description, "1") });
    metrics
}

fn named(name: &str, description: &str, unit: &str) -> MetricMessage {
    MetricMessage {
        name: name.into(),
        description: description.into(),
        unit: unit.into(),
        ..MetricMessage::default()
    }
}

fn point(time: Moment, attributes: Vec<Attribute>) -> Point {
    Point {
        start_time_unix_nano: time.start,
        time_unix_nano: time.now,
        attributes,
        ..Point::default()
    }
}

fn labels(event: &Event) -> Vec<Attribute> {
    vec![
        attribute("event", &event.name),
        attribute("class", &event.class),
        attribute("communicator_size", &sizes(event.communicator_size_class)),
    ]
}

fn attribute(key: &str, value: &str) -> Attribute {
    Attribute { key: key.into(), value: Some(Text { string_value: Some(value.into()) }) }
}
