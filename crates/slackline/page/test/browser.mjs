// Opens reports in a browser and uses them as people do: node test/browser.mjs [PROGRAM]
//
// PROGRAM is slackline's (../../../target/release/slackline unless named); CHROMIUM names another browser than
// /usr/bin/chromium. With --keep DIR the reports and pictures of them stay there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url)), root = resolve(here, "../../../..");
const words = process.argv.slice(2), keep = words.indexOf("--keep");
const kept = keep < 0 ? null : resolve(words.splice(keep, 2)[1]);
const program = resolve(words[0] ?? join(root, "target/release/slackline"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const MEGABYTE = 1e6, PATIENCE = 60_000;
/** Elements of the page of a day: time depends on what else the machine does, how much there is to draw does not. */
const MOST_ELEMENTS = 2_000;
const LATE = [0xd5, 0x5e, 0x00];
/** Pixels between the margins of A4. */
const PAPER = 703;

const dir = kept ?? mkdtempSync(join(tmpdir(), "slackline-page-"));
mkdirSync(dir, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  await small();
  await large();
  await hostile();
  await others();
} finally {
  await browser.close();
  if (!kept) rmSync(dir, { recursive: true });
}
console.log("reports: all well");

function slackline(...args) {
  // 1 means that deadlines are missed or the like, which is an answer.
  try {
    return execFileSync(program, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    if (error.status === 1) return error.stdout;
    throw error;
  }
}

/** Opens a report; anything that its console has to say, and anything it asks the network for, is an error. */
async function open(file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage(), problems = [];
  page.setDefaultTimeout(PATIENCE);
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => { if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) problems.push(`asks for ${request.url()}`); });
  const begin = performance.now();
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready]");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, problems, took: performance.now() - begin, close: () => context.close() };
}

/** All violations that axe finds. */
async function violations(page) {
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

function shown(page) { return page.locator(".policies [aria-pressed=true]").innerText(); }
function pixels(page) { return page.evaluate(() => document.querySelector("canvas").toDataURL()); }
function settled(page) { return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); }

/** The place of the first point of the canvas that answers to the pointer. */
async function something(page) {
  const canvas = page.locator("canvas").first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  for (let y = box.y + 40; y < box.y + box.height; y += 17) {
    for (let x = box.x + 140; x < box.x + box.width - 20; x += 41) {
      await page.mouse.move(x, y);
      if (await page.locator(".tip").isVisible()) return [x, y];
    }
  }
  throw new Error("nothing in the timeline answers to the pointer");
}

async function uses(page) {
  // Policies by key and by click; the time stays.
  await page.keyboard.press("1");
  await settled(page);
  const first = await shown(page), before = await pixels(page);
  await page.locator(".policies button").nth(1).click();
  await settled(page);
  assert.notEqual(await shown(page), first);
  assert.ok(await pixels(page) !== before, "another policy looks the same");
  // Pointing shows what is there, a click chooses it.
  const [x, y] = await something(page);
  assert.match(await page.locator(".tip").innerText(), /released .*(waited|never started)/s);
  await page.mouse.click(x, y);
  await page.locator("#detail h3").waitFor();
  assert.match(await page.locator("#detail").innerText(), /Under every policy/);
  await page.waitForFunction(() => document.activeElement === document.querySelector("#detail h3"));
  assert.ok(await isSeen(page, "#detail h3"), "the details of a flow that is clicked are out of sight");
  await page.keyboard.press("Escape");
  // What the pointer showed is untrue once the time moves.
  const [right, down] = await something(page);
  await page.keyboard.press("+");
  await settled(page);
  assert.equal(await page.locator(".tip").isVisible(), false, "the tooltip stays where the time has moved");
  await page.keyboard.press("0");
  await settled(page);
  await page.mouse.click(right, down);
  await settled(page);
  // Zoom and keys.
  for (const key of ["+", "ArrowRight", "ArrowLeft", "-", "+", "0", "]", "[", "n", "p"]) {
    const was = await pixels(page);
    await page.keyboard.press(key);
    await settled(page);
    if (["+", "ArrowRight", "0", "n"].includes(key)) assert.ok(await pixels(page) !== was, `nothing changes with ${key}`);
  }
  await something(page);
  await page.keyboard.down("Control");
  const was = await pixels(page);
  await page.mouse.wheel(0, -240);
  await page.keyboard.up("Control");
  await settled(page);
  assert.ok(await pixels(page) !== was, "the wheel does not zoom");
  await page.keyboard.press("0");
  await page.keyboard.press("?");
  assert.ok(await page.locator("dialog").isVisible());
  await page.keyboard.press("Escape");
  await chosenInTable(page);
  // Sorted tables.
  await page.locator("#flows th button", { hasText: "wait" }).click();
  assert.equal(await page.locator("#flows th", { hasText: "wait" }).getAttribute("aria-sort"), "descending");
  // Every chart as a table.
  for (const summary of await page.locator(".as-table > summary").all()) {
    await summary.click();
    await summary.locator("xpath=..").locator("tbody tr").first().waitFor();
  }
  for (const summary of await page.locator(".as-table > summary").all()) await summary.click();
}

