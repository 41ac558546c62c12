// The cards of a question, of a sign-in, and of an attempt that broke off.

import { api } from "./api.js";
import { actions, argumentList, card, chip, lateAnswer, what } from "./card_parts.js";
import { h, ICONS } from "./dom.js";
import { markdown } from "./markdown.js";
import { anchor, webAddress } from "./markdown_inline.js";

/** `can.answer(view)` opens the form, or goes to the message box when the question has no fields. */
export function clarificationCard(view, { me, can, memory }) {
  const open = view.status === "open";
  const mine = view.requester_id === me;
  const ends = { answered: ["good", "Answered"], superseded: ["quiet", "Superseded"] };
  let foot = null;
  if (open && mine) foot = actions([["Answer", "primary", () => can.answer(view)]], memory);
  else if (open) foot = h("p", { className: "muted" }, `Waiting for ${view.requester}.`);
  else if (view.answer) foot = h("p", { className: "outcome" }, h("span", { className: "muted" }, `${view.requester}: `), view.answer);
  return card({
    kind: "clarification",
    tone: open ? "asking" : ends[view.status][0],
    sign: ICONS.question,
    label: open ? "A question" : "Question",
    heading: h("div", { className: "question" }, markdown(view.question)),
    side: open ? null : chip(...ends[view.status]),
    body: [view.context ? h("div", { className: "context" }, markdown(view.context)) : null, foot, open ? null : lateAnswer(memory)],
  });
}

const SIGN_IN_ENDS = {
  done: ["good", "Signed in"],
  declined: ["bad", "Not now"],
  expired: ["quiet", "Expired"],
  superseded: ["quiet", "Superseded"],
};

/** The link itself is fetched for its owner alone. */
export function signInCard(view, { me, memory }) {
  const open = view.status === "open";
  const mine = view.owner_id === me;
  let foot = null;
  if (open && mine) {
    const reply = (done) => () => api.signInReply(view.id, done);
    foot = [
      signInLink(view),
      actions([["I have signed in", "primary", reply(true)], ["Not now", "", reply(false)]], memory),
    ];
  } else if (open) foot = h("p", { className: "muted" }, `Waiting for ${view.owner} to sign in.`);
  return card({
    kind: "sign-in",
    tone: open ? "asking" : SIGN_IN_ENDS[view.status][0],
    sign: ICONS.key,
    label: "Sign-in needed",
    heading: h("div", { className: "what" }, h("span", { className: "what-name" }, h("b", {}, view.server))),
    side: open ? null : chip(...SIGN_IN_ENDS[view.status]),
    body: [view.message ? h("p", {}, view.message) : null, foot, open ? null : lateAnswer(memory)],
  });
}

function signInLink(view) {
  const place = h("p", { className: "sign-in-link" }, "Fetching your link…");
  api.signInLink(view.id).then(
    ({ url }) => {
      const address = webAddress(url);
      if (!address) place.textContent = "The link of this sign-in cannot be opened: it is no web address.";
      else place.replaceChildren(anchor(address, "Open the sign-in page", "Open the sign-in page"));
    },
    (problem) => (place.textContent = problem.message),
  );
  return place;
}

const OUTCOME_ENDS = {
  it_was_done: ["good", "It was done"],
  try_again: ["quiet", "Tried again"],
  skip: ["quiet", "Skipped"],
  superseded: ["quiet", "Superseded"],
};

/** Only a person can say what came of an attempt that broke off. */
export function outcomeCard(view, { memory }) {
  const open = view.status === "open";
  const choose = (choice) => () => api.settleOutcome(view.id, choice);
  const list = argumentList(view.arguments);
  const foot = open
    ? [
        h("p", {}, "The connection broke while this was running, so it may or may not have happened. Please look, and say which."),
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
    body: foot,
  });
}
