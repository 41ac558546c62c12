// The language of the page. English sentences stand in the code where they are used; `t` and `n` translate them.

/** The languages that there are, under the names that their speakers know. */
export const LANGUAGES = { en: "English", de: "Deutsch" };
const SHOWN_ATTRIBUTES = ["aria-label", "placeholder", "title", "alt"];

// English sentence → its translation, or its forms for one and for many.
let catalogue = {};
let language = "en";

/** The language that the page speaks, such as "de". */
export const spoken = () => language;

/** The first of the wanted languages (`de-AT`, …) that there is. */
export function languageOf(wanted) {
  return wanted.map((name) => name.toLowerCase().split("-")[0]).find((name) => name in LANGUAGES) ?? "en";
}

/** Speak a language from now on, and translate what the page's own HTML says. English where its sentences cannot be read. */
export async function speak(name) {
  if (name !== "en") {
    const response = await fetch(new URL(`./sentences.${name}.json`, import.meta.url), { credentials: "same-origin" }).catch(() => null);
    if (!response?.ok) return;
    catalogue = await response.json();
  }
  language = name;
  document.documentElement.lang = name;
  translatePage(document.body);
}

function translatePage(root) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { data } = texts.currentNode;
    const sentence = data.trim().replace(/\s+/g, " ");
    if (sentence in catalogue) texts.currentNode.data = data.replace(data.trim(), catalogue[sentence]);
  }
  for (const name of SHOWN_ATTRIBUTES) {
    for (const element of root.querySelectorAll(`[${name}]`)) {
      const sentence = element.getAttribute(name).trim().replace(/\s+/g, " ");
      if (sentence in catalogue) element.setAttribute(name, catalogue[sentence]);
    }
  }
}

/** A sentence, with `{name}` replaced by the value of that name. */
export function t(sentence, values = {}) {
  return filled(catalogue[sentence] ?? sentence, values);
}

/** The form of a sentence that goes with a count; `{count}` is that number. */
export function n(one, many, count, values = {}) {
  const forms = catalogue[one];
  const sentence = Array.isArray(forms) ? forms[count === 1 ? 0 : 1] : count === 1 ? one : many;
  return filled(sentence, { count: count.toLocaleString(language), ...values });
}

/** The same as a list for `h`, where a value is a node: `parts("Requested by {name}", { name: node })`. */
export function parts(sentence, values) {
  return (catalogue[sentence] ?? sentence).split(/(\{\w+\})/).map((part) => (part.startsWith("{") && part.slice(1, -1) in values ? values[part.slice(1, -1)] : part));
}

function filled(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
