// The card of an approval: everything that a person needs to decide, and afterwards what was decided and came of it.

import { h, ICONS } from "./dom.js";
import { actions, argumentList, card, chip, lateAnswer, what } from "./card_parts.js";
import { fromNow, short, time } from "./time.js";

const RISKS = {
  reads: ["low", "Reads"],
  writes: ["medium", "Writes"],
  destroys: ["high", "Destroys"],
  "reaches outside": ["medium", "Reaches outside"],
};

const ENDS = {
  approved: ["good", "Approved"],
  rejected: ["bad", "Rejected"],
  expired: ["quiet", "Expired"],
  superseded: ["quiet", "Superseded"],
  withdrawn: ["quiet", "Withdrawn"],
  void: ["quiet", "No longer valid"],
};

/** `view` is the server's; `can` has approve(view), reject(view), edit(view); `memory` keeps the answer to a click on it. */
export function approvalCard(view, { can, memory }) {
  return view.status === "pending" ? pending(view, can, memory) : settled(view, memory);
}

function pending(view, can, memory) {
  const unseen = h("p", { className: "unseen" });
  const showHidden = (count) => {
    unseen.textContent = count ? `${count.toLocaleString("en")} characters are not shown above.` : "";
  };
  const list = argumentList(view.arguments, view.asked_arguments, (count) => showHidden(count));
  showHidden(list.hidden());
  const buttons = [
    ["Approve", "approve", () => can.approve(view)],
    ["Reject", "danger", () => can.reject(view)],
  ];
  if (view.editable) buttons.push(["Edit", "", () => can.edit(view)]);
  return card({
    kind: "approval",
    tone: "waiting",
    sign: ICONS.clock,
    label: "Needs approval",
    heading: what(view),
    side: risks(view.risk),
    body: [
      list.node,
      h(
        "dl",
        { className: "facts" },
        fact("Asked by", [view.requester, " · ", time(view.asked_at, fromNow)]),
        fact("Who may decide", deciders(view)),
        view.expires_at === null ? null : fact("Until", [time(view.expires_at, short), h("span", { className: "muted" }, " (", time(view.expires_at, fromNow), ")")]),
      ),
      votes(view),
      actions(buttons, memory, unseen),
    ],
  });
}

function settled(view, memory) {
  const [tone, word] = ENDS[view.status];
  const list = argumentList(view.arguments, view.asked_arguments);
  const names = view.decided_by.join(", ");
  const outcome = [names ? `${word} by ${names}` : word, view.decided_at === null ? null : [" · ", time(view.decided_at)]];
  return card({
    kind: "approval",
    tone,
    sign: tone === "good" ? ICONS.check : tone === "bad" ? ICONS.cross : ICONS.info,
    label: "Approval",
    heading: what(view),
    side: chip(tone, word),
    body: [
      h("p", { className: "outcome" }, outcome),
      view.reason ? h("p", { className: "reason" }, h("span", { className: "muted" }, "Reason: "), view.reason) : null,
      view.result ? h("p", { className: `result ${view.result_tone}` }, h("span", { className: "muted" }, "Result: "), view.result) : null,
      lateAnswer(memory),
      h("details", { className: "more" }, h("summary", {}, view.asked_arguments ? "What was asked, and changed" : "What was asked"), list.node,
        h("dl", { className: "facts" }, fact("Asked by", [view.requester, " · ", time(view.asked_at)]), fact("Rule", view.rule))),
    ],
  });
}

function risks(words) {
  return h("ul", { className: "risks", "aria-label": "Risk" }, words.map((word) => {
    const [level, text] = RISKS[word] ?? ["medium", word];
    return h("li", { className: `risk ${level}` }, text);
  }));
}

function deciders(view) {
  return view.quorum > 1 ? `${view.may_decide} (${view.quorum} must approve)` : view.may_decide;
}

function votes(view) {
  if (!view.votes.length) return null;
  const approvals = view.votes.filter((vote) => vote.verb === "approve");
  return h("p", { className: "votes" }, `${approvals.length} of ${view.quorum} approved: `, approvals.map((vote) => vote.name).join(", "));
}

function fact(name, value) {
  return h("div", { className: "fact" }, h("dt", {}, name), h("dd", {}, value));
}
