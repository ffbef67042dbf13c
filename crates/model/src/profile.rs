//! Profiles: the startup times and delays of a simulated Hadoop cluster.
//!
//! A profile is data: its parameters are declared once, and a schedule records the value of each. The
//! simulator and the judge read them from there, each with separate rules. `docs/profiles.md` names the
//! measurements behind the defaults.

use std::fmt;

use crate::names::{did_you_mean, one_of};
use crate::params::{Param, ParamError, Settings, Values};
use crate::time::Span;

/// The name for a simulation without a profile.
pub const PLAIN: &str = "plain";

/// The name of the profile of a Hadoop cluster.
pub const HADOOP: &str = "hadoop";

/// The name of [`HADOOP`] with the defaults of [`OF_LOG`].
pub const HADOOP_LOG: &str = "hadoop-log";

/// Defaults for a workload imported from a Hadoop log. The times of a task in a log begin when its container
/// is launched, so they include most of its start. The other values were also derived from a log
/// (`record/hadoop.md`, "The profile of a cluster").
pub const OF_LOG: &[(&str, &str)] = &[("am-start", "2.5..7"), ("container-start", "0.2..0.8")];

/// The parameters of both.
pub const PARAMS: &[Param] = &[
    Param::new("submit", "0.3..0.7", RANGE, "time from when a job may start until the cluster knows it"),
    Param::new(
        "am-start",
        "5.4..7.2",
        RANGE,
        "time from when an ApplicationMaster gets its slot to its first request",
    ),
    Param::new(
        "am-linger",
        "5.2",
        PAUSE,
        "time that an ApplicationMaster keeps its slot after the end of its job",
    ),
    Param::new(
        "am-share",
        "1",
        Values::Real(0.0, 1.0),
        "largest share of the slots that ApplicationMasters hold; 0 if they need none",
    ),
    Param::new("heartbeat", "0.2", PAUSE, "interval at which machines report and get work"),
    Param::new("am-heartbeat", "0.2", PAUSE, "interval at which an ApplicationMaster gets its containers"),
    Param::new(
        "container-start",
        "1.5..4.5",
        RANGE,
        "time from the request of a container to its task's own code",
    ),
    Param::new(
        "spread",
        "0",
        Values::Real(0.0, 3.0),
        "standard deviation of the logarithm of task durations",
    ),
    Param::new("straggler-share", "0", Values::Real(0.0, 1.0), "probability that an attempt is a straggler"),
    Param::new("straggler-factor", "3", FACTOR, "factor on the duration of a straggler"),
    Param::new(
        "speculate",
        "0",
        PAUSE,
        "interval at which an ApplicationMaster checks for slow attempts; 0: never",
    ),
    Param::new("speculate-pause", "15", PAUSE, "pause of these checks after a slow attempt was found"),
    Param::new(
        "speculate-least",
        "10",
        Values::Count(0, u32::MAX as u64),
        "limit on the speculative attempts of a phase at a time: this number, or",
    ),
    Param::new("speculate-total", "0.01", SHARE, "this share of its tasks, or"),
    Param::new("speculate-running", "0.1", SHARE, "this share of its running tasks, whichever is largest"),
    Param::new("node-delay", "0", PAUSE, "time that a task waits for a slot on a machine with its input"),
    Param::new(
        "rack-delay",
        "0",
        PAUSE,
        "time that it then waits for one in a rack with its input; then it takes any slot",
    ),
    Param::new("rack-factor", "1", FACTOR, "factor on the compute time of a task whose input is in its rack"),
    Param::new(
        "off-rack-factor",
        "1",
        FACTOR,
        "factor on the compute time of a task whose input is in other racks",
    ),
];

/// The names with which `--profile` may begin.
const NAMES: [&str; 3] = [PLAIN, HADOOP, HADOOP_LOG];

/// A day is longer than any time here.
const LONGEST: f64 = 86_400.0;
const RANGE: Values = Values::SecondsRange(0.0, LONGEST);
const PAUSE: Values = Values::Seconds(0.0, LONGEST);
const SHARE: Values = Values::Real(0.0, 1.0);
const FACTOR: Values = Values::Real(1.0, 1000.0);

/// The behaviour of a simulated cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    settings: Settings,
}

