// The card of a request: everything that a person needs to decide, and afterwards two lines on what was decided and came
// of it, with the rest behind "Details".

import { actions, argumentList, callArguments, card, contextLine, deciders, dotted, lateAnswer, preview, showUnseen, whyAgain } from "./card_parts.js";
import { turnOfCard } from "./console_address.js";
import { h, ICONS } from "./dom.js";
import { n, parts, t } from "./language.js";
import { fromNow, short, time } from "./time.js";

/**
 * `view` is the server's; `me` is who one is; `can` has what the buttons do (`deciding.js`);
 * `decides` has the ids of those that one may decide; `memory` keeps the answer to a click on it.
 */
export function approvalCard(view, { me, can, decides, memory }) {
  const isMine = view.requester_id === me;
  return view.status === "pending" ? pending(view, { isMine, can, decides: decides.has(view.id), memory }) : settled(view, { isMine, can, memory });
}

// ------------------------------------------------------------------------------------------------ waiting

function pending(view, { isMine, can, decides, memory }) {
  const unseen = h("p");
  const showHidden = (count) => showUnseen(unseen, view, count);
  const showAll = () => can.showRequest(view, { decides });
  const list = argumentList(view.arguments, view.asked_arguments, showHidden, showAll);
  showHidden(list.hidden());
  const main = decides
    ? [
        [t("Approve"), "approve", () => can.approve(view), "a"],
        [t("Reject…"), "", () => can.reject(view), "r"],
        ...(view.editable ? [[t("Edit…"), "", () => can.edit(view), "e"]] : []),
      ]
    : [];
  const more = [
    [t("Show all"), "", showAll],
    ...(decides && view.always_offered ? [[t("Allow for a while…"), "", () => can.always(view)]] : []),
    ...((decides || isMine) && view.handing_offered ? [[t("Ask someone else…"), "", () => can.handOver(view)]] : []),
    ...(decides && view.masks ? [[t("Look at hidden values…"), "", () => can.look(view)]] : []),
    ...(isMine ? [[t("Withdraw…"), "", () => can.withdraw(view)]] : []),
  ];
  return card({
    id: view.id,
    kind: "approval",
    tone: "waiting",
    sign: ICONS.clock,
    heading: view.title,
    context: contextLine(view),
    keys: decides ? (view.editable ? "a r e" : "a r") : "",
    body: [
      whyAgain(view),
      quote(view),
      preview(view),
      list.node,
      view.edited_by ? h("p", { className: "edited-by" }, t("Edited by {name}", { name: view.edited_by })) : null,
      deadlines(view, decides),
      votes(view),
      actions(main, memory, { before: unseen, more, text: decides ? null : t("Waiting for {name}", { name: deciders(view, isMine) }) }),
    ],
  });
}

/** "Approver: Ana · Expires in 23 hours (tomorrow, 14:08)". Whoever does not decide reads who does beside the menu. */
function deadlines(view, decides) {
  const moment = (sentence, at) => parts(sentence, { distance: time(at, fromNow), time: time(at, short) });
  return dotted("deadlines", [
    decides ? t("Approver: {name}", { name: deciders(view, false) }) : null,
    view.quorum > 1 ? n("{count} approval needed", "{count} approvals needed", view.quorum) : null,
    view.rejections > 1 ? n("{count} rejection needed", "{count} rejections needed", view.rejections) : null,
    view.handed_to.length ? t("Also asked: {names}", { names: view.handed_to.join(", ") }) : null,
    view.escalates_at === null ? null : moment(t("Escalates {distance} ({time})"), view.escalates_at),
    view.expires_at === null ? null : moment(t("Expires {distance} ({time})"), view.expires_at),
  ]);
}

function votes(view) {
  const by = (verb) => view.votes.filter((vote) => vote.verb === verb).map((vote) => vote.name);
  const [approved, rejected] = [by("approve"), by("reject")];
  return dotted("votes", [
    approved.length ? t("{count} of {needed} approved: {names}", { count: approved.length, needed: view.quorum, names: approved.join(", ") }) : null,
    rejected.length ? t("{count} of {needed} rejected: {names}", { count: rejected.length, needed: view.rejections, names: rejected.join(", ") }) : null,
  ]);
}

