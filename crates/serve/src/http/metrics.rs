//! Metrics in the text format of Prometheus: gauges of the current state, counters since the start of the
//! process, and durations of requests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use slackline_model::WallTime;

use crate::api::{Calibration, Service, State};
use crate::lock;
use crate::service::durations::{BUCKETS, Histogram, SharedHistogram};
use crate::wall_time;

/// Method and route of a request, as in the OpenAPI description.
type Kind = (String, String);

#[derive(Debug, Default)]
struct Counters {
    /// Requests by kind and status.
    requests: BTreeMap<(Kind, u16), u64>,
    took: BTreeMap<Kind, Histogram>,
    /// Events by kind.
    events: BTreeMap<String, u64>,
    /// Connections that were refused because all connections were in use.
    refused: u64,
}

/// Counters since the start of this process.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counters>);

#[derive(Clone, Debug, Default)]
pub struct SchedulerMetrics {
    pub connections: u64,
    /// Open event streams.
    pub streams: u64,
    /// Lines of the audit log that could not be written.
    pub audit_lost: u64,
    /// Refused requests, and how many of them exceeded the limit of their source.
    pub refused_and_limited: [u64; 2],
    /// Ended attempts by outcome.
    pub attempts: BTreeMap<String, u64>,
    /// Durations of scheduling decisions.
    pub decisions: SharedHistogram,
    /// Durations of forecasts.
    pub predictions: SharedHistogram,
}

