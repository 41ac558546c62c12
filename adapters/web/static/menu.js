// A button that opens a menu, as the ARIA practices have it: arrow keys, Home, End, Escape; the focus comes back.

import { freshId, h, icon, ICONS } from "./dom.js";
import { t } from "./language.js";

/**
 * Returns a node with the button and, while it is open, its menu. `items` are `[name, tone, act]`; an item's `act` is
 * called when the menu is closed and the focus is back on the button.
 */
export function menuButton(items, label = t("More actions")) {
  const id = freshId("menu");
  const button = h("button", { type: "button", className: "button menu-button", title: label, "aria-label": label, "aria-haspopup": "menu", "aria-expanded": "false" }, icon(ICONS.more));
  const place = h("div", { className: "menu-place" }, button);
  let menu = null;

  function close({ focus } = {}) {
    if (!menu) return;
    menu.remove();
    menu = null;
    button.setAttribute("aria-expanded", "false");
    button.removeAttribute("aria-controls");
    document.removeEventListener("pointerdown", outside, true);
    if (focus) button.focus({ preventScroll: true });
  }

  function outside(event) {
    if (!place.contains(event.target)) close();
  }

  function open(last) {
    const entries = items.map(([name, tone, act]) => h("button", { type: "button", role: "menuitem", className: `menu-item ${tone}`, tabIndex: -1, onclick: () => {
      close({ focus: true });
      act();
    } }, name));
    menu = h("div", { id, role: "menu", className: "menu", "aria-label": label }, entries);
    place.append(menu);
    button.setAttribute("aria-expanded", "true");
    button.setAttribute("aria-controls", id);
    putInSight(menu, button);
    document.addEventListener("pointerdown", outside, true);
    (last ? entries.at(-1) : entries[0]).focus({ preventScroll: true });
  }

  button.onclick = () => {
    if (menu) close({ focus: true });
    else if (button.getAttribute("aria-disabled") !== "true") open();
  };
  place.onkeydown = (event) => {
    if (!menu) {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      if (button.getAttribute("aria-disabled") !== "true") open(event.key === "ArrowUp");
      return;
    }
    const entries = [...menu.children];
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    // A letter goes to the next entry that begins with it; the card's own keys are not meant here.
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      close({ focus: true });
    } else if (next !== undefined) {
      event.preventDefault();
      entries[(next + entries.length) % entries.length].focus();
    } else if (event.key.length === 1 && /\S/.test(event.key)) {
      const order = [...entries.slice(at + 1), ...entries.slice(0, at + 1)];
      order.find((entry) => entry.textContent.toLowerCase().startsWith(event.key.toLowerCase()))?.focus();
    }
  };
  return place;
}

/** Upwards where there is no room below it, and never beyond the sides of the window. */
function putInSight(menu, button) {
  const around = button.closest(".scroller, .dialog-body")?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
  const { top, bottom } = button.getBoundingClientRect();
  const height = menu.offsetHeight + 8;
  if (bottom + height > around.bottom && top - height > around.top) menu.classList.add("upwards");
  if (menu.getBoundingClientRect().left < 8) menu.classList.add("rightwards");
}
