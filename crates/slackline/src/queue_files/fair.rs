//! Reads `fair-scheduler.xml`: the allocation file of the FairScheduler, like its `AllocationFileParser`.

use slackline_algo::yarn::Turns;
use slackline_algo::yarn::fair::{Allocations, Amount, Placement, Queue, Resources};
use slackline_trace::{Element, TraceError};

use super::File;

/// Elements of queues that do not affect scheduling: access control.
const WITHOUT_EFFECT: [&str; 5] = [
    "aclSubmitApps",
    "aclAdministerApps",
    "aclAdministerReservations",
    "aclListReservations",
    "aclSubmitReservations",
];

/// The queues of the file.
pub(super) fn allocations(file: &mut File, root: &Element) -> Result<Allocations, TraceError> {
    file.expect_root(root, "allocations", "fair-scheduler.xml")?;
    let mut allocations = Allocations::default();
    defaults(file, root, &mut allocations)?;
    let queues: Vec<&Element> = root.elements.iter().filter(|element| is_queue(element)).collect();
    let is_root =
        |queue: &&&Element| queue.attribute("name").is_some_and(|name| name.eq_ignore_ascii_case("root"));
    let mut reader = Reader { file, default: allocations.default.clone(), queues: Vec::new() };
    if let Some(top) = queues.iter().find(is_root) {
        if queues.len() > 1 {
            let what = "found the queue root beside other queues, expected them inside it";
            return Err(reader.file.error(top.place, what));
        }
        reader.queue("root", None, top)?;
        reader.queues[0].is_parent = true;
    } else {
        let root =
            Queue { is_parent: true, apps: u32::MAX, max: Resources::UNBOUNDED, ..reader.default.clone() };
        reader.queues.push(Queue { path: "root".to_owned(), ..root });
        for queue in queues {
            let path = path_of(reader.file, "root", queue)?;
            reader.queue(&path, Some(0), queue)?;
        }
    }
    allocations.queues = reader.queues;
    Ok(allocations)
}

fn is_queue(element: &Element) -> bool {
    matches!(element.name.as_str(), "queue" | "pool")
}

/// The path of a queue in its parent.
fn path_of(file: &File, parent: &str, queue: &Element) -> Result<String, TraceError> {
    let name = queue.attribute("name").unwrap_or_default().trim();
    if name.is_empty() || name.contains('.') {
        let what = format!("found queue {name:?} in {parent}, expected a name without a dot");
        return Err(file.error(queue.place, what));
    }
    Ok(format!("{parent}.{name}"))
}

/// Reads the elements beside the queues.
fn defaults(file: &mut File, root: &Element, allocations: &mut Allocations) -> Result<(), TraceError> {
    for element in root.elements.iter().filter(|element| !is_queue(element)) {
        let place = element.place;
        match element.name.as_str() {
            "queueMaxResourcesDefault" => allocations.default.max = resources(file, element, u64::MAX)?,
            "queueMaxAppsDefault" => allocations.default.apps = apps(file, element)?,
            "userMaxAppsDefault" => allocations.user_apps.others = apps(file, element)?,
            "defaultQueueSchedulingPolicy" | "defaultQueueSchedulingMode" => {
                allocations.default.turns = turns(file, element)?;
                if allocations.default.turns == Turns::Fifo {
                    let what = "found fifo as the scheduling policy of all queues, expected fair or drf";
                    return Err(file.error(place, what));
                }
            }
            "user" => {
                let name = element.attribute("name").unwrap_or_default();
                for most in element.elements.iter().filter(|inner| inner.name == "maxRunningApps") {
                    allocations.user_apps.of.insert(name.to_owned(), apps(file, most)?);
                }
            }
            "queuePlacementPolicy" => {
                allocations.placement.clear();
                for rule in &element.elements {
                    if let Some(rule) = placement(file, rule)? {
                        allocations.placement.push(rule);
                    }
                }
            }
            name => file.ignore(format!("<{name}>"), place),
        }
    }
    Ok(())
}

/// A placement rule; `None` for a rule on user groups, which are unknown here.
fn placement(file: &mut File, rule: &Element) -> Result<Option<Placement>, TraceError> {
    let create = rule.attribute("create").is_none_or(|create| create == "true");
    Ok(Some(match rule.attribute("name").unwrap_or_default() {
        "specified" => Placement::Specified { create },
        "user" => Placement::User { create, within: None },
        "nestedUserQueue" => {
            let Some(inner) = rule.elements.first() else {
                let what = "found the rule nestedUserQueue without a rule inside it";
                return Err(file.error(rule.place, what));
            };
            let Some(within) = placement(file, inner)? else { return Ok(None) };
            Placement::User { create, within: Some(Box::new(within)) }
        }
        "default" => {
            let queue = rule.attribute("queue").unwrap_or("root.default").to_owned();
            Placement::Default { queue, create }
        }
        "reject" => Placement::Reject,
        name @ ("primaryGroup" | "secondaryGroupExistingQueue") => {
            file.ignore(format!("the placement rule {name}"), rule.place);
            return Ok(None);
        }
        name => {
            let what = format!(
                "found the placement rule {name:?}, expected specified, user, nestedUserQueue, default or reject"
            );
            return Err(file.error(rule.place, what));
        }
    }))
}

