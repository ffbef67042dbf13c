// What made the page: enough to make it again.
import type { Doc } from "./data";
import { h } from "./dom";

export function made(doc: Doc): HTMLElement {
  const { command, version, seeds, options, workload_sha256 } = doc.made;
  const entries: [string, string][] = [
    ["command", command], ["version", `slackline ${version}`], [seeds.length === 1 ? "seed" : "seeds", seeds.join(", ")],
    ["objective", doc.objective], ["workload", `${doc.title}, SHA-256 ${workload_sha256}`],
    ...Object.entries(options).map(([name, value]): [string, string] => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ];
  return h("dl", { class: "made" }, ...entries.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
