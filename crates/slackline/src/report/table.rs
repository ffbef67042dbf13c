//! Text tables with aligned columns that fit a given width.
//!
//! A [`Table`] consists of columns. A [`View`] contains the maximum width, the requested columns and the sort
//! column. If not all columns fit, the least important ones are left out and named in a last line.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use anstyle::{AnsiColor, Style};
use slackline_model::printable::{escaped, escaped_line};
use unicode_width::UnicodeWidthStr;

use crate::names::did_you_mean;
use crate::report::number::{self, Unit};

/// The width without a terminal. It is constant, so that the same results give the same bytes in every file.
pub const WIDTH: usize = 100;

/// The number of spaces between columns. A mark replaces the first of them.
const GAP: usize = 2;

/// The options of the display of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The width of the terminal, columns.
    pub width: usize,
    /// Whether to use colours, as ANSI escape codes.
    pub colour: bool,
    /// The names of the columns to show, in this order, even if they do not fit. If empty, the most important
    /// columns that fit are shown, at most seven.
    pub columns: Vec<String>,
    /// The sort column; without it the order of the rows is kept.
    pub sort: Option<Sort>,
}

/// The sort order of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The name of the column.
    pub column: String,
    /// Whether the largest value comes first.
    pub descending: bool,
}

/// An unknown column name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found column {found:?}, expected one of {}{}",
    .known.join(", "),
    did_you_mean(.found, .known.iter().map(String::as_str))
)]
pub struct UnknownColumn {
    /// The name that was given.
    pub found: String,
    /// The known names.
    pub known: Vec<String>,
}

impl Default for View {
    fn default() -> Self {
        Self { width: WIDTH, colour: false, columns: Vec::new(), sort: None }
    }
}

impl View {
    /// Checks that every requested column is known.
    ///
    /// # Errors
    /// The first unknown column.
    pub fn check<S: AsRef<str>>(&self, known: &[S]) -> Result<(), UnknownColumn> {
        let asked = self.columns.iter().chain(self.sort.as_ref().map(|sort| &sort.column));
        let unknown = asked.into_iter().find(|name| !known.iter().any(|known| known.as_ref() == *name));
        let Some(found) = unknown else { return Ok(()) };
        let known = known.iter().map(|name| name.as_ref().to_owned()).collect();
        Err(UnknownColumn { found: found.clone(), known })
    }
}

/// The heading of a column: the words of its name, on at most two lines.
pub fn heading(name: &str) -> String {
    let (words, last) = name.rsplit_once('_').unwrap_or(("", name));
    if words.is_empty() { last.to_owned() } else { format!("{}\n{last}", words.replace('_', " ")) }
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names and words.
    Left,
    /// Numbers.
    Right,
}

/// Which value of a column is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The least.
    Least,
    /// The largest.
    Largest,
}

/// A column: a name, a heading, and one cell per row.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    heading: String,
    align: Align,
    rank: Option<u8>,
    best: Option<Best>,
    /// The rows to mark, instead of the best value.
    marked: Option<Vec<bool>>,
    is_key: bool,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug)]
struct Cell {
    text: String,
    /// The value for sorting and marking. Words are sorted as text.
    value: Option<f64>,
}

impl Cell {
    /// Creates a cell. Characters that would break the line are escaped.
    fn new(text: impl Into<String>, value: Option<f64>) -> Self {
        Self { text: escaped_line(&text.into()).into_owned(), value }
    }
}

impl Column {
    /// A column of words. By default its heading is its name, and it is never left out.
    pub fn words<S: Into<String>>(name: impl Into<String>, cells: impl IntoIterator<Item = S>) -> Self {
        let cells = cells.into_iter().map(|text| Cell::new(text, None)).collect();
        Self::new(name.into(), Align::Left, cells)
    }

    /// A column of numbers with the same number of decimals.
    pub fn numbers(name: impl Into<String>, values: &[Option<f64>], unit: Unit) -> Self {
        Self::written(name, values, number::column(values, unit))
    }

