// The dialog of settings. Each holds at once.

import { openDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { LANGUAGES, t } from "./language.js";
import { settings } from "./settings.js";
import { showShortcuts } from "./shortcuts.js";
import { clock } from "./time.js";

/** Opens it; resolves when it is closed. What was drawn in another zone or language is drawn again by a reload. */
export async function openSettings() {
  const before = [settings.timeZone(), settings.language()].join();
  let shortcuts = false;
  const keys = h("button", { type: "button", className: "link-button", onclick: (event) => { shortcuts = true; event.target.closest("dialog").close(); } }, t("Keyboard shortcuts"));
  await openDialog({ title: t("Settings"), body: [theme(), zone(), language(), notifications(), h("p", {}, keys)], act: async () => true });
  if ([settings.timeZone(), settings.language()].join() !== before) location.reload();
  else if (shortcuts) await showShortcuts();
}

function theme() {
  const choices = [["", t("System")], ["light", t("Light")], ["dark", t("Dark")]];
  const radio = ([value, name]) => h("label", { className: "segment" }, h("input", { type: "radio", name: "theme", value, checked: settings.theme() === value, onchange: () => settings.chooseTheme(value) }), h("span", {}, name));
  return h("fieldset", { className: "field segments" }, h("legend", {}, t("Theme")), h("div", { className: "segment-row" }, choices.map(radio)));
}

function zone() {
  const help = h("p", { className: "field-help", id: "zone-help", role: "status" });
  const box = h("input", { type: "text", id: "zone", autocomplete: "off", spellcheck: false, maxLength: 60, value: settings.timeZone(), "aria-describedby": "zone-help" });
  box.setAttribute("list", "zones");
  const tell = () => {
    help.textContent = t("It is {time} there. Your browser’s: {zone}.", { time: clock(Date.now() / 1000), zone: settings.ownZone() });
  };
  box.onchange = () => {
    const wanted = box.value.trim();
    settings.chooseZone(wanted);
    if (wanted && wanted !== settings.timeZone()) help.textContent = t("No such time zone. Use {zone}?", { zone: settings.ownZone() });
    else tell();
    box.setAttribute("aria-invalid", String(Boolean(wanted) && wanted !== settings.timeZone()));
  };
  tell();
  const zones = Intl.supportedValuesOf?.("timeZone") ?? [];
  return h("div", { className: "field" }, h("label", { for: "zone" }, t("Time zone")), box, h("datalist", { id: "zones" }, zones.map((name) => h("option", { value: name }))), help);
}

function language() {
  const menu = h("select", { id: "language" }, h("option", { value: "" }, t("Browser’s language")), Object.entries(LANGUAGES).map(([value, name]) => h("option", { value, lang: value }, name)));
  menu.value = settings.language();
  menu.onchange = () => settings.chooseLanguage(menu.value);
  return h("div", { className: "field" }, h("label", { for: "language" }, t("Language")), menu);
}

function notifications() {
  const said = h("p", { className: "field-help", role: "status" });
  const button = h("button", { type: "button", className: "button" });
  const draw = () => {
    button.textContent = settings.notifies() ? t("Turn off notifications") : t("Turn on notifications");
    said.textContent = t("Shown when something needs you while this page is in the background.");
    if (!("Notification" in window)) said.textContent = t("This browser has no notifications.");
    else if (Notification.permission === "denied") said.textContent = t("Notifications are blocked in your browser’s settings.");
    button.disabled = !("Notification" in window) || Notification.permission === "denied";
  };
  button.onclick = async () => {
    if (settings.notifies()) settings.chooseNotifications(false);
    else settings.chooseNotifications((await Notification.requestPermission()) === "granted");
    draw();
  };
  draw();
  return h("div", { className: "field" }, h("span", { className: "label" }, t("Notifications")), h("div", {}, button), said);
}
