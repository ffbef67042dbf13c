// Charts of lines, as SVG: over time, and as distributions.
import { dash, policyColour } from "./colour";
import { h, svg } from "./dom";
import { marks } from "./format";

export interface Line { policy: number; name: string; points: [number, number][]; strong: boolean }

export interface Frame {
  width: number; height: number; left: number; right: number; top: number; bottom: number;
  x: (value: number) => number;
  /** The most that the y axis shows. */
  most: number;
  xMarks: { at: number; label: string }[];
  /** Marks of the y axis, where round numbers are not what is wanted. */
  yMarks?: { at: number; label: string }[];
  /** How a mark is written of an axis that goes up to the other. */
  yLabel: (value: number, most: number) => string;
  xTitle: string; yTitle: string; label: string;
}

/** Lines in a frame with both axes. */
export function chart(frame: Frame, lines: Line[], more: SVGElement[] = []): SVGElement {
  const { width, height, left, right, top, bottom } = frame, most = frame.most || 1;
  const y = (value: number) => top + (height - top - bottom) * (1 - value / most);
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": frame.label });
  for (const { at, label } of frame.yMarks ?? marks(most, 4).map((at) => ({ at, label: frame.yLabel(at, most) }))) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(at), y2: y(at) }));
    root.append(svg("text", { class: "mark", x: left - 6, y: y(at) + 4, "text-anchor": "end" }, label));
  }
  for (const mark of frame.xMarks) {
    const x = frame.x(mark.at);
    if (x < left - 1 || x > width - right + 1) continue;
    root.append(svg("line", { class: "grid", x1: x, x2: x, y1: top, y2: height - bottom }));
    root.append(svg("text", { class: "mark", x, y: height - bottom + 14, "text-anchor": "middle" }, mark.label));
  }
  root.append(svg("text", { class: "axis", x: 4, y: 11 }, frame.yTitle));
  if (frame.xTitle) root.append(svg("text", { class: "axis", x: width - right, y: height - 3, "text-anchor": "end" }, frame.xTitle));
  root.append(...more);
  for (const line of [...lines].sort((a, b) => Number(a.strong) - Number(b.strong))) {
    if (line.points.length === 0) continue;
    const d = line.points.map(([at, value], k) => `${k ? "L" : "M"}${frame.x(at).toFixed(1)} ${y(Math.min(value, most)).toFixed(1)}`).join("");
    root.append(svg("path", {
      d, class: line.strong ? "line strong" : "line", stroke: policyColour(line.policy),
      "stroke-dasharray": line.strong ? null : dash(line.policy) || null,
    }));
  }
  return root;
}

/** Which line is whose. */
export function legend(entries: { name: string; policy: number; strong: boolean }[]): HTMLElement {
  return h("ul", { class: "legend" }, ...entries.map(({ name, policy, strong }) => {
    const line = svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("line", {
      x1: 1, x2: 25, y1: 5, y2: 5, stroke: policyColour(policy), "stroke-width": strong ? 3 : 1.8,
      "stroke-dasharray": strong ? null : dash(policy) || null,
    }));
    return h("li", {}, line as unknown as Node, ` ${name}`);
  }));
}
