// The timeline of one policy, on a canvas: slots, flows or jobs as rows, or slots per flow as areas.
import { NO_PHASE, flowBoxes, jobBoxes, orderOf, slotBoxes, spans, type Boxes, type Order } from "./boxes";
import { Pixels, canvasBrush, type Brush } from "./brush";
import { named } from "./canvas";
import { FATES, KINDS, mixed, shareColour, styled } from "./colour";
import type { Model, Ran } from "./data";
import { h } from "./dom";
import { timeMarks } from "./format";
import type { State } from "./state";

/** The place left of the charts of time, and above the rows; the same everywhere, so that times line up. */
export const GUTTER = 116, RIGHT = 12;
const TOP = 24, ON_PAPER = 330;
/** Later ones are drawn over earlier ones: what is late must be seen. */
const FATE_ORDER = ["free", "met", "late", "failed"] as const;
/** Rows that can be read; lower ones make room for each other. And the least on which a deadline can be marked. */
const READABLE = 12, MARKED = 4;
/** More boxes than these are drawn pixel by pixel. */
const MANY = 1500;

/** What lies under the pointer. */
export interface Hit { flow: number; job: number | null; phase: number | null; bar: number | null }

export class Gantt {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  private readonly scroll: HTMLElement;
  private readonly spacer: HTMLElement;
  private readonly scratch = h("canvas", {});
  private readonly cache = new Map<string, { boxes: Boxes; spans: ReturnType<typeof spans> }>();
  private ordered: Order | null = null;
  // What draw() measures once: asking an element makes the browser lay out the page.
  private width = 200;
  private top = 0;
  private rowHeight = 1;
  /** The rows that are shown and, by row, its place among them or −1; null if all are. */
  private shown: Int32Array | null = null;
  private place: Int32Array | null = null;

  constructor(
    private readonly model: Model, private readonly state: State,
    private readonly policy: () => number, private readonly onScreen: number,
  ) {
    this.canvas = h("canvas", {});
    this.spacer = h("div", { class: "spacer" }, this.canvas);
    this.scroll = h("div", { class: "gantt", tabindex: 0, role: "application", "aria-roledescription": "timeline" }, this.spacer);
    this.scroll.style.height = `${onScreen}px`;
    this.element = this.scroll;
    this.scroll.addEventListener("scroll", () => this.state.changed("view"));
  }

  private get ran(): Ran | null { return this.model.doc.policies[this.policy()].ran; }
  /** On paper it shares a page with the charts of load. */
  private get height(): number { return this.state.isPaper ? Math.min(ON_PAPER, this.onScreen) : this.onScreen; }
  private get body(): number { return this.height - TOP - 4; }

  /** Rows that there are, and those of them that are shown. */
  get nRows(): number {
    const { rows } = this.state;
    if (rows === "slots") return this.model.nSlots;
    return rows === "flows" ? this.model.nFlows : rows === "jobs" ? this.model.nJobs : 1;
  }
  get nShown(): number { return this.shown?.length ?? this.nRows; }

  /** Whether rows are high enough for the marks of deadlines. */
  get marksDeadlines(): boolean { return this.rowHeight >= MARKED; }

  /** How wide it is, which rows are shown, and how high. */
  private measure(): void {
    this.width = Math.max(200, this.scroll.clientWidth);
    this.arrange();
    const fit = this.body / Math.max(1, this.nShown);
    this.rowHeight = this.state.rows === "shares" ? this.body : Math.min(28, fit * this.state.tall);
    const height = `${Math.max(this.height, this.nShown * this.rowHeight + TOP + 4)}px`;
    if (this.spacer.style.height !== height) this.spacer.style.height = height;
    this.top = this.scroll.scrollTop;
  }

