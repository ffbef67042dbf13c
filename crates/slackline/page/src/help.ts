// Which keys do what.
import { h } from "./dom";

const KEYS: [string, string][] = [
  ["1 … 9", "show the first, second, … policy"],
  ["← →", "earlier, later"],
  ["+ −", "zoom in, zoom out"],
  ["0", "all of the time"],
  ["[ ]", "lower rows, higher rows"],
  ["n p", "the next flow, the one before"],
  ["Esc", "no flow"],
  ["t", "light or dark"],
  ["?", "this list"],
];

export function help(): HTMLDialogElement {
  const dialog = h("dialog", { "aria-labelledby": "help-title" }, h("h2", { id: "help-title" }, "Keys"),
    h("dl", { class: "keys" }, ...KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("p", {}, "In the timeline: drag to move, Ctrl and the wheel to zoom, a double click to see the whole of a flow, a click to choose one."),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  return dialog;
}
