// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests that exported counts equal the kernel's, bucket by bucket, over sockets and decoded as published.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::thread;

use num_bigint::BigUint;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Metric, Sum,
};
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::{
    Histogram, MetricFamily,
};
use proptest::prelude::*;
use prost::Message;

use rhist::export::otlp::{self, Origin, Sender};
use rhist::export::prometheus::{upper_end, Format, Le, Shared};
use rhist::export::{Metrics, Questions};
use rhist::model::Table;
use rhist::parse::json;

/// Returns the index of a number in `.log2=scale` by its definition, in exact arithmetic: the smallest `i` for which
/// the number is at most `2^(i / 2^scale)`. At scale 0, the number 0 has the index of 1; else it has none.
fn index(scale: u8, number: u64) -> Option<u64> {
    match number {
        0 if scale > 0 => None,
        0 | 1 => Some(0),
        _ => {
            let power = BigUint::from(number).pow(1 << scale);
            Some((power - 1u32).bits())
        }
    }
}

/// Returns the largest 64-bit number that is at most `2^(i / 2^scale)`.
fn last(scale: u8, i: u64) -> u64 {
    if i >= 64 << scale {
        return u64::MAX;
    }
    (BigUint::from(1u32) << i)
        .nth_root(1 << scale)
        .try_into()
        .unwrap()
}

/// Returns the interval of a number in the kernel's notation.
fn interval(scale: u8, number: u64) -> String {
    let Some(i) = index(scale, number) else {
        return "{\"lo\":0,\"hi\":0}".into();
    };
    let lo = match i {
        0 => u64::from(scale > 0),
        _ => last(scale, i - 1) + 1,
    };
    format!("{{\"i\":{i},\"lo\":{lo},\"hi\":{}}}", last(scale, i))
}

/// Returns the lines of `hist_json` for one epoch of a table with these numbers.
fn epoch(epoch: u64, scale: u8, unit: Option<&str>, numbers: &[u64]) -> String {
    let unit = unit.map_or(String::new(), |unit| format!(",\"unit\":\"{unit}\""));
    let (from, to) = (epoch * 1_000_000_000, (epoch + 1) * 1_000_000_000);
    let mut text = format!(
        "{{\"v\":1,\"type\":\"hist\",\"event\":\"sched:sched_switch\",\"trigger\":\"hist:keys=next_comm,$lat.log2={scale}\",\
         \"state\":\"active\",\"epoch\":{epoch},\"from\":{from},\"to\":{to},\"real\":{},\"keys\":[{{\"name\":\"next_comm\",\
         \"kind\":\"string\"}},{{\"name\":\"lat\",\"kind\":\"log2\",\"scale\":{scale}{unit}}}],\"vals\":[{{\"name\":\"hitcount\"}},\
         {{\"name\":\"lat\"{unit}}}]}}\n",
        1_700_000_000_000_000_000 + to
    );
    let mut rows: BTreeMap<String, (u64, u128)> = BTreeMap::new();
    for &number in numbers {
        let row = rows.entry(interval(scale, number)).or_default();
        row.0 += 1;
        row.1 += u128::from(number);
    }
    for (key, (hits, sum)) in &rows {
        // The kernel's sums have 64 bits.
        let _ = writeln!(
            text,
            "{{\"k\":[\"gawk\",{key}],\"v\":[{hits},{}]}}",
            *sum as u64
        );
    }
    let _ = writeln!(
        text,
        "{{\"type\":\"end\",\"entries\":{},\"calls\":{n},\"hits\":{n},\"dropped_full\":0,\"dropped_nested\":0,\"ignored\":0,\
         \"lost_saves\":0,\"lost_traces\":0}}",
        rows.len(),
        n = numbers.len()
    );
    text
}

fn table(scale: u8, unit: Option<&str>, numbers: &[u64]) -> Table {
    json::tables(epoch(1, scale, unit, numbers).as_bytes())
        .unwrap()
        .remove(0)
}

fn any_number() -> impl Strategy<Value = u64> {
    let power = |(shift, off): (u32, i64)| (1u64 << shift).wrapping_add_signed(off);
    prop_oneof![
        (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift),
        (0..64u32, -2i64..3).prop_map(power),
        // Generates ends of intervals, and the numbers after them.
        (0u8..7, any::<u64>(), 0..2u64)
            .prop_map(|(scale, i, more)| last(scale, i % (64 << scale)).saturating_add(more)),
    ]
}

