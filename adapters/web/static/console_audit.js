// The audit log: searched, handed on, and verified.

import { operators } from "./api.js";
import { consoleAddress } from "./console_address.js";
import { choice, count, filters, growing, heading, json, nothing, outcomeChip, outcomeWord, section, table, textBox, toolName, turnLink, verdictChip } from "./console_parts.js";
import { openDialog } from "./dialogs.js";
import { freshId, h, icon, ICONS } from "./dom.js";
import { n, parts, t } from "./language.js";
import { momentOf, short, time } from "./time.js";

const OUTCOMES = ["done", "failed", "unknown", "denied", "rejected", "expired", "superseded", "withdrawn", "limited", "skipped", "looked", "looked up", "read", "acted"];

export async function audit({ query, again }) {
  const { since, until, ...rest } = query;
  const wanted = { ...rest, since: momentOf(since), until: momentOf(until) };
  const found = await operators.audit(wanted);
  const read = async (before) => {
    const more = await operators.audit({ ...wanted, before });
    return [more.entries, more.next];
  };
  return [
    heading(t("Audit log"), { about: t("Each call, each decision and each look of an operator, newest first."), again }),
    filters("audit", query, [
      ["person", t("Person"), textBox({ placeholder: "ana" })],
      ["server", t("Tool server"), textBox({ placeholder: "calendar" })],
      ["tool", t("Tool"), textBox({ placeholder: "create_event" })],
      ["rule", t("Rule"), textBox()],
      ["decision", t("Decision"), choice([["", t("Any")], ["allow", t("Allowed")], ["ask", t("Asked")], ["deny", t("Denied")]])],
      ["outcome", t("Outcome"), choice([["", t("Any")], ...OUTCOMES.map((each) => [each, outcomeWord(each)])])],
      ["since", t("From"), h("input", { type: "datetime-local" })],
      ["until", t("Until"), h("input", { type: "datetime-local" })],
    ]),
    found.whole ? null : h("p", { className: "small", role: "status" }, t("Older entries cannot be found yet. Look again in some minutes.")),
    h("div", { className: "bar" }, h("span", { className: "small muted" }, t("Export what is found:")), download(wanted, "jsonl", "JSON Lines"), download(wanted, "csv", "CSV")),
    found.entries.length || found.next ? growing(found.entries, found.next, entries, read) : nothing(t("Nothing found.")),
    section(t("Is the log as it was written?"), verification()),
  ];
}

const download = (wanted, format, name) => h("a", { className: "button small", href: operators.auditExport(wanted, format), download: `audit.${format}` }, name);

function entries(found) {
  return table(
    t("Entries"),
    [{ name: t("When") }, { name: t("What"), kind: "wide" }, { name: t("Person"), kind: "name" }, { name: t("Decision") }, { name: t("Outcome") }, { name: t("Entry") }],
    found.map((each) => {
      const more = h("button", { type: "button", className: "link-button", "aria-label": t("Entry {number}", { number: count(each.seq) }), onclick: () => showEntry(each) }, count(each.seq));
      if (each.entry === null) return ["", h("p", { className: "cause" }, t("This entry was changed and cannot be read.")), "", "", "", more];
      const { entry } = each;
      return [
        time(Date.parse(entry.at) / 1000, short),
        what(each),
        [h("bdi", {}, entry.call ? entry.settled?.by || entry.requester : entry.requester), entry.votes?.length ? h("p", { className: "muted small" }, entry.votes.map((vote) => (vote.verb === "approve" ? t("Approved by {names}", { names: vote.name || vote.person }) : t("Rejected by {names}", { names: vote.name || vote.person }))).join(" · ")) : null],
        entry.decision ? [verdictChip(entry.decision), h("p", { className: "small" }, h("a", { href: consoleAddress("audit", { rule: entry.rule }), dir: "auto" }, entry.rule))] : "",
        outcomeChip(entry.status),
        more,
      ];
    }),
  );
}

