// One submission: its flows and jobs, what is expected of it, and what can be done with it.
import { h } from "../dom";
import { count, percent } from "../format";
import { at, wordsOf, type Flow, type Happening, type Job, type Me, type Phase, type Prediction, type Submission } from "./api";
import { confirmed, does, field, filled, notify, windowed } from "./dialogs";
import { item } from "./events";
import { foretold, unforeseen } from "./foretold";
import { fated, stateOf, verdict } from "./rows";
import { hasNotBegun, isOpen, type Store } from "./store";
import { away, clock, millis } from "./time";

/** Flows of a submission that are shown at first. */
const FLOWS_MOST = 50;
const EVENTS_MOST = 50;
/** The end of long logs is shown, characters. */
const LOGS_MOST = 400_000;
/** How long it is right how far away something is, milliseconds. */
const WORDS_FOR = 10_000;
const OVER = ["finished", "failed", "cancelled"];

/** Whether a user may change what belongs to another. */
export function mayChange(me: Me | null, user: string): boolean {
  return me !== null && (me.role === "operate" || me.role === "submit" && me.name === user);
}

export class Details {
  private readonly dialog: HTMLDialogElement;
  private readonly title: HTMLElement;
  private readonly body = h("div", { class: "details" });
  private readonly explained = h("div", {});
  private number: number | null = null;
  private shown: Submission | null = null;
  private drawn = "";
  private drawnAt = 0;
  private all = false;

