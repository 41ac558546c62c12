// What Microsoft's renderer has against a card, and what became of it on the page.
import * as Cards from "adaptivecards";

const VERSION = Cards.Versions.v1_5; // the newest that Teams takes

export function parsed(source, theme) {
  const context = new Cards.SerializationContext(VERSION);
  const card = new Cards.AdaptiveCard();
  card.hostConfig = new Cards.HostConfig(theme.host);
  card.parse(source, context);
  return { card, context };
}

// Every card that another one opens, with itself: what a person sees beside each other in one row of buttons.
function rows(source) {
  const found = [];
  (function look(value) {
    if (Array.isArray(value)) return value.forEach(look);
    if (value === null || typeof value !== "object") return undefined;
    if (Array.isArray(value.actions)) {
      const beside = value.actions.filter((action) => action.mode !== "secondary").length;
      found.push(beside + (beside < value.actions.length ? 1 : 0)); // with the button of the menu
    }
    return Object.entries(value).forEach(([key, inner]) => key === "data" || look(inner));
  })(source);
  return found;
}

// Words that stand beyond the edge of the card, where nobody sees them.
function outside(drawn) {
  const edge = drawn.getBoundingClientRect().right + 1;
  const found = [];
  const texts = document.createTreeWalker(drawn, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const scrolls = texts.currentNode.parentElement.closest("select, textarea");
    if (!scrolls && range.getBoundingClientRect().right > edge) found.push(texts.currentNode.data.slice(0, 80));
  }
  return found;
}

export function checked(source, theme) {
  const complaints = [];
  const { card, context } = parsed(source, theme);
  for (let at = 0; at < context.eventCount; at += 1) {
    complaints.push(`${Cards.ValidationEvent[context.getEventAt(at).event]}: ${context.getEventAt(at).message}`);
  }
  for (const failure of card.validateProperties().validationEvents) {
    complaints.push(`${Cards.ValidationEvent[failure.event]}: ${failure.message}`);
  }
  if (card.shouldFallback()) complaints.push("the whole card is replaced by its fallback");
  const drawn = card.render();
  if (!drawn) return { complaints: [...complaints, "nothing was drawn"] };
  drawn.classList.add("checked");
  document.body.append(drawn);
  try {
    const all = (selector) => [...drawn.querySelectorAll(selector)];
    return {
      complaints,
      text: drawn.innerText,
      links: all("a").map((link) => link.href),
      pictures: all("img, svg image, video, audio, iframe, object").length,
      scripts: all("script, style, link, form").length,
      lists: all("ul, ol").length,
      marked: all("strong, em, s, code, h1, h2, h3, blockquote, hr").map((e) => e.outerHTML),
      outside: outside(drawn),
      inputs: card.getAllInputs().map((input) => ({
        id: input.id,
        label: input.label ?? input.title ?? "",
        value: input.value ?? null,
      })),
      rows: rows(source),
    };
  } finally {
    drawn.remove();
  }
}
