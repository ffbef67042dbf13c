// Commands for several rows at once: hold, resume, or cancel, after a question with their number.
import { h, write } from "../dom";
import { count } from "../format";
import { at, Refused } from "./api";
import { mayChange } from "./details";
import { confirmed, notify } from "./dialogs";
import type { Row } from "./rows";
import type { Store } from "./store";

interface Action { path: "hold" | "unhold" | "cancel"; verb: string; past: string; meant: string; no: string }

const ACTIONS: Action[] = [
  { path: "hold", verb: "Hold", past: "held", meant: "Held flows start no more tasks until they are resumed; running tasks end.", no: "Leave them" },
  { path: "unhold", verb: "Resume", past: "resumed", meant: "Resumed flows start when there is room.", no: "Leave them" },
  { path: "cancel", verb: "Cancel", past: "cancelled", meant: "Running tasks are stopped. This cannot be undone; finished jobs keep their output.", no: "Keep them" },
];
/** Requests at a time, and names that are read out before. */
const AT_ONCE = 8, NAMES = 10;

export class Bulk {
  readonly element: HTMLElement;
  private readonly said = h("span", { class: "muted", role: "status" });
  private readonly buttons: HTMLButtonElement[];
  private rows: Row[] = [];

  constructor(private readonly store: Store, onNone: () => void) {
    const button = (text: string, click: () => unknown, kind: string | null = null) => h("button", { type: "button", class: kind, disabled: true, click }, text);
    this.buttons = [
      ...ACTIONS.map((action) => button(`${action.verb}…`, () => this.act(action), action.path === "cancel" ? "danger" : null)),
      button("Select none", onNone),
    ];
    this.element = h("div", { class: "controls bulk", hidden: true }, this.said, h("span", { class: "buttons" }, ...this.buttons));
  }

  /** Whether it may be selected: by those who may change it. */
  may(row: Row): boolean { return mayChange(this.store.me, row.submission.user); }

  draw(rows: Row[]): void {
    this.rows = rows;
    this.element.hidden = (this.store.me?.role ?? "look") === "look";
    write(this.said, rows.length === 0 ? "None is selected" : `${count(rows.length, "flow")} selected`);
    for (const button of this.buttons) button.disabled = rows.length === 0;
  }

  private async act({ path, verb, past, meant, no }: Action): Promise<void> {
    const { rows } = this, n = count(rows.length, "flow"), more = rows.length - NAMES;
    const names = `${rows.slice(0, NAMES).map((row) => `${row.name} of ${row.number}`).join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
    if (!await confirmed(`${verb} ${n}?`, `${names}. ${meant}`, `${verb} ${n}`, no)) return;
    const refused: string[] = [], rest = [...rows];
    const worker = async () => {
      for (let row = rest.shift(); row; row = rest.shift()) {
        const refusal = await this.ask(row, path);
        if (refusal) refused.push(`${row.name} of ${row.number}: ${refusal}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const done = count(rows.length - refused.length, "flow"), is = rows.length - refused.length === 1 ? "is" : "are";
    notify([`${done} ${is} ${past}`, ...refused].join("\n"), refused.length > 0);
    this.store.touch(...new Set(rows.map((row) => row.number)));
  }

  /** Has it done with a flow, or with a submission that has no other; gives why it was not. */
  private async ask({ number, submission, flow }: Row, path: string): Promise<string | null> {
    try {
      await this.store.client.act("POST", at(`/api/v1/submissions/${number}/${path}`, { flow: submission.flows.length > 1 ? flow!.flow : null }));
      return null;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return error.message;
    }
  }
}
