// Draws a conversation or a dialog as Teams does, each card by Microsoft's own renderer.
import * as Cards from "adaptivecards";
import MarkdownIt from "markdown-it";
import "@fontsource/open-sans/400.css";
import "@fontsource/open-sans/400-italic.css";
import "@fontsource/open-sans/600.css";
import "@fontsource/open-sans/700.css";
import "adaptivecards/lib/adaptivecards.css";
import "./page.css";
import { checked, parsed } from "./checking.js";
import { THEMES } from "./themes.js";

// On cards Teams knows emphasis, lists and links, and each line break counts.
const ON_CARDS = new MarkdownIt("zero", { breaks: true }).enable([
  "emphasis", "list", "link", "autolink", "escape", "entity", "newline", "strikethrough", "image",
]);
const IN_MESSAGES = new MarkdownIt({ breaks: true, linkify: false });

Cards.AdaptiveCard.onProcessMarkdown = (text, result) => {
  result.outputHtml = ON_CARDS.render(text);
  result.didProcess = true;
};

function element(kind, classes, ...inside) {
  const made = document.createElement(kind);
  made.className = classes;
  made.append(...inside);
  return made;
}

function face({ name, colour, round }) {
  const made = element("div", `face ${round ? "round" : "hexagon"}`, name.slice(0, 1));
  made.style.background = colour;
  return made;
}

function drawnCard(source, theme) {
  const wide = source.msteams?.width?.toLowerCase() === "full";
  const { card } = parsed(source, theme);
  return element("div", wide ? "card wide" : "card", card.render());
}

function drawnText(text) {
  const made = element("div", "text");
  made.innerHTML = IN_MESSAGES.render(text);
  return made;
}

function drawnMessage(message, theme) {
  const { author, time, text, card, labels, sources, onlyYou } = message;
  const by = element("p", "by", element("b", "", author.name), element("time", "", time));
  by.append(...(labels ?? []).map((label) => element("span", "label", label)));
  const bubble = element("div", author.round ? "bubble" : "bubble of-bot", by);
  if (text) bubble.append(drawnText(text));
  if (card) bubble.append(drawnCard(card, theme));
  if (sources?.length) bubble.append(element("p", "sources", ...sources.map((s) => element("span", "", s))));
  if (onlyYou) bubble.append(element("p", "only-you", "👁 Only you can see this message."));
  return element("article", "", face(author), bubble);
}

const SCENES = {
  conversation: ({ title, messages }, theme) =>
    element("section", "conversation", element("header", "", title), ...messages.map((m) => drawnMessage(m, theme))),
  dialog: ({ title, card }, theme) => {
    const header = element("header", "", element("b", "", title), element("span", "", "✕"));
    return element("div", "behind", element("section", "dialog", header, drawnCard(card, theme)));
  },
};

window.show = (scene, props, name) => {
  const theme = THEMES[name];
  const root = document.getElementById("root");
  for (const [key, value] of Object.entries({ ...theme.css, default: theme.css.text.default, subtle: theme.css.text.subtle })) {
    if (typeof value === "string") root.style.setProperty(`--${key}`, value);
  }
  root.className = name;
  root.replaceChildren(SCENES[scene](props, theme));
};

window.check = (sources, name) => sources.map((source) => checked(source, THEMES[name]));