    /// A column of numbers with given texts.
    pub fn written(name: impl Into<String>, values: &[Option<f64>], texts: Vec<String>) -> Self {
        let cells = texts.into_iter().zip(values).map(|(text, &value)| Cell::new(text, value)).collect();
        Self::new(name.into(), Align::Right, cells)
    }

    fn new(name: String, align: Align, cells: Vec<Cell>) -> Self {
        Self {
            heading: name.clone(),
            name,
            align,
            rank: Some(0),
            best: None,
            marked: None,
            is_key: false,
            cells,
        }
    }

    /// Sets the heading, which may have several lines.
    pub fn heading(self, heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), ..self }
    }

    /// Sets the rank: columns of a higher rank are left out first, and those of rank 0 never.
    pub fn rank(self, rank: u8) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// Shows the column only if it is requested by name.
    pub fn if_asked(self) -> Self {
        Self { rank: None, ..self }
    }

    /// Marks the best value.
    pub fn best(self, best: Option<Best>) -> Self {
        Self { best, ..self }
    }

    /// Marks these rows; none if the list is empty.
    pub fn marked(self, rows: Vec<bool>) -> Self {
        Self { marked: Some(rows), ..self }
    }

    /// Shows the column even if only others are requested, because it distinguishes the rows.
    pub fn key(self) -> Self {
        Self { is_key: true, ..self }
    }

    /// Its name in the documents.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its heading, possibly with several lines.
    pub(crate) fn title(&self) -> &str {
        &self.heading
    }

    /// Whether it carries information about these rows.
    pub(crate) fn is_telling(&self) -> bool {
        self.rank.is_some()
    }

    /// Its cells: the text, the number if there is one, and whether it is the best.
    pub(crate) fn entries(&self) -> Vec<(&str, Option<f64>, bool)> {
        let all: Vec<usize> = (0..self.cells.len()).collect();
        let marks = self.marks(&all);
        self.cells.iter().zip(marks).map(|(cell, mark)| (cell.text.as_str(), cell.value, mark)).collect()
    }

    /// The maximum width of its heading and of its cells in these rows.
    fn width(&self, rows: &[usize]) -> usize {
        let cells = rows.iter().map(|&row| self.cells[row].text.width());
        self.heading.lines().map(str::width).chain(cells).max().unwrap_or(0)
    }

    /// For each of these rows, whether it is marked. No row is marked if all look the same or all are.
    fn marks(&self, rows: &[usize]) -> Vec<bool> {
        if let Some(marked) = &self.marked {
            let is_marked = |&row: &usize| marked.get(row).copied().unwrap_or(false);
            let has_others = rows.iter().any(|row| !is_marked(row) && self.cells[*row].value.is_some());
            return rows.iter().map(|row| has_others && is_marked(row)).collect();
        }
        let known = || rows.iter().map(|&row| &self.cells[row]).filter(|cell| cell.value.is_some());
        let order =
            |a: &&Cell, b: &&Cell| a.value.unwrap_or_default().total_cmp(&b.value.unwrap_or_default());
        let best = match self.best {
            None => None,
            Some(Best::Least) => known().min_by(order),
            Some(Best::Largest) => known().max_by(order),
        };
        let best = best.filter(|best| known().any(|cell| cell.text != best.text));
        rows.iter().map(|&row| best.is_some_and(|best| self.cells[row].text == best.text)).collect()
    }

    fn order(&self, a: usize, b: usize, descending: bool) -> Ordering {
        let (a, b) = (&self.cells[a], &self.cells[b]);
        let turned = |order: Ordering| if descending { order.reverse() } else { order };
        match (a.value, b.value) {
            (Some(x), Some(y)) => turned(x.total_cmp(&y)),
            // Rows without a number come last.
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => turned(a.text.cmp(&b.text)),
        }
    }
}

/// The most columns that a table shows unless columns are named.
const COLUMNS_MAX: usize = 7;

/// A table. The first column names the rows and is always shown, like other columns that distinguish rows
/// ([`Column::key`]).
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
}

impl Table {
    /// A table of columns with equal numbers of cells.
    pub fn of(columns: Vec<Column>) -> Self {
        debug_assert!(columns.windows(2).all(|two| two[0].cells.len() == two[1].cells.len()));
        Self { columns }
    }

