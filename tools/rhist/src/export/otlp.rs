// SPDX-License-Identifier: MIT OR Apache-2.0

//! OpenTelemetry: exponential histograms with the kernel's buckets, in the original unit, sent to a collector by HTTP.
//!
//! An interval of `.log2=N` with index `i` is the bucket `i - 1` of scale `N`, exactly.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{any_value, AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    exemplar::Value as ExemplarValue, metric::Data, AggregationTemporality, Exemplar,
    ExponentialHistogram, ExponentialHistogramDataPoint, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::{event_name, Exponential, Indices, Labels, Points, Set};
use crate::error::Result;
use crate::model::{Agg, Kind, Number, Unit};
use crate::tracefs::reason;

/// The most bytes of requests that are kept for a collector that does not answer.
const MOST_WAITING: usize = 16 << 20;

/// How often the last requests are tried again at the end.
const LAST_TRIES: u32 = 5;

/// The time that a collector has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The machine that all metrics describe.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The name of the machine.
    pub host: String,
    /// The release of the machine's kernel.
    pub kernel: String,
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

fn attributes(set: &Set, labels: Option<&Labels>) -> Vec<KeyValue> {
    let mut all = vec![attribute("event", &event_name(&set.head.event))];
    if set.number > 1 {
        all.push(attribute("table", &set.number.to_string()));
    }
    match labels {
        Some(labels) => all.extend(labels.iter().map(|(name, value)| attribute(name, value))),
        None => all.push(KeyValue {
            value: Some(AnyValue {
                value: Some(any_value::Value::BoolValue(true)),
            }),
            ..attribute("otel.metric.overflow", "")
        }),
    }
    all
}

/// Returns a number, or the nearest one that a point can have.
fn clamped(number: Number) -> i64 {
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Returns a unit in the notation of OpenTelemetry.
fn unit(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::Ns) => "ns",
        Some(Unit::Us) => "us",
        Some(Unit::Bytes) => "By",
        None => "1",
    }
}

/// Returns buckets without gaps, from the lowest with hits to the highest.
fn dense(indices: &Indices) -> Option<Buckets> {
    let (&first, _) = indices.first_key_value()?;
    let (&last, _) = indices.last_key_value()?;
    Some(Buckets {
        offset: i32::try_from(first).unwrap_or(i32::MAX),
        bucket_counts: (first..=last)
            .map(|index| indices.get(&index).copied().unwrap_or_default())
            .collect(),
    })
}

/// Returns the metrics for the counts of a trigger.
pub fn metrics(question: &str, set: &Set, delta: bool) -> Vec<Metric> {
    let temporality = match delta {
        true => AggregationTemporality::Delta,
        false => AggregationTemporality::Cumulative,
    };
    let (start_time_unix_nano, time_unix_nano) = set.times;
    let metric = |name: &str, unit: &str, description: &str, data: Data| Metric {
        name: format!("rhist.{name}"),
        description: description.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    };
    let number = |attributes: Vec<KeyValue>, number: i64| NumberDataPoint {
        attributes,
        start_time_unix_nano,
        time_unix_nano,
        value: Some(Value::AsInt(number)),
        ..NumberDataPoint::default()
    };
    let sum = |data_points: Vec<NumberDataPoint>, is_monotonic: bool| {
        Data::Sum(Sum {
            data_points,
            aggregation_temporality: temporality.into(),
            is_monotonic,
        })
    };
    let mut metrics = Vec::new();
    match set.head.interval() {
        Some(column) => {
            let data = match column.kind {
                Kind::Log2 { scale } => Data::ExponentialHistogram(ExponentialHistogram {
                    data_points: set
                        .all()
                        .map(|(labels, points)| exponential(set, labels, points, scale))
                        .collect(),
                    aggregation_temporality: temporality.into(),
                }),
                _ => Data::Histogram(Histogram {
                    data_points: set
                        .all()
                        .map(|(labels, points)| explicit(set, labels, points))
                        .collect(),
                    aggregation_temporality: temporality.into(),
                }),
            };
            let description = "Distribution of a field or a time in hits of a hist trigger";
            metrics.push(metric(question, unit(column.unit), description, data));
        }
        None => {
            let points = set.all().map(|(labels, points)| {
                number(attributes(set, labels), clamped(points.hits.into()))
            });
            let data = sum(points.collect(), true);
            let name = format!("{question}.hits");
            metrics.push(metric(&name, "{hit}", "Hits of a hist trigger", data));
        }
    }
    for (i, value) in set.sums() {
        let points = set.all().map(|(labels, points)| {
            let sum = points.values.get(i).copied().unwrap_or_default();
            number(attributes(set, labels), clamped(sum))
        });
        // Numbers without a unit can be negative, so their sum is not monotonic.
        let data = sum(points.collect(), value.unit.is_some());
        let name = format!("{question}.{}", crate::units::text(&value.name));
        let description = "Sum of a field over the hits of a hist trigger";
        metrics.push(metric(&name, unit(value.unit), description, data));
    }
    let nothing = Labels::new();
    let lost = set.lost().into_iter().map(|(reason, count)| {
        let mut attributes = attributes(set, Some(&nothing));
        attributes.push(attribute("question", question));
        attributes.push(attribute("reason", reason));
        number(attributes, clamped(count.into()))
    });
    let data = sum(lost.collect(), true);
    let description = "What a trigger did not count or keep, by reason";
    metrics.push(metric("lost", "{hit}", description, data));
    metrics
}