/** The call, or what an operator looked at or did. */
function what({ entry, turn }) {
  const title = entry.tool ? toolName(entry.server, entry.tool) : h("span", { dir: "auto" }, entry.settled?.choice || outcomeWord(entry.status));
  return [
    h("p", { className: "cell-title" }, turn ? turnLink(turn, title) : title),
    entry.input && entry.input !== "{}" ? h("p", { className: "mono clamped", dir: "ltr" }, entry.input) : null,
    entry.note ? h("p", { className: "muted small", dir: "auto" }, entry.note) : null,
    entry.why ? h("p", { className: "muted small", dir: "auto" }, entry.why) : null,
  ];
}

function showEntry({ seq, hash, entry, turn }) {
  return openDialog({
    title: t("Entry {number}", { number: count(seq) }),
    wide: true,
    body: [h("p", { className: "small" }, t("Hash"), " ", h("span", { className: "mono" }, hash)), turn ? h("p", {}, turnLink(turn, t("Open the turn"))) : null, entry === null ? h("p", { className: "cause" }, t("This entry was changed and cannot be read.")) : json(entry)],
  });
}

// ------------------------------------------------------------------------------------------------ verifying

function verification() {
  const id = freshId("anchor");
  const anchor = h("input", { id, type: "text", autocomplete: "off", spellcheck: false, maxLength: 100, placeholder: "123:4f2a…" });
  const bar = h("progress", { hidden: true, "aria-label": t("Verifying") });
  const said = h("div", { role: "status" });
  const button = h("button", { type: "submit", className: "button" }, t("Verify"));
  const form = h(
    "form",
    { className: "console-section" },
    h("p", { className: "muted small" }, t("Each entry has the hash of the one before. What was verified up to here has a number and a hash: keep them elsewhere, and give them the next time, so that a missing end is found too.")),
    h("div", { className: "bar" }, h("div", { className: "filter" }, h("label", { for: id }, t("Number and hash that you kept (optional)")), anchor), button),
    bar,
    said,
  );
  let stop = null;
  form.onsubmit = async (event) => {
    event.preventDefault();
    stop?.abort();
    const mine = (stop = new AbortController());
    bar.hidden = false;
    bar.removeAttribute("value");
    said.replaceChildren(h("p", {}, t("Verifying…")));
    let last = null;
    try {
      await operators.verifyAudit(anchor.value.trim(), (line) => {
        last = line;
        bar.max = line.of || 1;
        bar.value = line.checked;
      }, mine.signal);
      if (mine === stop) said.replaceChildren(...(last?.done ? outcome(last) : [h("p", { className: "cause" }, t("It was broken off."))]));
    } catch (problem) {
      if (mine === stop) said.replaceChildren(h("p", { className: "cause" }, problem.status === 422 ? t("This is not a number and a hash: “123:” and 64 letters and digits.") : problem.message));
    } finally {
      if (mine === stop) bar.hidden = true;
    }
  };
  return form;
}

function outcome({ checked, fault_count: faults, faults: listed, last }) {
  const isWhole = faults === 0;
  const keep = last ? h("p", { className: "small" }, parts("Keep: {anchor}", { anchor: h("span", { className: "mono" }, `${last.seq}:${last.hash}`) })) : null;
  return [
    h("p", { className: `verified ${isWhole ? "good" : "bad"}` }, icon(isWhole ? ICONS.check : ICONS.warning), h("span", {}, isWhole ? n("{count} entry, as it was written.", "{count} entries, all as they were written.", checked) : n("{count} fault in the log.", "{count} faults in the log.", faults))),
    keep,
    listed?.length ? table(t("Faults"), [{ name: t("Entry"), kind: "number" }, { name: t("Fault"), kind: "wide" }], listed.map((each) => [count(each.seq), h("span", { dir: "auto" }, each.what)])) : null,
  ].filter(Boolean);
}
