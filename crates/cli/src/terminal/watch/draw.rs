//! Draws the view for the size of the terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, LineGauge, Padding, Paragraph, Wrap};

use slackline::report::number::counted;

use super::columns;
use super::columns::{Column, cut};
use super::content::{Event, Flow, Job, Mood, Task, ViewContent};
use super::keys::{Overlay, Selection, Viewer};

/// From this width on, lists stand beside each other.
const WIDE: u16 = 110;

/// Below this height there is no room for lists.
const LISTS: u16 = 8;

/// Cells of a bar in a table.
const BAR: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, content: &ViewContent, selection: &Selection) {
    let [head, gauge, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Line::from(cut(&content.headline, head.width)).style(Modifier::BOLD), head);
    frame.render_widget(progress(content), gauge);
    match content.flows.get(selection.selected).filter(|_| selection.is_inside) {
        Some(flow) => inside(frame, body, content, flow, selection),
        None => outside(frame, body, content, selection),
    }
    frame.render_widget(keys(selection), foot);
    match selection.overlay {
        Overlay::Hidden => {}
        Overlay::Help => draw_overlay(frame, "keys", &help(selection.viewer)),
        Overlay::Question => draw_overlay(frame, "leave?", &QUESTION.map(str::to_owned)),
    }
}

fn progress(content: &ViewContent) -> LineGauge<'_> {
    let failed = if content.failed > 0 {
        format!(", {} failed", counted(content.failed, "attempt"))
    } else {
        String::new()
    };
    let label = format!(
        "{} of {} tasks, {} of {} slots{failed}",
        content.done, content.total, content.held, content.slots
    );
    let ratio = if content.total > 0 { content.done as f64 / content.total as f64 } else { 0.0 };
    LineGauge::default()
        .label(label)
        .ratio(ratio.clamp(0.0, 1.0))
        .filled_style(Style::new().fg(Color::Green))
        .filled_symbol("█")
        .unfilled_symbol("░")
}

/// Draws all flows, running tasks and events.
fn outside(frame: &mut Frame<'_>, area: Rect, content: &ViewContent, selection: &Selection) {
    let rows = u16::try_from(content.flows.len()).unwrap_or(u16::MAX).saturating_add(3);
    let (table, lists) = split_area(area, rows);
    let title = format!("flows ({})", content.flows.len());
    columns::draw(frame, table, frame_with_title(title), flow_columns(&content.flows), selection.selected);
    let tasks: Vec<&Task> = content.at_work.iter().collect();
    let events: Vec<&Event> = content.events.iter().collect();
    two_lists(frame, lists, &tasks, &events);
}

/// Draws one flow: its jobs, its running tasks and its events.
fn inside(frame: &mut Frame<'_>, area: Rect, content: &ViewContent, flow: &Flow, selection: &Selection) {
    let [about, rest] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let due = if flow.deadline.is_empty() { "–" } else { &flow.deadline };
    let between = if flow.between.is_empty() { String::new() } else { format!(" ({})", flow.between) };
    let line = Line::from(vec![
        Span::from(format!("flow {}: ", flow.name)).style(Modifier::BOLD),
        Span::from(flow.verdict).style(colour(flow.mood)),
        Span::from(format!(", deadline {due}, completion {}{between}", flow.completion)),
    ]);
    frame.render_widget(Paragraph::new(line).wrap(Wrap { trim: true }), about);
    let rows = u16::try_from(flow.jobs.len()).unwrap_or(u16::MAX).saturating_add(3);
    let (table, lists) = split_area(rest, rows);
    let title = format!("jobs ({})", flow.jobs.len());
    columns::draw(frame, table, frame_with_title(title), job_columns(&flow.jobs), selection.job);
    let tasks: Vec<&Task> = content.at_work.iter().filter(|task| task.flow == flow.name).collect();
    let is_its = |event: &&Event| event.flow.as_ref() == Some(&flow.name);
    let events: Vec<&Event> = content.events.iter().filter(is_its).collect();
    two_lists(frame, lists, &tasks, &events);
}

/// The upper part for a table of `lines` lines, and the lower for lists: at least two fifths, if there is
/// room for both.
fn split_area(area: Rect, lines: u16) -> (Rect, Rect) {
    if area.height < LISTS + 5 {
        return (area, Rect { height: 0, ..area });
    }
    let table = lines.min(area.height - LISTS.max(area.height * 2 / 5)).max(5);
    let [table, lists] = Layout::vertical([Constraint::Length(table), Constraint::Min(0)]).areas(area);
    (table, lists)
}

fn two_lists(frame: &mut Frame<'_>, area: Rect, tasks: &[&Task], events: &[&Event]) {
    if area.height == 0 {
        return;
    }
    let halves = [Constraint::Fill(1), Constraint::Fill(1)];
    let [left, right] = match area.width {
        WIDE.. => Layout::horizontal(halves).areas(area),
        _ => Layout::vertical(halves).areas(area),
    };
    // Of tasks, those that have run longest; of events, the last.
    let room = usize::from(left.height.saturating_sub(2));
    let inside = |area: Rect| area.width.saturating_sub(2);
    let mut lines: Vec<Line<'_>> =
        tasks.iter().take(room).map(|task| cut(&task.text, inside(left)).into()).collect();
    if tasks.len() > room && room > 0 {
        lines[room - 1] = Line::from(format!("… {} more", tasks.len() - room + 1));
    }
    let title = format!("running ({})", tasks.len());
    frame.render_widget(Paragraph::new(lines).block(frame_with_title(title)), left);
    let room = usize::from(right.height.saturating_sub(2));
    let from = events.len().saturating_sub(room);
    let lines: Vec<Line<'_>> =
        events[from..].iter().map(|event| cut(&event.text, inside(right)).into()).collect();
    frame.render_widget(Paragraph::new(lines).block(frame_with_title("events".to_owned())), right);
}

