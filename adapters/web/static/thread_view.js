// The open thread: keeps its entries, follows its events, and has everything drawn.

import { api, newId } from "./api.js";
import { AskedList } from "./asked.js";
import { Conversation } from "./conversation.js";
import * as deciding from "./deciding.js";
import { byId } from "./dom.js";
import { drawReachable } from "./header.js";
import { Drafts, Entries } from "./entries.js";
import { drawThreads } from "./sidebar.js";
import { follow } from "./stream.js";

const DRAFTS_LINGER = 3000;
const CONNECTION_GRACE = 400;
const EVERYBODY_EVERY = 3000;
const SEEN_AS = {
  approver: "You see this because you may decide it.",
  operator: "You see this conversation as an operator. The audit log says that you looked.",
};

/**
 * One open thread at a time. `session` is who the browser is; `sessionChanged()` is called when it is
 * another, `refused()` when the server does not let us read (any more).
 */
export class ThreadView {
  #conversation = new Conversation((text) => this.send(text));
  #entries = new Entries();
  #drafts = new Drafts();
  #stream = null;
  #threads = [];
  #everybodys = [];
  #everybodySoon = null;
  #asked = [];
  #moreAsked = 0;
  #throughPrograms = [];
  #askedList = new AskedList();
  #seenAs = "owner";
  #shownTitle = "";
  #missing = false;
  #lingering = null;
  #decides = new Set();
  #askedAbout = "";
  #loaded = false;
  #unsent = new Map();
  #connection = null;
  #frame = null;

  constructor({ session, sessionChanged, refused }) {
    this.session = session;
    this.sessionChanged = sessionChanged;
    this.refused = refused;
    this.threadId = "";
    byId("stop").onclick = () => this.#stop();
    byId("approve-all").onclick = () => this.#approveAll();
    byId("everybody").onchange = () => this.#readEverybodys();
  }

