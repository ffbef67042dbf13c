// Starts a service and uses its dashboard as people do: node test/dashboard.mjs [PROGRAM]
//
// PROGRAM is slackline's (target/release/slackline unless named, else target/debug/slackline); CHROMIUM names another browser than
// /usr/bin/chromium. With --keep DIR pictures stay there; with --page DIR the page comes from there instead of from the program,
// while it is being written.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url)), root = resolve(here, "../../../.."), built = join(root, "crates/serve/page");
const words = process.argv.slice(2);
const option = (name) => { const at = words.indexOf(name); return at < 0 ? null : resolve(words.splice(at, 2)[1]); };
const kept = option("--keep"), drafts = option("--page");
const program = [words[0] && resolve(words[0]), join(root, "target/release/slackline"), join(root, "target/debug/slackline")].find((path) => path && existsSync(path));
assert.ok(program, "there is no slackline to be tried: cargo build --release");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const MANY = 1_000;
/** The longest wait for anything in these tests. */
const PATIENCE = Number(process.env.PATIENCE ?? 60_000);

const dir = mkdtempSync(join(tmpdir(), "slackline-dashboard-"));
if (kept) mkdirSync(kept, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const services = [];
try {
  const service = await serve("state", "operate");
  await isTheSamePage(service);
  await submits(service);
  await hostile(service);
  await recurs(service);
  await mends(service);
  await several(service);
  await machines(service);
  await goneAndBack(service);
  await quota();
  await roles();
  await many();
} finally {
  await browser.close();
  await Promise.all(services.map((service) => service.stop()));
  rmSync(dir, { recursive: true, force: true });
}
console.log("dashboard: all well");

/** A service that anybody on this machine may ask as much as the role says, on the same port if one is named. */
async function serve(name, role, port = 0, ...more) {
  const state = join(dir, name);
  const args = ["serve", "--state", state, "--slots", "2", "--listen", `127.0.0.1:${port}`, "--allow-root", ...(role ? ["--loopback", role] : []), ...more];
  const process = spawn(program, args, { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((done) => process.once("exit", done)), said = [];
  const url = await new Promise((found, failed) => {
    for (const stream of [process.stdout, process.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        const at = /http:\/\/127\.0\.0\.1:\d+\//.exec(line);
        if (at) found(at[0]);
      });
    }
    ended.then(() => failed(new Error(`the service has ended: ${said.join("\n")}`)));
  });
  const stop = async () => { process.kill("SIGTERM"); await ended; };
  const service = { state, url, stop, port: Number(new URL(url).port) };
  services.push(service);
  return service;
}

async function ask(service, method, path, sent) {
  const answer = await fetch(new URL(path, service.url), { method, headers: sent ? { "content-type": "application/json" } : {}, body: sent && JSON.stringify(sent) });
  const text = await answer.text();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

/** What the program has compiled in is what is tested. */
async function isTheSamePage(service) {
  if (drafts) return;
  for (const [path, file] of [["/", "index.html"], ["/dashboard.js", "dashboard.js"], ["/dashboard.css", "dashboard.css"]]) {
    const text = await (await fetch(new URL(path, service.url))).text();
    assert.ok(text === readFileSync(join(built, file), "utf8"), `${program} has another ${file} than crates/serve/page: build it again`);
  }
}

/** Opens the dashboard. What its console has to say, and anything it asks elsewhere, is an error; answers that are no are not. */
async function open(service, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  if (drafts) await context.route((url) => ["/", "/dashboard.js", "/dashboard.css"].includes(url.pathname), async (route) => {
    const { pathname } = new URL(route.request().url()), policy = (await fetch(service.url)).headers.get("content-security-policy");
    const file = pathname === "/" ? "index.html" : pathname.slice(1), kind = { html: "text/html", js: "text/javascript", css: "text/css" }[file.split(".").pop()];
    await route.fulfill({ body: readFileSync(join(drafts, file)), headers: { "content-type": `${kind}; charset=utf-8`, "content-security-policy": policy } });
  });
  const page = await context.newPage(), problems = [];
  page.setDefaultTimeout(PATIENCE);
  page.on("console", (message) => {
    const isAnswer = /^Failed to load resource/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isAnswer) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.stack));
  page.on("request", (request) => { if (!request.url().startsWith(service.url) && !request.url().startsWith("data:")) problems.push(`asks for ${request.url()}`); });
  const begin = performance.now();
  await page.goto(`${service.url}${options.hash ?? ""}`);
  await page.waitForSelector("html[data-ready]");
  return { page, problems, begin, context, close: () => context.close() };
}

/** All violations that axe finds. */
async function violations(page) {
  // The page's policy lets no text become a program; what the browser itself evaluates is no text of the page.
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run(document));
  return found.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}

/** Elements that answer to a click and that Tab does not reach, or without a visible focus; by their names, as they may be made again meanwhile. */
async function unreached(page) {
  const all = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  await page.evaluate(() => {
    globalThis.nameOf = (one) => `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent.replace(/\d+/g, "").slice(0, 40)}`;
    globalThis.reached = new Set();
    document.activeElement?.blur();
  });
  // Tab begins where the last click was: the second time at the end of the page is the end.
  for (let ends = 0, most = 1_000; ends < 2 && most > 0; most--) {
    await page.keyboard.press("Tab");
    ends += await page.evaluate(() => {
      const one = document.activeElement;
      if (!one || one === document.body) return 1;
      if (getComputedStyle(one).outlineStyle !== "none") globalThis.reached.add(globalThis.nameOf(one));
      return 0;
    });
  }
  return page.evaluate((all) => [...document.querySelectorAll(all)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled && one.tabIndex >= 0)
    .map(globalThis.nameOf).filter((name) => !globalThis.reached.has(name)), all);
}

async function picture(page, name, isWhole = true) {
  if (kept) await page.screenshot({ path: join(kept, `${name}.png`), fullPage: isWhole });
}

function flowFile(flow, { seconds = 0, mapper, name = flow } = {}) {
  writeFileSync(join(dir, "input"), "a line\n");
  const command = mapper ?? `sleep ${seconds}; cat`;
  const [id, mapped, output] = [flow, command, join(dir, "out", name)].map((text) => JSON.stringify(text));
  return `slackline = 1\n\n[[flows]]\nid = ${id}\njobs = [{ id = "copy", map = { tasks = 1, seconds = 1 }, run = { mapper = ${mapped}, inputs = ["${dir}/input"], output = ${output} } }]\n`;
}

function row(page, text) { return page.locator(".grid-space .grid-row:not([hidden])", { hasText: text }); }
function dialog(page) { return page.locator("dialog[open]").last(); }

/** Fills in the form and sends it. */
async function submit(page, file, fields = {}) {
  await page.getByRole("button", { name: "Submit…" }).click();
  await dialog(page).getByLabel("Flow file", { exact: true }).fill(file);
  for (const [label, text] of Object.entries(fields)) await dialog(page).getByLabel(label, { exact: true }).fill(text);
}
function send(page) { return dialog(page).getByRole("button", { name: "Submit", exact: true }).click(); }
function closed(page) { return dialog(page).getByRole("button", { name: "Close" }).click(); }

async function submits(service) {
  const { page, problems, close } = await open(service);
  await page.locator("[data-state=live]").waitFor();
  await page.locator(".heading", { hasText: "may operate" }).waitFor();
  assert.deepEqual(await violations(page), []);

  // An error in a file is shown with its line; the form keeps its values.
  await submit(page, 'slackline = 1\n[[flows]]\nid = 3\n', { "File name": "night.toml" });
  await send(page);
  await dialog(page).locator(".notice", { hasText: /night\.toml:\d+/ }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "broken", false);
  await dialog(page).getByLabel("Deadlines").fill("twice two");
  await send(page);
  await dialog(page).locator(".notice", { hasText: "deadlines, line 1: found twice two, expected NAME=VALUE" }).waitFor();

  // A good one is submitted, and then its prediction is shown.
  await dialog(page).getByLabel("Flow file", { exact: true }).fill(flowFile("first", { seconds: 600 }));
  await dialog(page).getByLabel("Deadlines").fill("first=2h");
  await send(page);
  await dialog(page).getByText("night is submitted as 1").waitFor();
  await dialog(page).locator(".foretold", { hasText: /first is predicted to finish at .* deadline/s }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "submitted", false);
  await closed(page);
  await row(page, "first").waitFor();

  // A second one that is held, opened by the keyboard.
  await submit(page, flowFile("second", { seconds: 600 }), { "File name": "second.toml" });
  await dialog(page).getByLabel("Hold it until it is resumed").check();
  await send(page);
  await dialog(page).getByText("second is submitted as 2").waitFor();
  await closed(page);
  await row(page, "second").filter({ hasText: "held" }).waitFor();
  await row(page, "first").focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("heading", { name: "2 second" }).waitFor();
  assert.equal(new URL(page.url()).hash, "#2");
  await dialog(page).getByRole("button", { name: "Resume" }).click();
  await dialog(page).getByRole("button", { name: "Explain" }).first().waitFor();
  await dialog(page).getByRole("button", { name: "Hold", exact: true }).click();
  await dialog(page).getByRole("button", { name: "Resume" }).waitFor();
  assert.equal((await ask(service, "GET", "/api/v1/submissions/2")).held, true);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Resume", "the focus is lost when a window is drawn again");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog[open]").count(), 0);

  // Explained, and changed.
  await row(page, "first").click();
  await dialog(page).getByRole("button", { name: "Explain" }).first().click();
  await dialog(page).locator("pre", { hasText: /first under auto/ }).waitFor();
  await picture(page, "explained", false);
  await dialog(page).getByRole("button", { name: "Logs" }).click();
  await dialog(page).getByRole("heading", { name: "Logs of first/copy" }).waitFor();
  await dialog(page).getByRole("button", { name: "Change…" }).click();
  await dialog(page).getByLabel("Priority").fill("7");
  await dialog(page).getByLabel("Weight").fill("heavy");
  await dialog(page).getByRole("button", { name: "Change", exact: true }).click();
  await dialog(page).locator(".notice", { hasText: "weight: found heavy, expected a number" }).waitFor();
  await dialog(page).getByLabel("Weight").fill("2.5");
  await dialog(page).getByLabel("Deadline", { exact: true }).fill("3h");
  assert.deepEqual(await violations(page), []);
  await dialog(page).getByRole("button", { name: "Change", exact: true }).click();
  await dialog(page).locator("dd", { hasText: /^2\.5$/ }).waitFor();
  const changed = await ask(service, "GET", "/api/v1/submissions/1");
  assert.equal(changed.priority, 7);
  assert.equal(changed.flows[0].weight, 2.5);
  assert.equal(Date.parse(changed.flows[0].deadline) - Date.parse(changed.flows[0].release), 3 * 3600e3);

  // Cancelled, after it was asked whether that is meant.
  await dialog(page).getByRole("button", { name: "Cancel…" }).click();
  await dialog(page).getByRole("button", { name: "Keep it" }).click();
  assert.equal((await ask(service, "GET", "/api/v1/submissions/1")).state, "running");
  await dialog(page).getByRole("button", { name: "Cancel…" }).click();
  assert.deepEqual(await violations(page), []);
  await dialog(page).getByRole("button", { name: "Cancel it" }).click();
  await dialog(page).locator("dd", { hasText: /^cancelled$/ }).first().waitFor();
  await closed(page);
  await page.locator("#over tbody tr", { hasText: "cancelled" }).waitFor();
  assert.equal(await row(page, "first").count(), 0);

  // A flow that fails is an alert, and its logs say why.
  await submit(page, "");
  const broken = flowFile("broken", { mapper: "echo no such table >&2; exit 3" });
  await dialog(page).getByLabel("or choose one").setInputFiles({ name: "broken.toml", mimeType: "application/toml", buffer: Buffer.from(broken) });
  await page.waitForFunction((text) => document.querySelector("dialog[open] textarea").value === text, broken);
  assert.equal(await dialog(page).getByLabel("File name", { exact: true }).inputValue(), "broken.toml");
  await send(page);
  await dialog(page).getByRole("button", { name: "Show 3" }).click();
  await dialog(page).locator("dd", { hasText: /^failed$/ }).first().waitFor();
  // Its job is still known, and how often it failed.
  const job = dialog(page).getByRole("region", { name: "Jobs of broken" }).locator("tbody tr", { hasText: "copy" });
  assert.match(await job.locator(".bad").innerText(), /^[1-9]/);
  await job.getByRole("button", { name: "Logs" }).click();
  await dialog(page).locator("pre", { hasText: "no such table" }).waitFor();
  await closed(page);
  // So is what was expected of the one that was cancelled.
  await page.locator("#over tbody tr", { hasText: "night" }).getByRole("button").click();
  await dialog(page).getByRole("heading", { name: "First prediction" }).waitFor();
  await dialog(page).locator(".foretold", { hasText: /first was predicted to finish at/ }).waitFor();
  await closed(page);
  await page.locator("#alerts li", { hasText: "no such table" }).waitFor();

  // Drained, and not.
  await page.getByRole("button", { name: "Drain…" }).click();
  await dialog(page).getByRole("button", { name: "Drain it" }).click();
  await page.getByText("The service is drained").waitFor();
  assert.equal((await ask(service, "GET", "/api/v1/service")).draining, true);
  await page.getByRole("button", { name: "Start submissions again" }).click();
  await page.getByText("The service is drained").waitFor({ state: "hidden" });

  // Charts as tables, light and dark.
  for (const summary of await page.locator(".as-table > summary").all()) {
    await summary.click();
    await summary.locator("xpath=..").locator("tbody tr").first().waitFor();
  }
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(await unreached(page), []);
  await page.getByRole("button", { name: "Light / dark" }).click();
  assert.deepEqual(await violations(page), []);
  await picture(page, "small-dark");
  assert.deepEqual(problems, []);
  await close();

  const narrow = await open(service, { viewport: { width: 390, height: 800 }, hash: "#2" });
  await dialog(narrow.page).getByRole("button", { name: "Cancel…" }).waitFor();
  const wide = () => narrow.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(await wide() <= 0, `the page is ${await wide()} px wider than a telephone`);
  assert.deepEqual(await violations(narrow.page), []);
  await picture(narrow.page, "narrow-details", false);
  await closed(narrow.page);
  await row(narrow.page, "second").waitFor();
  assert.deepEqual(await violations(narrow.page), []);
  await picture(narrow.page, "narrow");
  assert.deepEqual(narrow.problems, []);
  await narrow.close();
}

