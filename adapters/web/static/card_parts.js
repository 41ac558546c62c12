// What the cards have in common: what is to be called, its arguments, and the answer to a click.

import { freshId, h, icon, ICONS } from "./dom.js";

/** For a text without characters; the server puts a text that reads so in quotes. */
const EMPTY = "(empty)";

const RISKS = {
  reads: ["low", "Reads"],
  writes: ["medium", "Writes"],
  destroys: ["high", "Destroys"],
  "reaches outside": ["medium", "Reaches outside"],
};

/** "calendar · create_event", and then the server's own title, never alone. */
export function what({ server, tool, title }) {
  const name = h("span", { className: "what-name" }, h("b", {}, server), h("span", { className: "sep", "aria-hidden": "true" }, " › "), h("b", {}, tool));
  const own = title && title !== tool ? h("span", { className: "what-title" }, title) : null;
  return h("div", { className: "what" }, name, own);
}

/** Who asks, and through which program where another agent does: that is the program's own word for itself. */
export function requestedBy(name, client) {
  return client ? [name, ", through ", h("bdi", {}, client)] : name;
}

/** The same as a line of a card; none where our own agent asks. */
export function throughProgram(name, { client }) {
  return client ? h("p", { className: "muted" }, "Requested by ", requestedBy(name, client), ".") : null;
}

/** What a call may do to the world. */
export function risks(words) {
  return h("ul", { className: "risks", "aria-label": "Risk" }, words.map((word) => {
    const [level, text] = RISKS[word] ?? ["medium", word];
    return h("li", { className: `risk ${level}` }, text);
  }));
}

/**
 * The arguments as a definition list. `before` are those that were asked for, when somebody changed them.
 * Has `node`, and `hidden()`: how many characters are not shown now. `showAll()` opens what is too long for a card.
 */
export function argumentList(lines, before = null, onChange = () => {}, showAll = null) {
  const hidden = new Map();
  const old = new Map((before ?? []).map((line) => [line.name, line]));
  const list = h("dl", { className: "arguments" });
  const total = () => [...hidden.values()].reduce((sum, count) => sum + count, 0);

  for (const line of lines) {
    const was = old.get(line.name);
    old.delete(line.name);
    const changed = before !== null && (was?.value ?? was?.digest) !== (line.value ?? line.digest);
    const value = h("dd", { dir: "auto" }, changed && was ? [struck(was), " "] : null, changed ? h("ins", {}, longText(line, hidden, () => onChange(total()), showAll)) : longText(line, hidden, () => onChange(total()), showAll));
    list.append(h("div", { className: changed ? "argument changed" : "argument" }, h("dt", {}, line.name), value));
  }
  for (const line of old.values()) {
    list.append(h("div", { className: "argument changed" }, h("dt", {}, line.name), h("dd", { dir: "auto" }, struck(line))));
  }
  if (!lines.length && !old.size) list.append(h("div", { className: "argument" }, h("dt", {}, "Arguments"), h("dd", {}, "none")));
  return { node: list, hidden: total };
}

/** The same list with a line below it on what of the call is not shown letter by letter; `node` has both. */
export function callArguments(view, before = null, showAll = null) {
  const unseen = h("p", { className: "unseen" });
  const show = (count) => {
    unseen.textContent = unseenText(view, count);
    unseen.hidden = !unseen.textContent;
  };
  const list = argumentList(view.arguments, before, show, showAll);
  show(list.hidden());
  return { node: [list.node, unseen] };
}

/** What of a call is not shown letter by letter, as sentences; `count` characters of it for want of room. */
export function unseenText(view, count) {
  if (!count) return view.unseen;
  const fingerprint = view.fingerprint ? `Fingerprint of this call: ${view.fingerprint}.` : "";
  return `${count.toLocaleString("en")} characters are not shown above. ${view.unseen || fingerprint}`.trim();
}

/** What was asked before it was changed, with the count of what of it is left out. */
function struck(line) {
  return h("del", {}, line.hidden ? `${line.shown}… (${line.hidden.toLocaleString("en")} more characters)` : line.shown || EMPTY);
}

function longText(line, hidden, onChange, showAll) {
  if (line.value === null) return elsewhere(line, hidden, showAll);
  if (!line.hidden) return [line.value || EMPTY];
  hidden.set(line.name, line.hidden);
  const id = freshId("value");
  const text = h("span", { id }, line.shown);
  const button = h("button", { type: "button", className: "link-button", "aria-expanded": "false", "aria-controls": id });
  const label = () => {
    const whole = !hidden.has(line.name);
    text.textContent = whole ? line.value : `${line.shown}…`;
    button.textContent = whole ? "Show less" : `Show all (${line.hidden.toLocaleString("en")} more characters)`;
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
  const count = `${line.hidden.toLocaleString("en")} more characters`;
  const more = showAll ? h("button", { type: "button", className: "link-button", onclick: showAll }, `Show all (${count})`) : h("span", { className: "muted" }, `(${count})`);
  return [h("span", {}, `${line.shown}…`), " ", more];
}

const CHIP_ICONS = { good: ICONS.check, bad: ICONS.cross, waiting: ICONS.clock, quiet: ICONS.info };

/** A small label whose colour is never alone: it has a sign and a word. */
export function chip(tone, text) {
  return h("span", { className: `chip ${tone}` }, icon(CHIP_ICONS[tone]), text);
}

/** A card: an article with a heading, so that it can be reached and named. */
export function card({ kind, tone, sign, label, heading, side, body }) {
  const id = freshId("card");
  return h(
    "article",
    { className: `card ${kind} ${tone}`, "aria-labelledby": id, tabIndex: -1 },
    h(
      "header",
      { className: "card-head" },
      h("span", { className: "card-sign" }, icon(sign)),
      h("div", { className: "card-heading", id }, h("p", { className: "card-kind" }, label), heading),
      side,
    ),
    h("div", { className: "card-body" }, body),
  );
}

/**
 * The line where the answer to a click on a card appears, for the person who clicked alone. A card may be drawn anew
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
 * A row of buttons and the answer line. `buttons` are `[name, tone, act]`; `act()` resolves to the server's result
 * of the click (`kind`, `text`), or to null when nothing was clicked after all, or throws an error with a sentence.
 */
export function actions(buttons, memory, before = null) {
  const row = buttons.map(([name, tone, act]) => h("button", { type: "button", className: `button ${tone}`, onclick: () => click(act) }, name));
  let busy = false;
  // Not `disabled`: that would take the focus away from the button, and it has to come back there after a dialog.
  const setBusy = (is) => {
    busy = is;
    row.forEach((button) => (is ? button.setAttribute("aria-disabled", "true") : button.removeAttribute("aria-disabled")));
  };

  async function click(act) {
    if (busy) return;
    setBusy(true);
    try {
      const result = await act();
      if (result) showAnswer(memory, result);
    } catch (problem) {
      showAnswer(memory, { kind: problem.body?.kind ?? "error", text: problem.message });
    } finally {
      setBusy(false);
    }
  }

  return h("div", { className: "card-actions" }, before, h("div", { className: "buttons" }, row), answerLine(memory));
}
