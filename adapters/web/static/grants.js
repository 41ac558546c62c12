// One's standing approvals: a list with a way to end each.

import { api } from "./api.js";
import { callArguments, what } from "./card_parts.js";
import { showAll } from "./deciding.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { parts, t } from "./language.js";
import { short, time } from "./time.js";

function expires(grant) {
  const when = time(grant.until, short);
  return grant.client ? parts("Through {client}, expires {when}", { client: h("bdi", {}, grant.client), when }) : parts("Expires {when}", { when });
}

/** The drawer's button opens the list. */
export function wireGrants() {
  byId("grants").onclick = async () => {
    const list = h("ul", { className: "grants", role: "list" });
    const said = h("p", { className: "muted", role: "status" });
    const shown = openDialog({ title: t("Standing approvals"), body: [said, list], act: async () => true });
    await draw(list, said);
    await shown;
  };
}

async function draw(list, said) {
  try {
    const { grants } = await api.grants();
    list.replaceChildren(...grants.map((grant) => item(grant, list, said)));
    said.textContent = grants.length ? t("These requests of yours run without asking.") : t("No standing approvals");
  } catch (problem) {
    said.textContent = problem.message;
  }
}

function item(grant, list, said) {
  const revoke = h("button", { type: "button", className: "button danger", onclick: end }, t("Revoke"));
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
  return h("li", {}, what(grant), callArguments(grant, null, () => showAll(grant.id, "grants")).node, h("p", { className: "small muted" }, expires(grant)), revoke);
}
