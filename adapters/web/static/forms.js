// Typed inputs of a form. What nobody touched goes back exactly as it came; mistakes are shown beside their field.

import { freshId, h } from "./dom.js";
import { makeControl } from "./controls.js";

/**
 * A form's inputs for `fields` and `values` (by name); `kept` names what is too long to be changed here. Has `nodes` to show, `values()` to read (null when something
 * is wrong, and then it is shown), and `showErrors(errors)` for what the server found (by name; "" for the whole).
 */
export function makeForm({ fields, values = {}, notes = {}, kept = [] }) {
  const summary = h("p", { className: "form-error", role: "alert" });
  const unchanged = kept.length ? h("p", { className: "field-note" }, `Too long to be changed here, and so left as it is: ${kept.join(", ")}.`) : null;
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

  return {
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
      showErrors(errors);
      return Object.keys(errors).length ? null : read;
    },
  };
}

/** A value by name, and never something every object has, such as "constructor". */
function own(object, name) {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function makeRow(field, value, note) {
  const control = makeControl(field, value);
  const id = freshId("field");
  const error = h("p", { className: "field-error", id: `${id}-error` });
  const help = field.help ? h("p", { className: "field-help", id: `${id}-help` }, field.help) : null;
  const warning = note ? h("p", { className: "field-note", id: `${id}-note` }, note) : null;
  control.element.id = id;
  control.element.setAttribute(
    "aria-describedby",
    [help && `${id}-help`, warning && `${id}-note`, `${id}-error`].filter(Boolean).join(" "),
  );
  if (field.required && control.kind === "input") control.element.setAttribute("aria-required", "true");

  const optional = field.required || control.kind === "checkbox" ? null : h("span", { className: "optional", "aria-hidden": "true" }, " optional");
  const group = control.kind === "group";
  const label = group ? h("span", { className: "label", id: `${id}-label` }, field.label) : h("label", { for: id }, field.label);
  if (group) control.element.setAttribute("aria-labelledby", `${id}-label`);
  const input = control.suffix
    ? h("div", { className: "with-suffix" }, control.element, h("span", { className: "suffix" }, control.suffix))
    : control.element;
  const node =
    control.kind === "checkbox"
      ? h("div", { className: "field checkbox" }, input, h("div", {}, label, help, warning, error))
      : h("div", { className: "field" }, h("div", { className: "label-line" }, label, optional), input, help, warning, error);

  return {
    node,
    focus: () => control.element.focus(),
    showError(text) {
      error.textContent = text;
      if (text) control.element.setAttribute("aria-invalid", "true");
      else control.element.removeAttribute("aria-invalid");
    },
    read() {
      if (!control.touched()) {
        const missing = field.required && control.kind !== "checkbox" && control.isEmpty();
        return missing ? { error: "This is needed." } : { value: control.original };
      }
      if (control.element.validity?.badInput) return { error: "This cannot be read. Please check what you typed." };
      if (field.required && control.isEmpty()) return { error: "This is needed." };
      return control.read();
    },
  };
}
