// What became of pools, users and size classes, policy by policy.
import type { Model } from "./data";
import { h } from "./dom";
import { SortedTable, type Column } from "./table";

const METRICS = ["missed deadlines", "mean response", "p95 response", "mean wait", "mean bounded slowdown", "utilisation"];
type Row = Model["doc"]["groups"][number];

/** A table for each kind of group, of the metric that is chosen; null without groups. */
export function groups(model: Model): HTMLElement | null {
  const { doc } = model, kinds = [...new Set(doc.groups.map((group) => group.by))];
  if (kinds.length === 0) return null;
  const holder = h("div", {});
  const choice = h("select", {}, ...METRICS.map((name, k) => h("option", { value: k, selected: k === 1 }, name)));
  const draw = () => {
    const metric = Number(choice.value);
    holder.replaceChildren(...kinds.map((by) => {
      const columns: Column<Row>[] = [
        { heading: by === "size" ? "size [slot-seconds]" : by, words: true, text: (row) => row.name, value: (row) => by === "size" ? doc.groups.indexOf(row) : row.name },
        { heading: "flows", text: (row) => row.flows.toLocaleString("en-US"), value: (row) => row.flows },
        ...doc.policies.map((policy, k): Column<Row> => ({
          heading: policy.name, text: (row) => row.values[k]?.[metric][1] ?? "–", value: (row) => row.values[k]?.[metric][0] ?? null,
          best: (row) => row.values.length > 1 && isLeast(row, k, metric),
        })),
      ];
      return new SortedTable(columns, doc.groups.filter((group) => group.by === by), { caption: `By ${by}: ${METRICS[metric]}`, page: 50 }).element;
    }));
  };
  choice.addEventListener("change", draw);
  draw();
  return h("div", {}, h("div", { class: "controls" }, h("label", {}, "Show ", choice)), holder);
}

function isLeast(row: Row, policy: number, metric: number): boolean {
  const values = row.values.flatMap((value) => value && value[metric][0] !== null ? [value[metric][0]!] : []);
  const own = row.values[policy]?.[metric][0];
  return metric < 5 && own !== null && own !== undefined && own === Math.min(...values) && values.some((value) => value !== own);
}
