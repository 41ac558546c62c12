// The card of a plan: one line for each task, with how far it is and what came of it.

import { card } from "./card_parts.js";
import { turnOfCard } from "./console_address.js";
import { h, icon, ICONS } from "./dom.js";
import { t } from "./language.js";

const LONG = 120;
const SIGNS = {
  blocked: ["quiet", ICONS.circle],
  running: ["running", ICONS.play],
  waiting: ["waiting", ICONS.clock],
  done: ["good", ICONS.check],
  failed: ["bad", ICONS.cross],
  not_run: ["quiet", ICONS.barred],
  stopped: ["quiet", ICONS.stopped],
};

/** Nothing on it is to be pressed: what a task asks of people has a card of its own. */
export function planCard(view) {
  const isDone = view.tasks.every((task) => task.status === "done");
  return card({
    id: view.id,
    kind: "plan",
    tone: view.status === "open" ? "asking" : isDone ? "good" : "quiet",
    sign: ICONS.list,
    heading: view.title,
    body: [h("ol", { className: "tasks", role: "list" }, view.tasks.map(taskLine)), turnOfCard(view.id)],
  });
}

function taskLine(task) {
  const [tone, sign] = SIGNS[task.status];
  return h(
    "li",
    { className: `task ${tone}` },
    icon(sign),
    h(
      "div",
      { className: "task-words" },
      h("p", { className: "task-title", dir: "auto" }, h("b", {}, task.id), " ", h("span", {}, task.instruction)),
      h("p", { className: "task-about small", dir: "auto" }, h("span", { className: "muted" }, t("{agent} agent", { agent: task.agent }), " · "), h("span", { className: "task-state" }, task.state)),
      task.result.length > LONG || task.instructions ? folded(task) : resultOf(task),
    ),
  );
}

const resultOf = (task) => (task.result ? h("p", { className: "task-result small muted", dir: "auto" }, task.result) : null);

/** What is longer than its line. */
function folded(task) {
  const beginning = task.result.length > LONG ? `${task.result.slice(0, LONG).trimEnd()}…` : task.result;
  return h(
    "details",
    { className: "more", dataset: { fold: task.id } },
    h("summary", {}, h("span", { className: "task-result when-folded", dir: "auto" }, beginning), h("span", { className: "details-word" }, beginning ? h("span", { className: "when-folded" }, " · ") : null, h("span", { className: "link" }, t("Details")))),
    task.instructions ? h("p", { className: "task-instructions small", dir: "auto" }, task.instructions) : null,
    resultOf(task),
  );
}
