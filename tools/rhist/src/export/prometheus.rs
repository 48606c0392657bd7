// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prometheus: classic and native histograms, from a server for scrapes or in a file for node_exporter.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, ACCEPT, ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    prometheus_protobuf, text, DescriptorEncoder, MetricEncoder, NativeHistogram,
    NativeHistogramBuckets, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit as BaseUnit};

use super::{base, event_name, Exponential, Indices, Labels, Points, Questions, Set};
use crate::error::{Error, Result};
use crate::model::{Agg, Bucket, Exemplar, KeyColumn, Kind, Number, Unit};
use crate::tracefs::reason;

/// Names that labels made from keys must not have.
const TAKEN: [&str; 7] = [
    "le", "event", "table", "question", "reason", "overflow", "quantile",
];

/// The time that a client has to send its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ends of the buckets of a classic histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Le {
    /// Powers of two, the same in each series from the first scrape on.
    #[default]
    Powers,
    /// The ends of all intervals with hits, which differ between series.
    Fine,
}

/// The counts that are exposed.
#[derive(Debug, Clone)]
pub struct Exposed {
    /// The counts of all questions.
    pub questions: Questions,
    /// The kind of buckets for classic histograms.
    pub le: Le,
    /// Whether counting is going on.
    pub up: bool,
    /// The exemplar after each bucket of the text that was encoded last.
    exemplars: RefCell<Vec<String>>,
}

/// The exposed counts, shared by the thread that counts and the thread that answers.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Mutex<Exposed>>);

impl Shared {
    /// Returns shared counts that are empty.
    pub fn new(questions: Questions, le: Le) -> Self {
        Self(Arc::new(Mutex::new(Exposed {
            questions,
            le,
            up: true,
            exemplars: RefCell::default(),
        })))
    }

    /// Locks the exposed counts for `change`, and returns its result.
    pub fn with<T>(&self, change: impl FnOnce(&mut Exposed) -> T) -> T {
        // No code panics while it holds the lock, and the numbers would still be consistent.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Encodes all counts in this format.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        self.with(|exposed| exposed.exemplars.borrow_mut().clear());
        let failed = |e: &dyn fmt::Display| error!("cannot write the metrics: {e}");
        if format == Format::Protobuf {
            return prometheus_protobuf::encode_to_vec(&registry).map_err(|e| failed(&e));
        }
        let mut open_metrics = String::new();
        text::encode(&mut open_metrics, &registry).map_err(|e| failed(&e))?;
        Ok(match format {
            Format::Plain => plain(&open_metrics).into_bytes(),
            _ => {
                let exemplars = self.with(|exposed| exposed.exemplars.take());
                with_exemplars(&open_metrics, &exemplars).into_bytes()
            }
        })
    }
}

/// The formats of a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The format that has native histograms, protobuf.
    Protobuf,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older text, version 0.0.4.
    Plain,
}

impl Format {
    /// Returns the content type of the format in HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the format that a client prefers, by the `Accept` header.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (0.0, Self::Plain);
        for wish in accept.split(',') {
            let mut parts = wish.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default() {
                "application/vnd.google.protobuf" => Self::Protobuf,
                "application/openmetrics-text" => Self::OpenMetrics,
                "text/plain" => Self::Plain,
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok());
            let weight = weight.unwrap_or(1.0);
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }
}

/// Returns the text with an exemplar after each bucket. They are added to the text since the encoder accepts only its
/// own exemplars, and none for native histograms.
fn with_exemplars(open_metrics: &str, exemplars: &[String]) -> String {
    let mut next = exemplars.iter();
    let mut out = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        out += line;
        if !line.starts_with('#') && line.contains("_bucket{") {
            out += next.next().map_or("", String::as_str);
        }
        out.push('\n');
    }
    out
}

/// Returns for each bucket, the last one included, its largest exemplar as OpenMetrics writes it, in at most 128
/// characters.
fn exemplars(points: &Points, bounds: &[(Number, u64)], divisor: f64) -> Vec<String> {
    let all: Vec<Exemplar> = points.exemplars.values().cloned().collect();
    let ends = bounds.iter().map(|&(end, _)| end).chain([Number::MAX]);
    let mut lo = Number::MIN;
    let texts = ends.map(|hi| {
        let found = Exemplar::in_bucket(&all, Bucket { lo, hi });
        lo = hi.saturating_add(1);
        found.map_or_else(String::new, |one| {
            let mut length = 0;
            let labels = one.named().map(|(name, value)| (label(name), value));
            let labels = labels.take_while(|(name, value)| {
                length += name.chars().count() + value.chars().count();
                length <= 128
            });
            let quoted = |value: String| value.replace('\\', "\\\\").replace('"', "\\\"");
            let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", quoted(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            format!(" # {{{labels}}} {}", one.value as f64 / divisor)
        })
    });
    texts.collect()
}

