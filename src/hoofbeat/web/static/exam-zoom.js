"use strict";
// Images to look at closely: buttons, wheel, two fingers, keys. Without script the link opens the image itself.
(() => {
  const links = document.querySelectorAll("[data-zoom]");
  if (!links.length) return;
  const make = (name, attributes = {}, ...inside) => {
    const node = Object.assign(document.createElement(name), attributes);
    node.append(...inside);
    return node;
  };
  const title = make("h2", { id: "zoom-title" });
  const level = make("span", { className: "level", role: "status" });
  const button = (words, text, act) => {
    const node = make("button", { type: "button", textContent: text, onclick: act });
    node.setAttribute("aria-label", words);
    return node;
  };
  const picture = make("img");
  const view = make("div", { className: "view" }, picture);
  const tools = make("div", { className: "tools" }, title, level);
  const dialog = make("dialog", { className: "zoomer" }, tools, view);
  dialog.setAttribute("aria-labelledby", "zoom-title");
  let scale = 1;
  let x = 0;
  let y = 0;

  const draw = () => {
    picture.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    level.textContent = `${Math.round(scale * 100)}%`;
  };
  const zoom = (factor) => {
    const next = Math.min(8, Math.max(1, scale * factor));
    x *= next / scale;
    y *= next / scale;
    scale = next;
    if (scale === 1) x = y = 0;
    draw();
  };
  const reset = () => {
    scale = 1;
    x = y = 0;
    draw();
  };
  const move = (dx, dy) => {
    if (scale === 1) return;
    x += dx;
    y += dy;
    draw();
  };
  tools.append(
    button("Smaller", "−", () => zoom(1 / 1.5)),
    button("Larger", "+", () => zoom(1.5)),
    button("As it was", "100%", reset),
    button("Close the image", "Close", () => dialog.close()),
  );
  document.body.append(dialog);

  const fingers = new Map();
  const apart = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  view.addEventListener("pointerdown", (event) => {
    view.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  view.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const here = { x: event.clientX, y: event.clientY };
    if (fingers.size === 2) {
      const was = apart();
      fingers.set(event.pointerId, here);
      if (was > 0) zoom(apart() / was);
    } else {
      fingers.set(event.pointerId, here);
      move(here.x - before.x, here.y - before.y);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) view.addEventListener(name, (event) => fingers.delete(event.pointerId));
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
  }, { passive: false });
  view.addEventListener("dblclick", () => (scale > 1 ? reset() : zoom(2.5)));
  const keys = {
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: reset,
    ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
  };
  dialog.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });

  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      picture.src = link.href;
      picture.alt = link.querySelector("img").alt;
      title.textContent = link.dataset.title;
      reset();
      dialog.showModal();
      dialog.addEventListener("close", () => link.focus(), { once: true });
    });
  }
})();
