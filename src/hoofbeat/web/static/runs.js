"use strict";
// Reading a question: all answers open at once, and a link opens its answer.
const open = document.querySelector("[data-unfold]");
if (open && document.querySelector("details.answer")) {
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
