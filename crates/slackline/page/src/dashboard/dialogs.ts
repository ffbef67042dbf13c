// Dialogs, and messages about what was done.
import { freshId, h } from "../dom";
import { Refused } from "./api";
import { localised } from "./time";

/** A place for messages about what was done and what was not. */
export function notice(): HTMLElement { return h("div", { class: "notice", role: "status" }); }

/** Says something where it is seen: in the window that is open on top, or on the page. */
export function notify(message: string, isBad = false): void {
  const open = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
  const place = open.querySelector<HTMLElement>(".notice") ?? document.querySelector<HTMLElement>(".notice")!;
  const close = h("button", { type: "button", "aria-label": "Do not show this any more", click: () => place.replaceChildren() }, "×");
  place.replaceChildren(h("div", { class: isBad ? "bad" : "good" }, h("pre", {}, localised(message, Date.now())), close));
}

/** Has something done, says so, and gives whether it was. */
export async function does(act: () => Promise<string>): Promise<boolean> {
  try {
    notify(await act());
    return true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    notify(error.message, true);
    return false;
  }
}

export interface Field { label: string; input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement; help?: string }

/** A field with its label, and what can be said in it. */
export function field({ label, input, help }: Field): HTMLElement {
  input.id ||= freshId();
  const said = help ? h("span", { class: "muted help", id: freshId() }, help) : null;
  if (said) input.setAttribute("aria-describedby", said.id);
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, said);
}

/** A box to be ticked. */
export function tick(label: string, input: HTMLInputElement): HTMLElement {
  return h("label", { class: "tick" }, input, ` ${label}`);
}

/** A window with a title, which can be closed by Esc, too. */
export function windowed(title: string, kind: string, ...parts: Node[]): HTMLDialogElement {
  // It begins with what it is about; a field that asks for the focus has it.
  const id = freshId(), heading = h("h2", { id, tabindex: -1, autofocus: true }, title);
  const dialog: HTMLDialogElement = h("dialog", { class: kind, "aria-labelledby": id },
    h("header", {}, heading, h("button", { type: "button", class: "close", "aria-label": "Close", click: () => dialog.close() }, "×")), notice(), ...parts);
  document.body.append(dialog);
  return dialog;
}

/** Asks for something; gives whether it was said, when `done` gives true. It is gone afterwards. */
function asks(title: string, parts: Node[], yes: string, no: string, done: () => Promise<boolean> | boolean, isBad = false): Promise<boolean> {
  return new Promise((answer) => {
    let isSaid = false;
    const sure = h("button", { type: "submit", class: isBad ? "danger" : "primary" }, yes);
    const form = h("form", {}, ...parts, h("div", { class: "buttons" }, sure, h("button", { type: "button", click: () => dialog.close() }, no)));
    const dialog = windowed(title, "small", form);
    const first = form.querySelector("input, select");
    if (first) {
      first.setAttribute("autofocus", "");
      dialog.querySelector("h2")!.removeAttribute("autofocus");
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      sure.disabled = true;
      isSaid = await done();
      sure.disabled = false;
      if (isSaid) dialog.close();
    });
    dialog.addEventListener("close", () => { dialog.remove(); answer(isSaid); });
    dialog.showModal();
  });
}

/** Asks whether something is meant that cannot be taken back. */
export function confirmed(title: string, text: string, yes: string, no: string): Promise<boolean> {
  return asks(title, [h("p", {}, text)], yes, no, () => true, true);
}

/** Shows a form; errors are shown, and the form stays open. */
export function filled(title: string, parts: Node[], yes: string, act: () => Promise<boolean>): Promise<boolean> {
  return asks(title, parts, yes, "Leave it", act);
}
