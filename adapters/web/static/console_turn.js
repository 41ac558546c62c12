// One turn: everything that happened in it, in order.

import { operators } from "./api.js";
import { consoleAddress } from "./console_address.js";
import { count, fact, heading, json, nothing, outcomeChip, outcomeWord, personName, section, table, toolName, verdictChip } from "./console_parts.js";
import { turnChip, where } from "./console_turns.js";
import { freshId, h, icon, ICONS } from "./dom.js";
import { n, parts, t } from "./language.js";
import { duration, short, shortToTheSecond, time } from "./time.js";
import { usageInWords } from "./usage.js";

/** Where no use of a model is kept: that of what runs is kept when it rests, and a version before kept none at all. */
function unrecorded({ kind, status }) {
  if (kind === "call") return t("Not used");
  return status === "running" ? t("Nothing recorded yet") : t("Nothing recorded");
}

export async function turn({ id, again }) {
  const whole = await operators.turn(id);
  const { turn: about, calls, events, models, total, currency } = whole;
  const ids = new Map(calls.map((call) => [call.call_id, freshId("call")]));
  return [
    heading(about.kind === "call" ? t("Call of another agent") : t("Turn"), { again }),
    h("div", { className: "turn-about" },
      h("p", { className: "turn-line" }, turnChip(about.status, true), personName(about.person, about.person_id), where(about), time(about.at, short)),
      whole.text ? h("blockquote", { className: "turn-text", dir: "auto" }, whole.text) : null,
      about.cause ? h("p", { className: "cause", dir: "auto" }, t("Cause: {cause}", { cause: about.cause })) : null,
      h("dl", { className: "facts" },
        about.status === "failed" || about.status === "parked" ? fact(t("Reference"), about.reference) : null,
        about.files.length ? fact(n("File", "Files", about.files.length), h("bdi", {}, about.files.join(", "))) : null,
        fact(t("Conversation"), h("a", { href: consoleAddress("turns", { thread_id: about.thread_id }) }, h("bdi", {}, about.thread_id))),
        fact(t("Turn"), h("bdi", {}, about.id)),
        fact(t("Language model"), total.calls ? usageInWords(total, currency) : unrecorded(about)),
      ),
    ),
    section(t("What happened"), h("ol", { className: "events", role: "list" }, events.map((event, index) => happened(event, events[index - 1], calls, ids, about.kind)))),
    section(n("{count} tool call", "{count} tool calls", calls.length), calls.length ? h("div", { className: "calls" }, calls.map((call) => theCall(call, ids.get(call.call_id)))) : nothing(t("No tool was called."))),
    models.length ? section(t("Language models"), use(models, currency)) : null,
  ];
}

// ------------------------------------------------------------------------------------------------ in order

function happened(event, before, calls, ids, kind) {
  const call = calls.find((each) => each.call_id === event.call_id);
  const [sign, tone, words] = sentence(event, call, kind);
  const opens = call ? h("button", { type: "button", className: "link-button", onclick: () => open(ids.get(call.call_id)) }, t("Call {number}", { number: calls.indexOf(call) + 1 })) : null;
  const sinceBefore = before ? event.at - before.at : 0;
  return h(
    "li",
    { className: `event ${tone}` },
    h("span", { className: "event-sign" }, icon(sign)),
    h("div", { className: "event-words" }, h("p", {}, words, opens ? [" · ", opens] : null), event.text && !SAYS_ITSELF.has(event.kind) ? h("p", { className: "event-text", dir: "auto" }, event.text) : null),
    h("span", { className: "event-time muted small" }, time(event.at, shortToTheSecond), sinceBefore >= 1 ? [" · ", h("span", { title: t("after the one before") }, `+${duration(sinceBefore)}`)] : null),
  );
}

// Their text is the name of a tool or a task, which the sentence has.
const SAYS_ITSELF = new Set(["began", "read", "task"]);

