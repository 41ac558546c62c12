// The door: how somebody signs in, in the way that this server takes.

import { api } from "./api.js";
import { byId } from "./dom.js";
import { t } from "./language.js";

const SHARED = "countersign";
// What follows # in an address is not sent anywhere: this tab keeps it on the way to an issuer and back.
const WANTED = "countersign-wanted";

let login = "local";
let registering = false;

/** Show it. `session` is what the server said last, null where it could not be asked; `message` says what went wrong. */
export function showDoor(session, message = "") {
  byId("app").hidden = true;
  byId("door").hidden = false;
  byId("door").classList.toggle("offline", session === null);
  byId("door-error").textContent = message;
  if (session === null) return;
  login = session.login;
  registering = false;
  byId("door-names").hidden = login !== "password";
  byId("door-passwords").hidden = byId("door-submit").hidden = login === "oidc";
  // Password managers know the password that all share by the name that stands there.
  if (login === "password" && byId("username").value === SHARED) byId("username").value = "";
  byId("door-switch").hidden = !session.register;
  byId("door-issuer").hidden = login !== "oidc";
  byId("door-issuer").textContent = t("Sign in with {name}", { name: session.issuer_name });
  draw();
  (login === "oidc" ? byId("door-issuer") : login === "password" ? byId("username") : byId("password")).focus();
}

export function hideDoor() {
  byId("door").hidden = true;
  byId("app").hidden = false;
}

/** Open what was wanted before the way to an issuer, where the page came back without it. */
export function openWanted() {
  const wanted = sessionStorage.getItem(WANTED);
  sessionStorage.removeItem(WANTED);
  if (wanted && !location.hash) history.replaceState(null, "", wanted);
}

function draw() {
  byId("door-title").textContent = registering ? t("Create an account") : "Countersign";
  byId("door-submit").textContent = registering ? t("Create account") : t("Sign in");
  byId("door-switch").textContent = registering ? t("I have an account") : t("Create an account");
  byId("username-hint").hidden = byId("password-hint").hidden = !registering;
  byId("username").required = login === "password";
  byId("password").autocomplete = registering ? "new-password" : "current-password";
  if (registering) byId("password").minLength = 8;
  else byId("password").removeAttribute("minlength");
}

/** `signedIn(session)` is called when somebody has. */
export function wireDoor(signedIn) {
  byId("door-form").onsubmit = async (event) => {
    event.preventDefault();
    byId("door-error").textContent = "";
    byId("door-submit").disabled = true;
    try {
      const password = byId("password").value;
      const session = await enter(byId("username").value.trim().toLowerCase(), password);
      byId("password").value = "";
      signedIn(session);
    } catch (problem) {
      byId("door-error").textContent = problem.message;
      if (problem.status === 409 || problem.status === 422) byId("username").select();
      else byId("password").select();
    } finally {
      byId("door-submit").disabled = false;
    }
  };
  byId("door-issuer").onclick = () => sessionStorage.setItem(WANTED, location.hash);
  byId("door-switch").onclick = () => {
    registering = !registering;
    byId("door-error").textContent = "";
    draw();
    byId("username").focus();
  };
}

async function enter(username, password) {
  if (login === "local") return api.givePassword(password);
  return registering ? api.register(username, password) : api.signIn(username, password);
}
