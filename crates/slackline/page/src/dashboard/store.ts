// What is known of the service, brought up to date when events say that something changed, and by the clock.
import { at, Refused, type Attempt, type Client, type Happening, type LoadPoint, type Me, type Recurrence, type Service, type Submission, type Submissions } from "./api";
import { Stream } from "./stream";
import { millis } from "./time";

export type Part = "me" | "service" | "open" | "over" | "recurrences" | "load" | "attempts" | "events" | "alerts" | "link" | "clock";

/** Whether the service tells what happens, and if not what it answers (0: nothing), since when, why, and when it is tried again. */
export interface Link { isThere: boolean; status: number; since: number; why: string; again: number }

const PAGE = 1_000;
/** Submissions of the queue that are shown, and those over that are asked for at a time. */
const QUEUED_MOST = 5_000, OVER_PAGE = 50;
/** At most this number is requested one by one; if more have changed, all are requested. */
const ONE_BY_ONE = 5;
/** Events that are kept, and the past that is drawn, milliseconds. */
const EVENTS_MOST = 2_000, ALERTS_MOST = 1_000, ATTEMPTS_FOR = 3_600_000, LOAD_FOR = 86_400_000;
/** The intervals at which what has no events is requested, milliseconds. */
const LIVE_EVERY = 2_000, SERVICE_EVERY = 5_000, ALL_EVERY = 60_000, RECURRENCES_EVERY = 30_000, LOAD_EVERY = 10_000, ALERTS_EVERY = 600_000;
const STEP = 1_000;
/** How long events are listened to after the page was seen the last time, milliseconds. */
const AWAKE_FOR = 30_000;

const OPEN = new Set(["queued", "opening", "running"]);
export function isOpen(submission: Submission): boolean { return OPEN.has(submission.state); }

/** Whether nothing of it is scheduled yet. */
export function hasNotBegun(submission: Submission): boolean { return submission.state === "queued" || submission.state === "opening"; }

/** Events that are alerts. */
const ALERTS = new Set(["likely_late", "late", "failed", "estimates_off", "alert_failed"]);
export function isAlert(event: Happening): boolean { return ALERTS.has(event.kind); }

export class Store {
  me: Me | null = null;
  service: Service | null = null;
  /** Submissions that are not over, by number; how many more there are in the queue. */
  readonly open = new Map<number, Submission>();
  more = 0;
  over: Submission[] = [];
  /** Of which numbers older ones are asked for; none if there are none. */
  overBefore: number | undefined;
  recurrences: Recurrence[] = [];
  load: LoadPoint[] = [];
  attempts: Attempt[] = [];
  /** The latest first. */
  events: Happening[] = [];
  /** Alerts, the latest first: the service keeps them longer than events, over its restarts. */
  alerts: Happening[] = [];
  link: Link = { isThere: false, status: 0, since: Date.now(), why: "", again: 0 };

  private readonly listeners: ((what: Set<Part>) => void)[] = [];
  private readonly pending = new Set<Part>();
  private readonly stream: Stream;
  /** When each thing was asked for the last time; 0: as soon as may be. */
  private readonly asked = { all: 0, live: 0, service: 0, recurrences: 0, load: 0, attempts: 0, alerts: 0 };
  private readonly dirty = new Set<number>();
  private isBusy = false;
  private notBefore = 0;
  /** How long the last request for running submissions took, milliseconds: many are requested less often. */
  private liveTook = 0;
  /** How much the clock of the service is ahead of this one, milliseconds. */
  private ahead = 0;

  constructor(readonly client: Client) {
    this.stream = new Stream(client, {
      begins: (complete) => this.begins(complete),
      happened: (events, isBefore) => this.happened(events, isBefore),
      gone: (why, again) => this.gone(why, again),
    });
  }

  /** Now, by the clock of the service. */
  get now(): number { return Date.now() + this.ahead; }

  onChange(hear: (what: Set<Part>) => void): void { this.listeners.push(hear); }

  start(): void {
    void this.stream.run();
    setInterval(() => { this.changed("clock"); void this.refresh(); }, STEP);
    let falling = 0;
    document.addEventListener("visibilitychange", () => {
      clearTimeout(falling);
      if (document.hidden) falling = setTimeout(() => this.stream.sleep(), AWAKE_FOR);
      else this.stream.awake();
      this.tell();
      void this.refresh();
    });
  }

  /** With another token, say. */
  startAgain(): void {
    this.asked.all = this.asked.service = 0;
    this.me = null;
    this.stream.restart();
  }

  /** Asks for these soon, because something was done to them. */
  touch(...numbers: number[]): void {
    for (const number of numbers) this.dirty.add(number);
    this.asked.service = this.asked.recurrences = 0;
    this.notBefore = 0;
    void this.refresh();
  }

