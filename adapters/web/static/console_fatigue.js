// What people are asked about, what became of it, and which rules that history speaks for.

import { operators } from "./api.js";
import { chip, risks } from "./card_parts.js";
import { consoleAddress } from "./console_address.js";
import { count, counting, dayOf, daysChoice, decidesChip, draft, fact, heading, json, nothing, outcomeWord, section, table, toolName, turnLink, verdictWord } from "./console_parts.js";
import { copyButton } from "./copying.js";
import { h } from "./dom.js";
import { n, parts, t } from "./language.js";
import { duration, fromNow, short, time } from "./time.js";

export async function fatigue({ query, again }) {
  const [found, suggested] = await Promise.all([operators.fatigue(query.days), operators.suggestions()]);
  return [
    heading(t("Fatigue"), { about: t("What people are asked about, and what became of it. Who always approves stops reading."), again }),
    section(t("Asked since {day}", { day: dayOf(found.since) }), daysChoice("fatigue", query), counting(found.counted), found.lines.length ? lines(found) : nothing(t("Nobody was asked.")), found.more ? h("p", { className: "small muted" }, t("Only those asked most are listed.")) : null),
    section(t("Suggested rules"), state(suggested), suggested.suggestions.map(suggestion)),
  ];
}

function lines(found) {
  const number = (value) => h("span", { className: value ? "" : "muted" }, count(value));
  return table(
    t("What people are asked about"),
    [{ name: t("Tool"), kind: "wide" }, { name: t("Because of"), kind: "wide" }, { name: t("Asked"), kind: "number" }, { name: t("Unchanged"), kind: "number" }, { name: t("Edited"), kind: "number" }, { name: t("Rejected"), kind: "number" }, { name: t("Expired"), kind: "number" }, { name: t("Median wait"), kind: "number" }],
    found.lines.map((line) => [
      [h("p", { className: "cell-title" }, toolName(line.server, line.tool)), candidate(line.candidate)],
      because(line),
      number(line.asked),
      number(line.unchanged),
      number(line.edited),
      [number(line.rejected), line.contested ? h("p", { className: "small muted" }, n("{count} more against a vote", "{count} more against votes", line.contested)) : null],
      number(line.expired),
      line.median_wait === null ? "—" : duration(line.median_wait),
    ]),
  );
}

function because(line) {
  const words = { none: () => t("no rule fitted"), server: () => t("the server wants it"), agent: () => t("the agent’s limits") };
  return words[line.decided_by] ? h("span", { className: "muted" }, words[line.decided_by]()) : h("a", { href: consoleAddress("audit", { rule: line.rule, tool: line.tool }), dir: "auto" }, line.rule);
}

/** What people have said, and no more: what deletes, or wants a second person, is always approved as well. */
function candidate(is) {
  if (is === "allow") return chip("waiting", t("Always approved"));
  if (is === "deny") return chip("bad", t("Always rejected"));
  return null;
}

// ------------------------------------------------------------------------------------------------ suggestions

function state(suggested) {
  const about = suggested.calls ? n("Made from {count} call.", "Made from {count} calls.", suggested.calls) : null;
  const when = suggested.computed_at === null ? null : parts("Computed {time}.", { time: time(suggested.computed_at, fromNow) });
  if (suggested.state === "counting") return h("p", { className: "muted", role: "status" }, t("The audit log is still being counted. Look again in a minute."));
  if (suggested.state === "computing" && !suggested.suggestions.length) return h("p", { className: "muted", role: "status" }, t("Being computed. Look again in a few seconds."));
  return h("p", { className: "muted small" }, suggested.suggestions.length ? null : [t("History speaks for no other rule."), " "], about, " ", when);
}

function suggestion(each) {
  const { proof } = each;
  const goes = each.before ? t("It goes before “{rule}”.", { rule: each.before }) : t("It goes at the end of the file.");
  const replay = () => {
    draft.give(each.policy);
    location.hash = consoleAddress("policy");
  };
  return h(
    "article",
    { className: "suggestion" },
    h("h4", { dir: "auto" }, each.name),
    h("p", { className: "turn-line" }, decidesChip(each.kind), chip(each.looser ? "waiting" : "quiet", each.looser ? t("Looser") : t("Stricter")), toolName(each.server, each.tool), risks(each.risks)),
    h("p", { dir: "auto" }, each.because),
    each.open_arguments?.length ? h("p", { className: "small muted" }, t("It does not limit: {names}", { names: each.open_arguments.join(", ") })) : null,
    h("dl", { className: "facts" },
      fact(t("Calls judged once more"), count(proof.calls)),
      fact(t("Decided differently"), proof.changes.map(({ before, after, calls }) => h("p", {}, t("{count}: {before} → {after}", { count: count(calls), before: verdictWord(before), after: verdictWord(after) })))),
      fact(t("Requested by"), n("{count} person", "{count} people", proof.requesters)),
      fact(t("Between"), time(Date.parse(proof.first) / 1000, short), " – ", time(Date.parse(proof.last) / 1000, short)),
    ),
    json(each.rule),
    h("p", { className: "muted small", dir: "auto" }, goes),
    h("details", {}, h("summary", {}, n("{count} of these calls", "{count} of these calls", proof.examples.length)), h("ul", { className: "examples" }, proof.examples.map((call) => h("li", {}, call.turn ? turnLink(call.turn, time(Date.parse(call.at) / 1000, short)) : time(Date.parse(call.at) / 1000, short), " · ", h("bdi", {}, call.requester), " · ", outcomeWord(call.outcome), " ", h("span", { className: "mono" }, call.input))))),
    h("div", { className: "buttons" }, copyButton(() => each.rule, t("Copy the rule")), h("button", { type: "button", className: "button small", onclick: replay }, t("Replay the changed file"))),
  );
}
