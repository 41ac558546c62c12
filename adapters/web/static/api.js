// Everything the page asks of the server, except the event stream.

import { t } from "./language.js";
import { settings } from "./settings.js";

let csrf = "";

/** The server refused: `message` is a sentence for people, `status` the HTTP status, `body` what else it said. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.error || body.detail || t("Something went wrong."));
    this.status = status;
    this.body = body;
  }
}

const SECONDS = 20;
const UPLOAD_SECONDS = 180;
/** A replay reads up to 20,000 entries. */
const REPLAY_SECONDS = 120;
/** A million entries are verified in some minutes. */
const STREAM_SECONDS = 3600;

async function call(method, path, body, options) {
  const response = await send(method, path, body, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

async function send(method, path, body, { seconds = SECONDS, stop } = {}) {
  const isFile = body instanceof Blob;
  const limit = AbortSignal.timeout(seconds * 1000);
  const headers = { Accept: "application/json", "X-Time-Zone": settings.timeZone() };
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (body !== undefined) headers["Content-Type"] = isFile ? body.type || "application/octet-stream" : "application/json";
  try {
    return await fetch(path, {
      method,
      headers,
      body: body === undefined || isFile ? body : JSON.stringify(body),
      credentials: "same-origin",
      signal: stop ? AbortSignal.any([stop, limit]) : limit,
    });
  } catch {
    throw new Refused(0, { error: t("Can’t reach Countersign.") });
  }
}

/** Sends `body` and hands each line of the answer, as JSON, to `take(line)` when it comes. */
async function lines(path, body, take, stop) {
  const response = await send("POST", path, body, { seconds: STREAM_SECONDS, stop });
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const whole = (rest + piece.value).split("\n");
      rest = whole.pop();
      for (const line of whole.filter(Boolean)) take(JSON.parse(line));
    }
  } catch {
    throw new Refused(0, { error: t("Can’t reach Countersign.") });
  }
}

/** A query with what of `values` says something; "" where nothing does. */
export function queryOf(values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return query.size ? `?${query}` : "";
}

const CONSOLE = "/api/console";

/** Keeps the token of a session that the server has just told us about. */
async function session(method, body, path = "/api/session") {
  const answer = await call(method, path, body);
  csrf = answer.csrf;
  return answer;
}

const part = encodeURIComponent;

