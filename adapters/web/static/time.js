// Times for people, in their own language and time zone. Times come as seconds since the epoch.

import { h } from "./dom.js";

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always" });

const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60]];

/** "in 3 hours", "5 minutes ago", "now". */
export function fromNow(seconds) {
  const difference = seconds - Date.now() / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(difference) >= size) return relative.format(Math.trunc(difference / size), unit);
  }
  return difference > 0 ? "in less than a minute" : "just now";
}

/** "09:41" today, "Tue 09:41" this week, "3 Mar, 09:41" before. */
export function short(seconds) {
  const then = new Date(seconds * 1000);
  const days = (startOfDay(new Date()) - startOfDay(then)) / 86_400_000;
  if (Math.abs(days) < 0.5) return clock.format(then);
  return Math.abs(days) < 6.5 ? day.format(then) : date.format(then);
}

function startOfDay(when) {
  return new Date(when.getFullYear(), when.getMonth(), when.getDate()).getTime();
}

/** A time element: `words(seconds)` in the text, kept current; the exact moment in its title. */
export function time(seconds, words = short) {
  const then = new Date(seconds * 1000);
  const element = h("time", { dateTime: then.toISOString(), title: exact.format(then) }, words(seconds));
  shown.set(element, () => words(seconds));
  return element;
}

const shown = new WeakMap();

/** Bring every time on the page up to date. */
export function refreshTimes() {
  for (const element of document.querySelectorAll("time")) {
    const words = shown.get(element)?.();
    if (words !== undefined && words !== element.textContent) element.textContent = words;
  }
}
