// The keyboard, wherever nothing is being typed.
import type { Model } from "./data";
import type { State } from "./state";

export function keys(model: Model, state: State, does: { turn: () => void; help: () => void }): void {
  const order = Array.from({ length: model.nFlows }, (_, k) => k).sort((a, b) => model.release(a) - model.release(b) || a - b);
  const next = (by: number) => {
    if (order.length === 0) return;
    const at = state.selected ? order.indexOf(state.selected.flow) + by : by > 0 ? 0 : order.length - 1;
    state.select({ flow: order[(at + order.length) % order.length], bar: null, policy: state.policy });
  };
  // The chosen flow stays in view.
  const zoom = (factor: number) => {
    const ran = model.doc.policies[state.policy].ran, flow = state.selected?.flow;
    const middle = ran && flow !== undefined ? model.release(flow) + Math.max(0, ran.took[flow]) / 2 : NaN;
    state.zoom(factor, middle >= state.from && middle <= state.to ? middle : undefined);
  };
  const tall = (factor: number) => { state.tall = Math.max(1, state.tall * factor); state.changed("view"); };
  const all: Record<string, () => void> = {
    ArrowLeft: () => state.pan(-0.15), ArrowRight: () => state.pan(0.15),
    "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7),
    "0": () => state.look(0, state.whole), "[": () => tall(1 / 1.5), "]": () => tall(1.5),
    n: () => next(1), p: () => next(-1), Escape: () => state.select(null), t: does.turn, "?": does.help,
  };
  addEventListener("keydown", (event) => {
    const on = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || on.closest("input:not([type=checkbox]), select, textarea, dialog")) return;
    const place = Number(event.key) - 1;
    if (place >= 0 && model.doc.policies[place]?.ran) { state.policy = place; state.changed("policy"); return; }
    const isArrow = event.key.startsWith("Arrow");
    // Arrows scroll what can be scrolled sideways, unless that is the timeline.
    if (isArrow && on.closest(".scroll-x, pre")) return;
    const does = all[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}
