// Elements, made of text alone: nothing that users named is ever read as HTML.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

function fill<T extends Element>(element: T, props: Props, children: Child[]): T {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child || child === "") element.append(child as Node | string);
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

let ids = 0;
export function freshId(): string { return `i${ids++}`; }

/** A part of a page, with its heading. */
export function section(id: string, title: string, ...parts: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...parts);
}

/** A square of a colour, beside what it stands for. */
export function dot(colour: string): HTMLElement {
  const square = h("span", { class: "dot", "aria-hidden": "true" });
  square.style.background = colour;
  return square;
}

/** Sets a text only if it is another: what is the same need not be laid out again. */
export function write(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** A chart's numbers as a table that is made when it is opened. */
export function asTable(title: string, make: () => HTMLElement): HTMLDetailsElement {
  return new LiveTable(title, make).element;
}

/** The same of a chart whose numbers change: the table is made again with the chart while it is open. */
export class LiveTable {
  readonly element: HTMLDetailsElement;
  private made: HTMLElement | null = null;

  constructor(title: string, private readonly make: () => HTMLElement) {
    this.element = h("details", { class: "as-table" }, h("summary", {}, `As a table: ${title}`));
    this.element.addEventListener("toggle", () => this.draw());
  }

  draw(): void {
    if (!this.element.open) return;
    const fresh = this.make();
    // A reader keeps the scroll position.
    if (this.made === null) this.element.append(this.made = fresh);
    else if (this.made.textContent !== fresh.textContent) this.made.replaceChildren(...fresh.childNodes);
  }
}

/** A plain table of texts. */
export function plainTable(caption: string, head: string[], rows: string[][]): HTMLElement {
  return h("div", { class: "scroll-x", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((text, k) =>
        k === 0 ? h("th", { scope: "row" }, text) : h("td", {}, text)))))));
}
