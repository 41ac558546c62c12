// Everything that needs this person: requests they may decide, questions to them, and what they wait for themselves; and
// what they have decided lately.

import { api } from "./api.js";
import { approvalCard } from "./approval_card.js";
import { deciders, requestedBy } from "./card_parts.js";
import * as deciding from "./deciding.js";
import { focusCard } from "./dialogs.js";
import { byId, h, icon, ICONS } from "./dom.js";
import { n, parts, t } from "./language.js";
import { clarificationCard, outcomeCard } from "./other_cards.js";
import { settings } from "./settings.js";
import { signInCard } from "./sign_in_card.js";
import { addressOf } from "./sidebar.js";

const CARDS = { approval: approvalCard, clarification: clarificationCard, sign_in: signInCard, outcome: outcomeCard };

/** The address of the inbox within the page. */
export const INBOX = "#inbox";

/** What waits, as the server said it last. */
export class Inbox {
  #waiting = { asked: [], more_asked: 0, through_programs: [], for_others: [] };
  #threads = [];
  #decided = [];
  // How often another person has come.
  #person = 0;
  #shown = "";
  #drawn = new Map();
  #memory = new Map();
  #known = null;

  /** How many things need this person, in all conversations. */
  get count() {
    const { asked, more_asked: more, through_programs: programs } = this.#waiting;
    return asked.length + more + programs.length + this.#threads.reduce((sum, thread) => sum + thread.questions, 0);
  }

  /** How many need them in one conversation. */
  countIn(thread) {
    return thread.questions + this.#waiting.asked.filter((each) => each.thread_id === thread.thread_id).length;
  }

  /** Take in what the server says. Somebody who looks elsewhere is told of what is new, where they want that. */
  take({ threads, ...waiting }) {
    // What one's own agents asked for and others decide is no question.
    const [waits, questions] = [true, false].map((is) => waiting.through_programs.filter(({ card }) => (card.kind === "approval") === is));
    this.#waiting = { ...waiting, through_programs: questions, for_others: [...waiting.for_others, ...waits] };
    this.#threads = threads;
    const fresh = this.#known ? waiting.asked.filter(({ id }) => !this.#known.has(id)) : [];
    this.#known = new Set(waiting.asked.map(({ id }) => id));
    // What a click got is not about a request that came after it.
    if (fresh.length) byId("inbox-answer").textContent = "";
    if (document.hidden && settings.notifies()) fresh.forEach(notify);
  }

