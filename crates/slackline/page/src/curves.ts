// Curves over something that was varied: machines, slots, splits, settings.
import { chart, legend, type Frame, type Line } from "./charts";
import type { Curves as Curve, Model } from "./data";
import { policyColour } from "./colour";
import { asTable, h, plainTable, svg } from "./dom";
import { alike, marks, niceStep, number, percent, short, timeScale } from "./format";
import type { Say } from "./tip";

const HEIGHT = 230, LEFT = 72, RIGHT = 16, TOP = 24, BOTTOM = 38;

export class Curves {
  readonly element: HTMLElement;
  private readonly all: OneCurve[];

  constructor(model: Model, say: Say) {
    this.all = model.doc.extras.curves.map((curve) => new OneCurve(curve, say));
    const lines = model.doc.extras.curves[0]?.lines ?? [];
    this.element = h("div", {}, lines.length > 1 && legend(lines.map(({ name }, policy) => ({ name, policy, strong: false }))),
      h("div", { class: "three" }, ...this.all.map((one) => one.element)));
  }

  draw(): void { for (const one of this.all) one.draw(); }
}

class OneCurve {
  readonly element: HTMLElement;
  private readonly holder = h("div", { class: "chart" });
  private width = 0;
  private readonly low: number;
  private readonly span: number;
  /** Values as texts, all in the same unit. */
  private readonly text: (value: number) => string;

  constructor(private readonly curve: Curve, private readonly say: Say) {
    this.low = Math.min(...curve.x);
    this.span = Math.max(...curve.x) - this.low || 1;
    const times = alike(this.values());
    this.text = { seconds: times.text, percent, count: number, number }[curve.unit];
    this.holder.addEventListener("mousemove", (event) => this.point(event));
    this.holder.addEventListener("mouseleave", (event) => this.say(event, null));
    const title = curve.unit === "seconds" ? `${curve.title} [${times.unit}]` : curve.title;
    this.element = h("figure", {}, h("figcaption", {}, curve.title), this.holder, asTable(curve.title, () => this.table(title)));
  }

  private values(): number[] { return this.curve.lines.flatMap((line) => line.values.filter((value) => value !== null)); }

  private x(value: number): number { return LEFT + (value - this.low) / this.span * (this.width - LEFT - RIGHT); }

  draw(): void {
    const { curve } = this, { marked } = curve, values = this.values();
    this.width = Math.max(260, this.holder.clientWidth);
    const tops = curve.lines.flatMap((line) => line.band ?? []).map((range) => range?.[1] ?? 0);
    const highest = Math.max(...values, ...tops, 0) * 1.05, least = Math.min(...values);
    // If a few values are much larger than all others, the axis ends before them. A chance has the whole axis.
    const near = marked !== null && least > 0 && curve.limit === null ? Math.min(highest, least * 8) : highest;
    const most = (curve.limit === null ? near : 1.05) || 1;
    const lines = curve.lines.map((line, policy): Line => ({
      policy, name: line.name, strong: curve.lines.length === 1,
      points: curve.x.flatMap((at, k) => line.values[k] === null ? [] : [[at, line.values[k]] as [number, number]]),
    }));
    const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.min(value, most) / most);
    const dots = curve.x.length > 40 ? [] : lines.flatMap((line) => line.points.map(([at, value]) =>
      svg("circle", { cx: this.x(at), cy: y(value), r: 3, fill: policyColour(line.policy) })));
    const round = marks(most, 4).filter((at) => curve.unit !== "count" || Number.isInteger(at));
    const scale = curve.unit === "seconds" ? timeScale(most, 4) : { unit: "", marks: round.map((at) => ({ at, label: curve.unit === "percent" ? percent(at) : short(at, most) })) };
    const frame: Frame = {
      width: this.width, height: HEIGHT, left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM, x: (value) => this.x(value), most,
      xMarks: this.xMarks(), yMarks: scale.marks, yLabel: short, xTitle: curve.x_title, yTitle: scale.unit,
      label: `${curve.title} over ${curve.x_title}${marked === null ? "" : `; the answer is ${marked}`}`,
    };
    this.holder.replaceChildren(chart(frame, lines, [...this.bands(y), ...this.limit(y), ...this.answer(), ...dots]));
  }

  /** The ranges around the values, as areas. */
  private bands(y: (value: number) => number): SVGElement[] {
    return this.curve.lines.flatMap((line, policy) => {
      const ranges = this.curve.x.flatMap((at, k) => line.band?.[k] ? [{ at, range: line.band[k]! }] : []);
      const edge = (end: 0 | 1) => ranges.map(({ at, range }) => `${this.x(at).toFixed(1)},${y(range[end]).toFixed(1)}`);
      return ranges.length ? [svg("polygon", { class: "band", fill: policyColour(policy), points: [...edge(0), ...edge(1).reverse()].join(" ") })] : [];
    });
  }

  /** A line at what the answer has to reach. */
  private limit(y: (value: number) => number): SVGElement[] {
    const { limit } = this.curve;
    if (limit === null) return [];
    return [svg("line", { class: "bound", x1: LEFT, x2: this.width - RIGHT, y1: y(limit), y2: y(limit) }),
      svg("text", { class: "name", x: this.width - RIGHT, y: y(limit) + 14, "text-anchor": "end" }, `needed: ${this.text(limit)}`)];
  }

  private xMarks(): { at: number; label: string }[] {
    const { low, span } = this, step = niceStep(span / Math.max(2, (this.width - LEFT - RIGHT) / 45)), first = Math.ceil(low / step);
    return Array.from({ length: Math.floor((low + span) / step) - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(6)))
      .map((at) => ({ at, label: short(at) }));
  }

  /** A line at the answer, with its value. */
  private answer(): SVGElement[] {
    const { marked, x_title } = this.curve;
    if (marked === null) return [];
    const x = this.x(marked), isRight = x > this.width * 0.6;
    return [svg("line", { class: "bound", x1: x, x2: x, y1: TOP - 8, y2: HEIGHT - BOTTOM }),
      svg("text", { class: "name strong", x: x + (isRight ? -6 : 6), y: TOP, "text-anchor": isRight ? "end" : "start" }, `answer: ${short(marked)} ${x_title}`)];
  }

  private point(event: MouseEvent): void {
    const { curve } = this, at = this.low + (event.clientX - this.holder.getBoundingClientRect().left - LEFT) / (this.width - LEFT - RIGHT) * this.span;
    const near = curve.x.reduce((best, value, k) => Math.abs(value - at) < Math.abs(curve.x[best] - at) ? k : best, 0);
    this.say(event, [`${short(curve.x[near])} ${curve.x_title}`, ...curve.lines.map((line) => `${line.name}: ${this.value(line, near)}`)]);
  }

  /** A value with its range, if it has one. */
  private value(line: Curve["lines"][number], k: number): string {
    const value = line.values[k], range = line.band?.[k];
    if (value === null) return "–";
    return range ? `${this.text(value)} (${this.text(range[0])} to ${this.text(range[1])})` : this.text(value);
  }

  private table(title: string): HTMLElement {
    const { curve } = this;
    const rows = curve.x.map((at, k) => [short(at), ...curve.lines.map((line) => this.value(line, k))]);
    return plainTable(`${title} over ${curve.x_title}`, [curve.x_title, ...curve.lines.map((line) => line.name)], rows);
  }
}
