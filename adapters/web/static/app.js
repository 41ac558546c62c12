// The page's start: who is here, which thread is open, and what the parts tell each other.

import { api, newId } from "./api.js";
import { wireComposer } from "./composer.js";
import { wireConnections } from "./connections.js";
import { byId } from "./dom.js";
import { hideDoor, openWanted, showDoor, wireDoor } from "./door.js";
import { wireGrants } from "./grants.js";
import { drawHeader } from "./header.js";
import { consoleIn } from "./console_address.js";
import { INBOX } from "./inbox.js";
import { languageOf, speak } from "./language.js";
import { wireMemories } from "./memories.js";
import { wireUsage } from "./usage.js";
import { settings } from "./settings.js";
import { openSettings } from "./settings_dialog.js";
import { wireShortcuts } from "./shortcuts.js";
import { addressOf, closeDrawer, goToSearch, wireSidebar } from "./sidebar.js";
import { ThreadView } from "./thread_view.js";
import { refreshTimes } from "./time.js";
import { unsent } from "./unsent.js";

const TIMES_EVERY = 20_000;
const START_AGAIN_AFTER = 3000;

// Tabs of one browser share its session: who one is in one tab, one is in all.
const tabs = new BroadcastChannel("countersign-session");

let view = null;
let operatorsConsole = null;
// Person and thread that were opened last.
let opened = [];

async function start() {
  let session;
  try {
    session = await api.session();
  } catch (problem) {
    view?.close();
    showDoor(null, problem.message);
    setTimeout(start, START_AGAIN_AFTER);
    return;
  }
  if (session.needs_password) leave(session);
  else enter(session);
}

/** Nobody is here (any more). What one person has had on the page is not for the next. */
function leave(session) {
  composer.forget();
  if (view && session.login !== "local") return location.reload();
  view?.close();
  showDoor(session);
}

function enter(session) {
  const another = view && view.session.me.person_id !== session.me.person_id;
  if (another && session.login !== "local") return location.reload();
  hideDoor();
  if (view) view.session = session;
  else view = new ThreadView({ session, sessionChanged: start, refused: checkSession, startNew });
  drawHeader(session, { become, refresh: api.session });
  openWanted();
  openFromAddress();
}

/** The stream goes on trying by itself, unless the session is over. */
async function checkSession() {
  const session = await api.session().catch(() => null);
  if (session?.needs_password) leave(session);
}

async function become(personId) {
  try {
    enter(await api.giveName(personId));
    tabs.postMessage("changed");
  } catch (problem) {
    byId("connection").textContent = problem.message;
  }
}

function openFromAddress() {
  if (!view) return; // it is opened when it is known who is here
  const isInbox = location.hash === INBOX;
  const wanted = consoleIn(location.hash);
  view.show(isInbox ? "inbox" : wanted ? "console" : "conversation");
  if (wanted) {
    document.querySelector("dialog[open]")?.close(); // a link in it may have led here
    showConsole(wanted);
  }
  // What they show comes with the stream of a conversation, whichever it is.
  if (isInbox || wanted) return open(view.threadId || `web:${newId()}`);
  let threadId = "";
  try {
    threadId = decodeURIComponent(location.hash.slice(1));
  } catch {
    // A mangled address opens a new conversation.
  }
  if (!/^web:[\w-]{1,80}$/.test(threadId)) return startNew();
  open(threadId);
}


function open(threadId) {
  const me = view.session.me.person_id;
  composer.belongsTo(me, threadId);
  // Between the inbox or the console and a conversation, what is open already is not read again.
  const isOpen = opened[0] === me && opened[1] === threadId;
  opened = [me, threadId];
  if (!isOpen || !view.isElsewhereEither) view.open(threadId);
}

/** Most people never see the console, so that it is fetched only for those who do. */
async function showConsole(wanted) {
  const { Console } = await import("./console.js");
  operatorsConsole ??= new Console(byId("console"));
  if (consoleIn(location.hash)?.path === wanted.path) await operatorsConsole.show(wanted, view.session.me.person_id);
}

function startNew() {
  const address = addressOf(`web:${newId()}`);
  // An address nobody has written under yet is not worth a step of the browser's history.
  if (location.hash) location.hash = address;
  else {
    history.replaceState(null, "", address);
    openFromAddress();
  }
  byId("message").focus();
}

byId("sign-out").onclick = async () => {
  const session = await api.signOut();
  composer.forget();
  unsent.forgetAll();
  tabs.postMessage("changed");
  if (session.login === "local") leave(session);
  else location.replace("/"); // and the address of a conversation of theirs goes with it
};
byId("settings").onclick = () => {
  closeDrawer();
  openSettings();
};
byId("skip").onclick = (event) => {
  event.preventDefault(); // the address says which conversation is open
  (location.hash === INBOX ? byId("inbox") : consoleIn(location.hash) ? byId("console") : byId("message")).focus();
};

await speak(languageOf(settings.languages()));
wireDoor((session) => {
  enter(session);
  tabs.postMessage("changed");
});
wireConnections();
wireGrants();
wireMemories();
wireUsage();
wireSidebar(startNew);
wireShortcuts({ startNew, search: goToSearch });
const composer = wireComposer((text, files) => view.send(text, files));
tabs.onmessage = start;
addEventListener("hashchange", openFromAddress);
setInterval(refreshTimes, TIMES_EVERY);
start();
