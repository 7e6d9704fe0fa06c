"use strict";
// Reading question after question: arrows lead to the neighbours, all answers open at once, a link opens its answer.
const open = document.querySelector("[data-unfold]");
if (open) {
  open.hidden = false;
  open.addEventListener("click", () => {
    const folded = document.querySelectorAll("details.answer");
    const all = [...folded].every((each) => each.open);
    for (const each of folded) each.open = !all;
    open.textContent = all ? "Open all" : "Close all";
  });
}
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || target.localName !== "details") return;
  target.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (![document.body, document.getElementById("main")].includes(document.activeElement)) return;
  const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const link = rel && document.querySelector(`.steps a[rel=${rel}]`);
  if (link) link.click();
});
