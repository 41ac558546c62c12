// Which agent works on what one writes, beside the message box; nothing where there is only one.

import { api } from "./api.js";
import { byId, h } from "./dom.js";

/** Draws the picker. `agents`: name, description, is_current of each; `refused(problem)`: what was picked is not kept. */
export function drawAgents(agents, refused) {
  const picker = byId("agent");
  picker.hidden = agents.length < 2;
  picker.replaceChildren(...agents.map(({ name, description, is_current }) => h("option", { value: name, title: description, selected: is_current }, name)));
  picker.onchange = async () => {
    const before = agents;
    try {
      ({ agents } = await api.pickAgent(picker.value));
    } catch (problem) {
      refused(problem);
      drawAgents(before, refused);
    }
  };
}