/// Returns the hits of 0, and the other hits by index.
fn counted(scale: u8, numbers: &[u64]) -> (u64, BTreeMap<i64, u64>) {
    let (mut zero, mut indices) = (0, BTreeMap::new());
    for &number in numbers {
        match index(scale, number) {
            None => zero += 1,
            // At scale 0, the numbers 0 and 1 share an interval.
            Some(0) if scale == 0 => zero += 1,
            Some(i) => *indices.entry(i as i64).or_default() += 1,
        }
    }
    (zero, indices)
}

fn exponential_histogram(metrics: &[Metric]) -> &ExponentialHistogram {
    let found = metrics.iter().find_map(|metric| match &metric.data {
        Some(Data::ExponentialHistogram(histogram)) => Some(histogram),
        _ => None,
    });
    found.unwrap()
}

/// Returns the buckets of a point, by index.
fn buckets(point: &ExponentialHistogramDataPoint) -> BTreeMap<i64, u64> {
    let Some(positive) = &point.positive else {
        return BTreeMap::new();
    };
    let counts = positive.bucket_counts.iter().enumerate();
    counts
        .filter(|(_, &n)| n > 0)
        .map(|(i, &n)| (i as i64 + i64::from(positive.offset), n))
        .collect()
}

/// Returns the buckets of a native histogram of Prometheus, by index.
fn native(histogram: &Histogram) -> BTreeMap<i64, u64> {
    let mut indices = BTreeMap::new();
    let (mut index, mut count) = (0i64, 0i64);
    let mut deltas = histogram.positive_delta.iter();
    for span in &histogram.positive_span {
        index += i64::from(span.offset);
        for _ in 0..span.length {
            count += deltas.next().unwrap();
            indices.insert(index, u64::try_from(count).unwrap());
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    indices
}

fn exposed(tables: &[Table], le: Le) -> Shared {
    let shared = Shared::new(Questions::new(100), le);
    for table in tables {
        shared
            .with(|exposed| exposed.questions.of("runq").add(table).map(|_| ()))
            .unwrap();
    }
    shared
}

fn decoded(bytes: &[u8]) -> Vec<MetricFamily> {
    let mut rest = bytes;
    let mut families = Vec::new();
    while !rest.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut rest).unwrap());
    }
    families
}

fn histogram(families: &[MetricFamily]) -> Histogram {
    let found = families
        .iter()
        .find_map(|family| family.metric.first()?.histogram.clone());
    found.unwrap()
}

