// The rules in force: how often each decided, how they would judge a call, and what a changed file would have decided.

import { operators } from "./api.js";
import { consoleAddress } from "./console_address.js";
import { choice, count, counting, daysChoice, dayOf, decidesChip, draft, fact, heading, onceAtATime, section, table, textBox, toolName, turnLink, verdictChip, verdictWord } from "./console_parts.js";
import { freshId, h } from "./dom.js";
import { n, t } from "./language.js";
import { short, time } from "./time.js";

export async function policy({ query, again }) {
  const found = await operators.rules(query.days);
  return [
    heading(t("Policy"), { about: t("{file}, version {version}, mode {mode}", { file: found.source, version: found.version, mode: found.mode }), again }),
    section(t("Rules in force"), daysChoice("policy", query), counting(found.counted), h("p", { className: "muted small" }, t("How often each decided since {day}. The first rule that fits decides.", { day: dayOf(found.since) })), rules(found.rules), besides(found.besides)),
    section(t("What would happen if…"), question(query, found.mode)),
    section(t("Replay a changed file"), replay(found)),
  ];
}

const decided = (each) => [each.allowed, each.asked, each.denied].map((number) => h("span", { className: number ? "" : "muted" }, count(number)));
const COUNTS = () => [{ name: t("Allowed"), kind: "number" }, { name: t("Asked"), kind: "number" }, { name: t("Denied"), kind: "number" }];

function rules(found) {
  return table(
    t("Rules in force"),
    [{ name: t("Rule"), kind: "wide" }, { name: t("Covers"), kind: "wide" }, { name: t("Decides") }, ...COUNTS()],
    found.map((rule) => [
      [h("p", { className: "cell-title", dir: "auto" }, h("a", { href: consoleAddress("audit", { rule: rule.name }) }, rule.name)), h("p", { className: "muted small" }, h("bdi", {}, rule.source))],
      rule.match.length ? h("ul", { className: "matches", role: "list" }, rule.match.map(({ field, wanted }) => h("li", {}, h("span", { className: "muted" }, field), " ", h("bdi", { className: "mono" }, wanted)))) : h("span", { className: "muted" }, t("every call")),
      [decidesChip(rule.decides), rule.approvers ? h("p", { className: "small", dir: "auto" }, rule.approvers) : null, rule.reason ? h("p", { className: "small muted", dir: "auto" }, rule.reason) : null],
      ...decided(rule),
    ]),
  );
}

function besides(found) {
  if (!found.length) return null;
  const words = { none: () => t("No rule fitted"), mode: () => t("The mode"), standing: () => t("A standing approval"), former: (rule) => t("“{rule}”, which is in the file no more", { rule }) };
  return [h("p", { className: "small muted" }, t("What else decided:")), table(t("What else decided:"), [{ name: t("Decided by"), kind: "wide" }, ...COUNTS()], found.map((each) => [h("span", { dir: "auto" }, words[each.decided_by]?.(each.rule) ?? each.decided_by), ...decided(each)]))];
}

// ------------------------------------------------------------------------------------------------ what would happen if

