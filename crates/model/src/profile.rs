//! Profiles: how a simulated cluster differs from one that does everything at once.
//!
//! A profile is data: its parameters are declared once, a schedule records the value of each, and the
//! simulator and the judge read them from there, each with separate rules. `docs/profiles.md` says where the
//! defaults were measured.

use std::fmt;

use crate::names::{did_you_mean, one_of};
use crate::params::{Param, ParamError, Settings, Values};
use crate::time::Span;

/// What nothing is called that a profile would change.
pub const PLAIN: &str = "plain";

/// The name of the profile of a cluster of Hadoop.
pub const HADOOP: &str = "hadoop";

/// The name of [`HADOOP`] with the defaults of [`OF_LOG`].
pub const HADOOP_LOG: &str = "hadoop-log";

/// Defaults for a workload that was imported from a log of Hadoop: a task's times begin there when its
/// container is launched, and so have most of its start in them. The other values were read off a log too
/// (`record/hadoop.md`, "The profile of a cluster").
pub const OF_LOG: &[(&str, &str)] = &[("am-start", "2.5..7"), ("container-start", "0.2..0.8")];

/// The parameters of both.
pub const PARAMS: &[Param] = &[
    Param::new("submit", "0.3..0.7", RANGE, "from when a job may start to when the cluster knows of it"),
    Param::new("am-start", "5.4..7.2", RANGE, "from the slot of an ApplicationMaster to its first request"),
    Param::new("am-linger", "5.2", PAUSE, "how long it keeps its slot after the end of its job"),
    Param::new(
        "am-share",
        "1",
        Values::Real(0.0, 1.0),
        "most slots that ApplicationMasters hold; 0 if they need none",
    ),
    Param::new("heartbeat", "0.2", PAUSE, "machines report, and get work, this often"),
    Param::new("am-heartbeat", "0.2", PAUSE, "an ApplicationMaster hears of its containers this often"),
    Param::new(
        "container-start",
        "1.5..4.5",
        RANGE,
        "from when a container is asked for to its task's own code",
    ),
    Param::new(
        "spread",
        "0",
        Values::Real(0.0, 3.0),
        "standard deviation of the logarithm of what tasks take",
    ),
    Param::new("straggler-share", "0", Values::Real(0.0, 1.0), "how likely an attempt is a straggler"),
    Param::new("straggler-factor", "3", FACTOR, "how many times as long one takes"),
    Param::new("speculate", "0", PAUSE, "an ApplicationMaster looks for slow attempts this often; 0: never"),
    Param::new("speculate-pause", "15", PAUSE, "it does not look for so long after it found one"),
    Param::new(
        "speculate-least",
        "10",
        Values::Count(0, u32::MAX as u64),
        "second attempts of a phase at a time, at most, or",
    ),
    Param::new("speculate-total", "0.01", SHARE, "this part of its tasks, or"),
    Param::new("speculate-running", "0.1", SHARE, "this part of its tasks that run, whichever is most"),
    Param::new("node-delay", "0", PAUSE, "a task waits so long for a slot where its input is,"),
    Param::new("rack-delay", "0", PAUSE, "and then so long for one in a rack where it is; then it takes any"),
    Param::new("rack-factor", "1", FACTOR, "how many times as long one computes whose input is in its rack"),
    Param::new("off-rack-factor", "1", FACTOR, "and one whose input is in other racks"),
];

/// What `--profile` may begin with.
const NAMES: [&str; 3] = [PLAIN, HADOOP, HADOOP_LOG];

/// A day is more than anything here takes.
const LONGEST: f64 = 86_400.0;
const RANGE: Values = Values::SecondsRange(0.0, LONGEST);
const PAUSE: Values = Values::Seconds(0.0, LONGEST);
const SHARE: Values = Values::Real(0.0, 1.0);
const FACTOR: Values = Values::Real(1.0, 1000.0);

/// How a simulated cluster behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    settings: Settings,
}

/// Something that is drawn, each value as likely as any other. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformSpan {
    /// The least it may be.
    pub least: Span,
    /// The most.
    pub most: Span,
}

