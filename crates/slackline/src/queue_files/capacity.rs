//! Reads `capacity-scheduler.xml`: properties with the paths of queues in their names.

use std::collections::BTreeMap;

use slackline_algo::yarn::capacity::{Capacity, Hierarchy, MASTERS, Mapping, Queue};
use slackline_algo::yarn::{Turns, UserApps};
use slackline_trace::{Element, Place, TraceError};

use super::File;

/// The prefix of property names.
const PREFIX: &str = "yarn.scheduler.capacity.";

/// The tolerance for the sum of percentages of queues, which must be 100.
const PRECISION: f64 = 0.05;

/// Properties that do not affect scheduling: access control, metrics, files and threads.
const WITHOUT_EFFECT: [&str; 12] = [
    "acl_submit_applications",
    "acl_administer_queue",
    "acl_application_max_priority",
    "maximum-applications",
    "resource-calculator",
    "schedule-asynchronously.enable",
    "schedule-asynchronously.maximum-threads",
    "schedule-asynchronously.scheduling-interval-ms",
    "user-metrics.enable",
    "application.fail-fast",
    "maximum-allocation-mb",
    "maximum-allocation-vcores",
];

/// The value of a property, and its position.
type Value = (String, Place);

/// The properties that were not read yet.
struct Properties(BTreeMap<String, Value>);

impl Properties {
    /// Takes the value of a property, by its name without the prefix.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|(value, _)| !value.is_empty())
    }

    /// The position of a property of a queue.
    fn place(&self, path: &str, name: &str) -> Option<Place> {
        self.0.get(&format!("{path}.{name}")).map(|(_, place)| *place)
    }

    /// Takes the value of a property of a queue.
    fn of(&mut self, path: &str, name: &str) -> Option<Value> {
        self.take(&format!("{path}.{name}"))
    }
}

/// The queues of the file.
pub(super) fn hierarchy(file: &mut File, root: &Element) -> Result<Hierarchy, TraceError> {
    file.expect_root(root, "configuration", "capacity-scheduler.xml")?;
    let mut properties = properties(file, root)?;
    let defaults = Defaults::take(file, &mut properties)?;
    let mut hierarchy = Hierarchy::of(Vec::new());
    let mut reader = Reader {
        file: &mut *file,
        properties: &mut properties,
        defaults,
        queues: Vec::new(),
        places: Vec::new(),
    };
    reader.queue("root", None)?;
    let queues = reader.queues;
    if queues.len() == 1 {
        let what = format!("missing property {PREFIX}root.queues with the names of the queues");
        return Err(file.error(root.place, what));
    }
    (hierarchy.queues, hierarchy.user_apps) = (queues, user_apps(file, &mut properties)?);
    mappings(file, &mut properties, &mut hierarchy)?;
    for (name, (_, place)) in properties.0 {
        // The part of the name after the queue identifies the property.
        let what = hierarchy
            .queues
            .iter()
            .filter_map(|queue| name.strip_prefix(&format!("{}.", queue.path)))
            .min_by_key(|rest| rest.len())
            .unwrap_or(&name);
        if !WITHOUT_EFFECT.contains(&what) && what != "state" {
            file.ignore(what, place);
        }
    }
    Ok(hierarchy)
}

/// The properties of the scheduler, by their names without the prefix. Other properties are ignored.
fn properties(file: &File, root: &Element) -> Result<Properties, TraceError> {
    let mut properties = BTreeMap::new();
    for property in &root.elements {
        if property.name != "property" {
            let what = format!("found <{}>, expected <property>", property.name);
            return Err(file.error(property.place, what));
        }
        let part = |name: &str| {
            let element = property.elements.iter().find(|element| element.name == name);
            element.map(|element| element.text.as_str()).or_else(|| property.attribute(name))
        };
        let Some(name) = part("name") else {
            return Err(file.error(property.place, "found a <property> without a <name>"));
        };
        if let Some(name) = name.trim().strip_prefix(PREFIX) {
            let value = part("value").unwrap_or_default().trim().to_owned();
            properties.insert(name.to_owned(), (value, property.place));
        }
    }
    Ok(Properties(properties))
}

/// The default settings of queues.
#[derive(Clone, Copy)]
struct Defaults {
    user_limit: f32,
    user_limit_factor: f32,
    ams: f32,
    apps: u32,
    /// Whether percentages must add up to 100.
    is_legacy: bool,
}

