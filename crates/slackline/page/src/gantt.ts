// The timeline of one policy, on a canvas: slots, flows or jobs as rows, or slots per flow as areas.
import { named } from "./canvas";
import { FATES, KINDS, shareColour, styled } from "./colour";
import type { Model, Ran } from "./data";
import { h } from "./dom";
import { timeMarks } from "./format";
import type { State } from "./state";

/** The place left of the charts of time, and above the rows; the same everywhere, so that times line up. */
export const GUTTER = 116, RIGHT = 12;
const TOP = 24;
const FATE_ORDER = ["met", "late", "free", "failed"] as const;

/** What lies under the pointer. */
export interface Hit { flow: number; job: number | null; phase: number | null; bar: number | null }

/** Rectangles to be drawn, as columns: when, which rows, of which flow, and of what. */
interface Boxes {
  start: Float64Array; end: Float64Array; row: Int32Array; rows: Int32Array;
  flow: Int32Array; phase: Int32Array;
  /** Drawn lower than its row: what waits, or is a master. */
  thin: Uint8Array;
}

export class Gantt {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly scroll: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly cache = new Map<string, Boxes>();
  private orders: { flows: Int32Array; jobs: Int32Array } | null = null;

  constructor(
    private readonly model: Model, private readonly state: State,
    private readonly policy: () => number, private readonly height: number,
  ) {
    this.canvas = h("canvas", {});
    this.spacer = h("div", { class: "spacer" }, this.canvas);
    this.scroll = h("div", { class: "gantt", tabindex: 0, role: "application", "aria-roledescription": "timeline" }, this.spacer);
    this.scroll.style.height = `${height}px`;
    this.element = this.scroll;
    this.scroll.addEventListener("scroll", () => this.state.changed("view"));
  }

  private get ran(): Ran | null { return this.model.doc.policies[this.policy()].ran; }
  private get width(): number { return Math.max(200, this.scroll.clientWidth); }
  private get body(): number { return this.height - TOP - 4; }

  private get nRows(): number {
    const { rows } = this.state;
    if (rows === "slots") return this.model.nSlots;
    return rows === "flows" ? this.model.nFlows : rows === "jobs" ? this.model.nJobs : 1;
  }

  /** Pixels a row: as many as fit if that can be read, or as asked for. */
  private get rowHeight(): number {
    const fit = this.body / Math.max(1, this.nRows);
    if (this.state.rows === "shares") return this.body;
    return Math.min(28, fit * this.state.tall);
  }

  /** Makes the flow's rows visible. */
  reveal(flow: number): void {
    if (this.state.rows !== "flows" && this.state.rows !== "jobs") return;
    const row = this.state.rows === "flows" ? this.order().flows[flow] : this.order().jobs[this.model.firstJob[flow]];
    const y = row * this.rowHeight, view = this.body;
    if (y < this.scroll.scrollTop || y > this.scroll.scrollTop + view - 20) this.scroll.scrollTop = y - view / 2;
  }

  x(ticks: number): number {
    const { from, to } = this.state;
    return GUTTER + (ticks - from) / (to - from) * (this.width - GUTTER - RIGHT);
  }

  ticks(x: number): number {
    const { from, to } = this.state;
    return from + (x - GUTTER) / (this.width - GUTTER - RIGHT) * (to - from);
  }

  draw(): void {
    const ratio = window.devicePixelRatio || 1, { width, height } = this;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const all = this.nRows * this.rowHeight;
    this.spacer.style.height = `${Math.max(height, all + TOP + 4)}px`;
    const c = this.canvas.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = styled("--surface");
    c.fillRect(0, 0, width, height);
    c.font = "11px system-ui, sans-serif";
    this.grid(c);
    const ran = this.ran;
    if (!ran) return this.say(c, "This policy has no schedule.");
    c.save();
    c.beginPath();
    c.rect(GUTTER, TOP, width - GUTTER - RIGHT, height - TOP);
    c.clip();
    if (this.state.rows === "shares") this.areas(c, ran);
    else this.boxes(c, ran);
    c.restore();
    this.labels(c);
  }

