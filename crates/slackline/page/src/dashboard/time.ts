// Instants by the clock of the user.
import { duration, type Clocked } from "../format";

export function millis(at: string): number { return Date.parse(at); }

const pad = (value: number) => String(value).padStart(2, "0");

/** `22:41:05` today, `25 Nov 02:00` otherwise. */
export function clock(at: number, now: number): string {
  const moment = new Date(at), today = new Date(now);
  const time = `${pad(moment.getHours())}:${pad(moment.getMinutes())}`;
  if (moment.toDateString() === today.toDateString()) return `${time}:${pad(moment.getSeconds())}`;
  const day = moment.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return moment.getFullYear() === today.getFullYear() ? `${day} ${time}` : `${day} ${moment.getFullYear()} ${time}`;
}

/** A message of the service with its instants by the clock. */
export function localised(message: string, now: number): string {
  return message.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (at) => clock(millis(at), now));
}

/** `in 3m 20s`, `12.5 s ago`. */
export function away(at: number, now: number): string {
  const seconds = Math.round((at - now) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${duration(seconds)}` : `${duration(-seconds)} ago`;
}

/** What charts need to mark times between two instants, with seconds from the first as their ticks. */
export function clockOf(from: number, to: number): Clocked {
  const ahead = (at: number) => -new Date(at).getTimezoneOffset() * 60;
  const first = ahead(from), shifts: [number, number][] = [], STEP = 900_000;
  let before = first;
  for (let at = Math.ceil(from / STEP) * STEP; at <= to; at += STEP) {
    if (ahead(at) !== before) shifts.push([(at - from) / 1000, ahead(at) - first]);
    before = ahead(at);
  }
  const local = new Date(from + first * 1000).toISOString();
  // A shorter axis would be labelled in seconds, which do not say when.
  return { clock: { local, zone: "", shifts }, tick: 1, end: Math.max(100, (to - from) / 1000) };
}
