// The sources that an answer cites, as footnotes below it: a citation leads to its source, and that back to it.

import { h } from "./dom.js";
import { t } from "./language.js";

/**
 * `cite(number)`: the citation of a source, a button; null where there is none of that number. `list`: the sources as an
 * element; null where there are none.
 */
export function citations(sources) {
  const footnotes = new Map(sources.map((source) => [source.number, footnote(source)]));
  const cite = (number) => footnotes.get(number)?.cite() ?? null;
  if (!footnotes.size) return { cite, list: null };
  const items = [...footnotes.values()].map(({ item }) => item);
  return { cite, list: h("ul", { className: "sources", "aria-label": t("Sources") }, items) };
}

function footnote({ number, name }) {
  let cited = null;
  const label = t("Back to where source {number} is cited", { number });
  const back = button(number, { "aria-label": label, onclick: () => goTo(cited) });
  const item = h("li", {}, back, " ", h("bdi", {}, name));
  const cite = () => {
    const about = t("Source {number}: {name}", { number, name });
    const made = button(number, { title: about, "aria-label": about, onclick: () => goTo(back) });
    cited ??= made;
    return made;
  };
  return { cite, item };
}

function button(number, props) {
  return h("button", { type: "button", className: "citation", ...props }, `[${number}]`);
}

function goTo(element) {
  element?.scrollIntoView({ block: "nearest" });
  element?.focus();
}
