// The timeline with what chooses its policy, its rows and its colours.
import { FATES, FATE_WORDS, KINDS, policyColour, shareColour } from "./colour";
import type { Model } from "./data";
import { lateness, tooltipLines } from "./detail";
import { asTable, dot, h, plainTable, write } from "./dom";
import { alike, headed, inColumn, instant, moments } from "./format";
import { GUTTER, Gantt } from "./gantt";
import type { State } from "./state";

const HEIGHT = 430, BESIDE = 300, ROWS = 300;
/** Two clicks within this time are a double click, milliseconds. */
const DOUBLE_CLICK = 350;
const WORDS = { slots: "slots (every task)", flows: "flows", jobs: "jobs", shares: "slots per flow" } as const;

export class Timeline {
  readonly element = h("div", {});
  /** Which policy is shown: stays in sight. */
  readonly bar = h("div", { class: "policies", role: "region", "aria-label": "Selected policy" });
  private readonly main: Gantt;
  private readonly other: Gantt;
  private readonly beside: HTMLElement;
  private readonly legend = h("ul", { class: "legend" });
  private readonly title = h("figcaption", {});
  private readonly otherTitle = h("figcaption", {});

  constructor(private readonly model: Model, private readonly state: State, private readonly say: (at: MouseEvent, lines: string[] | null) => void) {
    const { doc } = model;
    const slots = Math.min(HEIGHT, Math.max(150, Math.max(model.nSlots, Math.min(model.nFlows, 40)) * 16 + 30));
    this.main = new Gantt(model, state, () => state.policy, slots);
    this.other = new Gantt(model, state, () => state.beside, Math.min(BESIDE, slots));
    for (const gantt of [this.main, this.other]) this.listen(gantt, gantt === this.main ? () => state.policy : () => state.beside);
    for (const k of doc.policies.keys()) this.bar.append(this.button(k));
    this.bar.hidden = model.ran.length < 2;
    this.beside = h("figure", {}, this.otherTitle, this.other.element);
    this.element.append(this.controls(), this.legend, h("figure", {}, this.title, this.main.element,
      asTable("the flows of the timeline", () => this.table())), this.beside);
  }

  private button(k: number): HTMLElement {
    const policy = this.model.doc.policies[k];
    return h("button", { type: "button", disabled: !policy.ran, title: policy.refused, "data-policy": k, click: () => { this.state.policy = k; this.state.changed("policy"); } },
      k < 9 && h("kbd", { "aria-hidden": "true" }, String(k + 1)), dot(policyColour(k)), policy.name);
  }

  private controls(): HTMLElement {
    const { model, state } = this, { doc } = model;
    const names = (Object.keys(WORDS) as (keyof typeof WORDS)[]).filter((name) => name !== "slots" || doc.with_bars && doc.policies.some((policy) => policy.ran?.bars?.start.length));
    const rows = h("select", { id: "rows" }, ...names.map((name) => h("option", { value: name, selected: name === state.rows }, WORDS[name])));
    rows.addEventListener("change", () => { state.rows = rows.value as State["rows"]; state.tall = 1; state.changed("view"); });
    const colour = h("select", {}, h("option", { value: "flow", selected: state.colour === "flow" }, "flow"), h("option", { value: "fate", selected: state.colour === "fate" }, "deadline"),
      h("option", { value: "kind", selected: state.colour === "kind" }, "map or reduce"));
    colour.addEventListener("change", () => { state.colour = colour.value as State["colour"]; state.changed("view"); });
    const beside = h("select", {}, h("option", { value: -1 }, "none"), ...model.ran.map((k) => h("option", { value: k }, doc.policies[k].name)));
    beside.addEventListener("change", () => { state.beside = Number(beside.value); state.changed("view"); });
    const button = (text: string, label: string, does: () => void) => h("button", { type: "button", "aria-label": label, title: label, click: does }, text);
    const tall = (factor: number) => { state.tall = Math.max(1, state.tall * factor); state.changed("view"); };
    return h("div", { class: "controls no-print" },
      h("label", {}, "Rows ", rows), h("label", {}, "Colours ", colour), model.ran.length > 1 && h("label", {}, "Beside it ", beside),
      h("span", { class: "buttons" },
        button("−", "Zoom out", () => state.zoom(1 / 0.6)), button("+", "Zoom in", () => state.zoom(0.6)),
        button("◀", "Earlier", () => state.pan(-0.4)), button("▶", "Later", () => state.pan(0.4)), button("All", "All of the time", () => state.look(0, state.whole)),
        button("⇕", "Higher rows", () => tall(2)), button("⤓", "Lower rows", () => tall(0.5))));
  }

