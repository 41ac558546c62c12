// What the cards have in common: what is to be done, its values, and the answer to a click.

import { freshId, h, icon, ICONS } from "./dom.js";
import { n, parts, t } from "./language.js";
import { menuButton } from "./menu.js";

/** What a call may do to the world, as a word with its weight; the server's own word where it is none of ours. */
function riskOf(word) {
  switch (word) {
    case "reads":
      return ["low", t("Reads data")];
    case "writes":
      return ["medium", t("Changes data")];
    case "destroys":
      return ["high", t("Deletes data")];
    case "overwrites":
      return ["medium", t("Overwrites data")];
    case "reaches outside":
      return ["medium", t("External")];
    default:
      return ["medium", word];
  }
}

/** Whether a call deletes: then it is asked once more. */
export const deletes = (view) => view.risk.includes("destroys");

/** "Create event: Standup", and below it server and tool as the operator calls them. */
export function what({ title, source }) {
  return h("div", { className: "what" }, h("p", { className: "what-title", dir: "auto" }, title), h("p", { className: "what-source" }, source));
}

/** Who may decide, for somebody to read who asked for it (`isMine`) or did not. */
export function deciders(view, isMine) {
  if (!view.anyone_else) return view.may_decide;
  return isMine ? t("someone other than you") : t("someone other than {name}", { name: view.requester });
}

/** Who asks, and through which program where another agent does (that is the program's own word for itself), or through
 *  which of our agents where it is not the default one. */
export function requestedBy(name, client, agent) {
  if (agent && !client) return t("Requested by {name}, through the {agent} agent", { name, agent });
  return client ? parts(t("Requested by {name} through {program}"), { name, program: h("bdi", {}, client) }) : t("Requested by {name}", { name });
}

/** The same as a line of a card; none where our default agent asks. */
export function throughProgram(name, { client, agent }) {
  return client || agent ? h("p", { className: "muted small" }, requestedBy(name, client, agent)) : null;
}

/** What a call may do to the world, each with a sign where it weighs more. */
export function risks(words) {
  return words.map((word) => {
    const [level, text] = riskOf(word);
    return h("span", { className: `risk ${level}` }, level === "high" ? icon(ICONS.warning) : null, text);
  });
}

/** Items on one line with dots in between; null is left out. */
export function dotted(className, items) {
  const shown = items.filter((item) => item !== null && item !== undefined && item !== "");
  return shown.length ? h("p", { className }, shown.map((item, index) => (index ? [h("span", { className: "dot-between" }, " · "), item] : item))) : null;
}

/** The line below a card's title: who asks, by which tool, and what that may do. */
export function contextLine(view) {
  return dotted("card-context", [requestedBy(view.requester, view.client, view.agent), view.source, ...risks(view.risk ?? [])]);
}

/** Why a request that was decided before is asked again. */
export function whyAgain(view) {
  return view.again ? h("p", { className: "again", dir: "auto" }, view.again) : null;
}

/** How things are and would be, side by side, as a tool that only reads says. */
export function preview(view) {
  const { preview: shown } = view;
  if (!shown) return null;
  if (shown.problem) return h("p", { className: "muted small" }, shown.problem);
  const cell = (text) => h("td", { dir: "auto" }, text || h("span", { className: "muted" }, "—"));
  const head = [h("td", {}), shown.has_before ? h("th", { scope: "col" }, t("Now")) : null, shown.has_after ? h("th", { scope: "col" }, t("After")) : null];
  const row = ({ label, before, after }) =>
    h("tr", { className: shown.has_after ? "changed" : null }, h("th", { scope: "row" }, label), shown.has_before ? cell(before) : null, shown.has_after ? cell(after) : null);
  return h(
    "div",
    { className: "preview" },
    shown.rows.length ? h("div", { className: "preview-table", tabIndex: 0 }, h("table", {}, h("caption", { className: "hidden-label" }, t("What would change")), h("thead", {}, h("tr", {}, head)), h("tbody", {}, shown.rows.map(row)))) : null,
    dotted("muted small", [shown.source, shown.hidden]),
  );
}

const same = (one, other) => (one?.value ?? one?.digest) === (other?.value ?? other?.digest) && (one?.raw ?? "") === (other?.raw ?? "");

/**
 * The values as a definition list, but the one that the title says already. `before` are those that were asked for, when
 * somebody changed them; with `fold`, what was not changed is behind a line that counts it. Has `node`, and `hidden()`:
 * how many characters are not shown now. `showAll()` opens what is too long for a card.
 */
