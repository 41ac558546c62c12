// What the buttons of the cards do. Each resolves to the server's result of the click (`kind`, `text`) for whoever
// clicked, or to null when the dialog was closed.

import { api } from "./api.js";
import { argumentList, callArguments, contextLine, deletes, preview, requestedBy, showUnseen, whyAgain } from "./card_parts.js";
import { turnOfCard } from "./console_address.js";
import { copyButton } from "./copying.js";
import { openDialog } from "./dialogs.js";
import { freshId, h } from "./dom.js";
import { makeForm } from "./forms.js";
import { n, t } from "./language.js";
import { short, time } from "./time.js";

const MAX_REASON = 2000;

/** Approve as it stands; what deletes is asked once more. */
export async function approve(view) {
  if (!deletes(view)) return decided(view, { verb: "approve" });
  let said = null;
  await openDialog({
    title: t("Approve deletion?"),
    submit: t("Approve"),
    tone: "danger-solid",
    body: [about(view), theCall(view), deletionWarning(view)],
    async act() {
      said = await decided(view, { verb: "approve" });
      return true;
    },
  });
  return said;
}

/** List several to tick, then approve just these; resolves to the result of each, by id, or to null. */
export async function approveAll(views) {
  let said = null;
  let dialog = null;
  const rows = views.map(tickRow);
  const ticked = () => rows.filter(({ box }) => box.checked);
  const everything = h("input", { type: "checkbox", checked: true, onchange: () => {
    for (const { box } of rows) box.checked = everything.checked;
    count();
  } });
  const count = () => {
    const number = ticked().length;
    everything.checked = number === rows.length;
    everything.indeterminate = number > 0 && number < rows.length;
    dialog.enable(number > 0);
    dialog.name(number ? n("Approve {count}", "Approve {count}", number) : t("Approve"));
    dialog.entitle(number ? n("Approve {count} request?", "Approve {count} requests?", number) : t("Which requests do you approve?"));
  };
  for (const { box } of rows) box.onchange = count;
  await openDialog({
    title: n("Approve {count} request?", "Approve {count} requests?", views.length),
    submit: t("Approve"),
    tone: "approve",
    wide: true,
    ready(handle) {
      dialog = handle;
      count();
    },
    body: [h("label", { className: "tick all" }, everything, t("All of them")), h("ul", { className: "approving", role: "list" }, rows.map(({ node }) => node))],
    async act() {
      try {
        said = (await api.decide({ approvals: ticked().map(({ view }) => view.id), verb: "approve" })).results;
      } catch (problem) {
        if (!problem.body?.results) throw problem;
        said = problem.body.results;
      }
      return true;
    },
  });
  return said;
}

function tickRow(view) {
  const id = freshId("tick");
  const box = h("input", { type: "checkbox", checked: true, "aria-labelledby": id });
  const label = h("label", { className: "tick" }, box, h("span", { id, className: "what-title", dir: "auto" }, view.title));
  const node = h("li", {}, label, h("div", { className: "tick-body" }, contextLine(view), theCall(view)));
  return { view, box, node };
}

/** All that is known of a request: its exact values, and, for whoever may decide it, Approve with a note. */
export async function showRequest(view, { decides }) {
  const note = noteField();
  let said = null;
  const facts = [
    view.why ? [t("Why approval is needed"), view.why] : null,
    [t("Requested"), time(view.asked_at, short)],
    view.fingerprint ? [t("Fingerprint"), view.fingerprint] : null,
  ].filter(Boolean);
  const unseen = h("p");
  showUnseen(unseen, view, 0);
  await openDialog({
    title: view.title,
    submit: decides ? t("Approve") : undefined,
    tone: deletes(view) ? "danger-solid" : "approve",
    wide: true,
    body: [
      contextLine(view),
      ...(view.status === "pending" ? [whyAgain(view), preview(view)] : []),
      await pagesOf(view.id, "approvals"),
      unseen,
      h("dl", { className: "facts" }, facts.map(([name, value]) => h("div", { className: "fact" }, h("dt", {}, name), h("dd", {}, value)))),
      turnOfCard(view.id),
      decides ? deletionWarning(view) : null,
      decides ? note.node : null,
    ],
    async act() {
      said = await decided(view, { verb: "approve", ...(note.text() ? { note: note.text() } : {}) });
      return true;
    },
  });
  return said;
}

