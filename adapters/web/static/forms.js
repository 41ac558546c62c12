// Typed inputs of a form. What nobody touched goes back exactly as it came; mistakes are shown beside their field.

import { freshId, h } from "./dom.js";
import { makeControl } from "./controls.js";
import { t } from "./language.js";

/** How the beginning and the end of one thing are called among the fields of a form. */
const ENDS = [["start", "end"], ["begin", "end"], ["from", "to"], ["from", "until"]];

/**
 * A form's inputs for `fields` and `values` (by name); `kept` names what is too long to be changed here. Has `nodes` to
 * show, `values()` to read (null when something is wrong, and then it is shown), `showErrors(errors)` for what the server
 * found (by name; "" for the whole), and `whenChanged(call)`: `call(is)` is told whether anything differs from before.
 */
export function makeForm({ fields, values = {}, notes = {}, kept = [] }) {
  const summary = h("p", { className: "form-error", role: "alert" });
  const unchanged = kept.length ? h("p", { className: "field-note" }, t("Too long to edit here, so kept as is: {names}.", { names: kept.join(", ") })) : null;
  const rows = new Map();
  for (const field of fields) {
    rows.set(field.name, makeRow(field, own(values, field.name) ?? field.default, own(notes, field.name)));
  }

  function showErrors(errors) {
    const elsewhere = Object.entries(errors).filter(([name]) => !rows.has(name)).map(([, text]) => text);
    summary.textContent = elsewhere.join(" ");
    let first = null;
    for (const [name, row] of rows) {
      row.showError(own(errors, name) ?? "");
      if (own(errors, name)) first ??= row;
    }
    if (first) first.focus();
    else if (elsewhere.length) summary.scrollIntoView({ block: "nearest" });
  }

  for (const [start, end] of spans(rows)) keepSpan(start, end);

  return {
    whenChanged(call) {
      const tell = () => call([...rows.values()].some((row) => row.changed()));
      for (const { node } of rows.values()) {
        node.addEventListener("input", tell);
        node.addEventListener("change", tell);
      }
      tell();
    },
    nodes: [summary, ...[...rows.values()].map((row) => row.node), unchanged],
    showErrors,
    values() {
      const read = Object.create(null); // "__proto__" is a name like any other
      const errors = Object.create(null);
      for (const [name, row] of rows) {
        const { value, error } = row.read();
        if (error) errors[name] = error;
        else read[name] = value;
      }
      for (const [start, end] of spans(rows)) {
        if (!errors[end.name] && end.element.value && start.element.value && end.element.value < start.element.value) errors[end.name] = t("End must be after start.");
      }
      showErrors(errors);
      return Object.keys(errors).length ? null : read;
    },
  };
}

/** The pairs of rows that are a beginning and an end: times of the same kind and zone. */
function spans(rows) {
  const found = [];
  for (const [name, start] of rows) {
    for (const [first, last] of ENDS) {
      const pattern = new RegExp(`(^|[_-])${first}(?=$|[_-])`, "i");
      const end = pattern.test(name) ? rows.get(name.replace(pattern, `$1${last}`)) : undefined;
      const alike = end && ["datetime-local", "date"].includes(start.element.type) && end.element.type === start.element.type && end.suffix === start.suffix;
      if (alike && end !== start) found.push([start, end]);
    }
  }
  return found;
}

/** Whoever moves the start moves the end with it, until they have changed the end themselves. */
function keepSpan(start, end) {
  const at = (element) => Date.parse(`${element.value}${element.type === "date" ? "T00:00" : ""}Z`);
  const length = at(end.element) - at(start.element);
  let own = !Number.isFinite(length) || length < 0;
  end.element.addEventListener("input", () => {
    own = true;
  });
  start.element.addEventListener("input", () => {
    const began = at(start.element);
    if (own || !Number.isFinite(began)) return;
    const moved = new Date(began + length).toISOString();
    end.element.value = moved.slice(0, end.element.type === "date" ? 10 : end.element.step === "1" ? 19 : 16);
    end.say(t("Moved with the start."));
    end.element.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

/** A value by name, and never something every object has, such as "constructor". */
function own(object, name) {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function makeRow(field, value, note) {
  const control = makeControl(field, value);
  const id = freshId("field");
  const error = h("p", { className: "field-error", id: `${id}-error` });
  const said = h("p", { className: "field-help", role: "status" });
  const help = field.help ? h("p", { className: "field-help", id: `${id}-help` }, field.help) : null;
  const warning = note ? h("p", { className: "field-note", id: `${id}-note` }, note) : null;
  control.element.id = id;
  control.element.setAttribute(
    "aria-describedby",
    [help && `${id}-help`, warning && `${id}-note`, `${id}-error`].filter(Boolean).join(" "),
  );
  if (field.required && control.kind === "input") control.element.setAttribute("aria-required", "true");

  const optional = field.required || control.kind === "checkbox" ? null : h("span", { className: "optional", "aria-hidden": "true" }, t("optional"));
  const group = control.kind === "group";
  const label = group ? h("span", { className: "label", id: `${id}-label` }, field.label) : h("label", { for: id }, field.label);
  if (group) control.element.setAttribute("aria-labelledby", `${id}-label`);
  const input = control.suffix
    ? h("div", { className: "with-suffix" }, control.element, h("span", { className: "suffix" }, control.suffix))
    : control.element;
  const node =
    control.kind === "checkbox"
      ? h("div", { className: "field checkbox" }, input, h("div", {}, label, help, warning, error))
      : h("div", { className: "field" }, h("div", { className: "label-line" }, label, optional), input, help, said, warning, error);

  return {
    node,
    name: field.name,
    element: control.element,
    suffix: control.suffix,
    changed: () => control.touched(),
    say(text) {
      said.textContent = text;
    },
    focus: () => control.element.focus(),
    showError(text) {
      error.textContent = text;
      if (text) control.element.setAttribute("aria-invalid", "true");
      else control.element.removeAttribute("aria-invalid");
    },
    read() {
      if (!control.touched()) {
        const missing = field.required && control.kind !== "checkbox" && control.isEmpty();
        return missing ? { error: t("Required") } : { value: control.original };
      }
      if (control.element.validity?.badInput) return { error: t("This can’t be read. Check what you typed.") };
      if (field.required && control.isEmpty()) return { error: t("Required") };
      return control.read();
    },
  };
}
