// One input for one type of field: what the browser has for it, or plain text where a value does not fit.

import { h } from "./dom.js";
import { t } from "./language.js";

const DATE_TIME = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.\d+)?(Z|[+-]\d\d:?\d\d)?$/;
const FITS = {
  date: /^\d{4}-\d\d-\d\d$/,
  time: /^\d\d:\d\d(:\d\d)?$/,
};

/** The control of a field: `element`, `kind`, `original` (the value as it came), `touched()`, `isEmpty()`, `read()`. */
export function makeControl(field, value) {
  const original = value ?? (field.type === "yes-no" ? false : "");
  const made = makers[field.type]?.(field, original) ?? textual(field, original);
  const before = made.get();
  return {
    kind: "input",
    suffix: "",
    read: () => ({ value: made.get() }),
    ...made,
    original,
    touched: () => made.get() !== before,
    isEmpty: () => made.get() === "",
  };
}

const makers = {
  text: textual,
  choice: (field, value) => (field.options.length ? choice(field, value) : textual(field, value)),
  date: (field, value) => simple("date", field, value),
  time: (field, value) => simple("time", field, value),
  "date-time": dateTime,
  number: (field, value) => number(field, value, "any"),
  integer: (field, value) => number(field, value, "1"),
  "yes-no": yesNo,
  json: (field, value) => (field.options.length ? several(field, value) : json(field, value)),
};

function textual(field, value) {
  const text = asText(value);
  const long = field.multiline || text.includes("\n") || text.length > 120;
  const element = long ? h("textarea", { rows: Math.min(10, Math.max(3, text.split("\n").length)) }) : h("input", { type: "text" });
  element.value = text;
  return { element, get: () => element.value };
}

function simple(type, field, value) {
  const text = asText(value);
  if (text && !FITS[type].test(text)) return textual(field, value);
  const element = h("input", { type, step: type === "time" && text.length > 5 ? "1" : null });
  element.value = text;
  return { element, get: () => element.value };
}

function dateTime(field, value) {
  const text = asText(value);
  const match = DATE_TIME.exec(text);
  if (text && !match) return textual(field, value);
  const [, day = "", minutes = "", seconds = "", offset = ""] = match ?? [];
  const element = h("input", { type: "datetime-local", step: seconds && seconds !== ":00" ? "1" : null });
  if (day) element.value = `${day}T${minutes}${seconds === ":00" ? "" : seconds}`;
  return {
    element,
    suffix: offset && `UTC${offset === "Z" ? "" : offset}`,
    get: () => element.value,
    read: () => ({ value: element.value && element.value + (seconds && element.value.length === 16 ? ":00" : "") + offset }),
  };
}

function number(field, value, step) {
  const element = h("input", { type: "number", step, inputMode: step === "1" ? "numeric" : "decimal" });
  element.value = asText(value);
  if (asText(value) && !element.value) return textual(field, value);
  return { element, get: () => element.value };
}

function choice(field, value) {
  const text = asText(value);
  const element = h("select", {});
  if (!field.required || !text) element.append(h("option", { value: "" }, field.required ? t("Choose…") : "—"));
  for (const option of field.options) element.append(h("option", { value: option.value }, option.label));
  if (text && !field.options.some((option) => option.value === text)) element.append(h("option", { value: text }, text));
  element.value = text;
  return { element, get: () => element.value };
}

function yesNo(field, value) {
  const element = h("input", { type: "checkbox", checked: value === true || value === "true" || value === "yes" });
  return { kind: "checkbox", element, get: () => element.checked };
}

/** Any number of options: a list, or nothing where none is ticked. */
function several(field, value) {
  const list = asList(value);
  if (list === null) return json(field, value);
  const boxes = field.options.map((option) => [option.value, h("input", { type: "checkbox", value: option.value, checked: list.includes(option.value) })]);
  const labels = field.options.map((option, index) => h("label", { className: "tick" }, boxes[index][1], " ", option.label));
  const ticked = () => boxes.filter(([, box]) => box.checked).map(([name]) => name);
  return {
    kind: "group",
    element: h("div", { className: "ticks", role: "group", tabIndex: -1 }, labels),
    get: () => (ticked().length ? JSON.stringify(ticked()) : ""),
    read: () => ({ value: ticked().length ? ticked() : "" }),
  };
}

/** A list of texts from a value, or from the JSON of one; null: it is something else. */
function asList(value) {
  try {
    const list = value === "" ? [] : typeof value === "string" ? JSON.parse(value) : value;
    return Array.isArray(list) && list.every((one) => typeof one === "string") ? list : null;
  } catch {
    return null;
  }
}

function json(field, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const element = h("textarea", { className: "code", spellcheck: false, rows: Math.min(14, Math.max(3, text.split("\n").length)) });
  element.value = text;
  return {
    element,
    get: () => element.value,
    read() {
      try {
        if (element.value.trim()) JSON.parse(element.value);
      } catch (problem) {
        return { error: t("This is not valid JSON: {problem}.", { problem: problem.message }) };
      }
      return { value: element.value };
    },
  };
}

function asText(value) {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}
