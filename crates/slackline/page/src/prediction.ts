// What a run was expected to do, beside what it did.
import { FATES } from "./colour";
import type { Model } from "./data";
import { h, svg } from "./dom";
import { alike, duration, moments, percent } from "./format";
import { SortedTable, type Column } from "./table";

const SHOWN = 40, ROW = 20, LEFT = 150;

/** Flow by flow, when it was expected to be done and when it was; null where nothing was expected. */
export function prediction(model: Model): HTMLElement | null {
  const { doc } = model, { predicted } = doc.extras, ran = doc.policies[0]?.ran;
  if (!predicted || !ran) return null;
  const flows = predicted.flatMap((at, flow) => at >= 0 && model.completed(ran, flow) !== null ? [flow] : []);
  if (flows.length === 0) return null;
  const done = (flow: number) => model.completed(ran, flow)! * doc.tick;
  const off = (flow: number) => done(flow) - predicted[flow];
  const time = moments(doc), offs = alike(flows.map(off));
  const columns: Column<number>[] = [
    { heading: "flow", words: true, text: (flow) => model.flowName(flow), value: (flow) => model.flowName(flow) },
    { heading: "predicted", unit: time.unit, text: (flow) => time.text(predicted[flow] / doc.tick), value: (flow) => predicted[flow] },
    { heading: "done", unit: time.unit, text: (flow) => time.text(done(flow) / doc.tick), value: done },
    { heading: "off by", unit: offs.unit, text: (flow) => `${off(flow) > 0 ? "+" : ""}${offs.text(off(flow))}`, value: off },
    { heading: "of the response", text: (flow) => percent(Math.abs(off(flow)) / Math.max(1e-9, ran.took[flow] * doc.tick)), value: (flow) => Math.abs(off(flow)) / Math.max(1e-9, ran.took[flow] * doc.tick) },
  ];
  return h("div", {}, chart(model, flows.slice(0, SHOWN), predicted, done),
    new SortedTable(columns, flows, { caption: "Completions, predicted and real", page: 40 }).element);
}

function chart(model: Model, flows: number[], predicted: number[], done: (flow: number) => number): HTMLElement {
  const width = 700, height = flows.length * ROW + 22, most = Math.max(...flows.flatMap((flow) => [predicted[flow], done(flow)])) || 1;
  const x = (value: number) => LEFT + value / most * (width - LEFT - 60);
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Predicted and real completions of ${flows.length} flows; the table below has the numbers` });
  flows.forEach((flow, k) => {
    const y = k * ROW + 12, late = done(flow) > predicted[flow];
    root.append(
      svg("text", { class: "name", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, model.flowName(flow).slice(0, 22)),
      svg("line", { x1: x(predicted[flow]), x2: x(done(flow)), y1: y, y2: y, stroke: late ? FATES.late : FATES.met, "stroke-width": 3 }),
      svg("circle", { cx: x(predicted[flow]), cy: y, r: 5, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }),
      svg("circle", { cx: x(done(flow)), cy: y, r: 4.5, fill: late ? FATES.late : FATES.met }));
  });
  root.append(svg("text", { class: "mark", x: LEFT, y: height - 4 }, "0"), svg("text", { class: "mark", x: x(most), y: height - 4, "text-anchor": "middle" }, duration(most)));
  return h("figure", {}, h("figcaption", {}, "Completion: a ring where it was predicted, a disc where it was"), h("div", { class: "chart" }, root as unknown as Node as HTMLElement));
}