export function argumentList(lines, before = null, onChange = () => {}, showAll = null, { fold = false } = {}) {
  const hidden = new Map();
  const old = new Map((before ?? []).map((line) => [line.name, line]));
  const total = () => [...hidden.values()].reduce((sum, count) => sum + count, 0);
  const rows = [];
  const inTitle = [];

  for (const line of lines) {
    const was = old.get(line.name);
    old.delete(line.name);
    const changed = before !== null && !same(was, line);
    const now = longText(line, hidden, () => onChange(total()), showAll);
    const value = changed && !line.change ? [was ? [struck(was), arrow()] : null, h("ins", {}, now)] : now;
    const made = row(line.name, changed && line.change ? h("ins", {}, line.change) : value, changed);
    rows.push(made);
    if (line.titled && !changed) inTitle.push(made);
  }
  for (const line of old.values()) rows.push(row(line.name, [struck(line), arrow(), h("span", { className: "muted" }, t("removed"))], true));
  if (!rows.length) rows.push(row(t("Values"), h("span", { className: "muted" }, t("none")), false));
  const list = (content) => h("dl", { className: "arguments" }, content);
  const changed = rows.filter((each) => each.classList.contains("changed"));
  const rest = rows.filter((each) => !changed.includes(each));
  if (!fold || !changed.length || !rest.length) {
    const shown = rows.filter((each) => !inTitle.includes(each));
    return { node: shown.length ? list(shown) : null, hidden: total };
  }
  const folded = h("details", { className: "unchanged" }, h("summary", {}, n("{count} unchanged", "{count} unchanged", rest.length)), list(rest));
  return { node: [list(changed), folded], hidden: total };
}

function row(name, value, changed) {
  return h("div", { className: changed ? "argument changed" : "argument" }, h("dt", {}, name), h("dd", { dir: "auto" }, value));
}

const arrow = () => h("span", { className: "arrow" }, " → ");

/** The same list with a line below it on what of the call is not shown letter by letter; `node` has both. */
export function callArguments(view, before = null, showAll = null, options = {}) {
  const unseen = h("p");
  const show = (count) => {
    showUnseen(unseen, view, count);
    unseen.hidden = !unseen.textContent;
  };
  const list = argumentList(view.arguments, before, show, showAll, options);
  show(list.hidden());
  return { node: [list.node, unseen] };
}

/** Say in `element` what of a call is not shown letter by letter; `count` characters of it for want of room. An id for
    which the card says what it stands for is no reason to warn. */
export function showUnseen(element, view, count) {
  element.className = view.warns || count ? "unseen" : "unseen quiet";
  element.textContent = unseenText(view, count);
}

function unseenText(view, count) {
  if (!count) return view.unseen;
  const fingerprint = view.fingerprint ? t("Fingerprint: {fingerprint}", { fingerprint: view.fingerprint }) : "";
  return [n("{count} character hidden.", "{count} characters hidden.", count), view.unseen || fingerprint].join(" ").trim();
}

/** What was asked before it was changed, with the count of what of it is left out. */
function struck(line) {
  return h("del", {}, line.hidden ? [line.shown, "… ", leftOut(line.hidden)] : line.shown || t("(empty)"));
}

function leftOut(count) {
  return n("({count} character hidden)", "({count} characters hidden)", count);
}

function showAllLabel(count) {
  return n("Show all ({count} character hidden)", "Show all ({count} characters hidden)", count);
}

function longText(line, hidden, onChange, showAll) {
  if (line.value === null) return elsewhere(line, hidden, showAll);
  // A text without characters; the server puts a text that reads so in quotes.
  if (!line.hidden) return [line.value || t("(empty)")];
  hidden.set(line.name, line.hidden);
  const id = freshId("value");
  const text = h("span", { id }, line.shown);
  const button = h("button", { type: "button", className: "link-button", "aria-expanded": "false", "aria-controls": id });
  const label = () => {
    const whole = !hidden.has(line.name);
    text.textContent = whole ? line.value : `${line.shown}…`;
    button.textContent = whole ? t("Show less") : showAllLabel(line.hidden);
    button.setAttribute("aria-expanded", String(whole));
    onChange();
  };
  button.onclick = () => {
    if (!hidden.delete(line.name)) hidden.set(line.name, line.hidden);
    label();
  };
  label();
  return [text, " ", button];
}