fn frame_with_title(title: String) -> Block<'static> {
    Block::bordered().title(title).border_style(Style::new().add_modifier(Modifier::DIM))
}

fn colour(mood: Mood) -> Style {
    match mood {
        Mood::Plain => Style::new(),
        Mood::Good => Style::new().fg(Color::Green),
        Mood::Warning => Style::new().fg(Color::Yellow),
        Mood::Bad => Style::new().fg(Color::Red),
    }
}

fn bar(done: usize, total: usize) -> String {
    let full = (done * BAR).checked_div(total).unwrap_or(0);
    "█".repeat(full) + &"░".repeat(BAR - full.min(BAR))
}

/// A number, or nothing instead of 0.
fn non_zero(number: u64) -> String {
    if number > 0 { number.to_string() } else { String::new() }
}

fn flow_columns(flows: &[Flow]) -> Vec<Column> {
    let of = |cell: fn(&Flow) -> String| flows.iter().map(cell).collect::<Vec<_>>();
    let verdicts = flows.iter().map(|flow| Line::from(flow.verdict).style(colour(flow.mood))).collect();
    vec![
        Column::new("flow", 0, of(|flow| flow.name.clone())),
        Column::new("of", 4, of(|flow| flow.of.clone())),
        Column::new("user", 6, of(|flow| flow.user.clone())),
        Column::new("", 8, of(|flow| bar(flow.done, flow.total))),
        Column::new("tasks", 1, of(|flow| format!("{}/{}", flow.done, flow.total))).right(),
        Column::new("running", 7, of(|flow| non_zero(flow.at_work as u64))).right(),
        Column::new("failed", 9, of(|flow| non_zero(flow.failed))).right(),
        Column::new("deadline", 3, of(|flow| flow.deadline.clone())).right(),
        Column::new("completion", 2, of(|flow| flow.completion.clone())).right(),
        Column::new("80 % interval", 5, of(|flow| flow.between.clone())),
        Column::of_lines("", 0, verdicts),
    ]
}

fn job_columns(jobs: &[Job]) -> Vec<Column> {
    let of = |cell: fn(&Job) -> String| jobs.iter().map(cell).collect::<Vec<_>>();
    let phase =
        |(done, total): (usize, usize)| if total > 0 { format!("{done}/{total}") } else { String::new() };
    let phases = |k: usize| jobs.iter().map(|job| phase(job.phases[k])).collect::<Vec<_>>();
    let has_reduces = jobs.iter().any(|job| job.phases[1].1 > 0);
    let reduces = has_reduces.then(|| Column::new("reduces", 1, phases(1)).right());
    let mut columns = vec![
        Column::new("job", 0, of(|job| job.name.clone())),
        Column::new("after", 5, of(|job| job.after.clone())),
        Column::new(if has_reduces { "maps" } else { "tasks" }, 0, phases(0)).right(),
    ];
    columns.extend(reduces);
    columns.extend([
        Column::new("running", 2, of(|job| non_zero(job.at_work as u64))).right(),
        Column::new("failed", 3, of(|job| non_zero(job.failed))).right(),
        Column::new("a task took", 4, of(|job| job.took.clone())).right(),
    ]);
    columns
}

fn keys(selection: &Selection) -> Line<'static> {
    if selection.is_stopping {
        return Line::from("stopping: running attempts are stopped …").style(Color::Yellow);
    }
    let words = if selection.is_inside {
        "↑↓ choose  esc all flows  ? help  q leave"
    } else {
        "↑↓ choose  enter open a flow  ? help  q leave"
    };
    Line::from(words).style(Modifier::DIM)
}

const QUESTION: [&str; 4] = [
    "The run continues unless you stop it.",
    "l    leave the view, and print lines",
    "s    stop the run; the same command resumes it",
    "esc  stay",
];

fn help(viewer: Viewer) -> Vec<String> {
    let last = match viewer {
        Viewer::Owner => [
            "q       asks whether to leave the view or to stop the run",
            "ctrl-C  stops the run; the same command resumes it",
        ],
        Viewer::Observer => ["q       leaves the view; the run continues", "ctrl-C  the same"],
    };
    let lines = [
        "↑ ↓     choose a flow or a job (also k j, page up and down, home, end)",
        "enter   open the flow",
        "esc     back to all flows",
    ];
    let about = [
        "",
        "completion: when the flow finished, or is predicted to finish",
        "80 % interval: the completion is in it with a chance of 80 %",
        "slackline logs FLOW JOB shows output of attempts, slackline explain FLOW",
        "why it waits",
    ];
    lines.iter().chain(&last).chain(&about).map(|&line| line.to_owned()).collect()
}

/// Lines in a frame in the middle.
fn draw_overlay(frame: &mut Frame<'_>, title: &str, lines: &[String]) {
    let widest = lines.iter().map(|line| Line::from(line.as_str()).width()).max().unwrap_or(0);
    let (width, height) =
        (u16::try_from(widest).unwrap_or(u16::MAX).saturating_add(4), lines.len() as u16 + 2);
    let [area] = Layout::horizontal([Constraint::Max(width)]).flex(Flex::Center).areas(frame.area());
    let [area] = Layout::vertical([Constraint::Max(height)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(title.to_owned()).padding(Padding::horizontal(1));
    let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::from(line.as_str())).collect();
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}
