// The card of a sign-in: a link that is fetched for its owner alone, when they ask for it.

import { api } from "./api.js";
import { actions, card, chip, lateAnswer, throughProgram } from "./card_parts.js";
import { turnOfCard } from "./console_address.js";
import { openDialog } from "./dialogs.js";
import { h, ICONS } from "./dom.js";
import { parts, t } from "./language.js";
import { anchor, webAddress } from "./markdown_inline.js";

function ending(status) {
  switch (status) {
    case "done":
      return ["good", t("Signed in")];
    case "declined":
      return ["bad", t("Not now")];
    case "expired":
      return ["quiet", t("Expired")];
    default:
      return ["quiet", t("Replaced")];
  }
}

/**
 * Where the service is known, the server itself sees when its account is connected. Of a link that a server gave, only
 * its owner can say when they are through.
 */
export function signInCard(view, { me, memory }) {
  const open = view.status === "open";
  const where = view.service || view.server;
  const [tone, word] = open ? ["asking", ""] : ending(view.status);
  let foot = null;
  if (open && view.owner_id === me) foot = ownersPart(view, memory);
  else if (open) foot = h("p", { className: "muted" }, t("Waiting for {name} to sign in.", { name: view.owner }));
  return card({
    id: view.id,
    kind: open ? "sign-in" : "sign-in settled",
    tone,
    sign: ICONS.key,
    heading: t("Sign in to {service}", { service: where }),
    context: view.service && view.service !== view.server ? h("p", { className: "card-context" }, t("For the tool server {server}", { server: view.server })) : null,
    side: open ? null : chip(tone, word),
    body: [throughProgram(view.owner, view), foot, turnOfCard(view.id), open ? null : lateAnswer(memory)],
  });
}

function ownersPart(view, memory) {
  const reply = (done) => () => api.signInReply(view.id, done);
  const place = h("p", { className: "sign-in-link" });
  const said = view.service
    ? t("This needs your {service} account. It is used for you alone, and nobody else sees the link.", { service: view.service })
    : view.host
      ? t("{server} asks you to open a link to {host}. Nobody else sees it.", { server: view.server, host: view.host })
      : t("{server} asks you to open a link. Nobody else sees it.", { server: view.server });
  const link = [view.code_wanted ? t("Get a new link") : t("Sign in"), view.code_wanted ? "" : "primary", () => showLink(view, place)];
  const buttons = view.code_wanted ? [[t("Enter code"), "primary", () => enterCode(view)], link] : [link];
  if (!view.service) buttons.push([t("I have signed in"), "", reply(true)]);
  buttons.push([t("Not now"), "", reply(false)]);
  const code = view.code_wanted ? h("p", {}, t("Your browser shows a code. Enter it here, or send it as a message.")) : null;
  return [h("p", {}, said), code, actions(buttons, memory, { before: place })];
}

/** Each click gets another one: a link lives for a quarter of an hour only. */
async function showLink(view, place) {
  const { url, message } = await api.signInLink(view.id);
  const address = putLink(place, url, Boolean(view.service));
  // What the server says of its link is its owner's alone, so it is on no card; its own words, so never without its name.
  if (address && message) place.append(h("span", { className: "sign-in-said muted" }, t("{server} says: {message}", { server: view.server, message })));
  place.querySelector("a")?.focus();
  return null;
}

/** Puts a link there, and returns its address; `ours`: it leads to the server of this page. */
export function putLink(place, url, ours) {
  const address = webAddress(url);
  if (!address) place.textContent = t("This sign-in link can’t be opened: it is not a web address.");
  // Browsers tell a page's cookies to its own host alone, and it is they that prove who opens the link.
  else if (ours && address.host !== location.host) place.replaceChildren(...parts(t("Sign-ins work at another address of this page. {link} and get your link there."), { link: h("a", { href: `${address.origin}/${location.hash}` }, t("Continue at {host}", { host: address.host })) }));
  else place.replaceChildren(...parts(t("{link} in a new tab."), { link: anchor(address, t("Open the sign-in page"), "") }));
  return address;
}

async function enterCode(view) {
  const box = h("input", { type: "text", id: "sign-in-code", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: false, maxLength: 40, placeholder: "XXXX-XXXX" });
  const help = t("The code that your own browser shows. Never enter one that someone sent you.");
  let said = null;
  await openDialog({
    title: t("Connect {service}", { service: view.service }),
    submit: t("Connect"),
    body: h("div", { className: "field" }, h("label", { for: "sign-in-code" }, t("Code")), box, h("p", { className: "field-help" }, help)),
    async act() {
      if (!box.value.trim()) throw new Error(t("Please enter the code."));
      try {
        said = await api.enterCode(view.id, box.value.trim());
      } catch (problem) {
        throw new Error(problem.body?.errors?.code ?? problem.message);
      }
      return true;
    },
  });
  return said;
}
