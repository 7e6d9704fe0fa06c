"use strict";
// The source beside a question is scrolled to its first mark. On a narrow screen the contents are folded, as they would
// stand before the text.
for (const pane of document.querySelectorAll("[data-scroll-to-mark]")) {
  const mark = pane.querySelector("mark");
  let reading = false; // whoever has begun to read is not moved any more
  for (const act of ["wheel", "touchstart", "keydown", "pointerdown"]) pane.addEventListener(act, () => { reading = true; }, { passive: true });
  const settle = () => {
    if (mark && !reading) pane.scrollTop += mark.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
  };
  settle();
  for (const image of pane.querySelectorAll("img")) image.addEventListener("load", settle, { once: true });
}
if (matchMedia("(max-width: 62rem)").matches) {
  const boxes = document.querySelectorAll(".contents-box[open]");
  for (const box of boxes) box.open = false;
  const at = boxes.length && location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (at) at.scrollIntoView();
}
