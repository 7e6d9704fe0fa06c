"use strict";
// Matrices: one stop of the tab key each, arrow keys from cell to cell, Home and End to the ends of a row.
for (const matrix of document.querySelectorAll(".matrix")) {
  const rows = [...matrix.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.querySelector("a.cell")));
  const links = rows.flat().filter(Boolean);
  if (!links.length) continue;
  matrix.removeAttribute("tabindex");
  for (const link of links) link.tabIndex = -1;
  links[0].tabIndex = 0;
  const place = new Map();
  rows.forEach((row, y) => row.forEach((link, x) => { if (link) place.set(link, [x, y]); }));
  const go = (from, dx, dy) => {
    let [x, y] = place.get(from);
    for (;;) {
      x += dx; y += dy;
      if (y < 0 || y >= rows.length || x < 0 || x >= rows[y].length) return null;
      if (rows[y][x]) return rows[y][x];
    }
  };
  const reach = (link) => {
    for (const each of links) each.tabIndex = each === link ? 0 : -1;
    link.focus();
  };
  matrix.addEventListener("focusin", (event) => {
    const link = event.target.closest("a.cell");
    if (link) for (const each of links) each.tabIndex = each === link ? 0 : -1;
  });
  matrix.addEventListener("keydown", (event) => {
    const link = event.target.closest("a.cell");
    if (!link || event.altKey || event.ctrlKey || event.metaKey) return;
    const row = rows[place.get(link)[1]].filter(Boolean);
    const next = {
      ArrowLeft: () => go(link, -1, 0), ArrowRight: () => go(link, 1, 0),
      ArrowUp: () => go(link, 0, -1), ArrowDown: () => go(link, 0, 1),
      Home: () => row[0], End: () => row[row.length - 1],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const target = next();
    if (target) reach(target);
  });
}
