"use strict";
// Tables: columns that can be sorted, long ones filtered by words and copied for a spreadsheet, and rows as cards where a
// phone's screen is too narrow for the table.
// Without script a table has the order the server gave it, and scrolls sideways in its own box.
{
  const NARROW = matchMedia("(max-width: 40rem)");
  const LONG = 26; // characters: a cell with more takes a whole line of its card
  const MANY = 14; // a matrix of more sources would be thousands of cells one below the other
  const rowsOf = (table) => [...table.tBodies].flatMap((body) => [...body.rows]);
  const plain = (table) => rowsOf(table).every((row) => [...row.cells].every((cell) => cell.colSpan === 1 && cell.rowSpan === 1));
  const wordsOf = (cell) => cell.textContent.replace(/\s+/g, " ").trim();

  // Sorting

  const NOTHING = new Set(["", "–", "?", "not given", "none", "none yet", "not asked"]);
  const NUMBER = /^[<>≤≥≈]?\s*([+−-]?\d[\d,]*(?:\.\d+)?)/;

  function keyOf(cell) {
    const small = cell?.querySelector("small");
    const words = cell ? (small ? wordsOf(cell).slice(0, -wordsOf(small).length || undefined) : wordsOf(cell)).trim() : "";
    if (NOTHING.has(words)) return null;
    const number = NUMBER.exec(words);
    return number && cell.classList.contains("num") ? Number(number[1].replaceAll(",", "").replace("−", "-")) : words;
  }

  function sort(table, head, place) {
    const numeric = head.classList.contains("num");
    const ways = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const way = ways[ways.indexOf(head.getAttribute("aria-sort")) + 1] ?? "none";
    for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
    if (way !== "none") head.setAttribute("aria-sort", way);
    const sign = way === "descending" ? -1 : 1;
    const keys = new Map(rowsOf(table).map((row) => [row, keyOf(row.cells[place])]));
    for (const body of table.tBodies) {
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [keys.get(one), keys.get(other)];
        const order = way === "none" || a === b ? 0 : a === null ? 1 : b === null ? -1
          : sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
        return order || one.dataset.place - other.dataset.place;
      });
      body.append(...rows);
    }
    const name = wordsOf(head);
    hoofbeat.say(way === "none" ? "In the first order again" : `Sorted by ${name}, ${way}`);
  }

  function makeSortable(table) {
    const head = table.tHead?.rows.length === 1 ? table.tHead.rows[0] : null;
    if (!head || rowsOf(table).length < 3 || head.cells.length < 2 || !plain(table)) return;
    rowsOf(table).forEach((row, place) => { row.dataset.place = place; });
    [...head.cells].forEach((cell, place) => {
      if (cell.tagName !== "TH" || !wordsOf(cell)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => sort(table, cell, place));
    });
  }

  // Rows by words, and a copy with tabs: spreadsheets read it

  const FILTERED = 12; // rows: a shorter table is seen at a glance

  function addTools(table) {
    const rows = rowsOf(table);
    if (rows.length < FILTERED || !plain(table)) return;
    const tools = document.createElement("div");
    tools.className = "table-tools";
    const words = new Map(rows.map((row) => [row, wordsOf(row).toLowerCase()]));
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    input.type = "search";
    count.setAttribute("role", "status");
    label.append("Rows with ", input);
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) shown += !(row.hidden = !wanted.every((word) => words.get(row).includes(word)));
      count.textContent = wanted.length ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
    });
    if (!table.closest("[data-searched]")) tools.append(label); // the page's own search finds more words
    if (navigator.clipboard) { // a page without HTTPS has none, except on this machine
      const copy = document.createElement("button");
      copy.type = "button";
      copy.className = "quiet";
      copy.textContent = "Copy table";
      copy.addEventListener("click", async () => {
        const lines = [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(wordsOf).join("\t"));
        const done = await navigator.clipboard.writeText(lines.join("\n")).then(() => true, () => false);
        const copied = rows.filter((row) => !row.hidden).length;
        count.textContent = done ? `${copied.toLocaleString("en")} row${copied === 1 ? "" : "s"} copied` : "The browser did not allow copying";
      });
      tools.append(copy);
    }
    tools.append(count);
    table.parentElement.before(tools);
  }

  // Cards

  const ROLES = [["thead, tbody", "rowgroup"], ["tr", "row"], ["td", "cell"], ["th[scope=row]", "rowheader"], ["th[scope=col]", "columnheader"]];

  function nameOf(cell) { // with its small print apart: an institution, and the title of its document
    const words = wordsOf(cell);
    const small = cell.querySelector("small");
    const print = small ? wordsOf(small) : "";
    return print && print !== words && words.endsWith(print) ? `${words.slice(0, -print.length).trim()}, ${print}` : words;
  }

  function label(table) {
    const first = table.tHead?.rows[0] ?? table.rows[0];
    first?.classList.add("heads");
    const names = [...(first?.cells ?? [])].map((cell) => cell.title || nameOf(cell));
    for (const row of table.rows) {
      if (row === first) continue;
      [...row.cells].forEach((cell, place) => {
        if (names[place] && (cell.tagName === "TD" || cell.classList.contains("num"))) cell.dataset.label = names[place];
        if (wordsOf(cell).length > LONG) cell.classList.add("long");
      });
    }
  }

  function card(table) {
    const box = table.parentElement;
    table.classList.remove("carded");
    const wide = NARROW.matches && table.scrollWidth > box.clientWidth + 1;
    table.classList.toggle("carded", wide);
    box.classList.toggle("of-cards", wide);
    if (wide) table.setAttribute("role", "table");
    else table.removeAttribute("role");
    for (const [found, role] of ROLES) {
      for (const each of table.querySelectorAll(found)) wide ? each.setAttribute("role", role) : each.removeAttribute("role");
    }
  }

  const boxed = (root) => [...root.querySelectorAll(":is(.table, .matrix, .grid) > table")]
    .filter((table) => plain(table) && (table.tHead?.rows[0] ?? table.rows[0])?.cells.length > 1)
    .filter((table) => !table.parentElement.matches(".matrix, .grid") || table.rows.length <= MANY);

  // Also for a part of a page that is brought up to date.
  hoofbeat.dressTables = (root) => {
    for (const table of root.querySelectorAll(".table > table")) {
      if (table.closest("[data-unsorted]")) continue;
      makeSortable(table);
      addTools(table);
    }
    for (const table of boxed(root)) { label(table); card(table); }
  };
  hoofbeat.dressTables(document);
  NARROW.addEventListener("change", () => boxed(document).forEach(card));
  document.addEventListener("toggle", (event) => boxed(event.target).forEach(card), true); // folded, they have no width
}