  /** Where not all rows can be read, only those of flows and jobs are shown that hold something in the window of time. */
  private arrange(): void {
    const { from, to, rows } = this.state;
    this.shown = this.place = null;
    if (!this.ran || rows === "slots" || rows === "shares" || this.nRows * READABLE <= this.body) return;
    const spans = this.made().spans, shown: number[] = [], place = new Int32Array(this.nRows).fill(-1);
    for (let row = 0; row < place.length; row++) {
      if (spans.from[row] > to || spans.to[row] < from) continue;
      place[row] = shown.length;
      shown.push(row);
    }
    this.shown = Int32Array.from(shown);
    this.place = place;
  }

  /** Scrolls to the flow's rows. */
  private reveal(flow: number): void {
    if (this.state.rows !== "flows" && this.state.rows !== "jobs") return;
    const { rowOfFlow, rowOfJob } = this.order(), first = this.model.firstJob[flow];
    const row = this.state.rows === "flows" ? rowOfFlow[flow] : rowOfJob[first];
    const y = (this.place?.[row] ?? row) * this.rowHeight, view = this.body;
    if (y >= 0 && (y < this.top || y > this.top + view - 20)) {
      this.scroll.scrollTop = y - view / 2;
      this.top = this.scroll.scrollTop;
    }
  }

  x(ticks: number): number {
    const { from, to } = this.state;
    return GUTTER + (ticks - from) / (to - from) * (this.width - GUTTER - RIGHT);
  }

  ticks(x: number): number {
    const { from, to } = this.state;
    return from + (x - GUTTER) / (this.width - GUTTER - RIGHT) * (to - from);
  }

