// Dialogs: the browser's own, which keeps the focus inside and closes on Esc. The focus goes back to where it was, or
// to the card that the dialog was about where that has been drawn again meanwhile.

import { freshId, h } from "./dom.js";
import { t } from "./language.js";

/**
 * Opens a dialog. `body` are its nodes, `submit` the name of its button, `act()` what the button does: it returns
 * true when the dialog is to close; without `submit` it only shows. `ready` (a function that gets a setter) may keep the
 * button disabled. Closes on Esc and Cancel; Ctrl or Cmd with Enter submits. Resolves when it is closed.
 */
export function openDialog({ title, body, submit, tone = "primary", wide = false, ready = null, act = async () => true }) {
  const titleId = freshId("dialog-title");
  const opener = document.activeElement;
  const about = opener?.closest("[data-card]")?.dataset.card;
  const error = h("p", { className: "form-error", role: "alert" });
  const button = h("button", { className: `button ${tone}`, type: "submit", hidden: !submit }, submit ?? "");
  const cancel = h("button", { className: "button", type: "button", onclick: () => dialog.close() }, submit ? t("Cancel") : t("Close"));
  const heading = h("h2", { id: titleId, tabIndex: -1 }, title);
  const form = h(
    "form",
    { noValidate: true, className: "dialog-form" },
    heading,
    h("div", { className: "dialog-body" }, body, error),
    h("div", { className: "dialog-buttons" }, cancel, button),
  );
  const dialog = h("dialog", { className: wide ? "dialog wide" : "dialog", "aria-labelledby": titleId }, form);
  let enabled = true;
  let busy = false;
  // Not `disabled`: a screen reader is to find the button, and the focus is to stay on it while it works.
  const draw = () => {
    if (enabled && !busy) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
    if (busy) button.setAttribute("aria-busy", "true");
    else button.removeAttribute("aria-busy");
  };
  const handle = {
    enable(is) {
      enabled = is;
      draw();
    },
    name(text) {
      button.textContent = text;
    },
    entitle(text) {
      heading.textContent = text;
    },
  };

  form.onsubmit = async (event) => {
    event.preventDefault();
    if (!submit || busy || !enabled) return;
    busy = true;
    draw();
    error.textContent = "";
    try {
      if (await act()) dialog.close();
    } catch (problem) {
      error.textContent = problem.message;
      error.scrollIntoView({ block: "nearest" });
    } finally {
      busy = false;
      draw();
    }
  };
  dialog.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  };
  document.body.append(dialog);
  dialog.showModal();
  ready?.(handle);
  (form.querySelector(":is(input, select, textarea):not([data-later])") ?? form.querySelector("h2")).focus();
  return new Promise((resolve) => {
    dialog.onclose = () => {
      dialog.remove();
      giveBack(opener, about);
      resolve();
    };
  });
}

function giveBack(opener, about) {
  if (opener?.isConnected && opener !== document.body && opener.checkVisibility()) opener.focus({ preventScroll: true });
  else focusCard(about);
}

/** Puts the focus on the card of that id, or where people write, or in the inbox on what is next. */
export function focusCard(id) {
  const places = ["#message", "#inbox-lists article", "#inbox-lists :is(a, summary)", "#inbox-title", "#console"];
  if (id) places.unshift(`[data-card="${CSS.escape(id)}"]`);
  const found = places.flatMap((place) => [...document.querySelectorAll(place)]);
  found.find((element) => element.checkVisibility())?.focus({ preventScroll: true });
}