/** Names that would be HTML are text. */
async function hostile(service) {
  const name = `<img src=x onerror=wronged=1> "q" 'a' ünïcödé`, flow = "<script>wronged=1<script> &amp;";
  const { number } = await ask(service, "POST", "/api/v1/submissions", { document: flowFile(flow, { name: "hostile" }), name, held: true });
  const { page, problems, close } = await open(service, { hash: `#${number}` });
  await dialog(page).getByRole("heading", { name: `${number} ${name}` }).waitFor();
  await dialog(page).getByRole("button", { name: "Resume" }).click();
  await dialog(page).getByRole("heading", { name: flow }).waitFor();
  await closed(page);
  await page.locator("#events li", { hasText: name }).first().waitFor();
  // What it means for others, too.
  const at = "2026-03-01T06:00:00Z", late = { number, name, flow, deadline: at, without: at, with: at, late_by: 90 };
  const remedies = [{ kind: "deadline", flow, deadline: at }, { kind: "slots", flow, slots: 9 }, { kind: "hold", flow, numbers: [4, 5] }, { kind: "nothing", flow, alone: at }];
  await page.route(`**/api/v1/submissions/${number}`, async (route) => {
    const answer = await route.fetch(), one = await answer.json();
    const prediction = { made: at, flows: [{ flow, completion: at, between: [at, "2026-03-01T06:10:00Z"], deadline: at, holds: false, chance: 12 }], makes_late: [late], remedies };
    await route.fulfill({ response: answer, json: { ...one, state: "running", prediction } });
  });
  await page.evaluate((hash) => { location.hash = hash; }, `#${number}`);
  // What was known before is shown until the answer comes.
  const means = dialog(page).locator(".foretold", { hasText: `${flow} of ${number} ${name}: by 90 s` });
  await means.waitFor();
  const text = await means.innerText();
  const others = ["It is predicted to make 1 other flow late", "9 slots instead", "submissions 4, 5 held", "nothing; even alone"];
  for (const words of ["is predicted to miss", "(chance to meet it: 12 %)", ...others]) assert.ok(text.includes(words), `${words}: ${text}`);
  await picture(page, "foretold", false);
  await closed(page);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  assert.equal(await page.evaluate(() => globalThis.wronged), undefined);
  assert.equal(await page.locator("#page script, #page img, dialog img").count(), 0);
  assert.deepEqual(problems, []);
  await close();
}

