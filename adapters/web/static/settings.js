// What a person has chosen for this browser, kept in it.

const PREFIX = "countersign-";
const YEAR_SECONDS = 31_536_000;

function read(name) {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return ""; // storage is switched off
  }
}

function write(name, value) {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
  } catch {
    // It then holds until the page is closed.
  }
}

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

function isZone(name) {
  try {
    Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Each is "" where nothing was chosen. `timeZone` and `languages` say what holds then. */
export const settings = {
  theme: () => read("theme"),
  chooseTheme(theme) {
    write("theme", theme);
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  },
  chosenZone: () => (isZone(read("zone")) ? read("zone") : ""),
  chooseZone: (zone) => write("zone", isZone(zone) && zone !== ownZone ? zone : ""),
  /** The IANA name of the time zone that times are shown in. */
  timeZone: () => settings.chosenZone() || ownZone,
  ownZone: () => ownZone,
  language: () => read("language"),
  chooseLanguage(name) {
    write("language", name);
    const age = name ? YEAR_SECONDS : 0;
    document.cookie = `countersign-language=${encodeURIComponent(name)}; path=/; max-age=${age}; SameSite=Strict`;
  },
  /** What the page speaks, the best first. */
  languages: () => (read("language") ? [read("language")] : [...navigator.languages]),
  notifies: () => read("notifications") === "on" && "Notification" in window && Notification.permission === "granted",
  chooseNotifications: (on) => write("notifications", on ? "on" : ""),
  isDismissed: (what) => read(`dismissed-${what}`) === "yes",
  dismiss: (what) => write(`dismissed-${what}`, "yes"),
};