  constructor(private readonly store: Store) {
    this.dialog = windowed("", "side", this.body, this.explained);
    this.title = this.dialog.querySelector("h2")!;
    this.dialog.addEventListener("close", () => {
      this.number = this.shown = null;
      history.replaceState(null, "", location.pathname);
    });
    store.onChange((what) => { if (what.has("open") || what.has("over") || what.has("me") || what.has("service") || what.has("events")) void this.look(); });
    const named = () => { const found = /^#(\d+)$/.exec(location.hash); if (found) this.open(Number(found[1])); };
    addEventListener("hashchange", named);
    named();
  }

  open(number: number): void {
    Object.assign(this, { number, shown: null, drawn: "", all: false });
    this.title.textContent = `Submission ${number}`;
    this.body.replaceChildren(h("p", { class: "muted" }, "…"));
    this.explained.replaceChildren();
    this.dialog.querySelector(".notice")!.replaceChildren();
    if (!this.dialog.open) this.dialog.showModal();
    // An address that can be sent to others.
    history.replaceState(null, "", `#${number}`);
    void this.look();
  }

  /** Asks for it again, and shows it if it has changed. */
  private async look(): Promise<void> {
    const { number } = this;
    if (number === null) return;
    try {
      const shown = await this.store.client.get<Submission>(`/api/v1/submissions/${number}`);
      if (number !== this.number) return;
      const drawn = JSON.stringify([shown, this.store.me, this.all, this.events(number).length]), isOld = Date.now() - this.drawnAt > WORDS_FOR;
      // What is marked to be copied stays, as long as it is true.
      if (drawn === this.drawn && (!isOld || !getSelection()?.isCollapsed)) return;
      Object.assign(this, { shown, drawn, drawnAt: Date.now() });
      this.draw();
    } catch (error) {
      if (number === this.number && !this.shown) this.body.replaceChildren(h("p", { class: "bad" }, wordsOf(error)));
    }
  }

  private draw(): void {
    const one = this.shown!, may = isOpen(one) && mayChange(this.store.me, one.user);
    this.title.textContent = `${one.number} ${one.name}`;
    const flows = this.all ? one.flows : one.flows.slice(0, FLOWS_MOST), more = one.flows.length - flows.length;
    keepingFocus(this.body, () => this.body.replaceChildren(
      this.facts(one), may ? this.actions(one) : "",
      one.prediction ? this.expected(one.prediction, !isOpen(one)) : one.unpredicted ? h("p", { class: "muted" }, unforeseen(one)!) : "",
      ...flows.map((flow) => this.flow(one, flow, may)),
      more > 0 ? h("button", { type: "button", class: "more", click: () => { this.all = true; void this.look(); } }, `Show ${count(more, "flow")} more`) : "",
      this.happened(one.number)));
  }

  private events(number: number): Happening[] {
    return this.store.events.filter((event) => event.number === number).slice(0, EVENTS_MOST);
  }

  /** What is expected; of one that is over, what was expected of it first. */
  private expected(prediction: Prediction, isOver: boolean): HTMLElement {
    const title = isOver ? "First prediction" : "Prediction";
    return h("section", { "aria-label": title }, h("h3", {}, title), foretold(prediction, this.store.now, isOver));
  }

  /** What is remembered of it, the latest first. */
  private happened(number: number): Node | string {
    const events = this.events(number);
    if (events.length === 0) return "";
    return h("section", { "aria-label": "What happened" }, h("h3", {}, "What happened"), h("ol", { class: "events of-one", tabindex: 0, "aria-label": "Events of the submission" },
      ...events.map((event) => item(event, this.store.now, event.flow ? h("span", {}, event.flow) : h("span", {})))));
  }

  private facts(one: Submission): HTMLElement {
    const { now } = this.store, at = (text: string) => clock(millis(text), now);
    const facts: [string, string | undefined][] = [
      ["state", one.held && isOpen(one) ? `held (${one.state})` : one.state], ["why", one.why === "held" ? undefined : one.why], ["by", one.user],
      ["submitted", `${at(one.submitted)}, ${away(millis(one.submitted), now)}`],
      ["schedule", one.occurrence && `${one.occurrence.recurrence}, the time of ${at(one.occurrence.at)}`],
      ["finished", one.ended && `${at(one.ended)}, ${away(millis(one.ended), now)}`],
      ["priority", one.priority > 0 ? String(one.priority) : undefined],
    ];
    return h("dl", { class: "made" }, ...facts.flatMap(([name, value]) => value ? [h("dt", {}, name), h("dd", {}, value)] : []));
  }

  private button(key: string, text: string, click: () => unknown, kind = ""): HTMLElement {
    return h("button", { type: "button", "data-key": key, class: kind || null, click }, text);
  }

  private actions(one: Submission): HTMLElement {
    return h("div", { class: "buttons" },
      this.button("hold", one.held ? "Resume" : "Hold", () => this.act(one.held ? "unhold" : "hold")),
      this.button("change", "Change…", () => this.change()),
      this.button("cancel", "Cancel…", () => this.cancel(null), "danger"));
  }

  private flow(one: Submission, flow: Flow, may: boolean): HTMLElement {
    const { now } = this.store, at = (text: string) => clock(millis(text), now);
    const name = flow.flow, isOver = OVER.includes(flow.state), state = stateOf(one, flow);
    const [from, to] = (flow.predicted_between ?? []).map(at), isPlan = hasNotBegun(one);
    const done = isPlan ? "its tasks are counted when it starts" : `${flow.done.toLocaleString("en-US")} of ${count(flow.tasks, "task")} done${flow.running > 0 ? `, ${flow.running} running` : ""}`;
    const facts: [string, string | Node | undefined][] = [
      ["state", `${state}, ${done}`], ["why", flow.cause ?? flow.why], ["failed attempts", flow.failed_attempts > 0 ? String(flow.failed_attempts) : undefined],
      ["released", at(flow.release)], ["deadline", flow.deadline && `${at(flow.deadline)}, ${away(millis(flow.deadline), now)}`],
      ["done", flow.completion && at(flow.completion)],
      ["predicted", flow.unknown ? "unknown, a job never ran" : flow.predicted && `${at(flow.predicted)}${from !== to ? `, between ${from} and ${to}` : ""}`],
      ["in time?", isPlan && !flow.late ? undefined : fated(verdict(flow, now))],
      ["weight", flow.weight === 1 ? undefined : String(flow.weight)],
      ["jobs", isPlan && flow.jobs ? planned(flow.jobs) : undefined],
    ];
    return h("section", { "aria-label": `Flow ${name}` }, h("h3", {}, name),
      h("dl", { class: "made" }, ...facts.flatMap(([what, value]) => value ? [h("dt", {}, what), h("dd", {}, value)] : [])),
      h("div", { class: "buttons" },
        !isPlan && this.button(`explain ${name}`, "Explain", () => this.explain(name, null)),
        !isPlan && !flow.jobs?.length && this.button(`logs ${name}`, "Logs", () => this.logsOf(name)),
        may && !isOver && one.flows.length > 1 && this.button(`hold ${name}`, flow.state === "held" ? "Resume" : "Hold", () => this.act(flow.state === "held" ? "unhold" : "hold", name)),
        may && !isOver && one.flows.length > 1 && this.button(`cancel ${name}`, "Cancel…", () => this.cancel(name), "danger")),
      !isPlan && flow.jobs && flow.jobs.length > 0 ? this.jobs(name, flow.jobs) : "");
  }

  private jobs(flow: string, jobs: Job[]): HTMLElement {
    const phase = ({ tasks, done, running }: Phase) => tasks === 0 ? "–" : `${done} of ${tasks}${running > 0 ? `, ${running} running` : ""}`;
    return h("div", { class: "scroll-x", tabindex: 0, role: "region", "aria-label": `Jobs of ${flow}` }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "job"), h("td", {}), h("th", { scope: "col" }, "maps done"), h("th", { scope: "col" }, "reduces done"),
        h("th", { scope: "col" }, "failed attempts"), h("th", { scope: "col", class: "words" }, "comes after"))),
      h("tbody", {}, ...jobs.map((job) => h("tr", {}, h("th", { scope: "row" }, job.job),
        h("td", {}, h("span", { class: "buttons" },
          this.button(`explain ${flow}/${job.job}`, "Explain", () => this.explain(flow, job.job)),
          this.button(`logs ${flow}/${job.job}`, "Logs", () => this.logs(flow, job.job, false)))),
        h("td", {}, phase(job.maps)), h("td", {}, phase(job.reduces)),
        h("td", {}, job.failed_attempts ? h("span", { class: "bad" }, String(job.failed_attempts)) : "–"), h("td", { class: "words" }, job.after.join(", ") || "–"))))));
  }

  private async act(what: "hold" | "unhold" | "cancel", flow: string | null = null): Promise<void> {
    const number = this.number!;
    await does(() => this.store.client.act("POST", at(`/api/v1/submissions/${number}/${what}`, { flow })));
    this.store.touch(number);
    void this.look();
  }

  private async cancel(flow: string | null): Promise<void> {
    const { number, name } = this.shown!, what = flow === null ? `submission ${number} (${name})` : `flow ${flow} of ${number}`;
    if (await confirmed(`Cancel ${what}?`, "Running tasks are stopped. This cannot be undone; finished jobs keep their output.", "Cancel it", "Keep it")) await this.act("cancel", flow);
  }

  /** Another deadline, weight or priority. */
  private async change(): Promise<void> {
    const { number, flows, priority } = this.shown!;
    const flow = h("select", {}, h("option", { value: "" }, "all of them"), ...flows.map((one) => h("option", {}, one.flow)));
    const deadline = h("input", { placeholder: "2h" }), weight = h("input", { inputmode: "decimal" });
    const first = h("input", { type: "number", min: 0, step: 1, value: priority });
    const isChanged = await filled(`Change submission ${number}`, [
      field({ label: "Flow", input: flow, help: "The flow of the deadline and weight" }),
      field({ label: "Deadline", input: deadline, help: "A duration after its release such as 2h, a time of day, or a date and time; empty: as it is" }),
      field({ label: "Weight", input: weight, help: "Empty: as it is" }),
      field({ label: "Priority", input: first, help: "Submissions with higher priority start first" }),
    ], "Change", () => {
      const sent: Record<string, unknown> = {};
      if (deadline.value.trim()) sent.deadline = deadline.value.trim();
      if (weight.value.trim()) sent.weight = Number(weight.value);
      if (flow.value && (sent.deadline || sent.weight !== undefined)) sent.flow = flow.value;
      if (first.value !== String(priority)) sent.priority = Number(first.value);
      if (Number.isNaN(sent.weight)) return Promise.resolve(wrong(`weight: found ${weight.value}, expected a number`));
      if (Object.keys(sent).length === 0) return Promise.resolve(wrong("found no change, expected one"));
      return does(() => this.store.client.act("PATCH", `/api/v1/submissions/${number}`, sent));
    });
    if (!isChanged) return;
    notify(`Submission ${number} is changed`);
    this.store.touch(number);
    void this.look();
  }

  private async explain(flow: string, job: string | null): Promise<void> {
    await this.tell(`Why ${job === null ? flow : `${flow}/${job}`} waited`, async () => {
      const { text } = await this.store.client.get<{ text: string }>(at(`/api/v1/submissions/${this.number}/explain`, { flow, job }));
      return [h("pre", { class: "wide", tabindex: 0 }, text)];
    });
  }

  /** The logs of a job that is chosen: of old submissions their explanation alone says which jobs there were. */
  private async logsOf(flow: string): Promise<void> {
    await this.tell(`Logs of ${flow}`, async () => {
      const { document } = await this.store.client.get<{ document: { phases: { job: string }[] } }>(at(`/api/v1/submissions/${this.number}/explain`, { flow }));
      const jobs = [...new Set(document.phases.map((phase) => phase.job))];
      return [h("div", { class: "buttons" }, ...jobs.map((job) => h("button", { type: "button", click: () => this.logs(flow, job, false) }, job)))];
    });
  }

  private async logs(flow: string, job: string, failed: boolean): Promise<void> {
    const turn = h("button", { type: "button", click: () => this.logs(flow, job, !failed) }, failed ? "All attempts" : "Only attempts that failed");
    await this.tell(`Logs of ${flow}/${job}`, async () => {
      const text = await this.store.client.text(at(`/api/v1/submissions/${this.number}/logs`, { flow, job, failed: failed || null }));
      const cut = text.length > LOGS_MOST ? h("p", { class: "muted" }, `The last ${percent(LOGS_MOST / text.length)} of them; slackline logs has all.`) : "";
      return [turn, cut, h("pre", { tabindex: 0 }, text.slice(-LOGS_MOST) || "No attempt has written to its log.")];
    });
  }

  /** Something that takes a while, below the rest. */
  private async tell(title: string, ask: () => Promise<(Node | string)[]>): Promise<void> {
    const heading = h("h3", { tabindex: -1 }, title), number = this.number;
    this.explained.replaceChildren(h("section", { "aria-label": title }, heading, h("p", { class: "muted", role: "status" }, "…")));
    heading.scrollIntoView({ block: "nearest" });
    let said: (Node | string)[];
    try {
      said = await ask();
    } catch (error) {
      said = [h("pre", { class: "bad", tabindex: 0 }, wordsOf(error))];
    }
    if (this.number !== number || !heading.isConnected) return;
    heading.parentElement!.replaceChildren(heading, ...said);
    heading.focus();
    heading.scrollIntoView({ block: "start" });
  }
}

/** Jobs of a flow that has not begun, in the order of its file. */
function planned(jobs: Job[]): HTMLElement {
  return h("ul", { class: "planned" }, ...jobs.map(({ job, after }) => h("li", {}, h("strong", {}, job), after.length > 0 ? ` after ${after.join(", ")}` : "")));
}

function wrong(message: string): false {
  notify(message, true);
  return false;
}

/** Draws something again; the button with the same key keeps the focus. */
export function keepingFocus(holder: HTMLElement, draw: () => void): void {
  const on = document.activeElement, key = on && holder.contains(on) ? on.getAttribute("data-key") : null;
  draw();
  if (key !== null) holder.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}
