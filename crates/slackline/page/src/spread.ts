// How response, wait and slowdown are distributed over flows.
import { chart, legend, type Frame, type Line } from "./charts";
import type { Model, Ran } from "./data";
import { asTable, h, plainTable } from "./dom";
import { alike, duration, headed, number, percent, short } from "./format";
import { upTo } from "./overtime";
import type { State } from "./state";

interface Quantity { title: string; unit: string; isTime: boolean; of: (ran: Ran, flow: number) => number | null; text: (value: number) => string }

export class Spread {
  readonly element: HTMLElement;
  private readonly holders: HTMLElement[] = [];
  private readonly legends = h("div", {});
  private readonly quantities: Quantity[];
  /** By quantity and policy: the values of all flows that are done, in order. */
  private readonly sorted: Map<string, number[]> = new Map();

  constructor(private readonly model: Model, private readonly state: State, private readonly say: (at: MouseEvent, lines: string[] | null) => void) {
    const { doc } = model, { alone } = doc.workload.flows;
    const ifDone = (ran: Ran, flow: number, value: number) => ran.took[flow] < 0 ? null : value;
    this.quantities = [
      { title: "Response", unit: "completion − release", isTime: true, text: duration, of: (ran, flow) => ifDone(ran, flow, ran.took[flow] * doc.tick) },
      { title: "Wait", unit: "first start − release", isTime: true, text: duration, of: (ran, flow) => ran.wait[flow] < 0 ? null : ifDone(ran, flow, ran.wait[flow] * doc.tick) },
      { title: "Slowdown", unit: "response / time alone on the cluster", isTime: false, text: number, of: (ran, flow) => alone[flow] > 0 ? ifDone(ran, flow, ran.took[flow] * doc.tick / alone[flow]) : null },
    ];
    const figures = this.quantities.map((quantity, k) => {
      const holder = this.holders[k] = h("div", { class: "chart" });
      holder.addEventListener("mousemove", (event) => this.point(event, quantity));
      holder.addEventListener("mouseleave", (event) => this.say(event, null));
      return h("figure", {}, h("figcaption", {}, `${quantity.title} (${quantity.unit})`), holder, asTable(quantity.title, () => this.table(quantity)));
    });
    this.element = h("div", {}, this.legends, h("div", { class: "three" }, ...figures));
  }

  private values(quantity: Quantity, policy: number): number[] {
    const key = `${quantity.title} ${policy}`, known = this.sorted.get(key);
    if (known) return known;
    const ran = this.model.doc.policies[policy].ran!, found: number[] = [];
    for (let flow = 0; flow < this.model.nFlows; flow++) {
      const value = quantity.of(ran, flow);
      if (value !== null) found.push(value);
    }
    const sorted = Array.from(Float64Array.from(found).sort());
    this.sorted.set(key, sorted);
    return sorted;
  }

  /** The axis of a quantity: logarithmic over what lies above 0 in all policies; 0 stands at its left end. */
  private scale(quantity: Quantity): { low: number; high: number } {
    const positive = this.model.ran.flatMap((policy) => {
      const values = this.values(quantity, policy), first = upTo(values, 0);
      return first < values.length ? [values[first], values[values.length - 1]] : [];
    });
    if (positive.length === 0) return { low: 0.1, high: 1 };
    const high = Math.max(...positive), low = Math.max(Math.min(...positive), high / 1e6);
    return { low: quantity.isTime ? low : 10 ** Math.floor(Math.log10(low)), high: Math.max(high * 1.02, low * 2) };
  }

  draw(): void {
    const { model, state } = this;
    const names = model.ran.map((policy) => ({ name: model.doc.policies[policy].name, policy, strong: policy === state.policy }));
    this.legends.replaceChildren(legend(names));
    this.quantities.forEach((quantity, k) => {
      const width = Math.max(200, this.holders[k].clientWidth), { low, high } = this.scale(quantity);
      const left = 46, right = 14, span = Math.log(high / low);
      const x = (value: number) => left + Math.log(Math.max(low, value) / low) / span * (width - left - right);
      const lines = names.map((line): Line => ({ ...line, points: steps(this.values(quantity, line.policy), low, high) }));
      const frame: Frame = {
        width, height: 210, left, right, top: 18, bottom: 22, x, most: 1, yLabel: (value) => `${Math.round(value * 100)}`,
        yTitle: "% of flows", xTitle: "", xMarks: quantity.isTime ? times(low, high, (width - left) / 56) : powers(low, high, (width - left) / 56),
        label: `Distribution of ${quantity.title.toLowerCase()}: ${names.map(({ name, policy }) => `${name} half of all flows up to ${quantity.text(quantile(this.values(quantity, policy), 0.5) ?? 0)}`).join("; ")}`,
      };
      this.holders[k].replaceChildren(chart(frame, lines));
    });
  }

