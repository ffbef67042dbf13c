// Slots in use and flows in the system over time, for all policies on the time axis of the timeline.
import { chart, legend, type Frame, type Line } from "./charts";
import type { Model, Ran } from "./data";
import { asTable, h, plainTable } from "./dom";
import { headed, instant, moments, percent, short, timeMarks } from "./format";
import { GUTTER, RIGHT, meanOf } from "./gantt";
import type { State } from "./state";

interface Measure {
  title: string; unit: string;
  of: (policy: number, from: number, to: number) => number;
  /** The most that can be, if that is known. */
  most: number | null;
  text: (value: number, most?: number) => string;
}

const HEIGHT = 150, ON_PAPER = 125;

export class OverTime {
  readonly element: HTMLElement;
  private readonly holders: HTMLElement[] = [];
  private readonly legends = h("div", {});
  private readonly measures: Measure[];

  constructor(private readonly model: Model, private readonly state: State, private readonly say: (at: MouseEvent, lines: string[] | null) => void) {
    const backlog = model.doc.policies.map((policy) => policy.ran ? backlogOf(model, policy.ran) : null);
    const kinds = model.doc.cluster.slot_kinds.map((slotKind, k): Measure => ({
      title: model.doc.cluster.slot_kinds.length > 1 ? `Utilisation of the ${slotKind.name} slots` : "Utilisation",
      unit: "% of slots held", most: 1, text: percent,
      of: (policy, from, to) => slotKind.slots ? meanOf(model.doc.policies[policy].ran!.slot_kinds[k], from, to) / slotKind.slots : 0,
    }));
    this.measures = [...kinds, {
      title: "Backlog", unit: "released and unfinished flows", most: null, text: (value, most) => short(Math.round(value), most),
      of: (policy, from, to) => backlog[policy]!((from + to) / 2),
    }];
    this.element = h("div", {}, this.legends, ...this.measures.map((measure, k) => {
      const holder = this.holders[k] = h("div", { class: "chart" });
      holder.addEventListener("mousemove", (event) => this.point(event, measure));
      holder.addEventListener("mouseleave", (event) => this.say(event, null));
      return h("figure", {}, h("figcaption", {}, measure.title), holder, asTable(measure.title, () => this.table(measure)));
    }));
  }

  draw(): void {
    const { model, state } = this, width = Math.max(320, this.element.clientWidth);
    const names = model.ran.map((policy) => ({ name: model.doc.policies[policy].name, policy, strong: policy === state.policy }));
    this.legends.replaceChildren(legend(names));
    const span = state.to - state.from, columns = Math.min(600, width - GUTTER - RIGHT);
    this.measures.forEach((measure, k) => {
      const lines = names.map((line): Line => ({ ...line, points: this.points(measure, line.policy, columns) }));
      const highest = Math.max(0, ...lines.flatMap((line) => line.points.map((point) => point[1])));
      const frame: Frame = {
        width, height: state.isPaper ? ON_PAPER : HEIGHT, left: GUTTER, right: RIGHT, top: 18, bottom: 20,
        x: (at) => GUTTER + (at - state.from) / span * (width - GUTTER - RIGHT),
        most: measure.most ?? highest * 1.05, yLabel: measure.text, xTitle: "", yTitle: measure.unit,
        xMarks: timeMarks(model.doc, state.from, state.to, width / 90),
        label: `${measure.title} over time, ${names.map((name) => name.name).join(", ")}`,
      };
      this.holders[k].replaceChildren(chart(frame, lines));
    });
  }

  private points(measure: Measure, policy: number, columns: number): [number, number][] {
    const { from, to } = this.state, step = (to - from) / columns;
    return Array.from({ length: columns }, (_, k) =>
      [from + (k + 0.5) * step, measure.of(policy, from + k * step, from + (k + 1) * step)] as [number, number]);
  }

  private point(event: MouseEvent, measure: Measure): void {
    const holder = event.currentTarget as HTMLElement, box = holder.getBoundingClientRect();
    const { from, to } = this.state, share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER - RIGHT);
    if (share < 0 || share > 1) return this.say(event, null);
    const at = from + share * (to - from), step = (to - from) / 600;
    const lines = this.model.ran.map((policy) =>
      `${this.model.doc.policies[policy].name}: ${measure.text(measure.of(policy, at - step, at + step))}`);
    this.say(event, [instant(this.model.doc, at), ...lines]);
  }

  private table(measure: Measure): HTMLElement {
    const { model } = this, step = this.state.whole / 48, time = moments(model.doc);
    const rows = Array.from({ length: 48 }, (_, k) => [
      time.text(k * step),
      ...model.ran.map((policy) => measure.text(measure.of(policy, k * step, (k + 1) * step))),
    ]);
    return plainTable(`${measure.title}: ${measure.unit}`, [headed("from", time.unit), ...model.ran.map((policy) => model.doc.policies[policy].name)], rows);
  }
}

/** How many flows are there at a time that are not done. */
function backlogOf(model: Model, ran: Ran): (at: number) => number {
  const releases: number[] = [], ends: number[] = [];
  for (let flow = 0; flow < model.nFlows; flow++) {
    const done = model.completed(ran, flow);
    // When a flow was given up is not known here.
    if (done === null) continue;
    releases.push(model.release(flow));
    ends.push(done);
  }
  releases.sort((a, b) => a - b);
  ends.sort((a, b) => a - b);
  return (at) => upTo(releases, at) - upTo(ends, at);
}

/** How many of the ordered values are at most this. */
export function upTo(sorted: number[], at: number): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= at) low = middle + 1; else high = middle;
  }
  return low;
}