/// When tasks are tried a second time beside the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// How often an ApplicationMaster looks for slow attempts.
    pub every: Span,
    /// How long it does not look after it found one.
    pub pause: Span,
    /// Second attempts of a phase at a time, at most, or
    pub least: u32,
    /// this part of its tasks, rounded down, or
    pub of_total: f64,
    /// this part of its tasks that run, rounded down, whichever is most.
    pub of_running: f64,
}

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// None is called that.
    #[error("found profile {found:?}, expected {}{}", one_of(&NAMES), did_you_mean(.found, NAMES))]
    Unknown {
        /// What was found.
        found: String,
    },
    /// It does not take a setting.
    #[error("profile {HADOOP}: {0}")]
    Parameter(#[from] ParamError),
}

impl Profile {
    /// The profile of a cluster of Hadoop, its parameters at their defaults.
    pub fn hadoop() -> Self {
        Self { settings: Settings::defaults(PARAMS) }
    }

    /// Reads `hadoop` or `hadoop:am-share=0.4:container-start=2..3`; `None` for `plain`.
    ///
    /// # Errors
    /// A name that is none, a parameter that it does not have or that cannot be that.
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
    /// As [`Self::parse`]; `plain` has no settings and is none here.
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

    /// Its name: [`HADOOP`], whose parameters say everything.
    pub fn name(&self) -> &'static str {
        HADOOP
    }

    /// Every parameter with its value, as [`Self::of`] reads them.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.settings.pairs()
    }

    /// Whether anything is drawn.
    pub fn draws(&self) -> bool {
        let ranges = [self.submit(), self.am_start(), self.container_start()];
        let is_drawn = |range: &UniformSpan| range.least < range.most;
        ranges.iter().any(is_drawn) || self.spread() > 0.0 || self.straggler_share() > 0.0
    }

    /// From when a job may start (its flow released, the jobs before it done) to when the cluster knows of
    /// it.
    pub fn submit(&self) -> UniformSpan {
        self.between("submit")
    }

    /// From when an ApplicationMaster takes its slot to when its job's tasks may take theirs.
    pub fn am_start(&self) -> UniformSpan {
        self.between("am-start")
    }

    /// How long an ApplicationMaster keeps its slot after the end of its job.
    pub fn am_linger(&self) -> Span {
        self.span("am-linger")
    }

    /// The part of all slots that ApplicationMasters hold at most; 0 if they need no slot.
    pub fn am_share(&self) -> f64 {
        self.settings.real("am-share")
    }

    /// How often a machine reports its ends and gets work; zero for at once.
    pub fn heartbeat(&self) -> Span {
        self.span("heartbeat")
    }

    /// How often an ApplicationMaster hears which slots its job has; zero for at once.
    pub fn am_heartbeat(&self) -> Span {
        self.span("am-heartbeat")
    }

    /// From when an ApplicationMaster asks for a task to be begun on a slot to when its code runs.
    pub fn container_start(&self) -> UniformSpan {
        self.between("container-start")
    }

    /// Standard deviation of the logarithm of a random factor (mean 1) on what a task computes; 0 for exact
    /// durations.
    pub fn spread(&self) -> f64 {
        self.settings.real("spread")
    }

    /// How likely an attempt takes [`Self::straggler_factor`] times as long.
    pub fn straggler_share(&self) -> f64 {
        self.settings.real("straggler-share")
    }

    /// How many times as long as others a straggler computes.
    pub fn straggler_factor(&self) -> f64 {
        self.settings.real("straggler-factor")
    }

    /// When tasks are tried a second time, if ever.
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

    /// How long a task whose input has hosts waits for a slot on one of them; zero if it does not.
    pub fn node_delay(&self) -> Span {
        self.span("node-delay")
    }

    /// How long it then waits for a slot in the rack of one of them; zero if it does not, and takes any.
    pub fn rack_delay(&self) -> Span {
        self.span("rack-delay")
    }

    /// How many times as long an attempt computes that is not where its input is, but in a rack where it is.
    pub fn rack_factor(&self) -> f64 {
        self.settings.real("rack-factor")
    }

    /// How many times as long an attempt computes that is in none of the racks where its input is.
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
    /// As [`Profile::parse`] reads it, with all parameters.
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
        // A factor of 1 is what takes no time.
        for param in PARAMS.iter().filter(|param| !param.name.ends_with("-factor")) {
            assert!(Profile::of(HADOOP, [(param.name, "0")]).is_ok(), "{}", param.name);
        }
    }
}
