// Tables whose rows are ordered by a click on a heading.
import { h } from "./dom";

export interface Column<R> {
  heading: string;
  /** The unit of all that is below it. */
  unit?: string;
  /** What is shown. */
  text: (row: R) => string | Node;
  /** What rows are ordered by: numbers, or words; null comes last. */
  value: (row: R) => number | string | null;
  words?: boolean;
  best?: (row: R) => boolean;
  title?: string;
}

export interface Options<R> {
  caption: string;
  /** By which column rows are ordered at first; −1: as they are. */
  sort?: number;
  descending?: boolean;
  /** Rows that are shown at first, and how many more at a time. */
  page?: number;
  chosen?: (row: R) => boolean;
  onChoose?: (row: R) => void;
}

export class SortedTable<R> {
  readonly element: HTMLElement;
  private sort: number;
  private descending: boolean;
  private shown: number;

  constructor(private readonly columns: Column<R>[], private rows: R[], private readonly options: Options<R>) {
    this.sort = options.sort ?? -1;
    this.descending = options.descending ?? false;
    this.shown = options.page ?? Infinity;
    this.element = h("div", { class: "scroll-x", tabindex: 0, role: "region", "aria-label": options.caption });
    this.draw();
  }

  set(rows: R[], caption = this.options.caption): void {
    this.rows = rows;
    this.options.caption = caption;
    this.element.setAttribute("aria-label", caption);
    this.shown = this.options.page ?? Infinity;
    this.draw();
  }

  draw(): void {
    const rows = this.ordered(), { caption, page } = this.options;
    const body = rows.slice(0, this.shown).map((row) => this.row(row));
    const count = (n: number) => n.toLocaleString("en-US");
    const part = rows.length > this.shown ? `, the first ${count(this.shown)} of ${count(rows.length)}` : "";
    const table = h("table", {}, h("caption", {}, caption + part),
      h("thead", {}, h("tr", {}, ...this.columns.map((column, k) => this.heading(column, k)))),
      h("tbody", {}, ...body));
    this.element.replaceChildren(table);
    if (rows.length > this.shown) {
      const more = Math.min(rows.length - this.shown, Math.max(200, page!));
      this.element.append(h("button", { class: "more", type: "button", click: () => { this.shown += more; this.draw(); } },
        `Show ${more} more of ${(rows.length - this.shown).toLocaleString("en-US")}`));
    }
  }

  private heading(column: Column<R>, k: number): HTMLElement {
    const isSorted = k === this.sort;
    const sorted = isSorted ? (this.descending ? "descending" : "ascending") : "none";
    const mark = h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? (this.descending ? "▼" : "▲") : "");
    const order = () => {
      this.descending = this.sort === k ? !this.descending : !column.words;
      this.sort = k;
      this.draw();
      (this.element.querySelectorAll("th button")[k] as HTMLElement | undefined)?.focus();
    };
    return h("th", { scope: "col", "aria-sort": sorted, class: column.words ? "words" : null, title: column.title },
      h("button", { type: "button", click: order }, column.heading, mark, column.unit ? h("span", { class: "unit" }, `[${column.unit}]`) : null));
  }

  private row(row: R): HTMLElement {
    const { chosen, onChoose } = this.options;
    const cells = this.columns.map((column, k) => {
      const text = column.text(row), kind = [column.words ? "words" : "", column.best?.(row) ? "best" : ""].join(" ").trim();
      if (k > 0) return h("td", { class: kind || null }, text);
      const name = onChoose ? h("button", { type: "button", class: "link", click: () => onChoose(row) }, text) : text;
      return h("th", { scope: "row", class: kind || null }, name);
    });
    const isChosen = chosen?.(row) ?? false;
    return h("tr", { class: isChosen ? "chosen" : null, "aria-current": isChosen ? "true" : null }, ...cells);
  }

  private ordered(): R[] {
    const column = this.columns[this.sort];
    if (!column) return this.rows;
    const turn = this.descending ? -1 : 1;
    const keyed = this.rows.map((row, place) => ({ row, place, value: column.value(row) }));
    keyed.sort((a, b) => {
      if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null) || a.place - b.place;
      const order = typeof a.value === "string" ? a.value.localeCompare(String(b.value)) : a.value - Number(b.value);
      return turn * order || a.place - b.place;
    });
    return keyed.map((entry) => entry.row);
  }
}
