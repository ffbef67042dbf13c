// Which attempts held which slots lately, on a canvas.
import { named } from "../canvas";
import { shareColour, styled } from "../colour";
import { dot, h, LiveTable, plainTable } from "../dom";
import { count, duration, timeMarks } from "../format";
import type { Say } from "../tip";
import { progressOf, type Attempt } from "./api";
import type { Store } from "./store";
import { clock, clockOf } from "./time";

interface Box { attempt: Attempt; from: number; to: number; slot: number; colour: number }

const SPANS: [string, number][] = [["the last hour", 3_600_000], ["the last 15 minutes", 900_000], ["the last 5 minutes", 300_000]];
const GUTTER = 70, RIGHT = 12, TOP = 24, ROW_MOST = 26, ROW_LEAST = 12, HEIGHT_MOST = 420;
/** Flows that have a colour of their own. */
const COLOURS = 11;
const TABLE_ROWS = 200;
/** How pale attempts are that are running. */
const AT_WORK = 0.55;

export class SlotsOverTime {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { role: "img", "aria-label": "Slots are not known yet" });
  private readonly legends = h("ul", { class: "legend" });
  private readonly empty = h("p", { class: "muted" }, "No attempt was running within this time.");
  private readonly span = h("select", { "aria-label": "How far back slots are shown" }, ...SPANS.map(([text], k) => h("option", { value: k }, text)));
  private readonly list = new LiveTable("the latest attempts", () => this.table());
  private isChosen = false;
  private drawn: Attempt[] = [];
  private boxes: Box[] = [];
  private height = 0;
  private from = 0;
  private to = 1;

  constructor(private readonly store: Store, private readonly say: Say, onOpen: (number: number) => void) {
    this.span.addEventListener("change", () => { this.isChosen = true; this.draw(true); });
    this.canvas.addEventListener("mousemove", (event) => this.say(event, this.under(event)));
    this.canvas.addEventListener("mouseleave", (event) => this.say(event, null));
    this.canvas.addEventListener("click", (event) => { const box = this.hit(event); if (box) onOpen(box.attempt.number); });
    this.element = h("div", {}, h("div", { class: "controls" }, h("label", {}, "Show ", this.span)),
      this.legends, h("p", { class: "muted" }, "Pale: running. Light edge: reduces. Crossed out: failed or stopped."), this.empty, h("div", { class: "slots" }, this.canvas), this.list.element);
  }

  /** Draws what has changed so far that it can be seen, if it is in view; all of it if that is asked for. */
  draw(isForced = false): void {
    const box = this.element.getBoundingClientRect(), pixel = (this.to - this.from) / Math.max(1, this.canvas.clientWidth);
    const isSeen = box.bottom > 0 && box.top < innerHeight, isOld = this.store.attempts !== this.drawn || this.store.now - this.to >= pixel;
    const isFirst = this.to === 1 || this.boxes.length === 0 && this.store.attempts !== this.drawn;
    if (isForced || isFirst || isSeen && isOld && this.store.now - this.to >= Math.min(pixel, 1_000)) this.redraw();
  }

  private redraw(): void {
    this.drawn = this.store.attempts;
    const known = this.store.now - (this.store.attempts[0]?.from ?? NaN);
    // As far back as anything is known, unless the user has chosen a span.
    if (!this.isChosen) this.span.value = String(Math.max(0, SPANS.findLastIndex(([, span]) => span >= known)));
    const span = SPANS[Number(this.span.value)][1], width = Math.max(280, this.element.clientWidth);
    this.to = this.store.now;
    this.from = this.to - span;
    const names = this.made();
    this.empty.hidden = this.boxes.length > 0;
    const nSlots = Math.max(this.store.service?.slots ?? 1, 1 + this.boxes.reduce((most, box) => Math.max(most, box.slot), 0));
    this.height = Math.min(ROW_MOST, Math.max(1, Math.floor((HEIGHT_MOST - TOP) / nSlots)));
    const height = TOP + Math.min(HEIGHT_MOST, nSlots * this.height) + 4, ratio = window.devicePixelRatio || 1, { canvas } = this;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.setAttribute("aria-label", `${count(this.boxes.length, "attempt")} on ${count(nSlots, "slot")} over ${SPANS[Number(this.span.value)][0]}`);
    const c = canvas.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "11px system-ui, sans-serif";
    this.grid(c, width, height, nSlots);
    this.attempts(c, width, height);
    this.legend(names);
    this.list.draw();
  }

  /** Attempts within the time that is shown, with colours for the flows that held the most. */
  private made(): string[] {
    const within = this.store.attempts.filter((attempt) => attempt.to === null || attempt.to >= this.from);
    const held = new Map<string, number>();
    const boxes = within.map((attempt) => {
      const from = Math.max(this.from, attempt.from), to = attempt.to ?? this.to, name = nameOf(attempt);
      held.set(name, (held.get(name) ?? 0) + to - from);
      return { attempt, from, to, slot: attempt.slot ?? 0, colour: 0, name };
    });
    const names = [...held].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, COLOURS).map(([name]) => name);
    const places = new Map(names.map((name, k) => [name, k]));
    for (const box of boxes) box.colour = places.get(box.name) ?? COLOURS;
    this.boxes = boxes;
    return held.size > names.length ? [...names, "others"] : names;
  }

  private legend(names: string[]): void {
    this.legends.replaceChildren(...names.map((name, k) => h("li", {}, dot(shareColour(k)), name)));
  }

  private x(at: number, width: number): number {
    return GUTTER + (at - this.from) / (this.to - this.from) * (width - GUTTER - RIGHT);
  }

  private grid(c: CanvasRenderingContext2D, width: number, height: number, nSlots: number): void {
    c.fillStyle = styled("--surface");
    c.fillRect(0, 0, width, height);
    c.strokeStyle = styled("--grid");
    c.fillStyle = styled("--muted");
    c.textAlign = "center";
    c.beginPath();
    for (const mark of timeMarks(clockOf(this.from, this.to), 0, (this.to - this.from) / 1000, (width - GUTTER) / 90)) {
      const x = Math.round(this.x(this.from + mark.at * 1000, width)) + 0.5;
      c.moveTo(x, TOP - 4);
      c.lineTo(x, height);
      if (x > GUTTER + 8 && x < width - 24) c.fillText(mark.label, x, 13);
    }
    c.stroke();
    c.textAlign = "left";
    if (this.height < ROW_LEAST) c.fillText(count(nSlots, "slot"), 4, TOP + 14);
    else for (let slot = 0; slot < nSlots; slot++) c.fillText(`slot ${slot + 1}`, 4, TOP + slot * this.height + this.height / 2 + 4);
  }

  private attempts(c: CanvasRenderingContext2D, width: number, height: number): void {
    c.save();
    c.beginPath();
    c.rect(GUTTER, TOP, width - GUTTER - RIGHT, height - TOP);
    c.clip();
    const text = styled("--text"), gap = this.height >= 5 ? 1 : 0;
    for (const box of this.boxes) {
      const { attempt, slot } = box, x = this.x(box.from, width), y = TOP + slot * this.height;
      const wide = Math.max(1, this.x(box.to, width) - x - 0.5), tall = this.height - gap;
      c.fillStyle = shareColour(box.colour);
      c.globalAlpha = attempt.to === null ? AT_WORK : 1;
      c.fillRect(x, y, wide, tall);
      c.globalAlpha = 1;
      // Reduces have a lighter edge, attempts that came to nothing are crossed out.
      if (attempt.phase === "reduce" && tall >= 4 && wide > 2) {
        c.fillStyle = "rgba(255,255,255,0.38)";
        c.fillRect(x, y, wide, Math.max(1.5, tall * 0.3));
      }
      if (attempt.outcome && attempt.outcome !== "done") cross(c, text, [x, y, wide, tall]);
      if (tall >= 11 && wide > 34) named(c, `${attempt.flow}/${attempt.job}`, [x, y, wide, tall]);
    }
    c.restore();
  }

  private hit(event: MouseEvent): Box | null {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    if (x < GUTTER || y < TOP) return null;
    const at = this.from + (x - GUTTER) / (box.width - GUTTER - RIGHT) * (this.to - this.from), slot = Math.floor((y - TOP) / this.height);
    // A pixel either side: what is short can be pointed at, too.
    const near = (this.to - this.from) / box.width;
    return this.boxes.findLast((one) => one.slot === slot && one.from - near <= at && at <= one.to + near) ?? null;
  }

  private under(event: MouseEvent): string[] | null {
    const box = this.hit(event);
    this.canvas.style.cursor = box ? "pointer" : "";
    if (!box) return null;
    const { attempt } = box, now = this.store.now, { from } = attempt;
    const until = attempt.to !== null ? `to ${clock(attempt.to, now)}` : "and is running";
    return [
      `${attempt.flow} / ${attempt.job}, ${attempt.phase} ${attempt.task}`,
      `submission ${attempt.number}, slot ${box.slot + 1}: ${progressOf(attempt)}`,
      `from ${clock(from, now)} ${until}, ${duration((box.to - from) / 1000)}`,
    ];
  }

  private table(): HTMLElement {
    const now = this.store.now, latest = this.store.attempts.slice(-TABLE_ROWS).reverse();
    return plainTable(`The latest ${latest.length} attempts`, ["flow", "job", "task", "slot", "from", "took", "state"], latest.map((one) => [
      nameOf(one), one.job, `${one.phase} ${one.task}`, one.slot === undefined ? "–" : String(one.slot + 1), clock(one.from, now),
      one.to !== null ? duration((one.to - one.from) / 1000) : "–", progressOf(one),
    ]));
  }
}

function nameOf(attempt: Attempt): string { return `${attempt.number} ${attempt.flow}`; }

type Place = [number, number, number, number];

function cross(c: CanvasRenderingContext2D, colour: string, [x, y, wide, tall]: Place): void {
  c.strokeStyle = colour;
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x + wide, y + tall);
  c.moveTo(x, y + tall);
  c.lineTo(x + wide, y);
  c.stroke();
}