  /** Read what they have decided lately. What was read before stays where the server cannot be reached. */
  async readDecided() {
    const person = this.#person;
    const { decided } = await api.decided().catch(() => ({ decided: this.#decided }));
    if (person === this.#person) this.#decided = decided;
  }

  /** Another person is here: nothing is known of what they have seen. */
  forget() {
    this.#known = null;
    this.#person += 1;
    this.#decided = [];
    this.#shown = "";
    this.#drawn.clear();
    this.#memory.clear();
    byId("inbox-lists").replaceChildren();
    byId("inbox-answer").textContent = "";
  }

  /** Draw all of it; what stays the same keeps its element, so that focus and opened parts stay. */
  draw(around) {
    const { asked, more_asked: more, through_programs: programs, for_others: others } = this.#waiting;
    const shown = JSON.stringify([this.#waiting, this.#threads.filter((thread) => thread.questions), this.#decided, around.me]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = byId("inbox-lists").contains(document.activeElement) ? document.activeElement : null;
    const drawn = new Map();
    const keyed = (id, shown, make) => {
      const key = JSON.stringify([shown, around.me]);
      const known = this.#drawn.get(id);
      const element = known?.key === key ? known.element : make();
      drawn.set(id, { key, element });
      return element;
    };
    const decide = asked.map((each) => keyed(each.id, each, () => this.#request(each, around)));
    if (more) decide.push(h("li", { className: "muted" }, n("and {count} more", "and {count} more", more)));
    const questions = this.#threads.filter((thread) => thread.questions).map((thread) => keyed(`in:${thread.thread_id}`, thread, () => questionsIn(thread)));
    const answer = [...programs.map((each) => keyed(each.id, each, () => this.#question(each, around))), ...questions];
    const wait = others.map((each) => keyed(`waits:${each.id}`, each, () => this.#waits(each, around)));
    const decided = this.#decided.map((each) => keyed(`decided:${each.id}`, each, () => this.#settled(each, around)));
    this.#drawn = drawn;
    const place = byId("inbox-lists");
    place.replaceChildren(...[
      decide.length || answer.length ? null : caughtUp(),
      section(t("Needs your approval"), decide),
      section(t("Needs your answer"), answer),
      section(t("Waiting for others"), wait),
      section(t("You decided"), decided),
    ].filter(Boolean));
    if (focused && place.contains(focused)) focused.focus({ preventScroll: true });
    else if (focused) focusCard(null);
  }

  #request(each, around) {
    const { requester, client } = each.card;
    const asks = each.card.requester_id === around.me ? t("You need to confirm this") : t("{name} needs your approval", { name: requester });
    const through = client ? h("span", { className: "muted" }, " · ", parts("through {client}", { client: h("bdi", {}, client) })) : null;
    return h("li", { className: "inbox-item" }, h("p", { className: "inbox-line" }, h("span", {}, asks), through, this.#where(each)), this.#card(each, around, new Set([each.id])));
  }

  #question(each, around) {
    return h("li", { className: "inbox-item" }, h("p", { className: "inbox-line" }, asksYou(each.card)), this.#card(each, around, new Set()));
  }

  #waits(each, around) {
    const { card } = each;
    const summary = h("summary", {}, t("Waiting for {names}: {title}", { names: deciders(card, true), title: card.title }), card.client ? [" · ", parts("through {client}", { client: h("bdi", {}, card.client) })] : null);
    return h("li", { className: "inbox-item" }, h("details", {}, summary, h("p", { className: "inbox-line" }, this.#where(each)), this.#card(each, around, new Set())));
  }

  #settled(each, around) {
    const { card } = each;
    const asked = card.requester_id === around.me ? t("Requested by you") : requestedBy(card.requester, card.client);
    const ran = card.status === "approved" ? h("span", { className: "ran" }, whetherItRan(card)) : null;
    return h("li", { className: "inbox-item" }, h("p", { className: "inbox-line" }, h("span", {}, asked), ran, this.#where(each)), this.#card(each, around, new Set()));
  }

  #where(each) {
    if (each.is_opened) return h("a", { className: "inbox-open", href: addressOf(each.thread_id) }, t("Open conversation"));
    const platform = { slack: t("in Slack"), teams: t("in Teams") }[each.thread_id.split(":")[0]];
    return platform ? h("span", { className: "muted" }, platform) : null;
  }

  #card({ id, card }, { me, people }, decides) {
    const remember = (result) => {
      this.#memory.set(id, result);
      byId("inbox-answer").textContent = result.text;
    };
    return CARDS[card.kind](card, { me, people, can: deciding, decides, memory: { id, remembered: this.#memory.get(id), remember } });
  }
}

function section(title, items) {
  return items.length ? h("section", { className: "inbox-section" }, h("h2", {}, title), h("ul", { role: "list", "aria-label": title }, items)) : null;
}

function caughtUp() {
  return h("div", { className: "empty" }, icon(ICONS.check), h("p", { className: "empty-title" }, t("You’re all caught up")), h("p", { className: "muted" }, t("Requests from all conversations appear here.")));
}

/** What became of an approved request, in a word or two. */
function whetherItRan(card) {
  switch (card.result_tone) {
    case "success":
      return t("Ran");
    case "error":
      return t("Failed");
    case "warning":
      return t("Outcome unknown");
    default:
      return card.result || t("Not run yet");
  }
}

function questionsIn(thread) {
  const title = thread.title || t("New conversation");
  return h("li", { className: "inbox-item" }, h("a", { href: addressOf(thread.thread_id) }, n("{count} question in “{title}”", "{count} questions in “{title}”", thread.questions, { title })));
}

/** What waits for an answer in a call that one's own agent makes. */
function asksYou(card) {
  const client = h("bdi", {}, card.client);
  switch (card.kind) {
    case "clarification":
      return parts("{server} has a question about your request through {client}", { server: card.server, client });
    case "sign_in":
      return parts("{service} needs you to sign in for your request through {client}", { service: card.service || card.server, client });
    default:
      return parts("Did this go through? {title}, requested through {client}", { title: card.title, client });
  }
}

/** Without arguments: whoever stands beside the screen may read it too. */
function notify(each) {
  const words = each.card.tool.replace(/[_-]+/g, " ").trim();
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  try {
    const shown = new Notification(t("{name} needs your approval: {title}", { name: each.card.requester, title }), { tag: each.id, icon: "/static/icon.svg" });
    shown.onclick = () => {
      window.focus();
      location.hash = INBOX;
      shown.close();
    };
  } catch {
    // Some phones show notifications of installed pages only.
  }
}
