// What is expected of a submission, what it means for others, and what would help, in words.
import { h } from "../dom";
import { count, duration, percent } from "../format";
import type { FlowPrediction, Prediction, Remedy, Submission } from "./api";
import { fated, type Fate } from "./rows";
import { away, clock, millis } from "./time";

/** Why nothing is predicted of a submission, if the service says why. */
export function unforeseen({ unpredicted }: Submission): string | undefined {
  return unpredicted && `No prediction yet: ${unpredicted}.`;
}

/** A submission that is over shows its last prediction. */
export function foretold(prediction: Prediction, now: number, isOver = false): HTMLElement {
  const { flows, makes_late, remedies, made } = prediction, at = (text: string) => clock(millis(text), now);
  return h("div", { class: "foretold" },
    h("ul", {}, ...flows.map((flow) => h("li", {}, ...expected(flow, now, isOver)))),
    makes_late.length > 0 && h("h4", {}, `${isOver ? "It was" : "It is"} predicted to make ${count(makes_late.length, "other flow")} late`),
    makes_late.length > 0 && h("ul", {}, ...makes_late.map((late) =>
      h("li", {}, `${late.flow} of ${late.number} ${late.name}: by ${duration(Math.round(late.late_by))} (finished at ${at(late.with)} instead of ${at(late.without)}, deadline ${at(late.deadline)})`))),
    remedies.length > 0 && h("h4", {}, isOver ? "What would have helped" : "What would help"),
    remedies.length > 0 && h("ul", {}, ...remedies.map((remedy) => h("li", {}, words(remedy, now)))),
    h("p", { class: "muted" }, `Predicted ${away(millis(made), now)}.`));
}

function expected(flow: FlowPrediction, now: number, isOver: boolean): (Node | string)[] {
  const is = isOver ? "was" : "is";
  if (flow.completion === undefined) return [h("strong", {}, flow.flow), `: it ${is} unknown when it finishes, because a job never ran`];
  const done = millis(flow.completion), at = (text: string) => clock(millis(text), now);
  const between = flow.between && at(flow.between[0]) !== at(flow.between[1]) ? ` (80 % interval ${at(flow.between[0])} to ${at(flow.between[1])})` : "";
  const meets = `it ${is} predicted to meet`, misses = `it ${is} predicted to miss`, when = isOver ? "" : ` (${done < now ? "which has passed" : away(done, now)})`;
  const fate: Fate = flow.holds === undefined ? "free" : flow.holds ? "met" : "likely";
  const chance = flow.chance === undefined ? "" : ` (chance to meet it: ${percent(flow.chance / 100)})`;
  const verdict = flow.deadline === undefined ? "no deadline"
    : flow.holds ? `${meets} its deadline ${at(flow.deadline)}${chance}`
      : `${misses} its deadline ${at(flow.deadline)}${chance}`;
  return [
    h("strong", {}, flow.flow), ` ${is} predicted to finish at ${clock(done, now)}${when}${between}; `,
    fated({ fate, words: verdict }),
  ];
}

function words(remedy: Remedy, now: number): string {
  const { flow } = remedy;
  switch (remedy.kind) {
    case "deadline": return `${flow}: a deadline of ${clock(millis(remedy.deadline), now)} or later`;
    case "slots": return `${flow}: ${count(remedy.slots, "slot")} instead of the present ones`;
    case "hold": return `${flow}: ${remedy.numbers.length === 1 ? "submission" : "submissions"} ${remedy.numbers.join(", ")} held until it finishes`;
    case "nothing": return `${flow}: nothing; even alone on the cluster it would finish at ${clock(millis(remedy.alone), now)}`;
  }
}