/** The words that ask for this very call, where the mode wants them. */
function quote(view) {
  return view.quote ? h("p", { className: "quote", dir: "auto" }, parts(t("{name} wrote: “{words}”"), { name: view.requester, words: view.quote })) : null;
}

// ------------------------------------------------------------------------------------------------ settled

/** How it ended: tone, sign, and the sentence with the names of those who decided, or without. */
function ending(view) {
  const names = view.decided_by.join(", ");
  switch (view.status) {
    case "approved":
      return ["good", ICONS.check, t("Approved"), names && t("Approved by {names}", { names })];
    case "rejected":
      return ["bad", ICONS.cross, t("Rejected"), names && t("Rejected by {names}", { names })];
    case "expired":
      return ["quiet", ICONS.clock, t("Expired"), ""];
    case "superseded":
      return ["quiet", ICONS.info, t("Replaced"), ""];
    case "withdrawn":
      return ["quiet", ICONS.info, t("Withdrawn"), names && t("Withdrawn by {names}", { names })];
    default:
      return ["quiet", ICONS.info, t("Asked again"), ""];
  }
}

function settled(view, { isMine, can, memory }) {
  const ended = ending(view);
  const failed = view.status === "approved" && view.result_tone === "error";
  const unsure = view.status === "approved" && view.result_tone === "warning";
  const [tone, sign] = failed ? ["bad", ICONS.cross] : unsure ? ["quiet", ICONS.warning] : ended;
  const [, , word, byNames] = ended;
  // Of what is asked again, the result is why: a sentence that says how it ended as well.
  const saysWhy = view.status === "void" && view.result;
  const outcome = [saysWhy ? view.result : byNames || word, view.decided_at === null ? null : [saysWhy ? " · " : ", ", time(view.decided_at, short)]];
  const showResult = view.result && !saysWhy && (view.status !== "approved" || view.result_tone !== "success");
  const retry = failed && isMine && view.retry_offered ? [[t("Retry"), "", () => can.retry(view)]] : [];
  return card({
    id: view.id,
    kind: "approval settled",
    tone,
    sign,
    heading: view.when && !view.title.includes(view.when) ? [view.title, h("span", { className: "when" }, " · ", view.when)] : view.title,
    context: view.reason ? h("p", { className: "reason", dir: "auto" }, parts(t("Reason: {reason}"), { reason: view.reason })) : null,
    body: [
      showResult ? h("p", { className: `result ${view.result_tone}`, dir: "auto" }, view.result) : null,
      details(view, outcome, can),
      // What came of approving it stands above: the line below Retry is that button's alone.
      retry.length ? actions(retry, { ...memory, id: `${memory.id}:retry`, remembered: null }) : lateAnswer(memory),
    ],
  });
}

/** Its summary is the second line of the card: "Approved by Ana, 14:08 · Details". */
function details(view, outcome, can) {
  const list = callArguments(view, view.asked_arguments, () => can.showRequest(view, { decides: false }), { fold: true });
  return h(
    "details",
    { className: "more" },
    h("summary", {}, h("span", { className: "outcome" }, outcome), view.edited_by ? [" · ", t("Edited by {name}", { name: view.edited_by })] : null, h("span", { className: "details-word" }, " · ", h("span", { className: "link" }, t("Details")))),
    contextLine(view),
    quote(view),
    view.asked_arguments ? h("h4", {}, t("Request and edits")) : null,
    list.node,
    h(
      "dl",
      { className: "facts" },
      view.result && view.status !== "void" ? fact(t("Result"), view.result) : null,
      ...view.notes.map((note) => fact(t("Note from {name}", { name: note.name }), note.text)),
      fact(t("Requested"), time(view.asked_at, short)),
      view.decided_at === null ? null : fact(t("Settled"), time(view.decided_at, short)),
      view.votes.length > 1 ? fact(t("Votes"), view.votes.map((vote) => vote.name).join(", ")) : null,
      view.why ? fact(t("Why approval was needed"), view.why) : null,
    ),
    h("button", { type: "button", className: "link-button", onclick: () => can.showRequest(view, { decides: false }) }, t("Show all")),
    turnOfCard(view.id),
  );
}

function fact(name, ...value) {
  return h("div", { className: "fact" }, h("dt", {}, name), h("dd", { dir: "auto" }, value));
}
