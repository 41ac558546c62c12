// The message box.

import { wireAttachments } from "./attachments.js";
import { byId } from "./dom.js";
import { unsent } from "./unsent.js";

const TALLEST = 220;
const KEEP_AFTER = 300;

/**
 * Wires the box up; `send(text, files)` is called with what was typed, and the files beside it. Has `belongsTo(personId, threadId)`: what is typed
 * stays with that conversation of that person, also when the page is closed.
 */
export function wireComposer(send) {
  const box = byId("message");
  let open = null;
  let timer = null;
  const files = wireAttachments((isBusy) => {
    byId("send").disabled = isBusy;
  });
  const fit = () => {
    box.style.height = "auto";
    // While the box is hidden it has no height to measure: what it then got would cut its words when it is shown.
    if (box.scrollHeight) box.style.height = `${Math.min(box.scrollHeight, TALLEST)}px`;
  };
  const keep = () => {
    clearTimeout(timer);
    if (open) unsent.keepDraft(...open, box.value);
  };
  byId("composer").onsubmit = (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (files.isBusy() || (!text && files.isEmpty())) return;
    box.value = "";
    fit();
    keep();
    send(text, files.take());
    box.focus();
  };
  box.oninput = () => {
    fit();
    clearTimeout(timer);
    timer = setTimeout(keep, KEEP_AFTER);
  };
  box.onkeydown = (event) => {
    // While an input method composes a character, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
    event.preventDefault();
    byId("composer").requestSubmit();
  };
  addEventListener("pagehide", keep);
  return {
    belongsTo(personId, threadId) {
      if (open && open[0] === personId && open[1] === threadId) return;
      keep();
      files.clear();
      open = [personId, threadId];
      box.value = unsent.draft(personId, threadId);
      fit();
    },
    /** What is in the box belongs to nobody: it is emptied, and not kept. */
    forget() {
      clearTimeout(timer);
      open = null;
      files.clear();
      box.value = "";
      fit();
    },
  };
}
