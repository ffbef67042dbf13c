"""LP-MapReduce by HiGHS with cutting planes, for comparison with `cargo bench -p slackline-lab -- dmrs`.

    python3 crates/lab/reference/highs_lp.py 200 500 1000

Draws the jobs of crates/lab/benches/suites/dmrs.rs, starts from the floors of Eq. (7), and adds the rows of Eq. (2) that
the separation oracle of the text finds (prefixes by C_j - p_j/(2 mu_j)): in each round the most violated prefix
and up to 30 others spread over the violated ones. Prints the value, the rounds, the rows and the seconds, those
inside HiGHS apart.
"""

import sys
import time

import highspy
import numpy as np

MASK, TOLERANCE, MORE = (1 << 64) - 1, 1e-9, 30
SPEEDS = np.repeat(np.arange(10.0, 0.0, -1.0), 100)


class Draw:
    def __init__(self, state):
        self.state = state

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % n

    def side(self):
        tasks = 1 + self.below(60)
        longest = 1.0 + self.below(1_000_000) / 1e4
        return longest * tasks * 0.8, longest, tasks


def jobs(n):
    draw, rows = Draw(1), []
    fastest = np.concatenate([[0.0], np.cumsum(SPEEDS)])
    for _ in range(n):
        weight = 1.0 + draw.below(400) / 100.0
        release = draw.below(n * 400_000) / 1e6
        (wm, lm, tm), (wr, lr, tr) = draw.side(), draw.side()
        rate = fastest[min(tm + tr, len(SPEEDS))]
        floor = release + max(wm / rate, lm / SPEEDS[0]) + max(wr / rate, lr / SPEEDS[0])
        rows.append((weight, wm + wr, rate, floor))
    return (np.array(column) for column in zip(*rows))


def cuts(completion, work, rate, capacity):
    """Sizes of violated prefixes and the order they are prefixes of."""
    order = np.argsort(completion - work / (2 * rate), kind="stable")
    p = work[order]
    need = np.cumsum(p) ** 2 / (2 * capacity) + np.cumsum(p**2 / (2 * rate[order]))
    violation = need - np.cumsum(p * completion[order])
    bad = np.flatnonzero(violation > TOLERANCE * need)
    if len(bad) == 0:
        return order, need, []
    spread = bad[np.linspace(0, len(bad) - 1, min(MORE, len(bad))).astype(int)]
    return order, need, sorted({int(violation.argmax()), *map(int, spread)})


def solve(n):
    weight, work, rate, floor = jobs(n)
    capacity = SPEEDS.sum()
    begun, inside = time.perf_counter(), 0.0
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    for j in range(n):
        highs.addVar(floor[j], highspy.kHighsInf)
        highs.changeColCost(j, weight[j])
    rounds = 0
    while True:
        before = time.perf_counter()
        highs.run()
        inside += time.perf_counter() - before
        completion = np.array(highs.getSolution().col_value)
        order, need, found = cuts(completion, work, rate, capacity)
        rounds += 1
        if not found:
            break
        for k in found:
            columns = np.sort(order[: k + 1]).astype(np.int32)
            highs.addRow(need[k], highspy.kHighsInf, len(columns), columns, work[columns])
    total = time.perf_counter() - begun
    value = float(weight @ completion)
    print(f"{n:>6} {value:>20.6f} {rounds:>7} {highs.getNumRow():>6} {total:>9.3f} {inside:>9.3f}", flush=True)


print(f"{'jobs':>6} {'value':>20} {'rounds':>7} {'rows':>6} {'seconds':>9} {'in HiGHS':>9}")
for size in sys.argv[1:]:
    solve(int(size))
