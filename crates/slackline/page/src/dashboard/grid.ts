// A table of which only the rows in view are there, however many there are. Arrows go from row to row, Enter opens one, Space selects
// it, Ctrl+A selects all.
import { h } from "../dom";

export interface GridColumn<R> {
  heading: string;
  /** By what a click on the heading orders rows. */
  order: string;
  /** Whether the first click has the largest first. */
  largest?: boolean;
  /** Makes the cell's content once; what it gives brings it up to date. */
  cell: (cell: HTMLElement) => (row: R) => void;
}

export interface GridOptions<R> {
  label: string;
  columns: GridColumn<R>[];
  key: (row: R) => string;
  height: () => number;
  /** What is read of a row at once. */
  title: (row: R) => string;
  onOpen: (row: R) => void;
  onOrder: () => void;
  /** Whether a row may be selected. */
  may: (row: R) => boolean;
  /** Others are selected than before. */
  onSelect: (rows: R[]) => void;
}

interface Shown<R> { element: HTMLElement; tick: HTMLInputElement; at: number; row: R; update: (row: R) => void }

/** Rows that are there above and below those in view. */
const BESIDE = 6;

export class Grid<R> {
  readonly element: HTMLElement;
  by = "urgency";
  descending = false;
  private rows: R[] = [];
  private places = new Map<string, number>();
  private readonly shown = new Map<string, Shown<R>>();
  private readonly spare: Shown<R>[] = [];
  private readonly view: HTMLElement;
  private readonly spacer = h("div", { class: "grid-space", role: "presentation" });
  private readonly head: HTMLElement;
  private active: string | null = null;
  private readonly selected = new Set<string>();
  private readonly all = h("input", { type: "checkbox", "aria-label": "Select all rows", change: () => this.selectAll(this.all.checked) });
  private isDrawing = false;

