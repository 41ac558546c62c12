// Building nodes from text. Nothing in this page parses HTML: there is no innerHTML anywhere.

/**
 * A new element. `props` are properties (`className`, `onclick`, `disabled`…), or attributes where the name has a dash
 * or is `role`, `for` or `list`; a property that is null, undefined or false is left out.
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "dataset") Object.assign(element.dataset, value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, String(value));
    else element[name] = value;
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** A small line drawing that says nothing by itself. */
export function icon(path) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

export const ICONS = {
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  cross: "M5.5 5.5l9 9M14.5 5.5l-9 9",
  clock: "M10 3.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13zM10 6.5v3.8l2.5 1.6",
  question: "M7.6 7.8a2.4 2.4 0 1 1 3.4 2.1c-.7.4-1 .8-1 1.7M10 14.4v.1",
  key: "M12.6 4a3.4 3.4 0 1 1-3 5L4 14.6V17h2.6v-2h2v-2l2-2",
  warning: "M10 3.6l7 12.4H3zM10 8.4v3.4M10 13.9v.1",
  info: "M10 3.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13zM10 9.4v4M10 6.8v.1",
  chevron: "M7.5 5l5 5-5 5",
  more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
  copy: "M7.5 7.5V5A1.5 1.5 0 0 1 9 3.5h6A1.5 1.5 0 0 1 16.5 5v6a1.5 1.5 0 0 1-1.5 1.5h-2.5M5 7.5h6A1.5 1.5 0 0 1 12.5 9v6a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 15V9A1.5 1.5 0 0 1 5 7.5z",
  list: "M8 5.5h8M8 10h8M8 14.5h8M4 5.5h.01M4 10h.01M4 14.5h.01",
  play: "M7 5.5v9l7.5-4.5z",
  stopped: "M6 6h8v8H6z",
  barred: "M10 3.5a6.5 6.5 0 1 1 0 13a6.5 6.5 0 0 1 0-13zM5.5 14.5l9-9",
  file: "M6 3.5h5l3.5 3.5v9.5H6zM11 3.5V7h3.5",
  circle: "M10 5.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 0 1 0-9z",
};

let counter = 0;

/** An id that no other element has. */
export function freshId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** The element with that id; the page is built with all of them. */
export const byId = (id) => document.getElementById(id);
