// What was done for an answer: each call with its state, result and time, behind a line that sums them up.

import { h, icon, ICONS } from "./dom.js";
import { n, t } from "./language.js";
import { duration, time } from "./time.js";
import { usageLine } from "./usage.js";

function stateOf(state) {
  switch (state) {
    case "done":
      return ["good", ICONS.check, t("Done")];
    case "failed":
      return ["bad", ICONS.cross, t("Failed")];
    case "waiting":
      return ["waiting", ICONS.clock, t("Waiting")];
    case "running":
      return ["running", ICONS.circle, t("Running")];
    default:
      return ["quiet", ICONS.question, t("Outcome unknown")];
  }
}

/**
 * A list that can be folded; null where nothing was called. `more` is how many calls before them are not listed; `answer`
 * is the post that they were made for, which says what it used when one looks.
 */
export function activityList(calls, more, { open = false, answer = null } = {}) {
  if (!calls.length) return null;
  const failed = calls.filter((call) => call.state === "failed").length;
  const parts = [
    n("{count} step", "{count} steps", calls.length + more),
    took(calls),
    failed ? n("{count} failed", "{count} failed", failed) : null,
  ].filter(Boolean);
  const earlier = more ? h("li", { className: "muted" }, n("{count} earlier step is not listed", "{count} earlier steps are not listed", more)) : null;
  const used = answer ? usageLine(answer) : null;
  const element = h("details", { className: "activity" }, h("summary", {}, parts.join(" · ")), h("ol", { role: "list" }, earlier, calls.map(step)), used?.line);
  element.open = open;
  if (used) element.addEventListener("toggle", used.load);
  return element;
}

/** How long calls ran, those beside each other counted once: what waits for people takes none. Null while one runs. */
function took(calls) {
  if (calls.some((call) => call.ended_at === null)) return null;
  let seconds = 0;
  let until = -Infinity;
  for (const call of [...calls].sort((one, other) => one.began_at - other.began_at)) {
    seconds += Math.max(0, call.ended_at - Math.max(until, call.began_at));
    until = Math.max(until, call.ended_at);
  }
  return duration(seconds);
}

function step(call) {
  const [tone, sign, word] = stateOf(call.state);
  return h(
    "li",
    { className: `step ${tone}` },
    icon(sign),
    h("div", { className: "step-words" },
      h("p", {}, h("span", { className: "step-title", dir: "auto" }, call.title), h("span", { className: "hidden-label" }, ` · ${word}`)),
      h("p", { className: "muted small", dir: "auto" }, [call.source, call.result].filter(Boolean).join(" · ")),
    ),
    h("span", { className: "step-time muted" }, call.ended_at === null ? (call.state === "running" || call.state === "waiting" ? word : "") : [h("span", { className: "hidden-label" }, time(call.began_at), ", "), duration(call.ended_at - call.began_at)]),
  );
}