/** A new id for a click or a message: the same one sent twice has the same id. */
export function newId() {
  // randomUUID exists only in secure contexts; the page may be served over plain HTTP in a trusted network.
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const api = {
  session: () => session("GET"),
  giveName: (person) => session("POST", { person }),
  givePassword: (password) => session("POST", { password }),
  signIn: (username, password) => session("POST", { username, password }, "/login"),
  register: (username, password) => session("POST", { username, password }, "/register"),
  signOut: () => session("DELETE"),
  threads: () => call("GET", "/api/threads"),
  everybodysThreads: () => call("GET", "/api/threads?of=everybody"),
  search: (text) => call("GET", `/api/threads/search?text=${part(text)}`),
  rename: (threadId, title) => call("POST", `/api/threads/${part(threadId)}/title`, { id: newId(), title }),
  remove: (threadId) => call("POST", `/api/threads/${part(threadId)}/deletion`, { id: newId() }),
  /** The status with which the stream of a thread answers, which the browser's EventSource does not tell. */
  streamStatus: async (threadId) => {
    const stop = new AbortController();
    try {
      return (await fetch(`/api/events?thread=${part(threadId)}`, { credentials: "same-origin", signal: stop.signal })).status;
    } finally {
      stop.abort();
    }
  },
  sendMessage: (threadId, id, text, files = []) => call("POST", `/api/threads/${part(threadId)}/messages`, files.length ? { id, text, files } : { id, text }),
  /** Has a file read, to be sent with a message; `stop`: an AbortSignal. */
  upload: (blob, name, stop) => call("POST", `/api/files?name=${part(name)}`, blob, { seconds: UPLOAD_SECONDS, stop }),
  /** Which agent works on what one writes from now on. */
  pickAgent: (name) => call("POST", "/api/agent", { id: newId(), name }),
  stop: (threadId) => call("POST", `/api/threads/${part(threadId)}/stop`, { id: newId() }),
  decide: (decision) => call("POST", "/api/approvals/decisions", { id: newId(), ...decision }),
  handOver: (id, to) => call("POST", `/api/approvals/${part(id)}/handover`, { id: newId(), to }),
  /** Whom one can ask to decide. */
  colleagues: (id) => call("GET", `/api/approvals/${part(id)}/colleagues`),
  /** Have a call that was approved and failed proposed once more. */
  retry: (id) => call("POST", `/api/approvals/${part(id)}/retry`, { id: newId() }),
  withdraw: (id) => call("POST", `/api/approvals/${part(id)}/withdrawal`, { id: newId() }),
  /** What one has decided lately. */
  decided: () => call("GET", "/api/approvals/decided"),
  decidable: (id) => call("GET", `/api/approvals/${part(id)}/together`),
  /** A page of the arguments of a call; `kind`: "approvals", "outcomes" or "grants". */
  argumentPage: (kind, id, page) => call("GET", `/api/${kind}/${part(id)}/arguments?page=${page}`),
  grants: () => call("GET", "/api/grants"),
  revoke: (id) => call("DELETE", `/api/grants/${part(id)}`),
  look: (id) => call("POST", `/api/approvals/${part(id)}/look`, { id: newId() }),
  editForm: (id) => call("GET", `/api/approvals/${part(id)}/form`),
  answer: (id, values) => call("POST", `/api/clarifications/${part(id)}/answer`, { id: newId(), values }),
  settleOutcome: (id, choice) => call("POST", `/api/outcomes/${part(id)}`, { id: newId(), choice }),
  signInLink: (id) => call("GET", `/api/sign-ins/${part(id)}/link`),
  dismiss: (id, action) => call("POST", `/api/clarifications/${part(id)}/dismissal`, { id: newId(), action }),
  enterCode: (id, code) => call("POST", `/api/sign-ins/${part(id)}/code`, { id: newId(), code }),
  usage: () => call("GET", "/api/usage"),
  usageOf: (post) => call("GET", `/api/usage/${part(post)}`),
  memories: () => call("GET", "/api/memories"),
  forget: (id) => call("DELETE", `/api/memories/${part(id)}`),
  forgetAll: () => call("DELETE", "/api/memories"),
  stopRemembering: () => call("POST", "/api/memories/off", { id: newId() }),
  startRemembering: () => call("POST", "/api/memories/on", { id: newId() }),
  connections: () => call("GET", "/api/connections"),
  connectLink: (provider) => call("POST", `/api/connections/${part(provider)}/link`),
  enterConnectionCode: (code) => call("POST", "/api/connections/code", { id: newId(), code }),
  disconnect: (id) => call("DELETE", `/api/connections/${part(id)}`),
  signInReply: (id, done) => call("POST", `/api/sign-ins/${part(id)}`, { id: newId(), done }),
};

/** What operators ask for. */
export const operators = {
  waiting: (query) => call("GET", `${CONSOLE}/waiting${queryOf(query)}`),
  turns: (query) => call("GET", `${CONSOLE}/turns${queryOf(query)}`),
  turn: (id) => call("GET", `${CONSOLE}/turns/${part(id)}`),
  stopNow: () => call("GET", `${CONSOLE}/stop`),
  stop: (why) => call("POST", `${CONSOLE}/stop`, { why }),
  /** `id`: of the stop that is meant. */
  goOn: (why, id) => call("POST", `${CONSOLE}/resumption`, { why, id }),
  audit: (query) => call("GET", `${CONSOLE}/audit${queryOf(query)}`),
  /** Where all that a search finds is to be had; `format`: "jsonl" or "csv". */
  auditExport: (query, format) => `${CONSOLE}/audit/export${queryOf({ ...query, format })}`,
  /** `take(line)` gets how far it is, again and again; `stop`: an AbortSignal. */
  verifyAudit: (anchor, take, stop) => lines(`${CONSOLE}/audit/verification`, anchor ? { anchor } : {}, take, stop),
  rules: (days) => call("GET", `${CONSOLE}/rules${queryOf({ days })}`),
  /** How a call would be judged. */
  askRules: (question) => call("POST", `${CONSOLE}/rules/question`, question),
  replay: (policy) => call("POST", `${CONSOLE}/rules/replay`, { policy }, { seconds: REPLAY_SECONDS }),
  fatigue: (days) => call("GET", `${CONSOLE}/fatigue${queryOf({ days })}`),
  suggestions: () => call("GET", `${CONSOLE}/suggestions`),
  usage: (query) => call("GET", `${CONSOLE}/usage${queryOf(query)}`),
  toolServers: () => call("GET", `${CONSOLE}/tool-servers`),
  retryToolServer: (name) => call("POST", `${CONSOLE}/tool-servers/${part(name)}/retry`),
  replicas: () => call("GET", `${CONSOLE}/replicas`),
  accounts: (query) => call("GET", `${CONSOLE}/accounts${queryOf(query)}`),
  parked: (query) => call("GET", `${CONSOLE}/parked${queryOf(query)}`),
  retryParked: (id) => call("POST", `${CONSOLE}/parked/${part(id)}/retry`),
  giveUpParked: (id) => call("POST", `${CONSOLE}/parked/${part(id)}/giving-up`),
};
