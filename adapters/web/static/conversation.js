// The conversation in the middle: draws entries and drafts, and keeps the reader's place and focus.

import { showAnswer } from "./card_parts.js";
import { byId, h } from "./dom.js";
import { draftView, entryView, runningView } from "./entry_views.js";
import { t } from "./language.js";

const NEAR = 120;
const examples = () => [
  t("What is on my calendar?"),
  t("Create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm"),
  t("Add a task to buy milk"),
  t("Schedule something"),
];

/** Draws into the page. `say(text)` sends an example. */
export class Conversation {
  #log = byId("log");
  #drafts = byId("drafts");
  #scroller = byId("scroller");
  #toBottom = byId("to-bottom");
  #drawn = new Map();
  #memory = new Map();
  #atEnd = true;
  #running = h("div", { className: "log activity-now" });

  #say;

  constructor(say) {
    this.#say = say;
    byId("welcome").append(
      h("h2", {}, t("What can I do for you?")),
      h("p", { className: "muted" }, t("I look things up freely. Changes need approval.")),
      h("ul", { className: "examples" }, examples().map((text) => h("li", {}, h("button", { type: "button", className: "example", onclick: () => say(text) }, text)))),
    );
    this.#drafts.before(this.#running);
    this.#toBottom.onclick = () => this.toBottom();
    this.#scroller.onscroll = () => {
      this.#atEnd = this.#isNearEnd();
      if (this.#atEnd) this.#toBottom.hidden = true;
    };
    // Whoever reads the end goes on reading it when "Approve all" or a second line of input takes room away.
    new ResizeObserver(() => this.#atEnd && this.toBottom()).observe(this.#scroller);
  }

  /** Start again, for another thread or another person. */
  clear() {
    this.#drawn.clear();
    this.#memory.clear();
    this.#log.replaceChildren();
    this.#drafts.replaceChildren();
    this.#running.replaceChildren();
    this.#toBottom.hidden = true;
  }

  /** Draw the entries; only those that changed get a new element. */
  draw(entries, around) {
    const stay = this.#isNearEnd();
    const seen = new Set();
    const broken = this.#brokenOff(entries, around.me);
    const replies = new Set(entries.filter((entry) => entry.kind === "message").map(({ author_id: author, text }) => `${author}:${text.trim()}`));
    let previous = null;
    let added = false;
    for (const entry of entries) {
      seen.add(entry.id);
      const known = this.#drawn.get(entry.id);
      let element = known?.element;
      const decides = around.decides.has(entry.content?.id);
      const again = broken?.id === entry.id ? broken.again : null;
      const isReplied = entry.content?.kind === "clarification" && replies.has(`${entry.content.requester_id}:${entry.content.answer.trim()}`);
      if (known?.entry !== entry || known.decides !== decides || known.isReplied !== isReplied || Boolean(known.again) !== Boolean(again)) {
        element = entryView(entry, { ...around, again, isReplied, memoryOf: (id) => this.#memoryOf(id) });
        if (known) replaceKeepingFocus(known.element, element);
        else added = true;
        this.#drawn.set(entry.id, { entry, element, decides, isReplied, again });
      }
      const place = previous ? previous.nextSibling : this.#log.firstChild;
      if (element !== place) this.#log.insertBefore(element, place);
      previous = element;
    }
    for (const [id, { element }] of this.#drawn) {
      if (seen.has(id)) continue;
      element.remove();
      this.#drawn.delete(id);
    }
    this.#settleScroll(stay, added);
  }

  /** The error with which the conversation ends, and how to send again what it ended; null where there is none. */
  #brokenOff(entries, me) {
    const last = entries.at(-1);
    if (last?.content?.kind !== "notice" || last.content.tone !== "error") return null;
    const asked = entries.findLast((entry) => entry.kind === "message");
    return asked?.author_id === me ? { id: last.id, again: () => this.#say(asked.text) } : null;
  }

  /** Draw what is being written. */
  drawDrafts(drafts) {
    const stay = this.#isNearEnd();
    this.#drafts.replaceChildren(...drafts.map(draftView));
    this.#settleScroll(stay, false);
  }

  /** Draw the calls that the turn makes now; none: it is at rest. */
  drawRunning(calls) {
    const stay = this.#isNearEnd();
    const wasOpen = this.#running.querySelector("details")?.open ?? false;
    this.#running.replaceChildren(...(calls.length ? [runningView(calls)] : []));
    const details = this.#running.querySelector("details");
    if (details) details.open = wasOpen;
    this.#settleScroll(stay, false);
  }

  /** Show the answer to a click on the card of that id. */
  answer(id, result) {
    showAnswer(this.#memoryOf(id), result);
  }

  /** While a whole thread is drawn, a screen reader does not read it out. */
  loading(is) {
    this.#log.setAttribute("aria-busy", String(is));
  }

  /** Instead of a conversation that cannot be read now; empty: it can. `startNew()` is offered where it never can. */
  unreachable(text, startNew = null) {
    byId("unreachable").textContent = text;
    byId("unreachable").hidden = !text;
    byId("start-elsewhere").hidden = !startNew;
    byId("start-elsewhere").onclick = startNew;
  }

  /** Show the examples, or not. */
  welcome(shown) {
    if (shown && byId("welcome").hidden) this.#scroller.scrollTop = 0;
    byId("welcome").hidden = !shown;
  }

  toBottom() {
    if (!byId("welcome").hidden) return; // it is read from its beginning
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#toBottom.hidden = true;
  }

  #isNearEnd() {
    return this.#scroller.scrollHeight - this.#scroller.scrollTop - this.#scroller.clientHeight < NEAR;
  }

  #settleScroll(stay, added) {
    if (stay) this.toBottom();
    else if (added) this.#toBottom.hidden = false;
  }

  #memoryOf(id) {
    return { id, remembered: this.#memory.get(id), remember: (result) => this.#memory.set(id, result) };
  }
}

/** A card that is drawn again keeps the focus: on the same button if it is still there, else on the card. */
function replaceKeepingFocus(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && nameOf(focused);
  const opened = foldsOf(old);
  const unfolded = focused?.tagName === "SUMMARY" && [...opened].find(([, details]) => details === focused.parentElement)?.[0];
  old.replaceWith(fresh);
  const folds = foldsOf(fresh);
  for (const [fold, details] of folds) details.open = opened.get(fold)?.open ?? false;
  if (!focused) return;
  const same = focused.tagName === "BUTTON" ? [...fresh.querySelectorAll("button")].find((button) => nameOf(button) === name && button.checkVisibility()) : folds.get(unfolded)?.querySelector("summary");
  (same || fresh.querySelector("article") || fresh).focus?.({ preventScroll: true });
}

/** What can be folded in an element, by its name, or its place where it has none. */
const foldsOf = (element) => new Map([...element.querySelectorAll("details")].map((details, index) => [details.dataset.fold ?? index, details]));
const nameOf = (element) => element.ariaLabel || element.textContent;