impl Defaults {
    fn take(file: &File, properties: &mut Properties) -> Result<Self, TraceError> {
        let mut real = |name: &str, default: f32| match properties.take(name) {
            Some((text, place)) => file.number(name, &text, place, "a number"),
            None => Ok(default),
        };
        let user_limit = real("minimum-user-limit-percent", 100.0)?;
        let user_limit_factor = real("user-limit-factor", 1.0)?;
        let ams = real("maximum-am-resource-percent", MASTERS)?;
        let apps = match properties.take("max-parallel-apps") {
            Some((text, place)) => file.number("max-parallel-apps", &text, place, "a whole number")?,
            None => u32::MAX,
        };
        let legacy = properties.take("legacy-queue-mode.enabled");
        let is_legacy = legacy.is_none_or(|(text, _)| !text.eq_ignore_ascii_case("false"));
        Ok(Self { user_limit, user_limit_factor, ams, apps, is_legacy })
    }
}

/// The capacity of a queue, as given in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum QueueCapacity {
    Percent(f32),
    Weight(f32),
    Memory(u64),
}

impl QueueCapacity {
    fn mode(self) -> &'static str {
        match self {
            Self::Percent(_) => "a percentage",
            Self::Weight(_) => "a weight",
            Self::Memory(_) => "resources",
        }
    }
}

/// Reads queues from the root down.
struct Reader<'a> {
    file: &'a mut File,
    properties: &'a mut Properties,
    defaults: Defaults,
    queues: Vec<Queue>,
    /// By queue: the positions of its capacity and its maximum.
    places: Vec<[Option<Place>; 2]>,
}

