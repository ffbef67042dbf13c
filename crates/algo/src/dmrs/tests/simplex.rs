//! min c·z with Σ_{k ∈ S} z_k ≥ b_S for every non-empty set S and z ≥ 0, by its dual.

const ZERO: f64 = 1e-11;

/// The optimum; `needed[S − 1]` is b_S, S as a bit set. Costs are at least 0, so the dual (max b·y with
/// Σ_{S ∋ k} y_S ≤ c_k) begins feasible with y = 0. Bland's rule, so that ties cannot make it cycle.
pub(super) fn cover(cost: &[f64], needed: &[f64]) -> f64 {
    let (m, n) = (cost.len(), needed.len());
    // Columns: one per set, one slack per row, the right-hand side; the last row is the objective.
    let mut table = vec![vec![0.0; n + m + 1]; m + 1];
    for (k, &cost) in cost.iter().enumerate() {
        for (set, entry) in table[k].iter_mut().enumerate().take(n) {
            *entry = f64::from(u8::from((set + 1) >> k & 1 == 1));
        }
        table[k][n + k] = 1.0;
        table[k][n + m] = cost;
    }
    table[m][..n].copy_from_slice(needed);
    let mut basis: Vec<usize> = (n..n + m).collect();
    while let Some(enter) = (0..n + m).find(|&j| table[m][j] > ZERO) {
        let ratio = |i: usize| table[i][n + m] / table[i][enter];
        let leave = (0..m)
            .filter(|&i| table[i][enter] > ZERO)
            .min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(basis[a].cmp(&basis[b])))
            .expect("sums of non-negative numbers are bounded by the costs");
        pivot(&mut table, leave, enter);
        basis[leave] = enter;
    }
    -table[m][n + m]
}

fn pivot(table: &mut [Vec<f64>], leave: usize, enter: usize) {
    let by = table[leave][enter];
    table[leave].iter_mut().for_each(|value| *value /= by);
    let row = table[leave].clone();
    for (i, other) in table.iter_mut().enumerate() {
        let factor = other[enter];
        if i != leave && factor != 0.0 {
            other.iter_mut().zip(&row).for_each(|(value, by)| *value -= factor * by);
        }
    }
}

#[test]
fn solves_by_hand() {
    // z_1 ≥ 2, z_2 ≥ 1, z_1 + z_2 ≥ 5: the cheaper one makes up the rest.
    assert!((cover(&[1.0, 3.0], &[2.0, 1.0, 5.0]) - 7.0).abs() < 1e-12);
    assert_eq!(cover(&[1.0], &[-4.0]), 0.0);
}
