// Submits a flow file: shows its errors with their lines, then its prediction.
import { h } from "../dom";
import type { Accepted, Prediction, Submission, Submit } from "./api";
import { Refused, wordsOf } from "./api";
import { field, notify, tick, windowed } from "./dialogs";
import { foretold, unforeseen } from "./foretold";
import { isOpen, type Store } from "./store";
import { away, clock, localised, millis } from "./time";

/** How often it is looked whether there is a prediction, and for how long, milliseconds. */
const LOOK_EVERY = 1_000, LOOK_FOR = 120_000;

type Choice<T extends string> = [T, string][];
const IF_LATE: Choice<"accept" | "reject"> = [["accept", "run it all the same"], ["reject", "do not begin it"]];
const OVERLAP: Choice<"apart" | "wait" | "skip" | "replace"> = [["apart", "wait for it, unless both have separate paths"], ["wait", "wait for it"], ["skip", "leave this one out"], ["replace", "stop it"]];
const CATCH_UP: Choice<"none" | "latest" | "all"> = [["latest", "make up for the latest"], ["all", "make up for each"], ["none", "leave them out"]];

function select(choices: [string, string][]): HTMLSelectElement {
  return h("select", {}, ...choices.map(([value, text]) => h("option", { value }, text)));
}

export class SubmitForm {
  private readonly dialog: HTMLDialogElement;
  private readonly document = h("textarea", { rows: 12, spellcheck: "false", required: true, placeholder: "slackline = 1\n\n[[flows]]\nid = …" });
  private readonly chosen = h("input", { type: "file", accept: ".toml,.json,.yaml,.yml,.xml,.txt" });
  private readonly file = h("input", { placeholder: "flow.toml" });
  private readonly name = h("input", { placeholder: "as the file" });
  private readonly directory = h("input", { placeholder: "/srv/flows" });
  private readonly parameters = h("textarea", { rows: 2, spellcheck: "false", placeholder: "night=2026-03-01" });
  private readonly deadlines = h("textarea", { rows: 2, spellcheck: "false", placeholder: "load=2h" });
  private readonly priority = h("input", { type: "number", min: 0, step: 1, value: 0 });
  private readonly held = h("input", { type: "checkbox" });
  private readonly ifLate = select(IF_LATE);
  private readonly overlap = select(OVERLAP);
  private readonly when = h("textarea", { rows: 2, spellcheck: "false", placeholder: "in/2026-03-01/*.csv" });
  private readonly whenInputs = h("input", { type: "checkbox" });
  private readonly cron = h("input", { placeholder: "0 2 * * 1-5" });
  private readonly zone = h("input", { placeholder: "Europe/Berlin" });
  private readonly catchUp = select(CATCH_UP);
  private readonly send = h("button", { type: "submit", class: "primary" }, "Submit");
  private readonly form: HTMLFormElement;
  private readonly result = h("section", { class: "result", "aria-label": "Result", tabindex: -1, hidden: true });
  /** By this the service knows what it was sent before, if its answer was lost. */
  private key = fresh();
  private sent = "";
  private isDone = false;

  constructor(private readonly store: Store, private readonly onOpen: (number: number) => void) {
    const group = (title: string, ...parts: HTMLElement[]) => h("details", {}, h("summary", {}, title), ...parts);
    const form = this.form = h("form", { novalidate: true },
      h("div", { class: "field" }, field({ label: "Flow file", input: this.document }), h("div", {}, h("label", {}, "or choose one: ", this.chosen))),
      h("div", { class: "fields" },
        field({ label: "File name", input: this.file, help: "Name in messages; its ending gives the format" }),
        field({ label: "Name", input: this.name, help: "One submission of a name runs at a time, on the same outputs" }),
        field({ label: "Directory", input: this.directory, help: "Where relative paths start, on the machine of the service" }),
        field({ label: "Priority", input: this.priority, help: "Submissions with higher priority start first" }),
        field({ label: "Parameters", input: this.parameters, help: "One a line: NAME=VALUE" }),
        field({ label: "Deadlines", input: this.deadlines, help: "One a line: FLOW=2h, a time of day, or a date and time" }),
        field({ label: "If a deadline is predicted to be missed", input: this.ifLate })),
      tick("Hold it until it is resumed", this.held),
      group("Wait for files, and for others of its name",
        h("div", { class: "fields" }, field({ label: "Start when these files exist", input: this.when, help: "One pattern a line" }),
          field({ label: "If another of its name is unfinished", input: this.overlap })),
        tick("Start when its inputs exist", this.whenInputs)),
      group("On a schedule",
        h("div", { class: "fields" },
          field({ label: "Schedule", input: this.cron, help: "Minute, hour, day of month, month, day of week; empty: once, now" }),
          field({ label: "Time zone", input: this.zone, help: "Empty: that of the service" }),
          field({ label: "Times that were missed", input: this.catchUp }))),
      h("div", { class: "buttons" }, this.send));
    this.dialog = windowed("Submit a flow file", "wide", form, this.result);
    this.chosen.addEventListener("change", () => void this.choose());
    form.addEventListener("submit", (event) => { event.preventDefault(); void this.submit(); });
  }