async function recurs(service) {
  const { page, problems, close } = await open(service);
  await page.locator("[data-state=live]").waitFor();
  await submit(page, flowFile("monthly"), { Name: "monthly" });
  await dialog(page).getByText("On a schedule").click();
  await dialog(page).getByLabel("Schedule").fill("0 2 30 2 *x");
  await dialog(page).getByLabel("Time zone").fill("Europe/Berlin");
  await send(page);
  await dialog(page).locator(".notice .bad").waitFor();
  await dialog(page).getByLabel("Schedule").fill("0 2 1 1 *");
  await send(page);
  await dialog(page).getByText(/monthly is submitted next at/).waitFor();
  await closed(page);
  const recurrence = page.locator("#recurrences tbody tr", { hasText: "monthly" });
  await recurrence.getByRole("button", { name: "Pause monthly" }).click();
  await recurrence.getByText("paused").waitFor();
  await recurrence.getByRole("button", { name: "Go on with monthly" }).click();
  await recurrence.getByRole("button", { name: "Pause monthly" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await recurrence.getByRole("button", { name: "Remove monthly" }).click();
  await dialog(page).getByRole("button", { name: "Remove it" }).click();
  await page.getByText("There are no schedules.").waitFor();
  assert.deepEqual((await ask(service, "GET", "/api/v1/recurrences")).recurrences, []);
  assert.deepEqual(problems, []);
  await close();
}

/** A failed flow is mended under the same name, and its alert says so. */
async function mends(service) {
  const sent = { document: flowFile("broken"), name: "broken" }, { number } = await ask(service, "POST", "/api/v1/submissions", sent);
  const { page, problems, close } = await open(service);
  await page.locator("#alerts li", { hasText: "no such table" }).getByText(new RegExp(`A later one of its name, ${number}, finished at`)).waitFor();
  // What waits for a file says which.
  const waits = await ask(service, "POST", "/api/v1/submissions", { document: flowFile("patient"), name: "patient", when: [join(dir, "ready*")] });
  await row(page, "patient").locator(".cell-state", { hasText: `waits for ${join(dir, "ready*")}, which does not exist` }).waitFor();
  await ask(service, "POST", `/api/v1/submissions/${waits.number}/cancel`);
  assert.deepEqual(problems, []);
  await close();
}

/** Several rows are selected and acted on at once, after it was asked whether they are meant; by the keyboard, too. */
async function several(service) {
  for (const name of ["alpha", "beta", "gamma"]) {
    await ask(service, "POST", "/api/v1/submissions", { document: flowFile(`${name}-flow`), name: `crowd-${name}`, held: true, deadlines: { [`${name}-flow`]: "90m" } });
  }
  const { page, problems, close } = await open(service);
  // For a submission that has not started, lists show the first deadline, and the window shows the flows of its file.
  await row(page, "crowd-alpha").locator(".cell-deadline", { hasText: /in 1h 29m/ }).waitFor();
  await row(page, "crowd-alpha").click();
  await dialog(page).getByRole("heading", { name: "alpha-flow" }).waitFor();
  await dialog(page).locator(".planned", { hasText: "copy" }).waitFor();
  assert.equal(await dialog(page).getByRole("button", { name: /Explain|Logs/ }).count(), 0);
  await picture(page, "not-begun", false);
  await closed(page);

  await page.getByLabel("Show flows whose name, number or user has").fill("crowd");
  await page.getByText("3 of ").waitFor();
  const said = page.locator(".bulk [role=status]"), cancel = page.locator(".bulk").getByRole("button", { name: "Cancel…" });
  assert.ok(await cancel.isDisabled());
  await row(page, "crowd-alpha").focus();
  await page.keyboard.press("Home");
  for (const key of [" ", "ArrowDown", " "]) await page.keyboard.press(key);
  await said.getByText("2 flows selected").waitFor();
  assert.deepEqual(await page.locator("[aria-selected=true]").evaluateAll((rows) => rows.map((row) => /crowd-([a-z]+)/.exec(row.textContent)[1])), ["alpha", "beta"]);
  await picture(page, "selected", false);
  await cancel.click();
  await dialog(page).getByRole("heading", { name: "Cancel 2 flows?" }).waitFor();
  await dialog(page).getByText(/crowd-alpha of \d+, crowd-beta of \d+\./).waitFor();
  await page.keyboard.press("Escape");
  await said.getByText("2 flows selected").waitFor();
  // What is not shown is not selected.
  await page.getByLabel("Show flows whose name, number or user has").fill("crowd-beta");
  await said.getByText("1 flow selected").waitFor();
  await page.getByLabel("Show flows whose name, number or user has").fill("crowd");
  await page.getByLabel("Select all rows").check();
  await said.getByText("3 flows selected").waitFor();
  await row(page, "crowd-gamma").getByLabel("Select this row").click();
  await said.getByText("2 flows selected").waitFor();
  await cancel.click();
  assert.deepEqual(await violations(page), []);
  await dialog(page).getByRole("button", { name: "Cancel 2 flows" }).click();
  await page.getByText("2 flows are cancelled").waitFor();
  const states = (await ask(service, "GET", "/api/v1/submissions")).submissions.filter((one) => one.name.includes("crowd")).map((one) => one.state);
  assert.deepEqual(states, ["queued", "cancelled", "cancelled"]);
  await row(page, "crowd-alpha").waitFor({ state: "hidden" });
  await page.getByLabel("Select all rows").check();
  await page.locator(".bulk").getByRole("button", { name: "Resume…" }).click();
  await dialog(page).getByRole("button", { name: "Resume 1 flow" }).click();
  await page.getByText("1 flow is resumed").waitFor();
  await row(page, "crowd-gamma").waitFor({ state: "hidden" });
  assert.deepEqual(problems, []);
  await close();
}

/** Machines are named where there are several; names with slashes are one part of an address; of the load only what is new is asked for. */
async function machines(service) {
  const { page, context, problems, close } = await open(service);
  assert.ok(await page.locator("#machines").isHidden(), "one machine is no list of machines");
  const all = [{ machine: "node1", slots: 2, up: true }, { machine: "node2", slots: 4, up: false }, { machine: "node3", slots: 4, up: true }];
  await context.route("**/api/v1/service", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...await answer.json(), machines: all, slots: 6 } });
  });
  const recurrence = { name: "anna/nightly", user: "anna", schedule: { cron: "0 2 * * *", catch_up: "last" }, overlap: "wait", paused: false };
  await context.route("**/api/v1/recurrences", (route) => route.fulfill({ json: { recurrences: [recurrence] } }));
  await page.reload();
  await page.locator("#machines li").nth(2).waitFor();
  assert.deepEqual(await page.locator("#machines li").allInnerTexts().then((all) => all.map((text) => text.replace(/\s+/g, " "))),
    ["node2 4 slots gone", "node1 2 slots there", "node3 4 slots there"]);
  await page.locator(".figures div", { hasText: "machines" }).filter({ hasText: "2 of 3" }).waitFor();
  assert.deepEqual(await violations(page), []);
  const paused = page.waitForRequest((request) => request.method() === "POST");
  await page.getByRole("button", { name: "Pause anna/nightly" }).click();
  assert.equal(new URL((await paused).url()).pathname, "/api/v1/recurrences/anna%2Fnightly/pause");
  await page.waitForRequest(/\/load\?since=2/);
  await picture(page, "machines");
  assert.deepEqual(problems, []);
  await close();
}