fn text(shared: &Shared, format: Format) -> String {
    String::from_utf8(shared.encode(format).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that OpenTelemetry's index is `i - 1` at scale `N`, with no hit lost, by the definition.
    #[test]
    fn buckets_of_opentelemetry_are_exact(numbers in prop::collection::vec(any_number(), 1..60), scale in 0u8..7) {
        let mut all = Metrics::new("runq", 100);
        let set = all.add(&table(scale, Some("ns"), &numbers)).unwrap();
        let request = otlp::request(&Origin::default(), otlp::metrics("runq", set, false));
        let request = ExportMetricsServiceRequest::decode(request.encode_to_vec().as_slice()).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        prop_assert_eq!(&metrics[0].unit, "ns");
        let point = &exponential_histogram(metrics).data_points[0];
        let (zero, indices) = counted(scale, &numbers);
        prop_assert_eq!(point.scale, i32::from(scale));
        prop_assert_eq!(point.zero_count, zero);
        prop_assert_eq!(point.zero_threshold, f64::from(scale == 0));
        prop_assert_eq!(point.count, numbers.len() as u64);
        let shifted: BTreeMap<i64, u64> = indices.into_iter().map(|(i, n)| (i - 1, n)).collect();
        prop_assert_eq!(buckets(point), shifted);
    }

    /// Checks that native histograms of numbers without a unit have the kernel's indices.
    #[test]
    fn native_buckets_are_exact(numbers in prop::collection::vec(any_number(), 1..60), scale in 0u8..7) {
        let shared = exposed(&[table(scale, None, &numbers)], Le::Powers);
        let histogram = histogram(&decoded(&shared.encode(Format::Protobuf).unwrap()));
        let (zero, indices) = counted(scale, &numbers);
        prop_assert_eq!(histogram.schema, i32::from(scale));
        prop_assert_eq!(histogram.zero_count, zero);
        prop_assert_eq!(histogram.zero_threshold, f64::from(scale == 0));
        prop_assert_eq!(histogram.sample_count, numbers.len() as u64);
        prop_assert_eq!(native(&histogram), indices);
    }

    /// Checks that native histograms of seconds have all hits, and that each bound of a bucket is wrong by less than
    /// half a bucket.
    #[test]
    fn native_buckets_of_seconds_are_within_the_bound(
        numbers in prop::collection::vec(any_number(), 1..60), scale in 0u8..7, us in any::<bool>(),
    ) {
        let (unit, divisor) = if us { ("us", 1e6) } else { ("ns", 1e9) };
        let shared = exposed(&[table(scale, Some(unit), &numbers)], Le::Powers);
        let histogram = histogram(&decoded(&shared.encode(Format::Protobuf).unwrap()));
        prop_assert_eq!(histogram.schema, i32::from(scale));
        let (zero, indices) = counted(scale, &numbers);
        prop_assert_eq!(histogram.zero_count, zero);
        let buckets = native(&histogram);
        prop_assert_eq!(buckets.values().collect::<Vec<_>>(), indices.values().collect::<Vec<_>>());
        let half = (0.5 / f64::from(1u32 << scale)).exp2() * (1.0 + 1e-9);
        for (&given, &index) in buckets.keys().zip(indices.keys()) {
            let end = upper_end(scale.into(), index) / divisor;
            let off = upper_end(histogram.schema, given) / end;
            prop_assert!(off < half && off > 1.0 / half, "{} of {}", off, half);
        }
        // The bucket of 0 ends below all others.
        let below = buckets.keys().next().map_or(f64::INFINITY, |&first| upper_end(histogram.schema, first - 1));
        prop_assert!(histogram.zero_threshold <= below);
        prop_assert_eq!(histogram.zero_threshold > 0.0, scale == 0);
    }

    /// Checks that fine classic buckets have at each bound exactly the hits up to it, and no hits between two bounds.
    #[test]
    fn classic_buckets_are_exact(numbers in prop::collection::vec(0u64..1 << 40, 1..60), scale in 0u8..7) {
        let shared = exposed(&[table(scale, Some("ns"), &numbers)], Le::Fine);
        let mut all = None;
        let mut before = 0.0;
        for line in text(&shared, Format::OpenMetrics).lines() {
            let Some(rest) = line.strip_prefix("rhist_runq_seconds_bucket") else { continue };
            let (labels, count) = rest.rsplit_once(' ').unwrap();
            let count: usize = count.parse().unwrap();
            let bound = labels.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
            if bound == "+Inf" {
                all = Some(count);
                continue;
            }
            let seconds: f64 = bound.parse().unwrap();
            prop_assert!(seconds > before || before == 0.0);
            before = seconds;
            let bound = (seconds * 1e9).round() as u64;
            prop_assert_eq!(count, numbers.iter().filter(|&&number| number <= bound).count());
        }
        prop_assert_eq!(all, Some(numbers.len()));
    }
}

/// Returns the classic buckets in a scrape: for each series, by its labels, the hits up to each ascending bound.
fn classic(said: &str, metric: &str) -> BTreeMap<String, Vec<(f64, u64)>> {
    let mut series: BTreeMap<String, Vec<(f64, u64)>> = BTreeMap::new();
    let begin = format!("{metric}_bucket{{le=\"");
    for line in said.lines() {
        let Some((le, rest)) = line
            .strip_prefix(&begin)
            .and_then(|rest| rest.split_once('"'))
        else {
            continue;
        };
        let (labels, hits) = rest.rsplit_once(' ').unwrap();
        let bound = if le == "+Inf" {
            f64::INFINITY
        } else {
            le.parse().unwrap()
        };
        series
            .entry(labels.to_owned())
            .or_default()
            .push((bound, hits.parse().unwrap()));
    }
    series
}

/// Returns `histogram_quantile(part, sum by (le) (..))` as Prometheus computes it for counters that begin with 0.
fn histogram_quantile(part: f64, series: &BTreeMap<String, Vec<(f64, u64)>>) -> f64 {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for &(bound, hits) in series.values().flatten() {
        match sums.iter_mut().find(|(other, _)| *other == bound) {
            Some((_, sum)) => *sum += hits as f64,
            None => sums.push((bound, hits as f64)),
        }
    }
    sums.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Like Prometheus, corrects sums that become smaller.
    for i in 1..sums.len() {
        sums[i].1 = sums[i].1.max(sums[i - 1].1);
    }
    let rank = part * sums.last().unwrap().1;
    let place = sums.iter().position(|&(_, sum)| sum >= rank).unwrap();
    let (below, fewer) = if place == 0 {
        (0.0, 0.0)
    } else {
        sums[place - 1]
    };
    match sums[place] {
        (f64::INFINITY, _) => below,
        (bound, sum) => below + (bound - below) * (rank - fewer) / (sum - fewer),
    }
}

/// Returns the epoch of a table with numbers by the name of the task.
fn of_tasks(scale: u8, tasks: &[(&str, Vec<u64>)]) -> Table {
    let tables = tasks.iter().map(|(comm, numbers)| {
        let lines = epoch(1, scale, Some("ns"), numbers).replace("gawk", comm);
        json::tables(lines.as_bytes()).unwrap().remove(0)
    });
    tables
        .reduce(|mut all, table| {
            all.merge(&table).unwrap();
            all
        })
        .unwrap()
}

/// Checks the quantiles that Prometheus computes by adding the buckets of several series at each bound: each quantile
/// is in the right power of two, although the series have different intervals.
#[test]
fn quantiles_of_all_series_are_right() {
    let tasks = [
        ("fast", (0..900).map(|i| 1000 + i).collect::<Vec<u64>>()),
        ("slow", (0..90).map(|i| 2_000_000 + 1000 * i).collect()),
        ("slower", (0..10).map(|i| 1_000_000_000 * (i + 1)).collect()),
    ];
    let mut all: Vec<u64> = tasks
        .iter()
        .flat_map(|(_, numbers)| numbers.clone())
        .collect();
    all.sort_unstable();
    for scale in [0, 3] {
        let table = of_tasks(scale, &tasks);
        let said = text(
            &exposed(std::slice::from_ref(&table), Le::Powers),
            Format::Plain,
        );
        let series = classic(&said, "rhist_runq_seconds");
        assert_eq!(series.len(), 3);
        let bounds = |series: &[(f64, u64)]| {
            series
                .iter()
                .map(|&(bound, _)| bound.to_bits())
                .collect::<Vec<_>>()
        };
        let all_bounds: Vec<_> = series.values().map(|series| bounds(series)).collect();
        assert!(all_bounds.iter().all(|bounds| *bounds == all_bounds[0]));
        for thousandths in [100u64, 500, 900, 950, 990, 999] {
            let part = thousandths as f64 / 1000.0;
            let truth = all[(thousandths as usize * all.len()).div_ceil(1000) - 1];
            let end = truth.next_power_of_two() as f64 / 1e9;
            let got = histogram_quantile(part, &series);
            assert!(
                got > end / 2.0 && got <= end,
                "{part}: {got}, and it is {truth} ns"
            );
        }
        // The last bounds are far above all counted numbers.
        assert_eq!(histogram_quantile(1.0, &series), 17.179869184);
        // With different bounds in each series, the sum gives wrong quantiles.
        let said = text(&exposed(&[table], Le::Fine), Format::Plain);
        assert!(histogram_quantile(0.95, &classic(&said, "rhist_runq_seconds")) > 1.0);
    }
}

/// Checks that each number up to the last bound is counted at all bounds above it, on any scale, and that the bounds
/// exist before the first hit.
#[test]
fn all_bounds_are_there_from_the_beginning() {
    let numbers = [
        0,
        1,
        2,
        129,
        130,
        1 << 20,
        (1 << 20) + 1,
        1 << 44,
        (1 << 44) + 1,
        u64::MAX,
    ];
    let unlabelled = |scale: u8, unit: Option<&str>, numbers: &[u64]| {
        let lines = epoch(1, scale, unit, numbers);
        let lines = lines.replace("{\"name\":\"next_comm\",\"kind\":\"string\"},", "");
        let lines = lines
            .replace("\"gawk\",", "")
            .replace("keys=next_comm,", "keys=");
        json::tables(lines.as_bytes()).unwrap().remove(0)
    };
    for unit in [Some("ns"), Some("us"), Some("bytes"), None] {
        let divisor = match unit {
            Some("ns") => 1e9,
            Some("us") => 1e6,
            _ => 1.0,
        };
        let metric = match unit {
            Some("bytes") => "rhist_runq_bytes",
            Some(_) => "rhist_runq_seconds",
            None => "rhist_runq",
        };
        for scale in 0..7 {
            let before = text(
                &exposed(&[unlabelled(scale, unit, &[])], Le::Powers),
                Format::Plain,
            );
            assert!(
                before.contains(&format!("{metric}_sum{{event=\"sched:sched_switch\"}} 0")),
                "{before}"
            );
            let before = classic(&before, metric).into_values().next().unwrap();
            assert!(before.iter().all(|&(_, hits)| hits == 0));
            let after = text(
                &exposed(&[unlabelled(scale, unit, &numbers)], Le::Powers),
                Format::Plain,
            );
            let after = classic(&after, metric).into_values().next().unwrap();
            assert_eq!(after.len(), before.len());
            for ((bound, hits), (empty, _)) in after.into_iter().zip(before) {
                assert_eq!(bound, empty);
                let below = numbers
                    .iter()
                    .filter(|&&number| number as f64 <= (bound * divisor).round());
                assert_eq!(hits, below.count() as u64, "{unit:?} {scale} {bound}");
            }
        }
    }
}

fn three() -> Vec<Table> {
    let text = [
        epoch(1, 3, Some("ns"), &[0, 1, 1000, 1000, 1500]),
        epoch(2, 3, Some("ns"), &[1000, 3_000_000]),
        epoch(3, 3, Some("ns"), &[7]),
    ];
    json::tables(text.concat().as_bytes()).unwrap()
}

#[test]
fn the_text_formats_are_as_they_were() {
    let shared = exposed(&three(), Le::Powers);
    insta::assert_snapshot!("openmetrics", text(&shared, Format::OpenMetrics));
    insta::assert_snapshot!("plain", text(&shared, Format::Plain));
}

/// Checks two questions about one event in one scrape: no series is there twice, and each loss has its question.
#[test]
fn questions_are_told_apart() {
    let shared = exposed(&three(), Le::Powers);
    shared.with(|exposed| {
        let lost =
            epoch(1, 3, Some("ns"), &[5]).replace("\"dropped_full\":0", "\"dropped_full\":4");
        let lost = json::tables(lost.as_bytes()).unwrap();
        exposed
            .questions
            .of("offcpu")
            .add(&lost[0])
            .map(|_| ())
            .unwrap();
    });
    let said = text(&shared, Format::OpenMetrics);
    let mut series: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let all = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), all);
    for line in [
        "rhist_runq_seconds_count{event=\"sched:sched_switch\",comm=\"gawk\"} 8\n",
        "rhist_offcpu_seconds_count{event=\"sched:sched_switch\",comm=\"gawk\"} 1\n",
        "rhist_lost_total{event=\"sched:sched_switch\",question=\"runq\",reason=\"full\"} 0\n",
        "rhist_lost_total{event=\"sched:sched_switch\",question=\"offcpu\",reason=\"full\"} 4\n",
        "rhist_up 1\n",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
    assert_eq!(said.matches("# TYPE rhist_lost counter").count(), 1);
}

