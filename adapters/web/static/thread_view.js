// The open thread: keeps its entries, follows its events, and has everything drawn.

import { drawAgents } from "./agent_picker.js";
import { api, newId } from "./api.js";
import { Conversation } from "./conversation.js";
import * as deciding from "./deciding.js";
import { openDialog } from "./dialogs.js";
import { byId, h } from "./dom.js";
import { Drafts, Entries } from "./entries.js";
import { entryView } from "./entry_views.js";
import { drawReachable, drawSetup, drawStopped, wireMenu } from "./header.js";
import { Inbox } from "./inbox.js";
import { n, spoken, t } from "./language.js";
import { drawThreads } from "./sidebar.js";
import { follow } from "./stream.js";
import { unsent } from "./unsent.js";

const DRAFTS_LINGER = 5000;
const SKELETON_AFTER = 250;
const CONNECTION_GRACE = 400;
const EVERYBODY_EVERY = 3000;
const DECIDED_EVERY = 1000;
const SEEN_AS = {
  approver: () => t("You see this conversation because you can approve a request in it."),
  operator: () => t("You see this conversation as an operator. The audit log records that you looked."),
};

/**
 * One open thread at a time. `session` is who the browser is; `sessionChanged()` is called when it is
 * another, `refused()` when the server does not let us read (any more), `startNew()` after the open one was deleted.
 */
export class ThreadView {
  #conversation = new Conversation((text) => this.send(text));
  #entries = new Entries();
  #drafts = new Drafts();
  #stream = null;
  #threads = [];
  #everybodys = [];
  #everybodySoon = null;
  #inbox = new Inbox();
  #place = "conversation";
  #placeBefore = "conversation";
  #decidedSoon = null;
  #listsLoaded = false;
  #setup = [];
  #turnRuns = false;
  #seenAs = "owner";
  #shownTitle = "";
  #missing = false;
  #lingering = null;
  #decides = new Set();
  #askedAbout = "";
  #loaded = false;
  #skeleton = null;
  #connection = null;
  #frame = null;

