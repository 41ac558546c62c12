// One entry of a conversation → its element.

import { activityList } from "./activity.js";
import { usageButton } from "./usage.js";
import { approvalCard } from "./approval_card.js";
import { fileChip } from "./attachments.js";
import { citations } from "./citations.js";
import { copyButton } from "./copying.js";
import { h, icon, ICONS } from "./dom.js";
import { t } from "./language.js";
import { markdown } from "./markdown.js";
import { changeLine, clarificationCard, outcomeCard } from "./other_cards.js";
import { planCard } from "./plan_card.js";
import { signInCard } from "./sign_in_card.js";
import { time } from "./time.js";

const CARDS = { approval: approvalCard, clarification: clarificationCard, sign_in: signInCard, outcome: outcomeCard, change: changeLine, plan: planCard };
const NOTICE_ICONS = { info: ICONS.info, warning: ICONS.warning, error: ICONS.warning };

/**
 * The element of an entry. `around` has me, people, can, decides, memoryOf(id), retry(entry), which sends a message that
 * failed once more, and again(), which sends once more what an error has ended, where there is that.
 */
export function entryView(entry, around) {
  const element = entry.kind === "message" ? message(entry, around) : post(entry, around);
  element.dataset.entry = entry.id;
  return element;
}

function message(entry, { me, retry }) {
  const mine = entry.author_id === me;
  return h(
    "div",
    { className: mine ? "entry message mine" : "entry message" },
    h("p", { className: "by" }, h("b", {}, entry.author), " ", time(entry.at)),
    entry.text ? h("div", { className: "bubble", dir: "auto" }, entry.text) : null,
    entry.files?.length ? h("ul", { className: "files" }, entry.files.map((name) => fileChip(name))) : null,
    sendState(entry, retry),
    entry.failed || entry.sending ? null : tools(entry.text),
  );
}

function sendState(entry, retry) {
  if (entry.failed) {
    const again = h("button", { type: "button", className: "link-button", onclick: () => retry(entry) }, t("Try again"));
    return h("p", { className: "send-state failed", role: "alert" }, icon(ICONS.warning), h("span", {}, entry.failed, " ", again));
  }
  return entry.sending ? h("p", { className: "send-state muted" }, t("Sending…")) : null;
}

function post(entry, around) {
  const { content } = entry;
  const only = entry.private ? h("p", { className: "only-you" }, t("Only you can see this.")) : null;
  if (content.kind === "said") {
    const { cite, list } = citations(content.sources ?? []);
    return h(
      "div",
      { className: "entry said" },
      byBot(time(entry.at), content.agent),
      only,
      h("div", { className: "prose", dir: "auto" }, markdown(content.text, cite)),
      list,
      activityList(content.activity ?? [], content.more_activity ?? 0, { answer: content.final === false ? null : entry.id }),
      tools(content.text, content.final === false || content.activity?.length ? null : entry.id),
    );
  }
  if (content.kind === "notice") return notice(entry, only, around.again);
  return h("div", { className: "entry" }, only, CARDS[content.kind](content, { ...around, memory: around.memoryOf(content.id) }));
}

/** `again()`: sends once more what this error ended; null where there is nothing to send. */
function notice({ content }, only, again) {
  const words = { info: "", warning: t("Warning:"), error: t("Error:") }[content.tone];
  return h(
    "div",
    { className: `entry notice ${content.tone}` },
    icon(NOTICE_ICONS[content.tone]),
    h("div", {}, h("p", { dir: "auto" }, words ? [h("b", { className: "hidden-label" }, words), " "] : null, content.text), only),
    again ? h("button", { type: "button", className: "button small", onclick: again }, t("Retry")) : null,
  );
}

/** What one can do with a text: it is there when one points at it, or is in it with the keyboard. */
function tools(text, answer = null) {
  return h("div", { className: "entry-tools" }, copyButton(() => text, t("Copy message")), answer ? usageButton(answer) : null);
}

/** The element of an answer that is being written. */
export function draftView(draft) {
  const prose = h("div", { className: "prose writing", dir: "auto" }, markdown(draft.text));
  return h("div", { className: "entry said" }, byBot(null), prose);
}

/** The element of what a turn is doing while it runs. */
export function runningView(calls) {
  return h("div", { className: "entry running" }, activityList(calls, 0, { open: true }));
}

/** `agent`: name of the one that says it, where it is not the default one. */
function byBot(when, agent) {
  const name = agent ? t("{agent} agent", { agent }) : "Countersign";
  return h("p", { className: "by" }, h("b", {}, name), " ", when);
}