#[test]
fn what_is_too_much_is_counted_together() {
    let row =
        |comm: &str| format!("{{\"k\":[\"{comm}\",{{\"i\":8,\"lo\":2,\"hi\":2}}],\"v\":[3,6]}}\n");
    let lines = epoch(1, 3, Some("ns"), &[]);
    let (head, end) = lines.split_once('\n').unwrap();
    let text_of = [
        head,
        "\n",
        &row("a"),
        &row("b"),
        &row("c"),
        &row("a\\u0022\\u005c"),
        end,
    ]
    .concat();
    let table = json::tables(text_of.as_bytes()).unwrap().remove(0);
    let shared = Shared::new(Questions::new(2), Le::Powers);
    shared
        .with(|exposed| exposed.questions.of("1 runq").add(&table).map(|_| ()))
        .unwrap();
    let said = text(&shared, Format::OpenMetrics);
    assert!(
        said.contains("rhist__1_runq_seconds_count{event=\"sched:sched_switch\",comm=\"a\"} 3\n"),
        "{said}"
    );
    assert!(
        said.contains(
            "rhist__1_runq_seconds_count{event=\"sched:sched_switch\",overflow=\"true\"} 6\n"
        ),
        "{said}"
    );
    let mut all = Metrics::new("runq", 2);
    let metrics = otlp::metrics("runq", all.add(&table).unwrap(), false);
    let points = &exponential_histogram(&metrics).data_points;
    assert_eq!(
        points.iter().map(|point| point.count).collect::<Vec<_>>(),
        [3, 3, 6]
    );
    assert_eq!(points[2].attributes[1].key, "otel.metric.overflow");
    // A name with quotes can be a label.
    let everything = Shared::new(Questions::new(9), Le::Powers);
    everything
        .with(|exposed| exposed.questions.of("runq").add(&table).map(|_| ()))
        .unwrap();
    let said = text(&everything, Format::OpenMetrics);
    assert!(said.contains(",comm=\"a\\\"\\\\\""), "{said}");
}

