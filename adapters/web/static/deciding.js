// What the buttons of the cards do. Each resolves to the server's result of the click (`kind`, `text`) for whoever
// clicked, or to null when the dialog was closed.

import { api } from "./api.js";
import { argumentList, callArguments } from "./card_parts.js";
import { openDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { makeForm } from "./forms.js";

const MAX_REASON = 2000;

/** Approve as it stands. */
export async function approve(view) {
  return resultOf(await api.decide({ approvals: [view.id], verb: "approve" }), view.id);
}

/** Approve several at once; resolves to the result of each, by id. */
export async function approveAll(views) {
  return (await api.decide({ approvals: views.map((view) => view.id), verb: "approve" })).results;
}

const DURATIONS = ["1 h", "8 h", "7 days"];

/** Ask for how long, then approve, and always allow the same call. */
export async function always(view) {
  const menu = h("select", { id: "always-for" }, DURATIONS.map((words) => h("option", { value: words }, words)));
  const help = "It is approved now. Until then, when you ask for exactly this call again, with these arguments, it runs without asking. It holds for nobody else, and you can revoke it under “Always allowed”.";
  let said = null;
  await openDialog({
    title: `Always allow ${view.server} › ${view.tool}?`,
    submit: "Approve",
    tone: "approve",
    body: [callArguments(view).node, h("div", { className: "field" }, h("label", { for: "always-for" }, "For"), menu, h("p", { className: "field-help" }, help))],
    async act() {
      said = resultOf(await api.decide({ approvals: [view.id], verb: "approve", always_for: menu.value }), view.id);
      return true;
    },
  });
  return said;
}

/** Show what is hidden in a call, to whoever may decide it. */
export async function look(view) {
  const { secrets, fingerprint } = await api.look(view.id);
  await openDialog({
    title: `Hidden in ${view.server} › ${view.tool}`,
    body: [h("p", { className: "muted" }, "Only you see this, and the audit log says that you looked. Do not pass it on."), argumentList(secrets).node, h("p", { className: "small muted" }, `Fingerprint of this call: ${fingerprint}.`)],
    act: async () => true,
  });
  return null;
}

/** Ask for whom, then ask them to decide. `people` are who one can be on this page. */
export async function handOver(view, people) {
  const menu = h("select", { id: "hand-over-to" }, people.map((person) => h("option", { value: person.person_id }, person.name)));
  let said = null;
  await openDialog({
    title: `Ask somebody else about ${view.server} › ${view.tool}`,
    submit: "Ask",
    body: h("div", { className: "field" }, h("label", { for: "hand-over-to" }, "Who should decide?"), menu, h("p", { className: "field-help" }, "It has to be somebody who may decide this.")),
    async act() {
      said = await api.handOver(view.id, menu.value);
      return true;
    },
  });
  return said;
}

/** The requester does not want it any more. */
export async function withdraw(view) {
  return api.withdraw(view.id);
}

/** Ask for the reason, then reject. */
export async function reject(view) {
  const box = h("textarea", { rows: 3, maxLength: MAX_REASON, id: "reject-reason", "aria-required": view.reason_required ? "true" : null });
  const help = view.reason_required ? "This one needs a reason." : "Optional. It is passed on, so that the next proposal can be better.";
  let said = null;
  await openDialog({
    title: `Reject ${view.server} › ${view.tool}?`,
    submit: "Reject",
    tone: "danger",
    body: h("div", { className: "field" }, h("label", { for: "reject-reason" }, "Reason"), box, h("p", { className: "field-help" }, help)),
    async act() {
      if (view.reason_required && !box.value.trim()) throw new Error("Please give a reason.");
      const result = resultOf(await api.decide({ approvals: [view.id], verb: "reject", reason: box.value.trim() }), view.id);
      if (result.kind === "invalid") throw new Error(result.text);
      said = result;
      return true;
    },
  });
  return said;
}

/** Open the edit form, then approve with the changes. */
export async function edit(view) {
  const form = makeForm(await api.editForm(view.id));
  const { title } = view;
  let said = null;
  await openDialog({
    title: `Edit ${view.server} › ${view.tool}`,
    submit: "Approve with changes",
    tone: "approve",
    body: [title ? h("p", { className: "muted" }, title) : null, form.nodes],
    async act() {
      const values = form.values();
      if (values === null) return false;
      const result = resultOf(await api.decide({ approvals: [view.id], verb: "approve", values }), view.id);
      if (result.kind === "invalid") {
        form.showErrors(result.errors);
        return false;
      }
      said = result;
      return true;
    },
  });
  return said;
}

/** Open a question's form. Without fields, a question is answered in the message box, and a tool's with a plain yes. */
export async function answer(view) {
  if (!view.fields.length && view.server) return api.answer(view.id, {});
  if (!view.fields.length) {
    document.getElementById("message").focus();
    return { kind: "info", text: "Type your answer below." };
  }
  const form = makeForm({ fields: view.fields });
  let said = null;
  await openDialog({
    title: view.question.length > 120 ? "Your answer" : view.question,
    submit: "Send answer",
    body: [view.server ? h("p", { className: "muted" }, `From the tool server ${view.server}, which gets what you type here.`) : null, form.nodes],
    async act() {
      const values = form.values();
      if (values === null) return false;
      try {
        said = await api.answer(view.id, values);
        return true;
      } catch (problem) {
        if (problem.body?.kind !== "invalid") throw problem;
        form.showErrors(problem.body.errors);
        return false;
      }
    },
  });
  return said;
}

function resultOf({ results }, id) {
  return results[id] ?? { kind: "unknown", text: "The server did not say what became of this click." };
}
