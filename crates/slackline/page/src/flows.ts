// Every flow under the policy that is shown: its deadline, and how it fared.
import { FATES, FATE_WORDS } from "./colour";
import type { Model } from "./data";
import { lateness } from "./detail";
import { dot, h } from "./dom";
import { duration, instant, number } from "./format";
import type { State } from "./state";
import { SortedTable, type Column } from "./table";

export class Flows {
  readonly element = h("div", {});
  private readonly table: SortedTable<number>;
  private readonly search = h("input", { type: "search", placeholder: "name, pool or user", "aria-label": "Show flows whose name, pool or user has" });
  private readonly late = h("input", { type: "checkbox" });
  private readonly count = h("span", { class: "muted", role: "status" });

  constructor(private readonly model: Model, private readonly state: State) {
    const anyDeadline = model.doc.workload.flows.deadline.some((at) => at >= 0);
    const columns = this.columns(anyDeadline);
    this.table = new SortedTable(columns, [], {
      caption: "Flows", sort: columns.findIndex((column) => column.heading === (anyDeadline ? "lateness" : "response")), descending: true, page: 20,
      chosen: (flow) => this.state.selected?.flow === flow,
      onChoose: (flow) => this.state.choose({ flow, bar: null, policy: this.state.policy }),
    });
    this.search.addEventListener("input", () => this.draw());
    this.late.addEventListener("change", () => this.draw());
    this.element.append(
      h("div", { class: "controls no-print" }, h("label", {}, "Find ", this.search),
        anyDeadline && h("label", {}, this.late, " late or failed only"), this.count),
      this.table.element);
  }

  private columns(anyDeadline: boolean): Column<number>[] {
    const { model } = this, { doc } = model, { flows } = doc.workload;
    const ran = () => doc.policies[this.state.policy].ran!;
    const seconds = (ticks: number) => duration(ticks * doc.tick);
    const known = (value: number, text: (value: number) => string) => value < 0 ? "–" : text(value);
    const all: (Column<number> | false)[] = [
      { heading: "flow", words: true, text: (k) => model.flowName(k), value: (k) => model.flowName(k) },
      flows.pool.names.length > 0 && { heading: "pool", words: true, text: (k) => model.pool(k), value: (k) => model.pool(k) },
      flows.user.names.length > 0 && { heading: "user", words: true, text: (k) => model.user(k), value: (k) => model.user(k) },
      { heading: "released", text: (k) => instant(doc, model.release(k)), value: (k) => model.release(k) },
      anyDeadline && { heading: "deadline", text: (k) => model.deadline(k) === null ? "–" : instant(doc, model.deadline(k)!), value: (k) => model.deadline(k) },
      { heading: "done", text: (k) => model.completed(ran(), k) === null ? "failed" : instant(doc, model.completed(ran(), k)!), value: (k) => model.completed(ran(), k) },
      anyDeadline && {
        heading: "lateness",
        text: (k) => this.fate(k),
        value: (k) => model.fate(ran(), k) === "failed" ? Infinity : model.lateness(ran(), k),
      },
      { heading: "response", text: (k) => known(ran().took[k], seconds), value: (k) => ran().took[k] < 0 ? null : ran().took[k] },
      { heading: "wait", text: (k) => known(ran().wait[k], seconds), value: (k) => ran().wait[k] < 0 ? null : ran().wait[k] },
      { heading: "slowdown", text: (k) => this.slowdown(k) === null ? "–" : number(this.slowdown(k)!), value: (k) => this.slowdown(k) },
      { heading: "cost", text: (k) => this.cost(k) === null ? "–" : number(this.cost(k)!), value: (k) => this.cost(k) },
    ];
    return all.filter((column) => column !== false);
  }

  private fate(flow: number): Node {
    const ran = this.model.doc.policies[this.state.policy].ran!, fate = this.model.fate(ran, flow);
    const text = fate === "free" || fate === "failed" ? FATE_WORDS[fate] : lateness(this.model.doc.tick, this.model.lateness(ran, flow));
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
    const word = this.search.value.trim().toLowerCase(), lateOnly = this.late.checked, found: number[] = [];
    for (let flow = 0; flow < model.nFlows; flow++) {
      if (lateOnly && !["late", "failed"].includes(model.fate(ran, flow))) continue;
      const words = `${model.flowName(flow)}\n${model.pool(flow)}\n${model.user(flow)}`.toLowerCase();
      if (!word || words.includes(word)) found.push(flow);
    }
    this.count.textContent = `${found.length.toLocaleString("en-US")} of ${model.nFlows.toLocaleString("en-US")} flows under ${policy.name}`;
    this.table.set(found);
  }

  /** Marks the flow that was chosen. */
  mark(): void { this.table.draw(); }
}