fn exponential(
    set: &Set,
    labels: Option<&Labels>,
    points: &Points,
    scale: u8,
) -> ExponentialHistogramDataPoint {
    let (start_time_unix_nano, time_unix_nano) = set.times;
    let buckets = Exponential::of(scale, &points.slots, |index| index - 1);
    ExponentialHistogramDataPoint {
        attributes: attributes(set, labels),
        start_time_unix_nano,
        time_unix_nano,
        count: points.hits,
        sum: sum(set, points),
        min: measured(set, points, Agg::Min),
        max: measured(set, points, Agg::Max),
        scale: scale.into(),
        zero_count: buckets.zero,
        zero_threshold: buckets.threshold as f64,
        positive: dense(&buckets.positive),
        negative: dense(&buckets.negative),
        exemplars: exemplars(set, points),
        ..ExponentialHistogramDataPoint::default()
    }
}

fn explicit(set: &Set, labels: Option<&Labels>, points: &Points) -> HistogramDataPoint {
    let (start_time_unix_nano, time_unix_nano) = set.times;
    let bounds = points.bounds();
    HistogramDataPoint {
        attributes: attributes(set, labels),
        start_time_unix_nano,
        time_unix_nano,
        count: points.hits,
        sum: sum(set, points),
        min: measured(set, points, Agg::Min),
        max: measured(set, points, Agg::Max),
        // No hit is above the last bound.
        bucket_counts: bounds.iter().map(|&(_, hits)| hits).chain([0]).collect(),
        exemplars: exemplars(set, points),
        explicit_bounds: bounds.iter().map(|&(bound, _)| bound as f64).collect(),
        ..HistogramDataPoint::default()
    }
}

/// Returns the exemplars of a point. They have the time of the point, since the time of a hit is not kept.
fn exemplars(set: &Set, points: &Points) -> Vec<Exemplar> {
    let exemplars = points.exemplars.values().map(|one| Exemplar {
        filtered_attributes: one
            .named()
            .map(|(name, value)| attribute(name, &value))
            .collect(),
        time_unix_nano: set.times.1,
        value: Some(ExemplarValue::AsInt(clamped(one.value))),
        ..Exemplar::default()
    });
    exemplars.collect()
}

/// The sum, the smallest or the largest number, if the trigger has it.
fn measured(set: &Set, points: &Points, agg: Agg) -> Option<f64> {
    set.of_measure(points, agg).map(|number| number as f64)
}

