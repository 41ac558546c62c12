// What is remembered of one: a list with a way to forget each, everything, or to be remembered no more.

import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { parts, t } from "./language.js";
import { short, time } from "./time.js";

/** The drawer's button opens the list. */
export function wireMemories() {
  byId("memories").onclick = async () => {
    const view = new MemoryList();
    const shown = openDialog({ title: t("Memory"), body: view.nodes, act: async () => true });
    await view.draw();
    await shown;
  };
}

class MemoryList {
  constructor() {
    this.said = h("p", { className: "muted", role: "status" });
    this.list = h("ul", { className: "grants", role: "list" });
    this.buttons = h("div", { className: "buttons" });
    this.nodes = [this.said, this.list, this.buttons];
  }

  async draw(before = "") {
    try {
      const { memories, remembers, on } = await api.memories();
      this.list.replaceChildren(...memories.map((memory) => this.item(memory)));
      this.said.textContent = [before, this.about(memories, remembers, on)].filter(Boolean).join(" ");
      const all = this.button(t("Forget all"), "danger", () => api.forgetAll());
      const off = this.button(t("Don’t remember me"), memories.length ? "danger" : "", () => api.stopRemembering());
      const again = this.button(t("Remember me"), "", () => api.startRemembering());
      this.buttons.replaceChildren(...(!on ? [] : remembers ? [...(memories.length ? [all] : []), off] : [again]));
    } catch (problem) {
      this.said.textContent = problem.message;
    }
  }

  about(memories, remembers, on) {
    if (!on) return t("Memory is turned off here.");
    if (!remembers) return t("Countersign doesn’t remember you.");
    return memories.length
      ? t("You said this. Countersign knows it in all your conversations.")
      : t("Nothing yet. Say “remember that …”, “call me …” or “I prefer …” in a conversation.");
  }

  item({ id, text, at }) {
    const forget = this.button(t("Forget"), "danger", () => api.forget(id));
    forget.setAttribute("aria-label", t("Forget “{text}”", { text }));
    return h("li", {}, h("q", { className: "memory" }, text), h("p", { className: "small muted" }, parts("Since {since}", { since: time(at, short) })), forget);
  }

  button(name, tone, act) {
    const button = h("button", { type: "button", className: `button ${tone}`.trim(), onclick: async () => {
      button.disabled = true;
      try {
        const { text } = await act();
        await this.draw(text);
      } catch (problem) {
        await this.draw(problem.message);
      }
    } }, name);
    return button;
  }
}
