// The list of conversations on the left; a drawer on narrow screens.

import { api } from "./api.js";
import { byId, h } from "./dom.js";
import { n, t } from "./language.js";
import { time } from "./time.js";

const SEARCH_AFTER = 200;
const DAY = 86_400_000;

/** The address of a thread within the page. */
export const addressOf = (threadId) => `#${encodeURIComponent(threadId)}`;

/** Wires the drawer up; `startNew()` begins a conversation. */
export function wireSidebar(startNew) {
  byId("new-conversation").onclick = () => {
    closeDrawer();
    startNew();
  };
  byId("inbox-link").onclick = () => closeDrawer();
  byId("show-threads").onclick = openDrawer;
  byId("hide-threads").onclick = closeDrawer;
  byId("scrim").onclick = closeDrawer;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) closeDrawer();
  });
  matchMedia("(max-width: 760px)").onchange = (narrow) => !narrow.matches && closeDrawer();
  wireSearch();
}

function openDrawer() {
  document.body.classList.add("drawer-open");
  byId("scrim").hidden = false;
  byId("room").inert = true;
  byId("skip").inert = true;
  byId("show-threads").setAttribute("aria-expanded", "true");
  byId("hide-threads").focus();
}

/** Close the drawer and give the focus back, if it was open. */
export function closeDrawer() {
  if (!document.body.classList.contains("drawer-open")) return;
  document.body.classList.remove("drawer-open");
  byId("scrim").hidden = true;
  byId("room").inert = false;
  byId("skip").inert = false;
  byId("show-threads").setAttribute("aria-expanded", "false");
  byId("show-threads").focus();
}

/** Go to the search box, wherever it is. */
export function goToSearch() {
  if (byId("show-threads").checkVisibility()) openDrawer();
  byId("search").focus();
  byId("search").select();
}

let listed = { threads: [], openId: "", countIn: () => 0, isLoaded: false };
let found = null;
let drawn = "";
let scrolledTo = "";

function wireSearch() {
  const box = byId("search");
  let timer = null;
  let asked = 0;
  box.oninput = () => {
    clearTimeout(timer);
    const text = box.value.trim();
    const mine = (asked += 1);
    if (!text) return show(null);
    timer = setTimeout(async () => {
      try {
        const { threads, is_whole: isWhole } = await api.search(text);
        if (mine === asked) show({ threads, text, isWhole });
      } catch (problem) {
        if (mine === asked) show({ threads: [], text, isWhole: true, problem: problem.message });
      }
    }, SEARCH_AFTER);
  };
  box.onkeydown = (event) => {
    if (event.key === "Escape" && box.value) {
      event.stopPropagation();
      box.value = "";
      box.oninput();
    } else if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      byId("threads").querySelector("a")?.focus();
    }
  };
  const show = (result) => {
    found = result;
    redraw();
  };
}

/** Draw the list. `countIn(thread)`: how much in it needs this person; `isLoaded`: whether the server has said it yet. */
export function drawThreads(threads, openId, countIn, isLoaded = true) {
  listed = { threads, openId, countIn, isLoaded };
  redraw();
}

/** The same list is not drawn again, so that the focus stays. */
function redraw() {
  const { openId, countIn, isLoaded } = listed;
  const threads = found?.threads ?? listed.threads;
  const counts = threads.map(countIn);
  const key = JSON.stringify([threads, counts, openId, found?.text, found?.problem, isLoaded, new Date().toDateString()]);
  if (key === drawn) return;
  drawn = key;
  const place = byId("threads");
  const focused = document.activeElement?.closest?.("#threads a")?.getAttribute("href");
  const groups = new Map();
  threads.forEach((thread, index) => {
    const name = found ? n("{count} result", "{count} results", threads.length) : groupOf(thread.updated_at);
    groups.set(name, [...(groups.get(name) ?? []), line(thread, thread.thread_id === openId, counts[index])]);
  });
  place.replaceChildren(...[...groups].map(([name, lines]) => h("section", {}, h("h2", { className: "group" }, name), h("ul", { role: "list" }, lines))));
  if (!isLoaded) place.replaceChildren(h("div", { className: "skeleton rows", "aria-hidden": "true" }, h("i"), h("i"), h("i")));
  place.hidden = threads.length === 0 && isLoaded;
  const none = byId("no-threads");
  const mayBeMore = found && !found.isWhole;
  none.hidden = (threads.length > 0 && !mayBeMore) || !isLoaded;
  if (threads.length > 0 && mayBeMore) none.textContent = t("There may be more in older conversations.");
  else if (mayBeMore) none.textContent = t("Nothing found for “{text}” in newer conversations", { text: found.text });
  else none.textContent = found?.problem ?? (found ? t("Nothing found for “{text}”", { text: found.text }) : t("No conversations yet"));
  place.setAttribute("aria-label", byId("everybody").checked ? t("Everybody’s conversations") : t("Your conversations"));
  if (focused) place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  const current = place.querySelector("a[aria-current]");
  if (current && scrolledTo !== openId) {
    scrolledTo = openId;
    current.scrollIntoView({ block: "nearest" });
  }
}

function groupOf(seconds) {
  const now = new Date();
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const then = seconds * 1000;
  if (then >= today) return t("Today");
  if (then >= today - DAY) return t("Yesterday");
  return then >= today - 7 * DAY ? t("Previous 7 days") : t("Older");
}

function line(thread, isOpen, count) {
  const words = n("{count} needs you", "{count} need you", count);
  const badge = count ? h("span", { className: "badge" }, h("span", { "aria-hidden": "true" }, String(count)), h("span", { className: "hidden-label" }, words)) : null;
  const link = h(
    "a",
    { href: addressOf(thread.thread_id), "aria-current": isOpen ? "page" : null, onclick: closeDrawer },
    h("span", { className: "thread-title", dir: "auto" }, thread.title || t("New conversation")),
    h("span", { className: "thread-meta" }, h("span", {}, thread.owner ? [thread.owner, " · "] : null, time(thread.updated_at)), badge),
  );
  return h("li", {}, link);
}