/// OpenMetrics as the older text, which names counters with their suffix and knows neither units nor an end.
fn plain(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, text] => help = Some((name, text)),
            ["#", "TYPE", name, kind] => {
                let suffix = if kind == "counter" { "_total" } else { "" };
                if let Some((_, text)) = help.take().filter(|(helped, _)| *helped == name) {
                    out += &format!("# HELP {name}{suffix} {text}\n");
                }
                out += &format!("# TYPE {name}{suffix} {kind}\n");
            }
            ["#", ..] => {}
            _ => {
                out += line;
                out.push('\n');
            }
        }
    }
    out
}

/// Returns the labels of a series in the form for Prometheus.
fn labels(set: &Set, labels: Option<&Labels>, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all = vec![("event".to_owned(), event_name(&set.head.event))];
    if set.number > 1 {
        all.push(("table".to_owned(), set.number.to_string()));
    }
    match labels {
        Some(labels) => all.extend(
            labels
                .iter()
                .map(|(name, value)| (label(name), value.clone())),
        ),
        None => all.push(("overflow".to_owned(), "true".to_owned())),
    }
    all.extend(
        more.iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned())),
    );
    all
}

/// Returns a valid label of Prometheus for a name.
fn label(name: &str) -> String {
    let name = identifier(name);
    match TAKEN.contains(&name.as_str()) || name.starts_with("__") {
        true => format!("key_{name}"),
        false => name,
    }
}

/// Returns the text with only letters, digits and underscores, and no digit at the beginning.
fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("_{name}"),
    }
}

impl Collector for Shared {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.with(|exposed| exposed.encode(&mut encoder))
    }
}

/// A function that encodes one series of a set.
type Encode<'a> = Box<dyn Fn(&Points, &mut MetricEncoder<'_>) -> fmt::Result + 'a>;

/// Metrics of one type by name and unit: a metric is declared once, even if several triggers have it.
#[derive(Default)]
struct Families<'a>(BTreeMap<Name, Family<'a>>);

/// The help text of a metric, and its sets.
type Family<'a> = (String, Vec<(&'a Set, Encode<'a>)>);

