// Dialogs: the browser's own, which keeps the focus inside, closes on Esc and gives the focus back.

import { freshId, h } from "./dom.js";

/**
 * Opens a dialog. `body` are its nodes, `submit` the name of its button, `act()` what the button does: it returns
 * true when the dialog is to close; without `submit` it only shows. Closes on Esc and Cancel. Resolves when it is closed.
 */
export function openDialog({ title, body, submit, tone = "primary", act }) {
  const titleId = freshId("dialog-title");
  const error = h("p", { className: "form-error", role: "alert" });
  const button = h("button", { className: `button ${tone}`, type: "submit", hidden: !submit }, submit ?? "");
  const cancel = h("button", { className: "button", type: "button", onclick: () => dialog.close() }, submit ? "Cancel" : "Close");
  const form = h(
    "form",
    { noValidate: true, className: "dialog-form" },
    h("h2", { id: titleId }, title),
    h("div", { className: "dialog-body" }, body, error),
    h("div", { className: "dialog-buttons" }, cancel, button),
  );
  const dialog = h("dialog", { className: "dialog", "aria-labelledby": titleId }, form);

  form.onsubmit = async (event) => {
    event.preventDefault();
    if (!submit || button.disabled) return;
    button.disabled = true;
    error.textContent = "";
    try {
      if (await act()) dialog.close();
    } catch (problem) {
      error.textContent = problem.message;
      error.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  };
  document.body.append(dialog);
  dialog.showModal();
  form.querySelector("input, select, textarea")?.focus();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      dialog.remove();
      resolve();
    };
  });
}
