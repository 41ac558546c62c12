// The inside of a line of Markdown: code, bold, italics, strike-through, links. Long lines cost little: a mark whose
// end was looked for in vain once is not looked for again.

import { h } from "./dom.js";

const DEEPEST = 6;
const MARKS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "del"],
  ["*", "em"],
  ["_", "em"],
];
const WORD = /[\p{L}\p{N}]/u;
const ADDRESS = /^https?:\/\/[^\s<>"'`|\\^{}]+/i;
const CITATION = /^\[([1-9]\d{0,2})\]/;
const ESCAPABLE = /[!-/:-@[-`{-~]/;

/** Nodes for one line. `cite(number)`: the node of a citation like [1]; null: that is text. */
export function inline(text, cite, depth = 0) {
  const nodes = [];
  const unclosed = new Set();
  let plain = "";
  const take = (node) => {
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(node);
  };
  let at = 0;
  while (at < text.length) {
    const found = depth < DEEPEST ? special(text, at, { cite, depth, unclosed }) : null;
    if (found) {
      take(found.node);
      at = found.end;
    } else if (text[at] === "\\" && ESCAPABLE.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

function special(text, at, { cite, depth, unclosed }) {
  switch (text[at]) {
    case "`":
      return code(text, at);
    case "*":
    case "_":
    case "~":
      return marked(text, at, { cite, depth, unclosed });
    case "!":
      // An image is shown as a link to it: nothing is loaded that nobody asked for.
      return text[at + 1] === "[" ? link(text, at + 1) : null;
    case "[":
      return link(text, at) ?? citation(text, at, cite);
    case "<":
      return angled(text, at);
    case "h":
    case "H":
      return WORD.test(text[at - 1] ?? "") ? null : address(text, at);
    default:
      return null;
  }
}

function code(text, at) {
  let ticks = 1;
  while (text[at + ticks] === "`") ticks += 1;
  const end = text.indexOf("`".repeat(ticks), at + ticks);
  if (end < 0) return null;
  return { node: h("code", {}, text.slice(at + ticks, end).trim()), end: end + ticks };
}

function marked(text, at, { cite, depth, unclosed }) {
  for (const [mark, tag] of MARKS) {
    if (!text.startsWith(mark, at)) continue;
    const end = closing(text, at, mark, unclosed);
    if (end > 0) return { node: h(tag, {}, inline(text.slice(at + mark.length, end), cite, depth + 1)), end: end + mark.length };
  }
  return null;
}

function closing(text, at, mark, unclosed) {
  const from = at + mark.length;
  if (unclosed.has(mark)) return -1;
  // "2 * 3" and snake_case are no emphasis.
  if (/\s/.test(text[from] ?? " ") || (mark[0] === "_" && WORD.test(text[at - 1] ?? ""))) return -1;
  for (let end = text.indexOf(mark, from + 1); end > 0; end = text.indexOf(mark, end + 1)) {
    // In "**bold *both***" the last two close the bold.
    while (mark.length === 2 && text[end + 2] === mark[0]) end += 1;
    const double = mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark);
    const inWord = mark[0] === "_" && WORD.test(text[end + mark.length] ?? "");
    if (!double && !inWord && !/\s/.test(text[end - 1])) return end;
  }
  unclosed.add(mark);
  return -1;
}

function citation(text, at, cite) {
  const match = CITATION.exec(text.slice(at, at + 5));
  const node = match ? cite(Number(match[1])) : null;
  return node ? { node, end: at + match[0].length } : null;
}

function link(text, at) {
  const middle = text.indexOf("](", at);
  if (middle < 0 || text.slice(at + 1, middle).includes("[")) return null;
  const end = text.indexOf(")", middle);
  if (end < 0) return null;
  const target = text.slice(middle + 2, end).trim().split(/\s/)[0];
  const url = webAddress(target);
  if (!url) return null;
  const label = text.slice(at + 1, middle).trim();
  return { node: anchor(url, label ? inline(label, () => null, DEEPEST) : url.host, label), end: end + 1 };
}

function angled(text, at) {
  const end = text.indexOf(">", at);
  const url = end < 0 ? null : webAddress(text.slice(at + 1, end));
  return url ? { node: anchor(url, url.href, url.href), end: end + 1 } : null;
}

function address(text, at) {
  const match = ADDRESS.exec(text.slice(at, at + 2000));
  if (!match) return null;
  const written = match[0].replace(/[.,;:!?)\]*_~]+$/, "");
  const url = webAddress(written);
  return url ? { node: anchor(url, written, written), end: at + written.length } : null;
}

/** The URL of a link that may be followed: http and https only. */
export function webAddress(text) {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** A link with the host it leads to, unless its text is the plain address and so begins with that host. */
export function anchor(url, label, written) {
  const plain = written === url.host || written.startsWith(`${url.protocol}//${url.host}/`) || written === url.origin;
  const element = h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, label);
  return plain ? element : h("span", {}, element, h("span", { className: "host" }, ` (${url.host})`));
}
