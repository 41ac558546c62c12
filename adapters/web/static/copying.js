// Copying to the clipboard, with a word on whether it worked.

import { h, icon, ICONS } from "./dom.js";
import { t } from "./language.js";

const FEEDBACK_FOR = 2000;

/** A button that copies what `text()` returns; `label` says what that is. */
export function copyButton(text, label) {
  const said = h("span", { className: "copy-said", role: "status" });
  const button = h("button", { type: "button", className: "copy", title: label, "aria-label": label }, icon(ICONS.copy));
  let timer = null;
  button.onclick = async () => {
    clearTimeout(timer);
    const copied = await copy(text());
    button.classList.toggle("copied", copied);
    said.textContent = copied ? t("Copied") : t("Couldn’t copy");
    timer = setTimeout(() => {
      button.classList.remove("copied");
      said.textContent = "";
    }, FEEDBACK_FOR);
  };
  return h("span", { className: "copying" }, button, said);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // the page may be served over plain HTTP, where there is no clipboard to write to
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const box = h("textarea", { className: "hidden-label", "aria-hidden": "true", tabIndex: -1 });
  box.value = text;
  (focused?.closest("dialog") ?? document.body).append(box);
  box.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } finally {
    box.remove();
    focused?.focus({ preventScroll: true });
  }
  return done;
}
