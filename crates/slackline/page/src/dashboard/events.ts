// What happened, the latest first; what somebody may want to act on by itself.
import { h } from "../dom";
import type { Happening } from "./api";
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
    this.few = new List("Alerts", "Nothing that somebody has to act on has happened.", onOpen);
    this.all = new List("Events", "Nothing has happened since the service started.", onOpen);
    this.alerts = this.few.element;
    this.element = this.all.element;
  }

  draw(): void {
    const { alerts, events, now } = this.store;
    this.few.draw(alerts, now);
    this.all.draw(events, now);
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

  constructor(label: string, empty: string, private readonly onOpen: (number: number) => void) {
    this.list = h("ol", { class: "events", tabindex: 0, "aria-label": label });
    this.empty = h("p", { class: "muted" }, empty);
    this.more = h("button", { type: "button", class: "more", hidden: true, click: () => { this.most += 200; this.draw(this.events, this.now); } }, "Show more");
    this.element = h("div", {}, this.empty, this.list, this.more);
  }

  draw(events: Happening[], now: number): void {
    [this.events, this.now] = [events, now];
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
    h("span", { class: "message", title: message }, localised(message, now)));
}
