//! Compares policies on clusters of several sizes: one row per size and policy.

use super::records::{best, records};
use super::{Row, crowding, metric_columns, notes};
use crate::report::number::{Unit, counted};
use crate::report::significance::Sampling;
use crate::report::spread::{self, Runs};
use crate::report::table::{Column, Table, View};

/// The results of the policies on a cluster of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct OnSize<T> {
    /// The number of machines.
    pub machines: u32,
    /// For each policy: a row, or the figures of several seeds.
    pub policies: Vec<T>,
}

/// The column with the sizes.
pub const MACHINES: &str = "machines";

/// One row per size and policy. No value is marked, because the best ones are nearly always on the largest
/// cluster.
pub fn table_of_sizes(sizes: &[OnSize<Row>], view: &View) -> String {
    let rows: Vec<Row> = sizes.iter().flat_map(|size| size.policies.clone()).collect();
    let machines: Vec<Option<f64>> = of_each(sizes).map(|machines| Some(machines.into())).collect();
    let mut columns = metric_columns(&rows, |_| Vec::new());
    columns.insert(0, Column::numbers(MACHINES, &machines, Unit::Count).key());
    let named = sizes.iter().flat_map(|size| {
        let name =
            move |row: &Row| Row { policy: format!("{} on {}", row.policy, size.machines), ..row.clone() };
        size.policies.iter().map(name)
    });
    let named: Vec<Row> = named.collect();
    Table::of(columns).render(view) + &notes(&named) + &crowding(&named)
}

/// Two tables for each size: means, and paired differences to the first policy.
pub fn spreads_of_sizes(sizes: &[OnSize<Runs>], sampling: Sampling, view: &View) -> String {
    let one = |size: &OnSize<Runs>| {
        let table = spread::table(&size.policies, sampling, view);
        format!("{}\n{table}", counted(size.machines.into(), "machine"))
    };
    sizes.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// One row per size and policy, with all metrics and all digits.
pub fn csv_of_sizes(sizes: &[OnSize<Row>], sampling: Sampling) -> String {
    let rows: Vec<Row> = sizes.iter().flat_map(|size| size.policies.clone()).collect();
    let best: Vec<String> = sizes.iter().flat_map(|size| best(&size.policies, sampling)).collect();
    let (header, records) = records(&rows, &best);
    with_machines(&header, of_each(sizes).zip(records))
}

/// One row per size, policy and metric, as [`spread::csv`].
pub fn csv_of_spreads(sizes: &[OnSize<Runs>], sample: &str) -> String {
    let rows = sizes.iter().flat_map(|size| {
        spread::records(&size.policies).into_iter().map(move |record| (size.machines, record))
    });
    with_machines(&spread::header(sample).each_ref().map(String::as_str), rows)
}

/// The size of each row.
fn of_each<T>(sizes: &[OnSize<T>]) -> impl Iterator<Item = u32> + '_ {
    sizes.iter().flat_map(|size| size.policies.iter().map(|_| size.machines))
}

fn with_machines(header: &[&str], rows: impl Iterator<Item = (u32, Vec<String>)>) -> String {
    let header: Vec<&str> = std::iter::once(MACHINES).chain(header.iter().copied()).collect();
    crate::report::csv(&header, rows.map(|(machines, row)| std::iter::once(machines.to_string()).chain(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::comparison::Figures;

    fn row(policy: &str, cost: f64) -> Row {
        let figures = Figures { cost: Some(cost), metrics: vec![("tasks", Some(1.0))], ..Figures::default() };
        Row { policy: policy.into(), result: Ok(figures) }
    }

    #[test]
    fn each_size_has_a_row_for_each_policy() {
        let of = |machines, costs: [f64; 2]| OnSize {
            machines,
            policies: vec![row("fifo", costs[0]), row("edf", costs[1])],
        };
        let mut sizes = [of(20, [9.0, 8.0]), of(300, [4.0, 3.0])];
        let csv = csv_of_sizes(&sizes, Sampling::EXACT);
        let starts: Vec<&str> =
            csv.lines().map(|line| line.split_once(",,").map_or(line, |(start, _)| start)).collect();
        assert_eq!(starts[0], "machines,policy,cost,lower_bound,gap,tasks,failed,best,refused");
        assert_eq!(starts[1..], ["20,fifo,9", "20,edf,8", "300,fifo,4", "300,edf,3"]);
        sizes[0].policies[1].result = Err("no slots".into());
        let table = table_of_sizes(&sizes, &View::default());
        assert!(
            table.contains("edf on 20: no slots") && table.lines().any(|line| line.contains("300  edf")),
            "{table}"
        );
    }
}