/** The beginning of what is too long for a card; `showAll()` opens the rest, where there is a place for it. */
function elsewhere(line, hidden, showAll) {
  hidden.set(line.name, line.hidden);
  const more = showAll ? h("button", { type: "button", className: "link-button", onclick: showAll }, showAllLabel(line.hidden)) : h("span", { className: "muted" }, leftOut(line.hidden));
  return [h("span", {}, `${line.shown}…`), " ", more];
}

const CHIP_ICONS = { good: ICONS.check, bad: ICONS.cross, waiting: ICONS.clock, quiet: ICONS.info };

/** A small label whose colour is never alone: it has a sign and a word. */
export function chip(tone, text) {
  return h("span", { className: `chip ${tone}` }, icon(CHIP_ICONS[tone]), text);
}

/**
 * A card: an article with a heading, so that it can be reached and named. `id` is that of what it is about; `keys` are
 * the letters that press the button of the same key while the card has the focus.
 */
export function card({ id, kind, tone, sign, heading, label = null, side = null, context = null, body, keys = "" }) {
  const headingId = freshId("card");
  const element = h(
    "article",
    { className: `card ${kind} ${tone}`, "aria-labelledby": headingId, tabIndex: keys ? 0 : -1, "aria-keyshortcuts": keys || null, dataset: { card: id } },
    h(
      "header",
      { className: "card-head" },
      h("span", { className: "card-sign" }, icon(sign)),
      h("div", { className: "card-heading" }, label ? h("p", { className: "card-kind" }, label) : null, h("h3", { className: "card-title", id: headingId, dir: "auto" }, heading), context),
      side,
    ),
    h("div", { className: "card-body" }, body),
  );
  if (keys) element.onkeydown = pressByKey;
  return element;
}

function pressByKey(event) {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.key.length !== 1) return;
  const button = event.currentTarget.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
}

/**
 * The line where the answer to a click on a card appears, for the person who clicked alone. A card may be drawn again
 * between click and answer, so the answer is kept in `memory` and shown by whatever card is there when it comes.
 */
export function answerLine(memory) {
  const text = memory.remembered?.text ?? "";
  return h("p", { className: "click-answer", role: "status", dataset: { answerFor: memory.id } }, text);
}

/** Show the answer to a click on the card it belongs to. */
export function showAnswer(memory, result) {
  memory.remember(result);
  for (const line of document.querySelectorAll("[data-answer-for]")) {
    // The card may have been drawn as settled before the click's own answer came: it says all of it already.
    const said = result.kind === "settled" && "late" in line.dataset;
    if (line.dataset.answerFor === memory.id && !said) line.textContent = result.text;
  }
}

/** On a card that is settled: the answer to one's own click, if somebody else was earlier. */
export function lateAnswer(memory) {
  if (memory.remembered?.kind === "settled") return null;
  const line = answerLine(memory);
  line.dataset.late = "";
  return line;
}

/**
 * A row of buttons and the answer line. `buttons` are `[name, tone, act, key]`; `more` are those of the menu behind
 * them; `before` stands above the row and `text` in it. `act()` resolves to the server's result of the click (`kind`,
 * `text`), or to null when nothing was clicked after all, or throws an error with a sentence.
 */
export function actions(buttons, memory, { before = null, more = [], text = null } = {}) {
  const row = buttons.map(([name, tone, act, key]) => h("button", { type: "button", className: `button ${tone}`, dataset: key ? { key } : {}, onclick: (event) => click(act, event.currentTarget) }, name));
  const menu = more.length ? menuButton(more.map(([name, tone, act]) => [name, tone, () => click(act, null)])) : null;
  const all = [...row, ...(menu ? [menu.querySelector("button")] : [])];
  let busy = false;
  // Not `disabled`: that would take the focus away from the button, and it has to come back there after a dialog.
  const setBusy = (is, pressed) => {
    busy = is;
    for (const button of all) {
      if (is) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    if (is) pressed?.setAttribute("aria-busy", "true");
    else pressed?.removeAttribute("aria-busy");
  };

  async function click(act, pressed) {
    if (busy) return;
    setBusy(true, pressed);
    try {
      const result = await act();
      if (result) showAnswer(memory, result);
    } catch (problem) {
      showAnswer(memory, { kind: problem.body?.kind ?? "error", text: problem.message });
    } finally {
      setBusy(false, pressed);
    }
  }

  const shown = row.length || menu || text ? h("div", { className: "buttons" }, text ? h("p", { className: "waiting-for" }, text) : null, row, menu) : null;
  return h("div", { className: "card-actions" }, before, shown, answerLine(memory));
}
