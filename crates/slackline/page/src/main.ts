// The page: its parts, and what the mouse and the keyboard do.
import { Choices } from "./choices";
import { isDark } from "./colour";
import { Comparison } from "./comparison";
import { Curves } from "./curves";
import { Model, answerOf, read, type Doc } from "./data";
import { Detail } from "./detail";
import { h, section } from "./dom";
import { Flows } from "./flows";
import { groups } from "./groups";
import { help } from "./help";
import { keys } from "./keys";
import { made } from "./made";
import { prediction } from "./prediction";
import { OverTime } from "./overtime";
import { Spread } from "./spread";
import { State } from "./state";
import { Timeline } from "./timeline";
import { tooltip } from "./tip";

async function main(): Promise<void> {
  const doc = await read(), model = new Model(doc), state = new State(doc.end);
  state.policy = firstShown(model);
  state.rows = doc.with_bars && model.nSlots <= 2000 && model.ran.length > 0 && doc.policies.some((policy) => policy.ran?.bars?.start.length) ? "slots"
    : model.nJobs > model.nFlows || model.nFlows > 200 ? "jobs" : "flows";
  const anyDeadline = doc.workload.flows.deadline.some((at) => at >= 0);
  state.colour = state.rows === "slots" || model.nFlows <= 11 ? "flow" : anyDeadline ? "fate" : state.rows === "jobs" ? "kind" : "flow";
  const page = document.getElementById("page")!;
  const { element: tip, say } = tooltip();
  const comparison = new Comparison(model, state), timeline = new Timeline(model, state, say), detail = new Detail(model, state);
  const time = new OverTime(model, state, say), spread = new Spread(model, state, say), flows = new Flows(model, state), choices = new Choices(model, state), curves = new Curves(model, say);
  const drawn = model.ran.length > 0, guide = help();
  const byGroup = groups(model), foretold = prediction(model);
  const sections = [
    section("comparison", model.doc.policies.length > 1 ? "Comparison" : "Result", comparison.element),
    doc.extras.curves.length > 0 ? section("curves", "Curves", curves.element) : null,
    foretold ? section("prediction", "Prediction", foretold) : null,
    drawn ? section("timeline", "Timeline", timeline.element, detail.element) : null,
    drawn ? section("load", "Load over time", time.element) : null,
    drawn ? section("flows", "Flows", flows.element) : null,
    drawn ? section("distributions", "Distributions", spread.element) : null,
    byGroup ? section("groups", "Groups", byGroup) : null,
    choices.isNeeded ? section("choices", "Decisions", choices.element) : null,
    section("made", "How this was made", made(doc)),
  ].filter((part) => part !== null);
  const theme = h("button", { type: "button", click: () => turn() }, "Light / dark");
  const turn = () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; state.changed("theme"); };
  page.replaceChildren(
    h("a", { class: "skip", href: "#comparison" }, "Skip to the result"),
    h("header", { class: "top" },
      h("div", {}, h("h1", {}, doc.title), h("p", { class: "muted" }, subtitle(doc))),
      h("nav", { "aria-label": "Parts of the report", class: "no-print" },
        ...sections.map((part) => h("a", { href: `#${part.id}` }, part.querySelector("h2")!.textContent!)),
        theme, h("button", { type: "button", click: () => guide.showModal() }, "Keys (?)"))),
    timeline.bar,
    h("main", {}, ...sections), guide, tip);

  const draw = { curves: () => curves.draw(), comparison: () => comparison.draw(), timeline: (isMoved = false) => drawn && timeline.draw(isMoved), time: () => drawn && time.draw(),
    spread: () => drawn && spread.draw(), flows: () => drawn && flows.draw(), detail: () => detail.draw(), choices: () => choices.isNeeded && choices.draw() };
  const charts = () => { draw.curves(); draw.comparison(); draw.timeline(); draw.time(); draw.spread(); draw.choices(); };
  const all = () => { charts(); draw.flows(); draw.detail(); };
  state.onChange((what) => {
    if (what === "policy") all();
    else if (what === "theme") { draw.timeline(); draw.comparison(); }
    else if (what === "window") { draw.timeline(true); draw.time(); draw.choices(); }
    else if (what === "view") draw.timeline();
    else if (what === "chosen") detail.show();
    else {
      if (state.selected) timeline.show(state.selected.flow);
      draw.timeline(true);
      draw.detail();
      flows.mark();
    }
  });
  all();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; charts(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.changed("theme"));
  printed(page, state, charts);
  keys(model, state, { turn, help: () => guide.showModal() });
  document.documentElement.dataset.ready = "yes";
}

/** What the workload is; the answer of a search stands by itself. */
function subtitle(doc: Doc): string {
  const lines = doc.head.trim().split("\n");
  return lines.slice(answerOf(doc) === null ? 0 : 1).map((line) => line.replace(`${doc.title}: `, "")).join(" · ");
}

/** The policy that costs least, of those that ran; of a run what happened. */
function firstShown(model: Model): number {
  const cost = model.doc.table.columns.find((column) => column.name === "cost");
  const known = model.ran.filter((k) => cost && cost.values[k] !== null);
  if (known.length === 0 || model.doc.made.verb === "run") return model.ran[0] ?? 0;
  return known.reduce((a, b) => cost!.values[b]! < cost!.values[a]! ? b : a);
}

/** The width of the page on paper in pixels: A4 without its margins. */
const PAPER = 780;

/** Paper is light and narrow, also where the screen is not. Charts are drawn for its width, so that letters keep their size. */
function printed(page: HTMLElement, state: State, draw: () => void): void {
  const root = document.documentElement;
  let before: string | undefined;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("paper");
    state.isPaper = true;
    page.style.width = `${PAPER}px`;
    draw();
    page.style.width = "";
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    root.classList.remove("paper");
    state.isPaper = false;
    draw();
  });
}

main().catch((error: unknown) => {
  document.getElementById("page")!.replaceChildren(h("p", { class: "warning" }, `This report cannot be shown: ${error}`));
  throw error;
});
