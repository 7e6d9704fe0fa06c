"use strict";
// Asks how far the work is; when there is more to show, the page is loaded again.
(() => {
  const place = document.querySelector("[data-ask]");
  if (!place) return;
  const url = `/api/ask/${encodeURIComponent(place.dataset.ask)}`;
  const bar = place.querySelector("progress");
  let wait = 400;

  const write = (name, text) => {
    const node = place.querySelector(`[data-${name}]`);
    if (node && node.textContent !== text) node.textContent = text;
  };

  const look = async () => {
    try {
      const answer = await fetch(url, { credentials: "same-origin", cache: "no-store" });
      if (answer.status === 404) return location.reload();
      if (answer.ok) {
        const now = await answer.json();
        if (String(now.version) !== place.dataset.version) return location.reload();
        write("words", now.words);
        write("step", now.step);
        write("count", now.total ? ` (${now.done} of ${now.total})` : "");
        if (now.total) {
          bar.max = now.total;
          bar.value = now.done;
        } else {
          bar.removeAttribute("value");
        }
      }
    } catch {
      write("words", "The server can't be reached; trying again");
    }
    wait = Math.min(2000, wait * 1.2);
    setTimeout(look, wait);
  };
  setTimeout(look, wait);
})();