/// A random time, uniform over the range. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformSpan {
    /// The lower end.
    pub least: Span,
    /// The upper end.
    pub most: Span,
}

/// When tasks get a speculative attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// The interval at which an ApplicationMaster checks for slow attempts.
    pub every: Span,
    /// The pause after it has started a speculative attempt.
    pub pause: Span,
    /// The limit on speculative attempts of a phase at a time is the largest of this number,
    pub least: u32,
    /// this fraction of its tasks, rounded down, and
    pub of_total: f64,
    /// this fraction of its running tasks, rounded down.
    pub of_running: f64,
}

/// Why a text is no valid profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There is no profile of that name.
    #[error("found profile {found:?}, expected {}{}", one_of(&NAMES), did_you_mean(.found, NAMES))]
    Unknown {
        /// What was found.
        found: String,
    },
    /// The profile refuses a setting.
    #[error("profile {HADOOP}: {0}")]
    Parameter(#[from] ParamError),
}

impl Profile {
    /// The profile of a Hadoop cluster, its parameters at their defaults.
    pub fn hadoop() -> Self {
        Self { settings: Settings::defaults(PARAMS) }
    }

    /// Reads `hadoop` or `hadoop:am-share=0.4:container-start=2..3`; `None` for `plain`.
    ///
    /// # Errors
    /// An unknown name, an unknown parameter, or a value that the parameter does not allow.
    pub fn parse(text: &str) -> Result<Option<Self>, ProfileError> {
        if text == PLAIN {
            return Ok(None);
        }
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        Self::of(name, parts.map(|part| part.split_once('=').unwrap_or((part, "")))).map(Some)
    }

    /// The profile of that name with `(name, value)` settings.
    ///
    /// # Errors
    /// As [`Self::parse`]; `plain` has no settings and is an error here.
    pub fn of<'a>(
        name: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ProfileError> {
        let given: Vec<(&str, &str)> = settings.into_iter().collect();
        let defaults = match name {
            HADOOP => &[],
            HADOOP_LOG => OF_LOG,
            _ => return Err(ProfileError::Unknown { found: name.to_owned() }),
        };
        let is_given = |name: &str| given.iter().any(|&(other, _)| other == name);
        let others = defaults.iter().copied().filter(|&(name, _)| !is_given(name));
        Ok(Self { settings: Settings::parse(PARAMS, others.chain(given.iter().copied()))? })
    }

