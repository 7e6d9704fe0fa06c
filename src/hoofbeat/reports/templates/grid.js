"use strict";
// Grids of labels: built from packed data, walked by the arrow keys, and opened to a pair below them.
const gridPlace = (row, column, count) => {
  const [low, high] = row < column ? [row, column] : [column, row];
  return low * count - (low * (low + 1)) / 2 + high - low - 1;
};

const paired = (flat) => {
  const found = new Map();
  for (let place = 0; place < flat.length; place += 2) found.set(flat[place], flat[place + 1]);
  return found;
};

const gridCell = (said, label, link, planted) => {
  const cell = document.createElement(link ? "a" : "span");
  if (link) cell.href = "#" + link;
  cell.className = "cell " + (label ? "tone" + label[2] : "blank") + (planted ? " off" : "");
  cell.title = said + (planted ? "; planted: " + planted : "");
  return cell;
};

const gridOf = ([title, names, labels, cells, links, marks]) => {
  const [linked, planted] = [paired(links), paired(marks)];
  const table = document.createElement("table");
  table.setAttribute("aria-label", title);
  const head = table.insertRow();
  head.insertCell();
  names.forEach((name, place) => {
    const number = document.createElement("th");
    number.scope = "col";
    number.title = name;
    number.textContent = place + 1;
    head.append(number);
  });
  names.forEach((name, row) => {
    const line = table.insertRow();
    const side = document.createElement("th");
    side.scope = "row";
    side.dir = "auto";
    side.append(made("span", "no", String(row + 1)), " ", name);
    line.append(side);
    names.forEach((other, column) => {
      const cell = line.insertCell();
      if (row === column) {
        cell.className = "self";
        return;
      }
      const place = gridPlace(row, column, names.length);
      const label = labels[cells.charCodeAt(place) - 97];
      const said = name + " and " + other + ": " + (label ? label[0] : "no label");
      const inside = gridCell(said, label, linked.get(place), planted.get(place));
      inside.textContent = label ? label[1] : cells[place] === "-" ? "?" : "";
      cell.append(inside);
    });
  });
  const grid = made("div", names.length > 12 ? "grid many" : "grid");
  grid.setAttribute("role", "group");
  grid.append(table);
  return grid;
};

// One cell of a grid is reached by Tab, the others by the arrow keys.
const walked = (grid) => {
  const cells = [...grid.querySelectorAll(".cell")];
  cells.forEach((cell, place) => {
    cell.tabIndex = place ? -1 : 0;
    if (cell.localName === "span") cell.setAttribute("role", "button");
  });
  grid.dataset.walked = "yes";
};

const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const walk = (cell, [down, right]) => {
  const box = cell.parentElement;
  const rows = [...box.closest("table").rows];
  let [row, column] = [box.parentElement.rowIndex + down, box.cellIndex + right];
  while (rows[row] && rows[row].cells[column]) {
    const next = rows[row].cells[column].querySelector(".cell");
    if (next) {
      next.focus();
      return;
    }
    [row, column] = [row + down, column + right];
  }
};

// What two sources say where the page does not keep their pair: their answers, if the question's are kept.
const unkept = (cell, names) => {
  const note = made("p", "fact", "The judge's words on this pair are not kept in this page; they are in the audit's own table.");
  const sides = made("div", "columns");
  const said = [...cell.closest(".inside").querySelectorAll(".answer")];
  for (const name of names) {
    const answer = said.find((item) => item.querySelector(".system").textContent === name);
    const side = made("div", "");
    side.append(made("p", "side", name));
    if (answer) side.append(...[...(answer.querySelector(".inside") || answer).cloneNode(true).children]);
    sides.append(side);
  }
  return said.length ? [note, sides] : [note];
};

const openPair = async (cell) => {
  const grid = cell.closest(".grid");
  let panel = grid.nextElementSibling;
  if (!panel || !panel.classList.contains("panel")) {
    panel = made("div", "panel");
    panel.tabIndex = -1;
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", "The pair");
    grid.after(panel);
  }
  for (const other of grid.querySelectorAll(".cell.on")) other.classList.remove("on");
  cell.classList.add("on");
  const across = grid.querySelector("tr").cells[cell.parentElement.cellIndex];
  const names = [cell.closest("tr").cells[0].lastChild.textContent, across.title];
  let body = null;
  const id = cell.hash && decodeURIComponent(cell.hash.slice(1));
  if (id) for (const viewer of viewers) body = body || (await viewer.body(id));
  const inside = (body || unkept(cell, names)).filter((node) => !node.classList.contains("question"));
  panel.replaceChildren(made("p", "names", cell.title), ...inside);
  panel.focus({ preventScroll: true });
  panel.scrollIntoView({ block: "nearest" });
};

addEventListener("click", (event) => {
  const cell = event.target.closest(".grid .cell");
  if (!cell || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openPair(cell);
});
addEventListener("keydown", (event) => {
  const cell = event.target.closest(".grid .cell");
  if (cell && steps[event.key]) {
    event.preventDefault();
    walk(cell, steps[event.key]);
  } else if (cell && cell.localName === "span" && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    openPair(cell);
  } else if (event.key === "Escape" && event.target.closest(".panel")) {
    const grid = event.target.closest(".panel").previousElementSibling;
    const from = grid && grid.querySelector(".cell.on");
    if (from) from.focus();
  }
});
addEventListener("focusin", (event) => {
  const cell = event.target.closest(".grid .cell");
  if (!cell) return;
  const grid = cell.closest(".grid");
  if (!grid.dataset.walked) walked(grid);
  for (const other of grid.querySelectorAll(".cell[tabindex='0']")) other.tabIndex = -1;
  cell.tabIndex = 0;
});