  private say(c: CanvasRenderingContext2D, text: string): void {
    c.fillStyle = styled("--text");
    c.fillText(text, GUTTER + 20, TOP + 30);
  }

  private grid(c: CanvasRenderingContext2D): void {
    const { from, to } = this.state;
    c.strokeStyle = styled("--grid");
    c.fillStyle = styled("--muted");
    c.textAlign = "center";
    c.beginPath();
    for (const mark of timeMarks(this.model.doc, from, to, (this.width - GUTTER) / 90)) {
      const x = Math.round(this.x(mark.at)) + 0.5;
      c.moveTo(x, TOP - 4);
      c.lineTo(x, this.height);
      if (x > GUTTER + 8 && x < this.width - 24) c.fillText(mark.label, x, 13);
    }
    c.stroke();
    c.textAlign = "left";
  }

  /** Rows of flows and of jobs: by release, ties in the order of the document. */
  private order(): { flows: Int32Array; jobs: Int32Array } {
    if (this.orders) return this.orders;
    const { model } = this;
    const byRelease = Array.from({ length: model.nFlows }, (_, k) => k)
      .sort((a, b) => model.release(a) - model.release(b) || a - b);
    const flows = new Int32Array(model.nFlows), jobs = new Int32Array(model.nJobs);
    let job = 0;
    byRelease.forEach((flow, row) => {
      flows[flow] = row;
      for (let k = model.firstJob[flow]; k < model.firstJob[flow + 1]; k++) jobs[k] = job++;
    });
    return this.orders = { flows, jobs };
  }

  private made(): Boxes | null {
    const ran = this.ran, { rows } = this.state;
    if (!ran || rows === "shares") return null;
    const key = `${rows} ${this.policy()}`;
    const known = this.cache.get(key);
    if (known) return known;
    const made = rows === "slots" ? this.slotBoxes(ran) : rows === "flows" ? this.flowBoxes(ran) : this.jobBoxes(ran);
    this.cache.set(key, made);
    return made;
  }

  private slotBoxes(ran: Ran): Boxes {
    const { model } = this, bars = ran.bars!;
    const masters = ran.masters.filter((master) => master.slot !== null);
    const n = bars.start.length, boxes = empty(n + masters.length);
    for (let k = 0; k < n; k++) {
      const phase = bars.phase[k];
      boxes.start[k] = bars.start[k];
      boxes.end[k] = bars.start[k] + bars.length[k];
      boxes.row[k] = model.firstSlot[model.slotKindOf(phase)] + bars.slot[k];
      boxes.rows[k] = bars.slots[k];
      boxes.flow[k] = model.flowOfPhase(phase);
      boxes.phase[k] = phase;
    }
    masters.forEach((master, at) => {
      const k = n + at;
      boxes.start[k] = master.start;
      boxes.end[k] = master.end;
      boxes.row[k] = master.slot!;
      boxes.rows[k] = 1;
      boxes.flow[k] = model.flowOfJob[master.job];
      boxes.phase[k] = -1 - master.job;
      boxes.thin[k] = 1;
    });
    return boxes;
  }

  /** A thin box from release to first start, a full one from there to completion. */
  private flowBoxes(ran: Ran): Boxes {
    const { model } = this, n = model.nFlows, boxes = empty(2 * n), rows = this.order().flows;
    for (let flow = 0; flow < n; flow++) {
      const release = model.release(flow), started = model.started(ran, flow);
      const done = model.completed(ran, flow) ?? this.lastEnd(ran, flow);
      for (const [k, start, end, thin] of [[2 * flow, release, started ?? done, 1], [2 * flow + 1, started ?? done, done, 0]]) {
        boxes.start[k] = start;
        boxes.end[k] = end;
        boxes.row[k] = rows[flow];
        boxes.rows[k] = 1;
        boxes.flow[k] = flow;
        boxes.phase[k] = NO_PHASE;
        boxes.thin[k] = thin;
      }
    }
    return boxes;
  }

