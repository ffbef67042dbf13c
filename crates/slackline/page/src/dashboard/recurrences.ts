// What is submitted again and again, and when next.
import { h } from "../dom";
import type { Recurrence } from "./api";
import { keepingFocus, mayChange } from "./details";
import { confirmed, does } from "./dialogs";
import type { Store } from "./store";
import { away, clock, millis } from "./time";

const OVERLAPS: Record<string, string> = { wait: "the next waits", skip: "the next is left out", replace: "the next replaces it" };

/** How far away that is, to the minute: it is not drawn more often. */
function soon(left: number): string {
  return left < 90_000 ? "within 2 min" : away(Math.round(left / 60_000) * 60_000, 0);
}

export class Recurrences {
  readonly element = h("div", {});
  private drawn = "";

  constructor(private readonly store: Store) {}

  draw(): void {
    const { recurrences, me, now, service } = this.store;
    // How far away things are is written down to the minute here.
    const drawn = JSON.stringify([recurrences, me, service !== null, Math.floor(now / 60_000)]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    keepingFocus(this.element, () => this.element.replaceChildren(
      recurrences.length === 0 ? h("p", { class: "muted" }, service ? "There are no schedules." : "Not available yet.") : this.table(recurrences)));
  }

  private table(recurrences: Recurrence[]): HTMLElement {
    const may = recurrences.some((one) => mayChange(this.store.me, one.user));
    return h("div", { class: "scroll-x cards", tabindex: 0, role: "region", "aria-label": "Table of schedules" }, h("table", { class: "wide-table" },
      h("thead", {}, h("tr", {}, ...["name", "by", "schedule", "if one is not over", "last", "next"].map((text) => h("th", { scope: "col", class: "words" }, text)), may ? h("td", {}) : "")),
      h("tbody", {}, ...recurrences.map((one) => this.row(one, may)))));
  }

  private row(one: Recurrence, may: boolean): HTMLElement {
    const { now, me } = this.store, { name, user, schedule, overlap, paused, last, next } = one;
    const time = (at?: string) => at ? clock(millis(at), now) : "–";
    return h("tr", {}, h("th", { scope: "row", title: name }, name), ...[user, `${schedule.cron}${schedule.zone ? ` ${schedule.zone}` : ""}`, OVERLAPS[overlap] ?? overlap, time(last),
      paused ? "paused" : next ? `${time(next)}, ${soon(millis(next) - now)}` : "–",
    ].map((text) => h("td", { class: "words" }, text)),
    may ? h("td", {}, mayChange(me, user) ? h("span", { class: "buttons" },
      h("button", { type: "button", "data-key": `pause ${name}`, "aria-label": `${paused ? "Go on with" : "Pause"} ${name}`, click: () => this.pause(one) }, paused ? "Go on" : "Pause"),
      h("button", { type: "button", "data-key": `remove ${name}`, "aria-label": `Remove ${name}`, class: "danger", click: () => this.remove(name) }, "Remove…")) : "") : "");
  }

  private async pause({ name, paused }: Recurrence): Promise<void> {
    await does(() => this.store.client.act("POST", `/api/v1/recurrences/${encodeURIComponent(name)}/${paused ? "unpause" : "pause"}`));
    this.store.touch();
  }

  private async remove(name: string): Promise<void> {
    if (!await confirmed(`Remove ${name}?`, "It is not submitted again; its submissions continue.", "Remove it", "Keep it")) return;
    await does(() => this.store.client.act("DELETE", `/api/v1/recurrences/${encodeURIComponent(name)}`));
    this.store.touch();
  }
}
