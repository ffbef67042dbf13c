// The state of the view; its listeners are called when it changes.

export interface Selection { flow: number; bar: number | null; policy: number }

export class State {
  /** The policy that is shown, and one beside it (−1 for none). */
  policy = 0;
  beside = -1;
  /** The window of time, ticks. */
  from = 0;
  to = 1;
  rows: "slots" | "flows" | "jobs" | "shares" = "flows";
  colour: "flow" | "fate" | "kind" = "flow";
  /** Heights of rows, as a multiple of that at which all fit. */
  tall = 1;
  selected: Selection | null = null;
  /** Drawn for paper. */
  isPaper = false;

  private readonly observers: ((what: Change) => void)[] = [];
  private pending = new Set<Change>();

  constructor(readonly end: number) { this.to = this.whole; }

  /** All of the time, with some room at its end. */
  get whole(): number { return Math.max(1, this.end * 1.01); }

  onChange(hear: (what: Change) => void): void { this.observers.push(hear); }

  /** Tells everyone before the next frame, once. */
  changed(what: Change): void {
    if (this.pending.size === 0) requestAnimationFrame(() => this.tell());
    this.pending.add(what);
  }

  private tell(): void {
    const all = [...this.pending];
    this.pending.clear();
    for (const what of all) for (const hear of this.observers) hear(what);
  }

  /** Looks at another window of the same or another length, within the whole. */
  look(from: number, to: number): void {
    const least = this.whole / 1e6, length = Math.min(this.whole, Math.max(least, to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(this.whole - length, to - from < least ? middle - length / 2 : from));
    // What is left by rounding is no time.
    if (this.from < least) this.from = 0;
    this.to = this.from + length;
    this.changed("window");
  }

  /** Makes the window `factor` times as long, and leaves one point of it in place. */
  zoom(factor: number, at = (this.from + this.to) / 2): void {
    this.look(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share: number): void {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }

  select(selected: Selection | null): void {
    this.selected = selected;
    this.changed("selection");
  }

  /** Selects a flow whose details are asked for, so that they must be seen. */
  choose(selected: Selection): void {
    this.select(selected);
    this.changed("chosen");
  }
}

export type Change = "policy" | "window" | "selection" | "chosen" | "view" | "theme";