  private lastEnd(ran: Ran, flow: number): number {
    const { model } = this;
    let last = model.release(flow);
    for (let phase = model.firstPhase[model.firstJob[flow]]; phase < model.firstPhase[model.firstJob[flow + 1]]; phase++) {
      const start = model.phaseStart(ran, phase);
      if (start !== null) last = Math.max(last, start + ran.held[phase]);
    }
    return last;
  }

  /** A box for each phase, and thin ones before each flow's first, while it waited. */
  private jobBoxes(ran: Ran): Boxes {
    const { model } = this, n = model.jobOfPhase.length, boxes = empty(n + model.nFlows), rows = this.order().jobs;
    for (let flow = 0; flow < model.nFlows; flow++) {
      const k = n + flow, started = model.started(ran, flow);
      boxes.start[k] = model.release(flow);
      boxes.end[k] = started ?? -1;
      boxes.row[k] = rows[model.firstJob[flow]];
      boxes.rows[k] = 1;
      boxes.flow[k] = flow;
      boxes.phase[k] = NO_PHASE;
      boxes.thin[k] = 1;
    }
    for (let phase = 0; phase < n; phase++) {
      const start = model.phaseStart(ran, phase), job = model.jobOfPhase[phase];
      boxes.start[phase] = start ?? 0;
      boxes.end[phase] = start === null ? -1 : start + ran.held[phase];
      boxes.row[phase] = rows[job];
      boxes.rows[phase] = 1;
      boxes.flow[phase] = model.flowOfJob[job];
      boxes.phase[phase] = phase;
    }
    return boxes;
  }

  /** The colour of each flow's phases, as a place in the list of colours. */
  private colours(ran: Ran): { of: (flow: number, phase: number) => number; list: string[] } {
    if (this.state.colour === "kind") {
      const { kind } = this.model.doc.workload.phases;
      return { of: (_, phase) => phase < 0 ? 2 : kind[phase], list: [KINDS.map, KINDS.reduce, shareColour(99)] };
    }
    if (this.state.colour === "fate") {
      const list = FATE_ORDER.map((fate) => FATES[fate]);
      return { of: (flow) => FATE_ORDER.indexOf(this.model.fate(ran, flow)), list };
    }
    const place = new Map(ran.largest.map((flow, k) => [flow, k]));
    const list = Array.from({ length: ran.largest.length + 1 }, (_, k) => k === ran.largest.length ? shareColour(99) : shareColour(k));
    return { of: (flow) => place.get(flow) ?? ran.largest.length, list };
  }

  private boxes(c: CanvasRenderingContext2D, ran: Ran): void {
    const boxes = this.made()!, colours = this.colours(ran), n = boxes.start.length;
    const selected = this.state.selected?.flow ?? -1;
    const seen: number[][] = colours.list.map(() => []), chosen: number[] = [];
    const { from, to } = this.state, height = this.rowHeight, top = this.scroll.scrollTop;
    const firstRow = top / height - 1, lastRow = (top + this.body) / height + 1;
    for (let k = 0; k < n; k++) {
      if (boxes.end[k] < from || boxes.start[k] > to || boxes.end[k] < boxes.start[k]) continue;
      if (boxes.row[k] + boxes.rows[k] < firstRow || boxes.row[k] > lastRow) continue;
      (boxes.flow[k] === selected ? chosen : seen[colours.of(boxes.flow[k], boxes.phase[k])]).push(k);
    }
    const reduce = this.model.doc.workload.phases.kind, isLit = this.state.colour !== "kind";
    c.globalAlpha = selected >= 0 ? 0.28 : 1;
    seen.forEach((group, colour) => {
      c.fillStyle = colours.list[colour];
      for (const k of group) this.box(c, boxes, k, isLit && boxes.phase[k] >= 0 && reduce[boxes.phase[k]] === 1);
    });
    c.globalAlpha = 1;
    for (const k of chosen) {
      c.fillStyle = colours.list[colours.of(selected, boxes.phase[k])];
      this.box(c, boxes, k, isLit && boxes.phase[k] >= 0 && reduce[boxes.phase[k]] === 1);
    }
    if (this.state.rows === "slots") this.endings(c, ran, boxes, firstRow, lastRow);
    else this.deadlines(c, ran, firstRow, lastRow);
    if (height >= 11) this.names(c, boxes, [...seen.flat(), ...chosen]);
    const bar = this.state.selected?.bar;
    if (bar !== null && bar !== undefined && this.state.rows === "slots" && this.state.selected!.policy === this.policy()) this.frame(c, boxes, bar);
  }