    pub(crate) fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// An empty table with these headings, to be filled row by row. Later columns are left out first. A
    /// column without a heading is for remarks and is left out last.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let column = |(k, &(heading, align)): (usize, &(&str, Align))| {
            let (name, rank) = match heading {
                "" => ("remarks".to_owned(), 1),
                _ => (heading.replace('\n', " "), u8::try_from(k + 1).unwrap_or(u8::MAX)),
            };
            Column::new(name, align, Vec::new()).heading(heading).rank(rank)
        };
        Self { columns: columns.iter().enumerate().map(column).collect() }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<I: IntoIterator<Item = S>, S: Into<String>>(&mut self, cells: I) {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            column.cells.push(Cell::new(cells.next().map(Into::into).unwrap_or_default(), None));
        }
    }

    /// The text; each line ends with a line feed.
    pub fn render(&self, view: &View) -> String {
        self.render_first(view, usize::MAX)
    }

    /// As [`Self::render`], with at most `most` rows, the first ones in the order of the view.
    pub fn render_first(&self, view: &View, most: usize) -> String {
        let mut rows: Vec<usize> = (0..self.columns.first().map_or(0, |first| first.cells.len())).collect();
        if let Some((by, sort)) = view.sort.as_ref().and_then(|sort| Some((self.named(&sort.column)?, sort)))
        {
            rows.sort_by(|&a, &b| by.order(a, b, sort.descending));
        }
        rows.truncate(most);
        let shown = |column| VisibleColumn::new(column, &rows);
        let wanted: Vec<&Column> = view.columns.iter().filter_map(|name| self.named(name)).collect();
        if !wanted.is_empty() {
            let keys = self.columns.iter().enumerate().filter(|(k, column)| *k == 0 || column.is_key);
            let keys = keys.map(|(_, key)| key).filter(|key| !view.columns.contains(&key.name));
            let columns: Vec<VisibleColumn<'_>> = keys.chain(wanted).map(shown).collect();
            return lines(&columns, &rows, view.colour);
        }
        let usual = self.columns.iter().filter(|column| column.rank.is_some());
        let columns: Vec<VisibleColumn<'_>> = usual.map(shown).collect();
        let fits = fitting(&columns, view.width);
        let columns: Vec<VisibleColumn<'_>> =
            columns.into_iter().zip(fits).filter_map(|(column, fits)| fits.then_some(column)).collect();
        lines(&columns, &rows, view.colour)
    }

    fn named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// A visible column.
struct VisibleColumn<'a> {
    column: &'a Column,
    /// The maximum width of its heading and its cells, without marks.
    width: usize,
    /// For each row, whether it has the best value.
    marks: Vec<bool>,
}

impl<'a> VisibleColumn<'a> {
    fn new(column: &'a Column, rows: &[usize]) -> Self {
        Self { column, width: column.width(rows), marks: column.marks(rows) }
    }

    /// Appends a cell to a line in a style. A mark is placed in the gap after the cell.
    fn cell(&self, line: &mut String, text: &str, mark: &str, style: Style) {
        let pad = " ".repeat(self.width.saturating_sub(text.width()));
        let gap = " ".repeat(GAP - mark.len());
        let (before, after) = match self.column.align {
            Align::Left => ("", pad.as_str()),
            Align::Right => (pad.as_str(), ""),
        };
        if text.is_empty() {
            line.extend([before, after, gap.as_str()]);
        } else {
            let cell = format!("{before}{style}{text}{mark}{style:#}{after}{gap}");
            line.push_str(&cell);
        }
    }
}

/// The total width of these columns.
fn width<'a>(columns: impl Iterator<Item = &'a VisibleColumn<'a>>) -> usize {
    let (mut all, mut mark) = (0, false);
    for column in columns {
        all += column.width + if all > 0 { GAP } else { 0 };
        mark = column.marks.contains(&true);
    }
    all + usize::from(mark)
}

