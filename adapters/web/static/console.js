// The operators' console: which part of it is shown, and the way between them. Each part is fetched when it is opened.

import { consoleAddress, consoleIn } from "./console_address.js";
import { ongoing, problem } from "./console_parts.js";
import { h } from "./dom.js";
import { t } from "./language.js";

// Its name, and what draws it: `draw({ id, query, again })` resolves to the nodes of the part.
const PARTS = {
  waiting: [() => t("Waiting"), async () => (await import("./console_waiting.js")).waiting],
  turns: [() => t("Turns"), async () => (await import("./console_turns.js")).turns],
  turn: [() => t("Turn"), async () => (await import("./console_turn.js")).turn],
  audit: [() => t("Audit log"), async () => (await import("./console_audit.js")).audit],
  policy: [() => t("Policy"), async () => (await import("./console_policy.js")).policy],
  fatigue: [() => t("Fatigue"), async () => (await import("./console_fatigue.js")).fatigue],
  usage: [() => t("Usage"), async () => (await import("./console_usage.js")).usage],
  system: [() => t("System"), async () => (await import("./console_system.js")).system],
  stop: [() => t("Stop"), async () => (await import("./console_stop.js")).stop],
};
const LISTED = ["waiting", "turns", "audit", "policy", "fatigue", "usage", "system", "stop"];

export class Console {
  #place;
  #part = h("div", { className: "console-part" });
  #shown = 0;
  #last = null;

  constructor(place) {
    this.#place = place;
  }

  /** Show what an address names (`consoleIn`). `me`: who one is; nothing of what another person saw stays. */
  async show(wanted, me) {
    const mine = (this.#shown += 1);
    const isAnother = this.#last?.part !== wanted.part || this.#last.id !== wanted.id || this.#last.me !== me;
    this.#last = { part: wanted.part, id: wanted.id, me };
    await styled();
    if (mine !== this.#shown) return;
    if (isAnother) {
      this.#part = h("div", { className: "console-part" }, ongoing());
      this.#place.replaceChildren(navigation(wanted.part), this.#part);
      this.#place.scrollTo(0, 0);
      this.#place.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
      this.#place.focus({ preventScroll: true });
    }
    const part = this.#part;
    part.setAttribute("aria-busy", "true");
    const drawn = await this.#draw(wanted, me);
    if (mine !== this.#shown) return;
    part.removeAttribute("aria-busy");
    part.replaceChildren(...[drawn].flat(Infinity).filter(Boolean));
    // Whoever has come here reads on from the heading; what is only filtered anew keeps the focus.
    if (isAnother) part.querySelector("h2")?.focus({ preventScroll: true });
  }

  async #draw(wanted, me) {
    const [, drawing] = Object.hasOwn(PARTS, wanted.part) ? PARTS[wanted.part] : PARTS.waiting;
    try {
      const draw = await drawing();
      return await draw({ ...wanted, again: () => this.#again(wanted, me) });
    } catch (failure) {
      return problem(failure, () => this.#again(wanted, me));
    }
  }

  /** Draws it again, unless something else was chosen while an answer was awaited. */
  async #again(wanted, me) {
    if (consoleIn(location.hash)?.path === wanted.path) await this.show(wanted, me);
  }
}

function navigation(current) {
  const links = LISTED.map((part) => h("a", { href: consoleAddress(part), "aria-current": part === current || (part === "turns" && current === "turn") ? "page" : null, className: part === "stop" ? "stop" : "" }, PARTS[part][0]()));
  return h("nav", { className: "console-nav", "aria-label": t("Console") }, links);
}

let style = null;

/** Resolves when the console's own style sheet is there, or cannot be had. */
function styled() {
  style ??= new Promise((resolve) => {
    const link = h("link", { rel: "stylesheet", href: new URL("./console.css", import.meta.url), onload: resolve, onerror: resolve });
    document.head.append(link);
  });
  return style;
}
