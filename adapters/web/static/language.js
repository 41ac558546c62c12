// The language of the page. English sentences stand in the code where they are used; `t` and `n` translate them.

let catalogue = {};

/** Take the sentences of a language: English sentence → its translation, or a list of plural forms. */
export function speak(sentences) {
  catalogue = sentences;
}

/** A sentence, with `{name}` replaced by the value of that name. */
export function t(sentence, values = {}) {
  return filled(catalogue[sentence] ?? sentence, values);
}

/** The form of a sentence that goes with a count; `{count}` is that number. */
export function n(one, many, count, values = {}) {
  const forms = catalogue[one];
  const sentence = Array.isArray(forms) ? forms[count === 1 ? 0 : 1] : count === 1 ? one : many;
  return filled(sentence, { count: count.toLocaleString(), ...values });
}

/** The same as a list for `h`, where a value is a node: `parts("Requested by {name}", { name: node })`. */
export function parts(sentence, values) {
  return (catalogue[sentence] ?? sentence).split(/(\{\w+\})/).map((part) => (part.startsWith("{") && part.slice(1, -1) in values ? values[part.slice(1, -1)] : part));
}

function filled(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
