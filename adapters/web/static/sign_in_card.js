// The card of a sign-in: a link that is fetched for its owner alone, when they ask for it.

import { api } from "./api.js";
import { actions, card, chip, lateAnswer, throughProgram } from "./card_parts.js";
import { openDialog } from "./dialogs.js";
import { h, ICONS } from "./dom.js";
import { anchor, webAddress } from "./markdown_inline.js";

const ENDS = {
  done: ["good", "Signed in"],
  declined: ["bad", "Not now"],
  expired: ["quiet", "Expired"],
  superseded: ["quiet", "Superseded"],
};

/**
 * Where the service is known, the server itself sees when its account is connected. Of a link that a server gave, only
 * its owner can say when they are through.
 */
export function signInCard(view, { me, memory }) {
  const open = view.status === "open";
  const mine = view.owner_id === me;
  let foot = null;
  if (open && mine) foot = ownersPart(view, memory);
  else if (open) foot = h("p", { className: "muted" }, `Waiting for ${view.owner} to sign in.`);
  return card({
    kind: "sign-in",
    tone: open ? "asking" : ENDS[view.status][0],
    sign: ICONS.key,
    label: "Sign-in needed",
    heading: h("div", { className: "what" }, h("span", { className: "what-name" }, h("b", {}, view.server)), view.service && view.service !== view.server ? h("span", { className: "what-title" }, view.service) : null),
    side: open ? null : chip(...ENDS[view.status]),
    body: [throughProgram(view.owner, view), foot, open ? null : lateAnswer(memory)],
  });
}

function ownersPart(view, memory) {
  const reply = (done) => () => api.signInReply(view.id, done);
  const place = h("p", { className: "sign-in-link" });
  const said = view.service
    ? `To go on, I need your ${view.service} account. What I do with it, I do for you alone, and nobody else sees the link.`
    : `${view.server} wants you to open a link${view.host ? ` to ${view.host}` : ""}. Nobody else sees it.`;
  const link = [view.code_wanted ? "Get a new link" : "Get my link", view.code_wanted ? "" : "primary", () => showLink(view, place)];
  const buttons = view.code_wanted ? [["Enter code", "primary", () => enterCode(view)], link] : [link];
  if (!view.service) buttons.push(["I have signed in", "", reply(true)]);
  buttons.push(["Not now", "", reply(false)]);
  const code = view.code_wanted ? h("p", {}, "Your browser shows a code now. Enter it here, or send it as a message.") : null;
  return [h("p", {}, said), code, actions(buttons, memory, place)];
}

/** Each click asks anew: a link lives for a quarter of an hour only. */
async function showLink(view, place) {
  const { url, message } = await api.signInLink(view.id);
  const address = putLink(place, url, Boolean(view.service));
  // What the server says of its link is its owner's alone, so it is on no card; its own words, so never without its name.
  if (address && message) place.append(h("span", { className: "sign-in-said muted" }, `${view.server} says: ${message}`));
  place.querySelector("a")?.focus();
  return null;
}

/** Puts a link there, and returns its address; `ours`: it leads to the server of this page. */
export function putLink(place, url, ours) {
  const address = webAddress(url);
  if (!address) place.textContent = "The link of this sign-in cannot be opened: it is no web address.";
  // Browsers tell a page's cookies to its own host alone, and it is they that prove who opens the link.
  else if (ours && address.host !== location.host) place.replaceChildren("You are known only to the page that you are on, and sign-ins are at another address. ", h("a", { href: `${address.origin}/${location.hash}` }, `Go on at ${address.host}`), " and get your link there.");
  else place.replaceChildren(anchor(address, "Open the sign-in page", "Open the sign-in page"), " in a new tab.");
  return address;
}

async function enterCode(view) {
  const box = h("input", { type: "text", id: "sign-in-code", autocomplete: "one-time-code", autocapitalize: "characters", spellcheck: false, maxLength: 40, placeholder: "XXXX-XXXX" });
  const help = "The code that your own browser shows. Never enter one that somebody sent you.";
  let said = null;
  await openDialog({
    title: `Connect ${view.service}`,
    submit: "Connect",
    body: h("div", { className: "field" }, h("label", { for: "sign-in-code" }, "Code"), box, h("p", { className: "field-help" }, help)),
    async act() {
      if (!box.value.trim()) throw new Error("Please type the code.");
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
