"use strict";
const PAGE = 25;
const TAGS = new Set("blockquote details div footer li mark meter ol p span summary ul".split(" "));
const NAMES = new Set(["dir", "type", "value", "max", "aria-label", "data-system"]);

// Packed data to nodes: foreign text becomes text nodes and nothing else.
const built = (node, shared) => {
  if (typeof node === "string") return document.createTextNode(node);
  if (typeof node === "number") return built(shared[node], shared);
  const [head, attributes, ...children] = node;
  if (head === "grid") return gridOf(children);
  const [tag, ...classes] = head.split(".");
  if (!TAGS.has(tag)) throw new Error("unknown element " + tag);
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes || {})) if (NAMES.has(name)) element.setAttribute(name, value);
  element.append(...children.map((child) => built(child, shared)));
  return element;
};

const spoken = (node, shared) => {
  if (typeof node === "string") return node;
  if (typeof node === "number") return spoken(shared[node], shared);
  if (node[0] === "grid") return node[3].join(" ");
  return node.slice(2).map((child) => spoken(child, shared)).join(" ");
};

const unpacked = async (script) => {
  const raw = atob(script.textContent);
  const bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place += 1) bytes[place] = raw.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

const made = (tag, name, text) => {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text || "";
  return element;
};

class Viewer {
  constructor(root) {
    this.root = root;
    this.filter = root.querySelector(".filter");
    this.find = this.filter.querySelector("input");
    this.selects = [...this.filter.querySelectorAll("select")];
    this.told = this.filter.querySelector("output");
    this.list = root.querySelector(".list");
    this.pages = root.querySelector(".pages");
    this.data = [...document.querySelectorAll("script[data-for]")].filter((item) => item.dataset.for === root.id);
    this.page = 0;
    this.turn = 0;
    this.ready = this.start();
  }

