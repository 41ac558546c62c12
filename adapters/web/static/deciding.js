// What the buttons of the cards do. Each resolves to the server's result of the click (`kind`, `text`) for whoever
// clicked, or to null when the dialog was closed.

import { api } from "./api.js";
import { argumentList, callArguments, requestedBy, risks, what } from "./card_parts.js";
import { openDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { makeForm } from "./forms.js";

const MAX_REASON = 2000;

/** Approve as it stands. */
export async function approve(view) {
  return decided(view, { verb: "approve" });
}

/** List several, then approve just these; resolves to the result of each, by id, or to null. */
export async function approveAll(views) {
  let said = null;
  await openDialog({
    title: `Approve these ${views.length}?`,
    submit: `Approve ${views.length}`,
    tone: "approve",
    body: h("ol", { className: "approving" }, views.map((view) => h("li", {}, what(view), risks(view.risk), h("p", { className: "muted small" }, view.client ? "Requested by " : "Asked by ", requestedBy(view.requester, view.client)), callArguments(view, null, () => showAll(view.id)).node))),
    async act() {
      try {
        said = (await api.decide({ approvals: views.map((view) => view.id), verb: "approve" })).results;
      } catch (problem) {
        if (!problem.body?.results) throw problem;
        said = problem.body.results;
      }
      return true;
    },
  });
  return said;
}

/** All arguments of a call, on pages, where they are too long for its card; `kind` as for `api.argumentPage`. */
export async function showAll(id, kind = "approvals") {
  const shown = h("div", { className: "pages" });
  const place = h("p", { className: "muted small", role: "status" });
  const turn = (text, step) => h("button", { type: "button", className: "button small", onclick: () => open(number + step) }, text);
  const [previous, next] = [turn("Previous", -1), turn("Next", 1)];
  let number = 0;
  async function open(wanted) {
    try {
      const { page, pages, arguments: lines } = await api.argumentPage(kind, id, wanted);
      number = page;
      place.textContent = `Page ${page + 1} of ${pages}`;
      previous.disabled = page === 0;
      next.disabled = page + 1 === pages;
      shown.replaceChildren(argumentList(lines.map(({ name, text }) => ({ name, value: text, shown: text, hidden: 0 }))).node);
    } catch (problem) {
      place.textContent = problem.message;
    }
  }
  await open(0);
  await openDialog({ title: "All arguments", body: [place, h("div", { className: "buttons" }, previous, next), shown], act: async () => true });
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
    body: [callArguments(view, null, () => showAll(view.id)).node, h("div", { className: "field" }, h("label", { for: "always-for" }, "For"), menu, h("p", { className: "field-help" }, help))],
    async act() {
      said = await decided(view, { verb: "approve", always_for: menu.value });
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
      const result = await decided(view, { verb: "reject", reason: box.value.trim() });
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
      const result = await decided(view, { verb: "approve", values });
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

/** Decide one; the result of that click, whatever it is. */
async function decided(view, decision) {
  try {
    return resultOf(await api.decide({ approvals: [view.id], ...decision }), view.id);
  } catch (problem) {
    if (!problem.body?.results) throw problem;
    return resultOf(problem.body, view.id);
  }
}

function resultOf({ results }, id) {
  return results[id] ?? { kind: "unknown", text: "The server did not say what became of this click." };
}
