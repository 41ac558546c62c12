// Everything that waits for somebody, whoever asked for it.

import { operators } from "./api.js";
import { chip, dotted, risks } from "./card_parts.js";
import { consoleAddress } from "./console_address.js";
import { count, growing, heading, nothing, personName, section, table, toolName, turnLink } from "./console_parts.js";
import { h } from "./dom.js";
import { n, parts, t } from "./language.js";
import { fromNow, short, time } from "./time.js";

export async function waiting({ query, again }) {
  const { rule } = query;
  const found = await operators.waiting({ rule });
  const read = async (after) => {
    const more = await operators.waiting({ rule, after });
    return [more.approvals, more.next];
  };
  const all = found.by_rule.reduce((sum, each) => sum + each.count, 0);
  const about = all ? n("{count} request waits for approval", "{count} requests wait for approval", all) : null;
  return [
    heading(t("Waiting"), { about, again }),
    found.by_rule.length ? section(t("By rule"), byRule(found.by_rule, rule)) : null,
    section(rule ? t("Requests because of “{rule}”", { rule }) : t("Requests"), found.approvals.length ? growing(found.approvals, found.next, requests, read) : nothing(t("No request waits for approval."))),
    found.questions.length ? section(t("Questions to one person"), questions(found.questions), isCut(found) ? h("p", { className: "small muted" }, t("Of each kind, no more than {count} are listed: those that wait longest.", { count: count(found.most_questions) })) : null) : null,
  ];
}

function byRule(rules, current) {
  const line = (each) =>
    h("li", {}, h("a", { className: "rule-count", href: consoleAddress("waiting", { rule: each.rule }), "aria-current": each.rule === current ? "true" : null }, h("b", {}, count(each.count)), h("span", { dir: "auto" }, each.rule || t("No rule")), h("span", { className: "muted small" }, parts("oldest {time}", { time: time(each.since, fromNow) }))));
  return h("ul", { className: "rule-counts", role: "list" }, rules.map(line), current ? h("li", {}, h("a", { className: "rule-count", href: consoleAddress("waiting") }, t("All rules"))) : null);
}

function requests(approvals) {
  return table(
    t("Requests"),
    [{ name: t("Request"), kind: "wide" }, { name: t("Requested by"), kind: "name" }, { name: t("Approver"), kind: "name" }, { name: t("Since") }, { name: t("Expires") }, { name: t("Rule"), kind: "wide" }],
    approvals.map((each) => [
      [h("p", { className: "cell-title", dir: "auto" }, turnLink(each.turn, each.title || each.tool)), h("p", { className: "muted small" }, toolName(each.server, each.tool)), dotted("muted small", risks(strongest(each.risk)))],
      [personName(each.requester, each.requester_id), each.client ? h("p", { className: "muted small" }, parts("through {client}", { client: h("bdi", {}, each.client) })) : null],
      [h("span", { dir: "auto" }, each.for_whom), each.handed_to.length ? h("p", { className: "muted small" }, t("Also asked: {names}", { names: each.handed_to.join(", ") })) : null, votes(each)],
      time(each.asked_at, fromNow),
      each.expires_at === null ? "—" : time(each.expires_at, short),
      [h("p", { dir: "auto" }, each.rule || t("No rule")), each.why ? h("p", { className: "muted small", dir: "auto" }, each.why) : null],
    ]),
  );
}

const RISING = ["reads", "writes", "destroys"];

/** Of these only the strongest, as on cards: what deletes data also changes it. */
function strongest(risk) {
  const most = RISING.filter((word) => risk.includes(word)).pop();
  return risk.filter((word) => word === most || !RISING.includes(word));
}

function votes(each) {
  if (!each.votes.length) return each.quorum > 1 ? h("p", { className: "muted small" }, n("{count} approval needed", "{count} approvals needed", each.quorum)) : null;
  const approved = each.votes.filter(({ verb }) => verb === "approve").map(({ name }) => name);
  const rejected = each.votes.filter(({ verb }) => verb === "reject").map(({ name }) => name);
  return [
    approved.length ? h("p", { className: "small" }, t("Approved by {names}", { names: approved.join(", ") })) : null,
    rejected.length ? h("p", { className: "small" }, t("Rejected by {names}", { names: rejected.join(", ") })) : null,
  ];
}

const isCut = ({ questions, most_questions: most }) => ["clarification", "sign_in", "outcome"].some((kind) => questions.filter((each) => each.kind === kind).length >= most);

function questions(waits) {
  const kind = { clarification: () => t("Question"), sign_in: () => t("Sign-in"), outcome: () => t("Outcome unknown") };
  return table(
    t("Questions to one person"),
    [{ name: t("Kind") }, { name: t("Question"), kind: "wide" }, { name: t("For"), kind: "name" }, { name: t("Since") }],
    waits.map((each) => [chip("waiting", kind[each.kind]?.() ?? each.kind), [h("p", { dir: "auto" }, turnLink(each.turn, each.text || each.server)), each.server ? h("p", { className: "muted small" }, each.server) : null], personName(each.person, each.person_id), time(each.since, fromNow)]),
  );
}
