// What a thread holds, as data. Every change is idempotent: an event that comes twice, or late, changes nothing.

/** The entries of one thread, oldest first, by id. */
export class Entries {
  #byId = new Map();

  /** All entries, oldest first; what is not sent yet comes last. */
  list() {
    return [...this.#byId.values()].sort((a, b) => Number(Boolean(a.sending)) - Number(Boolean(b.sending)) || (a.order ?? a.at) - (b.order ?? b.at));
  }

  get(id) {
    return this.#byId.get(id);
  }

  /** Take an entry in, unless the same or a newer revision of it is here already. Returns whether it changed. */
  put(entry) {
    const known = this.#byId.get(entry.id);
    if (known && !known.sending && (known.revision ?? 0) >= (entry.revision ?? 0)) return false;
    this.#byId.set(entry.id, known ? { queued: known.queued, order: known.order, ...entry } : entry);
    return true;
  }

  /** Take in the whole thread: whatever else was here is gone, except messages on their way. */
  replaceAll(entries) {
    const before = this.#byId;
    this.#byId = new Map();
    for (const entry of entries) {
      const known = before.get(entry.id);
      const newer = known && !known.sending && (known.revision ?? 0) > (entry.revision ?? 0);
      this.#byId.set(entry.id, newer ? known : entry);
    }
    for (const entry of before.values()) {
      if (entry.sending && !this.#byId.has(entry.id)) this.#byId.set(entry.id, entry);
    }
  }

  remove(id) {
    this.#byId.delete(id);
  }

  /** The turn of the message begins, to which this answer belongs: it waits for no other. Returns whether it did. */
  begins(messageId) {
    const found = [...this.#byId.values()].find((entry) => entry.queued && messageId.startsWith(`${entry.id}.`));
    if (found) this.#unqueue(found);
    return Boolean(found);
  }

  /** Nothing runs any more, so nothing waits for that. */
  endQueue() {
    for (const entry of [...this.#byId.values()]) if (entry.queued) this.#unqueue(entry);
  }

  /** It stays below what was said while it waited. */
  #unqueue(entry) {
    const order = Math.max(...[...this.#byId.values()].filter((each) => !each.queued).map((each) => each.order ?? each.at), entry.at);
    this.#byId.set(entry.id, { ...entry, queued: false, order });
  }

  /** The approvals that wait for people. */
  pendingApprovals() {
    return this.list()
      .map((entry) => entry.content)
      .filter((content) => content?.kind === "approval" && content.status === "pending");
  }
}

/** Answers that are being written, by message id. */
export class Drafts {
  #byId = new Map();

  list() {
    return [...this.#byId.entries()].map(([id, draft]) => ({ id, text: draft.text }));
  }

  /** Add a part; `n` counts the parts, so that one that is already here is not added again. */
  add({ message_id: id, n, delta }) {
    const draft = this.#byId.get(id) ?? { n: 0, text: "" };
    if (n <= draft.n) return false;
    this.#byId.set(id, { n, text: draft.text + delta });
    return true;
  }

  replaceAll(drafts) {
    this.#byId = new Map(drafts.map((draft) => [draft.message_id, { n: draft.n, text: draft.text }]));
  }

  /** An answer is finished: its draft goes. Returns whether there was one. */
  end({ id, ends_draft: draft }) {
    return [draft, id.replace(/^said:/, "")].filter((each) => each && this.#byId.delete(each)).length > 0;
  }

  clear() {
    this.#byId.clear();
  }
}