  private listen(gantt: Gantt, policy: () => number): void {
    const { state, model } = this, on = gantt.element;
    let drag: { x: number; from: number; to: number; moved: boolean } | null = null;
    const place = (event: MouseEvent) => {
      const box = gantt.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top] as const;
    };
    on.addEventListener("pointerdown", (event) => { if (event.button === 0) drag = { x: event.clientX, from: state.from, to: state.to, moved: false }; });
    addEventListener("pointerup", () => { drag = null; });
    on.addEventListener("pointermove", (event) => {
      if (drag && Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
      if (drag?.moved) {
        const by = (drag.x - event.clientX) / (gantt.canvas.clientWidth - GUTTER) * (drag.to - drag.from);
        state.look(drag.from + by, drag.to + by);
        return this.say(event, null);
      }
      const [x, y] = place(event), ran = model.doc.policies[policy()]?.ran, hit = ran ? gantt.hit(x, y) : null;
      on.style.cursor = hit ? "pointer" : "grab";
      this.say(event, hit ? tooltipLines(model, ran!, hit) : null);
    });
    on.addEventListener("pointerleave", (event) => this.say(event, null));
    let wasDrag = false, later = 0;
    on.addEventListener("pointerup", () => { wasDrag = drag?.moved ?? false; }, { capture: true });
    on.addEventListener("click", (event) => {
      if (wasDrag) return;
      const hit = gantt.hit(...place(event));
      state.select(hit && { flow: hit.flow, bar: hit.bar, policy: policy() });
      clearTimeout(later);
      // A second click may come, and must find the timeline where it was.
      if (hit) later = setTimeout(() => state.changed("chosen"), DOUBLE_CLICK);
    });
    on.addEventListener("dblclick", (event) => {
      clearTimeout(later);
      const hit = gantt.hit(...place(event)), ran = model.doc.policies[policy()]?.ran;
      if (!hit || !ran) return;
      const release = model.release(hit.flow), done = model.completed(ran, hit.flow) ?? model.doc.end, room = (done - release) * 0.1;
      state.look(release - room, done + room);
    });
    on.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        state.zoom(Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY * 0.004))), gantt.ticks(place(event)[0]));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        state.pan((event.deltaX || event.deltaY) / gantt.canvas.clientWidth);
      }
    }, { passive: false });
  }

  /** Draws it; with `isMoved` scrolled to the flow that is selected. */
  draw(isMoved: boolean): void {
    const { model, state } = this, { doc } = model, ran = doc.policies[state.policy].ran;
    for (const button of this.bar.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.policy) === state.policy));
    const what = `${WORDS[state.rows]} over time, ${instant(doc, state.from)} to ${instant(doc, state.to)}`;
    const reveal = isMoved && state.selected ? state.selected.flow : null;
    this.beside.hidden = state.beside < 0;
    this.main.draw(reveal);
    const title = this.titleOf(this.main, state.policy, what);
    write(this.title, title);
    this.main.element.setAttribute("aria-label", `Timeline of ${title}. The table after it says the same in words.`);
    if (state.beside >= 0) {
      this.other.draw(reveal);
      write(this.otherTitle, this.titleOf(this.other, state.beside, what));
      this.other.element.setAttribute("aria-label", `Timeline of ${this.otherTitle.textContent}`);
    }
    if (ran) this.legend.replaceChildren(...this.keys(ran.largest));
  }

  private titleOf(gantt: Gantt, policy: number, what: string): string {
    const count = (n: number) => n.toLocaleString("en-US"), { rows } = this.state;
    const those = gantt.nShown < gantt.nRows ? `; ${count(gantt.nShown)} of ${count(gantt.nRows)} ${rows} have something there` : "";
    return `${this.model.doc.policies[policy].name}: ${what}${those}`;
  }

  /** Moves the window of time to a flow that has nothing in it. */
  show(flow: number): void {
    const { model, state } = this, ran = model.doc.policies[state.policy].ran;
    if (!ran) return;
    const release = model.release(flow), done = model.completed(ran, flow) ?? model.doc.end, half = (state.to - state.from) / 2;
    if (release > state.to || done < state.from) state.look((release + done) / 2 - half, (release + done) / 2 + half);
  }

  private keys(largest: number[]): HTMLElement[] {
    const { model, state } = this;
    const key = (colour: string, text: string, flow: number | null) => {
      const choose = () => state.choose({ flow: flow!, bar: null, policy: state.policy });
      return h("li", {}, flow === null ? h("span", {}, dot(colour), text) : h("button", { type: "button", class: "link", click: choose }, dot(colour), text));
    };
    if (state.colour === "fate" && state.rows !== "shares") {
      return [...(Object.keys(FATES) as (keyof typeof FATES)[]).map((fate) => key(FATES[fate], FATE_WORDS[fate], null)), ...this.deadlineKey()];
    }
    if (state.colour === "kind" && state.rows !== "shares") {
      return [key(KINDS.map, "maps", null), key(KINDS.reduce, "reduces", null), ...(state.rows === "slots" ? [] : [key(shareColour(99), "waits for its first slot", null)]), ...this.deadlineKey()];
    }
    const keys = largest.map((flow, k) => key(shareColour(k), model.flowName(flow), flow));
    if (model.nFlows > largest.length) keys.push(key(shareColour(99), "all other flows", null));
    return [...keys, ...this.deadlineKey()];
  }

  /** What the marks of deadlines mean, or why there are none. */
  private deadlineKey(): HTMLElement[] {
    const { rows } = this.state, isMarked = rows === "flows" || rows === "jobs";
    if (!isMarked || !this.model.doc.workload.flows.deadline.some((at) => at >= 0)) return [];
    return [this.main.marksDeadlines ? h("li", {}, "▼ deadline") : h("li", { class: "no-print" }, "▼ deadlines are marked where rows are higher: zoom in")];
  }

  private table(): HTMLElement {
    const { model, state } = this, { doc } = model, ran = doc.policies[state.policy].ran!;
    const flows = Array.from({ length: model.nFlows }, (_, k) => k).sort((a, b) => model.release(a) - model.release(b) || a - b).slice(0, ROWS);
    const { unit, text } = moments(doc), time = (at: number | null) => at === null ? "–" : text(at);
    const late = alike(flows.map((flow) => (model.lateness(ran, flow) ?? 0) * doc.tick)), took = inColumn(flows.map((flow) => ran.took[flow] < 0 ? null : ran.took[flow] * doc.tick));
    const rows = flows.map((flow, k) => [
      model.flowName(flow), time(model.release(flow)), time(model.started(ran, flow)), time(model.completed(ran, flow)), time(model.deadline(flow)),
      model.deadline(flow) === null ? "–" : lateness(doc.tick, model.lateness(ran, flow), late.text), took.texts[k],
    ]);
    const head = ["flow", ...["released", "first start", "done", "deadline"].map((name) => headed(name, unit)), headed("lateness", late.unit), headed("response", took.unit)];
    const caption = model.nFlows > ROWS ? `The first ${ROWS} of ${model.nFlows} flows under ${doc.policies[state.policy].name}; the table of flows has all` : `Flows under ${doc.policies[state.policy].name}`;
    return plainTable(caption, head, rows);
  }
}