/// Returns the sum for OpenTelemetry, which accepts none if numbers can be negative.
fn sum(set: &Set, points: &Points) -> Option<f64> {
    let negative = points.slots.keys().any(|slot| slot.bucket.lo < 0);
    measured(set, points, Agg::Sum).filter(|_| !negative)
}

/// Returns the request that sends metrics.
pub fn request(origin: &Origin, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let known = [
        ("service.name", "rhist"),
        ("service.version", crate::VERSION),
        ("host.name", &origin.host),
        ("os.type", "linux"),
        ("os.version", &origin.kernel),
    ];
    let attributes = known.iter().filter(|(_, value)| !value.is_empty());
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: attributes
                    .map(|(key, value)| attribute(key, value))
                    .collect(),
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "rhist".to_owned(),
                    version: crate::VERSION.to_owned(),
                    ..InstrumentationScope::default()
                }),
                metrics,
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

/// The collector's answer to a request.
enum Answer {
    Taken,
    /// The request may be accepted later.
    Later(String),
    /// The request is refused, for this reason.
    Never(String),
}

/// Sends requests to a collector, in their order.
pub struct Sender {
    agent: ureq::Agent,
    url: String,
    /// The requests that were not accepted yet, each with its question.
    waiting: VecDeque<(String, Vec<u8>)>,
    /// Whether a request has all counts of its question so far, so that earlier requests can be dropped.
    cumulative: bool,
    /// The number of requests that were dropped.
    lost: u64,
    /// Whether a message that the collector refuses requests was printed.
    said: bool,
}