  open(threadId) {
    this.#stream?.close();
    clearTimeout(this.#lingering);
    this.threadId = threadId;
    this.#entries = new Entries();
    for (const entry of this.#unsent.get(threadId)?.values() ?? []) this.#entries.put(entry);
    this.#drafts.clear();
    this.#decides = new Set();
    this.#askedAbout = "";
    this.#loaded = false;
    this.#missing = false;
    this.#shownTitle = "";
    this.#drawSeenAs("owner");
    this.#conversation.clear();
    this.#conversation.unreachable("");
    this.#conversation.welcome(false);
    this.#status("");
    this.#note("");
    byId("title").textContent = this.#title();
    this.#drawApproveAll();
    this.#drawLists();
    this.#stream = follow(threadId, this.#events());
  }

  close() {
    this.#stream?.close();
  }

  async send(text, id = newId()) {
    const key = `${this.threadId}:${id}`;
    const threadId = this.threadId;
    const entries = this.#entries;
    const { me } = this.session;
    const entry = { kind: "message", id: key, client_id: id, author: me.name, author_id: me.person_id, text, at: Date.now() / 1000, sending: true };
    entries.remove(key);
    entries.put(entry);
    this.#draw();
    this.#conversation.toBottom();
    this.#note("");
    try {
      const { taken } = await api.sendMessage(threadId, id, text);
      this.#unsent.get(threadId)?.delete(key);
      // A one-time code is for the server alone, and is kept nowhere, not on this page either.
      if (taken) entries.remove(key);
      // The event of the stream usually was faster and has replaced it already.
      if (entries.get(key)?.sending) entries.put({ ...entry, sending: false });
    } catch (problem) {
      if (entries.get(key)?.sending) {
        const failed = { ...entry, failed: `Not sent. ${problem.message}` };
        entries.put(failed);
        this.#keepUnsent(threadId, failed);
      }
    }
    if (entries === this.#entries) this.#draw();
  }

  /** It stays in its conversation, to be tried again, whichever is open meanwhile. */
  #keepUnsent(threadId, entry) {
    if (!this.#unsent.has(threadId)) this.#unsent.set(threadId, new Map());
    this.#unsent.get(threadId).set(entry.id, entry);
    if (threadId === this.threadId && this.#entries.put(entry)) this.#draw();
  }

  #events() {
    return {
      session: ({ me, is_operator }) => {
        if (me.person_id !== this.session.me.person_id) this.sessionChanged();
        byId("everybody-switch").hidden = !is_operator;
        if (!is_operator) byId("everybody").checked = false;
      },
      threads: ({ threads, asked, more_asked, through_programs }) => {
        this.#threads = threads;
        this.#asked = asked;
        this.#moreAsked = more_asked;
        this.#throughPrograms = through_programs;
        this.#drawLists();
        if (byId("everybody").checked) this.#everybodySoon ??= setTimeout(() => this.#readEverybodys(), EVERYBODY_EVERY);
        byId("title").textContent = this.#title();
      },
      thread: ({ entries, live, title, seen_as }) => {
        this.#loaded = true;
        this.#missing = false;
        this.#shownTitle = title;
        this.#drawSeenAs(seen_as);
        byId("title").textContent = this.#title();
        this.#conversation.unreachable("");
        this.#conversation.loading(true);
        this.#entries.replaceAll(entries);
        this.#drafts.replaceAll(live.drafts);
        this.#status(live.status);
        this.#draw();
        this.#drawDrafts();
        requestAnimationFrame(() => this.#conversation.loading(false));
      },
      post: (entry) => {
        if (entry.ends_draft && this.#drafts.remove(entry.ends_draft)) this.#drawDrafts();
        if (this.#entries.put(entry)) this.#draw();
      },
      message: (entry) => {
        if (this.#entries.put(entry)) this.#draw();
      },
      text: (part) => {
        if (this.#drafts.add(part)) this.#drawDraftsSoon();
      },
      status: ({ text }) => {
        this.#status(text);
        // The finished answer usually follows at once; what no answer replaces was broken off.
        if (!text) this.#lingering = setTimeout(() => this.#endDrafts(), DRAFTS_LINGER);
      },
      connected: (is) => this.#connected(is),
      refused: () => {
        this.refused();
        this.#askWhyRefused();
      },
    };
  }

  #draw() {
    const entries = this.#entries.list();
    this.#conversation.welcome(entries.length === 0 && this.#seenAs === "owner" && !this.#missing);
    this.#conversation.draw(entries, { me: this.session.me.person_id, people: this.session.people, can: deciding, decides: this.#decides, retry: (entry) => this.send(entry.text, entry.client_id) });
    this.#drawApproveAll();
    this.#askWhatToDecide();
  }

  /** Approve is offered to whoever may decide, which the server knows; it is judged there again at the click. */
  async #askWhatToDecide() {
    const waiting = this.#entries.list().filter((entry) => entry.content?.kind === "approval" && entry.content.status === "pending");
    const about = waiting.map((entry) => `${entry.id}:${entry.revision}`).join(" ");
    if (about === this.#askedAbout) return;
    this.#askedAbout = about;
    if (!waiting.length) return;
    const entries = this.#entries;
    try {
      const { decides } = await api.decidable(waiting[0].content.id);
      if (entries !== this.#entries || about !== this.#askedAbout) return;
      this.#decides = new Set(decides);
      this.#draw();
    } catch {
      this.#askedAbout = ""; // asked again with the next change, or when the server is back
    }
  }

  #toDecide() {
    return this.#entries.pendingApprovals().filter((view) => this.#decides.has(view.id));
  }

  #drawLists() {
    drawThreads(byId("everybody").checked ? this.#everybodys : this.#threads, this.threadId);
    this.#askedList.draw(this.#asked, this.#moreAsked, this.#throughPrograms, this.threadId, { me: this.session.me.person_id, people: this.session.people });
  }

  /** For operators: also the conversations of others. */
  async #readEverybodys() {
    clearTimeout(this.#everybodySoon);
    this.#everybodySoon = null;
    if (byId("everybody").checked) {
      try {
        this.#everybodys = (await api.everybodysThreads()).threads;
      } catch (problem) {
        byId("everybody").checked = false;
        this.#note(problem.message);
      }
    }
    this.#drawLists();
  }

  /** Whoever sees a conversation of somebody else reads it, and decides what is theirs to decide. */
  #drawSeenAs(seenAs) {
    this.#seenAs = seenAs;
    const mine = seenAs === "owner" && !this.#missing;
    byId("composer").hidden = !mine;
    byId("hint").hidden = !mine;
    byId("seen-as").hidden = !SEEN_AS[seenAs] || this.#missing;
    byId("seen-as").textContent = SEEN_AS[seenAs] ?? "";
    if (!mine) byId("stop").hidden = true;
  }

  /** Another's conversation, of which there is nothing to see: it may become something to decide, so the stream tries on. */
  async #askWhyRefused() {
    const threadId = this.threadId;
    if ((await api.streamStatus(threadId).catch(() => 0)) !== 404 || threadId !== this.threadId) return;
    this.#missing = true;
    this.#entries.replaceAll([]);
    this.#drafts.clear();
    this.#draw();
    this.#drawDrafts();
    this.#drawSeenAs("owner");
    this.#connected(true);
    this.#conversation.unreachable("There is no such conversation here.");
    byId("title").textContent = this.#title();
    const { threads } = await api.threads().catch(() => ({ threads: this.#threads }));
    if (threadId !== this.threadId) return;
    this.#threads = threads;
    this.#drawLists();
  }

  #drawDraftsSoon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#drawDrafts();
    });
  }

  #drawDrafts() {
    this.#conversation.drawDrafts(this.#drafts.list());
  }

  #endDrafts() {
    this.#drafts.clear();
    this.#drawDrafts();
  }

  #drawApproveAll() {
    const waiting = this.#toDecide().length;
    if (waiting < 2 && document.activeElement === byId("approve-all")) byId("message").focus();
    byId("approve-all-bar").hidden = waiting < 2;
    if (waiting >= 2) byId("approve-all-text").textContent = `${waiting} approvals are waiting for you.`;
  }

  async #approveAll() {
    await this.#tell("approve-all", async () => {
      const said = await deciding.approveAll(this.#toDecide());
      if (said === null) return "";
      const results = Object.entries(said);
      for (const [id, result] of results) this.#conversation.answer(id, result);
      const counted = results.filter(([, result]) => result.kind === "settled").length;
      return counted === results.length ? "" : `${counted} of ${results.length} approved; the cards say why.`;
    });
  }

