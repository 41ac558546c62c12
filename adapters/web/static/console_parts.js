// What the parts of the console are made of.

import { chip } from "./card_parts.js";
import { consoleAddress } from "./console_address.js";
import { freshId, h } from "./dom.js";
import { n, spoken, t } from "./language.js";

/** The heading of a part, what it says of itself, and a button that reads it again. */
export function heading(title, { about = null, again = null } = {}) {
  const refresh = again ? h("button", { type: "button", className: "button small", onclick: again }, t("Refresh")) : null;
  return h("header", { className: "console-head" }, h("div", {}, h("h2", { tabIndex: -1, dir: "auto" }, title), about ? h("p", { className: "muted small" }, about) : null), refresh);
}

/** A part of a part. */
export function section(title, ...body) {
  const id = freshId("section");
  return h("section", { className: "console-section", "aria-labelledby": id }, h("h3", { id }, title), body);
}

export const ongoing = () => h("p", { className: "muted", role: "status" }, t("Loading…"));

/** What is said where the server does not answer as it should. */
export function problem(failure, again) {
  const isForbidden = failure.status === 403;
  const words = isForbidden ? t("Only operators can use the console.") : failure.status === 404 ? t("There’s nothing here.") : (failure.message ?? t("Something went wrong."));
  return h("div", { className: "console-problem", role: "alert" }, h("p", {}, words), isForbidden || failure.status === 404 ? null : h("button", { type: "button", className: "button small", onclick: again }, t("Try again")));
}

/** A sentence in the place of an empty list. */
export const nothing = (words) => h("p", { className: "muted console-nothing" }, words);

/**
 * A table, which is a list of blocks on narrow screens, where each value has the name of its column. `rows` are lists of
 * contents, one for each column; a column's `kind` is "number", "name" or "wide".
 */
export function table(label, columns, rows) {
  // Said once more by their roles: as blocks they would not be a table to a screen reader any more.
  const cell = (content, index) => h("td", { role: "cell", className: columns[index].kind ?? "", dataset: { column: columns[index].name } }, content);
  return h(
    "div",
    { className: "console-table", role: "group", "aria-label": label, tabIndex: 0 },
    h(
      "table",
      { role: "table", "aria-label": label },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map(({ name, kind }) => h("th", { role: "columnheader", scope: "col", className: kind ?? "" }, name)))),
      h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, row.map(cell)))),
    ),
  );
}

