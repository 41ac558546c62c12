// The switch that stops everything, and lets it go on.

import { operators } from "./api.js";
import { heading, personName } from "./console_parts.js";
import { openDialog } from "./dialogs.js";
import { freshId, h, icon, ICONS } from "./dom.js";
import { drawStopped } from "./header.js";
import { parts, t } from "./language.js";
import { fromNow, short, time } from "./time.js";

const LONGEST_WHY = 200;

export async function stop({ again }) {
  const now = await operators.stopNow();
  drawStopped(now.stopped);
  return [heading(t("Stop"), { again }), now.stopped ? stopped(now, again) : running(again)];
}

function running(again) {
  const act = () => ask({ title: t("Stop everything?"), submit: t("Stop everything"), tone: "danger-solid", label: t("Reason"), required: true, words: t("Every turn and every call of other agents ends, in all processes, within 2 seconds. Whether a call under way had an effect is then unknown. Messages and decisions are kept until everything goes on. The audit log says who stopped it and why."), send: operators.stop, again });
  return h("div", { className: "stop-card" }, h("p", { className: "stop-state" }, icon(ICONS.play), h("span", {}, t("Everything runs."))), h("p", { className: "muted" }, t("Stop it when it does what it must not do: people and other agents can be answered later.")), h("button", { type: "button", className: "button danger-solid", onclick: act }, t("Stop everything…")));
}

function stopped(now, again) {
  const act = () => ask({ title: t("Let everything go on?"), submit: t("Go on"), tone: "approve", label: t("Reason (optional)"), required: false, words: t("What was kept is handled now, oldest first. The audit log says who let it go on."), send: (why) => operators.goOn(why, now.id), again });
  return h(
    "div",
    { className: "stop-card is-stopped" },
    h("p", { className: "stop-state" }, icon(ICONS.stopped), h("span", {}, t("Everything is stopped."))),
    h("p", {}, parts("Stopped by {name}, {distance} ({time})", { name: personName(now.name, now.person_id), distance: time(now.since, fromNow), time: time(now.since, short) })),
    h("p", { className: "reason", dir: "auto" }, t("Reason: {reason}", { reason: now.why })),
    h("button", { type: "button", className: "button approve", onclick: act }, t("Go on…")),
  );
}

async function ask({ title, submit, tone, label, required, words, send, again }) {
  const id = freshId("why");
  const error = h("p", { className: "field-error", id: `${id}-error`, role: "alert" });
  const box = h("input", { type: "text", id, maxLength: LONGEST_WHY, autocomplete: "off", required, "aria-describedby": `${id}-error` });
  let changed = false;
  await openDialog({
    title,
    submit,
    tone,
    body: [h("p", {}, words), h("div", { className: "field" }, h("label", { for: id }, label), box, error)],
    async act() {
      error.textContent = required && !box.value.trim() ? t("Required") : "";
      box.setAttribute("aria-invalid", String(Boolean(error.textContent)));
      if (error.textContent) {
        box.focus();
        return false;
      }
      try {
        await send(box.value.trim());
      } catch (problem) {
        if (problem.status !== 409) throw problem;
        // Another operator was faster: what is so now is shown.
      }
      changed = true;
      return true;
    },
  });
  if (changed) await again();
}