function noteField() {
  const id = freshId("note");
  const box = h("textarea", { id, rows: 2, maxLength: MAX_REASON, "aria-describedby": `${id}-help`, dataset: { later: "" } });
  const help = h("p", { className: "field-help", id: `${id}-help` }, t("The request runs exactly as shown. The assistant reads your note with the result."));
  return { node: h("div", { className: "field" }, h("label", { for: id }, t("Add a note for the assistant (optional)")), box, help), text: () => box.value.trim() };
}

/** The exact values of a call, on pages, in a dialog; `kind` as for `api.argumentPage`. */
export async function showAll(id, kind = "approvals") {
  await openDialog({ title: t("All values"), wide: true, body: await pagesOf(id, kind) });
  return null;
}

/** The exact values of a call, letter by letter, on as many pages as they take. */
async function pagesOf(id, kind) {
  const shown = h("div", { className: "pages" });
  const place = h("p", { className: "muted small", role: "status" });
  const turn = (text, step) => h("button", { type: "button", className: "button small", onclick: () => open(number + step) }, text);
  const [previous, next] = [turn(t("Previous"), -1), turn(t("Next"), 1)];
  let lines = [];
  const bar = h("div", { className: "page-bar" }, previous, next, place);
  const copy = copyButton(() => JSON.stringify(Object.fromEntries(lines.map(({ name, text }) => [name, text])), null, 2), t("Copy values"));
  let number = 0;
  async function open(wanted) {
    try {
      const { page, pages, arguments: found } = await api.argumentPage(kind, id, wanted);
      number = page;
      lines = found;
      bar.hidden = pages === 1;
      copy.hidden = pages !== 1 || !found.length;
      place.textContent = t("Page {number} of {count}", { number: page + 1, count: pages });
      previous.disabled = page === 0;
      next.disabled = page + 1 === pages;
      shown.replaceChildren(argumentList(found.map(({ name, text }) => ({ name, value: text, shown: text, hidden: 0 }))).node);
    } catch (problem) {
      bar.hidden = false;
      place.textContent = problem.message;
    }
  }
  await open(0);
  return h("div", { className: "exact" }, h("div", { className: "exact-head" }, h("h3", {}, t("Exact values")), copy), bar, shown);
}

/** What the server calls a duration, and what people do. */
const durations = () => [["1 h", n("{count} hour", "{count} hours", 1)], ["8 h", n("{count} hour", "{count} hours", 8)], ["7 days", n("{count} day", "{count} days", 7)]];

/** Ask for how long, then approve, and allow the same call for that long. */
export async function always(view) {
  const id = freshId("always-for");
  const menu = h("select", { id, "aria-describedby": `${id}-help` }, durations().map(([value, words]) => h("option", { value }, words)));
  const help = t("Approves now. Identical requests from you then run without asking. You can revoke this under “Standing approvals”.");
  let said = null;
  await openDialog({
    title: t("Allow this request for a while?"),
    submit: t("Approve"),
    tone: "approve",
    ready(dialog) {
      menu.onchange = () => dialog.name(t("Approve and allow for {duration}", { duration: menu.selectedOptions[0].textContent }));
      menu.onchange();
    },
    body: [about(view), theCall(view), deletionWarning(view), h("div", { className: "field" }, h("label", { for: id }, t("For how long")), menu, h("p", { className: "field-help", id: `${id}-help` }, help))],
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
    title: t("Hidden values"),
    body: [about(view), h("p", { className: "muted" }, t("Only you see this. The audit log records that you looked. Do not share it.")), argumentList(secrets).node, h("p", { className: "small muted" }, t("Fingerprint: {fingerprint}", { fingerprint }))],
  });
  return null;
}

