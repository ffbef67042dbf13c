// What is known of the flow, or of the attempt, that was chosen.
import { FATE_WORDS, shareColour } from "./colour";
import type { Explained, Model, Ran } from "./data";
import { h, plainTable } from "./dom";
import { alike, count, duration, headed, inColumn, instant, moments, number, percent } from "./format";
import type { State } from "./state";

const OUTCOMES = ["done", "failed", "killed", "its output was lost"];
const JOBS = 40;
/** So much of the details tells that they are there, and so much at the top of the window lies under the bar of policies; pixels. */
const SEEN = 280, HIDDEN = 64;

/** The colour that a flow has in the timeline. */
function flowColour(ran: Ran, flow: number): string {
  const place = ran.largest.indexOf(flow);
  return shareColour(place < 0 ? 99 : place);
}

/** The lines of a tooltip. */
export function tooltipLines(model: Model, ran: Ran, hit: { flow: number; job: number | null; phase: number | null; bar: number | null }): string[] {
  const { doc } = model, lines: string[] = [];
  if (hit.bar !== null) lines.push(...attempt(model, ran, hit.bar));
  else if (hit.phase !== null) {
    const start = model.phaseStart(ran, hit.phase)!, end = start + ran.held[hit.phase];
    lines.push(`${model.flowName(hit.flow)} / ${model.jobName(hit.job!)} / ${model.phaseName(hit.phase)}`);
    lines.push(`${count(doc.workload.phases.tasks[hit.phase], "task")}, ${instant(doc, start)} – ${instant(doc, end)} (${duration(ran.held[hit.phase] * doc.tick)})`);
  } else if (hit.job !== null) lines.push(`ApplicationMaster of ${model.flowName(hit.flow)} / ${model.jobName(hit.job)}`);
  else lines.push(model.flowName(hit.flow));
  lines.push(...ofFlow(model, ran, hit.flow));
  return lines;
}

function attempt(model: Model, ran: Ran, k: number): string[] {
  const { doc } = model, bars = ran.bars!, phase = bars.phase[k], slotKind = model.slotKindOf(phase), n = bars.slots[k];
  const tasks = n === 1 ? `task ${bars.task[k]}` : `tasks ${bars.task[k]}–${bars.task[k] + n - 1}`;
  const first = model.machineOf(slotKind, bars.slot[k]), last = model.machineOf(slotKind, bars.slot[k] + n - 1);
  const job = model.jobOfPhase[phase];
  const startup = bars.startup[k] > 0 ? `, of which ${duration(bars.startup[k] * doc.tick)} to start` : "";
  return [
    `${model.flowName(model.flowOfJob[job])} / ${model.jobName(job)} / ${model.phaseName(phase)}, ${tasks}, attempt ${bars.attempt[k]}: ${OUTCOMES[bars.outcome[k]]}`,
    `on ${first === last ? first : `${first} to ${last}`} (${count(n, "slot")})`,
    `${instant(doc, bars.start[k])} – ${instant(doc, bars.start[k] + bars.length[k])}, ${duration(bars.length[k] * doc.tick)}${startup}`,
  ];
}

function ofFlow(model: Model, ran: Ran, flow: number): string[] {
  const { doc } = model, done = model.completed(ran, flow), late = model.lateness(ran, flow);
  const waited = ran.wait[flow] < 0 ? "never started" : `waited ${duration(ran.wait[flow] * doc.tick)}`;
  const lines = [`released ${instant(doc, model.release(flow))}, ${waited}, ${done === null ? "not done" : `done ${instant(doc, done)} (response ${duration(ran.took[flow] * doc.tick)})`}`];
  if (model.deadline(flow) !== null) lines.push(`deadline ${instant(doc, model.deadline(flow)!)}: ${lateness(doc.tick, late)}`);
  return lines;
}