/// Reads queues from the root down.
struct Reader<'a> {
    file: &'a mut File,
    default: Queue,
    queues: Vec<Queue>,
}

impl Reader<'_> {
    fn queue(&mut self, path: &str, parent: Option<usize>, element: &Element) -> Result<(), TraceError> {
        if self.queues.iter().any(|queue| queue.path == path) {
            return Err(self.file.error(element.place, format!("found queue {path} a second time")));
        }
        let at = self.queues.len();
        let mut queue = Queue { path: path.to_owned(), parent, ..self.default.clone() };
        if parent.is_none() {
            queue.max = Resources::UNBOUNDED;
        }
        queue.is_parent =
            element.attribute("type") == Some("parent") || element.elements.iter().any(is_queue);
        let mut policy = None;
        for field in element.elements.iter().filter(|field| !is_queue(field)) {
            match field.name.as_str() {
                "minResources" => (queue.min_memory, queue.min_vcores) = minimum(self.file, field)?,
                "maxResources" => queue.max = resources(self.file, field, u64::MAX)?,
                "maxChildResources" => queue.max_child = Some(resources(self.file, field, u64::MAX)?),
                "maxRunningApps" => queue.apps = apps(self.file, field)?,
                "weight" => queue.weight = self.file.amount("weight", &field.text, field.place)?,
                "schedulingPolicy" | "schedulingMode" => {
                    queue.turns = turns(self.file, field)?;
                    policy = Some(field.place);
                }
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => self.file.ignore(format!("<{name}>"), field.place),
            }
        }
        if let Some(place) = policy.filter(|_| queue.is_parent && queue.turns == Turns::Fifo) {
            let what = format!(
                "found the scheduling policy fifo in {path}, which has queues in it, expected fair or drf"
            );
            return Err(self.file.error(place, what));
        }
        self.queues.push(queue);
        for inner in element.elements.iter().filter(|element| is_queue(element)) {
            let path = path_of(self.file, path, inner)?;
            self.queue(&path, Some(at), inner)?;
        }
        Ok(())
    }
}

fn apps(file: &File, element: &Element) -> Result<u32, TraceError> {
    file.number(&element.name, &element.text, element.place, "a whole number")
}

fn turns(file: &File, element: &Element) -> Result<Turns, TraceError> {
    let name = element.text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "fair" | "fairsharepolicy" | "drf" | "dominantresourcefairnesspolicy" => Ok(Turns::Fair),
        "fifo" | "fifopolicy" => Ok(Turns::Fifo),
        _ => {
            let what = format!("found the scheduling policy {:?}, expected fair, fifo or drf", element.text);
            Err(file.error(element.place, what))
        }
    }
}

/// The memory (MiB) and virtual cores of a minimum.
fn minimum(file: &File, element: &Element) -> Result<(u64, u64), TraceError> {
    let all = resources(file, element, 0)?;
    if let (Amount::Absolute(memory), Amount::Absolute(vcores)) = (all.memory, all.vcores) {
        return Ok((memory, vcores));
    }
    let what = format!("found minResources {:?}, expected amounts, not percentages", element.text);
    Err(file.error(element.place, what))
}

/// Memory and cores in one of Hadoop's formats: `10240 mb, 4 vcores`, `50%`, `50% memory, 20% cpu`,
/// `memory-mb=10240, vcores=4` or `memory-mb=50%, vcores=20%`. A missing resource is `missing`.
fn resources(file: &File, element: &Element, missing: u64) -> Result<Resources, TraceError> {
    let text = element.text.to_ascii_lowercase();
    let wrong = || {
        let what = format!(
            "found {} {:?}, expected resources such as \"10240 mb, 4 vcores\", \"50%\" or \"memory-mb=10240, vcores=4\"",
            element.name, element.text
        );
        file.error(element.place, what)
    };
    let parts = || text.split(',').map(str::trim);
    if text.contains('=') {
        let mut all = Resources { memory: Amount::Absolute(missing), vcores: Amount::Absolute(missing) };
        if text.contains('%') {
            all = Resources { memory: Amount::Part(1.0), vcores: Amount::Part(1.0) };
        }
        for part in parts() {
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let amount = amount(value.trim()).ok_or_else(wrong)?;
            match name.trim() {
                "memory-mb" => all.memory = amount,
                "vcores" => all.vcores = amount,
                // Other resources do not affect containers here.
                _ => {}
            }
        }
        return Ok(all);
    }
    if text.contains('%') {
        if let Some(part) = amount(&text) {
            return Ok(Resources { memory: part, vcores: part });
        }
        let of = |names: &[&str]| {
            let part = parts().find_map(|part| names.iter().find_map(|name| part.strip_suffix(*name)));
            part.and_then(|part| amount(part.trim())).ok_or_else(wrong)
        };
        return Ok(Resources { memory: of(&["memory"])?, vcores: of(&["cpu", "vcores"])? });
    }
    let of = |unit: &str| {
        let part = parts().find_map(|part| part.strip_suffix(unit));
        part.and_then(|part| amount(part.trim())).ok_or_else(wrong)
    };
    Ok(Resources { memory: of("mb")?, vcores: of("vcores")? })
}

/// `50%`, or a number, of which only the integer part counts.
fn amount(text: &str) -> Option<Amount> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| Amount::Part(percent / 100.0)),
        None => number(text).map(|number| Amount::Absolute(number as u64)),
    }
}
