// The parts of the installation: what was given up, tool servers, processes, and everybody's accounts.

import { operators } from "./api.js";
import { chip } from "./card_parts.js";
import { consoleAddress } from "./console_address.js";
import { acting, count, growing, heading, nothing, personName, problem, section, table, turnLink } from "./console_parts.js";
import { openDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { n, t } from "./language.js";
import { duration, fromNow, short, time } from "./time.js";

export async function system({ again }) {
  // Each is read for itself, so that one that cannot be read does not hide the others. That nobody is an operator is said once.
  const [parked, servers, replicas, accounts] = await Promise.allSettled([operators.parked({}), operators.toolServers(), operators.replicas(), operators.accounts({})]);
  for (const each of [parked, servers, replicas, accounts]) if (each.reason?.status === 403) throw each.reason;
  const shown = (result, draw) => (result.status === "fulfilled" ? draw(result.value) : problem(result.reason, again));
  return [
    heading(t("System"), { about: t("What was given up, tool servers, processes and accounts."), again }),
    section(t("Given up"), shown(parked, (found) => (found.parked.length ? growing(found.parked, found.next, (items) => givenUp(items, again), moreParked) : nothing(t("Nothing was given up."))))),
    section(t("Tool servers"), shown(servers, (found) => (found.servers.length ? toolServers(found.servers) : nothing(t("No tools configured"))))),
    section(t("Processes"), shown(replicas, (found) => processes(found.replicas))),
    section(t("Connected accounts"), shown(accounts, (found) => (found.accounts.length ? growing(found.accounts, found.next, accountList, moreAccounts) : nothing(t("Nobody has connected an account."))))),
  ];
}

async function moreParked(before) {
  const more = await operators.parked({ before });
  return [more.parked, more.next];
}

async function moreAccounts(after) {
  const more = await operators.accounts({ after });
  return [more.accounts, more.next];
}

// ------------------------------------------------------------------------------------------------ what was given up

function givenUp(found, again) {
  return table(
    t("Given up"),
    [{ name: t("What"), kind: "wide" }, { name: t("Person"), kind: "name" }, { name: t("When") }, { name: t("Tries"), kind: "number" }, { name: t("Reference") }, { name: t("What to do"), kind: "wide" }],
    found.map((each) => [
      [h("p", { className: "cell-title clamped", dir: "auto" }, whatItBelongsTo(each)), h("p", { className: "small cause", dir: "auto" }, each.cause)],
      personName(each.person, each.person_id),
      time(each.at, short),
      count(each.tries),
      h("span", { className: "mono" }, each.reference),
      h("div", { className: "buttons" }, each.can_retry ? acting(t("Try again"), async () => told(await operators.retryParked(each.id), again)) : h("p", { className: "small muted", dir: "auto" }, each.why_not), acting(t("Give up…"), () => giveUp(each, again))),
    ]),
  );
}

/** A link to the turn that it began; what goes on with a turn has no page of its own, and its reference leads to that. */
function whatItBelongsTo(each) {
  if (each.kind === "message" || each.kind === "call") return turnLink(each.id, each.text || each.kind);
  return h("a", { href: consoleAddress("turns", { reference: each.reference }) }, each.kind);
}

async function giveUp(each, again) {
  let said = "";
  await openDialog({
    title: t("Give this up for good?"),
    submit: t("Give up"),
    tone: "danger-solid",
    body: [h("p", { dir: "auto" }, each.text || each.kind), h("p", { className: "muted" }, t("It is not tried again, and does not stand in this list any more. The audit log says who gave it up."))],
    async act() {
      said = await told(await operators.giveUpParked(each.id), again);
      return true;
    },
  });
  return said;
}

async function told(result, again) {
  await again();
  return result.text;
}

// ------------------------------------------------------------------------------------------------ tool servers

function serverChip(state) {
  const words = {
    starting: ["waiting", t("Starting")],
    up: ["good", t("Available")],
    down: ["bad", t("Unavailable")],
    misconfigured: ["bad", t("Misconfigured")],
    closed: ["quiet", t("Stopped")],
    unsupported: ["quiet", t("Not supported")],
  };
  return chip(...(words[state] ?? ["quiet", state]));
}

function toolServers(servers) {
  const several = new Set(servers.map((each) => each.replica)).size > 1;
  return table(
    t("Tool servers"),
    [{ name: t("Name") }, { name: t("State") }, { name: t("Tools"), kind: "number" }, { name: t("Reason"), kind: "wide" }, ...(several ? [{ name: t("Process") }] : []), { name: t("What to do") }],
    servers.map((each) => [
      h("bdi", {}, each.name),
      serverChip(each.state),
      count(each.tools),
      [h("p", { className: "small", dir: "auto" }, each.reason), each.withheld.length ? h("details", { className: "small" }, h("summary", {}, n("{count} tool is not offered", "{count} tools are not offered", each.withheld.length)), h("ul", { className: "servers" }, each.withheld.map((sentence) => h("li", { dir: "auto" }, sentence)))) : null],
      ...(several ? [h("bdi", { className: "small" }, `${each.host} · ${each.process}`)] : []),
      h("div", { className: "buttons" }, acting(t("Connect again"), async () => (await operators.retryToolServer(each.name)).text)),
    ]),
  );
}

// ------------------------------------------------------------------------------------------------ processes, accounts

function processes(replicas) {
  return table(
    t("Processes"),
    [{ name: t("Process") }, { name: t("State") }, { name: t("Version") }, { name: t("Since") }, { name: t("Policy") }],
    replicas.map((each) => [
      [h("bdi", {}, `${each.host} · ${each.process}`), each.here ? h("p", { className: "muted small" }, t("answers you")) : null],
      [each.stopped ? chip("bad", t("Stopped")) : chip("good", t("Runs")), each.here ? null : h("p", { className: "muted small" }, t("heard of {duration} ago", { duration: duration(each.seen_seconds_ago) }))],
      h("bdi", {}, each.version),
      time(Date.parse(each.started) / 1000, fromNow),
      [h("span", { className: "mono" }, each.policy), each.policy_differs ? h("p", { className: "small cause" }, t("differs from the one that answers you")) : null],
    ]),
  );
}

function accountList(accounts) {
  const words = { active: ["good", t("Active")], refused: ["bad", t("Refused")], expired: ["quiet", t("Expired")], ended: ["quiet", t("Being ended")] };
  return table(
    t("Connected accounts"),
    [{ name: t("Person"), kind: "name" }, { name: t("Service") }, { name: t("Account"), kind: "wide" }, { name: t("State") }, { name: t("Since") }, { name: t("Last used") }],
    accounts.map((each) => [personName(each.person, each.person_id), h("bdi", {}, each.service || each.connection), h("bdi", {}, each.account), chip(...(words[each.status] ?? ["quiet", each.status])), time(each.since, short), each.used_at === null ? "—" : time(each.used_at, short)]),
  );
}