  /** Draws it; with a flow, scrolled to that. */
  draw(flow: number | null = null): void {
    this.measure();
    if (flow !== null) this.reveal(flow);
    const ratio = this.ratio, { width, height } = this;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
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

  /** Pixels of the canvas to a pixel of the page; paper has more than screens. */
  private get ratio(): number { return Math.max(window.devicePixelRatio || 1, this.state.isPaper ? 3 : 1); }

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

  private order(): Order { return this.ordered ??= orderOf(this.model); }

  /** The boxes of the rows that are asked for, of a policy that ran; they are made once. */
  private made(): { boxes: Boxes; spans: ReturnType<typeof spans> } {
    const { model } = this, { rows } = this.state, ran = this.ran!, key = `${rows} ${this.policy()}`;
    const known = this.cache.get(key);
    if (known) return known;
    const boxes = rows === "slots" ? slotBoxes(model, ran)
      : rows === "flows" ? flowBoxes(model, ran, this.order()) : jobBoxes(model, ran, this.order());
    const made = { boxes, spans: spans(boxes, this.nRows) };
    this.cache.set(key, made);
    return made;
  }

  /** The colour of each flow's phases, as a place in the list of colours; those that matter most come last. */
  private colours(ran: Ran): { of: (flow: number, phase: number) => number; list: string[] } {
    if (this.state.colour === "kind") {
      const { kind } = this.model.doc.workload.phases;
      return { of: (_, phase) => phase < 0 ? 0 : 1 + kind[phase], list: [shareColour(99), KINDS.map, KINDS.reduce] };
    }
    if (this.state.colour === "fate") {
      const list = FATE_ORDER.map((fate) => FATES[fate]);
      return { of: (flow) => FATE_ORDER.indexOf(this.model.fate(ran, flow)), list };
    }
    const place = new Map(ran.largest.map((flow, k) => [flow, k + 1]));
    return { of: (flow) => place.get(flow) ?? 0, list: [shareColour(99), ...ran.largest.map((_, k) => shareColour(k))] };
  }

  private boxes(c: CanvasRenderingContext2D, ran: Ran): void {
    const { boxes } = this.made(), colours = this.colours(ran), isLit = this.state.colour !== "kind";
    const selected = this.state.selected?.flow ?? -1, seen: number[][] = colours.list.map(() => []), chosen: number[] = [];
    for (const k of this.visible(boxes)) (boxes.flow[k] === selected ? chosen : seen[colours.of(boxes.flow[k], boxes.phase[k])]).push(k);
    const all = [...seen.flat(), ...chosen], pixels = all.length > MANY ? this.pixels() : null, brush = pixels ?? canvasBrush(c);
    const surface = styled("--surface"), dim = (colour: string) => selected >= 0 ? mixed(colour, 0.28, surface) : colour;
    seen.forEach((group, colour) => this.paint(brush, boxes, group, dim(colours.list[colour]), isLit));
    for (const k of chosen) this.paint(brush, boxes, [k], colours.list[colours.of(selected, boxes.phase[k])], isLit);
    pixels?.put(c, this.scratch);
    if (this.state.rows === "slots") this.endings(c, ran, boxes, all);
    else this.deadlines(c);
    if (this.rowHeight >= 11) this.names(c, boxes, all);
    const bar = this.state.selected?.bar;
    if (bar !== null && bar !== undefined && this.state.rows === "slots" && this.state.selected!.policy === this.policy()) this.frame(c, boxes, bar);
  }

  private pixels(): Pixels {
    return new Pixels(GUTTER, TOP, this.width - GUTTER - RIGHT, this.height - TOP, this.ratio);
  }

  /** The boxes that are in sight. */
  private visible(boxes: Boxes): number[] {
    const { from, to } = this.state, { place, rowHeight: height, top } = this, found: number[] = [];
    const first = top / height - 1, last = (top + this.body) / height + 1;
    for (let k = 0; k < boxes.start.length; k++) {
      if (boxes.end[k] < from || boxes.start[k] > to || boxes.end[k] < boxes.start[k]) continue;
      const row = place ? place[boxes.row[k]] : boxes.row[k];
      if (row + boxes.rows[k] >= first && row <= last) found.push(k);
    }
    return found;
  }

  /** Where a row is. */
  private y(row: number): number { return TOP + (this.place ? this.place[row] : row) * this.rowHeight - this.top; }

  private rect(boxes: Boxes, k: number): [number, number, number, number] {
    const height = this.rowHeight, x = this.x(boxes.start[k]), y = this.y(boxes.row[k]);
    const gap = height >= 5 ? 1 : 0, tall = Math.max(1, boxes.rows[k] * height - gap);
    const width = Math.max(height < 2 ? 1 : 0.6, this.x(boxes.end[k]) - x - (height >= 8 ? 0.5 : 0));
    if (!boxes.thin[k]) return [x, y, width, tall];
    const line = Math.max(1, Math.min(3, tall / 4));
    return [x, y + (tall - line) / 2, width, line];
  }

  /** Reduces are drawn with a lighter edge, where there is room for one. */
  private paint(brush: Brush, boxes: Boxes, group: number[], colour: string, isLit: boolean): void {
    const { kind } = this.model.doc.workload.phases, light = mixed(colour, 0.62, "#ffffff");
    for (const k of group) {
      const [x, y, width, height] = this.rect(boxes, k);
      brush.fill(colour, x, y, width, height);
      const isReduce = boxes.phase[k] >= 0 && kind[boxes.phase[k]] === 1;
      if (isLit && isReduce && height >= 4 && width > 2) brush.fill(light, x, y, width, Math.max(1.5, height * 0.3));
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
  private endings(c: CanvasRenderingContext2D, ran: Ran, boxes: Boxes, seen: number[]): void {
    const { outcome } = ran.bars!;
    c.strokeStyle = styled("--text");
    c.beginPath();
    for (const k of seen) {
      if (k >= outcome.length || outcome[k] === 0) continue;
      const [x, y, width, height] = this.rect(boxes, k);
      c.moveTo(x, y);
      c.lineTo(x + width, y + height);
      c.moveTo(x, y + height);
      c.lineTo(x + width, y);
    }
    c.stroke();
  }

  /** A mark at each deadline, in the row of its flow; of jobs in that of the flow's last job. Low rows have none: they would hide the boxes. */
  private deadlines(c: CanvasRenderingContext2D): void {
    if (!this.marksDeadlines) return;
    const { model, rowHeight: height } = this, { from, to, rows } = this.state, order = this.order();
    const text = styled("--text"), surface = styled("--surface");
    for (let flow = 0; flow < model.nFlows; flow++) {
      const due = model.deadline(flow);
      if (due === null || due < from || due > to) continue;
      const row = rows === "flows" ? order.rowOfFlow[flow] : order.rowOfJob[model.firstJob[flow + 1] - 1], y = this.y(row);
      if (this.place && this.place[row] < 0) continue;
      if (y >= TOP - height && y < this.height) deadlineMark(c, this.x(due), y, height, text, surface);
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
    const { rowHeight: height, top } = this, { rows } = this.state;
    c.fillStyle = styled("--muted");
    if (rows === "shares") return;
    if (height < 10) return this.sides(c);
    c.save();
    c.beginPath();
    c.rect(0, TOP, GUTTER - 6, this.height);
    c.clip();
    for (let place = Math.floor(top / height); place < this.nShown && place * height < top + this.body; place++) {
      const row = this.shown ? this.shown[place] : place, before = this.shown ? this.shown[place - 1] ?? -1 : place - 1;
      c.fillText(this.rowName(row, before), 6, TOP + place * height - top + height / 2 + 4);
    }
    c.restore();
  }

  /** What stands beside a row: the flow only once, if the row before is of the same. */
  private rowName(row: number, before: number): string {
    const { model } = this, { flows, jobs } = this.order();
    if (this.state.rows === "slots") return this.slotName(row);
    if (this.state.rows === "flows") return model.flowName(flows[row]);
    const flow = model.flowOfJob[jobs[row]], job = model.jobName(jobs[row]);
    return before >= 0 && model.flowOfJob[jobs[before]] === flow ? `   / ${job}` : `${model.flowName(flow)} / ${job}`;
  }

  private slotName(row: number): string {
    const { model } = this;
    const slotKind = model.firstSlot.findLastIndex((first) => row >= first);
    const kind = model.firstSlot.length > 1 ? ` ${model.doc.cluster.slot_kinds[slotKind].name}` : "";
    return `${model.machineOf(slotKind, row - model.firstSlot[slotKind])}${kind}`;
  }

  /** Which rows these are, where they are too low for names. */
  private sides(c: CanvasRenderingContext2D): void {
    const { model, rowHeight: height, top } = this, { rows } = this.state;
    if (rows !== "slots") {
      const count = (n: number) => n.toLocaleString("en-US");
      const lines = this.nShown < this.nRows ? [`${count(this.nShown)} of`, `${count(this.nRows)} ${rows},`] : [`${count(this.nRows)} ${rows},`];
      [...lines, "by release"].forEach((line, k) => c.fillText(line, 6, TOP + 14 * (k + 1)));
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
    const { rowHeight: height, place } = this, row = (y - TOP + this.top) / height, near = Math.max(0.5, 3 / height);
    const wide = (this.state.to - this.state.from) / (this.width - GUTTER) * 2;
    const { boxes } = this.made();
    let best = -1, bestAway = Infinity;
    for (let k = 0; k < boxes.start.length; k++) {
      if (boxes.start[k] - wide > at || boxes.end[k] + wide < at) continue;
      const middle = (place ? place[boxes.row[k]] : boxes.row[k]) + boxes.rows[k] / 2, away = Math.max(0, Math.abs(row - middle) - boxes.rows[k] / 2 + 0.5);
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

/** A line with a triangle on it, in the colour of texts and with an edge of the surface's, so that it is seen on any box. */
function deadlineMark(c: CanvasRenderingContext2D, x: number, y: number, height: number, text: string, surface: string): void {
  const tall = Math.max(1, height - 1), wide = Math.min(4, height / 2);
  c.fillStyle = surface;
  c.fillRect(x - 2, y, 4, tall);
  c.fillStyle = text;
  c.fillRect(x - 0.75, y, 1.5, tall);
  if (height < 6) return;
  c.beginPath();
  c.moveTo(x - wide, y);
  c.lineTo(x + wide, y);
  c.lineTo(x, y + wide * 1.25);
  c.closePath();
  c.strokeStyle = surface;
  c.stroke();
  c.fill();
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
