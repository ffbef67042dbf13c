// The document that the Rust side writes (`report/page/document.rs`), and what is looked up in it. Times are ticks.

export interface Names { names: string[]; at: number[] }

export interface TableColumn {
  name: string; heading: string; shown: boolean;
  texts: string[]; values: (number | null)[]; best: boolean[];
}

export interface Curve { width: number; means: number[] }

export interface Bars {
  phase: number[]; task: number[]; slot: number[]; slots: number[];
  start: number[]; length: number[]; startup: number[]; attempt: number[]; outcome: number[];
}

export interface Choice { at: number; rule: string; by: "kept" | "rule" | "search"; cost: number | null; flows: number }

export interface Master { job: number; slot: number | null; start: number; up: number | null; end: number }

export interface Ran {
  wait: number[]; took: number[]; cost: (number | null)[] | null;
  start: number[]; held: number[];
  slot_kinds: Curve[]; largest: number[]; shares: Curve[];
  bars: Bars | null; ams: Master[]; choices: Choice[];
  explained: Explained[]; spans: number | null;
}

/** What explain says of a flow, and who held the slots that it wanted. */
export interface Explained { flow: number; text: string; wanted: number; holders: [number, number][]; idle: number }

export interface Curves {
  title: string; x_title: string; unit: "seconds" | "percent" | "count" | "number";
  x: number[]; marked: number | null;
  /** What the answer has to reach. */
  limit: number | null;
  /** The band is the range around each value, if there is one. */
  lines: { name: string; values: (number | null)[]; band: ([number, number] | null)[] | null }[];
}

export interface Policy {
  name: string; refused: string | null; failed: number;
  bound: number | null; gap: number | null; ran: Ran | null;
}

export interface GroupTable {
  by: string; name: string; flows: number;
  values: ([number | null, string][] | null)[];
}

export interface Doc {
  version: number; tick: number; end: number; title: string; head: string;
  made: {
    version: string; verb: string; command: string; seeds: string[];
    options: Record<string, unknown>; workload_sha256: string;
  };
  objective: string;
  /** Which policies are best, in two parts; the first one has the names. */
  answer: { names: string; rest: string } | null;
  /** What says how far the figures may be believed: lines, the first of which heads the others. */
  reliability: string[];
  clock: { local: string; zone: string; shifts: [number, number][] } | null;
  cluster: {
    slot_kinds: { name: string; slots: number }[];
    groups: { name: string; count: number; speed: number; rack: string | null; slots: number[] }[];
  };
  workload: {
    flows: {
      id: string[]; release: number[]; deadline: number[]; pool: Names; user: Names;
      work: number[]; alone: number[]; jobs: number[];
    };
    jobs: { id: Names; phases: number[] };
    phases: { kind: number[]; tasks: number[] };
  };
  table: { columns: TableColumn[] };
  groups: GroupTable[];
  extras: {
    warnings: string[];
    notes: string[];
    tables: { title: string; table: { columns: TableColumn[] } }[];
    curves: Curves[];
    predicted: number[] | null;
  };
  with_bars: boolean;
  policies: Policy[];
}

/** Reads the document that lies compressed in the page. */
export async function read(): Promise<Doc> {
  const text = document.getElementById("data")!.textContent!.trim();
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let k = 0; k < binary.length; k++) bytes[k] = binary.charCodeAt(k);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(unpacked).json() as Doc;
}

/** What a search found, in a sentence; null of other verbs. */
export function answerOf(doc: Doc): string | null {
  return ["tune", "capacity"].includes(doc.made.verb) ? doc.head.trim().split("\n")[0] : null;
}

/** What the columns mean together: who belongs to whom, and when things were. */
export class Model {
  /** By job: its flow. By phase: its job. */
  readonly flowOfJob: Int32Array;
  readonly jobOfPhase: Int32Array;
  /** By job: its first phase. By flow: its first job. */
  readonly firstPhase: Int32Array;
  readonly firstJob: Int32Array;
  /** By slot kind: its first row among all slots. */
  readonly firstSlot: number[];
  readonly nSlots: number;
  /** Policies that ran, by their place. */
  readonly ran: number[];