/** Ask for whom, of those who may decide it too, then ask them to decide. */
export async function handOver(view) {
  const { colleagues } = await api.colleagues(view.id);
  if (!colleagues.length) return { kind: "info", text: t("No one else here can approve this.") };
  const id = freshId("colleague");
  const menu = h("select", { id }, colleagues.map((person) => h("option", { value: person.id }, person.name)));
  let said = null;
  await openDialog({
    title: t("Ask someone else"),
    submit: t("Ask"),
    body: [about(view), h("div", { className: "field" }, h("label", { for: id }, t("Who should decide?")), menu)],
    async act() {
      said = await api.handOver(view.id, menu.value);
      return true;
    },
  });
  return said;
}

/** The requester does not want it after all. */
export async function withdraw(view) {
  let said = null;
  await openDialog({
    title: t("Withdraw this request?"),
    submit: t("Withdraw"),
    tone: "danger",
    body: [about(view), h("p", {}, t("Nobody can approve it then."))],
    async act() {
      said = await api.withdraw(view.id);
      return true;
    },
  });
  return said;
}

/** Have a call that was approved and failed proposed once more, as it was. */
export const retry = (view) => api.retry(view.id);

/** Ask for the reason, then reject. */
export async function reject(view) {
  const id = freshId("reject-reason");
  const box = h("textarea", { rows: 3, maxLength: MAX_REASON, id, "aria-describedby": `${id}-help`, "aria-required": view.reason_required ? "true" : null });
  const help = view.reason_required ? t("Reason required.") : t("Optional. Helps improve the next proposal.");
  let said = null;
  await openDialog({
    title: t("Reject this request?"),
    submit: t("Reject"),
    tone: "danger-solid",
    body: [about(view), h("div", { className: "field" }, h("label", { for: id }, t("Reason, or what to do instead")), box, h("p", { className: "field-help", id: `${id}-help` }, help))],
    async act() {
      if (view.reason_required && !box.value.trim()) {
        box.setAttribute("aria-invalid", "true");
        box.focus();
        throw new Error(t("Please give a reason."));
      }
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
  let said = null;
  await openDialog({
    title: t("Edit before approving"),
    submit: t("Save and approve"),
    tone: "approve",
    body: [about(view), deletionWarning(view), form.nodes],
    ready(handle) {
      form.whenChanged((is) => handle.enable(is));
    },
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
    return { kind: "info", text: t("Type your answer below.") };
  }
  const form = makeForm({ fields: view.fields });
  let said = null;
  await openDialog({
    title: view.question.length > 120 ? t("Your answer") : view.question,
    submit: t("Send answer"),
    body: [view.server ? h("p", { className: "muted" }, t("The tool server {server} asks this and gets what you type here.", { server: view.server })) : null, form.nodes],
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

/** What a dialog is about: the request's title, and who asks. */
function about(view) {
  return h("div", { className: "about" }, h("p", { className: "what-title", dir: "auto" }, view.title), h("p", { className: "what-source" }, requestedBy(view.requester, view.client, view.agent), " · ", view.source));
}

/** All that its card shows of a call: why it is asked again, what it would change, its values. */
function theCall(view) {
  return [whyAgain(view), preview(view), callArguments(view, null, () => showAll(view.id)).node];
}

/** What is said once more wherever a request that deletes is approved. */
function deletionWarning(view) {
  return deletes(view) ? h("p", { className: "warning-line" }, t("This deletes data. It may not be possible to undo it.")) : null;
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
  return results[id] ?? { kind: "unknown", text: t("Couldn’t confirm. Reload to check.") };
}

/** End a standing approval. */
export const revoke = (grantId) => api.revoke(grantId);