  open(): void {
    this.another();
    this.dialog.showModal();
    this.document.focus();
  }

  /** The form again. What was not submitted is still there; what was does not come into the next one. */
  private another(): void {
    if (this.isDone) this.form.reset();
    this.isDone = false;
    this.form.hidden = false;
    this.result.hidden = true;
    this.dialog.querySelector(".notice")!.replaceChildren();
    this.document.focus();
  }

  private async choose(): Promise<void> {
    const file = this.chosen.files?.[0];
    if (!file) return;
    this.document.value = await file.text();
    this.file.value = file.name;
  }

  /** What the form says. */
  private asked(): Submit {
    const text = (input: { value: string }) => input.value.trim() || undefined;
    const when = this.when.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const priority = Number(this.priority.value || 0);
    if (!Number.isInteger(priority) || priority < 0) throw new Refused(0, `priority: found ${this.priority.value}, expected a whole number from 0`);
    const cron = text(this.cron);
    if (!cron && text(this.zone)) throw new Refused(0, "time zone: found one without a schedule");
    return {
      document: this.document.value, file: text(this.file), name: text(this.name), directory: text(this.directory),
      parameters: pairs("parameters", this.parameters.value), deadlines: pairs("deadlines", this.deadlines.value),
      priority, held: this.held.checked, if_late: this.ifLate.value as Submit["if_late"], overlap: this.overlap.value as Submit["overlap"],
      when, when_inputs: this.whenInputs.checked,
      schedule: cron ? { cron, zone: text(this.zone), catch_up: this.catchUp.value as "none" | "latest" | "all" } : undefined,
    };
  }

  private async submit(): Promise<void> {
    this.send.disabled = true;
    try {
      const asked = this.asked(), said = JSON.stringify(asked);
      // The same again, after an answer that got lost, is the same submission.
      if (said !== this.sent) [this.sent, this.key] = [said, fresh()];
      const accepted = await this.store.client.send<Accepted>("POST", "/api/v1/submissions", { ...asked, key: this.key });
      this.sent = "";
      this.isDone = true;
      this.accepted(accepted);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      notify(error.message, true);
      this.dialog.scrollTop = 0;
    } finally {
      this.send.disabled = false;
    }
  }

  private accepted({ number, name, message, next }: Accepted): void {
    this.dialog.querySelector(".notice")!.replaceChildren();
    const outcome = h("div", { role: "status" });
    this.form.hidden = true;
    this.result.hidden = false;
    const buttons = h("div", { class: "buttons" },
      number !== undefined && h("button", { type: "button", class: "primary", click: () => { this.dialog.close(); this.onOpen(number); } }, `Show ${number}`),
      h("button", { type: "button", click: () => this.another() }, "Submit another"),
      h("button", { type: "button", click: () => this.dialog.close() }, "Done"));
    this.result.replaceChildren(h("h3", {}, localised(message, this.store.now)), outcome, buttons);
    this.result.focus();
    if (next) outcome.append(h("p", {}, `${name} is submitted next at ${clock(millis(next), this.store.now)}, ${away(millis(next), this.store.now)}.`));
    if (number === undefined) { this.store.touch(); return; }
    this.store.touch(number);
    void this.await(number, outcome);
  }

  /** Shows what is expected of it, when that is known. */
  private async await(number: number, outcome: HTMLElement): Promise<void> {
    for (const until = Date.now() + LOOK_FOR; Date.now() < until && outcome.isConnected && this.dialog.open;) {
      let one: Submission;
      try {
        one = await this.store.client.get<Submission>(`/api/v1/submissions/${number}`);
      } catch (error) {
        outcome.replaceChildren(h("p", { class: "bad" }, wordsOf(error)));
        return;
      }
      this.said(outcome, one, one.prediction);
      if (one.prediction || !isOpen(one)) return;
      await new Promise((done) => setTimeout(done, LOOK_EVERY));
    }
  }

  private said(outcome: HTMLElement, one: Submission, prediction: Prediction | undefined): void {
    const how = one.held && isOpen(one) ? "held" : one.state, line = h("p", {}, `It is ${how}${one.why ? `: ${one.why}` : ""}.`);
    if (prediction) outcome.replaceChildren(line, foretold(prediction, this.store.now, !isOpen(one)));
    else if (isOpen(one)) outcome.replaceChildren(line, h("p", { class: "muted" }, unforeseen(one) ?? "The prediction appears here when the service has read its inputs."));
    else outcome.replaceChildren(line);
  }
}

/** Lines of `NAME=VALUE`. */
function pairs(what: string, text: string): Record<string, string> {
  const found = new Map<string, string>();
  text.split("\n").forEach((line, k) => {
    if (!line.trim()) return;
    const at = line.indexOf("=");
    if (at <= 0) throw new Refused(0, `${what}, line ${k + 1}: found ${line.trim()}, expected NAME=VALUE`);
    const name = line.slice(0, at).trim();
    if (found.has(name)) throw new Refused(0, `${what}, line ${k + 1}: found ${name} twice, expected it once`);
    found.set(name, line.slice(at + 1).trim());
  });
  return Object.fromEntries(found);
}

/** A unique word; pages without TLS have no other way to make one. */
function fresh(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
