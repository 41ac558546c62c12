// The header: who one is, how the tool servers are, what can be done with the conversation; and the notices below it.

import { byId, h, icon, ICONS } from "./dom.js";
import { n, parts, t } from "./language.js";
import { settings } from "./settings.js";

const LOOK_AGAIN_AFTER = 10_000;

/** Draw what a session says. `become(personId)` switches, where people choose who they are. */
export function drawHeader(session, { become, refresh }) {
  byId("who").hidden = session.login !== "local";
  byId("own-name").hidden = session.login === "local";
  byId("own-name").replaceChildren(h("span", { className: "hidden-label" }, t("Signed in as"), " "), session.me.name);
  byId("own-name").title = session.me.name;
  const select = byId("you-are");
  select.replaceChildren(...session.people.map((person) => h("option", { value: person.person_id }, person.name)));
  select.value = session.me.person_id;
  select.onchange = () => become(select.value);

  byId("sign-out").hidden = !session.can_sign_out;
  const look = async () => {
    clearTimeout(again);
    const session = document.hidden ? null : await refresh().catch(() => null);
    if (session?.facts) drawFacts(session.facts, look);
    else again = setTimeout(look, LOOK_AGAIN_AFTER);
  };
  drawFacts(session.facts, look);

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
    await look();
  };
  panel.onkeydown = (event) => event.key === "Escape" && close(true);
  document.onpointerdown = (event) => {
    if (!panel.contains(event.target) && !button.contains(event.target)) close(false);
    if (!byId("more").parentElement.contains(event.target)) closeMenu(false);
  };
}

/** The conversation's menu; `items` has what each of its buttons does, by id. */
export function wireMenu(items) {
  const menu = byId("more-menu");
  const buttons = Object.keys(items).map(byId);
  byId("more").onclick = () => {
    if (!menu.hidden) return closeMenu(true);
    menu.hidden = false;
    menu.classList.remove("leftwards");
    menu.classList.toggle("leftwards", menu.getBoundingClientRect().right > innerWidth - 8);
    byId("more").setAttribute("aria-expanded", "true");
    buttons[0].focus();
  };
  menu.onkeydown = (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + buttons.length, Home: 0, End: buttons.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") closeMenu(event.key === "Escape");
    if (to === undefined) return;
    event.preventDefault();
    buttons[to % buttons.length].focus();
  };
  for (const [id, act] of Object.entries(items)) {
    byId(id).onclick = () => {
      closeMenu(true);
      act();
    };
  }
}

function closeMenu(focusBack) {
  if (byId("more-menu").hidden) return;
  byId("more-menu").hidden = true;
  byId("more").setAttribute("aria-expanded", "false");
  if (focusBack) byId("more").focus();
}

/** Whether the server can be reached: else nobody knows how its tool servers are. */
export function drawReachable(is) {
  byId("tools").classList.toggle("unknown", !is);
  byId("tools").title = is ? "" : t("Can’t reach Countersign, so the state of the tools is unknown.");
  byId("offline").hidden = is;
}

/** Whether an operator has stopped everything. */
export function drawStopped(is) {
  byId("stopped").hidden = !is;
}

/** The steps of setting the server up, to whoever does that, until all are done or they have seen enough of it. */
export function drawSetup(steps, isWanted) {
  const words = {
    model: [t("Connect a model"), t("Set OPENAI_API_KEY")],
    tools: [t("Connect tools"), t("Add servers to mcp.json")],
    slack: [t("Connect Slack"), t("Set SLACK_BOT_TOKEN and SLACK_APP_TOKEN")],
    teams: [t("Connect Teams"), t("Set MICROSOFT_APP_ID, MICROSOFT_APP_PASSWORD, MICROSOFT_APP_TENANT_ID and PUBLIC_URL")],
  };
  const line = ({ step, done }) => h("li", { className: done ? "done" : "" }, icon(done ? ICONS.check : "M10 4a6 6 0 1 1 0 12a6 6 0 0 1 0-12z"), h("span", {}, words[step][0], h("span", { className: "hidden-label" }, done ? t("(done)") : t("(not yet)"))), done ? null : h("span", { className: "muted small" }, words[step][1]));
  byId("setup-steps").replaceChildren(...steps.map(line));
  byId("setup").hidden = !isWanted || !steps.some(({ done }) => !done) || settings.isDismissed("setup");
  byId("setup-dismiss").onclick = () => {
    settings.dismiss("setup");
    byId("setup").hidden = true;
    byId("message").focus();
  };
}

let again = null;

function drawFacts(facts, lookAgain) {
  byId("banner-text").textContent = facts.model_notice;
  byId("banner").hidden = !facts.model_notice || settings.isDismissed("banner");
  byId("banner-dismiss").onclick = () => {
    settings.dismiss("banner");
    byId("banner").hidden = true;
    byId("message").focus();
  };

  const up = (server) => server.tools > 0;
  const down = facts.tool_servers.filter((server) => !up(server));
  byId("tools").replaceChildren(h("span", { className: down.length ? "dot bad" : "dot good", "aria-hidden": "true" }), h("span", {}, t("Tools")));
  if (down.length) byId("tools").setAttribute("aria-label", n("Tools, {count} unavailable", "Tools, {count} unavailable", down.length));
  else byId("tools").removeAttribute("aria-label");
  // They are connected a moment after the server begins to listen, and come back by themselves.
  clearTimeout(again);
  if (down.length) again = setTimeout(lookAgain, LOOK_AGAIN_AFTER);
  byId("tools-panel").replaceChildren(
    h("h2", {}, t("Tool servers")),
    facts.tool_servers.length
      ? h("ul", { className: "servers" }, facts.tool_servers.map((server) => serverLine(server, up(server))))
      : h("p", { className: "muted" }, t("No tools configured")),
    h("p", { className: "muted small" }, parts("Mode: {mode}", { mode: h("b", {}, facts.mode) })),
  );
}

function serverLine(server, up) {
  const states = {
    starting: t("Starting"),
    up: t("Available"),
    down: t("Unavailable"),
    misconfigured: t("Misconfigured"),
    closed: t("Stopped"),
    unsupported: t("Not supported"),
  };
  return h(
    "li",
    {},
    h("span", { className: up ? "dot good" : "dot bad", "aria-hidden": "true" }),
    h("div", {}, h("b", {}, server.name), h("p", { className: "muted small" }, [states[server.state] ?? server.state, n("{count} tool", "{count} tools", server.tools)].join(" · ")),
      server.reason ? h("p", { className: "small" }, server.reason) : null),
  );
}
