// Flows of submissions as rows: what is shown of each, how urgent it is, and which are looked for.
import { FATES } from "../colour";
import { dot, h } from "../dom";
import { duration } from "../format";
import type { Flow, FlowStatus, Submission, SubmissionState } from "./api";
import { millis } from "./time";

export type Fate = "met" | "likely" | "late" | "free" | "failed" | "unknown";

/** Whether a deadline holds, as colour and words. */
export interface Verdict { fate: Fate; words: string }

export const FATE_COLOURS: Record<Fate, string> = { ...FATES, likely: "#e69f00", unknown: FATES.free };

export interface Row {
  key: string; number: number; submission: Submission;
  /** None of a submission whose flows are not known yet. */
  flow: Flow | null;
  name: string;
  state: FlowStatus | SubmissionState;
  deadline: number | null; predicted: number | null;
  verdict: Verdict;
  /** The smaller, the more urgent. */
  urgency: number;
  words: string;
}

const ORDER: Record<string, number> = { failed: 0, running: 1, waiting: 2, opening: 2, queued: 3, held: 4, finished: 5, cancelled: 5 };

/** A fate by colour and by word. */
export function fated({ fate, words }: Verdict): HTMLElement {
  return h("span", { class: `fate ${fate}` }, dot(FATE_COLOURS[fate]), words);
}

/** Predictions are brought up to date so often that one which is past for longer says nothing any more, milliseconds. */
const GRACE = 30_000;

/** How a flow fares with its deadline. */
export function verdict(flow: Flow, now: number): Verdict {
  if (flow.state === "failed") return { fate: "failed", words: "failed" };
  if (flow.state === "cancelled") return { fate: "free", words: "cancelled" };
  if (!flow.deadline) return { fate: "free", words: "no deadline" };
  const due = millis(flow.deadline), seconds = (from: number) => duration(Math.round(from / 1000));
  if (flow.completion) {
    const early = due - millis(flow.completion);
    return early >= 0 ? { fate: "met", words: `in time, ${seconds(early)} early` } : { fate: "late", words: `late by ${seconds(-early)}` };
  }
  if (due < now) return { fate: "late", words: `late by ${seconds(now - due)} so far` };
  // Also if it had a prediction before it was held.
  if (flow.state === "held") return { fate: "unknown", words: "held, not predicted" };
  if (!flow.predicted) return { fate: flow.late ? "likely" : "unknown", words: flow.late ? "likely late" : flow.unknown ? "unknown" : "not predicted yet" };
  if (now - millis(flow.predicted) > GRACE && !flow.late) return { fate: "unknown", words: "was predicted before now" };
  // What is not done yet is not done before now, even if it was predicted for earlier.
  const spare = due - Math.max(now, millis(flow.predicted));
  return spare >= 0 && !flow.late ? { fate: "met", words: `in time, ${seconds(spare)} to spare` } : { fate: "likely", words: `likely late by ${seconds(Math.max(0, -spare))}` };
}

export function stateOf(submission: Submission, flow: Flow | null): FlowStatus | SubmissionState {
  if (flow && ["finished", "failed", "cancelled"].includes(flow.state)) return flow.state;
  if (submission.held) return "held";
  return flow?.state ?? submission.state;
}

/** How one that has not begun fares with the first deadline of its flows. */
function unbegun(deadline: number | null, now: number): Verdict {
  if (deadline !== null && deadline < now) return { fate: "late", words: `late by ${duration(Math.round((now - deadline) / 1000))} so far, not started` };
  return { fate: "unknown", words: "not begun" };
}

function row(submission: Submission, flow: Flow | null, now: number): Row {
  const { number, name, user } = submission, state = stateOf(submission, flow);
  const due = flow ? flow.deadline : submission.deadline, deadline = due ? millis(due) : null, predicted = flow?.predicted ? millis(flow.predicted) : null;
  const said = flow ? verdict(flow, now) : unbegun(deadline, now);
  // Those late or likely to be come first, then by state; within these by how much there is to spare.
  const isOver = ["finished", "cancelled"].includes(state), isLate = !isOver && (said.fate === "late" || said.fate === "likely");
  const slack = deadline === null ? 1e11 : Math.min(9e10, deadline - Math.max(predicted ?? 0, now));
  return {
    key: `${number}/${flow?.flow ?? ""}`, number, submission, flow, name: flow?.flow ?? name, state, deadline, predicted, verdict: said,
    urgency: (isLate ? -1 : ORDER[state] ?? 3) * 1e13 + slack,
    words: `${number}\n${name}\n${user}\n${flow?.flow ?? ""}\n${state}`.toLowerCase(),
  };
}

export function rowsOf(submissions: Iterable<Submission>, now: number): Row[] {
  const rows: Row[] = [];
  for (const submission of submissions) {
    if (submission.flows.length === 0) rows.push(row(submission, null, now));
    else for (const flow of submission.flows) rows.push(row(submission, flow, now));
  }
  return rows;
}

/** What may be shown alone. */
export const FILTERS: [string, string, (row: Row) => boolean][] = [
  ["all", "all", () => true],
  ["late", "late or likely to be", (row) => ["late", "likely"].includes(row.verdict.fate) && row.state !== "finished"],
  ["running", "running", (row) => row.state === "running"],
  ["waiting", "waiting for slots", (row) => ["waiting", "opening"].includes(row.state)],
  ["queued", "in the queue", (row) => row.state === "queued"],
  ["held", "held", (row) => row.state === "held"],
  ["failed", "failed", (row) => row.state === "failed"],
];

/** What rows are ordered by; null comes last. */
export const ORDERS: Record<string, (row: Row) => number | string | null> = {
  urgency: (row) => row.urgency,
  name: (row) => row.name,
  number: (row) => row.number,
  state: (row) => row.state,
  progress: (row) => row.flow && row.flow.tasks > 0 ? row.flow.done / row.flow.tasks : null,
  deadline: (row) => row.deadline,
  predicted: (row) => row.predicted,
};

export function ordered(rows: Row[], by: string, descending: boolean): Row[] {
  const value = ORDERS[by], turn = descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, value: value(row) }));
  keyed.sort((a, b) => {
    if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null) || a.row.number - b.row.number;
    const order = typeof a.value === "string" ? a.value < String(b.value) ? -1 : Number(a.value !== b.value) : a.value - Number(b.value);
    return turn * order || a.row.number - b.row.number;
  });
  return keyed.map((entry) => entry.row);
}
