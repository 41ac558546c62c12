// Turns, whoever began them.

import { operators } from "./api.js";
import { chip } from "./card_parts.js";
import { consoleAddress } from "./console_address.js";
import { filters, growing, heading, nothing, personName, table, textBox, turnLink } from "./console_parts.js";
import { h } from "./dom.js";
import { t } from "./language.js";
import { short, time } from "./time.js";

export async function turns({ path, query, again }) {
  const { person, reference, card, thread_id } = query;
  const wanted = { person, reference, card, thread_id };
  const isNamed = Object.values(wanted).some(Boolean);
  const found = await operators.turns(wanted);
  // What a card's link names is one turn; nobody is led there who has chosen something else meanwhile.
  if (card && found.turns.length === 1) {
    if (location.hash === path) location.replace(consoleAddress("turn", {}, found.turns[0].id));
    return null;
  }
  const read = async (before) => {
    const more = await operators.turns({ ...wanted, before });
    return [more.turns, more.next];
  };
  return [
    heading(t("Turns"), { about: t("All that one message causes, and each call of another agent, newest first."), again }),
    filters("turns", query, [
      ["person", t("Person"), textBox({ placeholder: "web:ana" })],
      ["thread_id", t("Conversation"), textBox({ placeholder: "web:…", maxLength: 2000 })],
      ["reference", t("Reference"), textBox({ placeholder: "1a2b3c4d", pattern: "[0-9a-f]{8}" })],
      ["card", t("Card"), textBox()],
    ]),
    found.turns.length || found.next ? growing(found.turns, found.next, list, read) : nothing(isNamed ? t("No turn found.") : t("There are no turns yet.")),
  ];
}

function list(found) {
  return table(
    t("Turns"),
    [{ name: t("Message"), kind: "wide" }, { name: t("Person"), kind: "name" }, { name: t("Where") }, { name: t("When") }, { name: t("State") }],
    found.map((each) => [
      [h("p", { className: "cell-title clamped", dir: "auto" }, turnLink(each.id, each.text || each.files.join(", ") || (each.kind === "call" ? t("Call of another agent") : t("(empty)")))), each.cause ? h("p", { className: "small cause", dir: "auto" }, each.cause) : null],
      personName(each.person, each.person_id),
      where(each),
      time(each.at, short),
      [turnChip(each.status), each.status === "failed" || each.status === "parked" ? h("p", { className: "muted small" }, t("Reference {reference}", { reference: each.reference })) : null],
    ]),
  );
}

/** "slack · C2", where a turn takes place. */
export function where({ platform, channel, kind }) {
  const name = { slack: t("Slack"), teams: t("Teams"), web: t("Web page"), api: "API", mcp: "MCP" }[platform] ?? platform;
  const place = channel || (kind === "call" ? t("another agent") : t("direct chat"));
  return h("span", {}, name, " · ", h("bdi", {}, place));
}

/** `isWhole`: all of it was looked at; in a list nobody has looked whether something of it waits for people. */
export function turnChip(status, isWhole = false) {
  const words = {
    waiting: ["waiting", t("Waiting for people")],
    running: ["waiting", t("Running")],
    ended: isWhole ? ["good", t("Ended")] : ["quiet", t("Handled")],
    failed: ["bad", t("Failed")],
    parked: ["bad", t("Given up")],
  };
  return chip(...(words[status] ?? ["quiet", status]));
}
