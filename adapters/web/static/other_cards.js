// The cards of a question, of an attempt whose outcome is unknown, and the line of a change that nobody was asked about.

import { api } from "./api.js";
import { actions, callArguments, card, chip, dotted, lateAnswer, requestedBy, throughProgram } from "./card_parts.js";
import { turnOfCard } from "./console_address.js";
import { h, icon, ICONS } from "./dom.js";
import { parts, t } from "./language.js";
import { markdown } from "./markdown.js";

// ------------------------------------------------------------------------------------------------ questions

function questionEnding(status) {
  switch (status) {
    case "answered":
      return ["good", t("Answered")];
    case "declined":
      return ["bad", t("Declined")];
    case "cancelled":
      return ["quiet", t("Canceled")];
    default:
      return ["quiet", t("Replaced")];
  }
}

/**
 * `can.answer(view)` opens the form, or goes to the message box when the question has no fields. A question that a
 * tool puts names its server, and need not be answered.
 */
export function clarificationCard(view, { me, can, memory, isReplied = false }) {
  return view.status === "open" ? openQuestion(view, view.requester_id === me, can, memory) : endedQuestion(view, memory, isReplied);
}

function openQuestion(view, isMine, can, memory) {
  const dismiss = (action) => () => api.dismiss(view.id, action);
  const instead = view.server ? [[t("Decline"), "", dismiss("decline")], [t("Cancel"), "", dismiss("cancel")]] : [];
  return card({
    id: view.id,
    kind: "clarification",
    tone: "asking",
    sign: ICONS.question,
    label: asker(view),
    heading: heading(view),
    body: [
      throughProgram(view.requester, view),
      rest(view),
      view.about ? h("p", { className: "muted small", dir: "auto" }, view.about) : null,
      view.context ? h("div", { className: "context", dir: "auto" }, markdown(view.context)) : null,
      isMine
        ? actions([[t("Answer"), "primary", () => can.answer(view)], ...instead], memory)
        : h("p", { className: "muted" }, t("Only {name} can answer.", { name: view.requester })),
      turnOfCard(view.id),
    ],
  });
}

/** The question and its answer, unless that stands below it as a message: what came with it to answer it by is not said again. */
function endedQuestion(view, memory, isReplied) {
  const [tone, word] = questionEnding(view.status);
  return card({
    id: view.id,
    kind: "clarification settled",
    tone,
    sign: ICONS.question,
    label: asker(view),
    heading: heading(view),
    side: chip(tone, word),
    body: [rest(view), isReplied ? null : answerOf(view), turnOfCard(view.id), lateAnswer(memory)],
  });
}

/** What was answered: in a form one line for each field, else as it was written. */
function answerOf(view) {
  if (!view.answer) return null;
  if (!view.filled_in.length) return h("p", { className: "outcome", dir: "auto" }, parts(t("{name}: {answer}"), { name: h("span", { className: "muted" }, view.requester), answer: view.answer }));
  const line = ({ name, value }) => h("div", { className: "argument" }, h("dt", {}, name), h("dd", { dir: "auto" }, value || t("(empty)")));
  return [h("p", { className: "muted small" }, t("Answered by {name}", { name: view.requester })), h("dl", { className: "arguments" }, view.filled_in.map(line))];
}

const asker = (view) => (view.server ? t("Question from the tool server {server}", { server: view.server }) : t("Question"));
/** A question that is more than a line of plain text is below the heading; a tool's is never Markdown. */
const isPlain = (view) => Boolean(view.server) || !/[\n*_`#>|[\]]/.test(view.question);
const heading = (view) => (isPlain(view) ? h("span", { className: "plain" }, view.question) : t("A question for {name}", { name: view.requester }));
const rest = (view) => (isPlain(view) ? null : h("div", { className: "question prose", dir: "auto" }, markdown(view.question)));

// ------------------------------------------------------------------------------------------------ outcomes

function outcomeEnding(view) {
  const name = view.settled_by;
  switch (view.status) {
    case "it_was_done":
      return ["good", ICONS.check, t("Done"), name && t("Confirmed by {name}", { name })];
    case "try_again":
      return ["quiet", ICONS.info, t("Tried again"), name && t("Tried again by {name}", { name })];
    case "skip":
      return ["quiet", ICONS.info, t("Skipped"), name && t("Skipped by {name}", { name })];
    default:
      return ["quiet", ICONS.info, t("Replaced"), ""];
  }
}

/** Only a person can say what came of an attempt whose outcome is unknown. */
export function outcomeCard(view, { me, can, memory }) {
  const list = callArguments(view, null, () => can.showAll(view.id, "outcomes"));
  return view.status === "open" ? openOutcome(view, list, view.requester_id === me, memory) : endedOutcome(view, list, memory);
}

function openOutcome(view, list, isMine, memory) {
  const choose = (choice) => () => api.settleOutcome(view.id, choice);
  const buttons = [[t("It was done"), "primary", choose("it_was_done")], [t("Try again"), "", choose("try_again")], [t("Skip"), "", choose("skip")]];
  return card({
    id: view.id,
    kind: "outcome",
    tone: "waiting",
    sign: ICONS.warning,
    label: t("Did this go through?"),
    heading: view.title,
    context: dotted("card-context", [view.source]),
    body: [
      throughProgram(view.requester, view),
      h("p", {}, t("Connection lost. Did this happen?")),
      view.known ? h("p", { className: "muted small", dir: "auto" }, view.known) : null,
      list.node,
      isMine ? actions(buttons, memory) : h("p", { className: "muted" }, t("Only {name} can answer.", { name: view.requester })),
      turnOfCard(view.id),
    ],
  });
}

function endedOutcome(view, list, memory) {
  const [tone, sign, word, byName] = outcomeEnding(view);
  return card({
    id: view.id,
    kind: "outcome settled",
    tone,
    sign,
    heading: view.title,
    body: [
      h("details", { className: "more" }, h("summary", {}, h("span", { className: "outcome" }, byName || word), h("span", { className: "details-word" }, " · ", h("span", { className: "link" }, t("Details")))), dotted("card-context", [view.source]), list.node, turnOfCard(view.id)),
      lateAnswer(memory),
    ],
  });
}

// ------------------------------------------------------------------------------------------------ changes

/** A change that was made without asking: one quiet line with its result, and Revoke where a standing approval allows it. */
export function changeLine(view, { me, can, memory }) {
  const failed = view.result_tone === "error";
  const tone = failed ? "bad" : view.result_tone === "warning" ? "quiet" : "good";
  const why = view.grant_id ? t("Allowed by a standing approval") : view.rule ? t("Allowed by the rule “{rule}”", { rule: view.rule }) : t("Allowed without asking");
  const list = callArguments(view, null, null);
  const revoke = view.grant_id && view.requester_id === me ? [[t("Revoke"), "small", () => can.revoke(view.grant_id)]] : [];
  return h(
    "article",
    { className: `change ${tone}`, "aria-label": view.title, tabIndex: -1, dataset: { card: view.id } },
    h("p", { className: "change-line", dir: "auto" }, icon(failed ? ICONS.cross : ICONS.check), h("span", { className: "change-title" }, view.title), view.result ? h("span", { className: "change-result" }, " · ", view.result) : null),
    h("details", { className: "more" }, h("summary", {}, h("span", { className: "outcome" }, why), h("span", { className: "details-word" }, " · ", h("span", { className: "link" }, t("Details")))), dotted("card-context", [view.source, view.agent ? requestedBy(view.requester, view.client, view.agent) : view.requester]), list.node, turnOfCard(view.id)),
    revoke.length ? actions(revoke, memory) : null,
  );
}