    /// Its name: [`HADOOP`], since its parameters have all values.
    pub fn name(&self) -> &'static str {
        HADOOP
    }

    /// Every parameter with its value, as [`Self::of`] reads them.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.settings.pairs()
    }

    /// Whether any of its times is random.
    pub fn draws(&self) -> bool {
        let ranges = [self.submit(), self.am_start(), self.container_start()];
        let is_drawn = |range: &UniformSpan| range.least < range.most;
        ranges.iter().any(is_drawn) || self.spread() > 0.0 || self.straggler_share() > 0.0
    }

    /// The time from when a job may start (its flow released, its predecessors done) to when the cluster has
    /// accepted it.
    pub fn submit(&self) -> UniformSpan {
        self.between("submit")
    }

    /// The time from when an ApplicationMaster takes its slot to when its job's tasks may take theirs.
    pub fn am_start(&self) -> UniformSpan {
        self.between("am-start")
    }

    /// How long an ApplicationMaster keeps its slot after the end of its job.
    pub fn am_linger(&self) -> Span {
        self.span("am-linger")
    }

    /// The fraction of all slots that ApplicationMasters may hold; 0 if they need no slot.
    pub fn am_share(&self) -> f64 {
        self.settings.real("am-share")
    }

    /// The interval at which a machine reports ends and gets work; zero for at once.
    pub fn heartbeat(&self) -> Span {
        self.span("heartbeat")
    }

    /// The interval at which an ApplicationMaster learns of the slots of its job; zero for at once.
    pub fn am_heartbeat(&self) -> Span {
        self.span("am-heartbeat")
    }

    /// The time from when an ApplicationMaster requests the start of a task on a slot to when its code runs.
    pub fn container_start(&self) -> UniformSpan {
        self.between("container-start")
    }

    /// Standard deviation of the logarithm of a random factor (mean 1) on the duration of a task; 0 for exact
    /// durations.
    pub fn spread(&self) -> f64 {
        self.settings.real("spread")
    }

    /// The probability that an attempt takes [`Self::straggler_factor`] times as long.
    pub fn straggler_share(&self) -> f64 {
        self.settings.real("straggler-share")
    }

    /// The factor on the duration of a straggler.
    pub fn straggler_factor(&self) -> f64 {
        self.settings.real("straggler-factor")
    }

    /// When tasks get a speculative attempt, if ever.
    pub fn speculation(&self) -> Option<Speculation> {
        let speculation = Speculation {
            every: self.span("speculate"),
            pause: self.span("speculate-pause"),
            least: u32::try_from(self.settings.count("speculate-least")).unwrap_or(u32::MAX),
            of_total: self.settings.real("speculate-total"),
            of_running: self.settings.real("speculate-running"),
        };
        (speculation.every > Span::ZERO).then_some(speculation)
    }

    /// How long a task whose input has hosts waits for a slot on one of them; zero for no wait.
    pub fn node_delay(&self) -> Span {
        self.span("node-delay")
    }

    /// How long it then waits for a slot in the rack of one of them; zero to take any slot.
    pub fn rack_delay(&self) -> Span {
        self.span("rack-delay")
    }

    /// The factor on the duration of an attempt away from its input, but in a rack of it.
    pub fn rack_factor(&self) -> f64 {
        self.settings.real("rack-factor")
    }

    /// The factor on the duration of an attempt in no rack of its input.
    pub fn off_rack_factor(&self) -> f64 {
        self.settings.real("off-rack-factor")
    }

    fn span(&self, name: &str) -> Span {
        Span::from_seconds_nearest(self.settings.real(name))
    }

    fn between(&self, name: &str) -> UniformSpan {
        let (least, most) = self.settings.reals(name);
        UniformSpan { least: Span::from_seconds_nearest(least), most: Span::from_seconds_nearest(most) }
    }
}

impl fmt::Display for Profile {
    /// In the form that [`Profile::parse`] reads, with all parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.pairs().try_for_each(|(name, value)| write!(f, ":{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_name_with_parameters() {
        let profile = Profile::parse("hadoop:am-share=0.25:submit=1s..2s").unwrap().unwrap();
        assert_eq!((profile.am_share(), profile.am_linger()), (0.25, Span(5_200_000)));
        assert_eq!(profile.submit(), UniformSpan { least: Span(1_000_000), most: Span(2_000_000) });
        assert_eq!(Profile::parse(&profile.to_string()), Ok(Some(profile)));
        assert_eq!(Profile::parse("plain"), Ok(None));
    }

    #[test]
    fn errors_of_profiles_are_reported() {
        let error = |text: &str| Profile::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("hadop"),
            r#"found profile "hadop", expected one of plain, hadoop, hadoop-log; did you mean "hadoop"?"#
        );
        assert!(error("hadoop:am-shar=1").starts_with("profile hadoop: found parameter \"am-shar\""));
        assert_eq!(
            error("hadoop:am-share=2"),
            "profile hadoop: found am-share=2, expected a number from 0 to 1"
        );
        assert!(error("plain:am-share=1").starts_with("found profile \"plain\""));
    }

    #[test]
    fn a_log_has_the_start_of_containers_in_it() {
        let parse = |text: &str| Profile::parse(text).unwrap().unwrap();
        assert_eq!(
            parse("hadoop-log:am-share=0.3"),
            parse("hadoop:am-share=0.3:am-start=2.5..7:container-start=0.2..0.8")
        );
        assert_eq!(parse("hadoop-log:am-start=4").am_start(), parse("hadoop:am-start=4").am_start());
        assert_eq!(parse(&parse("hadoop-log").to_string()), parse("hadoop-log"));
        assert!(Profile::parse("hadoop-log:am-start=4:am-start=5").is_err());
    }

    #[test]
    fn nothing_need_take_any_time() {
        // A factor of 1 takes no additional time.
        for param in PARAMS.iter().filter(|param| !param.name.ends_with("-factor")) {
            assert!(Profile::of(HADOOP, [(param.name, "0")]).is_ok(), "{}", param.name);
        }
    }
}
