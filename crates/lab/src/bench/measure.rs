//! Measurement tools: clock, memory, hash, random numbers.

use std::time::Instant;

use slackline_model::schedule::TaskRows;

/// Runs `f`. Returns its result and the processor time of its thread in seconds, or the wall time if the
/// system does not report processor time (Linux does). Other processes on the machine have little effect on
/// it.
pub fn busy<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let before = on_processor();
    let (value, went_by) = timed(f);
    let took = before.zip(on_processor()).map_or(went_by, |(before, after)| (after - before) as f64 / 1e9);
    (value, took)
}

/// A very fast generator of random numbers.
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The processor time of this thread, in nanoseconds.
fn on_processor() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Runs `f`. Returns its result and its duration in seconds.
pub fn timed<T>(f: impl FnOnce() -> T) -> (T, f64) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let start = Instant::now();
    let value = f();
    (value, start.elapsed().as_secs_f64())
}

/// The result of `f`, and the least time of three runs, because other programs use the machine too.
pub fn timed_thrice<T>(f: impl Fn() -> T) -> (T, f64) {
    let (_, first) = timed(&f);
    let (_, second) = timed(&f);
    let (value, third) = timed(&f);
    (value, first.min(second).min(third))
}

/// The peak memory of this process so far, in MiB, if the system reports it (Linux).
pub fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

/// FNV-1a of some numbers.
pub fn fnv(values: impl IntoIterator<Item = u64>) -> u64 {
    let eat = |state: u64, value: u64| (state ^ value).wrapping_mul(0x100_0000_01b3);
    values.into_iter().fold(0xcbf2_9ce4_8422_2325, eat)
}

/// FNV-1a of everything in the rows: equal schedules have equal hashes.
pub fn hash(rows: &TaskRows) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |value: u64| state = (state ^ value).wrapping_mul(0x100_0000_01b3);
    for row in rows.rows() {
        [u64::from(row.phase.0), u64::from(row.first), u64::from(row.count), row.start.0, row.end.0]
            .into_iter()
            .for_each(&mut eat);
        for place in rows.places(row) {
            eat(u64::from(place.first) << 32 | u64::from(place.len));
        }
    }
    state
}

/// The median of at least one measurement.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
