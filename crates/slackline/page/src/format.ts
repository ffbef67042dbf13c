// Numbers and times as people read them. Tables of policies come written; this is for what is pointed at.
import type { Doc } from "./data";

/** What says which times of the clock ticks are. */
export type Clocked = Pick<Doc, "clock" | "tick" | "end">;

/** A number with a few digits and a comma after every three. */
export function number(value: number): string {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 1000 ? 0 : size < 10 ? 2 : 1;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A mark of an axis: `5`, `0.25`, `20 M`; in the unit of the axis' most, if that is known. */
export function short(value: number, most = value): string {
  if (value === 0) return "0";
  const units: [number, string][] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]];
  const unit = units.find(([size]) => Math.abs(most) >= size);
  const scaled = unit ? value / (unit[1] === " k" ? 1e3 : unit[0]) : value;
  return `${Number(scaled.toPrecision(4)).toLocaleString("en-US")}${unit?.[1] ?? ""}`;
}

export function count(value: number, noun: string): string {
  return `${value.toLocaleString("en-US")} ${noun}${value === 1 ? "" : "s"}`;
}

export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return "0 %";
  return `${value.toFixed(Math.abs(value) < 10 ? 1 : 0)} %`;
}

/** `12.5 s`, `3m 20s`, `1h 16m 05s`, `12h 05m`, `3d 04h`. */
export function duration(seconds: number): string {
  const sign = seconds < 0 ? "−" : "", size = Math.abs(seconds);
  if (size < 1) return `${sign}${size === 0 ? 0 : size.toPrecision(2)} s`;
  if (size < 120) return `${sign}${Number(size.toFixed(1))} s`;
  const whole = Math.round(size), pad = (value: number) => String(value).padStart(2, "0");
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)}m ${pad(whole % 60)}s`;
  if (whole < 36000) return `${sign}${Math.floor(whole / 3600)}h ${pad(Math.floor(whole % 3600 / 60))}m ${pad(whole % 60)}s`;
  const minutes = Math.round(size / 60);
  if (minutes < 2880) return `${sign}${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m`;
  const hours = Math.round(size / 3600);
  return `${sign}${Math.floor(hours / 24)}d ${pad(hours % 24)}h`;
}

/** How durations are written of which the longest is known, all alike: seconds, minutes and seconds, or hours too. */
export function alike(all: Iterable<number>): { unit: string; text: (seconds: number) => string } {
  let longest = 0;
  for (const seconds of all) longest = Math.max(longest, Math.abs(seconds));
  const digits = longest < 10 ? 2 : longest < 1000 ? 1 : 0, pad = (value: number) => String(value).padStart(2, "0");
  if (longest < 1000) return { unit: "s", text: (seconds) => `${signOf(seconds)}${Math.abs(seconds).toFixed(digits)}` };
  const clock = (seconds: number) => {
    const whole = Math.round(Math.abs(seconds));
    return `${signOf(seconds)}${Math.floor(whole / 3600)}:${pad(Math.floor(whole % 3600 / 60))}:${pad(whole % 60)}`;
  };
  return { unit: "h:mm:ss", text: clock };
}

/** A column of durations, null for none. */
export function inColumn(all: (number | null)[]): { unit: string; texts: string[] } {
  const { unit, text } = alike(all.filter((value) => value !== null));
  return { unit, texts: all.map((value) => value === null ? "–" : text(value)) };
}

/** How points in time are written in a column: by the clock, else all alike as times after the start. */
export function moments(doc: Clocked): { unit: string; text: (ticks: number) => string } {
  if (local(doc, 0) !== null) return { unit: "", text: (ticks) => instant(doc, ticks) };
  const { unit, text } = alike([doc.end * doc.tick]);
  return { unit, text: (ticks) => text(ticks * doc.tick) };
}

/** A heading with the unit of its column. */
export function headed(heading: string, unit: string): string { return unit ? `${heading} [${unit}]` : heading; }

function signOf(value: number): string { return value < 0 ? "−" : ""; }

/** Marks of an axis of durations from 0, all in the largest unit of which the axis shows more than one and a half. */
export function timeScale(most: number, about: number): { unit: string; marks: { at: number; label: string }[] } {
  const units: [number, string][] = [[86400, "days"], [3600, "hours"], [60, "minutes"]];
  const [size, unit] = units.find(([size]) => most >= 1.5 * size) ?? [1, "seconds"];
  return { unit, marks: marks(most / size, about).map((at) => ({ at: at * size, label: short(at) })) };
}

/** Seconds of the local clock at a second of the workload, as if it were UTC; null without a clock. */
function local(doc: Clocked, seconds: number): number | null {
  // Short times are shown in seconds: the clock would hide them.
  if (!doc.clock || doc.end * doc.tick < 100) return null;
  let ahead = 0;
  for (const [at, shift] of doc.clock.shifts) if (seconds >= at) ahead = shift;
  return Date.parse(`${doc.clock.local.slice(0, 23)}Z`) / 1000 + seconds + ahead;
}

/** A point in time: by the clock if there is one, else as a duration from the start. */
export function instant(doc: Clocked, ticks: number): string {
  const seconds = ticks * doc.tick, clock = local(doc, seconds);
  if (clock === null) return duration(seconds);
  const start = local(doc, 0)!;
  const moment = new Date(Math.round(clock) * 1000);
  const time = moment.toISOString().slice(11, 19).replace(/:00$/, "");
  return Math.floor(start / 86400) === Math.floor(clock / 86400) ? time : `${dayName(moment)} ${time}`;
}

function dayName(moment: Date): string {
  return moment.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/** Marks of a time axis between two ticks: about `most` at most, at round times of the clock. */
export function timeMarks(doc: Clocked, from: number, to: number, most: number): { at: number; label: string }[] {
  const a = from * doc.tick, b = to * doc.tick, least = (b - a) / Math.max(1, most);
  const step = least < 1 ? niceStep(least) : STEPS.find((step) => step >= least) ?? Math.ceil(least / 604800) * 604800;
  const shift = (local(doc, 0) ?? 0) % 86400;
  const marks = [];
  for (let k = Math.ceil((a + shift) / step); k * step - shift <= b; k++) {
    const at = k * step - shift;
    marks.push({ at: at / doc.tick, label: markLabel(doc, at, step, b) });
  }
  return marks;
}

/** All marks of an axis are in the same units: those that its end needs. */
function markLabel(doc: Clocked, seconds: number, step: number, end: number): string {
  const clock = local(doc, seconds);
  if (clock !== null) {
    const moment = new Date(Math.round(clock * 1000)), text = moment.toISOString();
    if (clock % 86400 === 0) return dayName(moment);
    return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
  }
  if (seconds === 0) return "0";
  if (step < 1) return `${Number(seconds.toFixed(6))} s`;
  if (step < 60 && end < 1000) return `${seconds} s`;
  const pad = (value: number) => String(value).padStart(2, "0"), whole = Math.round(seconds);
  const h = Math.floor(whole / 3600), m = Math.floor(whole % 3600 / 60);
  if (step < 60) return `${h}:${pad(m)}:${pad(whole % 60)}`;
  if (step % 86400 === 0) return `${whole / 86400} d`;
  if (step % 3600 === 0) return `${h} h`;
  return end < 3600 ? `${m} min` : `${h} h ${pad(m)}`;
}

/** The least of 1, 2 and 5 times a power of ten that is no less. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least || 1));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999)!;
}

/** Marks of an axis of numbers from 0. */
export function marks(most: number, about: number): number[] {
  const step = niceStep(most / about || 1), found = [];
  for (let k = 0; k * step <= most * 1.0001; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}