impl Reader<'_> {
    /// Reads a queue and its descendants. The root has the whole cluster.
    fn queue(&mut self, path: &str, parent: Option<usize>) -> Result<QueueCapacity, TraceError> {
        let at = self.queues.len();
        let places = ["capacity", "maximum-capacity"].map(|name| self.properties.place(path, name));
        let given = self.capacity(path)?;
        let mut queue = Queue::new(path, parent, Capacity::Part(1.0));
        if let QueueCapacity::Memory(memory) = given {
            queue.capacity = Capacity::Memory(memory);
        }
        self.limits(&mut queue)?;
        self.queues.push(queue);
        self.places.push(places);
        let names = self.properties.of(path, "queues");
        self.order(at, names.is_some())?;
        if let Some((names, place)) = names {
            self.children(path, at, given, &names, place)?;
        }
        Ok(given)
    }

    /// Reads the children of a queue, and the capacity of each.
    fn children(
        &mut self,
        path: &str,
        at: usize,
        own: QueueCapacity,
        names: &str,
        place: Place,
    ) -> Result<(), TraceError> {
        let mut given: Vec<(usize, QueueCapacity)> = Vec::new();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let child = format!("{path}.{name}");
            if name.contains('.') || self.queues.iter().any(|queue| queue.path == child) {
                let what =
                    format!("found queue {name:?} in {path}, expected each name once and without a dot");
                return Err(self.file.error(place, what));
            }
            let next = self.queues.len();
            given.push((next, self.queue(&child, Some(at))?));
        }
        let Some(&(_, first)) = given.first() else {
            return Err(self
                .file
                .error(place, format!("found an empty {path}.queues, expected the names of queues")));
        };
        let differs = |&&(_, other): &&(usize, QueueCapacity)| other.mode() != first.mode();
        if let Some(&(other, mode)) = given.iter().find(differs) {
            let what = format!(
                "found {} as the capacity of {} and {} as that of {}, expected the same kind for all queues of {path}",
                first.mode(),
                self.queues[given[0].0].path,
                mode.mode(),
                self.queues[other].path
            );
            return Err(self.file.error(self.places[other][0].unwrap_or(place), what));
        }
        let numbers = given.iter().map(|&(_, given)| match given {
            QueueCapacity::Percent(number) | QueueCapacity::Weight(number) => number,
            QueueCapacity::Memory(_) => 0.0,
        });
        let sum: f32 = numbers.sum();
        if matches!(first, QueueCapacity::Percent(_)) {
            self.check_sum(path, own, &given, sum, place)?;
        }
        for (child, given) in given {
            match given {
                QueueCapacity::Percent(percent) => {
                    let queue = &mut self.queues[child];
                    queue.capacity = Capacity::Part(percent / 100.0);
                    if let Capacity::Part(most) = queue.maximum
                        && most < percent / 100.0
                    {
                        let what = format!(
                            "found {}.maximum-capacity {} %, expected at least its capacity, which is {percent} %",
                            queue.path,
                            most * 100.0,
                        );
                        return Err(self.file.error(self.places[child][1].unwrap_or(place), what));
                    }
                }
                QueueCapacity::Weight(weight) if sum > 0.0 => {
                    self.queues[child].capacity = Capacity::Part(weight / sum);
                }
                QueueCapacity::Weight(_) => self.queues[child].capacity = Capacity::Part(0.0),
                QueueCapacity::Memory(_) => {}
            }
        }
        Ok(())
    }

    fn check_sum(
        &mut self,
        path: &str,
        own: QueueCapacity,
        given: &[(usize, QueueCapacity)],
        sum: f32,
        place: Place,
    ) -> Result<(), TraceError> {
        let may_be_zero =
            self.properties.of(path, "allow-zero-capacity-sum").is_some_and(|(text, _)| text == "true")
                || own == QueueCapacity::Percent(0.0);
        let is_right = (f64::from(sum) - 100.0).abs() <= PRECISION || (may_be_zero && sum == 0.0);
        if is_right || !self.defaults.is_legacy {
            return Ok(());
        }
        let each = given.iter().filter_map(|&(queue, given)| match given {
            QueueCapacity::Percent(percent) => Some((queue, percent)),
            QueueCapacity::Weight(_) | QueueCapacity::Memory(_) => None,
        });
        let said = |(queue, percent): (usize, f32)| {
            let line =
                self.places[queue][0].map_or_else(String::new, |place| format!(" on line {}", place.line));
            format!("{} {percent} %{line}", self.queues[queue].path)
        };
        let what = format!(
            "found capacities of {sum} % together in the queues of {path} ({}), expected 100 %",
            each.map(said).collect::<Vec<_>>().join(", ")
        );
        let last =
            given.iter().filter_map(|&(queue, _)| self.places[queue][0]).max_by_key(|place| place.line);
        Err(self.file.error(last.unwrap_or(place), what))
    }

    /// The capacity as given. A missing capacity is 0 %, and 100 % for the root.
    fn capacity(&mut self, path: &str) -> Result<QueueCapacity, TraceError> {
        let Some((text, place)) = self.properties.of(path, "capacity") else {
            return Ok(QueueCapacity::Percent(if path == "root" { 100.0 } else { 0.0 }));
        };
        let name = format!("{path}.capacity");
        if text.starts_with('[') {
            return Ok(QueueCapacity::Memory(self.memory(&name, &text, place)?));
        }
        if let Some(weight) = text.strip_suffix('w') {
            return Ok(QueueCapacity::Weight(self.file.amount(&name, weight, place)? as f32));
        }
        Ok(QueueCapacity::Percent(self.percent(&name, &text, place)?))
    }

    fn percent(&self, name: &str, text: &str, place: Place) -> Result<f32, TraceError> {
        const EXPECTED: &str = "a percentage from 0 to 100, a weight such as 2w, or resources such as \
                                [memory=10240,vcores=10]";
        let percent: f32 = self.file.number(name, text, place, EXPECTED)?;
        if (0.0..=100.0).contains(&percent) {
            return Ok(percent);
        }
        Err(self.file.error(place, format!("found {name} {text:?}, expected {EXPECTED}")))
    }

    /// The memory of `[memory=10240,vcores=10]`, MiB.
    fn memory(&self, name: &str, text: &str, place: Place) -> Result<u64, TraceError> {
        let wrong = || {
            let expected = "resources such as [memory=10240,vcores=10], the memory in MiB (percentages and weights in \
                            them are not read)";
            self.file.error(place, format!("found {name} {text:?}, expected {expected}"))
        };
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(wrong)?;
        let memory =
            inner.split(',').filter_map(|part| part.split_once('=')).find(|(of, _)| of.trim() == "memory");
        let (_, memory) = memory.ok_or_else(wrong)?;
        let memory = memory.trim();
        let digits = memory.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match &memory[digits.len()..] {
            "" | "Mi" => 1,
            "Gi" => 1 << 10,
            "Ti" => 1 << 20,
            _ => return Err(wrong()),
        };
        digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale)).ok_or_else(wrong)
    }

    /// Reads the maximum, the user limits and the maximum number of applications.
    fn limits(&mut self, queue: &mut Queue) -> Result<(), TraceError> {
        let path = queue.path.clone();
        if let Some((text, place)) = self.properties.of(&path, "maximum-capacity") {
            let name = format!("{path}.maximum-capacity");
            queue.maximum = if text.starts_with('[') {
                Capacity::Memory(self.memory(&name, &text, place)?)
            } else if text == "-1" {
                Capacity::Part(1.0)
            } else {
                Capacity::Part(self.percent(&name, &text, place)? / 100.0)
            };
        }
        let Self { file, properties, defaults, .. } = self;
        let mut real = |name: &str, default: f32| match properties.of(&path, name) {
            Some((text, place)) => file.number(&format!("{path}.{name}"), &text, place, "a number"),
            None => Ok(default),
        };
        queue.user_limit = real("minimum-user-limit-percent", defaults.user_limit)?;
        queue.user_limit_factor = real("user-limit-factor", defaults.user_limit_factor)?;
        queue.ams = real("maximum-am-resource-percent", defaults.ams)?;
        let mut whole = |name: &str| match properties.of(&path, name) {
            Some((text, place)) => {
                file.number::<i32>(&format!("{path}.{name}"), &text, place, "a whole number").map(Some)
            }
            None => Ok(None),
        };
        queue.priority = whole("priority")?.unwrap_or(0);
        let app_priority = whole("default-application-priority")?.unwrap_or(0);
        queue.app_priority = u32::try_from(app_priority).unwrap_or(0);
        queue.apps =
            whole("max-parallel-apps")?.map_or(defaults.apps, |apps| u32::try_from(apps).unwrap_or(0));
        if let Some((state, place)) = properties.of(&path, "state")
            && !state.eq_ignore_ascii_case("running")
        {
            file.ignore(format!("state {state}"), place);
        }
        Ok(())
    }

    /// Reads the ordering policy of its children or applications.
    fn order(&mut self, at: usize, is_parent: bool) -> Result<(), TraceError> {
        let (path, parent) = (self.queues[at].path.clone(), self.queues[at].parent);
        let said = self.properties.of(&path, "ordering-policy");
        let by_size = self.properties.of(&path, "ordering-policy.fair.enable-size-based-weight");
        if is_parent {
            let inherited = parent.is_some_and(|parent| self.queues[parent].by_priority);
            self.queues[at].by_priority = match &said {
                None => inherited,
                Some((text, _)) if text == "utilization" => false,
                Some((text, _)) if text == "priority-utilization" => true,
                Some((text, place)) => {
                    let expected = "utilization or priority-utilization, of a queue with queues in it";
                    let what = format!("found {path}.ordering-policy {text:?}, expected {expected}");
                    return Err(self.file.error(*place, what));
                }
            };
            return Ok(());
        }
        let by_size = by_size.is_some_and(|(text, _)| text == "true");
        self.queues[at].turns = match said {
            None => Turns::Fifo,
            Some((text, place)) => match text.rsplit('.').next().unwrap_or_default() {
                "fifo" | "FifoOrderingPolicy" => Turns::Fifo,
                "fair" | "FairOrderingPolicy" if by_size => Turns::FairBySize,
                "fair" | "FairOrderingPolicy" => Turns::Fair,
                "fifo-with-partitions" | "fifo-for-pending-apps" => {
                    self.file.ignore(format!("ordering-policy {text} (fifo instead)"), place);
                    Turns::Fifo
                }
                _ => {
                    let what = format!("found {path}.ordering-policy {text:?}, expected fifo or fair");
                    return Err(self.file.error(place, what));
                }
            },
        };
        Ok(())
    }
}

