// The event stream of the open thread. It reconnects by itself and the server then sends everything again.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
const NAMES = ["session", "threads", "thread", "post", "message", "text", "status", "activity", "stop"];
const STALE_AFTER = 60_000;

/**
 * Follows a thread until `close()`. `on` has one function per event name, and `connected(boolean)`,
 * and `refused()` when the server does not want us (the session may have ended).
 */
export function follow(threadId, on) {
  let source = null;
  let timer = null;
  let wait = FIRST_WAIT;
  let closed = false;
  let hiddenSince = null;

  function connect() {
    clearTimeout(timer);
    source?.close();
    source = new EventSource(`/api/events?thread=${encodeURIComponent(threadId)}`);
    source.onopen = () => {
      wait = FIRST_WAIT;
      on.connected(true);
    };
    // The browser's own retry gives up after an HTTP error, so that ours is used for all errors.
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      source.close();
      on.connected(false);
      if (refused) on.refused();
      if (!closed) timer = setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, LONGEST_WAIT);
    };
    for (const name of NAMES) {
      source.addEventListener(name, (event) => {
        if (!closed) on[name](JSON.parse(event.data));
      });
    }
  }

  // A laptop that slept does not notice that its connection is gone.
  function visibility() {
    if (document.hidden) hiddenSince = Date.now();
    else if (hiddenSince !== null && Date.now() - hiddenSince > STALE_AFTER) connect();
  }

  document.addEventListener("visibilitychange", visibility);
  addEventListener("online", connect);
  connect();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      source.close();
      document.removeEventListener("visibilitychange", visibility);
      removeEventListener("online", connect);
    },
  };
}
