// The cards of a question, and of an attempt whose outcome is unknown.

import { api } from "./api.js";
import { actions, callArguments, card, chip, lateAnswer, throughProgram, what } from "./card_parts.js";
import { h, ICONS } from "./dom.js";
import { markdown } from "./markdown.js";

const QUESTION_ENDS = {
  answered: ["good", "Answered"],
  declined: ["bad", "Declined"],
  cancelled: ["quiet", "Cancelled"],
  superseded: ["quiet", "Superseded"],
};

/**
 * `can.answer(view)` opens the form, or goes to the message box when the question has no fields. A question that a
 * tool puts names its server, and need not be answered.
 */
export function clarificationCard(view, { me, can, memory }) {
  const open = view.status === "open";
  const mine = view.requester_id === me;
  const dismiss = (action) => () => api.dismiss(view.id, action);
  const instead = view.server ? [["Decline", "", dismiss("decline")], ["Cancel", "", dismiss("cancel")]] : [];
  let foot = null;
  if (open && mine) foot = actions([["Answer", "primary", () => can.answer(view)], ...instead], memory);
  else if (open) foot = h("p", { className: "muted" }, `Waiting for ${view.requester}.`);
  else if (view.answer) foot = h("p", { className: "outcome" }, h("span", { className: "muted" }, `${view.requester}: `), view.answer);
  return card({
    kind: "clarification",
    tone: open ? "asking" : QUESTION_ENDS[view.status][0],
    sign: ICONS.question,
    label: view.server ? `From the tool server ${view.server}` : open ? "A question" : "Question",
    heading: h("div", { className: "question" }, view.server ? h("p", { className: "plain", dir: "auto" }, view.question) : markdown(view.question)),
    side: open ? null : chip(...QUESTION_ENDS[view.status]),
    body: [throughProgram(view.requester, view), view.about ? h("p", { className: "muted", dir: "auto" }, view.about) : null, view.context ? h("div", { className: "context" }, markdown(view.context)) : null, foot, open ? null : lateAnswer(memory)],
  });
}

const OUTCOME_ENDS = {
  it_was_done: ["good", "It was done"],
  try_again: ["quiet", "Tried again"],
  skip: ["quiet", "Skipped"],
  superseded: ["quiet", "Superseded"],
};

/** Only a person can say what came of an attempt whose outcome is unknown. */
export function outcomeCard(view, { can, memory }) {
  const open = view.status === "open";
  const choose = (choice) => () => api.settleOutcome(view.id, choice);
  const list = callArguments(view, null, () => can.showAll(view.id, "outcomes"));
  const foot = open
    ? [
        h("p", {}, "Nobody knows what came of this: it may or may not have happened. Please look, and say which."),
        view.known ? h("p", { className: "muted" }, view.known) : null,
        list.node,
        h("p", { className: "muted" }, `${view.requester} can say.`),
        actions([["It was done", "primary", choose("it_was_done")], ["Try again", "", choose("try_again")], ["Skip", "", choose("skip")]], memory),
      ]
    : [
        lateAnswer(memory),
        h("p", { className: "outcome" }, view.settled_by ? `${OUTCOME_ENDS[view.status][1]}, says ${view.settled_by}` : OUTCOME_ENDS[view.status][1]),
        h("details", { className: "more" }, h("summary", {}, "What was tried"), list.node),
      ];
  return card({
    kind: "outcome",
    tone: open ? "waiting" : OUTCOME_ENDS[view.status][0],
    sign: ICONS.warning,
    label: "Outcome unknown",
    heading: what(view),
    side: open ? null : chip(...OUTCOME_ENDS[view.status]),
    body: [throughProgram(view.requester, view), ...foot],
  });
}
