// The machines of the service, where there is more than one, and which of them are gone.
import { dot, h } from "../dom";
import { count } from "../format";
import { FATE_COLOURS } from "./rows";
import type { Store } from "./store";

export class Machines {
  readonly element = h("div", {});
  private drawn = "";

  constructor(private readonly store: Store) {}

  draw(): void {
    const machines = this.store.service?.machines ?? [], drawn = JSON.stringify(machines);
    this.element.parentElement!.hidden = machines.length < 2;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    // Those that are gone come first.
    const ordered = [...machines].sort((a, b) => Number(a.up) - Number(b.up));
    this.element.replaceChildren(h("ul", { class: "machines" }, ...ordered.map(({ machine, slots, up }) =>
      h("li", {}, h("strong", {}, machine), h("span", { class: "muted" }, count(slots, "slot")),
        h("span", { class: up ? "fate met" : "fate late" }, dot(up ? FATE_COLOURS.met : FATE_COLOURS.late), up ? "there" : "gone")))));
  }
}
