// Every flow under the policy that is shown: its deadline, and how it fared.
import { FATES, FATE_WORDS } from "./colour";
import type { Model, Ran } from "./data";
import { lateness } from "./detail";
import { dot, h } from "./dom";
import { alike, moments, number } from "./format";
import type { State } from "./state";
import { SortedTable, type Column } from "./table";

export class Flows {
  readonly element = h("div", {});
  private readonly table: SortedTable<number>;
  private readonly search = h("input", { type: "search", placeholder: "name, pool or user", "aria-label": "Show flows whose name, pool or user has" });
  private readonly lateOnly = h("input", { type: "checkbox" });
  private readonly count = h("span", { class: "muted", role: "status" });

  /** How lateness is written. */
  private readonly late: ReturnType<typeof alike>;

  constructor(private readonly model: Model, private readonly state: State) {
    this.late = this.longest((ran, flow) => model.lateness(ran, flow) ?? 0);
    const anyDeadline = model.doc.workload.flows.deadline.some((at) => at >= 0);
    const columns = this.columns(anyDeadline);
    this.table = new SortedTable(columns, [], {
      caption: "Flows", sort: columns.findIndex((column) => column.heading === (anyDeadline ? "lateness" : "response")), descending: true, page: 20,
      chosen: (flow) => this.state.selected?.flow === flow,
      onChoose: (flow) => this.state.choose({ flow, bar: null, policy: this.state.policy }),
    });
    this.search.addEventListener("input", () => this.draw());
    this.lateOnly.addEventListener("change", () => this.draw());
    this.element.append(
      h("div", { class: "controls no-print" }, h("label", {}, "Find ", this.search),
        anyDeadline && h("label", {}, this.lateOnly, " late or failed only"), this.count),
      this.table.element);
  }

  private columns(anyDeadline: boolean): Column<number>[] {
    const { model } = this, { doc } = model, { flows } = doc.workload;
    const ran = () => doc.policies[this.state.policy].ran!, time = moments(doc), { late } = this;
    const responses = this.longest((one, flow) => one.took[flow]), waits = this.longest((one, flow) => one.wait[flow]);
    const known = (value: number, text: (seconds: number) => string) => value < 0 ? "–" : text(value * doc.tick);
    const all: (Column<number> | false)[] = [
      { heading: "flow", words: true, text: (k) => model.flowName(k), value: (k) => model.flowName(k) },
      flows.pool.names.length > 0 && { heading: "pool", words: true, text: (k) => model.pool(k), value: (k) => model.pool(k) },
      flows.user.names.length > 0 && { heading: "user", words: true, text: (k) => model.user(k), value: (k) => model.user(k) },
      { heading: "released", unit: time.unit, text: (k) => time.text(model.release(k)), value: (k) => model.release(k) },
      anyDeadline && { heading: "deadline", unit: time.unit, text: (k) => model.deadline(k) === null ? "–" : time.text(model.deadline(k)!), value: (k) => model.deadline(k) },
      { heading: "done", unit: time.unit, text: (k) => model.completed(ran(), k) === null ? "failed" : time.text(model.completed(ran(), k)!), value: (k) => model.completed(ran(), k) },
      anyDeadline && {
        heading: "lateness", unit: late.unit,
        text: (k) => this.fate(k),
        value: (k) => model.fate(ran(), k) === "failed" ? Infinity : model.lateness(ran(), k),
      },
      { heading: "response", unit: responses.unit, text: (k) => known(ran().took[k], responses.text), value: (k) => ran().took[k] < 0 ? null : ran().took[k] },
      { heading: "wait", unit: waits.unit, text: (k) => known(ran().wait[k], waits.text), value: (k) => ran().wait[k] < 0 ? null : ran().wait[k] },
      { heading: "slowdown", text: (k) => this.slowdown(k) === null ? "–" : number(this.slowdown(k)!), value: (k) => this.slowdown(k) },
      { heading: "cost", text: (k) => this.cost(k) === null ? "–" : number(this.cost(k)!), value: (k) => this.cost(k) },
    ];
    return all.filter((column) => column !== false);
  }

  /** How durations are written that flows have, the same under every policy. */
  private longest(of: (ran: Ran, flow: number) => number): ReturnType<typeof alike> {
    const { model } = this, { doc } = model;
    let most = 0;
    for (const k of model.ran) for (let flow = 0; flow < model.nFlows; flow++) most = Math.max(most, Math.abs(of(doc.policies[k].ran!, flow)));
    return alike([most * doc.tick]);
  }

  private fate(flow: number): Node {
    const ran = this.model.doc.policies[this.state.policy].ran!, fate = this.model.fate(ran, flow);
    const text = fate === "free" || fate === "failed" ? FATE_WORDS[fate] : lateness(this.model.doc.tick, this.model.lateness(ran, flow), this.late.text);
    return h("span", { class: `fate ${fate}` }, dot(FATES[fate]), text);
  }

  private slowdown(flow: number): number | null {
    const { doc } = this.model, ran = doc.policies[this.state.policy].ran!, alone = doc.workload.flows.alone[flow];
    return ran.took[flow] < 0 || !(alone > 0) ? null : ran.took[flow] * doc.tick / alone;
  }

  private cost(flow: number): number | null {
    const { doc } = this.model, ran = doc.policies[this.state.policy].ran!;
    if (ran.took[flow] < 0) return null;
    return ran.cost ? ran.cost[flow] : ran.took[flow] * doc.tick;
  }

  draw(): void {
    const { model } = this, policy = model.doc.policies[this.state.policy], ran = policy.ran;
    if (!ran) return this.table.set([]);
    const word = this.search.value.trim().toLowerCase(), lateOnly = this.lateOnly.checked, found: number[] = [];
    for (let flow = 0; flow < model.nFlows; flow++) {
      if (lateOnly && !["late", "failed"].includes(model.fate(ran, flow))) continue;
      const words = `${model.flowName(flow)}\n${model.pool(flow)}\n${model.user(flow)}`.toLowerCase();
      if (!word || words.includes(word)) found.push(flow);
    }
    this.count.textContent = `${found.length.toLocaleString("en-US")} of ${model.nFlows.toLocaleString("en-US")} flows under ${policy.name}`;
    this.table.set(found, `Flows under ${policy.name}`);
  }

  /** Marks the flow that was chosen. */
  mark(): void { this.table.draw(); }
}