/// A file that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("rhist-test-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn recording() -> String {
    let header = "{\"v\":1,\"type\":\"rhist\",\"question\":[\"runq\",\"1\"],\"title\":\"How long do tasks wait?\"}\n";
    let epochs = [
        epoch(1, 3, Some("ns"), &[0, 1, 1000, 1000, 1500]),
        epoch(2, 3, Some("ns"), &[1000, 3_000_000]),
        epoch(3, 3, Some("ns"), &[7]),
    ];
    [header, &epochs.concat()].concat()
}

fn rhist() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    // Requests to the test's collector use no proxy.
    command
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1");
    command
}

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a request like a browser or Prometheus does; returns header and body.
fn get(address: &str, request: &str, accept: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    (
        String::from_utf8(answer[..end].to_vec())
            .unwrap()
            .to_lowercase(),
        answer[end + 4..].to_vec(),
    )
}

#[test]
fn a_recording_is_scraped() {
    let file = Scratch::new("scrape.jsonl", recording().as_bytes());
    let mut child = rhist()
        .args([
            "export",
            "prometheus",
            "--listen",
            "127.0.0.1:0",
            "--speed",
            "0",
            "--replay",
        ])
        .arg(&file.0)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let _running = Running(child);
    let address = line
        .trim()
        .rsplit_once("http://")
        .unwrap()
        .1
        .trim_end_matches("/metrics")
        .to_owned();
    // The recording is read within a short time.
    let mut plain = String::new();
    for _ in 0..100 {
        let (head, body) = get(&address, "GET /metrics", "*/*");
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("text/plain; version=0.0.4"));
        plain = String::from_utf8(body).unwrap();
        if plain.contains("rhist_up 0\n") {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(
        plain.contains("rhist_runq_seconds_count{event=\"sched:sched_switch\",comm=\"gawk\"} 8\n"),
        "{plain}"
    );
    assert!(plain.contains("# TYPE rhist_lost_total counter\n"));
    let (head, body) = get(
        &address,
        "GET /metrics",
        "application/openmetrics-text;q=0.8,text/plain;q=0.5",
    );
    assert!(head.contains("application/openmetrics-text; version=1.0.0"));
    assert!(body.ends_with(b"# EOF\n"));
    let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;q=0.5";
    let (head, body) = get(&address, "GET /metrics", accept);
    assert!(head.contains("application/vnd.google.protobuf"));
    let histogram = histogram(&decoded(&body));
    assert_eq!(
        (
            histogram.schema,
            histogram.sample_count,
            histogram.zero_count
        ),
        (3, 8, 1)
    );
    assert_eq!(native(&histogram).values().sum::<u64>(), 7);
    assert!(get(&address, "GET /", "*/*").0.starts_with("http/1.1 200"));
    assert!(get(&address, "GET /other", "*/*")
        .0
        .starts_with("http/1.1 404"));
    assert!(get(&address, "POST /metrics", "*/*")
        .0
        .starts_with("http/1.1 405"));
    let (head, body) = get(&address, "HEAD /metrics", "*/*");
    assert!(head.starts_with("http/1.1 200") && body.is_empty());
}

#[test]
fn a_port_that_is_taken_is_said() {
    let file = Scratch::new("taken.jsonl", recording().as_bytes());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = rhist()
        .args(["export", "prometheus", "--listen", &address, "--replay"])
        .arg(&file.0)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("say another address with --listen"),
        "{}",
        said(&output)
    );
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_file_for_node_exporter() {
    let file = Scratch::new("textfile.jsonl", recording().as_bytes());
    let target = Scratch::new("textfile.prom", b"old");
    let export_of = |recording: &std::path::Path, path: &std::path::Path| {
        let mut command = rhist();
        command
            .args(["export", "prometheus", "--speed", "0", "--replay"])
            .arg(recording)
            .arg("--textfile")
            .arg(path);
        command.output().unwrap()
    };
    let export = |path| export_of(&file.0, path);
    let output = export(&target.0);
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(&target.0).unwrap();
    assert!(text.contains("rhist_runq_seconds_bucket") && text.contains("rhist_up 0\n"));
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    // After an error, too, the file says that nothing is counted.
    std::fs::write(&target.0, "rhist_up 1\n").unwrap();
    let output = export_of(std::path::Path::new("/no/such.jsonl"), &target.0);
    assert_eq!(output.status.code(), Some(1));
    let text = std::fs::read_to_string(&target.0).unwrap();
    assert!(text.contains("rhist_up 0\n"), "{text}");
    // A failing write is reported once, and counting goes on to the end.
    let output = export(std::path::Path::new("/proc/no/such.prom"));
    assert_eq!(said(&output).matches("it is tried again").count(), 1);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("/proc/no/such.prom"),
        "{}",
        said(&output)
    );
}

