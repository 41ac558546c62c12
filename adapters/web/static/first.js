// Runs before anything is painted, and stays when nothing else does: the colours, the time zone, and what to say when the page fails.

(() => {
  try {
    const theme = localStorage.getItem("countersign-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    const zone = localStorage.getItem("countersign-zone");
    if (zone) document.documentElement.dataset.zone = Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    // Without storage, or with a zone that there is not (any more), these are the system's.
  }
  const failed = (event) => {
    if (String(event.message).includes("ResizeObserver")) return; // no failure, though browsers report it as one
    const box = document.getElementById("failure");
    if (box) box.hidden = false;
  };
  addEventListener("error", failed);
  addEventListener("unhandledrejection", failed);
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("reload").onclick = () => location.reload();
  });
})();