/** Does what a button is for, and nothing when it is pressed again meanwhile. */
export async function onceAtATime(button, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

/** A list that grows: `draw(items)` makes nodes, `read(next)` resolves to [items, next] of the next page. */
export function growing(first, next, draw, read) {
  const list = h("div", { className: "console-list" }, draw(first));
  const said = h("p", { className: "small", role: "status" });
  const button = h("button", { type: "button", className: "button small", hidden: !next }, t("Show more"));
  button.onclick = () =>
    onceAtATime(button, async () => {
      said.textContent = "";
      try {
        const [items, following] = await read(next);
        next = following;
        list.append(draw(items));
        button.hidden = !next;
      } catch (failure) {
        said.textContent = failure.message;
      }
    });
  return [list, button, said];
}

/** A form whose values are those of the address. `fields` are `[name, label, control]`; a control has a `value`. */
export function filters(part, query, fields) {
  const controls = fields.map(([name, label, control]) => {
    const id = freshId("filter");
    control.id = id;
    control.value = query[name] ?? "";
    return [name, control, h("div", { className: "filter" }, h("label", { for: id }, label), control)];
  });
  const form = h("form", { className: "console-filters", role: "search", "aria-label": t("Filters") }, controls.map(([, , node]) => node), h("div", { className: "filter-buttons" }, h("button", { className: "button primary", type: "submit" }, t("Search")), h("a", { className: "button", href: consoleAddress(part) }, t("Clear"))));
  form.onsubmit = (event) => {
    event.preventDefault();
    location.hash = consoleAddress(part, Object.fromEntries(controls.map(([name, control]) => [name, control.value.trim()])));
  };
  return form;
}

export const textBox = (props = {}) => h("input", { type: "text", maxLength: 200, autocomplete: "off", spellcheck: false, ...props });

export function choice(options) {
  return h("select", {}, options.map(([value, name]) => h("option", { value }, name)));
}

/** "calendar › create_event", as the operator calls them. */
export const toolName = (server, tool) => h("span", { className: "tool-name" }, h("bdi", {}, server), " › ", h("bdi", {}, tool));

/** A person, with their id for whoever needs it. */
export function personName(name, id) {
  return h("bdi", { title: id || null }, name || id);
}

export const turnLink = (id, ...words) => h("a", { href: consoleAddress("turn", {}, id) }, words);

export const count = (number) => number.toLocaleString(spoken());

/** A value as JSON, letter by letter. */
export const json = (value) => h("pre", { className: "console-code", dir: "ltr", tabIndex: 0 }, typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** What the policy says of a call, in a word. */
export function verdictWord(verdict) {
  switch (verdict) {
    case "allow":
      return t("Allowed");
    case "ask":
      return t("Asked");
    case "deny":
      return t("Denied");
    default:
      return t("Not judged");
  }
}

/** What a rule does. */
export function decidesChip(decides) {
  const words = { allow: ["good", t("Allows")], ask: ["waiting", t("Asks")], deny: ["bad", t("Denies")] };
  return chip(...(words[decides] ?? ["quiet", decides]));
}

export const verdictChip = (verdict) => chip({ allow: "good", ask: "waiting", deny: "bad" }[verdict] ?? "quiet", verdictWord(verdict));

/** How a call, a request or an attempt ended, in a word; the server's own where it is none of ours. */
export function outcomeWord(outcome) {
  const words = {
    pending: t("Waiting"),
    open: t("Waiting"),
    waiting: t("Waiting"),
    running: t("Running"),
    started: t("Running"),
    done: t("Done"),
    failed: t("Failed"),
    unknown: t("Outcome unknown"),
    nothing: t("Nothing done"),
    "not made": t("Not made"),
    denied: t("Denied"),
    approved: t("Approved"),
    rejected: t("Rejected"),
    expired: t("Expired"),
    superseded: t("Replaced"),
    void: t("Asked again"),
    withdrawn: t("Withdrawn"),
    limited: t("Over a limit"),
    skipped: t("Skipped"),
    looked: t("Looked at hidden values"),
    "looked up": t("Looked up for a card"),
    read: t("Looked at"),
    acted: t("Done by an operator"),
    answered: t("Answered"),
    unchanged: t("Approved unchanged"),
    edited: t("Approved with edits"),
    dismissed: t("Dismissed"),
    declined: t("Declined"),
    cancelled: t("Cancelled"),
    stopped: t("Stopped"),
    not_run: t("Not begun"),
    it_was_done: t("It was done"),
    try_again: t("Try again"),
    skip: t("Skip"),
  };
  return words[outcome] ?? outcome;
}

const TONES = { done: "good", approved: "good", answered: "good", failed: "bad", denied: "bad", rejected: "bad", unknown: "waiting", waiting: "waiting", running: "waiting", pending: "waiting" };

export const outcomeChip = (outcome) => chip(TONES[outcome] ?? "quiet", outcomeWord(outcome));

/** A name and its value, for a list of such. */
export function fact(name, ...value) {
  return h("div", { className: "fact" }, h("dt", {}, name), h("dd", {}, value));
}

/** A button that acts, and says below itself what came of it. `act()` resolves to a sentence. */
export function acting(name, act, { tone = "", small = true } = {}) {
  const said = h("span", { className: "small acted", role: "status" });
  const button = h("button", { type: "button", className: `button ${small ? "small" : ""} ${tone}` }, name);
  button.onclick = () =>
    onceAtATime(button, async () => {
      said.textContent = "";
      try {
        said.textContent = (await act()) ?? "";
      } catch (failure) {
        said.textContent = failure.message;
      }
    });
  return [button, said];
}

// ------------------------------------------------------------------------------------------------ of rules

/** How many days are counted: a choice that is in the address. */
export function daysChoice(part, query) {
  const id = freshId("days");
  const select = choice([7, 30, 90, 365].map((days) => [String(days), n("{count} day", "{count} days", days)]));
  select.id = id;
  select.value = query.days ?? "30";
  select.onchange = () => (location.hash = consoleAddress(part, { days: select.value }));
  return h("div", { className: "filter days" }, h("label", { for: id, className: "hidden-label" }, t("Counted")), select);
}

/** That older entries are still being counted. */
export const counting = (isDone) => (isDone ? null : h("p", { className: "small", role: "status" }, t("Older entries are still being counted. Look again in a minute.")));

/** A day of the calendar (UTC), "2026-11-28". */
export const dayOf = (day) => new Date(`${day}T00:00:00Z`).toLocaleDateString(spoken(), { timeZone: "UTC", day: "numeric", month: "short", year: "numeric" });

let kept = null;

/** A changed policy on its way from the suggestions to the replay. */
export const draft = {
  give: (text) => (kept = text),
  /** What was given, once; null: nothing. */
  take() {
    const text = kept;
    kept = null;
    return text;
  },
};
