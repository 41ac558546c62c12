// The message box.

import { byId } from "./dom.js";

const TALLEST = 220;

/** Wires the box up; `send(text)` is called with what was typed. Has `belongsTo(threadId)`: what is typed stays with it. */
export function wireComposer(send) {
  const box = byId("message");
  const typed = new Map();
  let open = "";
  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, TALLEST)}px`;
  };
  byId("composer").onsubmit = (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (!text) return;
    box.value = "";
    fit();
    send(text);
    box.focus();
  };
  box.oninput = fit;
  box.onkeydown = (event) => {
    // While an input method composes a character, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("composer").requestSubmit();
  };
  return {
    belongsTo(threadId) {
      if (threadId === open) return;
      if (box.value) typed.set(open, box.value);
      else typed.delete(open);
      open = threadId;
      box.value = typed.get(threadId) ?? "";
      fit();
    },
  };
}
