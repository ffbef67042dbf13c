"""FlowFlex's minimum-cost flow by OR-tools, for comparison with `cargo bench -p slackline-lab -- flowflex`.

    slackline generate flowflex-5.1 --set flows=100 --set jobs=20 --seed 1 --format json |
        python3 crates/lab/reference/ortools_flow.py

Builds the transportation problem of the weighted completion time with the cuts of crates/relax/src/flow.rs (from
the smallest Q on, 1 % apart, at most 2000 slots), solves it with SimpleMinCostFlow, and prints the value and the
seconds that the solver took. Works and costs are rounded to whole numbers, as the solver wants them.
"""

import json
import sys
import time

import numpy as np
from ortools.graph.python import min_cost_flow

RATIO, SLOTS_MAX, COST_SCALE, WORK_SCALE = 0.01, 2000, 1_000_000, 1000


def flows_of(workload):
    machines = workload["cluster"]["machines"]
    capacity = sum(m.get("count", 1) * m["slots"] for m in machines)
    flows = []
    for flow in workload["flows"]:
        end, work = {}, 0.0
        for job in flow["jobs"]:
            phase = job["map"]
            start = max((end[a] for a in job.get("after", [])), default=0.0)
            end[job["id"]] = start + phase["work"] / min(job["max_slots"]["map"], capacity)
            work += phase["work"]
        flows.append((work, max(max(end.values()), work / capacity), flow.get("weight", 1.0)))
    return flows, capacity


def main():
    flows, capacity = flows_of(json.load(sys.stdin))
    end = sum(f[0] for f in flows) / capacity * (1 + 1e-9)
    cuts, at = [], max(min(f[1] for f in flows), end * 1e-6)
    while at < end:
        cuts.append(at)
        at *= 1 + RATIO
    if len(cuts) >= SLOTS_MAX:
        cuts = [cuts[k * len(cuts) // (SLOTS_MAX - 1)] for k in range(SLOTS_MAX - 1)]
    cuts = np.array([0.0, *cuts, end])
    n, slots = len(flows), len(cuts) - 1
    work, earliest, weight = (np.array(column) for column in zip(*flows))
    price = weight[:, None] * np.maximum(cuts[:-1][None, :], earliest[:, None]) / work[:, None]
    scale = COST_SCALE / price.max()
    supply = np.rint(work * WORK_SCALE).astype(np.int64)
    room = np.ceil(np.diff(cuts) * capacity * WORK_SCALE).astype(np.int64)
    sink = n + slots
    tails = np.concatenate([np.repeat(np.arange(n), slots), n + np.arange(slots)])
    heads = np.concatenate([np.tile(n + np.arange(slots), n), np.full(slots, sink)])
    caps = np.concatenate([np.minimum(np.repeat(supply, slots), np.tile(room, n)), room])
    costs = np.concatenate([np.rint(price.ravel() * scale), np.zeros(slots)]).astype(np.int64)
    begun = time.perf_counter()
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(tails, heads, caps, costs)
    solver.set_nodes_supplies(np.arange(n), supply)
    solver.set_node_supply(sink, -int(supply.sum()))
    built = time.perf_counter()
    status = solver.solve()
    done = time.perf_counter()
    value = solver.optimal_cost() / scale / WORK_SCALE
    print(f"{n} flows, {slots} slots, {len(tails)} arcs, status {status}, value {value:.3f}")
    print(f"arcs {1e3 * (built - begun):.1f} ms, solve {1e3 * (done - built):.1f} ms")


main()