  constructor({ session, sessionChanged, refused, startNew }) {
    this.session = session;
    this.sessionChanged = sessionChanged;
    this.refused = refused;
    this.startNew = startNew;
    this.threadId = "";
    byId("stop").onclick = () => this.#stop();
    byId("approve-all").onclick = () => this.#approveAll();
    byId("everybody").onchange = () => this.#readEverybodys();
    wireMenu({ rename: () => this.#rename(), delete: () => this.#delete() });
  }

  /** Whether something else is shown, or was until now: the conversation below it stays as it is. */
  get isElsewhereEither() {
    return this.#place !== "conversation" || this.#placeBefore !== "conversation";
  }

  /** Show the conversation, or in its place the "inbox" or the "console". */
  show(place) {
    this.#placeBefore = this.#place;
    this.#place = place;
    for (const id of ["inbox", "console"]) {
      byId(id).hidden = id !== place;
      if (id === place) byId(`${id}-link`).setAttribute("aria-current", "page");
      else byId(`${id}-link`).removeAttribute("aria-current");
    }
    byId("scroller").hidden = place !== "conversation";
    byId("foot").hidden = place !== "conversation";
    if (place !== "conversation") byId("to-bottom").hidden = true;
    byId("inbox-answer").textContent = "";
    const [name, skip] = {
      conversation: [t("Conversation"), t("Skip to the message box")],
      inbox: [t("Inbox"), t("Skip to the requests")],
      console: [t("Console"), t("Skip to the console")],
    }[place];
    document.querySelector("main.stage").setAttribute("aria-label", name);
    byId("skip").textContent = skip;
    this.#drawTitle();
    this.#drawLists();
    if (place !== "inbox") return;
    byId("inbox").focus({ preventScroll: true });
    this.#readDecided();
  }

  /** Whatever changes anywhere may be about what they have decided, which only the inbox shows. */
  #readDecidedSoon() {
    if (this.#place === "inbox") this.#decidedSoon ??= setTimeout(() => this.#readDecided(), DECIDED_EVERY);
  }

  async #readDecided() {
    clearTimeout(this.#decidedSoon);
    this.#decidedSoon = null;
    const { me } = this.session;
    await this.#inbox.readDecided();
    if (me.person_id === this.session.me.person_id) this.#drawLists();
  }

  open(threadId) {
    this.#stream?.close();
    clearTimeout(this.#lingering);
    this.threadId = threadId;
    this.#entries = new Entries();
    const me = this.session.me.person_id;
    if (me !== this.#person) {
      this.#person = me;
      this.#inbox.forget();
    }
    for (const entry of unsent.failed(me, threadId)) this.#entries.put(entry);
    this.#drafts.clear();
    this.#decides = new Set();
    this.#askedAbout = "";
    this.#loaded = false;
    this.#missing = false;
    this.#shownTitle = "";
    this.#turnRuns = false;
    this.#drawSeenAs("owner");
    this.#conversation.clear();
    this.#drawQueued([]);
    this.#showSkeletonSoon();
    this.#conversation.unreachable("");
    this.#conversation.welcome(false);
    this.#status("");
    this.#note("");
    this.#drawTitle();
    this.#drawApproveAll();
    this.#drawLists();
    this.#stream = follow(threadId, this.#events());
  }

  #person = "";

  close() {
    this.#stream?.close();
  }

  /** Where a conversation comes from far, its place is not left empty. */
  #showSkeletonSoon() {
    clearTimeout(this.#skeleton);
    byId("skeleton").hidden = true;
    this.#skeleton = setTimeout(() => {
      byId("skeleton").hidden = this.#loaded || this.#missing;
    }, SKELETON_AFTER);
  }

  #endSkeleton() {
    clearTimeout(this.#skeleton);
    byId("skeleton").hidden = true;
  }

  /** `files`: ids and names of what was read already. */
  async send(text, files = [], id = newId()) {
    const key = `${this.threadId}:${id}`;
    const threadId = this.threadId;
    const entries = this.#entries;
    const { me } = this.session;
    const entry = { kind: "message", id: key, client_id: id, author: me.name, author_id: me.person_id, text, files: files.map(({ name }) => name), sent_files: files, at: Date.now() / 1000, sending: true, queued: this.#turnRuns };
    entries.remove(key);
    entries.put(entry);
    this.#draw();
    this.#conversation.toBottom();
    this.#note("");
    try {
      const { taken } = await api.sendMessage(threadId, id, text, files.map((file) => file.id));
      this.#forgetUnsent(me.person_id, threadId, key);
      // A one-time code is for the server alone, and is kept nowhere, not on this page either.
      if (taken) entries.remove(key);
      // The event of the stream usually was faster and has replaced it already.
      if (entries.get(key)?.sending) entries.put({ ...entry, sending: false });
    } catch (problem) {
      if (entries.get(key)?.sending) {
        const failed = { ...entry, queued: false, failed: t("Not sent. {problem}", { problem: problem.message }) };
        entries.put(failed);
        this.#keepUnsent(me.person_id, threadId, failed);
      }
    }
    if (entries === this.#entries) this.#draw();
  }

  /** It stays in its conversation, to be tried again, whichever is open meanwhile. */
  #keepUnsent(me, threadId, entry) {
    const others = unsent.failed(me, threadId).filter(({ id }) => id !== entry.id);
    unsent.keepFailed(me, threadId, [...others, entry]);
    if (threadId === this.threadId && this.#entries.put(entry)) this.#draw();
  }

  #forgetUnsent(me, threadId, id) {
    const kept = unsent.failed(me, threadId);
    const others = kept.filter((entry) => entry.id !== id);
    if (others.length < kept.length) unsent.keepFailed(me, threadId, others);
  }

  #events() {
    return {
      session: ({ me, is_operator, is_stopped, setup, agents }) => {
        if (me.person_id !== this.session.me.person_id) this.sessionChanged();
        byId("everybody-switch").hidden = !is_operator;
        if (!is_operator) byId("everybody").checked = false;
        byId("console-link").hidden = !is_operator;
        byId("stopped-link").hidden = !is_operator;
        drawStopped(is_stopped);
        this.#setup = setup;
        drawAgents(agents ?? [], (problem) => this.#note(problem.message));
      },
      threads: (lists) => {
        this.#threads = lists.threads;
        this.#listsLoaded = true;
        this.#inbox.take(lists);
        this.#drawLists();
        this.#readDecidedSoon();
        if (byId("everybody").checked) this.#everybodySoon ??= setTimeout(() => this.#readEverybodys(), EVERYBODY_EVERY);
        this.#drawTitle();
      },
      thread: ({ entries, live, title, seen_as }) => {
        this.#loaded = true;
        this.#missing = false;
        this.#shownTitle = title;
        this.#endSkeleton();
        this.#drawSeenAs(seen_as);
        this.#drawTitle();
        this.#conversation.unreachable("");
        this.#conversation.loading(true);
        this.#entries.replaceAll(entries);
        this.#drafts.replaceAll(live.drafts);
        this.#conversation.drawRunning(live.activity ?? []);
        this.#status(live.status);
        this.#draw();
        this.#drawDrafts();
        requestAnimationFrame(() => this.#conversation.loading(false));
      },
      post: (entry) => {
        // An answer and its draft are told apart by where they stand: it is never shown twice.
        if (this.#drafts.end(entry)) this.#drawDrafts();
        if (this.#entries.put(entry)) this.#draw();
      },
      message: (entry) => {
        if (this.#entries.put(entry)) this.#draw();
      },
      text: (part) => {
        if (this.#drafts.add(part)) this.#drawDraftsSoon();
        if (this.#entries.begins(part.message_id)) this.#draw();
      },
      status: ({ text }) => {
        this.#status(text);
        if (!text) this.#entries.endQueue();
        this.#draw();
        // The finished answer usually follows at once; what no answer replaces was broken off.
        if (!text) this.#lingering = setTimeout(() => this.#endDrafts(), DRAFTS_LINGER);
      },
      activity: ({ activity }) => this.#conversation.drawRunning(activity),
      stop: ({ is_stopped }) => drawStopped(is_stopped),
      connected: (is) => this.#connected(is),
      refused: () => {
        this.refused();
        this.#askWhyRefused();
      },
    };
  }

  #draw() {
    const all = this.#entries.list();
    const entries = all.filter((entry) => !entry.queued);
    const isEmpty = all.length === 0 && this.#seenAs === "owner" && !this.#missing && this.#loaded;
    this.#conversation.welcome(isEmpty);
    drawSetup(this.#setup, isEmpty);
    this.#conversation.draw(entries, { me: this.session.me.person_id, people: this.session.people, can: deciding, decides: this.#decides, retry: (entry) => this.send(entry.text, entry.sent_files, entry.client_id) });
    this.#drawQueued(all.filter((entry) => entry.queued));
    this.#drawApproveAll();
    this.#askWhatToDecide();
  }

  /** What waits for the running turn to end stands below its answer. */
  #drawQueued(entries) {
    const around = { me: this.session.me.person_id, retry: () => {} };
    byId("queued").replaceChildren(...entries.map((entry) => h("div", {}, entryView({ ...entry, sending: false }, around), h("p", { className: "queued-label muted small" }, t("Queued")))));
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
    const countIn = byId("everybody").checked ? (thread) => (thread.owner ? 0 : this.#inbox.countIn(thread)) : (thread) => this.#inbox.countIn(thread);
    drawThreads(byId("everybody").checked ? this.#everybodys : this.#threads, this.#place === "conversation" ? this.threadId : "", countIn, this.#listsLoaded);
    const { count } = this.#inbox;
    for (const id of ["inbox-count", "menu-count"]) {
      byId(id).textContent = String(count);
      byId(id).hidden = !count;
    }
    byId("inbox-link").setAttribute("aria-label", count ? n("Inbox, {count} needs you", "Inbox, {count} need you", count) : t("Inbox"));
    byId("show-threads").setAttribute("aria-label", count ? n("Open conversations, {count} needs you", "Open conversations, {count} need you", count) : t("Open conversations"));
    document.title = count ? `(${count}) Countersign` : "Countersign";
    if (this.#place === "inbox") this.#inbox.draw({ me: this.session.me.person_id, people: this.session.people });
  }

  #drawTitle() {
    byId("title").textContent = { inbox: t("Inbox"), console: t("Console") }[this.#place] ?? this.#title();
    byId("more").hidden = this.#place !== "conversation" || !this.#threads.some((thread) => thread.thread_id === this.threadId);
  }

  async #rename() {
    const { threadId } = this;
    const box = h("input", { type: "text", id: "new-title", maxLength: 80, value: this.#title(), required: true });
    await openDialog({
      title: t("Rename conversation"),
      submit: t("Rename"),
      body: h("div", { className: "field" }, h("label", { for: "new-title" }, t("Title")), box),
      async act() {
        if (!box.value.trim()) throw new Error(t("Enter a title."));
        await api.rename(threadId, box.value.trim());
        return true;
      },
    });
  }

  async #delete() {
    const { threadId } = this;
    await openDialog({
      title: t("Delete this conversation?"),
      submit: t("Delete"),
      tone: "danger",
      body: h("p", {}, t("It disappears for everyone. Open requests in it are cancelled and a running turn is stopped. What was done stays done, and stays in the audit log.")),
      act: async () => {
        await api.remove(threadId);
        if (threadId === this.threadId) this.startNew();
        return true;
      },
    });
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
    byId("seen-as").textContent = SEEN_AS[seenAs]?.() ?? "";
    if (!mine) byId("stop").hidden = true;
  }

  /** Another's conversation, of which there is nothing to see (any more): it is not asked for again. */
  async #askWhyRefused() {
    const threadId = this.threadId;
    if ((await api.streamStatus(threadId).catch(() => 0)) !== 404 || threadId !== this.threadId) return;
    const hadFocus = byId("foot").contains(document.activeElement);
    this.#missing = true;
    this.#followListsOnly();
    this.#endSkeleton();
    this.#entries.replaceAll([]);
    this.#drafts.clear();
    this.#draw();
    this.#drawDrafts();
    this.#drawSeenAs("owner");
    this.#connected(true);
    this.#conversation.unreachable(t("This conversation doesn’t exist, or you can’t see it."), () => this.startNew());
    this.#status("");
    this.#drawTitle();
    if (hadFocus || document.activeElement === document.body) byId("start-elsewhere").focus();
  }

  /** The lists come with the stream of a conversation: with that of one that nobody has begun. What is in them now may
      be there to be seen again. */
  #followListsOnly() {
    const { session, threads, stop, connected } = this.#events();
    const { threadId } = this;
    const nothing = () => {};
    const isListed = ({ asked, threads: own }) => [...asked, ...own].some(({ thread_id: id }) => id === threadId);
    let wasListed = false;
    this.#stream.close();
    this.#stream = follow(`web:${newId()}`, {
      session,
      threads: async (lists) => {
        threads(lists);
        const isNew = isListed(lists) && !wasListed;
        wasListed = isListed(lists);
        if (!isNew || (await api.streamStatus(threadId).catch(() => 0)) !== 200) return;
        if (threadId === this.threadId && this.#missing) this.open(threadId);
      },
      stop,
      connected,
      refused: () => this.refused(),
      thread: nothing,
      post: nothing,
      message: nothing,
      text: nothing,
      status: nothing,
      activity: nothing,
    });
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
    if (waiting >= 2) byId("approve-all").textContent = t("Approve all {count}…", { count: waiting.toLocaleString(spoken()) });
    if (waiting >= 2) byId("approve-all-text").textContent = n("{count} request needs approval", "{count} requests need approval", waiting);
  }

  async #approveAll() {
    await this.#tell("approve-all", async () => {
      const said = await deciding.approveAll(this.#toDecide());
      if (said === null) return "";
      const results = Object.entries(said);
      for (const [id, result] of results) this.#conversation.answer(id, result);
      const counted = results.filter(([, result]) => result.kind === "settled").length;
      return counted === results.length ? "" : t("Approved {counted} of {count}. See cards.", { counted, count: results.length });
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
    this.#turnRuns = Boolean(text);
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
      byId("connection").textContent = "";
      drawReachable(is);
      if (!is && !this.#loaded) {
        this.#endSkeleton();
        this.#conversation.unreachable(t("This conversation appears when the connection is back."));
      }
    };
    if (is) tell();
    else this.#connection = setTimeout(tell, CONNECTION_GRACE);
  }

  #title() {
    if (this.#missing) return t("Not found");
    return this.#threads.find((thread) => thread.thread_id === this.threadId)?.title || this.#shownTitle || t("New conversation");
  }
}