/// Starts a collector that answers with these states in turn, then with 200. The channel gets accepted requests.
fn collector(statuses: &'static [u16]) -> (String, Receiver<ExportMetricsServiceRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut statuses = statuses.iter().copied();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            // Reads the requests of a connection until it is closed.
            loop {
                let (mut length, mut line) = (0, String::new());
                if stream.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                assert!(line.starts_with("POST /v1/metrics "), "{line}");
                loop {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                    let header = line.trim().to_lowercase();
                    if let Some(value) = header.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if header.is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let status = statuses.next().unwrap_or(200);
                if status == 200 {
                    let request = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
                    sender.send(request).unwrap();
                }
                write!(
                    stream.get_mut(),
                    "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"
                )
                .unwrap();
            }
        }
    });
    (address, receiver)
}

fn export_otlp(name: &str, endpoint: &str, more: &[&str]) -> Output {
    let file = Scratch::new(name, recording().as_bytes());
    rhist()
        .args(["export", "otlp", "--speed", "0", "--endpoint", endpoint])
        .args(more)
        .arg("--replay")
        .arg(&file.0)
        .output()
        .unwrap()
}

/// Checks that a collector that refuses for a while then gets the last request of each question.
#[test]
fn no_question_takes_the_place_of_another_one() {
    let (endpoint, receiver) = collector(&[503, 503, 503]);
    let mut sender = Sender::new(&endpoint, false).unwrap();
    for question in ["runq", "offcpu", "runq"] {
        let mut all = Metrics::new(question, 100);
        let metrics = otlp::metrics(question, all.add(&three()[0]).unwrap(), false);
        let request = otlp::request(&Origin::default(), metrics);
        assert!(sender.send(question, &request).is_some());
    }
    sender.finish().unwrap();
    let name = |request: ExportMetricsServiceRequest| {
        request.resource_metrics[0].scope_metrics[0].metrics[0]
            .name
            .clone()
    };
    let names: Vec<String> = receiver.try_iter().map(name).collect();
    assert_eq!(names, ["rhist.offcpu", "rhist.runq"]);
}