/// The name of a metric without its unit, and the unit.
type Name = (String, Option<&'static str>);

impl<'a> Families<'a> {
    fn add(&mut self, name: Name, help: String, set: &'a Set, encode: Encode<'a>) {
        let (_, sets) = self.0.entry(name).or_insert_with(|| (help, Vec::new()));
        sets.push((set, encode));
    }

    fn encode(self, kind: MetricType, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for ((name, unit), (help, sets)) in self.0 {
            let unit = unit.map(|unit| BaseUnit::Other(unit.to_owned()));
            let mut metric = encoder.encode_descriptor(&name, &help, unit.as_ref(), kind)?;
            for (set, encode) in sets {
                for (key, points) in set.all() {
                    let labels = labels(set, key, &[]);
                    encode(points, &mut metric.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

/// A function that returns counts of a set, each with its reason if there are several.
type Counts = fn(&Set) -> Vec<(&'static str, u64)>;

/// The outcomes of the calls of a trigger, by the name and the help text of the metric.
const OUTCOMES: [(&str, &str, Counts); 3] = [
    (
        "rhist_hits",
        "Calls of a trigger that were counted",
        |set| vec![("", set.head.account.hits)],
    ),
    (
        "rhist_lost",
        "What a trigger did not count or keep, by reason",
        Set::lost,
    ),
    (
        "rhist_ignored",
        "Calls of a trigger without the variable that it wants",
        |set| {
            let losses = set.head.account.losses.iter();
            losses.map(|losses| ("", losses.ignored)).collect()
        },
    ),
];

impl Exposed {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (mut histograms, mut counters, mut gauges): (Families<'_>, Families<'_>, Families<'_>) =
            Default::default();
        let sets = self.questions.all.iter().flat_map(|metrics| {
            let name = format!("rhist_{}", identifier(&metrics.question));
            let sets = metrics.sets.iter();
            sets.map(move |set| (name.clone(), metrics, set))
        });
        for (question, metrics, set) in sets {
            let about = |what: &str| match metrics.title.as_str() {
                "" => format!("{what}, by a hist trigger"),
                title => format!("{} {what}", help(title)),
            };
            match set.head.interval() {
                Some(column) => {
                    let help = about(&format!("Distribution of {}", measured(&column.name)));
                    let grid = grid(column);
                    let encode: Encode<'_> = Box::new(move |points, series| {
                        self.histogram(set, column, &grid, points, series)
                    });
                    histograms.add((question.clone(), base(column.unit).1), help, set, encode);
                }
                None => {
                    let encode: Encode<'_> = Box::new(|points, series| {
                        series.encode_counter::<NoLabelSet, _, u64>(&points.hits, None)
                    });
                    let name = format!("{question}_hits");
                    counters.add((name, None), about("How often"), set, encode);
                }
            }
            for (i, value) in set.sums() {
                let (divisor, unit) = base(value.unit);
                let sum = move |points: &Points| {
                    points.values.get(i).copied().unwrap_or_default() as f64 / divisor
                };
                let name = format!("{question}_{}", identifier(&value.name));
                let help = about(&format!("Sum of {}", measured(&value.name)));
                // A number without a unit can be negative, which a counter cannot.
                if unit.is_some() {
                    let encode: Encode<'_> = Box::new(move |points, series| {
                        series.encode_counter::<NoLabelSet, _, f64>(&sum(points), None)
                    });
                    counters.add((name, unit), help, set, encode);
                } else {
                    let encode: Encode<'_> =
                        Box::new(move |points, series| series.encode_gauge(&sum(points)));
                    gauges.add((name + "_sum", unit), help, set, encode);
                }
            }
        }
        histograms.encode(MetricType::Histogram, encoder)?;
        counters.encode(MetricType::Counter, encoder)?;
        gauges.encode(MetricType::Gauge, encoder)?;
        self.account(encoder)
    }

    /// Encodes the outcomes of the calls of all triggers, and whether counting is going on.
    fn account(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, counts) in OUTCOMES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for metrics in &self.questions.all {
                for set in &metrics.sets {
                    for (reason, count) in counts(set) {
                        let more = [("question", metrics.question.as_str()), ("reason", reason)];
                        let more = &more[..if reason.is_empty() { 1 } else { 2 }];
                        metric
                            .encode_family(&labels(set, Some(&Labels::new()), more))?
                            .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
                    }
                }
            }
        }
        let help = "1 while the triggers are read, 0 afterwards";
        encoder
            .encode_descriptor("rhist_up", help, None, MetricType::Gauge)?
            .encode_gauge(&u64::from(self.up))
    }

    fn histogram(
        &self,
        set: &Set,
        column: &KeyColumn,
        grid: &[Number],
        points: &Points,
        series: &mut MetricEncoder<'_>,
    ) -> fmt::Result {
        let (divisor, _) = base(column.unit);
        // Without a sum of the measured field the sum is unknown, unless there are no hits.
        let none = if points.hits == 0 { 0.0 } else { f64::NAN };
        let sum = set.of_measure(points, Agg::Sum);
        let sum = sum.map_or(none, |sum| sum as f64 / divisor);
        let bounds = match self.le {
            Le::Powers => points.bounds_in(grid),
            Le::Fine => points.bounds(),
        };
        let exemplars = exemplars(points, &bounds, divisor);
        self.exemplars.borrow_mut().extend(exemplars);
        let (hits, classic) = (points.hits, classic(&bounds, points.hits, divisor));
        // Text formats have no native buckets.
        let Kind::Log2 { scale } = column.kind else {
            return series.encode_histogram::<NoLabelSet>(sum, hits, &classic, None);
        };
        let (schema, threshold, buckets) = native(scale, column.unit, points);
        let positive = Sparse::of(&buckets.positive);
        let negative = Sparse::of(&buckets.negative);
        let native = NativeHistogram {
            schema,
            zero_threshold: threshold,
            zero_count: buckets.zero,
            negative: negative.buckets(),
            positive: positive.buckets(),
            created: created(set),
        };
        series.encode_histogram_with_native::<NoLabelSet>(sum, hits, &classic, None, native)
    }
}

