"use strict";
// The review page by keys alone, and words taken over from the source. Keys can be turned off, and never act in a text.
{
  const { visible, inputs, valueOf, mark, current, say, finish, skip, undo, openSkip } = hoofbeat.review;
  const $ = (id) => document.getElementById(id);

  function move(step) {
    const list = visible();
    const place = list.indexOf(current());
    const goal = list[Math.min(Math.max(place + step, 0), list.length - 1)];
    if (goal) mark(goal, true);
  }

  function choose(key) {
    const field = current();
    if (!field || field.hidden || field.dataset.kind === "text") return false;
    const list = inputs(field);
    const input = /^[1-9]$/.test(key) ? list[Number(key) - 1] : list.find((each) => each.dataset.key === key);
    if (!input) return false;
    input.checked = input.type === "checkbox" ? !input.checked : true;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    if (input.type === "radio") {
      const list = visible();
      const waits = (field) => !valueOf(field).length && (field.dataset.kind !== "text" || "required" in field.dataset);
      const next = list.slice(list.indexOf(current()) + 1).find(waits);
      if (next) mark(next, true);
    }
    return true;
  }

  const on = () => { try { return localStorage.getItem("hoofbeat keys") !== "off"; } catch { return true; } };
  $("keys-on").checked = on();
  $("keys-on").addEventListener("change", () => {
    try { localStorage.setItem("hoofbeat keys", $("keys-on").checked ? "on" : "off"); } catch { /* kept for this page only */ }
  });
  const keysUsed = () => $("keys-on").checked;

  const DEEDS = {
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    l: () => $("go-after")?.click(), h: () => $("go-before")?.click(),
    ArrowRight: () => $("go-after")?.click(), ArrowLeft: () => $("go-before")?.click(),
    u: () => undo(), s: () => openSkip(), g: () => $("go-undone").click(), "?": () => $("keys").showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return $("skip").contains(event.target) ? skip() : finish();
    }
    if ($("keys").open || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    const writes = target.matches?.("textarea, select, input[type=text]");
    if (event.key === "Escape") {
      if (!$("skip").hidden) openSkip(false);
      if (writes) target.blur();
      return;
    }
    if (writes || !keysUsed()) return;
    const scrolls = event.key.startsWith("Arrow") && (target.matches?.("input") || target.closest?.(".long"));
    if (scrolls) return; // the browser's own: within a group of choices, or in a long text
    if (choose(event.key.toLowerCase()) || (DEEDS[event.key] && (DEEDS[event.key](), true))) event.preventDefault();
  });
  $("show-keys").addEventListener("click", () => $("keys").showModal());
  $("show-keys").hidden = false;

  // Words of the source

  let selected = "";
  document.addEventListener("selectionchange", () => {
    const chosen = getSelection();
    const at = chosen.anchorNode?.parentElement;
    if (at?.closest("#material .part-source")) selected = chosen.toString().replace(/\s+/g, " ").trim();
  });
  for (const button of document.querySelectorAll(".take")) {
    button.hidden = !document.querySelector("#material .part-source");
    button.addEventListener("click", () => {
      const text = button.parentElement.querySelector("textarea");
      if (!selected) return say("Select words in the source first.", true);
      text.value = text.value.trim() ? `${text.value.trim()}\n${selected}` : selected;
      text.dispatchEvent(new Event("input", { bubbles: true }));
      selected = "";
    });
  }
}
