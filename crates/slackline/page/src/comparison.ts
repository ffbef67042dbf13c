// The policies against their figures, and what follows from them in words.
import { policyColour } from "./colour";
import { answerOf, type Model, type TableColumn } from "./data";
import { lateness } from "./detail";
import { h, plainTable, svg } from "./dom";
import { marks, number, short } from "./format";
import type { State } from "./state";
import { SortedTable, type Column } from "./table";

/** The numbers of figures and of policies that have room beside each other on paper. */
const WIDE = 8, TURNED = 6;
const TIMES = "times are seconds unless they show units";

export class Comparison {
  readonly element = h("div", {});
  private readonly table: SortedTable<number>;
  private readonly bars = h("div", { class: "chart" });
  /** The table turned, for paper. */
  private readonly turned = h("div", { class: "only-print" });
  private readonly words = h("ul", { class: "glance" });
  private all = false;

  constructor(private readonly model: Model, private readonly state: State) {
    const rows = model.doc.policies.map((_, k) => k);
    this.table = new SortedTable(this.columns(), rows, {
      caption: `Policies; the best of each column is marked; ${TIMES}`, chosen: (k) => k === state.policy,
      onChoose: (k) => { if (model.doc.policies[k].ran) { state.policy = k; state.changed("policy"); } },
    });
    this.table.element.classList.add("figures");
    this.table.element.hidden = rows.length === 0;
    const refused = model.doc.policies.filter((policy) => policy.refused);
    const answer = answerOf(model.doc);
    if (answer !== null) this.element.append(h("p", { class: "answer" }, `${answer}.`));
    this.element.append(...model.doc.extras.warnings.map((text) => h("p", { class: "warning" }, `Warning: ${text}.`)), this.words, h("figure", {}, h("figcaption", {}, `Cost (${model.doc.objective}) and the lower bound`), this.bars),
      this.table.element, this.turned, ...refused.map((policy) => h("p", { class: "warning" }, `${policy.name}: ${policy.refused}`)),
      rows.length > 0 ? this.more() : "", ...model.doc.extras.tables.map(({ title, table }) => given(title, table.columns)));
  }