  private rect(boxes: Boxes, k: number): [number, number, number, number] {
    const height = this.rowHeight, x = this.x(boxes.start[k]);
    const y = TOP + boxes.row[k] * height - this.scroll.scrollTop;
    const gap = height >= 5 ? 1 : 0, tall = Math.max(1, boxes.rows[k] * height - gap);
    const width = Math.max(height < 2 ? 1 : 0.6, this.x(boxes.end[k]) - x - (height >= 8 ? 0.5 : 0));
    if (!boxes.thin[k]) return [x, y, width, tall];
    const line = Math.max(1, Math.min(3, tall / 4));
    return [x, y + (tall - line) / 2, width, line];
  }

  /** Reduces are drawn with a lighter edge, where there is room for one. */
  private box(c: CanvasRenderingContext2D, boxes: Boxes, k: number, isReduce: boolean): void {
    const [x, y, width, height] = this.rect(boxes, k);
    c.fillRect(x, y, width, height);
    if (isReduce && height >= 4 && width > 2) {
      const fill = c.fillStyle;
      c.fillStyle = "rgba(255,255,255,0.38)";
      c.fillRect(x, y, width, Math.max(1.5, height * 0.3));
      c.fillStyle = fill;
    }
  }

  private frame(c: CanvasRenderingContext2D, boxes: Boxes, k: number): void {
    const [x, y, width, height] = this.rect(boxes, k);
    c.strokeStyle = styled("--text");
    c.lineWidth = 2;
    c.strokeRect(x - 1, y - 1, width + 2, height + 2);
    c.lineWidth = 1;
  }

  /** Attempts that failed or were stopped are crossed out. */
  private endings(c: CanvasRenderingContext2D, ran: Ran, boxes: Boxes, firstRow: number, lastRow: number): void {
    const bars = ran.bars!, { from, to } = this.state;
    c.strokeStyle = styled("--text");
    c.beginPath();
    for (let k = 0; k < bars.outcome.length; k++) {
      if (bars.outcome[k] === 0 || boxes.end[k] < from || boxes.start[k] > to) continue;
      if (boxes.row[k] + boxes.rows[k] < firstRow || boxes.row[k] > lastRow) continue;
      const [x, y, width, height] = this.rect(boxes, k);
      c.moveTo(x, y);
      c.lineTo(x + width, y + height);
      c.moveTo(x, y + height);
      c.lineTo(x + width, y);
    }
    c.stroke();
  }

  /** A mark at each deadline, in the row of its flow; of jobs in that of the flow's last job. */
  private deadlines(c: CanvasRenderingContext2D, ran: Ran, firstRow: number, lastRow: number): void {
    const { model } = this, { from, to, rows } = this.state, height = this.rowHeight, order = this.order();
    for (let flow = 0; flow < model.nFlows; flow++) {
      const due = model.deadline(flow);
      if (due === null || due < from || due > to) continue;
      const row = rows === "flows" ? order.flows[flow] : order.jobs[model.firstJob[flow + 1] - 1];
      if (row < firstRow || row > lastRow) continue;
      const x = this.x(due), y = TOP + row * height - this.scroll.scrollTop;
      c.fillStyle = model.fate(ran, flow) === "met" ? styled("--text") : FATES.late;
      c.fillRect(x - 0.75, y, 1.5, Math.max(1, height - 1));
      if (height < 6) continue;
      c.beginPath();
      c.moveTo(x - 4, y);
      c.lineTo(x + 4, y);
      c.lineTo(x, y + 5);
      c.fill();
    }
  }

