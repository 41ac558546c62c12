// One's accounts at services: a list with a way to disconnect each, and the services at which one can be connected.

import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { parts, t } from "./language.js";
import { putLink } from "./sign_in_card.js";
import { short, time } from "./time.js";

const BROKEN = {
  expired: () => t("Access expired. Sign in again when asked."),
  revoked: () => t("Access was revoked. Sign in again when asked."),
  error: () => t("Access stopped working. Sign in again when asked."),
};

/** The button below the conversations opens the list. */
export function wireConnections() {
  byId("connections").onclick = async () => {
    const view = new Accounts();
    const shown = openDialog({ title: t("Connected accounts"), body: view.nodes, act: async () => true });
    await view.draw();
    // Whoever comes back from signing in sees what came of it.
    const again = () => view.draw();
    window.addEventListener("focus", again);
    await shown;
    window.removeEventListener("focus", again);
  };
}

class Accounts {
  constructor() {
    this.said = h("p", { className: "muted", role: "status" });
    this.list = h("ul", { className: "grants", role: "list" });
    this.code = this.codeForm();
    this.heading = h("h3", { className: "small", hidden: true }, t("Connect an account"));
    this.services = h("ul", { className: "grants services", role: "list" });
    this.offered = new Map();
    this.nodes = [this.said, this.code, this.list, this.heading, this.services];
  }

  async draw(before = "") {
    try {
      const { connections, services, code_wanted: codeWanted } = await api.connections();
      this.list.replaceChildren(...connections.map((connection) => this.connected(connection)));
      const all = connections.length
        ? t("Tools use these accounts for your requests only.")
        : t("No connected accounts. A tool that needs one asks you to sign in.");
      this.said.textContent = [before, all].filter(Boolean).join(" ");
      this.code.hidden = !codeWanted;
      this.heading.hidden = !services.length;
      // Each stays the same node, with the link that one has got.
      const known = this.offered;
      this.offered = new Map(services.map((service) => [service.provider, known.get(service.provider) ?? this.offer(service)]));
      this.services.replaceChildren(...this.offered.values());
    } catch (problem) {
      this.said.textContent = problem.message;
    }
  }

  connected(connection) {
    const { service, account, scopes, since, status, used_at: used } = connection;
    const end = h("button", { type: "button", className: "button danger", "aria-label": t("Disconnect {service}", { service }), onclick: ask }, t("Disconnect"));
    const buttons = h("div", { className: "buttons" }, end);
    const view = this;

    function ask() {
      const yes = h("button", { type: "button", className: "button danger", onclick: () => disconnect(yes) }, t("Yes, disconnect {service}", { service }));
      const no = h("button", { type: "button", className: "button", onclick: () => { buttons.replaceChildren(end); end.focus(); } }, t("Keep it"));
      buttons.replaceChildren(yes, no);
      yes.focus();
    }

    async function disconnect(button) {
      button.disabled = true;
      try {
        const { text } = await api.disconnect(connection.id);
        await view.draw(text);
      } catch (problem) {
        await view.draw(problem.message);
      }
    }

    return h(
      "li",
      {},
      heading(service, account),
      status === "active" ? null : h("p", { className: "small" }, (BROKEN[status] ?? BROKEN.error)()),
      scopes.length ? h("p", { className: "small muted" }, t("Allowed: {scopes}", { scopes: scopes.join(", ") })) : null,
      h("p", { className: "small muted" }, used === null ? parts("Since {since}", { since: time(since, short) }) : parts("Since {since}, last used {used}", { since: time(since, short), used: time(used, short) })),
      buttons,
    );
  }

  offer({ provider, service, scopes }) {
    const place = h("p", { className: "sign-in-link", role: "status" });
    const button = h("button", { type: "button", className: "button", onclick: getLink }, t("Connect {service}", { service }));
    async function getLink() {
      button.disabled = true;
      try {
        const { url } = await api.connectLink(provider);
        putLink(place, url, true);
        place.querySelector("a")?.focus();
      } catch (problem) {
        place.textContent = problem.message;
      } finally {
        button.disabled = false;
      }
    }
    return h("li", {}, button, scopes.length ? h("p", { className: "small muted" }, t("Asks for: {scopes}", { scopes: scopes.join(", ") })) : null, place);
  }

  codeForm() {
    const box = h("input", { type: "text", id: "connection-code", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: false, maxLength: 40, placeholder: "XXXX-XXXX" });
    const wrong = h("p", { className: "field-error", role: "alert" });
    const enter = async () => {
      wrong.textContent = "";
      try {
        if (!box.value.trim()) throw new Error(t("Type the code."));
        const { text } = await api.enterConnectionCode(box.value.trim());
        box.value = "";
        await this.draw(text);
      } catch (problem) {
        wrong.textContent = problem.message;
      }
    };
    box.onkeydown = (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      enter();
    };
    return h(
      "div",
      { className: "field", hidden: true },
      h("label", { for: "connection-code" }, t("Your browser shows a code. Enter it here:")),
      h("div", { className: "with-suffix" }, box, h("button", { type: "button", className: "button primary", onclick: enter }, t("Enter code"))),
      wrong,
      h("p", { className: "field-help" }, t("Only enter the code that your own browser shows, never one that someone sent you.")),
    );
  }
}

function heading(service, account) {
  return h("div", { className: "what" }, h("span", { className: "what-name" }, h("b", {}, service)), account ? h("span", { className: "what-title account" }, account) : null);
}
