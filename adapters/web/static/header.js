// The header: who one is, how the tool servers are, and the notice about the model.

import { byId, h } from "./dom.js";

/** Draw what a session says. `become(personId)` switches, where people choose who they are. */
export function drawHeader(session, { become, refresh }) {
  byId("who").hidden = session.login !== "local";
  byId("own-name").hidden = session.login === "local";
  byId("own-name").replaceChildren(h("span", { className: "hidden-label" }, "Signed in as "), session.me.name);
  byId("own-name").title = session.me.name;
  const select = byId("you-are");
  select.replaceChildren(...session.people.map((person) => h("option", { value: person.person_id }, person.name)));
  select.value = session.me.person_id;
  select.onchange = () => become(select.value);

  byId("sign-out").hidden = !session.can_sign_out;
  drawFacts(session.facts);

  const button = byId("tools");
  const panel = byId("tools-panel");
  const close = (focusBack) => {
    if (panel.hidden) return;
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    if (focusBack) button.focus();
  };
  button.onclick = async () => {
    if (!panel.hidden) return close(true);
    panel.hidden = false;
    button.setAttribute("aria-expanded", "true");
    panel.focus();
    const session = await refresh().catch(() => null);
    if (session?.facts) drawFacts(session.facts);
  };
  panel.onkeydown = (event) => event.key === "Escape" && close(true);
  document.onpointerdown = (event) => {
    if (!panel.contains(event.target) && !button.contains(event.target)) close(false);
  };
}

/** Whether the server can be reached: else nobody knows how its tool servers are. */
export function drawReachable(is) {
  byId("tools").classList.toggle("unknown", !is);
  byId("tools").title = is ? "" : "The server cannot be reached, so how the tool servers are is not known.";
}

function drawFacts(facts) {
  byId("banner").textContent = facts.model_notice;
  byId("banner").hidden = !facts.model_notice;

  const up = (server) => server.tools > 0;
  const down = facts.tool_servers.filter((server) => !up(server));
  byId("tools").replaceChildren(
    h("span", { className: down.length ? "dot bad" : "dot good", "aria-hidden": "true" }),
    "Tools",
    h("span", { className: "hidden-label" }, down.length ? `, ${down.length} unavailable` : ""),
  );
  byId("tools-panel").replaceChildren(
    h("h2", {}, "Tool servers"),
    facts.tool_servers.length
      ? h("ul", { className: "servers" }, facts.tool_servers.map((server) => serverLine(server, up(server))))
      : h("p", { className: "muted" }, "None is configured."),
    h("p", { className: "muted small" }, "Mode: ", h("b", {}, facts.mode)),
  );
}

function serverLine(server, up) {
  return h(
    "li",
    {},
    h("span", { className: up ? "dot good" : "dot bad", "aria-hidden": "true" }),
    h("div", {}, h("b", {}, server.name), h("p", { className: "muted small" }, `${server.state} · ${server.tools} ${server.tools === 1 ? "tool" : "tools"}`),
      server.reason ? h("p", { className: "small" }, server.reason) : null),
  );
}
