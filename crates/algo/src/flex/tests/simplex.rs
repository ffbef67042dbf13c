//! A tiny dense simplex for oracles: two phases, Bland's rule, variables at least 0.

/// How a row compares with its right-hand side.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Is {
    AtMost,
    Equal,
}

const ZERO: f64 = 1e-9;

/// min c·x subject to the rows and x ≥ 0; `None` if infeasible. The problem must be bounded.
pub(super) fn minimise(cost: &[f64], rows: &[(Vec<f64>, Is, f64)]) -> Option<f64> {
    let (n, m) = (cost.len(), rows.len());
    // Columns: variables, one slack per row, one artificial per row, the right-hand side.
    let width = n + 2 * m + 1;
    let mut table = vec![vec![0.0; width]; m];
    let mut basis = vec![0; m];
    for (i, (row, is, rhs)) in rows.iter().enumerate() {
        table[i][..n].copy_from_slice(row);
        if *is == Is::AtMost {
            table[i][n + i] = 1.0;
        }
        table[i][width - 1] = *rhs;
        if *rhs < 0.0 {
            table[i].iter_mut().for_each(|v| *v = -*v);
        }
        table[i][n + m + i] = 1.0;
        basis[i] = n + m + i;
    }
    let mut first = vec![0.0; width - 1];
    first[n + m..].fill(1.0);
    if solve(&mut table, &mut basis, &first, width - 1) > 1e-7 {
        return None;
    }
    let mut second = vec![0.0; width - 1];
    second[..n].copy_from_slice(cost);
    // Artificial columns may not come back; one left in the basis at 0 leaves, or its row says nothing.
    for i in 0..m {
        if basis[i] >= n + m
            && let Some(enter) = (0..n + m).find(|&j| table[i][j].abs() > ZERO)
        {
            pivot(&mut table, &mut basis, (i, enter));
        }
    }
    Some(solve(&mut table, &mut basis, &second, n + m))
}

fn solve(table: &mut [Vec<f64>], basis: &mut [usize], cost: &[f64], columns: usize) -> f64 {
    let last = table[0].len() - 1;
    loop {
        let reduced = |j: usize, table: &[Vec<f64>], basis: &[usize]| {
            cost[j] - table.iter().zip(basis).map(|(row, &b)| cost[b] * row[j]).sum::<f64>()
        };
        let Some(enter) = (0..columns).find(|&j| reduced(j, table, basis) < -ZERO) else {
            return table.iter().zip(basis.iter()).map(|(row, &b)| cost[b] * row[last]).sum();
        };
        let leave = (0..table.len())
            .filter(|&i| table[i][enter] > ZERO)
            .min_by(|&a, &b| {
                let ratio = |i: usize| table[i][last] / table[i][enter];
                ratio(a).total_cmp(&ratio(b)).then(basis[a].cmp(&basis[b]))
            })
            .expect("bounded");
        pivot(table, basis, (leave, enter));
    }
}

fn pivot(table: &mut [Vec<f64>], basis: &mut [usize], (leave, enter): (usize, usize)) {
    let pivot = table[leave][enter];
    table[leave].iter_mut().for_each(|v| *v /= pivot);
    let row = table[leave].clone();
    for (i, other) in table.iter_mut().enumerate() {
        let factor = other[enter];
        if i != leave && factor != 0.0 {
            other.iter_mut().zip(&row).for_each(|(v, p)| *v -= factor * p);
        }
    }
    basis[leave] = enter;
}

#[test]
fn solves_a_textbook_problem() {
    // min −3x − 5y with x ≤ 4, 2y ≤ 12, 3x + 2y ≤ 18: −36 at (2, 6).
    let rows = [
        (vec![1.0, 0.0], Is::AtMost, 4.0),
        (vec![0.0, 2.0], Is::AtMost, 12.0),
        (vec![3.0, 2.0], Is::AtMost, 18.0),
    ];
    assert!((minimise(&[-3.0, -5.0], &rows).unwrap() + 36.0).abs() < 1e-9);
    assert_eq!(minimise(&[1.0], &[(vec![1.0], Is::Equal, 1.0), (vec![1.0], Is::AtMost, 0.5)]), None);
}
