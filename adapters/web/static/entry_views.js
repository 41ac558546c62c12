// One entry of a conversation → its element.

import { approvalCard } from "./approval_card.js";
import { h, icon, ICONS } from "./dom.js";
import { markdown } from "./markdown.js";
import { clarificationCard, outcomeCard } from "./other_cards.js";
import { signInCard } from "./sign_in_card.js";
import { time } from "./time.js";

const CARDS = { approval: approvalCard, clarification: clarificationCard, sign_in: signInCard, outcome: outcomeCard };
const NOTICE_ICONS = { info: ICONS.info, warning: ICONS.warning, error: ICONS.warning };
const NOTICE_WORDS = { info: "", warning: "Warning: ", error: "Error: " };

/** The element of an entry. `around` has me, people, can, decides, memoryOf(id) and retry(entry). */
export function entryView(entry, around) {
  const element = entry.kind === "message" ? message(entry, around) : post(entry, around);
  element.dataset.entry = entry.id;
  return element;
}

function message(entry, { me, retry }) {
  const mine = entry.author_id === me;
  let state = null;
  if (entry.failed) {
    state = h("p", { className: "send-state failed", role: "alert" }, `${entry.failed} `,
      h("button", { type: "button", className: "link-button", onclick: () => retry(entry) }, "Try again"));
  } else if (entry.sending) state = h("p", { className: "send-state muted" }, "Sending…");
  return h(
    "div",
    { className: mine ? "entry message mine" : "entry message" },
    h("p", { className: "by" }, h("b", {}, entry.author), " ", time(entry.at)),
    h("div", { className: "bubble", dir: "auto" }, entry.text),
    state,
  );
}

function post(entry, { me, people, can, decides, memoryOf }) {
  const { content } = entry;
  const only = entry.private ? h("p", { className: "only-you" }, "Only you can see this.") : null;
  if (content.kind === "said") {
    return h("div", { className: "entry said" }, byBot(time(entry.at)), only, h("div", { className: "prose", dir: "auto" }, markdown(content.text)));
  }
  if (content.kind === "notice") {
    return h(
      "div",
      { className: `entry notice ${content.tone}` },
      icon(NOTICE_ICONS[content.tone]),
      h("div", {}, h("p", { dir: "auto" }, h("b", {}, NOTICE_WORDS[content.tone]), content.text), only),
    );
  }
  return h("div", { className: "entry" }, only, CARDS[content.kind](content, { me, people, can, decides, memory: memoryOf(content.id) }));
}

/** The element of an answer that is being written. */
export function draftView(draft) {
  const prose = h("div", { className: "prose writing", dir: "auto" }, markdown(draft.text));
  return h("div", { className: "entry said" }, byBot(null), prose);
}

function byBot(when) {
  return h("p", { className: "by" }, h("b", {}, "Countersign"), " ", when);
}
