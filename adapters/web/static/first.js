// Runs before anything is painted, and stays when nothing else does: the colours, and what to say when the page fails.

(() => {
  try {
    const theme = localStorage.getItem("countersign-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage, the colours are those of the system.
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