function question(query, mode) {
  const controls = {
    tool: textBox({ placeholder: "calendar__delete_event", required: true, value: query.tool ?? "" }),
    person: textBox({ placeholder: "web:ana", required: true, maxLength: 500, value: query.person ?? "" }),
    place: textBox({ placeholder: t("direct chat"), maxLength: 500 }),
    agent: textBox({ placeholder: t("the one that answers there") }),
    ...(mode === "safeWrite" ? { quote: textBox({ maxLength: 2_000 }) } : {}),
    arguments: h("textarea", { rows: 3, spellcheck: false, placeholder: "{}" }),
  };
  const labels = { tool: t("Tool"), person: t("Person"), place: t("Channel"), agent: t("Agent"), quote: t("Words that ask for it"), arguments: t("Arguments (JSON)") };
  const errors = Object.fromEntries(Object.keys(controls).map((name) => [name, h("p", { className: "field-error", id: freshId("error"), role: "alert" })]));
  const said = h("div", { className: "answer", role: "status" });
  const older = h("p", { className: "small cause", role: "status" });
  let asked = 0;
  let isChanged = false;
  /** That the answer below is one to another question than the one above. */
  const compare = () => (older.textContent = isChanged && said.childElementCount ? t("You have changed the question since. Ask again.") : "");
  const fields = Object.entries(controls).map(([name, control]) => {
    control.id = freshId("question");
    control.setAttribute("aria-describedby", errors[name].id);
    return h("div", { className: name === "arguments" ? "filter whole" : "filter" }, h("label", { for: control.id }, labels[name]), control, errors[name]);
  });
  const form = h("form", { className: "console-filters", noValidate: true }, fields, h("div", { className: "filter-buttons" }, h("button", { type: "submit", className: "button primary" }, t("Ask the rules"))));
  const wrong = (name, words) => {
    errors[name].textContent = words;
    controls[name].setAttribute("aria-invalid", String(Boolean(words)));
    if (words) controls[name].focus();
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    for (const name of Object.keys(controls)) wrong(name, "");
    for (const name of ["person", "tool"]) if (!controls[name].value.trim()) wrong(name, t("Required"));
    let given = {};
    try {
      given = JSON.parse(controls.arguments.value.trim() || "{}");
      if (typeof given !== "object" || given === null || Array.isArray(given)) throw new Error("{…}");
    } catch (problem) {
      wrong("arguments", t("This is not valid JSON: {problem}.", { problem: problem.message }));
    }
    if (form.querySelector('[aria-invalid="true"]')) return;
    isChanged = false;
    const mine = (asked += 1);
    try {
      const answer = await operators.askRules({ tool: controls.tool.value.trim(), person: controls.person.value.trim(), place: controls.place.value.trim(), agent: controls.agent.value.trim() || undefined, quote: controls.quote?.value.trim(), arguments: given });
      if (mine !== asked) return;
      said.replaceChildren(verdict(answer));
    } catch (problem) {
      if (mine !== asked) return;
      const told = Object.entries(problem.body?.errors ?? {});
      for (const [name, words] of told) if (name in errors) wrong(name, words);
      const rest = told.filter(([name]) => !(name in errors));
      said.replaceChildren(h("p", { className: "cause", dir: "auto" }, rest.length ? rest.map(([name, words]) => `${name}: ${words}`).join("; ") : told.length ? "" : problem.message));
    }
    compare();
  };
  form.oninput = () => {
    isChanged = true;
    compare();
  };
  return [h("p", { className: "muted small" }, t("Nothing is called. The answer is what the rules in force would say of such a call now.")), form, older, said];
}

function verdict(answer) {
  const fits = { yes: t("fits"), no: t("does not fit"), unknown: t("not known") };
  return h(
    "div",
    { className: "stop-card" },
    h("p", { className: "turn-line" }, verdictChip(answer.verdict), h("span", { dir: "auto" }, answer.why)),
    answer.known_tool ? null : h("p", { className: "small cause" }, t("There is no such tool now: it was judged without what its server says of it.")),
    h("dl", { className: "facts" },
      answer.rule ? fact(t("Rule"), h("span", { dir: "auto" }, answer.rule), " · ", h("bdi", {}, answer.source)) : null,
      answer.approvers ? fact(t("Approver"), h("span", { dir: "auto" }, answer.approvers)) : null,
      answer.reason ? fact(t("Reason"), h("span", { dir: "auto" }, answer.reason)) : null,
      answer.beyond.length ? fact(t("Besides"), answer.beyond.map((words) => h("p", { dir: "auto" }, words))) : null,
      answer.agent ? fact(t("Agent"), h("bdi", {}, answer.agent)) : null,
      fact(t("Mode"), answer.mode),
      ...Object.entries(answer.groups).map(([group, is]) => fact(h("bdi", {}, group), is === null ? t("not known") : is ? t("is in it") : t("is not in it"))),
    ),
    answer.tried.length
      ? h("details", {}, h("summary", {}, n("{count} rule was looked at", "{count} rules were looked at", answer.tried.length)), h("ol", { className: "tried" }, answer.tried.map((each) => h("li", {}, h("b", { dir: "auto" }, each.name), " · ", fits[each.fit], each.because.length ? h("p", { className: "muted small", dir: "auto" }, each.because.join("; ")) : null))))
      : null,
  );
}

