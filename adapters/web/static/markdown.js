// Markdown of models → nodes. Only what a chat answer needs; everything is made of text nodes, nothing is parsed as
// HTML, there are no images, and a link always shows where it leads.

import { h } from "./dom.js";
import { inline } from "./markdown_inline.js";

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])( *\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DEEPEST = 8;

/** Nodes for a Markdown text. */
export function markdown(text) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

function blocks(lines, depth) {
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, depth);
    if (node) nodes.push(node);
    at = next;
  }
  return nodes;
}

function block(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) return fence(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return [title(heading), at + 1];
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  return paragraph(lines, at, depth);
}

function title(match) {
  // The page's own headings are the first two levels.
  const level = Math.min(match[1].length + 2, 6);
  return h(`h${level}`, {}, inline(match[2]));
}

function fence(lines, at) {
  const mark = FENCE.exec(lines[at])[1];
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], mark)) end += 1;
  const code = h("code", {}, lines.slice(at + 1, end).join("\n"));
  return [h("pre", { tabIndex: 0 }, code), end + 1];
}

function closes(line, mark) {
  const text = line.trim();
  return text.length >= mark.length && [...text].every((character) => character === mark[0]);
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [h("blockquote", {}, blocks(inner, depth + 1)), end];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const match = ITEM.exec(lines[end]);
    if (!match || match[1].length > indent + 1 || /\d/.test(match[2]) !== ordered) break;
    let next = end + 1;
    while (next < lines.length && belongs(lines, next, indent)) next += 1;
    const offset = lines[end].length - match[3].length;
    const inner = [match[3], ...lines.slice(end + 1, next).map((line) => line.slice(leading(line, offset)))];
    items.push(h("li", {}, tight(blocks(inner, depth + 1))));
    end = next;
  }
  const start = ordered ? Number.parseInt(first[2], 10) : null;
  return [h(ordered ? "ol" : "ul", { start: start === 1 ? null : start }, items), end];
}

/** Whether a line goes on with the item above it: indented deeper, or blank before such a line. */
function belongs(lines, at, indent) {
  const line = lines[at];
  if (line.trim()) return leading(line, indent + 2) >= indent + 2;
  return at + 1 < lines.length && Boolean(lines[at + 1].trim()) && leading(lines[at + 1], indent + 2) >= indent + 2;
}

function leading(line, most) {
  let count = 0;
  while (count < most && line[count] === " ") count += 1;
  return count;
}

/** An item of one paragraph is shown without the paragraph's margins. */
function tight(nodes) {
  return nodes.flatMap((node, index) => (index === 0 && node.tagName === "P" ? [...node.childNodes] : [node]));
}

function isTable(lines, at) {
  if (!lines[at].includes("|") || at + 1 >= lines.length) return false;
  const dashes = cells(lines[at + 1]);
  return dashes.length === cells(lines[at]).length && dashes.every((cell) => /^:?-+:?$/.test(cell));
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split("|").map((cell) => cell.trim());
}

function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const head = cells(lines[at]);
  const rows = lines.slice(at + 2, end).map((line) => {
    const row = cells(line);
    return h("tr", {}, head.map((_, column) => h("td", {}, inline(row[column] ?? ""))));
  });
  const header = h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, inline(cell)))));
  return [h("div", { className: "table", tabIndex: 0 }, h("table", {}, header, h("tbody", {}, rows))), end];
}

function paragraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !starts(lines, end, depth)) end += 1;
  const parts = [];
  for (const line of lines.slice(at, end)) {
    if (parts.length) parts.push(h("br"));
    parts.push(...inline(line.trim()));
  }
  return [h("p", {}, parts), end];
}

function starts(lines, at, depth) {
  const line = lines[at];
  const nested = depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line));
  return nested || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || isTable(lines, at);
}
