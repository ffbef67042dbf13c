// What happened, the latest first; alerts have a separate list.
import { h, write } from "../dom";
import type { Happening, Submission } from "./api";
import { isAlert, type Store } from "./store";
import { clock, localised, millis } from "./time";

/** As many are shown at first, and more at a time. */
const SHOWN = 40;

export class Events {
  readonly alerts: HTMLElement;
  readonly element: HTMLElement;
  private readonly few: List;
  private readonly all: List;

  constructor(private readonly store: Store, onOpen: (number: number) => void) {
    this.few = new List("Alerts", "No alerts: no action is needed.", onOpen);
    this.all = new List("Events", "No events since the service started.", onOpen);
    this.alerts = this.few.element;
    this.element = this.all.element;
  }

  draw(): void {
    const { alerts, events, now } = this.store;
    this.few.draw(alerts, now, this.settled());
    this.all.draw(events, now);
  }

  /** The text about an alert whose flow is done since, or a later submission of its name, which may be of another night. */
  private settled(): (alert: Happening) => string {
    const { store } = this, done = new Map<string, [number, string][]>();
    const add = (one: Submission, flow: string, at?: string) => {
      const key = `${one.name}\n${flow}`;
      if (at) done.set(key, [...done.get(key) ?? [], [one.number, at]]);
    };
    // Of those that are not known, because they were over too long ago, one may have been done earlier.
    const since = store.overBefore === undefined ? 0 : Math.min(...store.over.map((one) => one.number));
    for (const one of [...store.open.values(), ...store.over]) {
      for (const flow of one.flows) if (flow.state === "finished") add(one, flow.flow, flow.completion);
      if (one.state === "finished") add(one, "", one.ended);
    }
    return ({ kind, number = 0, name, flow = "" }) => {
      const later = kind === "alert_failed" ? [] : (done.get(`${name}\n${flow}`) ?? []).filter(([other]) => other >= number);
      if (later.length === 0) return "";
      const [other, at] = later.reduce((first, one) => one[0] < first[0] ? one : first);
      const when = clock(millis(at), store.now);
      if (other !== number && number < since) return "";
      return other === number ? `Finished at ${when}.` : `A later one of its name, ${other}, finished at ${when}.`;
    };
  }
}

class List {
  readonly element: HTMLElement;
  private readonly list: HTMLElement;
  private readonly empty: HTMLElement;
  private readonly more: HTMLElement;
  private readonly made = new Map<Happening, HTMLElement>();
  private most = SHOWN;
  private events: Happening[] = [];
  private now = 0;
  private settled: (event: Happening) => string = () => "";

  constructor(label: string, empty: string, private readonly onOpen: (number: number) => void) {
    this.list = h("ol", { class: "events", tabindex: 0, "aria-label": label });
    this.empty = h("p", { class: "muted" }, empty);
    this.more = h("button", { type: "button", class: "more", hidden: true, click: () => { this.most += 200; this.draw(this.events, this.now, this.settled); } }, "Show more");
    this.element = h("div", {}, this.empty, this.list, this.more);
  }

  draw(events: Happening[], now: number, settled = this.settled): void {
    [this.events, this.now, this.settled] = [events, now, settled];
    const shown = events.slice(0, this.most), wanted = new Set(shown);
    for (const [event, item] of this.made) if (!wanted.has(event)) { item.remove(); this.made.delete(event); }
    // What is there stays: new ones are put before it.
    let next: Element | null = this.list.firstElementChild;
    for (const event of shown) {
      const known = this.made.get(event);
      if (known) { next = known.nextElementSibling; continue; }
      const item = this.item(event);
      this.made.set(event, item);
      this.list.insertBefore(item, next);
    }
    for (const [event, item] of this.made) write(item.querySelector(".settled")!, settled(event));
    this.list.hidden = events.length === 0;
    this.empty.hidden = events.length > 0;
    this.more.hidden = events.length <= this.most;
  }

  private item(event: Happening): HTMLElement {
    const { number, name } = event;
    return item(event, this.now, number === undefined ? h("span", {})
      : h("button", { type: "button", class: "link", title: `Show submission ${number}`, click: () => this.onOpen(number) }, name ? `${number} ${name}` : String(number)));
  }
}

/** An event in a list, with something before its message. */
export function item(event: Happening, now: number, before: Node): HTMLElement {
  const { at, kind, message } = event;
  return h("li", {}, h("time", { datetime: at, class: "muted" }, clock(millis(at), now)),
    h("span", { class: isAlert(event) ? "kind fate late" : "kind" }, kind.replaceAll("_", " ")), before,
    h("div", {}, h("span", { class: "message", title: message }, localised(message, now)), h("span", { class: "settled muted" })));
}
