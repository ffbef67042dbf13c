// How the service fares, in a few figures, and what is wrong with it.
import { h, write } from "../dom";
import { count, percent } from "../format";
import type { Calibration, Service } from "./api";
import type { Row } from "./rows";
import type { Store } from "./store";
import { away, clock, millis } from "./time";

export class Headline {
  readonly element = h("div", {});
  readonly about = h("p", { class: "muted" });
  private readonly figures = h("dl", { class: "figures" });
  private readonly good = h("p", { class: "muted" });
  private readonly trouble = h("div", { class: "banner bad", role: "alert", hidden: true });
  private readonly draining = h("div", { class: "banner", role: "status", hidden: true }, "The service is drained: running tasks finish, no new task starts.");
  private readonly gone = h("div", { class: "banner bad", role: "alert", hidden: true });

  constructor(private readonly store: Store) {
    this.element.append(this.gone, this.trouble, this.draining, this.figures, this.good);
  }

  draw(rows: Row[]): void {
    const { service } = this.store;
    if (!service) return;
    const { version, engine, policy, objective, started } = service;
    this.about.textContent = `version ${version} · ${engine} · policy ${policy}${objective ? ` for a small ${objective}` : ""} · started ${clock(millis(started), this.store.now)}`;
    this.trouble.hidden = !service.trouble;
    write(this.trouble, service.trouble ? `Problem of the service: ${service.trouble}` : "");
    this.draining.hidden = !service.draining;
    const figures = this.numbers(service, rows);
    if (this.figures.childElementCount !== figures.length) {
      this.figures.replaceChildren(...figures.map(([name]) => h("div", {}, h("dt", {}, name), h("dd", {}), h("dd", { class: "muted" }))));
    }
    figures.forEach(([, value, more, isBad], k) => {
      const [, large, small] = [...this.figures.children[k].children] as HTMLElement[];
      write(large, value);
      write(small, more);
      large.className = isBad ? "bad" : "";
    });
    write(this.good, calibration(service.calibration));
    // The title of a tab in the background shows the number of late flows.
    const late = rows.filter((row) => ["late", "likely"].includes(row.verdict.fate) && row.state !== "finished").length;
    document.title = late > 0 ? `(${late} late) Slackline` : "Slackline";
  }

  private numbers(service: Service, rows: Row[]): [string, string, string, boolean][] {
    const { slots, running, waiting, submissions, machines } = service, there = machines.filter((machine) => machine.up).length, of = (value = 0) => value.toLocaleString("en-US");
    const is = (fate: string) => rows.filter((row) => row.verdict.fate === fate && row.state !== "finished").length;
    const late = is("late"), likely = is("likely"), failed = submissions.failed ?? 0;
    const held = [...this.store.open.values()].filter((one) => one.held).length;
    return [
      ["slots in use", `${of(running)} of ${of(slots)}`, slots > 0 ? percent(running / slots) : "", false],
      ["waiting tasks", of(waiting), "of started submissions", false],
      ["submissions", of((submissions.running ?? 0) + (submissions.opening ?? 0)), "started and unfinished", false],
      ["in the queue", of(submissions.queued), held > 0 ? `${of(held)} held` : "none held", false],
      ["late", of(late), "past their deadlines", late > 0],
      ["likely late", of(likely), "predicted to be late", likely > 0],
      ...(machines.length > 1 ? [["machines", `${of(there)} of ${of(machines.length)}`, "are there", there < machines.length] as [string, string, string, boolean]] : []),
      ["finished", of((submissions.finished ?? 0) + failed + (submissions.cancelled ?? 0) + (submissions.rejected ?? 0)), `${of(failed)} failed, as far as remembered`, false],
    ];
  }

  /** Says whether the service is there. */
  link(): void {
    const { link, now } = this.store;
    this.gone.hidden = link.isThere || !link.why;
    if (this.gone.hidden) return;
    // How long it takes until it is tried again changes every second; what is wrong is read out once.
    const old = `since ${clock(link.since, now)}. The page shows the state at that time.`;
    const since = link.status === 401 ? "The service does not know this client." : link.status > 0 ? `The service refuses its events ${old}` : `The service has not answered ${old}`;
    const why = link.status === 401 ? `The service answered: ${link.why}.` : `The page retries ${away(Math.max(link.again, Date.now()), Date.now())} (${link.why}).`;
    if (this.gone.childElementCount === 0) this.gone.append(h("strong", {}), h("span", { "aria-live": "off" }));
    const [first, second] = [...this.gone.children] as HTMLElement[];
    write(first, since);
    write(second, ` ${why}`);
  }
}

function calibration({ flows, inside, error, bias, deadlines, unknown }: Calibration): string {
  const without = unknown > 0 ? `No forecast of ${count(unknown, "flow")}, because a job had never run.` : "";
  if (flows === 0) return without || "The accuracy of predictions is shown when the first flows have finished.";
  const side = bias >= 0 ? "later" : "earlier";
  const parts = [
    `${percent(inside)} inside the 80 % interval`,
    `mean error ${percent(error)}`, `${percent(Math.abs(bias))} ${side} than predicted`,
    deadlines === undefined ? "" : `${percent(deadlines)} of deadlines predicted correctly`,
  ];
  return `Forecast accuracy (${count(flows, "flow")}): ${parts.filter(Boolean).join(", ")}. ${without}`.trim();
}
