//! Tables that omit columns on a narrow terminal.

use std::borrow::Cow;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Row, StatefulWidget, Table, TableState};

/// The space between two columns of a table.
const GAP: u16 = 2;

/// The least width of the first column while other columns are dropped.
const NAME: u16 = 14;

pub(super) struct Column {
    title: &'static str,
    cells: Vec<Line<'static>>,
    alignment: Alignment,
    /// If columns do not fit, the one with the largest rank is omitted first; a column of rank 0 stays.
    rank: u8,
}

impl Column {
    pub(super) fn new(title: &'static str, rank: u8, cells: impl IntoIterator<Item = String>) -> Self {
        let cells = cells.into_iter().map(Line::from).collect();
        Self { title, cells, alignment: Alignment::Left, rank }
    }

    /// The same with words that have colours.
    pub(super) fn of_lines(title: &'static str, rank: u8, cells: Vec<Line<'static>>) -> Self {
        Self { title, cells, alignment: Alignment::Left, rank }
    }

    pub(super) fn right(self) -> Self {
        Self { alignment: Alignment::Right, ..self }
    }

    fn width(&self) -> u16 {
        let title = Line::from(self.title).width();
        let widest = self.cells.iter().map(Line::width).fold(title, usize::max);
        u16::try_from(widest).unwrap_or(u16::MAX)
    }
}

/// Draws a table in a frame, with a mark on the row of that number. The first column gets the remaining
/// width.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    block: Block<'_>,
    mut columns: Vec<Column>,
    selected: usize,
) {
    let inside = block.inner(area).width;
    // An empty column takes no room.
    let is_from_file = |column: &Column| column.cells.iter().any(|cell| cell.width() > 0);
    columns = columns
        .into_iter()
        .enumerate()
        .filter(|(k, column)| *k == 0 || is_from_file(column))
        .map(|(_, it)| it)
        .collect();
    let wide = |columns: &[Column]| {
        let rest = columns.iter().skip(1).map(|column| column.width().saturating_add(GAP));
        rest.fold(NAME.min(columns[0].width()), u16::saturating_add)
    };
    while wide(&columns) > inside {
        let last = columns.iter().enumerate().skip(1).max_by_key(|(k, column)| (column.rank, *k));
        match last.map(|(k, column)| (k, column.rank)) {
            Some((k, 1..)) => drop(columns.remove(k)),
            _ => break,
        }
    }
    let rest: u16 = columns.iter().skip(1).map(|column| column.width().saturating_add(GAP)).sum();
    let first = columns[0].width().min(inside.saturating_sub(rest)).max(1);
    let widths: Vec<Constraint> = std::iter::once(Constraint::Length(first))
        .chain(columns.iter().skip(1).map(|column| Constraint::Length(column.width())))
        .collect();
    let n = columns[0].cells.len();
    for name in &mut columns[0].cells {
        *name = cut(&name.to_string(), first).into_owned().into();
    }
    let cell = |column: &Column, k: usize| {
        let line = column.cells.get(k).cloned().unwrap_or_default();
        Cell::from(Text::from(line).alignment(column.alignment))
    };
    let rows = (0..n).map(|k| Row::new(columns.iter().map(|column| cell(column, k)).collect::<Vec<_>>()));
    let titles =
        columns.iter().map(|column| Cell::from(Text::from(column.title).alignment(column.alignment)));
    let table = Table::new(rows, widths)
        .header(Row::new(titles.collect::<Vec<_>>()).style(Style::new().add_modifier(Modifier::DIM)))
        .column_spacing(GAP)
        .block(block)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(Some(selected));
    StatefulWidget::render(table, area, frame.buffer_mut(), &mut state);
}

/// A text cut to a width; a mark stands for the rest.
pub(super) fn cut(text: &str, columns: u16) -> Cow<'_, str> {
    let width = |text: &str| Line::from(text).width();
    let columns = usize::from(columns);
    if width(text) <= columns {
        return text.into();
    }
    let fits = |end: &usize| width(&text[..*end]) < columns;
    let end = text.char_indices().map(|(at, _)| at).take_while(fits).last().unwrap_or(0);
    format!("{}…", &text[..end]).into()
}
