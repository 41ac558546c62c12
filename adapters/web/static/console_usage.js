// What everybody has used of language models, and what that cost.

import { operators } from "./api.js";
import { consoleAddress } from "./console_address.js";
import { choice, count, dayOf, filters, heading, nothing, table } from "./console_parts.js";
import { h } from "./dom.js";
import { t } from "./language.js";
import { duration } from "./time.js";
import { costInWords } from "./usage.js";

export async function usage({ query, again }) {
  const wanted = { ...query, by: query.by ?? "day" };
  const found = await operators.usage(wanted);
  const dates = { since: h("input", { type: "date" }), until: h("input", { type: "date" }) };
  return [
    heading(t("Usage"), { about: t("What everybody has used of language models from {since} to {until}. Days end at midnight UTC.", { since: dayOf(found.since), until: dayOf(found.until) }), again }),
    filters("usage", wanted, [
      ["by", t("By"), choice(Object.entries(KINDS).map(([kind, name]) => [kind, name()]))],
      ["since", t("First day"), dates.since],
      ["until", t("Last day"), dates.until],
    ]),
    found.groups.length ? totals(found, wanted.by) : nothing(t("Nothing was used.")),
    found.more ? h("p", { className: "small muted" }, t("Only those with the most tokens are listed.")) : null,
  ];
}

const KINDS = { day: () => t("Day"), person: () => t("Person"), channel: () => t("Channel"), agent: () => t("Agent"), model: () => t("Model") };

function totals({ groups, more, currency }, by) {
  const lines = by === "day" ? [...groups].sort((one, other) => other.key.localeCompare(one.key)) : groups;
  return table(
    t("Usage"),
    [{ name: (KINDS[by] ?? KINDS.day)(), kind: "wide" }, { name: t("Model calls"), kind: "number" }, { name: t("Tokens in"), kind: "number" }, { name: t("of them cached"), kind: "number" }, { name: t("Tokens out"), kind: "number" }, { name: t("Took"), kind: "number" }, ...(currency ? [{ name: t("Cost"), kind: "number" }] : [])],
    [
      ...(lines.length > 1 && !more ? [line(h("b", {}, t("In all")), together(lines), currency)] : []),
      ...lines.map((each) => line(named(each.key, by), each, currency)),
    ],
  );
}

const line = (name, each, currency) => [name, count(each.calls), count(each.input_tokens), count(each.cached_tokens), count(each.output_tokens), duration(each.seconds), ...(currency ? [costInWords(each.cost, currency)] : [])];

function named(key, by) {
  if (by === "day") return dayOf(key);
  if (by === "person") return h("a", { href: consoleAddress("turns", { person: key }) }, h("bdi", {}, key));
  return h("bdi", {}, key || (by === "channel" ? t("direct chat") : "—"));
}

/** The sum of several; its cost is not known where that of one is not. */
function together(groups) {
  const sum = (name) => groups.reduce((total, each) => total + each[name], 0);
  const names = ["calls", "input_tokens", "cached_tokens", "output_tokens", "seconds"];
  return { ...Object.fromEntries(names.map((name) => [name, sum(name)])), cost: groups.some(({ cost }) => cost === null) ? null : sum("cost") };
}
