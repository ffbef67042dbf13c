//! The answer of a capacity search in words.

use super::question::SearchQuestion;
use crate::capacity::{Capacity, Condition, DrawRule, Knob, Method, SearchStep};
use crate::report::names::shown_alone;
use crate::report::number::{Unit, counted, number};

/// The policy and the answer, in one or two sentences.
pub fn outcome(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    let answer = match asked.rule {
        Some(rule) if asked.has_draws() => of_draws(found, asked, rule),
        Some(_) => sentence(found, asked) + "; one draw: other seeds may give other answers",
        None => sentence(found, asked),
    };
    format!("{}: {answer}", shown_alone(asked.policy.spec()))
}

/// The conditions: `missed at most 0 and makespan below 60 s`.
fn wanted(asked: &SearchQuestion<'_>) -> String {
    asked.conditions.iter().map(Condition::words).collect::<Vec<_>>().join(" and ")
}

/// The answer of one simulation at each value.
fn sentence(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    let SearchQuestion { conditions, axis, .. } = *asked;
    let (wanted, knob) = (wanted(asked), &axis.knob);
    if found.is_interrupted {
        return format!("stopped before the end: {}", so_far(found, knob, &wanted));
    }
    let Some(value) = found.found else {
        return format!("no {} in {axis} gives {wanted}", what(knob)) + unproven(found);
    };
    let answer = if knob.is_load() && !conditions.is_empty() {
        format!("{wanted} {}", up_to(found, asked, value))
    } else if knob.is_size() && !conditions.is_empty() {
        format!("{} in {axis} with {wanted}", fewest(knob, value))
    } else {
        let with = if conditions.is_empty() { String::new() } else { format!(" of those with {wanted}") };
        format!("{knob} {} of {axis} costs least{with}", short(value))
    };
    answer + &proof(found, knob, value) + &price(found, asked)
}

/// The answer with the chance of its value, and that of the next smaller one.
fn of_draws(found: &Capacity, asked: &SearchQuestion<'_>, rule: DrawRule) -> String {
    let SearchQuestion { conditions, axis, .. } = *asked;
    let knob = &axis.knob;
    let share = number(rule.confidence, Unit::Percent);
    let wanted = format!("{} in at least {} of draws", wanted(asked), share.replace(".0 %", " %"));
    if found.is_interrupted {
        return format!("stopped before the end: {}", so_far(found, knob, &wanted));
    }
    let is_size = knob.is_size() && !conditions.is_empty();
    let limit = if found.is_out_of_time {
        format!("; the time limit allowed at most {}", counted(u64::from(found.most_draws()), "draw"))
    } else {
        String::new()
    };
    let Some(answer) = found.answer() else {
        let largest = found.tried.last().filter(|_| is_size);
        let largest = largest.map_or_else(String::new, |step| {
            format!("; {}: {}", size(knob, step.value), statement_of(step, asked))
        });
        return format!("no {} in {axis} gives {wanted}{largest}", what(knob)) + unproven(found) + &limit;
    };
    let text = if knob.is_load() && !conditions.is_empty() {
        let above = found.tried.iter().find(|tried| tried.value > answer.value);
        let above = above.map_or_else(String::new, |above| format!(" (in {} there)", percent(above)));
        format!("{wanted} {}{above}; {}", up_to(found, asked, answer.value), statement_of(answer, asked))
    } else if is_size {
        let below = found.tried.iter().rev().find(|tried| tried.value < answer.value);
        let below = below.map_or_else(
            || "; it is the smallest of the range".to_owned(),
            |below| format!("; {}: in {}", size(knob, below.value), percent(below)),
        );
        let (fewest, statement) = (fewest(knob, answer.value), statement_of(answer, asked));
        format!("{fewest} in {axis}: {statement}{below}") + &contradiction(found, knob, answer.value)
    } else {
        let with = if conditions.is_empty() { String::new() } else { format!(" of those with {wanted}") };
        let mean = short(answer.mean(&|figures| figures.cost).unwrap_or_default());
        let draws = counted(u64::from(answer.drawn()), "draw");
        format!("{knob} {} of {axis} costs least{with}: {mean} on average of {draws}", short(answer.value))
            + &ties(found)
    };
    text + &price(found, asked) + &limit
}

/// The conditions as a statement: `missed is 0 and makespan is below 60 s`.
pub(crate) fn statement(asked: &SearchQuestion<'_>) -> String {
    asked.conditions.iter().map(Condition::statement).collect::<Vec<_>>().join(" and ")
}

/// `missed is 0 in 97 % of 120 draws (95 % interval 92 to 99 %)`.
fn statement_of(step: &SearchStep, asked: &SearchQuestion<'_>) -> String {
    let statement = statement(asked);
    let [low, high] = step.chance_interval().map(|end| 100.0 * end);
    let draws = counted(u64::from(step.drawn()), "draw");
    format!("{statement} in {} of {draws} (95 % interval {low:.0} to {high:.0} %)", percent(step))
}