/// Returns, for each received request, the points of its histogram.
fn received(
    receiver: &Receiver<ExportMetricsServiceRequest>,
) -> Vec<ExponentialHistogramDataPoint> {
    receiver
        .try_iter()
        .map(|request| {
            let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
            assert_eq!(metrics[0].name, "rhist.runq");
            exponential_histogram(metrics).data_points[0].clone()
        })
        .collect()
}

#[test]
fn deltas_are_exact() {
    // The second request is deferred, and sent later; nothing is lost, and nothing is sent twice.
    let (endpoint, receiver) = collector(&[200, 503]);
    let output = export_otlp("delta.jsonl", &endpoint, &["--delta"]);
    assert!(output.status.success(), "{}", said(&output));
    let points = received(&receiver);
    assert_eq!(
        points.iter().map(|point| point.count).collect::<Vec<_>>(),
        [5, 2, 1]
    );
    assert_eq!(
        points.iter().map(|point| point.sum).collect::<Vec<_>>(),
        [Some(3501.0), Some(3_001_000.0), Some(7.0)]
    );
    let begin = 1_700_000_000_000_000_000;
    for (i, point) in (1u64..).zip(&points) {
        assert_eq!(point.start_time_unix_nano, begin + i * 1_000_000_000);
        assert_eq!(point.time_unix_nano, begin + (i + 1) * 1_000_000_000);
    }
    assert!(
        said(&output).contains("takes nothing now: 503"),
        "{}",
        said(&output)
    );
}