/// Returns a name in the form for a help text, which is one line.
fn help(name: &str) -> String {
    crate::units::text(name).replace('\\', "?")
}

/// Returns the measured quantity for a help text; latencies have a field of the tool.
fn measured(name: &str) -> String {
    match name.trim_start_matches('$') {
        "lat" => "the times".to_owned(),
        name => help(name),
    }
}

fn created(set: &Set) -> Option<SystemTime> {
    let (begin, _) = set.times;
    (begin > 0).then(|| UNIX_EPOCH + Duration::from_nanos(begin))
}

/// Returns the ends of the buckets that each series of this column has: powers of two, each of which is the end of an
/// interval on any scale. Wider intervals get as many ends as there are powers; numbers up to the first end are in the
/// first bucket.
///
/// The bounds of times go from 128 ns (1 us if they are counted in microseconds) to some five hours.
fn grid(column: &KeyColumn) -> Vec<Number> {
    let (first, last) = match column.unit {
        Some(Unit::Ns) => (7, 44),
        Some(Unit::Us) => (0, 34),
        Some(Unit::Bytes) => (0, 40),
        None => (0, 64),
    };
    let power = |exponent: u32| Number::from(2).pow(exponent);
    match column.kind {
        Kind::Buckets { width } => (0..=64)
            .map(|exponent| Number::from(width) * power(exponent) - 1)
            .take_while(|&end| end < power(last))
            .collect(),
        _ => (first..=last).map(power).collect(),
    }
}

/// Returns the buckets of a classic histogram with `hits` hits: their upper ends in the base unit, and their hits.
fn classic(bounds: &[(Number, u64)], hits: u64, divisor: f64) -> Vec<(f64, u64)> {
    let mut buckets: Vec<(f64, u64)> = Vec::new();
    for &(bound, hits) in bounds {
        let bound = bound as f64 / divisor;
        match buckets.last_mut() {
            // Beyond 2^53 two neighbouring bounds can become one number.
            Some((last, sum)) if *last == bound => *sum += hits,
            _ => buckets.push((bound, hits)),
        }
    }
    let inside: u64 = buckets.iter().map(|&(_, hits)| hits).sum();
    buckets.push((f64::INFINITY, hits.saturating_sub(inside)));
    buckets
}

/// Returns the native histogram for intervals of `.log2=scale` in this unit: schema `scale`, the largest number in the
/// bucket of 0, and one bucket for each interval, by index.
///
/// For bytes and numbers without a unit the buckets are exact. Seconds are not whole numbers: bounds in nanoseconds
/// never fall on the bounds of a schema, as `log2(10^9)` is no multiple of a fraction of a power of two. All bounds are
/// then moved by the same factor to the nearest bounds: up by 1.6 % for nanoseconds and `.log2=3`, by half a bucket at
/// most.
fn native(scale: u8, unit: Option<Unit>, points: &Points) -> (i32, f64, Exponential) {
    let schema = i32::from(scale);
    let (divisor, _) = base(unit);
    let moved = (divisor.log2() * f64::from(schema).exp2()).round() as i64;
    let threshold = match scale {
        0 => upper_end(schema, -moved),
        _ => 0.0,
    };
    let buckets = Exponential::of(scale, &points.slots, |index| index - moved);
    (schema, threshold, buckets)
}

/// Returns the upper end of a native bucket.
pub fn upper_end(schema: i32, index: i64) -> f64 {
    (index as f64 * f64::from(-schema).exp2()).exp2()
}

/// Buckets in the form of Prometheus: spans, and differences of counts.
struct Sparse {
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
}

impl Sparse {
    fn of(buckets: &Indices) -> Self {
        let (mut spans, mut deltas): (Vec<(i32, u32)>, Vec<i64>) = Default::default();
        let mut next = 0;
        let mut before = 0;
        for (&index, &hits) in buckets {
            match spans.last_mut() {
                Some((_, length)) if index == next => *length += 1,
                _ => spans.push((i32::try_from(index - next).unwrap_or(i32::MAX), 1)),
            }
            let hits = i64::try_from(hits).unwrap_or(i64::MAX);
            deltas.push(hits - before);
            before = hits;
            next = index + 1;
        }
        if spans.is_empty() {
            // An empty span marks the histogram as a native one.
            spans.push((0, 0));
        }
        Self { spans, deltas }
    }

