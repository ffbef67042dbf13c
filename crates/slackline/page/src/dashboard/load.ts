// What was running and what waited over the last day.
import { chart, legend, type Frame, type Line } from "../charts";
import { h, LiveTable, plainTable } from "../dom";
import { short, timeMarks } from "../format";
import type { LoadPoint } from "./api";
import type { Store } from "./store";
import { clock, clockOf, millis } from "./time";

interface Measure { name: string; policy: number; of: (point: LoadPoint) => number }

const RUNNING: Measure = { name: "slots in use", policy: 0, of: (point) => point.running };
const WAITING: Measure[] = [
  { name: "waiting tasks", policy: 1, of: (point) => point.waiting },
  { name: "submissions in the queue", policy: 2, of: (point) => point.queued },
];
const HEIGHT = 150, LEFT = 60, RIGHT = 14, DAY = 86_400_000;
const SPANS: [string, number][] = [["the last day", DAY], ["the last 6 hours", DAY / 4], ["the last hour", DAY / 24], ["the last 10 minutes", DAY / 144]];

export class LoadOverTime {
  readonly element: HTMLElement;
  private readonly first = h("div", { class: "chart" });
  private readonly second = h("div", { class: "chart" });
  private readonly lists = [new LiveTable("running", () => this.table([RUNNING])), new LiveTable("waiting", () => this.table(WAITING))];
  private isChosen = false;
  private readonly span = h("select", { "aria-label": "How far back the load is shown" }, ...SPANS.map(([text], k) => h("option", { value: k }, text)));

  constructor(private readonly store: Store) {
    this.span.addEventListener("change", () => { this.isChosen = true; this.draw(); });
    this.element = h("div", {}, h("div", { class: "controls" }, h("label", {}, "Show ", this.span)),
      h("div", { class: "two" },
        h("figure", {}, h("figcaption", {}, "Running"), legend([{ ...RUNNING, strong: true }]), this.first, this.lists[0].element),
        h("figure", {}, h("figcaption", {}, "Waiting"), legend(WAITING.map((one, k) => ({ ...one, strong: k === 0 }))), this.second, this.lists[1].element)));
  }

  draw(): void {
    const to = this.store.now, known = to - millis(this.store.load[0]?.at ?? this.store.service?.started ?? "");
    // As far back as anything is known, unless the user has chosen a span.
    if (!this.isChosen) this.span.value = String(Math.max(0, SPANS.findLastIndex(([, span]) => span >= known)));
    const asked = SPANS[Number(this.span.value)][1];
    const points = [...this.store.load, ...this.current()].filter((point) => millis(point.at) >= to - asked);
    const from = to - asked;
    this.one(this.first, [RUNNING], points, from, to, this.store.service?.slots ?? 0);
    this.one(this.second, WAITING, points, from, to, 0);
    for (const list of this.lists) list.draw();
  }

  /** How it is now: moments are written down while something is there, and not too often. */
  private current(): LoadPoint[] {
    const { service } = this.store;
    return service ? [{ at: service.now, running: service.running, waiting: service.waiting, queued: service.submissions.queued ?? 0 }] : [];
  }

  private one(holder: HTMLElement, measures: Measure[], points: LoadPoint[], from: number, to: number, least: number): void {
    const width = Math.max(280, holder.clientWidth), room = width - LEFT - RIGHT, clocked = clockOf(from, to);
    const lines = measures.map((measure, k): Line => ({ ...measure, strong: k === 0, points: thinned(points, measure, from, to, room) }));
    const most = Math.max(1, least, ...lines.flatMap((line) => line.points.map((point) => point[1])));
    const frame: Frame = {
      width, height: HEIGHT, left: LEFT, right: RIGHT, top: 18, bottom: 20, most: most * (most > least ? 1.05 : 1),
      x: (seconds) => LEFT + seconds * 1000 / (to - from) * room,
      yLabel: short, yTitle: "", xTitle: "", xMarks: timeMarks(clocked, 0, (to - from) / 1000, width / 90),
      label: `${measures.map((one) => one.name).join(" and ")} over time`,
    };
    holder.replaceChildren(chart(frame, lines));
  }

  private table(measures: Measure[]): HTMLElement {
    const { load, now } = this.store, step = Math.max(1, Math.ceil(load.length / 96));
    const rows = load.filter((_, k) => k % step === 0).map((point) => [clock(millis(point.at), now), ...measures.map((one) => short(Number(one.of(point).toFixed(2))))]);
    return plainTable(`${measures.map((one) => one.name).join(", ")} in the last day`, ["at", ...measures.map((one) => one.name)], rows);
  }
}

/** At most one point a pixel: of those that fall together the mean, so that a line says how much it was. */
function thinned(points: LoadPoint[], measure: Measure, from: number, to: number, pixels: number): [number, number][] {
  const step = (to - from) / Math.max(1, pixels), found: [number, number][] = [];
  let column = -1, sum = 0, n = 0, last = 0;
  for (const point of points) {
    const at = millis(point.at), here = Math.floor((at - from) / step);
    if (here !== column && n > 0) found.push([last, sum / n]);
    if (here !== column) [column, sum, n] = [here, 0, 0];
    sum += measure.of(point);
    n += 1;
    last = (at - from) / 1000;
  }
  if (n > 0) found.push([last, sum / n]);
  return found;
}