  constructor(private readonly options: GridOptions<R>) {
    const { label, columns } = options;
    this.head = h("div", { class: "grid-row grid-head", role: "row", "aria-rowindex": 1 },
      h("div", { role: "columnheader", class: "cell-tick" }, this.all), ...columns.map((column) =>
      h("div", { role: "columnheader", "aria-sort": "none" },
        h("button", { type: "button", click: () => this.order(column) }, column.heading, h("span", { class: "arrow", "aria-hidden": "true" })))));
    // The head scrolls with the rows, so that both are as wide.
    this.view = h("div", { class: "grid-view", role: "presentation" },
      h("div", { class: "grid-top", role: "rowgroup" }, this.head), h("div", { role: "rowgroup" }, this.spacer));
    this.element = h("div", { class: "grid-table", role: "grid", "aria-label": label, "aria-colcount": columns.length + 1, "aria-multiselectable": "true" }, this.view);
    this.view.addEventListener("scroll", () => this.soon(), { passive: true });
    this.spacer.addEventListener("click", (event) => {
      const found = this.under(event.target as HTMLElement);
      if (!found) return;
      this.activate(found.at, false);
      if ((event.target as HTMLElement).closest(".cell-tick")) this.select(found.row);
      else this.options.onOpen(found.row);
    });
    this.spacer.addEventListener("focusin", (event) => {
      const found = this.under(event.target as HTMLElement);
      if (found) this.active = this.options.key(found.row);
    });
    this.spacer.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.soon()).observe(this.view);
    this.mark();
  }

  set(rows: R[]): void {
    this.rows = rows;
    this.places = new Map(rows.map((row, at) => [this.options.key(row), at]));
    if (this.active === null || !this.places.has(this.active)) this.active = rows.length > 0 ? this.options.key(rows[0]) : null;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    // Only what can be seen here is selected.
    for (const key of this.selected) if (!this.places.has(key)) this.selected.delete(key);
    this.chosen();
  }

  selectAll(isSelected: boolean): void {
    this.selected.clear();
    if (isSelected) for (const row of this.rows) if (this.options.may(row)) this.selected.add(this.options.key(row));
    this.chosen();
  }

  private select(row: R): void {
    const key = this.options.key(row);
    if (!this.options.may(row)) return;
    if (!this.selected.delete(key)) this.selected.add(key);
    this.chosen();
  }

  /** Shows and tells what is selected. */
  private chosen(): void {
    const rows = this.rows.filter((row) => this.selected.has(this.options.key(row))), n = this.rows.filter(this.options.may).length;
    this.all.checked = n > 0 && rows.length === n;
    this.all.indeterminate = rows.length > 0 && rows.length < n;
    this.all.disabled = n === 0;
    this.options.onSelect(rows);
    this.draw();
  }

  /** What is seen of rows, pixels. */
  private get room(): number { return this.view.clientHeight - this.head.offsetHeight; }

  private soon(): void {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => { this.isDrawing = false; this.draw(); });
  }

  /** Brings the rows in view up to date, and has no others but the one that has the focus. */
  private draw(): void {
    const height = this.options.height(), n = this.rows.length, tall = `${n * height}px`;
    if (this.spacer.style.height !== tall) this.spacer.style.height = tall;
    const whole = `${n * height + this.head.offsetHeight}px`;
    if (this.view.style.height !== whole) this.view.style.height = whole;
    const top = this.view.scrollTop, { room } = this;
    const first = Math.max(0, Math.floor(top / height) - BESIDE), last = Math.min(n, Math.ceil((top + room) / height) + BESIDE);
    const wanted = new Map<string, number>();
    for (let at = first; at < last; at++) wanted.set(this.options.key(this.rows[at]), at);
    const active = this.active === null ? undefined : this.places.get(this.active);
    if (active !== undefined) wanted.set(this.active!, active);
    for (const [key, shown] of this.shown) {
      if (wanted.has(key)) continue;
      this.shown.delete(key);
      shown.element.hidden = true;
      this.spare.push(shown);
    }
    for (const [key, at] of wanted) this.place(key, at, height);
  }

  private place(key: string, at: number, height: number): void {
    let shown = this.shown.get(key);
    const row = this.rows[at];
    if (!shown) this.shown.set(key, shown = this.spare.pop() ?? this.made());
    const { element } = shown;
    if (element.hidden) element.hidden = false;
    const y = `translateY(${at * height}px)`;
    if (element.style.transform !== y) element.style.transform = y;
    set(element, "aria-rowindex", String(at + 2));
    set(element, "tabindex", key === this.active ? "0" : "-1");
    set(element, "aria-label", this.options.title(row));
    set(element, "aria-selected", String(this.selected.has(key)));
    shown.tick.checked = this.selected.has(key);
    shown.tick.hidden = !this.options.may(row);
    shown.at = at;
    shown.row = row;
    shown.update(row);
  }

  private made(): Shown<R> {
    const cells = this.options.columns.map(() => h("div", { role: "gridcell" }));
    const updates = this.options.columns.map((column, k) => column.cell(cells[k]));
    // Rows have the focus, and Space selects them.
    const tick = h("input", { type: "checkbox", tabindex: -1, "aria-label": "Select this row" });
    const element = h("div", { class: "grid-row", role: "row", hidden: true }, h("div", { role: "gridcell", class: "cell-tick" }, tick), ...cells);
    this.spacer.append(element);
    return { element, tick, at: -1, row: undefined as R, update: (row) => { for (const update of updates) update(row); } };
  }

  private under(target: HTMLElement): Shown<R> | null {
    const element = target.closest(".grid-row");
    for (const shown of this.shown.values()) if (shown.element === element) return shown;
    return null;
  }

  private key(event: KeyboardEvent): void {
    const found = this.under(event.target as HTMLElement);
    const isAll = (event.ctrlKey || event.metaKey) && event.key === "a";
    if (isAll) { event.preventDefault(); this.selectAll(true); }
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.room / this.options.height()) - 1);
    const to: Record<string, number> = {
      ArrowDown: found.at + 1, ArrowUp: found.at - 1, PageDown: found.at + page, PageUp: found.at - page, Home: 0, End: this.rows.length - 1,
    };
    if (event.key === "Enter") this.options.onOpen(found.row);
    else if (event.key === " ") this.select(found.row);
    else if (event.key in to) this.activate(Math.max(0, Math.min(this.rows.length - 1, to[event.key])), true);
    else return;
    event.preventDefault();
  }

  private activate(at: number, isFocused: boolean): void {
    const height = this.options.height(), { view } = this;
    this.active = this.options.key(this.rows[at]);
    if (at * height < view.scrollTop) view.scrollTop = at * height;
    if ((at + 1) * height > view.scrollTop + this.room) view.scrollTop = (at + 1) * height - this.room;
    this.draw();
    if (isFocused) this.shown.get(this.active)!.element.focus({ preventScroll: true });
  }

  private order(column: GridColumn<R>): void {
    this.descending = this.by === column.order ? !this.descending : column.largest ?? false;
    this.by = column.order;
    this.mark();
    this.view.scrollTop = 0;
    this.options.onOrder();
  }

  private mark(): void {
    this.options.columns.forEach((column, k) => {
      const isSorted = column.order === this.by, heading = this.head.children[k + 1];
      heading.setAttribute("aria-sort", isSorted ? (this.descending ? "descending" : "ascending") : "none");
      heading.querySelector(".arrow")!.textContent = isSorted ? (this.descending ? "▼" : "▲") : "";
    });
  }
}

function set(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
