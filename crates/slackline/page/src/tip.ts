// What lies under the pointer, said beside it.
import { h } from "./dom";

export type Say = (at: MouseEvent, lines: string[] | null) => void;

export function tooltip(): { element: HTMLElement; say: Say } {
  const element = h("div", { class: "tip", role: "tooltip", hidden: true });
  const say: Say = (event, lines) => {
    element.hidden = lines === null;
    if (!lines) return;
    element.replaceChildren(...lines.map((line) => h("div", {}, line)));
    const left = Math.min(event.clientX + 14, innerWidth - element.offsetWidth - 8);
    const below = event.clientY + 16 + element.offsetHeight < innerHeight;
    element.style.transform = `translate(${Math.max(4, left)}px, ${below ? event.clientY + 16 : event.clientY - element.offsetHeight - 10}px)`;
  };
  // What moves what is pointed at, or takes the reader elsewhere, makes it untrue.
  const hide = () => { element.hidden = true; };
  for (const kind of ["keydown", "wheel", "scroll", "pointerdown"]) addEventListener(kind, hide, { capture: true, passive: true });
  return { element, say };
}