    fn buckets(&self) -> NativeHistogramBuckets<'_> {
        NativeHistogramBuckets {
            spans: &self.spans,
            deltas: &self.deltas,
        }
    }
}

/// Writes the counts to a file for node_exporter, atomically: a reader sees the old or the new file.
pub fn write_file(shared: &Shared, path: &Path) -> Result<()> {
    let text = shared.encode(Format::Plain)?;
    let name = path.file_name().ok_or_else(|| {
        let path = path.display();
        error!("{path} is no file; say --textfile with the name of one that ends in .prom")
    })?;
    // node_exporter reads only files whose names end in .prom.
    let name = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    let temporary = path.with_file_name(name);
    let written = fs::write(&temporary, &text).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|e| {
        // A half-written file is removed.
        let _ = fs::remove_file(&temporary);
        Error::file("write", path, &e)
    })
}

/// Opens the socket for scrapes.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| {
        let reason = reason(&e);
        error!("cannot listen on {address}: {reason}; say another address with --listen")
    })
}

/// Answers scrapes in a thread, as long as the program runs.
pub fn serve(listener: TcpListener, shared: Shared) -> Result<()> {
    let failed = |e: std::io::Error| error!("cannot serve scrapes: {e}");
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(failed)?
    };
    let accept = async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // The process may have too many open files, for example; later there may be fewer.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let shared = shared.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                let answer = answer(&shared, &request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .serve_connection(TokioIo::new(stream), answer);
            // A client that disconnects is no error.
            tokio::spawn(async move { drop(connection.await) });
        }
    };
    let thread = thread::Builder::new().name("scrapes".to_owned());
    thread
        .spawn(move || runtime.block_on(accept))
        .map_err(failed)?;
    Ok(())
}

fn answer(shared: &Shared, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let said = |status: StatusCode, content_type: &'static str, body: Vec<u8>| {
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        let content_type = HeaderValue::from_static(content_type);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    };
    let text = |status, text: &str| {
        let body = format!("{text}\n").into_bytes();
        said(status, "text/plain; charset=utf-8", body)
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let status = StatusCode::METHOD_NOT_ALLOWED;
        let mut response = text(status, "only GET and HEAD are understood");
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    match request.uri().path() {
        "/metrics" => {
            let accept = request.headers().get_all(ACCEPT).iter();
            let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
            let format = Format::accepted(&accept.join(","));
            match shared.encode(format) {
                Ok(body) => said(StatusCode::OK, format.content_type(), body),
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            }
        }
        "/" => text(StatusCode::OK, "rhist: the metrics are at /metrics"),
        _ => text(StatusCode::NOT_FOUND, "there is nothing but /metrics"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exemplify, table};

    #[test]
    fn buckets_have_exemplars() {
        let mut counted = table(&[(1, 10, 90), (1, 12, 9), (2, 10, 1)]);
        exemplify(&mut counted, &[(1000, "a \"b\""), (4000, &"x".repeat(200))]);
        for le in [Le::Powers, Le::Fine] {
            let shared = Shared::new(Questions::new(10), le);
            shared
                .with(|exposed| exposed.questions.of("runq").add(&counted).map(drop))
                .unwrap();
            let text = String::from_utf8(shared.encode(Format::OpenMetrics).unwrap()).unwrap();
            let with: Vec<&str> = text.lines().filter(|line| line.contains(" # {")).collect();
            assert_eq!(with.len(), 2, "{text}");
            assert!(
                with[0].contains("le=\"0.000001024\"") && with[0].contains("pid=\"1\""),
                "{text}"
            );
            assert!(
                with[0].ends_with("} 90 # {cpu=\"1\",comm=\"a \\\"b\\\"\"} 0.000001"),
                "{text}"
            );
            // A label that is too long is left out.
            assert!(
                with[1].contains("le=\"0.000004096\"")
                    && with[1].ends_with("} 99 # {cpu=\"1\"} 0.000004"),
                "{text}"
            );
            let plain = String::from_utf8(shared.encode(Format::Plain).unwrap()).unwrap();
            assert!(!plain.contains(" # {"), "{plain}");
        }
    }
}