/** `78 s late`, `3m 20s early`; in a column as all in it are written. */
export function lateness(tick: number, ticks: number | null, text: (seconds: number) => string = duration): string {
  if (ticks === null) return "missed";
  return `${text(Math.abs(ticks) * tick)} ${ticks > 0 ? "late" : "early"}`;
}

export class Detail {
  readonly element = h("section", { class: "detail", id: "detail", "aria-live": "polite", "aria-label": "Selected flow" });

  /** How far above the end of the page a reader was who came from below; null for who came from elsewhere. */
  private cameFrom: number | null = null;

  constructor(private readonly model: Model, private readonly state: State) {}

  draw(): void {
    const { selected } = this.state, { model } = this, policy = model.doc.policies[this.state.policy];
    if (!selected || !policy.ran) {
      const isSeen = this.element.getBoundingClientRect().bottom > 0;
      this.element.replaceChildren(h("p", { class: "muted no-print" },
        "Choose a flow in the timeline or in the table of flows to see when it ran, under every policy, and why it waited."));
      if (!selected && isSeen) this.goBack();
      return;
    }
    const { flow } = selected, ran = policy.ran, close = () => this.state.select(null);
    const parts: (HTMLElement | null)[] = [
      h("header", {}, h("h3", { tabindex: -1 }, `Flow ${model.flowName(flow)} under ${policy.name}`),
        h("button", { type: "button", class: "no-print", click: close, "aria-label": "Close" }, "×")),
      selected.bar !== null && selected.policy === this.state.policy && ran.bars ? list(attempt(model, ran, selected.bar)) : null,
      this.policies(flow),
      this.why(ran, flow),
      this.jobs(ran, flow),
    ];
    this.element.replaceChildren(...parts.filter((part) => part !== null));
  }

  /** Scrolls until it is seen, as little as does, and lets the keyboard go on from there. */
  show(): void {
    const heading = this.element.querySelector("h3");
    if (!heading) return;
    const { top, height } = this.element.getBoundingClientRect(), page = document.documentElement;
    const enough = Math.min(height, SEEN, innerHeight - HIDDEN);
    if (top < HIDDEN) {
      this.cameFrom = page.scrollHeight - scrollY;
      this.element.scrollIntoView({ block: "start" });
    } else if (top + enough > innerHeight) scrollBy(0, top + enough - innerHeight);
    heading.focus({ preventScroll: true });
  }

  /** Who came from the table of flows is there again. */
  private goBack(): void {
    if (this.cameFrom !== null) scrollTo(0, document.documentElement.scrollHeight - this.cameFrom);
    this.cameFrom = null;
  }

  private policies(flow: number): HTMLElement {
    const { model } = this, { doc } = model;
    const due = model.deadline(flow);
    const facts = [
      `released ${instant(doc, model.release(flow))}`,
      due === null ? "no deadline" : `deadline ${instant(doc, due)}`,
      `${number(doc.workload.flows.work[flow])} slot-seconds of work`,
      `${duration(doc.workload.flows.alone[flow])} alone on the cluster`,
      model.pool(flow) && `pool ${model.pool(flow)}`, model.user(flow) && `user ${model.user(flow)}`,
    ].filter(Boolean).join(" · ");
    const all = model.ran.map((k) => doc.policies[k].ran!), known = (ticks: number) => ticks < 0 ? null : ticks * doc.tick;
    const waits = inColumn(all.map((ran) => known(ran.wait[flow]))), responses = inColumn(all.map((ran) => known(ran.took[flow])));
    const time = moments(doc), late = alike(all.map((ran) => (model.lateness(ran, flow) ?? 0) * doc.tick));
    const rows = all.map((ran, k) => {
      const done = model.completed(ran, flow), alone = doc.workload.flows.alone[flow];
      return [
        doc.policies[model.ran[k]].name, waits.texts[k], responses.texts[k], done === null || !alone ? "–" : number(ran.took[flow] * doc.tick / alone),
        done === null ? "failed" : time.text(done), due === null ? FATE_WORDS.free : lateness(doc.tick, model.lateness(ran, flow), late.text),
      ];
    });
    const head = ["policy", headed("wait", waits.unit), headed("response", responses.unit), "slowdown", headed("done", time.unit), headed("deadline", due === null ? "" : late.unit)];
    return h("div", {}, h("p", { class: "muted" }, facts), plainTable("Under every policy", head, rows));
  }

