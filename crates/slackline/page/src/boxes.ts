// What the rows of a timeline hold: boxes over time, of every task, flow or phase.
import type { Model, Ran } from "./data";

/** Rectangles to be drawn, as columns: times, rows, flow, and kind. */
export interface Boxes {
  start: Float64Array; end: Float64Array; row: Int32Array; rows: Int32Array;
  flow: Int32Array; phase: Int32Array;
  /** Drawn lower than its row: what waits, or is an ApplicationMaster. */
  thin: Uint8Array;
}

/** Rows of flows and of jobs, by release, ties in the order of the document; and what is in each row. */
export interface Order { rowOfFlow: Int32Array; rowOfJob: Int32Array; flows: Int32Array; jobs: Int32Array }

/** No phase and no ApplicationMaster. */
export const NO_PHASE = -0x7fffffff;

export function orderOf(model: Model): Order {
  const flows = Int32Array.from({ length: model.nFlows }, (_, k) => k)
    .sort((a, b) => model.release(a) - model.release(b) || a - b);
  const rowOfFlow = new Int32Array(model.nFlows), rowOfJob = new Int32Array(model.nJobs), jobs = new Int32Array(model.nJobs);
  let row = 0;
  flows.forEach((flow, k) => {
    rowOfFlow[flow] = k;
    for (let job = model.firstJob[flow]; job < model.firstJob[flow + 1]; job++) {
      jobs[row] = job;
      rowOfJob[job] = row++;
    }
  });
  return { rowOfFlow, rowOfJob, flows, jobs };
}

/** A box for each attempt, on its slots, and thin ones for ams. */
export function slotBoxes(model: Model, ran: Ran): Boxes {
  const bars = ran.bars!, ams = ran.ams.filter((am) => am.slot !== null);
  const n = bars.start.length, boxes = empty(n + ams.length);
  for (let k = 0; k < n; k++) {
    const phase = bars.phase[k];
    boxes.start[k] = bars.start[k];
    boxes.end[k] = bars.start[k] + bars.length[k];
    boxes.row[k] = model.firstSlot[model.slotKindOf(phase)] + bars.slot[k];
    boxes.rows[k] = bars.slots[k];
    boxes.flow[k] = model.flowOfPhase(phase);
    boxes.phase[k] = phase;
  }
  ams.forEach((am, at) => {
    const k = n + at;
    boxes.start[k] = am.start;
    boxes.end[k] = am.end;
    boxes.row[k] = am.slot!;
    boxes.flow[k] = model.flowOfJob[am.job];
    boxes.phase[k] = -1 - am.job;
    boxes.thin[k] = 1;
  });
  return boxes;
}

/** A thin box from release to first start, a full one from there to completion. */
export function flowBoxes(model: Model, ran: Ran, { rowOfFlow }: Order): Boxes {
  const n = model.nFlows, boxes = empty(2 * n);
  for (let flow = 0; flow < n; flow++) {
    const release = model.release(flow), started = model.started(ran, flow);
    const done = model.completed(ran, flow) ?? lastEnd(model, ran, flow);
    for (const [k, start, end, thin] of [[2 * flow, release, started ?? done, 1], [2 * flow + 1, started ?? done, done, 0]]) {
      boxes.start[k] = start;
      boxes.end[k] = end;
      boxes.row[k] = rowOfFlow[flow];
      boxes.flow[k] = flow;
      boxes.thin[k] = thin;
    }
  }
  return boxes;
}

function lastEnd(model: Model, ran: Ran, flow: number): number {
  let last = model.release(flow);
  for (let phase = model.firstPhase[model.firstJob[flow]]; phase < model.firstPhase[model.firstJob[flow + 1]]; phase++) {
    const start = model.phaseStart(ran, phase);
    if (start !== null) last = Math.max(last, start + ran.held[phase]);
  }
  return last;
}

/** A box for each phase, and thin ones before each flow's first, while it waited. */
export function jobBoxes(model: Model, ran: Ran, { rowOfJob }: Order): Boxes {
  const n = model.jobOfPhase.length, boxes = empty(n + model.nFlows);
  for (let flow = 0; flow < model.nFlows; flow++) {
    const k = n + flow, started = model.started(ran, flow);
    boxes.start[k] = model.release(flow);
    boxes.end[k] = started ?? -1;
    boxes.row[k] = rowOfJob[model.firstJob[flow]];
    boxes.flow[k] = flow;
    boxes.thin[k] = 1;
  }
  for (let phase = 0; phase < n; phase++) {
    const start = model.phaseStart(ran, phase), job = model.jobOfPhase[phase];
    boxes.start[phase] = start ?? 0;
    boxes.end[phase] = start === null ? -1 : start + ran.held[phase];
    boxes.row[phase] = rowOfJob[job];
    boxes.flow[phase] = model.flowOfJob[job];
    boxes.phase[phase] = phase;
  }
  return boxes;
}

/** From when to when each row holds something; what holds nothing ends before it starts. */
export function spans(boxes: Boxes, n: number): { from: Float64Array; to: Float64Array } {
  const from = new Float64Array(n).fill(Infinity), to = new Float64Array(n).fill(-Infinity);
  for (let k = 0; k < boxes.start.length; k++) {
    if (boxes.end[k] < boxes.start[k]) continue;
    const row = boxes.row[k];
    from[row] = Math.min(from[row], boxes.start[k]);
    to[row] = Math.max(to[row], boxes.end[k]);
  }
  return { from, to };
}

function empty(n: number): Boxes {
  return {
    start: new Float64Array(n), end: new Float64Array(n), row: new Int32Array(n), rows: new Int32Array(n).fill(1),
    flow: new Int32Array(n), phase: new Int32Array(n).fill(NO_PHASE), thin: new Uint8Array(n),
  };
}
