"use strict";
// Team pages: what is shown follows what happens, without a flicker; and fields that hang on others come and go.
(() => {
  const live = [...document.querySelectorAll("[data-live]")];
  const watched = document.querySelector("[data-watch]");
  const every = Number(document.querySelector("[data-every]")?.dataset.every ?? 4) * 1000;
  let position = watched?.dataset.position;

  async function moved() {
    if (!watched) return true;
    const answer = await fetch(watched.dataset.watch, { credentials: "same-origin" });
    if (!answer.ok) return false;
    const now = String((await answer.json()).position);
    if (now === position) return false;
    position = now;
    return true;
  }

  // The page's own address brings the same page as it is now; of it, only what differs takes the old one's place.
  async function refresh() {
    if (document.hidden || !(await moved())) return;
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const place of live) {
      const old = document.getElementById(place.id);
      const now = page.getElementById(place.id);
      if (!old || !now || old.textContent === now.textContent || old.contains(document.activeElement)) continue;
      for (const part of now.querySelectorAll("details")) {
        const same = [...old.querySelectorAll("details")].find((each) => each.className === part.className);
        if (same?.open) part.open = true;
      }
      old.replaceWith(document.adoptNode(now));
      hoofbeat.dressTables(now);
    }
  }

  if (live.length) {
    setInterval(() => refresh().catch(() => {}), every);
    document.addEventListener("visibilitychange", () => refresh().catch(() => {}));
  }

  const form = document.querySelector(".deciding");
  if (form) {
    const asked = [...form.querySelectorAll("[data-when]")];
    const value = (name) => new FormData(form).get(`v:${name}`);
    const settle = () => {
      for (const field of asked) {
        const when = Object.entries(JSON.parse(field.dataset.when || "{}"));
        field.toggleAttribute("data-off", when.length > 0 && !when.some(([name, wanted]) => wanted.includes(value(name))));
      }
    };
    form.addEventListener("change", settle);
    settle();
  }
})();