/** Attempts running are on the timeline, and a flow that waits for its user's quota says so. */
async function quota() {
  const service = await serve("quota", "operate", 0, "--quota", "slots=1");
  const isAtWork = async () => (await ask(service, "GET", "/api/v1/service")).running === 1;
  for (const name of ["works", "waits"]) {
    await ask(service, "POST", "/api/v1/submissions", { document: flowFile(name, { seconds: 600 }), name });
    while (!await isAtWork()) await new Promise((done) => setTimeout(done, 50));
  }
  const { page, context, problems, close } = await open(service);
  // A table that is opened before any data arrive is filled later.
  let know, known = new Promise((done) => { know = done; });
  await context.route("**/api/v1/timeline*", async (route) => { await known; await route.continue(); });
  await page.reload();
  await row(page, "waits").locator(".cell-state", { hasText: "tasks hold 1 slot, the limit of one user" }).waitFor();
  await page.getByText("As a table: the latest attempts").click();
  await page.locator("#slots caption", { hasText: "The latest 0 attempts" }).waitFor();
  know();
  await page.locator("#slots tbody tr", { hasText: "works" }).filter({ hasText: "running" }).waitFor();
  await row(page, "waits").click();
  await dialog(page).locator("dd", { hasText: "the limit of one user" }).waitFor();
  await picture(page, "quota", false);
  assert.deepEqual(problems, []);
  await close();
  await service.stop();
}