  private why(ran: Ran, flow: number): HTMLElement {
    const said = ran.explained.find((one) => one.flow === flow);
    const text = said ? said.text.trimEnd() : ran.explained.length
      ? "The page explains the flows with the highest costs and the latest flows; slackline explain explains all."
      : "The page has no explanations for this policy; use slackline explain.";
    return h("div", {}, h("h4", {}, "Reasons for the response time"), said && this.held(ran, said),
      said && ran.spans !== null && h("p", { class: "muted" }, `The schedule has too many rows to be kept: slots are summed up in spans of ${duration(ran.spans)}, so that shares are not exact.`), said
      ? h("pre", { tabindex: 0, "aria-label": "Output of explain" }, text) : h("p", { class: "muted" }, text));
  }

  /** Who held the slots that it wanted, as a sentence and as bars. */
  private held(ran: Ran, said: Explained): HTMLElement | null {
    if (said.holders.length === 0) return null;
    const name = (flow: number) => flow === said.flow ? "itself" : this.model.flowName(flow);
    // As in the timeline, where any of them has a colour there.
    const areColoured = said.holders.some(([flow]) => ran.largest.includes(flow));
    const parts: [string, number, string][] = said.holders.map(([flow, share], k) => [name(flow), share, areColoured ? flowColour(ran, flow) : shareColour(k)]);
    const known = parts.reduce((sum, [, share]) => sum + share, 0) + said.idle;
    if (said.idle >= 0.005) parts.push(["no flow", said.idle, "transparent"]);
    if (known < 0.995) parts.push(["all others", 1 - known, shareColour(99)]);
    return h("div", { class: "held" },
      h("p", {}, `It wanted more slots for ${duration(said.wanted)}. Meanwhile they were held by ${parts.map(([who, share]) => `${who} (${percent(share)})`).join(", ")}.`),
      h("div", { class: "strip", "aria-hidden": "true" }, ...parts.map(([who, share, colour]) => {
        const part = h("span", { title: `${who}: ${percent(share)}` }, share > 0.08 ? who : "");
        part.style.width = `${share * 100}%`;
        part.style.background = colour;
        return part;
      })));
  }

  private jobs(ran: Ran, flow: number): HTMLElement | null {
    const { model } = this, { doc } = model, rows: string[][] = [], time = moments(doc);
    const first = model.firstPhase[model.firstJob[flow]], end = model.firstPhase[model.firstJob[flow + 1]], last = Math.min(end, first + JOBS);
    const took = inColumn(Array.from({ length: last - first }, (_, k) => ran.held[first + k] < 0 ? null : ran.held[first + k] * doc.tick));
    for (let phase = first; phase < last; phase++) {
      const start = model.phaseStart(ran, phase);
      rows.push([
        `${model.jobName(model.jobOfPhase[phase])} ${model.phaseName(phase)}`, String(doc.workload.phases.tasks[phase] || "–"),
        start === null ? "–" : time.text(start), start === null ? "–" : time.text(start + ran.held[phase]), took.texts[phase - first],
      ]);
    }
    const caption = end - first > rows.length ? `The first ${rows.length} of ${end - first} phases` : "Its phases";
    return plainTable(caption, ["phase", "tasks", headed("first start", time.unit), headed("last end", time.unit), headed("took", took.unit)], rows);
  }
}

function list(lines: string[]): HTMLElement {
  return h("ul", { class: "attempt" }, ...lines.map((line) => h("li", {}, line)));
}
