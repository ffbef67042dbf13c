// Submissions that are over, the latest first.
import { h } from "../dom";
import { duration } from "../format";
import { SortedTable } from "../table";
import type { Submission } from "./api";
import { does } from "./dialogs";
import { fated, verdict, type Fate } from "./rows";
import type { Store } from "./store";
import { clock, millis } from "./time";

const PAGE = 10;

export class Over {
  readonly element: HTMLElement;
  private readonly table: SortedTable<Submission>;
  private readonly older = h("button", { type: "button", class: "more", hidden: true }, "Load older ones");
  private readonly empty = h("p", { class: "muted" }, "Not available yet.");
  private drawn: Submission[] = [];

  constructor(private readonly store: Store, onOpen: (number: number) => void) {
    const time = (at?: string) => at ? clock(millis(at), store.now) : "–", took = (one: Submission) => one.ended ? (millis(one.ended) - millis(one.submitted)) / 1000 : null;
    this.table = new SortedTable<Submission>([
      { heading: "submission", text: (one) => `${one.number} ${one.name}`, value: (one) => one.number },
      { heading: "by", words: true, text: (one) => one.user, value: (one) => one.user },
      { heading: "state", words: true, text: (one) => one.state, value: (one) => one.state },
      { heading: "in time?", words: true, text: fates, value: (one) => fates(one).textContent },
      { heading: "finished", text: (one) => time(one.ended), value: (one) => one.ended ? millis(one.ended) : null },
      { heading: "took", text: (one) => took(one) === null ? "–" : duration(took(one)!), value: took },
      { heading: "why", words: true, text: why, value: (one) => one.why ?? null },
    ], [], { caption: "Finished submissions that the service remembers", sort: 4, descending: true, page: PAGE, onChoose: (one) => onOpen(one.number) });
    this.older.addEventListener("click", () => void does(async () => { await store.olderOver(); return "Older ones are shown"; }));
    this.table.element.hidden = true;
    this.element = h("div", { class: "cards" }, this.empty, this.table.element, this.older);
  }

  draw(): void {
    const { over, overBefore } = this.store, { drawn } = this;
    this.older.hidden = overBefore === undefined;
    this.empty.hidden = over.length > 0;
    this.empty.textContent = "No submission has finished yet.";
    this.table.element.hidden = over.length === 0;
    if (over.length === drawn.length && over.every((one, k) => one.number === drawn[k].number)) return;
    this.drawn = over;
    this.table.set(over);
  }
}

function why(one: Submission): HTMLElement {
  const text = one.why ?? one.flows.find((flow) => flow.cause)?.cause ?? "";
  return h("div", { class: "message", title: text }, text);
}

/** How the worst of its flows fared. */
function fates(one: Submission): HTMLElement {
  if (one.state === "rejected") return fated({ fate: "likely", words: "never begun" });
  const order: Fate[] = ["failed", "late", "likely", "met", "unknown", "free"];
  const all = one.flows.map((flow) => verdict(flow, millis(one.ended ?? one.submitted)));
  const worst = all.sort((a, b) => order.indexOf(a.fate) - order.indexOf(b.fate))[0];
  return worst ? fated(worst) : h("span", {}, "–");
}