#[test]
fn all_until_now_is_sent_each_time() {
    let (endpoint, receiver) = collector(&[]);
    let output = export_otlp("cumulative.jsonl", &endpoint, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let points = received(&receiver);
    assert_eq!(
        points.iter().map(|point| point.count).collect::<Vec<_>>(),
        [5, 7, 8]
    );
    assert!(points
        .iter()
        .all(|point| point.start_time_unix_nano == 1_700_000_001_000_000_000));
}

#[test]
fn a_collector_that_refuses_is_said() {
    // A refused request is not sent again, but the next one is sent.
    let (endpoint, receiver) = collector(&[400, 500]);
    let output = export_otlp("refused.jsonl", &endpoint, &["--delta"]);
    assert_eq!(output.status.code(), Some(3));
    let text = said(&output);
    assert_eq!(text.matches("refuses the metrics").count(), 1, "{text}");
    assert!(text.contains("refuses the metrics: 400"), "{text}");
    assert!(
        text.ends_with("requests that were not taken: 2\n"),
        "{text}"
    );
    let counts: Vec<u64> = received(&receiver)
        .iter()
        .map(|point| point.count)
        .collect();
    assert_eq!(counts, [1]);
    let output = export_otlp("tls.jsonl", "https://127.0.0.1:4318", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("say --endpoint http://"),
        "{}",
        said(&output)
    );
}

#[test]
fn losses_are_numbers_of_their_own() {
    let lost = recording().replace("\"dropped_full\":0", "\"dropped_full\":7");
    let tables = json::tables(lost.as_bytes()).unwrap();
    let shared = exposed(&tables, Le::Powers);
    let counter =
        "rhist_lost_total{event=\"sched:sched_switch\",question=\"runq\",reason=\"full\"} 21\n";
    assert!(text(&shared, Format::OpenMetrics).contains(counter));
    // Numbers of expiry appear if starts expire, beginning with the first table that has them.
    assert!(!text(&shared, Format::OpenMetrics).contains("expired"));
    let end = "\"lost_traces\":0}";
    let expiring = "\"lost_traces\":0,\"retired\":9,\"expired\":5,\"overwritten\":0}";
    let some = recording().replacen(end, "\"lost_traces\":0,\"expired\":0}", 1);
    let some = some.replace(end, expiring);
    let shared = exposed(&json::tables(some.as_bytes()).unwrap(), Le::Powers);
    let counters = text(&shared, Format::OpenMetrics);
    for (reason, count) in [("retired", 18), ("expired", 10), ("overwritten", 0)] {
        let counter = format!("question=\"runq\",reason=\"{reason}\"}} {count}\n");
        assert!(counters.contains(&counter), "{counters}");
    }
    let tables_of_all = json::tables(recording().replace(end, expiring).as_bytes()).unwrap();
    let set = Metrics::new("runq", 100).delta(&tables_of_all[0]).unwrap();
    assert_eq!(
        set.lost()[4..],
        [("retired", 9), ("expired", 5), ("overwritten", 0)]
    );
    let mut all = Metrics::new("runq", 100);
    let mut sums = Vec::new();
    for table in &tables {
        let metrics = otlp::metrics("runq", &all.delta(table).unwrap(), true);
        let lost = metrics
            .into_iter()
            .find(|metric| metric.name == "rhist.lost")
            .unwrap();
        let Some(Data::Sum(Sum { data_points, .. })) = lost.data else {
            panic!("no sum")
        };
        sums.push(data_points[0].value.unwrap());
    }
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value::AsInt;
    assert_eq!(sums, [AsInt(7); 3]);
}
