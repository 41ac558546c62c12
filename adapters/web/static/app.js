// The page's start: who is here, which thread is open, and what the parts tell each other.

import { api, newId } from "./api.js";
import { wireComposer } from "./composer.js";
import { wireConnections } from "./connections.js";
import { byId } from "./dom.js";
import { wireGrants } from "./grants.js";
import { drawHeader } from "./header.js";
import { addressOf, wireSidebar } from "./sidebar.js";
import { ThreadView } from "./thread_view.js";
import { refreshTimes } from "./time.js";

const TIMES_EVERY = 20_000;
const START_AGAIN_AFTER = 3000;

// Tabs of one browser share its session: who one is in one tab, one is in all.
const tabs = new BroadcastChannel("countersign-session");

let view = null;

async function start() {
  let session;
  try {
    session = await api.session();
  } catch (problem) {
    showDoor(problem.message);
    byId("door").classList.add("offline");
    setTimeout(start, START_AGAIN_AFTER);
    return;
  }
  if (session.needs_password) showDoor("");
  else enter(session);
}

function showDoor(message) {
  view?.close();
  byId("app").hidden = true;
  byId("door").hidden = false;
  byId("door").classList.remove("offline");
  byId("door-error").textContent = message;
  byId("password").focus();
}

function enter(session) {
  byId("door").hidden = true;
  byId("app").hidden = false;
  if (view) view.session = session;
  else view = new ThreadView({ session, sessionChanged: start, refused: checkSession });
  drawHeader(session, { become, refresh: api.session });
  openFromAddress();
}

/** The stream goes on trying by itself, unless the session is over. */
async function checkSession() {
  const session = await api.session().catch(() => null);
  if (session?.needs_password) showDoor("");
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
  let threadId = "";
  try {
    threadId = decodeURIComponent(location.hash.slice(1));
  } catch {
    // A mangled address opens a new conversation.
  }
  if (!/^web:[\w-]{1,80}$/.test(threadId)) return startNew();
  composer.belongsTo(threadId);
  view.open(threadId);
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

byId("door-form").onsubmit = async (event) => {
  event.preventDefault();
  try {
    const session = await api.givePassword(byId("password").value);
    byId("password").value = "";
    enter(session);
    tabs.postMessage("changed");
  } catch (problem) {
    byId("door-error").textContent = problem.message;
    byId("password").select();
  }
};
byId("sign-out").onclick = async () => {
  await api.signOut();
  tabs.postMessage("changed");
  showDoor("");
};
wireConnections();
wireGrants();
wireSidebar(startNew);
const composer = wireComposer((text) => view.send(text));
tabs.onmessage = start;
addEventListener("hashchange", openFromAddress);
setInterval(refreshTimes, TIMES_EVERY);
start();