/** The page reports that the service is gone, and finds it again. */
async function goneAndBack(service) {
  const { page, close } = await open(service);
  await row(page, "second").waitFor();
  await service.stop();
  await page.getByText(/The service has not answered since/).waitFor();
  assert.ok(await row(page, "second").isVisible(), "what was known is not shown any more");
  await picture(page, "gone", false);
  const again = await serve("state", "operate", service.port);
  await page.locator("[data-state=live]").waitFor();
  await ask(again, "POST", "/api/v1/submissions", { document: flowFile("after"), held: true });
  await row(page, "flow").filter({ hasText: "held" }).first().waitFor();
  await close();
  // A page that is opened now shows the earlier alerts.
  const later = await open(again);
  await later.page.locator("#alerts li", { hasText: "no such table" }).waitFor();
  assert.deepEqual(later.problems, []);
  await later.close();
  await again.stop();
}

/** Who may only look sees nothing to act with; who is not known is asked for a token, which no address and no cookie has. */
async function roles() {
  const service = await serve("roles", null);
  const token = (name, role) => {
    const said = execFileSync(program, ["token", "--add", name, "--role", role, "--state", service.state], { encoding: "utf8" });
    return said.split(/\s+/).find((word) => word.startsWith("slackline_"));
  };
  const [looks, owns] = [token("eve", "look"), token("anna", "submit")];
  const asAnna = await fetch(new URL("/api/v1/submissions", service.url), {
    method: "POST", headers: { "content-type": "application/json", authorization: `Bearer ${owns}` },
    body: JSON.stringify({ document: flowFile("hers"), name: "hers", held: true }),
  });
  assert.equal(asAnna.status, 201);
  const { page, context, problems, close } = await open(service);
  await dialog(page).getByRole("heading", { name: "Who are you?" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "token", false);
  await dialog(page).getByLabel("Token").fill("slackline_nobodys");
  await page.keyboard.press("Enter");
  await dialog(page).getByText("authorization: unknown token").waitFor();
  await dialog(page).getByLabel("Token").fill(looks);
  await page.keyboard.press("Enter");
  await page.getByText("eve, may look").waitFor();
  await row(page, "hers").click();
  await dialog(page).locator("dd", { hasText: "held" }).first().waitFor();
  assert.equal(await dialog(page).getByRole("button", { name: /Hold|Resume|Cancel|Change/ }).count(), 0);
  await closed(page);
  assert.equal(await page.getByRole("button", { name: /Submit|Drain/ }).count(), 0);
  assert.equal(await page.evaluate(() => sessionStorage.getItem("slackline-token")), looks);
  assert.deepEqual([await context.cookies(), page.url().includes("slackline_")], [[], false]);
  // The same after the page is opened again.
  await page.reload();
  await page.getByText("eve, may look").waitFor();
  // With the token of another user: that user may change the own submissions, but not the service.
  await page.getByRole("button", { name: "Token…" }).click();
  await dialog(page).getByLabel("Token").fill(owns);
  await page.keyboard.press("Enter");
  await page.getByText("anna, may submit").waitFor();
  await row(page, "hers").click();
  await dialog(page).getByRole("button", { name: "Resume" }).waitFor();
  await closed(page);
  assert.ok(await page.getByRole("button", { name: "Submit…" }).isVisible());
  assert.equal(await page.getByRole("button", { name: "Drain…" }).count(), 0);
  assert.deepEqual(problems, []);
  await close();
  await service.stop();
}

/** A thousand flows: how long it takes until they are seen, and how smooth it is to scroll, to look for one, and to learn of changes. */
async function many() {
  const service = await serve("many", "operate"), numbers = [];
  await Promise.all(Array.from({ length: 8 }, async (_, worker) => {
    for (let k = worker; k < MANY; k += 8) {
      const sent = { document: flowFile(`flow${k}`, { name: `many${k}` }), name: `many${k}`, held: true, priority: k % 7 };
      numbers.push((await ask(service, "POST", "/api/v1/submissions", sent)).number);
    }
  }));
  const { page, problems, begin, close } = await open(service);
  await page.getByText(`${MANY.toLocaleString("en-US")} of ${MANY.toLocaleString("en-US")} flows`).waitFor();
  const seen = performance.now() - begin;
  assert.ok(await page.locator(".grid-row").count() < 100, "rows are there that are not in view");
  const frames = await page.evaluate(scrolls);
  // One of them changes: how long it takes until that is seen, and what the page does meanwhile.
  const chosen = numbers[MANY / 2];
  await page.getByLabel("Show flows whose name, number or user has").fill(String(chosen));
  await row(page, `${chosen} many`).first().waitFor();
  await page.evaluate(watches);
  const changed = performance.now();
  await ask(service, "POST", `/api/v1/submissions/${chosen}/cancel`);
  await row(page, `${chosen} many`).first().waitFor({ state: "hidden" });
  const delay = performance.now() - changed;
  // And then a hundred at once.
  await page.getByLabel("Show flows whose name, number or user has").fill("");
  await Promise.all(numbers.filter((number) => number !== chosen).slice(0, 100).map((number) => ask(service, "POST", `/api/v1/submissions/${number}/cancel`)));
  await page.getByText(`${(MANY - 101).toLocaleString("en-US")} of ${(MANY - 101).toLocaleString("en-US")} flows`).waitFor();
  const longest = await page.evaluate(() => Math.max(0, ...globalThis.tasks));
  const of = (times, share) => times[Math.floor(times.length * share)].toFixed(0);
  console.log(`${MANY} flows: seen after ${seen.toFixed(0)} ms; a frame of scrolling takes ${of(frames, 0.5)} ms (95 of 100 ${of(frames, 0.95)} ms, most ${of(frames, 0.999)} ms); ` +
    `a change is seen after ${delay.toFixed(0)} ms; longest task while a hundred change ${longest.toFixed(0)} ms`);
  assert.deepEqual(await violations(page), []);
  await picture(page, "many");
  assert.deepEqual(problems, []);
  await close();
  await service.stop();
}

/** In the page: scrolls through all rows; how long each frame took, in order. */
async function scrolls() {
  const view = document.querySelector(".grid-view"), times = [], most = view.scrollHeight - view.clientHeight;
  for (let k = 0; k <= 120; k++) {
    const begin = performance.now();
    view.scrollTop = most * (k < 60 ? k / 60 : (120 - k) / 60);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - begin);
    const rows = [...document.querySelectorAll(".grid-space .grid-row:not([hidden])")].map((row) => row.getBoundingClientRect());
    const box = view.getBoundingClientRect();
    // What is in view is drawn when the frame is.
    const covered = rows.filter((row) => row.bottom > box.top && row.top < box.bottom).length;
    if (covered < 3) throw new Error(`only ${covered} rows are in view`);
  }
  return times.sort((a, b) => a - b);
}

/** In the page: notes tasks that take longer than frames may. */
function watches() {
  globalThis.tasks = [];
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) globalThis.tasks.push(entry.duration); }).observe({ entryTypes: ["longtask"] });
}
