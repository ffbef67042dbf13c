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
    makes_late.length > 0 && h("h4", {}, `With it ${count(makes_late.length, "flow")} of others ${isOver ? makes_late.length === 1 ? "was" : "were" : makes_late.length === 1 ? "is" : "are"} expected to be late`),
    makes_late.length > 0 && h("ul", {}, ...makes_late.map((late) =>
      h("li", {}, `${late.flow} of ${late.number} ${late.name}: by ${duration(Math.round(late.late_by))} (done at ${at(late.with)} instead of ${at(late.without)}, deadline ${at(late.deadline)})`))),
    remedies.length > 0 && h("h4", {}, isOver ? "What would have helped" : "What would help"),
    remedies.length > 0 && h("ul", {}, ...remedies.map((remedy) => h("li", {}, words(remedy, now)))),
    h("p", { class: "muted" }, `Said ${away(millis(made), now)}.`));
}

function expected(flow: FlowPrediction, now: number, isOver: boolean): (Node | string)[] {
  const done = millis(flow.completion), at = (text: string) => clock(millis(text), now);
  const between = flow.between && at(flow.between[0]) !== at(flow.between[1]) ? `, in eight of ten courses between ${at(flow.between[0])} and ${at(flow.between[1])}` : flow.guess ? ", which is a guess: how long its tasks take is not known yet" : "";
  const is = isOver ? "was" : "is", when = isOver ? "" : ` (${done < now ? "which has passed" : away(done, now)})`;
  const fate: Fate = flow.holds === undefined ? "free" : flow.holds ? "met" : "likely";
  const chance = flow.chance === undefined ? "" : ` (in ${percent(flow.chance / 100)} of courses)`;
  const verdict = flow.deadline === undefined ? "no deadline"
    : flow.holds ? `its deadline ${at(flow.deadline)} ${is} expected to hold${chance}`
      : `its deadline ${at(flow.deadline)} ${is} not expected to hold${chance}`;
  return [
    h("strong", {}, flow.flow), ` ${is} expected to be done at ${clock(done, now)}${when}${between}. `,
    fated({ fate, words: verdict }),
  ];
}

function words(remedy: Remedy, now: number): string {
  const { flow } = remedy;
  switch (remedy.kind) {
    case "deadline": return `${flow}: a deadline of ${clock(millis(remedy.deadline), now)} or later`;
    case "slots": return `${flow}: ${count(remedy.slots, "slot")} instead of those there are`;
    case "hold": return `${flow}: ${remedy.numbers.length === 1 ? "submission" : "submissions"} ${remedy.numbers.join(", ")} held until it is done`;
    case "nothing": return `${flow}: nothing here; alone it would be done at ${clock(millis(remedy.alone), now)}`;
  }
}