/// Whether each column fits. The first column and those of rank 0 always do; then columns are added by rank
/// while there is room.
fn fitting(columns: &[VisibleColumn<'_>], room: usize) -> Vec<bool> {
    let rank = |k: usize| if k == 0 { 0 } else { columns[k].column.rank.unwrap_or(u8::MAX) };
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|&k| rank(k));
    let mut fits = vec![false; columns.len()];
    for k in order {
        fits[k] = true;
        let shown = columns.iter().zip(&fits).filter(|(_, fits)| **fits).map(|(column, _)| column);
        fits[k] = rank(k) == 0 || shown.clone().count() <= COLUMNS_MAX && width(shown) <= room;
    }
    fits
}

/// The headings, a rule, and the rows.
fn lines(columns: &[VisibleColumn<'_>], rows: &[usize], colour: bool) -> String {
    let style = |style: Style| if colour { style } else { Style::new() };
    let bold = style(Style::new().bold());
    let best = style(Style::new().bold().fg_color(Some(AnsiColor::Green.into())));
    let headings: Vec<Vec<&str>> = columns.iter().map(|of| of.column.heading.lines().collect()).collect();
    let height = headings.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    let mut end = |line: &str| out.extend([line.trim_end(), "\n"]);
    for k in 0..height {
        let mut line = String::new();
        for (of, heading) in columns.iter().zip(&headings) {
            // Short headings are aligned at the bottom, above the rule.
            let text = (k + heading.len()).checked_sub(height).map_or("", |k| heading[k]);
            of.cell(&mut line, text, "", bold);
        }
        end(&line);
    }
    end(&"─".repeat(width(columns.iter())));
    for (k, &row) in rows.iter().enumerate() {
        let mut line = String::new();
        for of in columns {
            let (mark, style) = if of.marks[k] { ("*", best) } else { ("", Style::new()) };
            of.cell(&mut line, &of.column.cells[row].text, mark, style);
        }
        end(&line);
    }
    out
}

/// The ANSI codes that tables use.
const STYLES: [&str; 3] = ["\x1b[0m", "\x1b[1m", "\x1b[32m"];

/// Escapes all control characters in a text with tables, except the styles of tables if `colour` is set.
pub fn escaped_but_styles(text: &str, colour: bool) -> String {
    let mut parts = text.split('\x1b');
    let mut out = escaped(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let is_style = |style: &&str| part.starts_with(style.trim_start_matches('\x1b'));
        out.push_str(if colour && STYLES.iter().any(is_style) { "\x1b" } else { "\\u001b" });
        out.push_str(&escaped(part));
    }
    out
}

/// Breaks a text between words into lines of at most `width` columns.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Breaks lines longer than `width` columns between words. Continuation lines are indented further.
pub fn fitted(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in escaped(text).lines() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        for (k, part) in broken(words, width.saturating_sub(indent + 2)).iter().enumerate() {
            let indent = if part.is_empty() { 0 } else { indent + if k > 0 { 2 } else { 0 } };
            out.extend([" ".repeat(indent).as_str(), part, "\n"]);
        }
    }
    out
}

/// Aligned rows of a name and a description, without a header.
pub fn list<N: AsRef<str>, W: AsRef<str>>(entries: &[(N, W)]) -> String {
    let width = entries.iter().map(|(name, _)| name.as_ref().width()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, what) in entries {
        let (name, what) = (name.as_ref(), what.as_ref());
        let pad = " ".repeat(width - name.width());
        out.push_str(format!("  {name}{pad}  {what}").trim_end());
        out.push('\n');
    }
    out
}

/// As [`list`], with descriptions wrapped to `width` columns.
pub fn wrapped<N: AsRef<str>, W: AsRef<str>>(entries: &[(N, W)], width: usize) -> String {
    let names = entries.iter().map(|(name, _)| name.as_ref().width()).max().unwrap_or(0);
    let room = width.saturating_sub(names + 4).max(20);
    let mut lines: Vec<(&str, String)> = Vec::new();
    for (name, what) in entries {
        let names = std::iter::once(name.as_ref()).chain(std::iter::repeat(""));
        lines.extend(names.zip(broken(what.as_ref(), room)));
    }
    list(&lines)
}