function isSeen(page, selector) {
  return page.locator(selector).first().evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
}

/** Choosing in the table of flows leads to the details, closing them leads back. */
async function chosenInTable(page) {
  const button = page.locator("#flows tbody button").first();
  await button.scrollIntoViewIfNeeded();
  const name = await button.innerText(), before = (await button.boundingBox()).y;
  await button.click();
  await page.waitForFunction(() => document.activeElement === document.querySelector("#detail h3"));
  assert.ok((await page.locator("#detail h3").innerText()).includes(name));
  assert.ok(await isSeen(page, "#detail h3"), "the details of a flow that is chosen in the table are out of sight");
  await page.locator("#detail").getByRole("button", { name: "Close" }).click();
  await settled(page);
  assert.ok(Math.abs((await button.boundingBox()).y - before) < 20, "closing the details does not lead back");
}

/** How many pixels of the timeline have a colour, and how many dark ones have that colour on both sides. */
function coloured(page, colour) {
  return page.evaluate(([red, green, blue]) => {
    const canvas = document.querySelector("canvas"), { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const has = (at) => data[at] === red && data[at + 1] === green && data[at + 2] === blue;
    let pixels = 0, marks = 0;
    for (let at = 32; at < data.length - 32; at += 4) {
      if (has(at)) pixels++;
      if (data[at] + data[at + 1] + data[at + 2] < 120 && has(at - 24) && has(at + 24)) marks++;
    }
    return { pixels, marks };
  }, colour);
}

/** Times of a column are written alike. */
async function alike(page, heading) {
  const at = await page.locator("#flows th").evaluateAll((all, heading) => all.findIndex((th) => th.textContent.startsWith(heading)), heading);
  const texts = await page.locator(`#flows tbody tr > :nth-child(${at + 1})`).allInnerTexts();
  const forms = new Set(texts.filter((text) => text !== "–").map((text) => text.replace(/\d+/, "0").replaceAll(/\d/g, "0")));
  assert.equal(forms.size, 1, `${heading}: ${[...forms]}`);
}

async function small() {
  const file = join(dir, "small.html");
  const csv = slackline("compare", "examples/nightly.toml", "-p", "fifo,fair,edf,auto", "--format", "csv", "--report", file);
  const { page, problems, close } = await open(file);
  // The same numbers as the program's own table.
  const rows = csv.trim().split("\n").map((line) => line.split(",")), cost = rows[0].indexOf("cost");
  const costs = await page.locator("#comparison .figures tbody tr td:nth-child(2)").allInnerTexts();
  assert.equal(costs.length, rows.length - 1);
  costs.forEach((text, k) => assert.ok(Math.abs(Number(text.replace(/,/g, "")) - Number(rows[k + 1][cost])) <= 0.5, text));
  await uses(page);
  await alike(page, "response");
  await alike(page, "released");
  await page.selectOption("#rows", "flows");
  await page.locator(".controls select").nth(1).selectOption("fate");
  await settled(page);
  assert.ok((await coloured(page, LATE)).marks > 3, "the deadline of a late flow is not seen on it");
  await page.selectOption("#rows", "slots");
  await page.locator(".controls select").nth(1).selectOption("flow");
  assert.ok(await page.locator("#choices svg rect").count() > 0, "auto's decisions are shown");
  await page.locator("#flows").getByRole("button", { name: "reindex" }).click();
  assert.match(await page.locator("#detail pre").innerText(), /^reindex under /);
  assert.doesNotMatch(await page.locator("#detail pre").innerText(), /too narrow/);
  const colours = await page.evaluate(() => {
    const coloured = (one) => [one.textContent.trim() || one.title.split(":")[0], getComputedStyle(one.matches("span.dot, .dot") ? one : one.querySelector(".dot") ?? one).backgroundColor];
    const legend = new Map([...document.querySelectorAll("#timeline .legend li")].map(coloured));
    const holders = [...document.querySelectorAll("#detail .strip span[title]")].map((one) => [one.title.split(":")[0], getComputedStyle(one).backgroundColor]);
    return holders.filter(([who]) => legend.has(who)).map(([who, colour]) => [who, colour, legend.get(who)]);
  });
  assert.ok(colours.length >= 2, "no holder of slots is in the legend of the timeline");
  for (const [who, colour, known] of colours) assert.equal(colour, known, `${who} has another colour in the timeline than among those who held slots`);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(await unreached(page), []);
  await picture(page, "small");
  await page.getByRole("button", { name: "Light / dark" }).click();
  await settled(page);
  assert.deepEqual(await violations(page), []);
  await picture(page, "dark");
  await printed(page, "small");
  assert.deepEqual(problems, []);
  await close();
  const narrow = await open(file, { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
  const wide = await narrow.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than a telephone`);
  assert.deepEqual(await cut(narrow.page), []);
  assert.deepEqual(await violations(narrow.page), []);
  await picture(narrow.page, "narrow");
  assert.deepEqual(narrow.problems, []);
  await narrow.close();
}

/** What is wider than its place, and does not show that, or cannot be reached with keys. */
async function cut(page) {
  const all = await page.evaluate(() => [...document.querySelectorAll(".scroll-x")].filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => ({ name: one.getAttribute("aria-label"), shadow: getComputedStyle(one).backgroundImage, attached: getComputedStyle(one).backgroundAttachment, tab: one.tabIndex })));
  assert.ok(all.length > 0, "no table is cut on a telephone");
  return all.filter(({ shadow, attached, tab }) => tab !== 0 || !shadow.includes("gradient") || !attached.includes("local")).map(({ name }) => name);
}

async function large() {
  const workload = join(dir, "day.json"), file = join(dir, "day.html");
  slackline("generate", "facebook-day", "-o", workload);
  slackline("compare", workload, "--deadlines", "3", "-p", "fifo,fair,edf", "--report", file);
  const size = statSync(file).size;
  assert.ok(size < 8 * MEGABYTE, `${size} bytes`);
  const { page, problems, took, close } = await open(file);
  const elements = await page.locator("*").count();
  assert.ok(elements < MOST_ELEMENTS, `the page has ${elements} elements`);
  await uses(page);
  await page.keyboard.press("0");
  await settled(page);
  const full = await coloured(page, LATE);
  assert.ok(full.pixels > 300, `late flows have ${full.pixels} pixels of all of the day`);
  assert.match(await page.locator("#timeline .legend").first().innerText(), /deadlines are marked where rows are higher/);
  const { median, worst } = await zooms(page);
  console.log(`day: ${(size / MEGABYTE).toFixed(2)} MB, ${elements} elements, opens in ${took.toFixed(0)} ms, a step of zoom takes ${median.toFixed(0)} ms (most ${worst.toFixed(0)} ms)`);
  await closer(page);
  assert.deepEqual(await violations(page), []);
  await picture(page, "day");
  await printed(page, "day");
  assert.deepEqual(problems, []);
  await close();
}

/** How long steps of zoom take; each is made several times, and the least counts: the machine may be busy. */
function zooms(page) {
  return page.evaluate(async () => {
    const steps = 20, least = new Array(2 * steps).fill(Infinity), timeline = document.querySelector(".gantt");
    for (let round = 0; round < 4; round++) {
      for (let k = 0; k < 2 * steps; k++) {
        const begin = performance.now();
        timeline.dispatchEvent(new KeyboardEvent("keydown", { key: k < steps ? "+" : "-", bubbles: true }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        least[k] = Math.min(least[k], performance.now() - begin);
      }
    }
    least.sort((a, b) => a - b);
    return { median: least[steps], worst: least[2 * steps - 1] };
  });
}

/** A window of time has rows only for flows inside it, which can be read then. */
async function closer(page) {
  for (let k = 0; k < 9; k++) await page.keyboard.press("+");
  await settled(page);
  const title = await page.locator("#timeline figcaption").first().innerText();
  const [, shown] = title.match(/; ([\d,]+) of 24,000 jobs have something there/) ?? assert.fail(title);
  assert.ok(Number(shown.replaceAll(",", "")) < 24000);
  assert.match(await page.locator("#timeline .legend").first().innerText(), /▼ deadline$/);
  for (let k = 0; k < 12; k++) await page.keyboard.press("+");
  await settled(page);
  const marks = await page.locator("#load .chart svg").first().locator("text[text-anchor=middle]").allTextContents();
  assert.ok(marks.length > 2);
  assert.equal(new Set(marks).size, marks.length, `times that are alike: ${marks}`);
  await page.keyboard.press("0");
}

/** Names that would be HTML are text. */
async function hostile() {
  const file = join(dir, "hostile.html");
  slackline("compare", "crates/slackline/page/test/hostile.json", "-p", "fifo,fair", "--report", file);
  const { page, problems, close } = await open(file);
  assert.equal(await page.evaluate(() => globalThis.wronged), undefined);
  assert.equal(await page.locator("#page script, #page img").count(), 0);
  assert.match(await page.locator("#flows").innerText(), /<\/script><script>wronged=1<\/script>/);
  assert.match(await page.locator("#flows").innerText(), /日本語 ünïcödé "quoted" 'too'/);
  assert.deepEqual(problems, []);
  await close();
}

/** The verbs with parts of their own. */
async function others() {
  const schedule = join(dir, "edf.json"), nightly = "examples/nightly.toml", flows = join(dir, "run.toml");
  const example = readFileSync(join(root, "examples/first-run.toml"), "utf8");
  writeFileSync(flows, example.replaceAll("target/first-run", join(dir, "outputs")));
  const all = {
    simulate: ["simulate", nightly, "-p", "edf", "-o", schedule],
    check: ["check", nightly, schedule],
    plan: ["plan", nightly, "-p", "fair"],
    tune: ["tune", "examples/purdue-30.toml", "--total-slots", "80"],
    capacity: ["capacity", nightly, "--machines", "1..24", "--until", "missed:0", "-p", "edf"],
    chances: ["capacity", nightly, "--machines", "4..24", "--until", "missed:0", "-p", "edf", "--jitter", "0.3", "--noise", "0.3"],
    sizes: ["compare", nightly, "-p", "fair,edf", "--machines", "6,8,10"],
    seeds: ["compare", nightly, "-p", "fair,edf", "--jitter", "0.3", "--seeds", "3"],
    run: ["run", flows, "--again", "--quiet", "--state", join(dir, "state"), "--history", join(dir, "past.history")],
  };
  // Only jobs that ran before have a prediction.
  slackline(...all.run);
  for (const [name, args] of Object.entries(all)) {
    const file = join(dir, `${name}.html`);
    slackline(...args, "--report", file);
    const { page, problems, close } = await open(file);
    assert.deepEqual(await violations(page), [], name);
    const needs = { tune: "#curves svg", capacity: "#curves svg", sizes: "#curves svg", run: "#prediction svg", plan: "#timeline canvas" }[name];
    if (needs) assert.ok(await page.locator(needs).count() > 0, `${name} has no ${needs}`);
    if (name === "capacity") await answered(page);
    if (name === "chances") await chances(page);
    if (name === "sizes") assert.match(await page.locator("#comparison").innerText(), /Fewest machines of 6, 8, 10 with which no deadline is missed: fair more than 10, edf 10\./);
    await printed(page, name);
    assert.deepEqual((await page.locator("#curves svg").evaluateAll(lettersOf)).filter((size) => size < 10.9), [], `${name}: letters of curves`);
    await picture(page, name);
    assert.deepEqual(problems, [], name);
    await close();
  }
}

/** The answer and the verdicts of the table are in words. */
async function answered(page) {
  assert.match(await page.locator(".answer").innerText(), /9 machines are the fewest in 1\.\.24/);
  assert.ok(await isSeen(page, ".answer"));
  assert.match(await page.locator("#comparison").innerText(), /\d\s+no\s/);
}

/** The chance of each size is drawn with its interval and what is needed. */
async function chances(page) {
  assert.match(await page.locator(".answer").innerText(), /13 machines are the fewest in 4\.\.24: missed is 0 in \d+ % of \d+ draws/);
  const first = page.locator("#curves figure").first();
  assert.match(await first.innerText(), /chance that missed is 0/);
  assert.equal(await first.locator("polygon.band").count(), 1);
  assert.match(await first.locator("svg").innerHTML(), /needed: 95 %/);
  assert.ok(await page.locator("#curves polygon.band").count() > 3);
}

/** The sizes of letters as they are seen, in a list of charts. */
function lettersOf(charts) {
  return charts.map((svg) => Math.min(...[...svg.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize)))
    * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width);
}

async function printed(page, name) {
  const pdf = await page.pdf({ format: "A4", printBackground: true, ...(kept ? { path: join(kept, `${name}.pdf`) } : {}) });
  assert.ok(pdf.length > 10_000);
  // The same by hand, on a window as wide as the paper.
  const before = page.viewportSize();
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await page.setViewportSize({ width: PAPER, height: 1017 });
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("nav").first().isVisible(), false);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= PAPER, `${wide} pixels are printed on ${PAPER}, so that all is made smaller`);
  const stretched = await page.locator("canvas:visible").evaluateAll((all) => all.map((canvas) => {
    const { width, height } = canvas.getBoundingClientRect();
    return width / height / (canvas.width / canvas.height);
  }));
  for (const by of stretched) assert.ok(Math.abs(by - 1) < 0.01, `a timeline is stretched by ${by} on paper`);
  const letters = (await page.locator(".chart svg:visible").evaluateAll(lettersOf)).filter((size) => size < 9.5 || size > 13);
  assert.deepEqual(letters, [], "letters of charts on paper");
  const loose = await page.evaluate(() => [...document.querySelectorAll("h2, .legend, figcaption, caption")].filter((one) => getComputedStyle(one).breakAfter !== "avoid").map((one) => one.textContent));
  assert.deepEqual(loose, [], "may stand alone at the foot of a page");
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize(before);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
}

async function picture(page, name) {
  if (kept) await page.screenshot({ path: join(kept, `${name}.png`), fullPage: true });
}
