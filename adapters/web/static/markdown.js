// Markdown of models → nodes. Only what a chat answer needs; everything is made of text nodes, nothing is parsed as
// HTML, there are no images, and a link always shows where it leads.

import { copyButton } from "./copying.js";
import { h } from "./dom.js";
import { t } from "./language.js";
import { inline } from "./markdown_inline.js";

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])( *\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DEEPEST = 8;

/** The level of the page's own last heading above a text. */
const ABOVE = 2;

/** Nodes for a Markdown text. `cite(number)`: the node of a citation like [1]; null: that is text. */
export function markdown(text, cite = () => null) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), { depth: 0, headings: { last: ABOVE }, cite });
}

/** `place` has the depth of nesting, and the level of the last heading above. */
function blocks(lines, place) {
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, place);
    if (node) nodes.push(node);
    at = next;
  }
  return nodes;
}

const deeper = (place) => ({ ...place, depth: place.depth + 1 });

function block(lines, at, place) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) return fence(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return [title(heading, place), at + 1];
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (place.depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, place);
  if (place.depth < DEEPEST && ITEM.test(line)) return list(lines, at, place);
  if (isTable(lines, at)) return table(lines, at, place);
  return paragraph(lines, at, place);
}

/** Below the page's own headings, and without leaving a level out, so that a list of the headings can be read. */
function title(match, { headings, cite }) {
  const level = Math.min(match[1].length + ABOVE, headings.last + 1, 6);
  headings.last = level;
  return h(`h${level}`, {}, inline(match[2], cite));
}

function fence(lines, at) {
  const [, mark, language] = FENCE.exec(lines[at]);
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], mark)) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  const head = h("div", { className: "code-head" }, h("span", {}, language), copyButton(() => text, t("Copy code")));
  return [h("div", { className: "code-block" }, head, h("pre", { tabIndex: 0 }, h("code", {}, text))), end + 1];
}

function closes(line, mark) {
  const text = line.trim();
  return text.length >= mark.length && [...text].every((character) => character === mark[0]);
}

function quote(lines, at, place) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [h("blockquote", {}, blocks(inner, deeper(place))), end];
}

function list(lines, at, place) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const indent = columns(first[1]);
  const goesOn = (match) => match && columns(match[1]) <= indent + 1 && /\d/.test(match[2]) === ordered;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const match = ITEM.exec(lines[end]);
    if (!goesOn(match)) break;
    let next = end + 1;
    while (next < lines.length && belongs(lines, next, indent)) next += 1;
    const offset = columns(lines[end].slice(0, lines[end].length - match[3].length));
    const inner = [match[3], ...lines.slice(end + 1, next).map((line) => line.slice(leading(line, offset)))];
    items.push(h("li", {}, tight(blocks(inner, deeper(place)))));
    end = next;
    // A blank line between two items does not end their list.
    if (next < lines.length && !lines[next].trim() && goesOn(ITEM.exec(lines[next + 1] ?? ""))) end = next + 1;
  }
  const start = ordered ? Number.parseInt(first[2], 10) : null;
  return [h(ordered ? "ol" : "ul", { start: start === 1 ? null : start }, items), end];
}

/** Whether a line goes on with the item above it: indented deeper, or blank before such a line. */
function belongs(lines, at, indent) {
  const isDeeper = (line) => columns(/^\s*/.exec(line)[0]) >= indent + 2;
  if (lines[at].trim()) return isDeeper(lines[at]);
  return at + 1 < lines.length && Boolean(lines[at + 1].trim()) && isDeeper(lines[at + 1]);
}

const TAB = 4;

/** How far a beginning of a line reaches; a tab counts as four. */
function columns(text) {
  let count = 0;
  for (const character of text) count += character === "\t" ? TAB : 1;
  return count;
}

/** How many characters of white space a line begins with, up to so many columns. */
function leading(line, most) {
  let at = 0;
  for (let column = 0; column < most && (line[at] === " " || line[at] === "\t"); at += 1) column += line[at] === "\t" ? TAB : 1;
  return at;
}

/** An item of one paragraph is shown without the paragraph's margins. */
function tight(nodes) {
  return nodes.flatMap((node, index) => (index === 0 && node.tagName === "P" ? [...node.childNodes] : [node]));
}

const DASHES = /^:?-+:?$/;

function isTable(lines, at) {
  if (!lines[at].includes("|") || at + 1 >= lines.length || !/^[\s|:-]+$/.test(lines[at + 1])) return false;
  const dashes = cells(lines[at + 1]);
  return dashes.length === cells(lines[at]).length && dashes.every((cell) => DASHES.test(cell));
}

/** The cells of a row. A pipe behind a backslash is text. */
function cells(line) {
  const text = line.trim();
  const found = [];
  let cell = "";
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (text[at] === "|") {
      if (at > 0) found.push(cell.trim());
      cell = "";
      if (at === text.length - 1) return found;
    } else cell += text[at];
  }
  return [...found, cell.trim()];
}

function table(lines, at, { cite }) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const head = cells(lines[at]);
  const sides = cells(lines[at + 1]).map(alignment);
  const rows = lines.slice(at + 2, end).map((line) => {
    const row = cells(line);
    // What is more than there are columns stays readable, in the last of them.
    if (row.length > head.length) row.push(row.splice(head.length - 1).join(" | "));
    return h("tr", {}, head.map((_, column) => h("td", { className: sides[column] }, inline(row[column] ?? "", cite))));
  });
  const header = h("thead", {}, h("tr", {}, head.map((cell, column) => h("th", { scope: "col", className: sides[column] }, inline(cell, cite)))));
  return [h("div", { className: "table", tabIndex: 0 }, h("table", {}, header, h("tbody", {}, rows))), end];
}

function alignment(dashes) {
  if (!dashes.endsWith(":")) return null;
  return dashes.startsWith(":") ? "center" : "right";
}

function paragraph(lines, at, place) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !starts(lines, end, place)) end += 1;
  const parts = [];
  for (const line of lines.slice(at, end)) {
    if (parts.length) parts.push(h("br"));
    parts.push(...inline(line.trim(), place.cite));
  }
  return [h("p", {}, parts), end];
}

function starts(lines, at, place) {
  const line = lines[at];
  const nested = place.depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line));
  return nested || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || isTable(lines, at);
}