impl Sender {
    /// Returns a sender to a collector at `http://HOST:PORT`, or at a whole address with a path.
    pub fn new(endpoint: &str, delta: bool) -> Result<Self> {
        let Some(rest) = endpoint
            .strip_prefix("http://")
            .filter(|rest| !rest.is_empty())
        else {
            return Err(error!(
                "'{endpoint}' is no address of a collector: say --endpoint http://127.0.0.1:4318; one on this machine \
                 can forward by TLS"
            ));
        };
        let url = match rest.split_once('/') {
            Some((_, path)) if !path.is_empty() => endpoint.to_owned(),
            _ => format!("{}/v1/metrics", endpoint.trim_end_matches('/')),
        };
        if let Err(why) = url.parse::<ureq::http::Uri>() {
            return Err(error!("'{endpoint}' is no address: {why}"));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .build();
        Ok(Self {
            agent: config.into(),
            url,
            waiting: VecDeque::new(),
            cumulative: !delta,
            lost: 0,
            said: false,
        })
    }

    /// Sends a request of a question, after those that wait. Requests wait as long as the collector cannot be reached,
    /// and are dropped if it refuses them; then a message is returned.
    pub fn send(
        &mut self,
        question: &str,
        request: &ExportMetricsServiceRequest,
    ) -> Option<String> {
        if self.cumulative {
            self.waiting.retain(|(other, _)| other != question);
        }
        self.waiting
            .push_back((question.to_owned(), request.encode_to_vec()));
        let said = self.flush();
        match self.shorten() {
            0 => said,
            _ => said.map(|text| format!("{text}; too much waits, so the oldest epochs are lost")),
        }
    }

    /// Drops the oldest requests if too many bytes wait; returns the number of dropped requests.
    fn shorten(&mut self) -> u64 {
        let mut bytes: usize = self.waiting.iter().map(|(_, body)| body.len()).sum();
        let mut dropped = 0;
        while bytes > MOST_WAITING {
            bytes -= self
                .waiting
                .pop_front()
                .map_or(bytes, |(_, body)| body.len());
            dropped += 1;
        }
        self.lost += dropped;
        dropped
    }

    /// Sends the waiting requests until the collector asks for a later try. A refused request is never sent again, as
    /// the specification demands, and that is said once.
    fn flush(&mut self) -> Option<String> {
        let mut said = None;
        while let Some((_, body)) = self.waiting.front() {
            match self.post(body) {
                Answer::Taken => {}
                Answer::Later(why) => {
                    return said.or(Some(format!("{} takes nothing now: {why}", self.url)));
                }
                Answer::Never(why) => {
                    self.lost += 1;
                    if !std::mem::replace(&mut self.said, true) {
                        said = Some(format!(
                            "{} refuses the metrics: {why}; they are dropped; is it the address of an OTLP receiver by \
                             HTTP?",
                            self.url
                        ));
                    }
                }
            }
            self.waiting.pop_front();
        }
        said
    }

    /// Tries for a while to send the waiting requests. Returns the number of dropped requests.
    pub fn finish(mut self) -> Result<u64> {
        let mut pause = Duration::from_millis(250);
        for _ in 0..LAST_TRIES {
            self.flush();
            if self.waiting.is_empty() {
                return Ok(self.lost);
            }
            thread::sleep(pause);
            pause *= 2;
        }
        match self.flush() {
            Some(text) if !self.waiting.is_empty() => Err(error!(
                "{text}; requests that were not sent: {}",
                self.waiting.len()
            )),
            _ => Ok(self.lost),
        }
    }

    fn post(&self, body: &[u8]) -> Answer {
        let sent = self
            .agent
            .post(&self.url)
            .header("Content-Type", "application/x-protobuf")
            .send(body);
        let mut response = match sent {
            Ok(response) => response,
            Err(ureq::Error::BadUri(why)) => return Answer::Never(why),
            Err(ureq::Error::Http(why)) => return Answer::Never(why.to_string()),
            Err(why) => return Answer::Later(reason(&why)),
        };
        let status = response.status();
        match status.as_u16() {
            200..300 => {}
            // States for which the specification of OTLP demands another try.
            429 | 502 | 503 | 504 => return Answer::Later(status.to_string()),
            _ => return Answer::Never(status.to_string()),
        }
        let body = response.body_mut().read_to_vec().unwrap_or_default();
        let refused = ExportMetricsServiceResponse::decode(body.as_slice())
            .ok()
            .and_then(|said| said.partial_success);
        match refused {
            Some(refused) if refused.rejected_data_points > 0 => Answer::Never(format!(
                "{} points are rejected ({})",
                refused.rejected_data_points, refused.error_message
            )),
            _ => Answer::Taken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_exemplars() {
        let mut counted = crate::testing::table(&[(1, 10, 90), (1, 12, 9)]);
        crate::testing::exemplify(&mut counted, &[(1000, "a"), (4000, "b")]);
        let mut metrics = super::super::Metrics::new("runq", 10);
        let all = super::metrics("runq", metrics.add(&counted).unwrap(), false);
        let Some(Data::ExponentialHistogram(histogram)) = &all[0].data else {
            panic!("no histogram")
        };
        let exemplars = &histogram.data_points[0].exemplars;
        let values: Vec<_> = exemplars.iter().map(|one| one.value).collect();
        assert_eq!(values, [1000, 4000].map(|n| Some(ExemplarValue::AsInt(n))));
        let wanted = [attribute("cpu", "1"), attribute("comm", "a")];
        assert_eq!(exemplars[0].filtered_attributes, wanted);
    }

    #[test]
    fn the_oldest_requests_are_dropped() {
        let mut sender = Sender::new("http://127.0.0.1:1", true).unwrap();
        let wait = |sender: &mut Sender, size| {
            let question = sender.waiting.len().to_string();
            sender.waiting.push_back((question, vec![0; size]));
        };
        for _ in 0..4 {
            wait(&mut sender, MOST_WAITING / 4);
        }
        assert_eq!(sender.shorten(), 0);
        wait(&mut sender, 1);
        assert_eq!((sender.shorten(), sender.lost), (1, 1));
        assert_eq!(sender.waiting[0].0, "1");
        wait(&mut sender, MOST_WAITING);
        assert_eq!((sender.shorten(), sender.lost), (4, 5));
        wait(&mut sender, MOST_WAITING + 1);
        assert_eq!((sender.shorten(), sender.waiting.len()), (2, 0));
    }
}
