// What one always allows oneself: a list with a way to end each.

import { api } from "./api.js";
import { callArguments, what } from "./card_parts.js";
import { showAll } from "./deciding.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { short, time } from "./time.js";

/** The header's button opens the list. */
export function wireGrants() {
  byId("grants").onclick = async () => {
    const list = h("ul", { className: "grants", role: "list" });
    const said = h("p", { className: "muted", role: "status" });
    const shown = openDialog({ title: "Always allowed", body: [said, list], act: async () => true });
    await draw(list, said);
    await shown;
  };
}

async function draw(list, said) {
  try {
    const { grants } = await api.grants();
    list.replaceChildren(...grants.map((grant) => item(grant, list, said)));
    said.textContent = grants.length ? "These calls of yours run without asking you." : "Nothing: every call that needs you asks you.";
  } catch (problem) {
    said.textContent = problem.message;
  }
}

function item(grant, list, said) {
  const revoke = h("button", { type: "button", className: "button danger", onclick: end }, "Revoke");
  async function end() {
    revoke.disabled = true;
    try {
      await api.revoke(grant.id);
      await draw(list, said);
    } catch (problem) {
      said.textContent = problem.message;
      revoke.disabled = false;
    }
  }
  return h("li", {}, what(grant), callArguments(grant, null, () => showAll(grant.id, "grants")).node, h("p", { className: "small muted" }, ...(grant.client ? ["Through ", h("bdi", {}, grant.client), ", until "] : ["Until "]), time(grant.until, short)), revoke);
}