  async #stop() {
    await this.#tell("stop", async () => (await api.stop(this.threadId)).text);
  }

  /** Do what a button outside the cards does, once at a time, and show what came of it. */
  async #tell(buttonId, act) {
    const button = byId(buttonId);
    if (button.ariaDisabled === "true") return;
    button.ariaDisabled = "true";
    try {
      this.#note(await act());
    } catch (problem) {
      this.#note(problem.message);
    } finally {
      button.ariaDisabled = null;
    }
  }

  #status(text) {
    clearTimeout(this.#lingering);
    const line = byId("status");
    line.classList.toggle("busy", Boolean(text));
    line.textContent = text;
    const stop = byId("stop");
    if (!text && document.activeElement === stop) byId("message").focus();
    stop.hidden = !text || this.#seenAs !== "owner";
  }

  /** The answer to a click that belongs to no card. */
  #note(text) {
    byId("note").textContent = text;
  }

  #connected(is) {
    clearTimeout(this.#connection);
    if (this.#missing && !is) return;
    const tell = () => {
      byId("connection").textContent = is ? "" : "Reconnecting…";
      drawReachable(is);
      if (!is && !this.#loaded) this.#conversation.unreachable("The server cannot be reached. This conversation appears as soon as it can.");
    };
    if (is) tell();
    else this.#connection = setTimeout(tell, CONNECTION_GRACE);
  }

  #title() {
    if (this.#missing) return "No such conversation";
    return this.#threads.find((thread) => thread.thread_id === this.threadId)?.title || this.#shownTitle || "New conversation";
  }
}
