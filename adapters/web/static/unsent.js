// What a person has typed and not sent, and what could not be sent, by conversation; kept in the browser until they
// sign out there.

const PREFIX = "countersign-unsent:";
const MOST = 50;
const LONGEST = 20_000;

/** `kind`: "drafts", texts by conversation, or "failed", lists of entries. */
function readAll(person, kind) {
  try {
    const kept = JSON.parse(localStorage.getItem(`${PREFIX}${person}:${kind}`) ?? "[]");
    return new Map(Array.isArray(kept) ? kept : []);
  } catch {
    return new Map();
  }
}

function keep(person, kind, threadId, value) {
  const all = readAll(person, kind);
  all.delete(threadId); // what was changed last stands last, and is dropped last
  if (value?.length) all.set(threadId, value);
  const kept = [...all].slice(-MOST);
  try {
    localStorage.setItem(`${PREFIX}${person}:${kind}`, JSON.stringify(kept));
  } catch {
    // The storage is full, or switched off: it lasts as long as the page.
  }
}

export const unsent = {
  draft: (person, threadId) => String(readAll(person, "drafts").get(threadId) ?? ""),
  keepDraft: (person, threadId, text) => keep(person, "drafts", threadId, text.slice(0, LONGEST)),
  failed: (person, threadId) => readAll(person, "failed").get(threadId) ?? [],
  keepFailed: (person, threadId, entries) => keep(person, "failed", threadId, entries.slice(-MOST)),
  /** Nothing of anybody's is left in this browser. */
  forgetAll() {
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
    } catch {
      // There is none.
    }
  },
};