  private point(event: MouseEvent, quantity: Quantity): void {
    const holder = event.currentTarget as HTMLElement, box = holder.getBoundingClientRect();
    const { low, high } = this.scale(quantity), share = (event.clientX - box.left - 46) / (box.width - 60);
    if (share < 0 || share > 1) return this.say(event, null);
    const value = low * (high / low) ** share;
    const lines = this.model.ran.map((policy) => {
      const values = this.values(quantity, policy);
      return `${this.model.doc.policies[policy].name}: ${percent(upTo(values, value) / Math.max(1, values.length))} of flows`;
    });
    this.say(event, [`up to ${quantity.text(value)}`, ...lines]);
  }

  private table(quantity: Quantity): HTMLElement {
    const shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1];
    const head = ["policy", "least", "p10", "p25", "median", "p75", "p90", "p95", "p99", "most"];
    const found = this.model.ran.map((policy) => shares.map((share) => quantile(this.values(quantity, policy), share)));
    const times = alike(found.flat().filter((value) => value !== null)), text = quantity.isTime ? times.text : quantity.text;
    const rows = found.map((values, k) => [this.model.doc.policies[this.model.ran[k]].name, ...values.map((value) => value === null ? "–" : text(value))]);
    return plainTable(`${headed(quantity.title, quantity.isTime ? times.unit : "")}: ${quantity.unit}`, head, rows);
  }
}

/** By nearest rank, as everywhere in the program. */
function quantile(sorted: number[], share: number): number | null {
  return sorted.length ? sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] : null;
}

/** The share of values that are at most x, as steps; many values are sampled finer than a pixel. */
function steps(sorted: number[], low: number, high: number): [number, number][] {
  const n = sorted.length;
  if (n === 0) return [];
  if (n > 600) {
    return Array.from({ length: 401 }, (_, k) => {
      const at = low * (high / low) ** (k / 400);
      return [at, upTo(sorted, at) / n] as [number, number];
    });
  }
  const points: [number, number][] = [[low, upTo(sorted, low) / n]];
  sorted.forEach((value, k) => { if (value > low) points.push([value, k / n], [value, (k + 1) / n]); });
  points.push([high, 1]);
  return points;
}

/** Round times of a logarithmic axis. */
function times(low: number, high: number, most: number): { at: number; label: string }[] {
  const round: [number, string][] = [
    [0.001, "1 ms"], [0.01, "10 ms"], [0.1, "0.1 s"], [1, "1 s"], [3, "3 s"], [10, "10 s"], [30, "30 s"], [60, "1 min"], [180, "3 min"], [600, "10 min"],
    [1800, "30 min"], [3600, "1 h"], [10800, "3 h"], [36000, "10 h"], [86400, "1 d"], [259200, "3 d"], [864000, "10 d"], [2592000, "30 d"],
  ];
  const found = round.filter(([at]) => at >= low && at <= high), every = Math.ceil(found.length / Math.max(2, most));
  return found.filter((_, k) => k % every === 0).map(([at, label]) => ({ at, label }));
}

function powers(low: number, high: number, most: number): { at: number; label: string }[] {
  const found: number[] = [];
  for (let power = low; power <= high; power *= 10) found.push(power);
  if (found.length < 3) found.push(...found.flatMap((power) => [2 * power, 5 * power]).filter((value) => value <= high));
  const every = Math.ceil(found.length / Math.max(2, most));
  return found.sort((a, b) => a - b).filter((_, k) => k % every === 0).map((at) => ({ at, label: at < 1e6 ? at.toLocaleString("en-US") : short(at) }));
}
