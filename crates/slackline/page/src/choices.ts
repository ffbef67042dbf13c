// Which rules policies chose that choose between them, over time.
import { shareColour } from "./colour";
import type { Model } from "./data";
import { h, plainTable, svg } from "./dom";
import { count, headed, instant, moments, number, timeMarks } from "./format";
import { GUTTER, RIGHT } from "./gantt";
import type { State } from "./state";

const SHOWN = 500;

/** The rule without its parameters: there are more rules with them than colours. */
const plain = (rule: string): string => rule.split(":", 1)[0]!;

export class Choices {
  readonly element = h("div", {});

  constructor(private readonly model: Model, private readonly state: State) {}

  /** Whether any policy chose anything. */
  get isNeeded(): boolean { return this.model.ran.some((k) => this.model.doc.policies[k].ran!.choices.length > 0); }

  draw(): void {
    const open = [...this.element.querySelectorAll("details")].map((details) => details.open);
    const those = this.model.ran.filter((k) => this.model.doc.policies[k].ran!.choices.length > 0);
    this.element.replaceChildren(...those.map((policy) => this.strip(policy)));
    this.element.querySelectorAll("details").forEach((details, k) => { details.open = open[k] ?? false; });
  }

  private strip(policy: number): HTMLElement {
    const { doc } = this.model, { choices } = doc.policies[policy].ran!, { from, to } = this.state;
    const times = new Map<string, number>();
    for (const { rule } of choices) times.set(plain(rule), (times.get(plain(rule)) ?? 0) + 1);
    const rules = [...times].sort((a, b) => b[1] - a[1]).map(([rule]) => rule);
    const width = Math.max(320, this.element.clientWidth), x = (at: number) => GUTTER + (at - from) / (to - from) * (width - GUTTER - RIGHT);
    const label = `Rules that ${doc.policies[policy].name} chose: ${rules.map((rule) => `${rule} ${count(times.get(rule)!, "time")}`).join(", ")}`;
    const root = svg("svg", { width, height: 46, viewBox: `0 0 ${width} 46`, role: "img", "aria-label": label });
    choices.forEach((choice, k) => {
      const end = choices[k + 1]?.at ?? doc.end;
      if (end < from || choice.at > to) return;
      const left = Math.max(GUTTER, x(choice.at)), right = Math.min(width - RIGHT, x(end));
      root.append(svg("rect", { x: left, y: 2, width: Math.max(0.5, right - left), height: 24, fill: shareColour(rules.indexOf(plain(choice.rule))) },
        svg("title", {}, `${instant(doc, choice.at)}: ${choice.rule} (${choice.by}), ${count(choice.flows, "flow")}`)));
    });
    for (const mark of timeMarks(doc, from, to, width / 90)) root.append(svg("text", { class: "mark", x: x(mark.at), y: 42, "text-anchor": "middle" }, mark.label));
    const keys = rules.map((rule, k) => {
      const dot = h("span", { class: "dot" });
      dot.style.background = shareColour(k);
      return h("li", {}, dot, `${rule}: ${count(times.get(rule)!, "decision")}`);
    });
    const time = moments(doc), rows = choices.slice(0, SHOWN).map((choice) => [time.text(choice.at), choice.rule, choice.by, choice.cost === null ? "–" : number(choice.cost), String(choice.flows)]);
    const caption = choices.length > SHOWN ? `The first ${SHOWN} of ${choices.length} decisions` : "Decisions";
    return h("figure", {}, h("figcaption", {}, `Rules that ${doc.policies[policy].name} chose`), root as unknown as Node as HTMLElement, h("ul", { class: "legend" }, ...keys),
      h("details", { class: "as-table" }, h("summary", {}, "As a table: decisions"),
        plainTable(caption, [headed("at", time.unit), "rule", "by", "estimated cost of the active flows", "flows"], rows)));
  }
}
