// Curves over something that was varied: machines, slots, splits, settings.
import { chart, legend, type Frame, type Line } from "./charts";
import type { Curves, Model } from "./data";
import { policyColour } from "./colour";
import { asTable, h, plainTable, svg } from "./dom";
import { duration, niceStep, number, percent, short } from "./format";

const WIDTH = 460, HEIGHT = 220, LEFT = 80;

export function curves(model: Model, say: (at: MouseEvent, lines: string[] | null) => void): HTMLElement {
  const all = model.doc.extras.curves, lines = all[0].lines;
  return h("div", {}, lines.length > 1 && legend(lines.map(({ name }, policy) => ({ name, policy, strong: false }))),
    h("div", { class: "three" }, ...all.map((one) => figure(one, say))));
}

function figure(one: Curves, say: (at: MouseEvent, lines: string[] | null) => void): HTMLElement {
  const text = { seconds: duration, percent, count: number, number }[one.unit];
  const low = Math.min(...one.x), high = Math.max(...one.x), span = high - low || 1;
  const x = (value: number) => LEFT + (value - low) / span * (WIDTH - LEFT - 16);
  const values = one.lines.flatMap((line) => line.values.filter((value) => value !== null));
  const lines = one.lines.map((line, policy): Line => ({
    policy, name: line.name, strong: one.lines.length === 1,
    points: one.x.flatMap((at, k) => line.values[k] === null ? [] : [[at, line.values[k]] as [number, number]]),
  }));
  const dots = one.x.length > 40 ? [] : lines.flatMap((line) => line.points.map(([at, value]) => ({ at, value, policy: line.policy })));
  const highest = Math.max(...values, 0) * 1.05, least = Math.min(...values);
  // Where a few values dwarf all others, the others are what is looked for.
  const most = one.marked !== null && least > 0 ? Math.min(highest, least * 8) : highest;
  const step = niceStep(span / 5), first = Math.ceil(low / step);
  const xMarks = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, k) => ({ at: (first + k) * step, label: short(Number(((first + k) * step).toPrecision(6))) }));
  const frame: Frame = {
    width: WIDTH, height: HEIGHT, left: LEFT, right: 16, top: 18, bottom: 34, x, most,
    xMarks, yLabel: one.unit === "number" || one.unit === "count" ? short : text, xTitle: one.x_title, yTitle: "",
    label: `${one.title} over ${one.x_title}${one.marked === null ? "" : `; the answer is ${one.marked}`}`,
  };
  const answer = one.marked === null ? [] : [
    svg("line", { class: "bound", x1: x(one.marked), x2: x(one.marked), y1: 18, y2: HEIGHT - 34 }),
    svg("text", { class: "name strong", x: x(one.marked) + (x(one.marked) > WIDTH * 0.7 ? -6 : 6), y: 28, "text-anchor": x(one.marked) > WIDTH * 0.7 ? "end" : "start" }, `${short(one.marked)} ${one.x_title}`),
  ];
  const holder = h("div", { class: "chart" }, chart(frame, lines, [...answer, ...dots.map(({ at, value, policy }) => svg("circle", {
    cx: x(at), cy: 18 + (HEIGHT - 52) * (1 - Math.min(value, most) / (most || 1)), r: 3, fill: policyColour(policy) }))]) as unknown as Node as HTMLElement);
  holder.addEventListener("mousemove", (event) => {
    const at = low + (event.clientX - holder.getBoundingClientRect().left - LEFT) / (WIDTH - LEFT - 16) * span;
    const near = one.x.reduce((best, value, k) => Math.abs(value - at) < Math.abs(one.x[best] - at) ? k : best, 0);
    say(event, [`${short(one.x[near])} ${one.x_title}`, ...one.lines.map((line) => `${line.name}: ${line.values[near] === null ? "–" : text(line.values[near]!)}`)]);
  });
  holder.addEventListener("mouseleave", (event) => say(event, null));
  const rows = one.x.map((at, k) => [short(at), ...one.lines.map((line) => line.values[k] === null ? "–" : text(line.values[k]!))]);
  return h("figure", {}, h("figcaption", {}, one.title), holder,
    asTable(one.title, () => plainTable(`${one.title} over ${one.x_title}`, [one.x_title, ...one.lines.map((line) => line.name)], rows)));
}