  private more(): HTMLElement {
    const box = h("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      this.all = box.checked;
      const table = new SortedTable(this.columns(), this.model.doc.policies.map((_, k) => k), { caption: `Policies, all figures; ${TIMES}` });
      this.table.element.replaceChildren(...table.element.childNodes);
    });
    return h("label", { class: "no-print" }, box, " all figures");
  }

  private shown(): TableColumn[] {
    return this.model.doc.table.columns.filter((column) => column.shown || this.all && column.values.some((value) => value !== null));
  }

  private columns(): Column<number>[] {
    const shown = this.shown();
    return shown.map((column, k) => ({
      heading: column.heading, words: k === 0, text: (row) => column.texts[row],
      value: (row) => k === 0 ? column.texts[row] : column.values[row], best: (row) => column.best[row],
    }));
  }

  private turn(): void {
    const { policies } = this.model.doc, turned = turnedFor(this.shown(), policies.length, `Policies; the best has a star; ${TIMES}`);
    this.table.element.classList.toggle("no-print", turned !== null);
    this.turned.replaceChildren(...turned ? [turned] : []);
  }

  private column(name: string): TableColumn | undefined {
    return this.model.doc.table.columns.find((column) => column.name === name);
  }

  draw(): void {
    this.table.draw();
    this.turn();
    this.words.replaceChildren(...this.glance().map((line) => h("li", {}, ...line)));
    this.drawBars();
  }

  /** What a reader wants to know first. */
  private glance(): (string | Node)[][] {
    const lines: (string | Node)[][] = [], { doc } = this.model;
    if (doc.answer) lines.push([h("strong", {}, doc.answer.names), doc.answer.rest]);
    for (const text of doc.reliability) {
      const [head, ...rest] = text.trim().split("\n");
      lines.push([head[0].toUpperCase() + head.slice(1), h("ul", {}, ...rest.map((line) => h("li", {}, line.trim())))]);
    }
    const missed = this.column("missed"), deadlines = this.column("deadlines");
    if (missed && deadlines && deadlines.values.some((value) => value)) {
      const said = this.model.ran.map((k) => `${doc.policies[k].name} ${missed.texts[k]}`);
      lines.push([`Deadlines missed: ${said.join(", ")}.`, ...this.late()]);
    }
    const enough = this.enough();
    if (enough) lines.push([enough]);
    lines.push(...doc.extras.notes.map((note) => [note]));
    const failed = doc.policies.filter((policy) => policy.failed > 0).map((policy) => `${policy.failed} under ${policy.name}`);
    if (failed.length) lines.push([`Flows that failed: ${failed.join(", ")}.`]);
    return lines;
  }

  /** The fewest machines from which on no deadline is missed, of the sizes that were tried. */
  private enough(): string | null {
    const curve = this.model.doc.extras.curves.find(({ title, x_title, marked }) => title === "missed" && x_title === "machines" && marked === null);
    if (!curve || !curve.lines.some(({ values }) => values.some((value) => value))) return null;
    const said = curve.lines.map(({ name, values }) => {
      const last = values.findLastIndex((value) => value !== 0);
      return last === values.length - 1 ? `${name} more than ${curve.x[last]}` : `${name} ${curve.x[last + 1]}`;
    });
    return `Fewest machines of ${curve.x.join(", ")} with which no deadline is missed: ${said.join(", ")}.`;
  }

  /** The flows that are late under the policy that is shown, the latest first. */
  private late(): (string | Node)[] {
    const { model } = this, policy = model.doc.policies[this.state.policy], ran = policy.ran;
    if (!ran) return [];
    const late: number[] = [];
    for (let flow = 0; flow < model.nFlows; flow++) if (model.fate(ran, flow) === "late") late.push(flow);
    if (late.length === 0) return [` Under ${policy.name} none is late.`];
    late.sort((a, b) => model.lateness(ran, b)! - model.lateness(ran, a)! || a - b);
    const parts: (string | Node)[] = [` Late under ${policy.name}: `];
    late.slice(0, 5).forEach((flow, k) => {
      if (k > 0) parts.push(", ");
      const choose = () => this.state.choose({ flow, bar: null, policy: this.state.policy });
      parts.push(h("button", { type: "button", class: "link", click: choose }, model.flowName(flow)), ` (${lateness(model.doc.tick, model.lateness(ran, flow))})`);
    });
    parts.push(late.length > 5 ? `, and ${late.length - 5} more.` : ".");
    return parts;
  }

  private drawBars(): void {
    const { model } = this, cost = this.column("cost"), known = model.ran.filter((k) => cost && cost.values[k] !== null);
    const figure = this.bars.parentElement!;
    figure.hidden = known.length < 2;
    if (!cost || known.length < 2) return;
    const width = Math.max(320, this.bars.clientWidth), longest = Math.max(...known.map((k) => model.doc.policies[k].name.length));
    const left = Math.max(116, Math.min(width * 0.4, longest * 6.5 + 12)), letters = Math.floor((left - 6) / 6.5), right = 90, line = 24, height = known.length * line + 26;
    const bound = Math.max(...known.map((k) => model.doc.policies[k].bound ?? 0)), most = Math.max(...known.map((k) => cost.values[k]!), bound);
    if (!(most > 0)) { figure.hidden = true; return; }
    const x = (value: number) => left + Math.max(0, value) / most * (width - left - right);
    const label = `Cost of ${known.map((k) => `${model.doc.policies[k].name} ${cost.texts[k]}`).join(", ")}; lower bound ${number(bound)}`;
    const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    for (const value of marks(most, 5)) {
      root.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 0, y2: height - 18 }));
      root.append(svg("text", { class: "mark", x: x(value), y: height - 5, "text-anchor": "middle" }, short(value, most)));
    }
    known.forEach((k, row) => {
      const y = row * line + 4;
      root.append(svg("rect", { x: left, y, width: x(cost.values[k]!) - left, height: line - 8, fill: policyColour(k) }));
      root.append(svg("text", { class: k === this.state.policy ? "name strong" : "name", x: left - 6, y: y + 12, "text-anchor": "end" }, brief(model.doc.policies[k].name, letters)));
      root.append(svg("text", { class: "name", x: x(cost.values[k]!) + 5, y: y + 12 }, cost.texts[k]));
    });
    if (bound > 0) {
      root.append(svg("line", { class: "bound", x1: x(bound), x2: x(bound), y1: 0, y2: height - 18 }));
      root.append(svg("title", {}, `lower bound ${number(bound)}`));
    }
    this.bars.replaceChildren(root, h("p", { class: "muted" }, bound > 0 ? `The dotted line is the lower bound, ${number(bound)}: no schedule costs less.` : ""));
  }
}

/** Paper is too narrow for many figures beside each other, but not for a few policies: the table turned, if that helps. */
function turnedFor(columns: TableColumn[], n: number, caption: string): HTMLElement | null {
  if (columns.length <= WIDE || n === 0 || n > TURNED) return null;
  const [names, ...figures] = columns;
  const rows = figures.map(({ heading, texts, best }) => [heading, ...texts.map((text, k) => best[k] ? `* ${text}` : text)]);
  return plainTable(caption, [names.heading, ...names.texts], rows);
}

/** A table that the program made. */
function given(title: string, columns: TableColumn[]): HTMLElement {
  const shown = columns.filter((column) => column.shown), rows = (columns[0]?.texts ?? []).map((_, k) => k);
  const made = shown.map((column, k): Column<number> => ({
    heading: column.heading || "what", words: k === 0 || column.values.every((value) => value === null), text: (row) => column.texts[row], best: (row) => column.best[row],
    value: (row) => column.values[row] ?? column.texts[row],
  }));
  const table = new SortedTable(made, rows, { caption: title, page: 60 }).element, turned = turnedFor(shown, rows.length, title);
  table.classList.add("figures");
  if (turned) table.classList.add("no-print");
  return h("div", {}, table, turned && h("div", { class: "only-print" }, turned));
}

function brief(name: string, most: number): string { return name.length > most ? `${name.slice(0, most - 1)}…` : name; }