impl Metrics {
    fn counted(&self) -> std::sync::MutexGuard<'_, Counters> {
        lock(&self.0)
    }

    /// Counts a request and its duration.
    pub fn request(&self, method: &str, path: &str, status: u16, seconds: f64) {
        let kind = (method.to_owned(), path.to_owned());
        let mut counted = self.counted();
        *counted.requests.entry((kind.clone(), status)).or_default() += 1;
        counted.took.entry(kind).or_default().add(seconds);
    }

    pub fn event(&self, kind: &str) {
        *self.counted().events.entry(kind.to_owned()).or_default() += 1;
    }

    /// Counts a refused connection.
    pub fn refused(&self) {
        self.counted().refused += 1;
    }

    /// All metrics in the text format.
    pub fn text(&self, service: &Service, others: &SchedulerMetrics) -> String {
        let mut page = Page::default();
        page.service(service);
        page.predictions(&service.calibration);
        page.counted(&self.counted(), others);
        page.process(service);
        page.0
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, kind(name), help);
        self.value(name, &[], value);
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], took: &Histogram) {
        let bucket = format!("{name}_bucket");
        for (bound, n) in BUCKETS.iter().zip(took.buckets) {
            self.value(&bucket, &[labels, &[("le", &bound.to_string())]].concat(), n as f64);
        }
        self.value(&bucket, &[labels, &[("le", "+Inf")]].concat(), took.count as f64);
        self.value(&format!("{name}_sum"), labels, took.sum);
        self.value(&format!("{name}_count"), labels, took.count as f64);
    }

    /// Writes one sample for each value of a label.
    fn each<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        self.head(name, kind(name), help);
        for (word, value) in values {
            self.value(name, &[(label, word)], value as f64);
        }
    }

    fn service(&mut self, service: &Service) {
        self.head("slackline_build_info", "gauge", "The program, its engine and its policy; always 1.");
        let labels = [
            ("version", service.version.as_str()),
            ("engine", service.engine.as_str()),
            ("policy", service.policy.as_str()),
        ];
        self.value("slackline_build_info", &labels, 1.0);
        let flag = |is: bool| f64::from(u8::from(is));
        self.one("slackline_slots", "All slots.", service.slots as f64);
        self.one("slackline_tasks_running", "Running tasks.", service.running as f64);
        self.one("slackline_tasks_waiting", "Waiting tasks of active submissions.", service.waiting as f64);
        let in_state =
            |state: State| (state.name(), service.submissions.get(state.name()).copied().unwrap_or(0));
        let help = "Submissions by state; ended ones while the service keeps them.";
        self.each("slackline_submissions", help, "state", State::ALL.map(in_state));
        self.one(
            "slackline_draining",
            "1 if the service drains and starts no new submissions, else 0.",
            flag(service.draining),
        );
        let help = "1 if the service itself has a problem, such as a full disk, else 0.";
        self.one("slackline_trouble", help, flag(service.trouble.is_some()));
        let help = "First start of the service, in seconds since 1970.";
        self.one(
            "slackline_begin_time_seconds",
            help,
            wall_time(service.began).seconds_since(WallTime::default()),
        );
    }

    fn predictions(&mut self, calibration: &Calibration) {
        let Calibration { flows, inside, error, bias, deadlines, unknown } = *calibration;
        let help = "Finished flows with a prediction; older flows count less.";
        self.one("slackline_predicted_flows", help, flows as f64);
        let help = "Fraction of these flows that finished inside their 80 % prediction interval.";
        self.one("slackline_prediction_inside_ratio", help, inside);
        let help = "Mean absolute prediction error, as a fraction of the time from submission to completion.";
        self.one("slackline_prediction_error_ratio", help, error);
        let help = "Mean signed prediction error, as the same fraction; positive: later than predicted.";
        self.one("slackline_prediction_bias_ratio", help, bias);
        if let Some(deadlines) = deadlines {
            let help = "Fraction of the flows with deadlines for which meeting or missing it was predicted correctly.";
            self.one("slackline_prediction_deadlines_right_ratio", help, deadlines);
        }
        let help =
            "Finished flows without a prediction, because a job had never run; older flows count less.";
        self.one("slackline_unpredicted_flows", help, unknown as f64);
    }

    fn counted(&mut self, counted: &Counters, others: &SchedulerMetrics) {
        let help = "Events by kind, as in the event stream.";
        self.each(
            "slackline_events_total",
            help,
            "kind",
            counted.events.iter().map(|(kind, n)| (kind.as_str(), *n)),
        );
        let help = "Ended attempts by outcome.";
        self.each(
            "slackline_attempts_total",
            help,
            "outcome",
            others.attempts.iter().map(|(how, n)| (how.as_str(), *n)),
        );
        let name = "slackline_http_requests_total";
        self.head(name, "counter", "Answered requests.");
        for (((method, path), status), n) in &counted.requests {
            let labels = [("method", method.as_str()), ("path", path), ("code", &status.to_string())];
            self.value(name, &labels, *n as f64);
        }
        let name = "slackline_http_request_duration_seconds";
        self.head(name, "histogram", "Time from the head of a request to the head of its answer.");
        for ((method, path), took) in &counted.took {
            self.histogram(name, &[("method", method.as_str()), ("path", path.as_str())], took);
        }
        let name = "slackline_decision_duration_seconds";
        self.head(name, "histogram", "Duration of each decision of the policy.");
        self.histogram(name, &[], &others.decisions.now());
        let name = "slackline_prediction_duration_seconds";
        self.head(name, "histogram", "Duration of each forecast of all active flows.");
        self.histogram(name, &[], &others.predictions.now());
        self.one("slackline_http_connections", "Open connections.", others.connections as f64);
        self.one("slackline_http_event_streams", "Open event streams.", others.streams as f64);
        let help = "Connections refused because the limit was reached.";
        self.one("slackline_http_connections_refused_total", help, counted.refused as f64);
        let [refused, limited] = others.refused_and_limited;
        let help = "Refused requests: without permission, or a change that failed.";
        self.one("slackline_http_requests_refused_total", help, refused as f64);
        let help = "Refused requests beyond the limit of their source.";
        self.one("slackline_http_requests_limited_total", help, limited as f64);
        let help = "Lines of the audit log that could not be written.";
        self.one("slackline_audit_lost_lines_total", help, others.audit_lost as f64);
    }

    fn process(&mut self, service: &Service) {
        let help = "When this process started, in seconds since 1970.";
        let started = wall_time(service.started).seconds_since(WallTime::default());
        self.one("process_start_time_seconds", help, started);
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        self.one("process_cpu_seconds_total", "Processor time of this process.", seconds);
        if let Some(bytes) = resident() {
            self.one("process_resident_memory_bytes", "Memory of this process.", bytes as f64);
        }
        if let Some(open) = open_files() {
            self.one("process_open_fds", "Open files and sockets of this process.", open as f64);
        }
    }
}