  /** Older ones that are over. */
  async olderOver(): Promise<void> {
    const page = await this.client.get<Submissions>(at("/api/v1/submissions", { state: OVER, limit: OVER_PAGE, before: this.overBefore }));
    this.overBefore = page.before;
    this.over = [...this.over, ...page.submissions];
    this.changed("over");
  }

  private changed(...parts: Part[]): void {
    // A page that is not shown has no frames; what its tab says is brought up to date all the same.
    if (this.pending.size === 0) document.hidden ? setTimeout(() => this.tell()) : requestAnimationFrame(() => this.tell());
    for (const part of parts) this.pending.add(part);
  }

  private tell(): void {
    if (this.pending.size === 0) return;
    const all = new Set(this.pending);
    this.pending.clear();
    for (const hear of this.listeners) hear(all);
  }

  private begins(complete: boolean): void {
    if (!this.link.isThere) this.link = { isThere: true, status: 200, since: Date.now(), why: "", again: 0 };
    if (!complete) Object.assign(this.asked, { all: 0, live: 0, service: 0, recurrences: 0, load: 0, attempts: 0, alerts: 0 });
    this.changed("link");
    void this.refresh();
  }

  private gone(why: Refused, again: number): void {
    const since = this.link.isThere || !this.link.why ? Date.now() : this.link.since;
    this.link = { isThere: false, status: why.status, since, why: why.message, again: Date.now() + again };
    this.changed("link");
  }

  private happened(events: Happening[], isBefore: boolean): void {
    this.events = [...events.reverse(), ...this.events].slice(0, EVENTS_MOST);
    this.changed("events");
    this.alerted(events.filter(isAlert));
    if (isBefore) return;
    for (const event of events) {
      if (event.number !== undefined) this.dirty.add(event.number);
      if (["recurrence", "skipped", "submitted"].includes(event.kind)) this.asked.recurrences = 0;
    }
    this.asked.service = 0;
    void this.refresh();
  }

  /** Asks for what may have changed, unless it was just asked. */
  private async refresh(): Promise<void> {
    if (this.isBusy || !this.link.isThere || Date.now() < this.notBefore) return;
    // A page in the background asks rarely.
    if (document.hidden && Date.now() - this.asked.all < ALL_EVERY) return;
    this.isBusy = true;
    const begun = Date.now();
    try {
      for (const look of this.looks(begun)) await look();
    } catch (error) {
      // The stream says if the service is gone; of anything else the next try knows more.
      if (!(error instanceof Refused)) throw error;
    } finally {
      // A service that is slow to answer is asked less often.
      this.notBefore = Date.now() + Math.max(STEP * 0.9, 2 * (Date.now() - begun));
      this.isBusy = false;
    }
  }

  private looks(now: number): (() => Promise<void>)[] {
    const { asked } = this, looks: (() => Promise<void>)[] = [];
    const due = (what: keyof Store["asked"], every: number) => {
      if (now - asked[what] < every) return false;
      asked[what] = now;
      return true;
    };
    if (!this.me) looks.push(async () => { this.me = await this.client.get<Me>("/api/v1/me"); this.changed("me"); });
    if (due("service", SERVICE_EVERY)) looks.push(() => this.lookService());
    if (this.dirty.size > ONE_BY_ONE) asked.all = 0;
    if (due("all", ALL_EVERY)) {
      asked.live = now;
      this.dirty.clear();
      looks.push(() => this.lookAll());
    } else {
      const isLive = () => [...this.open.values()].some((one) => one.state !== "queued");
      if (this.dirty.size > 0) looks.push(() => this.lookDirty());
      if (isLive() && due("live", Math.max(LIVE_EVERY, 20 * this.liveTook))) looks.push(() => this.lookLive());
    }
    if (due("recurrences", RECURRENCES_EVERY)) looks.push(() => this.lookRecurrences());
    if (due("load", LOAD_EVERY)) looks.push(() => this.lookLoad());
    if (due("alerts", ALERTS_EVERY)) looks.push(async () => this.alerted((await this.client.get<{ alerts: Happening[] }>("/api/v1/alerts")).alerts));
    if (due("attempts", (this.service?.running ?? 0) > 0 ? 2 * STEP : SERVICE_EVERY)) looks.push(() => this.lookAttempts());
    return looks;
  }

  private async lookService(): Promise<void> {
    const begun = Date.now(), service = this.service = await this.client.get<Service>("/api/v1/service");
    // As good as the answer was quick; less than a second is of no account.
    const ahead = millis(service.now) - (begun + Date.now()) / 2;
    this.ahead = Math.abs(ahead) < 1_000 ? 0 : ahead;
    this.changed("service");
  }