  private names(c: CanvasRenderingContext2D, boxes: Boxes, seen: number[]): void {
    const { rows } = this.state;
    for (const k of seen) {
      if (boxes.thin[k]) continue;
      const [x, y, width, height] = this.rect(boxes, k);
      const left = Math.max(x, GUTTER), room = Math.min(x + width, this.width) - left;
      if (room < 34) continue;
      const phase = boxes.phase[k];
      const text = phase < 0 ? "" : rows === "slots"
        ? `${this.model.flowName(boxes.flow[k])}/${this.model.jobName(this.model.jobOfPhase[phase])}`
        : this.model.phaseName(phase);
      named(c, text, [left, y, room, height]);
    }
  }

  /** What stands left of the rows. */
  private labels(c: CanvasRenderingContext2D): void {
    const height = this.rowHeight, top = this.scroll.scrollTop, { model } = this, { rows } = this.state;
    c.fillStyle = styled("--muted");
    if (rows === "shares") return;
    if (height < 10) return this.sides(c);
    c.save();
    c.beginPath();
    c.rect(0, TOP, GUTTER - 6, this.height);
    c.clip();
    const order = this.order();
    const names: string[] = [];
    if (rows === "flows") for (let k = 0; k < model.nFlows; k++) names[order.flows[k]] = model.flowName(k);
    if (rows === "jobs") {
      for (let k = 0; k < model.nJobs; k++) {
        const flow = model.flowOfJob[k], isFirst = k === model.firstJob[flow];
        names[order.jobs[k]] = isFirst ? `${model.flowName(flow)} / ${model.jobName(k)}` : `   / ${model.jobName(k)}`;
      }
    }
    for (let row = Math.floor(top / height); row < this.nRows && row * height < top + this.body; row++) {
      const text = rows === "slots" ? this.slotName(row) : names[row] ?? "";
      c.fillText(text, 6, TOP + row * height - top + height / 2 + 4);
    }
    c.restore();
  }

  private slotName(row: number): string {
    const { model } = this;
    const slotKind = model.firstSlot.findLastIndex((first) => row >= first);
    const kind = model.firstSlot.length > 1 ? ` ${model.doc.cluster.slot_kinds[slotKind].name}` : "";
    return `${model.machineOf(slotKind, row - model.firstSlot[slotKind])}${kind}`;
  }

  /** Which rows these are, where they are too low for names. */
  private sides(c: CanvasRenderingContext2D): void {
    const { model } = this, { rows } = this.state, height = this.rowHeight, top = this.scroll.scrollTop;
    if (rows !== "slots") {
      c.fillText(`${this.nRows.toLocaleString("en-US")} ${rows}`, 6, TOP + 14);
      c.fillText("by release", 6, TOP + 28);
      return;
    }
    model.doc.cluster.slot_kinds.forEach((slotKind, k) => {
      const y = TOP + model.firstSlot[k] * height - top;
      if (slotKind.slots === 0) return;
      if (k > 0) {
        c.fillStyle = styled("--muted");
        c.fillRect(0, y - 0.5, this.width, 1);
      }
      c.fillText(`${slotKind.slots.toLocaleString("en-US")} ${slotKind.name}`, 6, Math.max(TOP, y) + 14);
      c.fillText("slots", 6, Math.max(TOP, y) + 28);
    });
  }