  async start() {
    if (this.data.length) {
      if (!(await this.unpackHeads())) return;
    } else {
      this.items = [...this.list.children].map((node) => ({
        node,
        codes: node.dataset.codes.split(" ").map(Number),
        places: node.dataset.places.split(";").map((mine) => mine.split(" ").filter(Boolean).map(Number)),
      }));
      this.root.addEventListener("toggle", (event) => this.narrow(event.target), true);
    }
    this.filter.hidden = this.items.length < 2;
    this.find.addEventListener("input", () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.update(), this.data.length ? 250 : 0);
    });
    for (const select of this.selects) select.addEventListener("change", () => this.update());
    this.clear = this.filter.querySelector("[data-clear]");
    this.clear.addEventListener("click", () => this.pick(new Map()));
    this.pages.addEventListener("click", (event) => this.turned(event.target.dataset.to));
    await this.update();
  }

  async unpackHeads() {
    const note = this.root.querySelector(".first");
    if (typeof DecompressionStream === "undefined") {
      note.textContent += " This browser is too old to unpack them.";
      return false;
    }
    const [starts, heads] = await unpacked(this.data[0]);
    this.starts = starts;
    this.items = heads.map(([id, name, title, marks, codes, places]) => ({ id, name, title, marks, codes, places }));
    this.places = new Map(this.items.map((item, place) => [item.id, place]));
    note.hidden = true;
    return true;
  }

  chosen(kind) {
    const select = this.selects.find((item) => item.dataset.filter === kind);
    return select && select.value !== "" ? Number(select.value) : null;
  }

  fits(item) {
    const state = this.chosen("state");
    const system = this.chosen("system");
    const wanted = state === null ? ~0 : 1 << state;
    const mine = system === null ? item.codes : [item.codes[system]];
    if ((state !== null || system !== null) && !mine.some((code) => code & wanted)) return false;
    return this.selects.every(
      (select) => select.dataset.filter !== "facet" || select.value === "" ||
        (item.places[select.dataset.facet] || []).includes(Number(select.value)),
    );
  }

  // The place of the piece that an item is in, and its place in that piece.
  piece(place) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return [low, place - this.starts[low]];
  }

  async opened(number) {
    if (this.last !== number) {
      this.last = number;
      this.kept = unpacked(this.data[number + 1]);
    }
    return this.kept;
  }

  // Set the filters that these names and values ask for, and no other.
  pick(wanted) {
    this.find.value = "";
    for (const select of this.selects) {
      const value = wanted.get(select.dataset.name || select.dataset.filter);
      const option = [...select.options].find((item) => item.textContent === value);
      select.value = option ? option.value : "";
    }
    return this.update();
  }

  // What an item opens to, wherever it stands.
  async body(id) {
    await this.ready;
    if (!this.data.length) {
      const entry = [...this.list.children].find((node) => node.id === id);
      return entry ? [...entry.querySelector(".inside").cloneNode(true).children] : null;
    }
    const place = this.places && this.places.get(id);
    if (place === undefined) return null;
    const [piece, number] = this.piece(place);
    const [shared, bodies] = await this.opened(piece);
    return bodies[number].map((node) => built(node, shared));
  }

  async update() {
    clearTimeout(this.waiting);
    const turn = (this.turn += 1);
    this.clear.hidden = !this.find.value && this.selects.every((select) => select.value === "");
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = this.items.map((_, place) => place).filter((place) => this.fits(this.items[place]));
    this.page = 0;
    this.wanted = null;
    if (!words.length) this.show(all);
    else if (!this.data.length) {
      this.show(all.filter((place) => {
        const text = this.items[place].node.textContent.toLowerCase();
        return words.every((word) => text.includes(word));
      }));
    } else await this.search(all, words, turn);
  }

  // Everything that can be read is searched, piece by piece; what is found shows while the search goes on.
  async search(all, words, turn) {
    const found = [];
    let shown = performance.now();
    let number = -1;
    let shared, bodies;
    for (const [done, place] of all.entries()) {
      const [piece, inside] = this.piece(place);
      if (piece !== number) {
        number = piece;
        [shared, bodies] = await unpacked(this.data[piece + 1]);
        if (turn !== this.turn) return;
        if (performance.now() - shown > 400) {
          this.show([...found], "searching, " + Math.floor((100 * done) / all.length) + "% read");
          shown = performance.now();
        }
      }
      const item = this.items[place];
      const text = [item.name, item.title, ...bodies[inside].map((node) => spoken(node, shared))].join(" ").toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(place);
    }
    this.show(found);
  }

  show(found, state) {
    this.found = found;
    const count = found.length.toLocaleString("en") + " of " + this.items.length.toLocaleString("en");
    this.told.textContent = count + (state ? " found so far; " + state : " shown");
    if (this.data.length) this.showPage();
    else {
      const kept = new Set(found);
      this.items.forEach((item, place) => {
        item.node.hidden = !kept.has(place);
        if (item.node.open) this.narrow(item.node);
      });
    }
  }

  showPage() {
    const last = Math.max(0, Math.ceil(this.found.length / PAGE) - 1);
    this.page = Math.min(this.page, last);
    const here = this.found.slice(this.page * PAGE, (this.page + 1) * PAGE);
    this.list.replaceChildren(...here.map((place) => this.line(place)));
    this.pages.hidden = last === 0;
    this.pages.querySelector(".at").textContent =
      "Page " + (this.page + 1).toLocaleString("en") + " of " + (last + 1).toLocaleString("en");
    for (const button of this.pages.querySelectorAll("button")) {
      button.disabled = ["first", "back"].includes(button.dataset.to) ? this.page === 0 : this.page === last;
    }
  }

  turned(to) {
    if (!to) return;
    const last = Math.ceil(this.found.length / PAGE) - 1;
    this.page = { first: 0, back: this.page - 1, on: this.page + 1, last }[to];
    this.showPage();
    this.root.scrollIntoView();
  }

  line(place) {
    const item = this.items[place];
    const entry = made("details", "entry");
    entry.id = item.id;
    const summary = document.createElement("summary");
    const title = made("span", "what", item.title);
    title.dir = "auto";
    summary.append(made("span", "id", item.name), " ", title);
    if (item.marks.length) {
      const marks = made("span", "marks");
      for (const [text, tone] of item.marks) marks.append(made("span", "mark " + tone, text), " ");
      summary.append(" ", marks);
    }
    const inside = made("div", "inside", "Opening…");
    entry.append(summary, inside);
    entry.addEventListener("toggle", () => this.fill(entry, inside, place), { once: true });
    return entry;
  }

  async fill(entry, inside, place) {
    const [piece, number] = this.piece(place);
    const [shared, bodies] = await this.opened(piece);
    inside.replaceChildren(...bodies[number].map((node) => built(node, shared)));
    this.narrow(entry);
  }

  // Where a system is chosen, an item shows its answers only, and says so.
  narrow(entry) {
    if (!entry.classList.contains("entry")) return;
    const system = this.chosen("system");
    const answers = [...entry.querySelectorAll("[data-system]")];
    let away = 0;
    for (const answer of answers) {
      answer.hidden = system !== null && !answer.dataset.system.split(" ").includes(String(system));
      away += answer.hidden ? 1 : 0;
      if (system !== null && !answer.hidden && answer.localName === "details") answer.open = true;
    }
    const inside = entry.querySelector(":scope > .inside");
    let note = inside.querySelector(":scope > .away");
    if (away && !note) {
      note = made("p", "away");
      inside.append(note);
    }
    if (note) {
      note.hidden = !away;
      note.textContent = away + (away === 1 ? " other answer is" : " other answers are") + " hidden by the filter.";
    }
  }

  // Show one item, whatever the filters say.
  reveal(id) {
    const place = this.places && this.places.get(id);
    if (place === undefined) return false;
    clearTimeout(this.waiting); // a search that was about to begin would put the item away again
    this.find.value = "";
    for (const select of this.selects) select.value = "";
    this.clear.hidden = true;
    this.turn += 1;
    this.page = Math.floor(place / PAGE);
    this.show(this.items.map((_, each) => each));
    return true;
  }
}

const viewers = [...document.querySelectorAll(".viewer")].map((root) => new Viewer(root));
const reveal = async () => {
  const [name, query] = location.hash.slice(1).split("?");
  const id = name && decodeURIComponent(name);
  if (!id) return;
  await Promise.allSettled(viewers.map((viewer) => viewer.ready));
  const asked = query && viewers.find((viewer) => viewer.root.id === id);
  if (asked) await asked.pick(new URLSearchParams(query));
  if (!document.getElementById(id)) viewers.some((viewer) => viewer.reveal(id));
  const target = document.getElementById(id);
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