  /** Pages of submissions in some states, the latest first, up to `most` submissions. */
  private async pages(state: string, most: number): Promise<{ found: Submission[]; isAll: boolean }> {
    const found: Submission[] = [];
    for (let before: number | undefined; found.length < most;) {
      const page = await this.client.get<Submissions>(at("/api/v1/submissions", { state, limit: Math.min(PAGE, most - found.length), before }));
      found.push(...page.submissions);
      before = page.before;
      if (before === undefined) return { found, isAll: true };
    }
    return { found, isAll: false };
  }

  private async lookAll(): Promise<void> {
    const live = await this.pages("opening,running", Infinity), queued = await this.pages("queued", QUEUED_MOST);
    const over = await this.client.get<Submissions>(at("/api/v1/submissions", { state: OVER, limit: OVER_PAGE }));
    this.open.clear();
    for (const one of [...queued.found, ...live.found]) this.open.set(one.number, one);
    const all = this.service?.submissions.queued ?? 0;
    this.more = queued.isAll ? 0 : Math.max(1, all - queued.found.length);
    const least = over.submissions.at(-1)?.number ?? Infinity, older = this.over.filter((one) => one.number < least);
    if (older.length === 0 || over.before === undefined) this.overBefore = over.before;
    this.over = over.before === undefined ? over.submissions : [...over.submissions, ...older];
    this.changed("open", "over");
  }

  private async lookDirty(): Promise<void> {
    const numbers = [...this.dirty];
    this.dirty.clear();
    await Promise.all(numbers.map(async (number) => {
      try {
        this.take(await this.client.get<Submission>(`/api/v1/submissions/${number}`));
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 404) { this.dirty.add(number); throw error; }
        this.open.delete(number);
      }
    }));
    this.changed("open", "over");
  }

  /** What is known of one from now on. */
  take(one: Submission): void {
    // Of those that have not begun lists have no flows.
    if (isOpen(one)) { this.open.set(one.number, hasNotBegun(one) ? { ...one, flows: [] } : one); return; }
    this.open.delete(one.number);
    const rest = this.over.filter((other) => other.number !== one.number);
    this.over = [...rest, one].sort((a, b) => b.number - a.number);
  }

  /** How far those are that are running: no event tells of single tasks. */
  private async lookLive(): Promise<void> {
    const begun = performance.now(), { found } = await this.pages("opening,running", Infinity), seen = new Set(found.map((one) => one.number));
    this.liveTook = performance.now() - begun;
    // A submission that is no longer among them has ended, even if no event said so.
    for (const one of this.open.values()) if (one.state !== "queued" && !seen.has(one.number)) this.dirty.add(one.number);
    for (const one of found) this.open.set(one.number, one);
    this.changed("open");
  }

  private async lookRecurrences(): Promise<void> {
    this.recurrences = (await this.client.get<{ recurrences: Recurrence[] }>("/api/v1/recurrences")).recurrences;
    this.changed("recurrences");
  }

  /** Moments since the last one that is known. */
  private async lookLoad(): Promise<void> {
    const last = this.load.at(-1)?.at, least = this.now - LOAD_FOR;
    const { points } = await this.client.get<{ points: LoadPoint[] }>(at("/api/v1/load", { since: last }));
    const fresh = points.filter((point) => last === undefined || millis(point.at) > millis(last));
    if (fresh.length === 0) return;
    this.load = [...this.load.filter((point) => millis(point.at) > least), ...fresh];
    this.changed("load");
  }

  /** Alerts come as events and from the service's list; each is kept once. */
  private alerted(found: Happening[]): void {
    const key = ({ at, kind, number, flow }: Happening) => `${millis(at)} ${kind} ${number} ${flow}`, known = new Set(this.alerts.map(key));
    const fresh = found.filter((alert) => !known.has(key(alert)));
    if (fresh.length === 0) return;
    this.alerts = [...fresh, ...this.alerts].sort((a, b) => millis(b.at) - millis(a.at)).slice(0, ALERTS_MOST);
    this.changed("alerts");
  }

  /** Attempts that ended since it was asked for the last time, and those running. */
  private async lookAttempts(): Promise<void> {
    const ended = this.attempts.filter((attempt) => attempt.end), now = this.now;
    const last = ended.reduce((most, attempt) => attempt.end! > most ? attempt.end! : most, "");
    const { attempts } = await this.client.get<{ attempts: Attempt[] }>(at("/api/v1/timeline", { since: last }));
    for (const one of attempts) [one.from, one.to] = [millis(one.start), one.end ? millis(one.end) : null];
    const keys = new Set(attempts.map(keyOf));
    const kept = ended.filter((attempt) => attempt.to! > now - ATTEMPTS_FOR && !keys.has(keyOf(attempt)));
    this.attempts = [...kept, ...attempts];
    this.changed("attempts");
  }
}

const OVER = "finished,failed,cancelled,rejected";

function keyOf(attempt: Attempt): string {
  return `${attempt.number}/${attempt.flow}/${attempt.job}/${attempt.phase}/${attempt.task}/${attempt.slot}/${attempt.start}`;
}
