// Flows of submissions that are not over: looked for, ordered by how urgent they are, drawn as far as they are in view.
import { dot, h, write } from "../dom";
import { count } from "../format";
import { Bulk } from "./bulk";
import { Grid, type GridColumn } from "./grid";
import { FATE_COLOURS, FILTERS, ordered, type Row } from "./rows";
import type { Store } from "./store";
import { away, clock, millis } from "./time";

/** Where rows are cards. */
export const NARROW = matchMedia("(max-width: 720px)");
const HEIGHT = 46, HEIGHT_NARROW = 104;

export class Flows {
  readonly element: HTMLElement;
  private readonly grid: Grid<Row>;
  private readonly bulk: Bulk;
  private readonly search = h("input", { type: "search", placeholder: "name, number or user", "aria-label": "Show flows whose name, number or user has" });
  private readonly only = h("select", { "aria-label": "Show flows that are" });
  private readonly said = h("span", { class: "muted", role: "status" });
  private readonly empty = h("p", { class: "muted" });
  private rows: Row[] = [];

  constructor(private readonly store: Store, onOpen: (number: number) => void) {
    this.bulk = new Bulk(store, () => this.grid.selectAll(false));
    this.grid = new Grid<Row>({
      label: "Flows of unfinished submissions", columns: this.columns(), key: (row) => row.key,
      height: () => NARROW.matches ? HEIGHT_NARROW : HEIGHT,
      title: (row) => `${row.name}, submission ${row.number}, ${row.state}, ${row.verdict.words}`,
      onOpen: (row) => onOpen(row.number), onOrder: () => this.show(),
      may: (row) => this.bulk.may(row), onSelect: (rows) => this.bulk.draw(rows),
    });
    this.only.append(...FILTERS.map(([value, text]) => h("option", { value }, text)));
    this.search.addEventListener("input", () => this.show());
    this.only.addEventListener("change", () => this.show());
    NARROW.addEventListener("change", () => this.show());
    this.element = h("div", {},
      h("div", { class: "controls" }, h("label", {}, "Find ", this.search), h("label", {}, "Show ", this.only), this.said),
      this.bulk.element, this.grid.element, this.empty);
  }

  private columns(): GridColumn<Row>[] {
    return [
      { heading: "flow", order: "name", cell: lines("flow", (row) => row.name, (row) => `${row.number} ${this.name(row)} · ${row.submission.user}`) },
      { heading: "state", order: "state", cell: lines("state", (row) => row.state, (row) => this.why(row)) },
      { heading: "done", order: "progress", largest: true, cell: progress },
      { heading: "deadline", order: "deadline", cell: lines("deadline", (row) => this.time(row.deadline), (row) => row.deadline === null ? "" : away(row.deadline, this.store.now)) },
      { heading: "predicted", order: "predicted", cell: lines("predicted", (row) => this.time(row.predicted), (row) => this.between(row)) },
      { heading: "in time?", order: "urgency", cell: fate },
    ];
  }

  /** The name of the submission, with the time of its schedule. */
  private name({ submission: { name, occurrence } }: Row): string {
    return occurrence ? `${name}, ${this.time(millis(occurrence.at))}` : name;
  }

  private time(at: number | null): string { return at === null ? "–" : clock(at, this.store.now); }

  private between({ flow, predicted, state }: Row): string {
    if (predicted !== null && predicted < this.store.now && !["finished", "failed", "cancelled"].includes(state)) return "has passed, not finished";
    if (!flow?.predicted_between) return flow?.unknown ? "unknown (never ran)" : "";
    const [from, to] = flow.predicted_between.map((at) => this.time(millis(at)));
    return from === to ? "" : `${from} – ${to}`;
  }

  private why({ submission, flow, state }: Row): string {
    if (flow?.cause) return flow.cause;
    if (submission.why && submission.why !== state) return submission.why;
    if (flow?.why) return flow.why;
    const parts = [flow && flow.running > 0 ? `${count(flow.running, "task")} running` : "", submission.priority > 0 ? `priority ${submission.priority}` : ""];
    return parts.filter(Boolean).join(", ");
  }

  /** What is known has changed. */
  draw(rows: Row[]): void {
    this.rows = rows;
    this.show();
  }

  private show(): void {
    const word = this.search.value.trim().toLowerCase(), is = FILTERS.find(([value]) => value === this.only.value)![2];
    const found = this.rows.filter((row) => is(row) && (!word || row.words.includes(word)));
    const { more } = this.store, all = this.rows.length;
    const said = !this.store.service ? "" : `${found.length.toLocaleString("en-US")} of ${count(all, "flow")}${more > 0 ? `; ${count(more, "older submission")} of the queue are not shown` : ""}`;
    write(this.said, said);
    this.grid.element.hidden = found.length === 0;
    this.grid.set(ordered(found, this.grid.by, this.grid.descending));
    if (found.length === 0) this.bulk.element.hidden = true;
    this.empty.hidden = found.length > 0;
    this.empty.textContent = !this.store.service ? "Not available yet." : all === 0 ? "No submission waits or runs." : "No flow matches.";
  }
}

/** Two lines of text. */
function lines(kind: string, first: (row: Row) => string, second: (row: Row) => string): (cell: HTMLElement) => (row: Row) => void {
  return (cell) => {
    const above = h("div", { class: "first" }), below = h("div", { class: "second" });
    cell.className = `cell-${kind}`;
    cell.append(above, below);
    return (row) => {
      const text = second(row);
      write(above, first(row));
      write(below, text);
      if (below.title !== text) below.title = text;
    };
  };
}

function progress(cell: HTMLElement): (row: Row) => void {
  const bar = h("span", { class: "bar" }, h("span", { class: "bar-done" }), h("span", { class: "bar-running" })), text = h("div", { class: "second" });
  const [done, running] = [...bar.children] as HTMLElement[];
  cell.className = "cell-progress";
  cell.append(bar, text);
  bar.setAttribute("aria-hidden", "true");
  return ({ flow }) => {
    const tasks = Math.max(1, flow?.tasks ?? 1);
    cell.hidden = !flow;
    write(text, flow ? `${flow.done.toLocaleString("en-US")} of ${count(flow.tasks, "task")}` : "");
    done.style.width = `${(flow?.done ?? 0) / tasks * 100}%`;
    running.style.width = `${(flow?.running ?? 0) / tasks * 100}%`;
  };
}

/** How a deadline fares, by colour and by word. */
function fate(cell: HTMLElement): (row: Row) => void {
  const mark = dot(""), text = h("span", {});
  cell.append(mark, text);
  return ({ verdict }) => {
    const name = `cell-fate fate ${verdict.fate}`;
    if (cell.className !== name) {
      cell.className = name;
      mark.style.background = FATE_COLOURS[verdict.fate];
    }
    write(text, verdict.words);
  };
}
