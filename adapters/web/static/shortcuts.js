// Keys that work anywhere on the page but where somebody types, and the list of them.

import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { INBOX } from "./inbox.js";
import { t } from "./language.js";

const AFTER_G = 1500;

function listed() {
  return [
    [["?"], t("Show these shortcuts")],
    [["N"], t("New conversation")],
    [["/"], t("Search conversations")],
    [["G", "I"], t("Go to the inbox")],
    [["A"], t("Approve the focused request")],
    [["R"], t("Reject the focused request")],
    [["E"], t("Edit the focused request")],
    [["Enter"], t("Send the message")],
    [["Shift", "Enter"], t("New line")],
    [["Esc"], t("Close a dialog or menu")],
  ];
}

/** `startNew()` begins a conversation; `search()` goes to the search box. */
export function wireShortcuts({ startNew, search }) {
  let g = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable], dialog") || document.querySelector("dialog[open]") || byId("app").hidden) return;
    const key = event.key.toLowerCase();
    const afterG = Date.now() - g < AFTER_G;
    g = key === "g" ? Date.now() : 0;
    if (key === "?") showShortcuts();
    else if (key === "/") search();
    else if (key === "n") startNew();
    else if (key === "i" && afterG) location.hash = INBOX;
    else return;
    event.preventDefault();
  });
}

export function showShortcuts() {
  const rows = listed().map(([keys, what]) => h("div", { className: "shortcut" }, h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, what)));
  return openDialog({ title: t("Keyboard shortcuts"), body: h("dl", { className: "shortcuts" }, rows), act: async () => true });
}
