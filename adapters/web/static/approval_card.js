// The card of an approval: everything that a person needs to decide, and afterwards what was decided and came of it.

import { h, ICONS } from "./dom.js";
import { actions, argumentList, callArguments, card, chip, lateAnswer, requestedBy, risks, unseenText, what } from "./card_parts.js";
import { fromNow, short, time } from "./time.js";

const ENDS = {
  approved: ["good", "Approved"],
  rejected: ["bad", "Rejected"],
  expired: ["quiet", "Expired"],
  superseded: ["quiet", "Superseded"],
  withdrawn: ["quiet", "Withdrawn"],
  void: ["quiet", "No longer valid"],
};

/** An approved call that did not come to a good end. */
const CAME_OF_IT = { error: ["bad", "Approved, but failed"], warning: ["quiet", "Approved, outcome unknown"] };

/**
 * `view` is the server's; `me` is who one is, `people` who one can be; `can` has what the buttons do (`deciding.js`);
 * `decides` has the ids of those that one may decide;
 * `memory` keeps the answer to a click on it.
 */
export function approvalCard(view, { me, people, can, decides, memory }) {
  return view.status === "pending" ? pending(view, { me, people, can, decides, memory }) : settled(view, can, memory);
}

function pending(view, { me, people, can, decides, memory }) {
  const unseen = h("p", { className: "unseen" });
  const showHidden = (count) => {
    unseen.textContent = unseenText(view, count);
  };
  const list = argumentList(view.arguments, view.asked_arguments, (count) => showHidden(count), () => can.showAll(view.id));
  showHidden(list.hidden());
  const deciding = decides.has(view.id) ? [
    ["Approve", "approve", () => can.approve(view)],
    ["Reject", "danger", () => can.reject(view)],
    ...(view.editable ? [["Edit", "", () => can.edit(view)]] : []),
    ...(view.always_offered ? [["Always allow…", "", () => can.always(view)]] : []),
    ...(view.masks ? [["Look at what is hidden", "", () => can.look(view)]] : []),
    ...(view.handing_offered && people.length > 1
      ? [["Ask somebody else…", "", () => can.handOver(view, people.filter((person) => person.person_id !== me))]]
      : []),
  ] : [];
  const buttons = [
    ...deciding,
    ...(view.requester_id === me ? [["Withdraw", "", () => can.withdraw(view)]] : []),
  ];
  return card({
    kind: "approval",
    tone: "waiting",
    sign: ICONS.clock,
    label: "Needs approval",
    heading: what(view),
    side: risks(view.risk),
    body: [
      quote(view),
      list.node,
      h(
        "dl",
        { className: "facts" },
        fact(...askedBy(view), [" · ", time(view.asked_at, fromNow)]),
        fact("Who may decide", deciders(view)),
        view.handed_to.length ? fact("Also asked to decide", view.handed_to.join(", ")) : null,
        view.escalates_at === null ? null : fact("Others may decide too from", time(view.escalates_at, short)),
        view.expires_at === null ? null : fact("Until", [time(view.expires_at, short), h("span", { className: "muted" }, " (", time(view.expires_at, fromNow), ")")]),
      ),
      votes(view),
      actions(buttons, memory, unseen),
    ],
  });
}

function settled(view, can, memory) {
  const [tone, word] = view.status === "approved" ? (CAME_OF_IT[view.result_tone] ?? ENDS.approved) : ENDS[view.status];
  const list = callArguments(view, view.asked_arguments, () => can.showAll(view.id));
  const names = view.decided_by.join(", ");
  const ended = ENDS[view.status][1];
  const outcome = [names ? `${ended} by ${names}` : ended, view.decided_at === null ? null : [" · ", time(view.decided_at)]];
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
      h("details", { className: "more" }, h("summary", {}, view.asked_arguments ? "What was asked, and changed" : "What was asked"), quote(view), list.node,
        h("dl", { className: "facts" }, fact(...askedBy(view), [" · ", time(view.asked_at)]), fact("Rule", view.rule))),
    ],
  });
}

/** The words that ask for this very call, where the mode wants them. */
function quote(view) {
  return view.quote ? h("p", { className: "quote", dir: "auto" }, h("span", { className: "muted" }, `${view.requester} wrote: `), `“${view.quote}”`) : null;
}

function deciders(view) {
  const needed = [
    ...(view.quorum > 1 ? [`${view.quorum} must approve`] : []),
    ...(view.rejections > 1 ? [`${view.rejections} must reject`] : []),
  ];
  return needed.length ? `${view.may_decide} (${needed.join(", ")})` : view.may_decide;
}

function votes(view) {
  const counted = [
    ["approve", view.quorum, "approved"],
    ["reject", view.rejections, "rejected"],
  ].map(([verb, needed, word]) => [view.votes.filter((vote) => vote.verb === verb), needed, word]);
  const lines = counted.filter(([cast]) => cast.length).map(([cast, needed, word]) => `${cast.length} of ${needed} ${word}: ${cast.map((vote) => vote.name).join(", ")}`);
  return lines.length ? h("p", { className: "votes" }, lines.join(" · ")) : null;
}

function fact(name, ...value) {
  return h("div", { className: "fact" }, h("dt", {}, name), h("dd", {}, value));
}

/** Who asks; of another agent's call also through which program, in its own word for itself. */
function askedBy(view) {
  return [view.client ? "Requested by" : "Asked by", requestedBy(view.requester, view.client)];
}
