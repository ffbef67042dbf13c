// What the service is asked, and its documents (`crates/serve/src/api.rs`). Instants come as texts of RFC 3339.

export type Role = "look" | "submit" | "operate";
export type SubmissionState = "queued" | "opening" | "running" | "finished" | "failed" | "cancelled" | "rejected";
export type FlowStatus = "waiting" | "running" | "held" | "finished" | "failed" | "cancelled";

export interface Me { name: string; role: Role }

export interface Calibration { flows: number; inside: number; error: number; bias: number; deadlines?: number; unknown: number }

export interface Machine { machine: string; slots: number; up: boolean }

export interface Service {
  version: string; began: string; started: string; now: string; engine: string; policy: string; objective?: string;
  slots: number; quota?: string; machines: Machine[]; running: number; waiting: number; submissions: Partial<Record<SubmissionState, number>>;
  draining: boolean; calibration: Calibration; trouble?: string;
}

export interface Phase { tasks: number; done: number; running: number }
export interface Job { job: string; after: string[]; maps: Phase; reduces: Phase; failed_attempts?: number }

export interface Flow {
  flow: string; state: FlowStatus; release: string; deadline?: string; weight: number;
  tasks: number; done: number; running: number; failed_attempts: number;
  completion?: string; predicted?: string; predicted_between?: [string, string]; unknown?: boolean; late?: boolean; cause?: string; why?: string;
  jobs?: Job[];
}

export interface FlowPrediction {
  flow: string; completion?: string; between?: [string, string]; deadline?: string; holds?: boolean; chance?: number;
}

export interface MadeLate { number: number; name: string; flow: string; deadline: string; without: string; with: string; late_by: number }

export type Remedy =
  | { kind: "deadline"; flow: string; deadline: string }
  | { kind: "slots"; flow: string; slots: number }
  | { kind: "hold"; flow: string; numbers: number[] }
  | { kind: "nothing"; flow: string; alone: string };

export interface Prediction { made: string; flows: FlowPrediction[]; makes_late: MadeLate[]; remedies: Remedy[] }

export interface Submission {
  number: number; name: string; user: string; submitted: string; state: SubmissionState; why?: string;
  held: boolean; priority: number; flows: Flow[]; deadline?: string; occurrence?: { recurrence: string; at: string };
  ended?: string; prediction?: Prediction; unpredicted?: string; key?: string;
}

export interface Submissions { submissions: Submission[]; before?: number }

export interface Submit {
  document: string; file?: string; name?: string; directory?: string; parameters?: Record<string, string>;
  for_each?: { parameter: string; values: string }; deadlines?: Record<string, string>; priority?: number; held?: boolean;
  if_late?: "accept" | "reject"; overlap?: "apart" | "wait" | "skip" | "replace"; when?: string[]; when_inputs?: boolean;
  schedule?: { cron: string; zone?: string; catch_up?: "none" | "latest" | "all" }; key?: string;
}

export interface Accepted { number?: number; name: string; message: string; next?: string; prediction?: Prediction }
export interface Change { flow?: string; deadline?: string; weight?: number; priority?: number }

export interface Recurrence {
  name: string; user: string; schedule: { cron: string; zone?: string; catch_up: string }; overlap: string;
  paused: boolean; last?: string; next?: string;
}

export interface LoadPoint { at: string; running: number; waiting: number; queued: number }

export interface Attempt {
  number: number; flow: string; job: string; phase: string; task: number; slot?: number;
  start: string; end?: string; outcome?: string;
  /** Of one that runs: it waits for memory or processors. */
  waits?: boolean;
  /** The same as numbers, milliseconds; set when it comes. */
  from: number; to: number | null;
}

/** How it ended, or what is to be said of it while it runs. */
export function progressOf(attempt: Attempt): string { return attempt.outcome ?? (attempt.waits ? "waits for memory or processors" : "running"); }

export interface Happening { at: string; kind: string; number?: number; name?: string; flow?: string; message: string }

/** Why something was not done, in the service's words; 0 if it was not there to say. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

/** What an error says. */
export function wordsOf(error: unknown): string { return error instanceof Error ? error.message : String(error); }

const KEPT = "slackline-token";
/** After so long without an answer the service is taken to be gone. */
const PATIENCE = 30_000;

/** What a browser keeps, if it is allowed to. */
export function kept<T>(of: () => T): T | undefined {
  try {
    return of();
  } catch {
    return undefined;
  }
}

/** The service. Requests carry the token that the user entered, for as long as this tab is open. */
export class Client {
  /** Called when the service does not know the token, or there is none. */
  onUnknown: (message: string) => void = () => {};

  private mine: string | null = kept(() => sessionStorage.getItem(KEPT)) ?? null;

  get token(): string | null { return this.mine; }

  set token(token: string | null) {
    this.mine = token;
    kept(() => token ? sessionStorage.setItem(KEPT, token) : sessionStorage.removeItem(KEPT));
  }

  /** Asks, and gives the answer if it is a good one. */
  async ask(method: string, path: string, sent?: unknown, patience = PATIENCE, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {}, { token } = this;
    if (token) headers.authorization = `Bearer ${token}`;
    if (sent !== undefined) headers["content-type"] = "application/json";
    const body = sent === undefined ? undefined : JSON.stringify(sent);
    let answer: Response;
    try {
      const until = patience ? AbortSignal.timeout(patience) : undefined;
      answer = await fetch(path, { method, headers, body, signal: signal ?? until, cache: "no-store", redirect: "error" });
    } catch (error) {
      throw new Refused(0, `the service does not answer: ${wordsOf(error)}`);
    }
    if (answer.ok) return answer;
    const message = await said(answer);
    // Another token may have been given meanwhile.
    if (answer.status === 401 && token === this.token) this.onUnknown(message);
    throw new Refused(answer.status, message);
  }

  async get<T>(path: string): Promise<T> { return read<T>(await this.ask("GET", path)); }
  async text(path: string): Promise<string> { return (await this.ask("GET", path)).text(); }
  async send<T>(method: string, path: string, sent?: unknown): Promise<T> { return read<T>(await this.ask(method, path, sent)); }

  /** Sends a command and returns the message of the answer. */
  async act(method: string, path: string, sent?: unknown): Promise<string> {
    return (await this.send<{ message: string }>(method, path, sent)).message;
  }
}

async function read<T>(answer: Response): Promise<T> {
  try {
    return await answer.json() as T;
  } catch (error) {
    throw new Refused(0, `the answer of the service cannot be read: ${wordsOf(error)}`);
  }
}

async function said(answer: Response): Promise<string> {
  const text = await answer.text().catch(() => "");
  try {
    const { message } = JSON.parse(text);
    if (typeof message === "string") return message;
  } catch { /* it is no document of the service's */ }
  return text.slice(0, 300) || `the service answers ${answer.status}`;
}

/** An address with what is asked of it. */
export function at(path: string, query: Record<string, string | number | boolean | null | undefined>): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined && value !== "") words.set(name, String(value));
  return words.size > 0 ? `${path}?${words}` : path;
}