  /** Slots per flow over time, one above the other. */
  private areas(c: CanvasRenderingContext2D, ran: Ran): void {
    const most = this.model.nSlots, left = GUTTER, right = this.width - RIGHT;
    const columns = Math.max(1, Math.floor(right - left)), base = new Float64Array(columns);
    const selected = this.state.selected?.flow ?? -1;
    const y = (slots: number) => TOP + this.body * (1 - Math.min(1, slots / most));
    ran.shares.forEach((curve, k) => {
      c.fillStyle = k === ran.shares.length - 1 ? shareColour(99) : shareColour(k);
      c.globalAlpha = selected >= 0 && ran.largest[k] !== selected ? 0.35 : 1;
      c.beginPath();
      const upper = new Float64Array(columns);
      for (let x = 0; x < columns; x++) {
        upper[x] = base[x] + meanOf(curve, this.ticks(left + x), this.ticks(left + x + 1));
        c.lineTo(left + x, y(upper[x]));
      }
      for (let x = columns - 1; x >= 0; x--) c.lineTo(left + x, y(base[x]));
      c.fill();
      base.set(upper);
    });
    c.globalAlpha = 1;
    c.fillStyle = styled("--muted");
    c.restore();
    c.save();
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      c.fillText(`${Math.round(most * share).toLocaleString("en-US")}${share === 1 ? " slots" : ""}`, 6, y(most * share) + (share === 1 ? 11 : 0));
    }
  }

  /** What lies at a point of the canvas, if anything does; low rows are hit from nearby. */
  hit(x: number, y: number): Hit | null {
    const ran = this.ran, { rows } = this.state;
    if (!ran || x < GUTTER || y < TOP) return null;
    const at = this.ticks(x);
    if (rows === "shares") return this.hitArea(ran, x, y);
    const height = this.rowHeight, row = (y - TOP + this.scroll.scrollTop) / height, near = Math.max(0.5, 3 / height);
    const wide = (this.state.to - this.state.from) / (this.width - GUTTER) * 2;
    const boxes = this.made()!;
    let best = -1, bestAway = Infinity;
    for (let k = 0; k < boxes.start.length; k++) {
      if (boxes.start[k] - wide > at || boxes.end[k] + wide < at) continue;
      const middle = boxes.row[k] + boxes.rows[k] / 2, away = Math.max(0, Math.abs(row - middle) - boxes.rows[k] / 2 + 0.5);
      if (away <= near + 0.5 && away < bestAway) { best = k; bestAway = away; }
    }
    if (best < 0) return null;
    const phase = boxes.phase[best];
    const job = phase >= 0 ? this.model.jobOfPhase[phase] : phase === NO_PHASE ? null : -1 - phase;
    const isBar = rows === "slots" && phase >= 0;
    return { flow: boxes.flow[best], job, phase: phase >= 0 ? phase : null, bar: isBar ? best : null };
  }

  private hitArea(ran: Ran, x: number, y: number): Hit | null {
    const slots = (1 - (y - TOP) / this.body) * this.model.nSlots;
    let sum = 0;
    for (let k = 0; k < ran.largest.length; k++) {
      sum += meanOf(ran.shares[k], this.ticks(x), this.ticks(x + 1));
      if (slots < sum) return { flow: ran.largest[k], job: null, phase: null, bar: null };
    }
    return null;
  }
}

/** No phase and no master. */
const NO_PHASE = -0x7fffffff;

function empty(n: number): Boxes {
  return {
    start: new Float64Array(n), end: new Float64Array(n), row: new Int32Array(n), rows: new Int32Array(n),
    flow: new Int32Array(n), phase: new Int32Array(n), thin: new Uint8Array(n),
  };
}

/** The mean of a curve between two ticks. */
export function meanOf(curve: { width: number; means: number[] }, from: number, to: number): number {
  const first = Math.floor(from / curve.width), last = Math.floor(to / curve.width);
  if (first === last || last >= first + 400) return curve.means[first] ?? 0;
  let area = 0;
  for (let k = first; k <= last; k++) {
    const length = Math.min(to, (k + 1) * curve.width) - Math.max(from, k * curve.width);
    area += (curve.means[k] ?? 0) * length;
  }
  return area / (to - from);
}