/// The chance of a step, with a decimal where rounding would hide failures or their absence.
fn percent(step: &SearchStep) -> String {
    let percent = 100.0 * step.chance();
    let is_near = percent.fract() != 0.0 && !(1.0..=99.0).contains(&percent);
    if is_near { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// The values whose cost is about that of the answer.
fn ties(found: &Capacity) -> String {
    const MOST: usize = 12;
    let values: Vec<String> = found.tied.iter().take(MOST).map(|&value| short(value)).collect();
    match (values.as_slice(), found.tied.len().saturating_sub(MOST)) {
        ([], _) => "; the others cost more".to_owned(),
        ([only], _) => format!("; {only} costs about the same"),
        (values, 0) => format!("; {} cost about the same", listed(values)),
        (values, more) => format!("; {} and {more} more cost about the same", values.join(", ")),
    }
}

/// `a, b and c`.
fn listed(values: &[String]) -> String {
    match values {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        values => values.concat(),
    }
}

/// `up to a load of 1.15, not at 1.2`.
fn up_to(found: &Capacity, asked: &SearchQuestion<'_>, value: f64) -> String {
    let above = found.tried.iter().find(|tried| tried.value > value);
    let next = match above {
        Some(above) => format!(", not at {}", short(above.value)),
        None => ", the largest that was tried".to_owned(),
    };
    let again = found.tried.iter().rev().find(|tried| tried.meets && tried.value > value);
    let again = again.map_or_else(String::new, |again| format!(" but again at {}", short(again.value)));
    let (knob, value) = (&asked.axis.knob, short(value));
    format!("up to a {knob} of {value}{next}{again}")
}

/// `12 machines are the fewest`, `speed 1.5 is the lowest`.
fn fewest(knob: &Knob, value: f64) -> String {
    match knob {
        Knob::Speed => format!("{} is the lowest", size(knob, value)),
        _ if value == 1.0 => format!("{} is the fewest", size(knob, value)),
        _ => format!("{} are the fewest", size(knob, value)),
    }
}

/// The price of the answer.
fn price(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    let hours = found.answer().and_then(|answer| answer.mean(&|figures| figures.machine_hours));
    asked.price.zip(hours).map_or_else(String::new, |(price, hours)| {
        format!("; {} machine-hours cost {}", short(hours), short(price * hours))
    })
}

/// The result of a cancelled search, in words.
fn so_far(found: &Capacity, knob: &Knob, wanted: &str) -> String {
    let fails = found.tried.iter().filter(|tried| !tried.meets).map(|tried| tried.value);
    match found.found {
        Some(value) => {
            let below = fails.filter(|&fails| fails < value).fold(None, |_, fails| Some(fails));
            let below = below.map_or_else(String::new, |below| format!(", {} not", does(knob, below)));
            let verb = if value == 1.0 || !knob.is_whole() { "meets" } else { "meet" };
            format!("{} {verb} {wanted}{below}; values in between were not tried", size(knob, value))
        }
        None => format!("no value that was tried gives {wanted}"),
    }
}

/// The evidence for the answer.
fn proof(found: &Capacity, knob: &Knob, value: f64) -> String {
    match found.is_monotone {
        Some(false) => contradiction(found, knob, value),
        Some(true) if found.method == Method::Bisect => {
            let below = found.tried.iter().rev().find(|tried| tried.value < value);
            below.map_or_else(
                || " (the smallest size of the range)".to_owned(),
                |below| format!(" ({} not{})", does(knob, below.value), larger(found, value)),
            )
        }
        _ => String::new(),
    }
}

/// The first larger size that fails, if there is one.
fn contradiction(found: &Capacity, knob: &Knob, value: f64) -> String {
    let failed_above = found.tried.iter().find(|tried| tried.value > value && !tried.meets);
    failed_above.filter(|_| found.is_monotone == Some(false)).map_or_else(String::new, |above| {
        format!(
            "; but {} not, so more is not always better here: --search every checks each size",
            does(knob, above.value)
        )
    })
}

/// The larger sizes that were tried and meet the conditions.
fn larger(found: &Capacity, value: f64) -> String {
    let larger: Vec<f64> = found.tried.iter().map(|tried| tried.value).filter(|&size| size > value).collect();
    match (larger.len(), larger.last()) {
        (1, Some(only)) => format!(", and {} do", short(*only)),
        (n, Some(last)) => format!(", and the {n} larger sizes that were tried, up to {}, do", short(*last)),
        (_, None) => String::new(),
    }
}

/// The assumption of a bisection that found no answer.
fn unproven(found: &Capacity) -> &'static str {
    match found.method {
        Method::Bisect => "; assumed that larger sizes are never worse: --search every checks each size",
        Method::Every => "",
    }
}

/// `12 machines do`, `1 machine does`.
fn does(knob: &Knob, value: f64) -> String {
    let verb = if value == 1.0 || !knob.is_whole() { "does" } else { "do" };
    format!("{} {verb}", size(knob, value))
}

/// `12 machines`, `3 map slots a machine`.
fn size(knob: &Knob, value: f64) -> String {
    match knob {
        Knob::Machines => counted(value as u64, "machine"),
        Knob::Slots => format!("{} a machine", counted(value as u64, "slot")),
        Knob::MapSlots => format!("{} a machine", counted(value as u64, "map slot")),
        Knob::ReduceSlots => format!("{} a machine", counted(value as u64, "reduce slot")),
        _ => format!("{knob} {}", short(value)),
    }
}

/// `number of machines`.
fn what(knob: &Knob) -> String {
    match knob {
        Knob::Machines => "number of machines".to_owned(),
        Knob::Slots | Knob::MapSlots | Knob::ReduceSlots => {
            format!("number of {}", knob.name().replace('-', " "))
        }
        _ => knob.to_string(),
    }
}

fn short(value: f64) -> String {
    number(value, if value.fract() == 0.0 { Unit::Count } else { Unit::Measure })
}
