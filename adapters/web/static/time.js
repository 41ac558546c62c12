// Times for people, in the page's language and their time zone, on the clock of 24 hours: the values on cards, which look
// the same for everybody, are written on it too. Times come as seconds since the epoch. Every time on the page is written
// here.

import { h } from "./dom.js";
import { t } from "./language.js";

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;
/** Up to here a distance is said in hours, since "in 1 day" hides how much of the next day is left. */
const MOST_HOURS = 36 * HOUR;

/** The time zone that is chosen for the page; else the browser's own. */
export function timeZone() {
  return document.documentElement.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** "in 3 hours", "5 minutes ago", "just now". */
export function fromNow(seconds) {
  const difference = seconds - Date.now() / 1000;
  const distance = Math.abs(difference);
  if (distance < MINUTE) return difference > 0 ? t("in less than a minute") : t("just now");
  const [unit, size] = Math.round(distance / MINUTE) < 60 ? ["minute", MINUTE] : distance < MOST_HOURS ? ["hour", HOUR] : ["day", DAY];
  return formats().distance.format(Math.round(difference / size), unit);
}

/** "9:08", "14:08", as in the values on cards (`time_in_words` of the server). */
export function clock(seconds) {
  const [hour, minute] = ["hour", "minute"].map((wanted) => formats().clock.formatToParts(seconds * 1000).find(({ type }) => type === wanted).value);
  return `${Number(hour)}:${minute}`;
}

/** "14:08" today, "tomorrow, 14:08", "Tue, 14:08" within a week, "Mar 3, 14:08" else. */
export const short = (seconds) => dated(seconds, clock(seconds));

/** The same, to the second. */
export const shortToTheSecond = (seconds) => dated(seconds, `${clock(seconds)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`);

/** `clockWords`, with the day where it is not today. */
function dated(seconds, clockWords) {
  const made = formats();
  const days = dayOf(seconds) - dayOf(Date.now() / 1000);
  if (days === 0) return clockWords;
  let day = made.date.format(seconds * 1000);
  if (Math.abs(days) === 1) day = made.day.format(days, "day");
  else if (Math.abs(days) < 7) day = made.weekday.format(seconds * 1000);
  else if (made.year.format(seconds * 1000) !== made.year.format(Date.now())) day = made.dateWithYear.format(seconds * 1000);
  return t("{day}, {time}", { day, time: clockWords });
}

/** How long something took: "0.4 s", "12 s", "3 min", "19.5 h", "3.1 days"; not to the moment what nobody notices. */
export function duration(seconds) {
  const number = (value, digits) => value.toLocaleString(language(), { maximumFractionDigits: digits, minimumFractionDigits: digits });
  if (seconds < 0.1) return t("less than {count} s", { count: number(0.1, 1) });
  if (seconds < 9.95) return t("{count} s", { count: number(seconds, 1) });
  if (seconds < 100) return t("{count} s", { count: number(seconds, 0) });
  if (seconds < 100 * MINUTE) return t("{count} min", { count: number(seconds / MINUTE, 0) });
  if (seconds < MOST_HOURS) return t("{count} h", { count: number(seconds / HOUR, 1) });
  return t("{count} days", { count: number(seconds / DAY, 1) });
}

/** A time element: `words(seconds)` in the text, kept current; the exact moment in its title. */
export function time(seconds, words = short) {
  const then = new Date(seconds * 1000);
  const element = h("time", { dateTime: then.toISOString(), title: formats().exact.format(then) }, words(seconds));
  shown.set(element, { seconds, words });
  return element;
}

const shown = new WeakMap();

/** Bring every time on the page up to date; also in another language or zone. */
export function refreshTimes() {
  const exact = formats().exact;
  for (const element of document.querySelectorAll("time")) {
    const known = shown.get(element);
    if (!known) continue;
    const words = known.words(known.seconds);
    if (words !== element.textContent) element.textContent = words;
    element.title = exact.format(known.seconds * 1000);
  }
}

/** The page's language in the variety that the browser asks for: "en-GB" where the page is English. */
function language() {
  const page = document.documentElement.lang || "en";
  return navigator.languages.find((each) => each.split("-")[0] === page.split("-")[0]) ?? page;
}

/** The moment, in seconds, of what a `datetime-local` input says in the person's zone; null: it says none. */
export function momentOf(text) {
  const wanted = Date.parse(`${text}Z`);
  if (Number.isNaN(wanted)) return null;
  // What the clock there shows at a moment says how far the two are apart; twice, where that changes in between.
  const shift = (moment) => wallClock(moment) - moment;
  const near = wanted - shift(wanted);
  return (wanted - shift(near)) / 1000;
}

/** What the clock in the person's zone shows at a moment, as if it were UTC; in milliseconds. */
function wallClock(moment) {
  const parts = Object.fromEntries(formats().wall.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second);
}

let made = { key: "" };

function formats() {
  const words = language();
  const timeZone_ = timeZone();
  const key = `${words}|${timeZone_}`;
  if (made.key === key) return made;
  const hourCycle = "h23";
  const of = (parts) => new Intl.DateTimeFormat(words, { timeZone: timeZone_, ...parts });
  made = {
    key,
    exact: of({ weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short", hourCycle }),
    clock: new Intl.DateTimeFormat("en", { timeZone: timeZone_, hour: "2-digit", minute: "2-digit", hourCycle }),
    weekday: of({ weekday: "short" }),
    date: of({ day: "numeric", month: "short" }),
    dateWithYear: of({ day: "numeric", month: "short", year: "numeric" }),
    year: of({ year: "numeric" }),
    numbers: new Intl.DateTimeFormat("en", { timeZone: timeZone_, year: "numeric", month: "numeric", day: "numeric" }),
    wall: new Intl.DateTimeFormat("en", { timeZone: timeZone_, year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric", hourCycle }),
    distance: new Intl.RelativeTimeFormat(words, { numeric: "always" }),
    day: new Intl.RelativeTimeFormat(words, { numeric: "auto" }),
  };
  return made;
}

/** The number of a day in the person's zone. */
function dayOf(seconds) {
  const parts = Object.fromEntries(formats().numbers.formatToParts(seconds * 1000).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(parts.year, parts.month - 1, parts.day) / (DAY * 1000);
}
