// The files that go with the next message: chosen, dropped or pasted, read by the server at once, shown as a row of chips.

import { api } from "./api.js";
import { byId, h, icon, ICONS } from "./dom.js";
import { t } from "./language.js";

const MOST = 10;
const LARGEST = 20 * 1024 * 1024;

/** A size as file managers say it. */
export function sizeInWords(bytes) {
  if (bytes < 1000) return t("{count} bytes", { count: bytes });
  return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A file of a message, or of the next one. */
export function fileChip(name, ...more) {
  return h("li", { className: "file" }, icon(ICONS.file), h("span", { className: "file-name", dir: "auto" }, name), ...more);
}

/** `onChange(isBusy)` is told whether anything is still being read. Has `take()`, which empties the row and returns what was in it, `isBusy()`, `isEmpty()` and `clear()`. */
export function wireAttachments(onChange) {
  const row = byId("files");
  const chooser = byId("choose-file");
  const button = byId("attach");
  const area = document.querySelector("main.stage");
  let files = [];

  const isBusy = () => files.some((file) => !file.id && !file.problem);

  const draw = () => {
    row.hidden = files.length === 0;
    row.replaceChildren(...files.map(chip));
    onChange(isBusy());
  };

  function chip(file) {
    const remove = h("button", { type: "button", className: "file-remove", ariaLabel: t("Remove {name}", { name: file.name }), onclick: () => drop(file) }, icon(ICONS.cross));
    const element = fileChip(file.name, h("span", { className: "muted small" }, stateOf(file)), remove);
    element.classList.toggle("failed", Boolean(file.problem));
    return element;
  }

  const stateOf = (file) => file.problem || (file.id ? sizeInWords(file.size) : t("Reading…"));

  function drop(file) {
    file.stop?.abort();
    files = files.filter((one) => one !== file);
    draw();
    byId("message").focus();
  }

  async function add(chosen) {
    for (const blob of chosen) {
      const file = { name: blob.name || t("unnamed file"), size: blob.size, stop: new AbortController() };
      if (files.length >= MOST) file.problem = t("At most {count} files", { count: MOST });
      else if (blob.size > LARGEST) file.problem = t("Larger than 20 MB");
      files.push(file);
      draw();
      if (!file.problem) await upload(file, blob);
    }
  }

  async function upload(file, blob) {
    try {
      const kept = await api.upload(blob, file.name, file.stop.signal);
      // What cannot be read is sent all the same: the bot says so, and so does the chip.
      Object.assign(file, { id: kept.id, name: kept.name, size: kept.size, problem: kept.reason });
    } catch (problem) {
      file.problem = problem.message;
    }
    if (files.includes(file)) draw();
  }

  button.onclick = () => chooser.click();
  chooser.onchange = () => {
    add([...chooser.files]);
    chooser.value = "";
  };
  const holdsFiles = (event) => [...(event.dataTransfer?.items ?? [])].some((item) => item.kind === "file") && !byId("composer").hidden;
  area.addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    byId("composer").classList.add("dropping");
  });
  area.addEventListener("dragleave", () => byId("composer").classList.remove("dropping"));
  area.addEventListener("drop", (event) => {
    byId("composer").classList.remove("dropping");
    if (!holdsFiles(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  byId("message").addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (!pasted.length) return;
    event.preventDefault();
    add(pasted);
  });

  return {
    isBusy,
    isEmpty: () => !files.some((file) => file.id),
    take() {
      const taken = files.filter((file) => file.id).map(({ id, name }) => ({ id, name }));
      files = [];
      draw();
      return taken;
    },
    clear() {
      for (const file of files) file.stop.abort();
      files = [];
      draw();
    },
  };
}
