// Addresses within the operators' console: "#console/turns?person=web%3Aana".

import { queryOf } from "./api.js";
import { byId, h } from "./dom.js";
import { t } from "./language.js";

const ROOT = "#console";
const FIRST = "waiting";

/** What of the console an address of the page names: `part`, the `id` within it and the `query`; null: none of it. */
export function consoleIn(hash) {
  if (hash !== ROOT && !hash.startsWith(`${ROOT}/`)) return null;
  const [path, query = ""] = hash.slice(ROOT.length + 1).split("?", 2);
  const [part, id = ""] = path.split("/", 2);
  return { path: hash, part: part || FIRST, id: decoded(id), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a part of the console. */
export function consoleAddress(part, query = {}, id = "") {
  return `${ROOT}/${part}${id ? `/${encodeURIComponent(id)}` : ""}${queryOf(query)}`;
}

/** A line with a link to the turn of a card, which operators alone have. `id`: of what the card shows. */
export function turnOfCard(id) {
  if (byId("console-link").hidden) return null;
  return h("p", { className: "small" }, h("a", { href: consoleAddress("turns", { card: id }) }, t("Open the turn in the console")));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a mangled address names nothing
  }
}
