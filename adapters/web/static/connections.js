// One's accounts at services: a list with a way to disconnect each.

import { api } from "./api.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { short, time } from "./time.js";

/** The button below the conversations opens the list. */
export function wireConnections() {
  byId("connections").onclick = async () => {
    const list = h("ul", { className: "grants", role: "list" });
    const said = h("p", { className: "muted", role: "status" });
    const shown = openDialog({ title: "Connected accounts", body: [said, list], act: async () => true });
    await draw(list, said);
    await shown;
  };
}

async function draw(list, said, before = "") {
  try {
    const { connections } = await api.connections();
    list.replaceChildren(...connections.map((connection) => item(connection, list, said)));
    const all = connections.length
      ? "Tools use these accounts for what you ask for, and for nobody else."
      : "None. When a tool needs an account of yours, it asks you to sign in.";
    said.textContent = [before, all].filter(Boolean).join(" ");
  } catch (problem) {
    said.textContent = problem.message;
  }
}

function item(connection, list, said) {
  const { service, account, scopes, since, used_at: used } = connection;
  const end = h("button", { type: "button", className: "button danger", "aria-label": `Disconnect ${service}`, onclick: ask }, "Disconnect");
  const buttons = h("div", { className: "buttons" }, end);

  function ask() {
    const yes = h("button", { type: "button", className: "button danger", onclick: () => disconnect(yes) }, `Yes, disconnect ${service}`);
    const no = h("button", { type: "button", className: "button", onclick: () => { buttons.replaceChildren(end); end.focus(); } }, "Keep it");
    buttons.replaceChildren(yes, no);
    yes.focus();
  }

  async function disconnect(button) {
    button.disabled = true;
    try {
      const { text } = await api.disconnect(connection.id);
      await draw(list, said, text);
    } catch (problem) {
      await draw(list, said, problem.message);
    }
  }

  return h(
    "li",
    {},
    h("div", { className: "what" }, h("span", { className: "what-name" }, h("b", {}, service)), account ? h("span", { className: "what-title account" }, account) : null),
    connection.working ? null : h("p", { className: "small" }, "It does not work any more: the next call that needs it asks you to sign in again."),
    scopes.length ? h("p", { className: "small muted" }, "Allowed: ", scopes.join(", ")) : null,
    h("p", { className: "small muted" }, "Since ", time(since, short), used === null ? null : [", last used ", time(used, short)]),
    buttons,
  );
}
