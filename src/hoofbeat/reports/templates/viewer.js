"use strict";
for (const viewer of document.querySelectorAll(".viewer")) {
  const filter = viewer.querySelector(".filter");
  const find = filter.querySelector("input");
  const choose = filter.querySelector("select");
  const told = filter.querySelector("output");
  const entries = [...viewer.querySelectorAll(":scope > .entry")];
  const update = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of entries) {
      const text = words.length ? entry.textContent.toLowerCase() : "";
      const fits = !choose.value || entry.dataset.states.split("|").includes(choose.value);
      entry.hidden = !fits || !words.every((word) => text.includes(word));
      shown += entry.hidden ? 0 : 1;
    }
    told.textContent = shown + " of " + entries.length + " shown";
  };
  find.addEventListener("input", update);
  choose.addEventListener("change", update);
  filter.hidden = entries.length < 2;
  update();
}
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let place = target; place; place = place.parentElement) {
    if (place.localName === "details") {
      place.open = true;
      place.hidden = false;
    }
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
