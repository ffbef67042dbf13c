//! Tests of widths, marks, sort order and colours.

use super::*;

/// Two policies and their results.
fn table() -> Table {
    let column = |name: &str, values: [f64; 2]| Column::numbers(name, &values.map(Some), Unit::Measure);
    Table::of(vec![
        Column::words("policy", ["fifo", "fair:by=flow"]),
        column("cost", [3_000.0, 1_234.0]).rank(1).best(Some(Best::Least)),
        column("mean_wait", [1.5, 12.5]).heading("mean\nwait").rank(3).best(Some(Best::Least)),
        column("makespan", [9.0, 9.0]).rank(2).best(Some(Best::Least)),
        column("tasks", [7.0, 8.0]).if_asked(),
    ])
}

fn at(width: usize) -> View {
    View { width, ..View::default() }
}

#[test]
fn columns_line_up_and_the_best_is_marked() {
    let expected = [
        "                     mean",
        "policy         cost  wait  makespan",
        "───────────────────────────────────",
        "fifo          3,000   1.5*     9.00",
        "fair:by=flow  1,234* 12.5      9.00\n",
    ];
    assert_eq!(table().render(&at(80)), expected.join("\n"));
}

#[test]
fn the_least_important_columns_are_left_out() {
    let expected = "\
policy         cost  makespan
─────────────────────────────
fifo          3,000      9.00
fair:by=flow  1,234*     9.00
";
    assert_eq!(table().render(&at(34)), expected);
    assert!(table().render(&at(1)).contains("fair:by=flow"), "the names of the rows stay");
}

#[test]
fn columns_and_order_are_those_that_are_asked_for() {
    let sort = |column: &str, descending| Some(Sort { column: column.into(), descending });
    let columns = vec!["tasks".to_owned(), "cost".to_owned()];
    let view = View { columns, sort: sort("cost", false), ..at(5) };
    let expected = "\
policy        tasks   cost
───────────────────────────
fair:by=flow   8.00  1,234*
fifo           7.00  3,000
";
    assert_eq!(table().render(&view), expected);
    let view = View { sort: sort("policy", true), ..at(80) };
    assert!(
        table().render_first(&view, 1).contains("fifo") && !table().render_first(&view, 1).contains("fair")
    );
    let unknown = View { sort: sort("csot", true), ..at(80) }.check(&["policy", "cost"]).unwrap_err();
    let expected = r#"found column "csot", expected one of policy, cost; did you mean "cost"?"#;
    assert_eq!(unknown.to_string(), expected);
}

#[test]
fn colours_are_escape_codes_and_nothing_else_differs() {
    let coloured = table().render(&View { colour: true, ..at(80) });
    assert!(coloured.contains("\u{1b}[1m\u{1b}[32m1,234*\u{1b}[0m"), "{coloured:?}");
    let mut plain = coloured.clone();
    for code in ["\u{1b}[1m", "\u{1b}[32m", "\u{1b}[0m"] {
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, table().render(&at(80)));
}

#[test]
fn remarks_stay_longer_than_numbers() {
    let mut table = Table::new(&[("a", Align::Left), ("b", Align::Right), ("", Align::Left)]);
    table.row(["x", "12", "late"]);
    assert_eq!(table.render(&at(7)), "a\n───────\nx  late\n");
}

#[test]
fn rows_have_a_cell_a_column_and_a_line() {
    let mut table = Table::new(&[("a", Align::Left), ("b", Align::Right)]);
    table.row(["x\ny", "12"]);
    table.row(["表"]);
    assert_eq!(table.render(&at(80)), "a      b\n────────\nx\\ny  12\n表\n");
}

#[test]
fn a_list_lines_up() {
    assert_eq!(list(&[("a", "x"), ("long", "")]), "  a     x\n  long\n");
}

#[test]
fn long_lines_are_broken_between_words() {
    assert_eq!(fitted("one two three\n\n  four five", 9), "one two\n  three\n\n  four\n    five\n");
    let found = wrapped(&[("a", "one two three four five six"), ("bb", "x")], 24);
    assert_eq!(found, "  a   one two three four\n      five six\n  bb  x\n");
}
