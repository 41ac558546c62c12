// What one's own requests used of the language model: in all, and for one answer.

import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { n, spoken, t } from "./language.js";
import { duration } from "./time.js";

/** The drawer's button opens what one has used, today and day by day. */
export function wireUsage() {
  byId("usage").onclick = async () => {
    const said = h("p", { className: "muted", role: "status" });
    const list = h("dl", { className: "usage" });
    const shown = openDialog({ title: t("Usage"), body: [said, list], act: async () => true });
    try {
      const { today, recent, days, currency } = await api.usage();
      said.textContent = t("What your requests used of the language model. Days end at midnight UTC.");
      const lines = [[t("Today"), today], [n("{count} day", "{count} days", 30), recent], ...days.map((day) => [dayOf(day.key), day])];
      list.replaceChildren(...lines.flatMap(([when, total]) => [h("dt", {}, when), h("dd", {}, usageInWords(total, currency))]));
    } catch (problem) {
      said.textContent = problem.message;
    }
    await shown;
  };
}

/** A line for an answer's details that says what its turn used, once `load` is called; empty for whom it is not. */
export function usageLine(post) {
  const line = h("p", { className: "muted small", role: "status" });
  let asked = false;
  const load = async () => {
    if (asked) return;
    asked = true;
    try {
      const { usage, currency } = await api.usageOf(post);
      line.textContent = usage ? usageInWords(usage, currency) : "";
    } catch {
      asked = false;
    }
  };
  return { line, load };
}

/** A button that shows the same below itself. */
export function usageButton(post) {
  const { line, load } = usageLine(post);
  const show = async () => {
    await load();
    line.textContent ||= t("Not available");
  };
  return [h("button", { type: "button", className: "link-button small", onclick: show }, t("Usage")), line];
}

/** "2 model calls · 1,234 tokens in, 56 out · 3.2 s · 0.25 EUR", of what the server says of a usage. */
export function usageInWords({ calls, input_tokens: input, cached_tokens: cached, output_tokens: output, seconds, cost }, currency) {
  const given = { input: number(input), cached: number(cached), output: number(output) };
  return [
    n("{count} model call", "{count} model calls", calls),
    cached ? t("{input} tokens in ({cached} cached), {output} out", given) : t("{input} tokens in, {output} out", given),
    duration(seconds),
    currency ? costInWords(cost, currency) : null,
  ].filter(Boolean).join(" · ");
}

/** "0.25 EUR". */
export function costInWords(cost, currency) {
  if (cost === null) return t("price not set");
  if (cost > 0 && cost < 0.01) return t("less than {amount} {currency}", { amount: number(0.01, 2), currency });
  return `${number(cost, 2)} ${currency}`;
}

const number = (value, digits = 0) => value.toLocaleString(spoken(), { minimumFractionDigits: digits, maximumFractionDigits: digits });

function dayOf(day) {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(spoken(), { timeZone: "UTC", day: "numeric", month: "short", year: "numeric" });
}