/// The kind of a single value: a counter has the suffix `_total`.
fn kind(name: &str) -> &'static str {
    if name.ends_with("_total") { "counter" } else { "gauge" }
}

/// The number of open files of this process. `None` if the system does not report it. O(1) from Linux 6.2 on,
/// where the directory has their number as its size; else O(open files).
fn open_files() -> Option<u64> {
    const FILES: &str = "/proc/self/fd";
    let size = std::fs::metadata(FILES).ok()?.len();
    if size > 0 { Some(size) } else { Some(std::fs::read_dir(FILES).ok()?.count() as u64) }
}

/// The resident memory of this process, bytes. `None` if the system does not report it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        let at = crate::timestamp(WallTime(90_500_000));
        Service {
            version: "0.1.0".into(),
            began: at,
            started: at,
            now: at,
            engine: "local".into(),
            objective: String::new(),
            policy: "say \"auto\"".into(),
            slots: 4,
            quota: None,
            machines: Vec::new(),
            running: 3,
            waiting: 7,
            submissions: [("running".to_owned(), 2)].into(),
            draining: false,
            calibration: Calibration::default(),
            trouble: Some("disk".into()),
        }
    }

    /// Each metric is declared once, before its samples. Each sample is a name, labels and a number.
    #[test]
    fn the_page_is_what_prometheus_reads() {
        let metrics = Metrics::default();
        metrics.request("GET", "/api/v1/submissions", 200, 0.003);
        metrics.request("GET", "/api/v1/submissions", 200, 0.3);
        metrics.request("GET", "/api/v1/submissions", 404, 20.0);
        metrics.event("late");
        metrics.event("late");
        metrics.refused();
        let others =
            SchedulerMetrics { attempts: [("done".to_owned(), 5)].into(), ..SchedulerMetrics::default() };
        let page = metrics.text(&service(), &others);
        let mut declared = Vec::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().unwrap();
                assert!(!declared.contains(&name), "{name} twice");
                declared.push(name);
            } else if !line.starts_with('#') {
                let (head, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let name = head.split('{').next().unwrap();
                let last = declared.last().unwrap();
                assert!(
                    name.strip_prefix(last)
                        .is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest)),
                    "{line}"
                );
            }
        }
        for line in [
            "slackline_build_info{version=\"0.1.0\",engine=\"local\",policy=\"say \\\"auto\\\"\"} 1",
            "slackline_submissions{state=\"running\"} 2",
            "slackline_submissions{state=\"queued\"} 0",
            "slackline_trouble 1",
            "slackline_begin_time_seconds 90.5",
            "slackline_events_total{kind=\"late\"} 2",
            "slackline_attempts_total{outcome=\"done\"} 5",
            "slackline_http_requests_total{method=\"GET\",path=\"/api/v1/submissions\",code=\"200\"} 2",
            "slackline_http_request_duration_seconds_bucket{method=\"GET\",path=\"/api/v1/submissions\",le=\"0.005\"} 1",
            "slackline_http_request_duration_seconds_bucket{method=\"GET\",path=\"/api/v1/submissions\",le=\"0.5\"} 2",
            "slackline_http_request_duration_seconds_bucket{method=\"GET\",path=\"/api/v1/submissions\",le=\"+Inf\"} 3",
            "slackline_http_connections_refused_total 1",
        ] {
            assert!(page.lines().any(|said| said == line), "{line}\n{page}");
        }
    }
}