// ------------------------------------------------------------------------------------------------ replay

function replay(found) {
  const id = freshId("file");
  const error = h("p", { className: "form-error", role: "alert", id: `${id}-error` });
  const box = h("textarea", { id, className: "file", rows: 16, spellcheck: false, maxLength: 200_000, "aria-describedby": `${id}-error` });
  const given = draft.take();
  box.value = given ?? found.text;
  const said = h("div", { className: "answer", role: "status" });
  const button = h("button", { type: "submit", className: "button primary" }, t("Replay"));
  const reset = h("button", { type: "button", className: "button", onclick: () => (box.value = found.text) }, t("As in force"));
  const form = h("form", { className: "console-section", noValidate: true }, h("div", { className: "filter" }, h("label", { for: id }, t("The changed file")), box), error, h("div", { className: "filter-buttons" }, button, reset), said);
  const send = async () => {
    error.textContent = "";
    box.setAttribute("aria-invalid", "false");
    said.replaceChildren(h("p", { className: "muted" }, t("Replaying the calls of the last 30 days…")));
    try {
      const report = await operators.replay(box.value);
      said.replaceChildren(...replayed(report).filter(Boolean));
    } catch (problem) {
      said.replaceChildren();
      const wrong = problem.body?.errors?.policy;
      if (wrong) box.setAttribute("aria-invalid", "true");
      error.textContent = wrong ?? (problem.status === 409 ? t("History is being replayed for someone else. Try again in a moment.") : problem.message);
    }
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    onceAtATime(button, send);
  };
  if (given !== null) requestAnimationFrame(() => form.scrollIntoView({ block: "start" }));
  return [h("p", { className: "muted small" }, t("Nothing is called or changed: the calls of the audit log are judged once more, by this file. To put it in force, change the file on the server.")), form];
}

function replayed(report) {
  return [
    h("p", {}, n("{count} call was judged.", "{count} calls were judged.", report.calls), " ", report.different ? n("{count} differs from what was decided then.", "{count} differ from what was decided then.", report.different) : t("Nothing would have been decided differently."), " ", report.different_from_now ? n("{count} differs from what the rules in force say.", "{count} differ from what the rules in force say.", report.different_from_now) : null),
    report.is_cut ? h("p", { className: "small muted" }, t("Only the newest {count} entries of the audit log were read.", { count: count(report.most) })) : null,
    report.doubtful ? h("p", { className: "small muted" }, n("{count} call is doubtful: not all that the rules look at was kept of it.", "{count} calls are doubtful: not all that the rules look at was kept of them.", report.doubtful)) : null,
    report.changes.length ? h("ul", { className: "rule-counts", role: "list" }, report.changes.map((each) => h("li", { className: "rule-count" }, h("b", {}, count(each.calls)), h("span", {}, t("{before} → {after}", { before: verdictWord(each.before), after: verdictWord(each.after) }))))) : null,
    report.differences.length ? table(t("Differences"), [{ name: t("Call"), kind: "wide" }, { name: t("Decided then"), kind: "wide" }, { name: t("In force now"), kind: "wide" }, { name: t("Changed file"), kind: "wide" }], report.differences.map(difference)) : null,
    report.more ? h("p", { className: "small muted" }, n("and {count} more", "and {count} more", report.more)) : null,
  ];
}

function difference(call) {
  return [
    [h("p", { className: "cell-title" }, call.turn ? turnLink(call.turn, toolName(call.server, call.tool)) : toolName(call.server, call.tool)), h("p", { className: "mono clamped" }, call.input), h("p", { className: "muted small" }, h("bdi", {}, call.requester), " · ", time(Date.parse(call.at) / 1000, short)), call.doubt ? h("p", { className: "small cause", dir: "auto" }, call.doubt) : null],
    side(call.recorded),
    side(call.now),
    side(call.changed),
  ];
}

function side(said) {
  return [verdictChip(said.verdict), said.approvers ? h("p", { className: "small", dir: "auto" }, said.approvers) : null, said.rule ? h("p", { className: "small muted", dir: "auto" }, said.rule) : null];
}
