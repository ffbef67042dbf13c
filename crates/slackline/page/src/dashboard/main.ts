// The dashboard of the service: its parts, and who may do what.
import { isDark } from "../colour";
import { h, section, write } from "../dom";
import { tooltip } from "../tip";
import { Client, kept } from "./api";
import { Details } from "./details";
import { confirmed, does, field, filled, notice, notify } from "./dialogs";
import { Events } from "./events";
import { Flows } from "./flows";
import { Headline } from "./headline";
import { LoadOverTime } from "./load";
import { Machines } from "./machines";
import { Over } from "./over";
import { Recurrences } from "./recurrences";
import { rowsOf } from "./rows";
import { SlotsOverTime } from "./slots";
import { Store } from "./store";
import { SubmitForm } from "./submit";

const THEME = "slackline-theme";
/** The interval between two drawings of charts whose time passes, milliseconds. */
const CHARTS_EVERY = 5_000;

const client = new Client(), store = new Store(client);
/** Asks for a token, once at a time. */
let isAsking = false;
async function askToken(message: string): Promise<void> {
  if (isAsking) return;
  isAsking = true;
  const token = h("input", { type: "password", autocomplete: "off", spellcheck: "false" });
  const isGiven = await filled("Who are you?", [h("p", {}, message),
    field({ label: "Token", input: token, help: "It is kept until this tab is closed, and sent to this service alone; empty: none is kept" })], "Go on", async () => {
    if (!/^[\x21-\x7e]*$/.test(token.value.trim())) { notify("found no token, expected one as slackline token --add prints it", true); return false; }
    client.token = token.value.trim() || null;
    return true;
  });
  isAsking = false;
  if (isGiven) store.startAgain();
}

function main(): void {
  const chosen = kept(() => localStorage.getItem(THEME));
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  const page = document.getElementById("page")!;
  let details: Details;
  const open = (number: number) => details.open(number);
  const headline = new Headline(store), flows = new Flows(store, open), over = new Over(store, open), load = new LoadOverTime(store);
  const { element: tip, say } = tooltip(), slots = new SlotsOverTime(store, say, open), recurrences = new Recurrences(store), machines = new Machines(store), events = new Events(store, open);
  const form = new SubmitForm(store, open);
  const submit = h("button", { type: "button", class: "primary", hidden: true, click: () => form.open() }, "Submit…");
  const drain = h("button", { type: "button", hidden: true, click: () => turnDrain() }, "Drain…");
  const theme = h("button", { type: "button", click: () => turn() }, "Light / dark");
  const who = h("span", { class: "muted" }), token = h("button", { type: "button", class: "link", click: () => void askToken("You can enter the token of another user.") }, "Token…");
  const link = h("span", { class: "link-state", role: "status" }, "not there yet");
  page.replaceChildren(
    h("a", { class: "skip", href: "#flows" }, "Skip to the flows"),
    h("header", { class: "top" },
      h("div", { class: "heading" }, h("h1", {}, "Slackline"), link, h("span", { class: "space" }), who, token),
      headline.about,
      h("nav", { "aria-label": "Actions" }, submit, drain, theme)),
    h("main", {}, notice(), headline.element,
      section("flows", "Flows", flows.element),
      section("alerts", "Alerts", events.alerts),
      section("over", "Finished", over.element),
      section("recurrences", "Schedules", recurrences.element),
      section("machines", "Machines", machines.element),
      section("load", "Load", load.element),
      section("slots", "Slots", slots.element),
      section("events", "Events", events.element)), tip);
  details = new Details(store);
  machines.draw();

  const roles = () => {
    const { me, service } = store;
    who.textContent = me ? `${me.name}, may ${me.role}` : "";
    submit.hidden = me === null || me.role === "look";
    drain.hidden = me?.role !== "operate";
    drain.textContent = service?.draining ? "Start submissions again" : "Drain…";
  };
  const linked = () => {
    const { isThere, status, why } = store.link;
    const text = isThere ? "live" : status === 401 ? "asks who you are" : status > 0 ? "refuses" : why ? "gone" : "not there yet";
    write(link, text);
    link.dataset.state = isThere ? "live" : "gone";
    headline.link();
  };
  let chartsAt = 0;
  const charts = (isForced = false) => {
    const now = Date.now();
    if (isForced || now - chartsAt >= CHARTS_EVERY) { chartsAt = now; load.draw(); }
    slots.draw(isForced);
  };
  store.onChange((what) => {
    if (what.has("link") || what.has("clock")) linked();
    if (what.has("me") || what.has("service")) roles();
    if (what.has("service")) machines.draw();
    // How far away deadlines are changes every second.
    if (what.has("open") || what.has("service") || what.has("clock")) {
      const rows = rowsOf(store.open.values(), store.now);
      headline.draw(rows);
      flows.draw(rows);
    }
    if (what.has("over")) over.draw();
    if (what.has("recurrences") || what.has("me") || what.has("clock")) recurrences.draw();
    if (what.has("events") || what.has("alerts") || what.has("over")) events.draw();
    if (what.has("load")) chartsAt = 0;
    if (what.has("load") || what.has("attempts") || what.has("clock")) charts();
  });
  const turn = () => {
    const theme = document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    kept(() => localStorage.setItem(THEME, theme));
    charts(true);
  };
  const turnDrain = async () => {
    const isDrained = store.service?.draining ?? false;
    const meant = "Running tasks finish, and no new one starts until draining ends. Submissions wait.";
    if (!isDrained && !await confirmed("Drain the service?", meant, "Drain it", "Leave it")) return;
    await does(() => client.act("POST", isDrained ? "/api/v1/undrain" : "/api/v1/drain"));
    store.touch();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts(true));
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; charts(true); } });
  client.onUnknown = (message) => void askToken(message);
  store.start();
  document.documentElement.dataset.ready = "yes";
}

main();