/// The maximum number of running applications of each user.
fn user_apps(file: &File, properties: &mut Properties) -> Result<UserApps, TraceError> {
    let mut apps = UserApps::default();
    let is_one = |name: &&String| name.starts_with("user.") && name.ends_with("max-parallel-apps");
    let names: Vec<String> = properties.0.keys().filter(is_one).cloned().collect();
    for name in names {
        let Some((text, place)) = properties.take(&name) else { continue };
        let most = file.number(&name, &text, place, "a whole number")?;
        match name.strip_prefix("user.").and_then(|rest| rest.strip_suffix(".max-parallel-apps")) {
            Some(user) => {
                apps.of.insert(user.to_owned(), most);
            }
            None => apps.others = most,
        }
    }
    Ok(apps)
}

/// The queue mappings of users.
fn mappings(
    file: &mut File,
    properties: &mut Properties,
    hierarchy: &mut Hierarchy,
) -> Result<(), TraceError> {
    let first = properties.take("queue-mappings-override.enable");
    hierarchy.mappings_first = first.is_some_and(|(text, _)| text == "true");
    let Some((text, place)) = properties.take("queue-mappings") else { return Ok(()) };
    for rule in text.split(',').map(str::trim).filter(|rule| !rule.is_empty()) {
        let mut parts = rule.split(':').map(str::trim);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("u"), Some(_), Some(queue), None) if queue.contains("_group") => {
                file.ignore(format!("queue-mappings {rule}"), place);
            }
            (Some("u"), Some(user), Some(queue), None) if !user.is_empty() && !queue.is_empty() => {
                let user = (user != "%user").then(|| user.to_owned());
                hierarchy.mappings.push(Mapping { user, queue: queue.to_owned() });
            }
            (Some("g" | "a"), ..) => file.ignore(format!("queue-mappings {rule}"), place),
            _ => {
                let what = format!(
                    "found the queue-mapping {rule:?}, expected u:USER:QUEUE, where USER and a part of QUEUE may be %user"
                );
                return Err(file.error(place, what));
            }
        }
    }
    Ok(())
}