/** Sign, tone and words of what happened. */
function sentence(event, call, kind) {
  const name = personName(event.person || t("Someone"), event.person_id);
  const tool = call ? toolName(call.server, call.tool) : h("bdi", {}, event.text);
  switch (event.kind) {
    case "message":
      return [ICONS.info, "person", kind === "call" ? parts("Another agent called for {name}", { name }) : parts("{name} wrote", { name })];
    case "asked":
      return [ICONS.question, "waiting", asked(event, name, tool)];
    case "vote":
      if (event.what === "edited") return [ICONS.check, "good", parts("{name} approved with changes", { name })];
      return event.what === "approve" ? [ICONS.check, "good", parts("{name} approved", { name })] : [ICONS.cross, "bad", parts("{name} rejected", { name })];
    case "settled":
      return settledSentence(event);
    case "began":
      return [ICONS.play, "", parts("{tool} began", { tool })];
    case "ended":
      return [event.what === "failed" ? ICONS.cross : event.what === "done" ? ICONS.check : ICONS.warning, event.what === "failed" ? "bad" : event.what === "done" ? "good" : "waiting", parts("{tool} ended: {outcome}", { tool, outcome: outcomeWord(event.what) })];
    case "not made":
      return [ICONS.barred, "bad", parts("{tool} was not called: {outcome}", { tool, outcome: outcomeWord(event.what) })];
    case "task": {
      const task = h("bdi", {}, event.text);
      if (event.what === "running") return [ICONS.play, "", parts("Task {task} began", { task })];
      return [event.what === "done" ? ICONS.check : ICONS.cross, event.what === "done" ? "good" : "bad", parts("Task {task} ended: {outcome}", { task, outcome: outcomeWord(event.what) })];
    }
    case "said":
      return [ICONS.info, "", event.what === "answer" ? t("Answered") : t("Said meanwhile")];
    case "notice":
      return [event.what === "error" ? ICONS.warning : ICONS.info, event.what === "error" ? "bad" : "", t("People were told")];
    case "read":
      return [ICONS.info, "", event.what === "looked" ? parts("{name} looked at the hidden values of {tool}", { name, tool }) : parts("{tool} was looked up for a card", { tool })];
    case "stopped":
      return [ICONS.stopped, "bad", event.what === "turn" ? parts("{name} stopped it", { name }) : parts("{name} stopped everything", { name })];
    case "went on":
      return [ICONS.play, "", parts("{name} let everything go on", { name })];
    default:
      return [ICONS.info, "", event.kind];
  }
}

function asked(event, name, tool) {
  switch (event.what) {
    case "approval":
      return parts("Approval of {tool} was requested", { tool });
    case "sign_in":
      return parts("{name} was asked to sign in", { name });
    case "outcome":
      return parts("{name} was asked what came of it", { name });
    default:
      return parts("{name} was asked", { name });
  }
}

function settledSentence(event) {
  const tones = { approved: ["good", ICONS.check], answered: ["good", ICONS.check], rejected: ["bad", ICONS.cross] };
  const [tone, sign] = tones[event.what] ?? ["", ICONS.clock];
  const outcome = outcomeWord(event.what);
  return [sign, tone, event.person ? parts("Settled: {outcome}, by {name}", { outcome, name: personName(event.person, event.person_id) }) : t("Settled: {outcome}", { outcome })];
}

function open(id) {
  const details = document.getElementById(id);
  details.open = true;
  details.scrollIntoView({ block: "nearest" });
  details.querySelector("summary").focus();
}

// ------------------------------------------------------------------------------------------------ calls

function theCall(call, id) {
  const outcome = call.status === "not made" && call.ended ? call.ended : call.status;
  return h(
    "details",
    { className: "call", id },
    h("summary", {},
      h("span", { className: "call-title", dir: "auto" }, call.title || call.tool),
      h("span", { className: "call-chips" }, verdictChip(call.verdict), outcomeChip(outcome), call.seconds === null ? null : h("span", { className: "muted small" }, duration(call.seconds))),
      h("span", { className: "muted small call-tool" }, toolName(call.server, call.tool), call.agent ? [" · ", t("the {agent} agent", { agent: call.agent })] : null, call.client ? [" · ", parts("through {client}", { client: h("bdi", {}, call.client) })] : null),
    ),
    h("dl", { className: "facts" },
      call.why ? fact(t("Why"), h("span", { dir: "auto" }, call.why)) : null,
      call.rule ? fact(t("Rule"), h("a", { href: consoleAddress("audit", { rule: call.rule }), dir: "auto" }, call.rule)) : null,
      call.source ? fact(t("Decided by"), h("bdi", {}, call.source)) : null,
      call.mode ? fact(t("Mode"), call.mode) : null,
      call.waited === null ? null : fact(t("Waited for people"), duration(call.waited)),
      fact(t("Attempts"), count(call.attempts)),
      call.seconds === null ? null : fact(t("Took"), duration(call.seconds)),
      fact(t("Call"), h("bdi", {}, call.call_id)),
    ),
    h("h4", {}, t("Arguments")),
    call.arguments === null ? nothing(t("Not kept, or too long to be shown.")) : json(call.arguments),
    call.result ? [h("h4", {}, t("Result")), json(call.result), call.characters ? h("p", { className: "muted small" }, t("The first {shown} of {all} characters.", { shown: count(call.result.length), all: count(call.characters) })) : null] : null,
  );
}

function use(models, currency) {
  return table(
    t("Language models"),
    [{ name: t("Model") }, { name: t("Agent") }, { name: t("Usage"), kind: "wide" }],
    models.map((each) => [h("bdi", {}, each.key), h("bdi", {}, each.agent), usageInWords(each, currency)]),
  );
}
