//! Columns that line up: a header, a rule, rows. The width follows from the content alone, so that the
//! same results are the same bytes on every terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

/// On which side a column is flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names and words.
    Left,
    /// Numbers.
    Right,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    align: Vec<Align>,
    inner: comfy_table::Table,
}

impl Table {
    /// A table with these headings; a heading may have several lines.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
        inner.set_content_arrangement(ContentArrangement::Disabled);
        inner.set_header(columns.iter().map(|(name, _)| *name));
        let align: Vec<Align> = columns.iter().map(|&(_, align)| align).collect();
        let last = align.len();
        for (k, (column, align)) in inner.column_iter_mut().zip(&align).enumerate() {
            column.set_padding((0, if k + 1 < last { 2 } else { 0 }));
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        Self { align, inner }
    }

    /// Adds a row; missing cells are empty, and characters that would break the line are replaced.
    pub fn row<I: IntoIterator<Item = S>, S: Into<String>>(&mut self, cells: I) {
        let clean = |cell: S| cell.into().replace(|c: char| c.is_control(), "�");
        self.inner.add_row(cells.into_iter().map(clean).take(self.align.len()));
    }

    /// The text, each line ended.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for line in self.inner.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// Rows of a name and what it is, lined up, without a header.
pub fn list<N: AsRef<str>, W: AsRef<str>>(entries: &[(N, W)]) -> String {
    let width = entries.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, what) in entries {
        let (name, what) = (name.as_ref(), what.as_ref());
        out.push_str(format!("  {name:width$}  {what}").trim_end());
        out.push('\n');
    }
    out
}

/// The same, with what does not fit into `width` columns on lines of its own below.
pub fn wrapped<N: AsRef<str>, W: AsRef<str>>(entries: &[(N, W)], width: usize) -> String {
    let names = entries.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(names + 4).max(20);
    let mut lines: Vec<(&str, String)> = Vec::new();
    for (name, what) in entries {
        lines.push((name.as_ref(), String::new()));
        for word in what.as_ref().split(' ') {
            let line = &lines[lines.len() - 1].1;
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(("", String::new()));
            }
            let at = lines.len() - 1;
            let line = &mut lines[at].1;
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    list(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("policy", Align::Left), ("mean\nresponse", Align::Right)]);
        table.row(["fifo", "12.5"]);
        table.row(["fair:by=flow", "9,112.5"]);
        table.row(["a\nb"]);
        let expected = "\
policy            mean
              response
──────────────────────
fifo              12.5
fair:by=flow   9,112.5
a�b
";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn a_list_lines_up() {
        assert_eq!(list(&[("a", "x"), ("long", "")]), "  a     x\n  long\n");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let found = wrapped(&[("a", "one two three four five six"), ("bb", "x")], 24);
        assert_eq!(found, "  a   one two three four\n      five six\n  bb  x\n");
    }
}