  constructor(readonly doc: Doc) {
    const { flows, jobs, phases } = doc.workload;
    this.flowOfJob = new Int32Array(jobs.phases.length);
    this.firstJob = new Int32Array(flows.id.length + 1);
    let job = 0;
    flows.jobs.forEach((count, flow) => {
      this.firstJob[flow] = job;
      for (let k = 0; k < count; k++) this.flowOfJob[job++] = flow;
    });
    this.firstJob[flows.id.length] = job;
    this.jobOfPhase = new Int32Array(phases.kind.length);
    this.firstPhase = new Int32Array(jobs.phases.length + 1);
    let phase = 0;
    jobs.phases.forEach((count, job) => {
      this.firstPhase[job] = phase;
      for (let k = 0; k < count; k++) this.jobOfPhase[phase++] = job;
    });
    this.firstPhase[jobs.phases.length] = phase;
    this.firstSlot = [];
    let slots = 0;
    for (const slotKind of doc.cluster.slot_kinds) { this.firstSlot.push(slots); slots += slotKind.slots; }
    this.nSlots = slots;
    for (const policy of doc.policies) undelta(policy.ran?.bars);
    this.ran = doc.policies.flatMap((policy, k) => policy.ran ? [k] : []);
  }

  get nFlows(): number { return this.doc.workload.flows.id.length; }
  get nJobs(): number { return this.flowOfJob.length; }

  flowName(flow: number): string { return this.doc.workload.flows.id[flow]; }
  jobName(job: number): string {
    const id = this.doc.workload.jobs.id;
    return id.names[id.at[job]];
  }
  phaseName(phase: number): string { return this.doc.workload.phases.kind[phase] ? "reduce" : "map"; }
  flowOfPhase(phase: number): number { return this.flowOfJob[this.jobOfPhase[phase]]; }
  pool(flow: number): string { return nameAt(this.doc.workload.flows.pool, flow); }
  user(flow: number): string { return nameAt(this.doc.workload.flows.user, flow); }
  release(flow: number): number { return this.doc.workload.flows.release[flow]; }
  /** Ticks, or null for none. */
  deadline(flow: number): number | null {
    const at = this.doc.workload.flows.deadline[flow];
    return at < 0 ? null : at;
  }

  started(ran: Ran, flow: number): number | null {
    return ran.wait[flow] < 0 ? null : this.release(flow) + ran.wait[flow];
  }
  completed(ran: Ran, flow: number): number | null {
    return ran.took[flow] < 0 ? null : this.release(flow) + ran.took[flow];
  }
  phaseStart(ran: Ran, phase: number): number | null {
    return ran.held[phase] < 0 ? null : this.release(this.flowOfPhase(phase)) + ran.start[phase];
  }
  /** Ticks after the deadline, negative if before; null without a deadline or a completion. */
  lateness(ran: Ran, flow: number): number | null {
    const due = this.deadline(flow), done = this.completed(ran, flow);
    return due === null || done === null ? null : done - due;
  }
  fate(ran: Ran, flow: number): Fate {
    if (this.completed(ran, flow) === null) return "failed";
    const late = this.lateness(ran, flow);
    return late === null ? "free" : late > 0 ? "late" : "met";
  }

  /** The slot kind that serves a phase. */
  slotKindOf(phase: number): number {
    return this.doc.cluster.slot_kinds.length > 1 ? this.doc.workload.phases.kind[phase] : 0;
  }
  /** The name of the machine that has a slot of a slot kind, and the slot's number on it. */
  machineOf(slotKind: number, slot: number): string {
    let first = 0;
    for (const group of this.doc.cluster.groups) {
      const per = group.slots[slotKind];
      if (slot < first + per * group.count) {
        const machine = Math.floor((slot - first) / per);
        return group.count === 1 ? group.name : `${group.name}-${machine}`;
      }
      first += per * group.count;
    }
    return "?";
  }
}

/** How a flow fared: with its deadline met, late, without one, or not at all. */
export type Fate = "met" | "late" | "free" | "failed";

function nameAt(names: Names, k: number): string {
  return names.at[k] < 0 ? "" : names.names[names.at[k]];
}

function undelta(bars: Bars | null | undefined): void {
  if (!bars) return;
  for (const column of [bars.start, bars.phase]) {
    for (let k = 1; k < column.length; k++) column[k] += column[k - 1];
  }
}
