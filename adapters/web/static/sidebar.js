// The list of conversations on the left; a drawer on narrow screens.

import { byId, h } from "./dom.js";
import { time } from "./time.js";

/** The address of a thread within the page. */
export const addressOf = (threadId) => `#${encodeURIComponent(threadId)}`;

/** Wires the drawer up; `startNew()` begins a conversation. */
export function wireSidebar(startNew) {
  byId("new-conversation").onclick = () => {
    closeDrawer();
    startNew();
  };
  byId("show-threads").onclick = openDrawer;
  byId("hide-threads").onclick = closeDrawer;
  byId("scrim").onclick = closeDrawer;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeDrawer();
  });
}

function openDrawer() {
  document.body.classList.add("drawer-open");
  byId("scrim").hidden = false;
  byId("show-threads").setAttribute("aria-expanded", "true");
  byId("hide-threads").focus();
}

/** Close the drawer and give the focus back, if it was open. */
export function closeDrawer() {
  if (!document.body.classList.contains("drawer-open")) return;
  document.body.classList.remove("drawer-open");
  byId("scrim").hidden = true;
  byId("show-threads").setAttribute("aria-expanded", "false");
  byId("show-threads").focus();
}

let drawn = "";

/** Draw the list; the same list is not drawn again, so that the focus stays. */
export function drawThreads(threads, openId) {
  const key = JSON.stringify([threads, openId]);
  if (key === drawn) return;
  drawn = key;
  const focused = document.activeElement?.closest?.("#threads a")?.getAttribute("href");
  byId("threads").replaceChildren(...threads.map((thread) => line(thread, thread.thread_id === openId)));
  byId("threads").hidden = threads.length === 0;
  byId("no-threads").hidden = threads.length > 0;
  byId("threads").setAttribute("aria-label", byId("everybody").checked ? "Everybody's conversations" : "Your conversations");
  if (focused) byId("threads").querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

function line(thread, isOpen) {
  const waiting = thread.waiting
    ? h("span", { className: "badge" }, String(thread.waiting), h("span", { className: "hidden-label" }, " waiting"))
    : null;
  const link = h(
    "a",
    { href: addressOf(thread.thread_id), "aria-current": isOpen ? "page" : null, onclick: closeDrawer },
    h("span", { className: "thread-title", dir: "auto" }, thread.title || "New conversation"),
    h("span", { className: "thread-meta" }, time(thread.updated_at), waiting),
  );
  return h("li", {}, link);
}
