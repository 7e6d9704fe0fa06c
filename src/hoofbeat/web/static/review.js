"use strict";
// The review page: drafts that save themselves, one save at a time and each under its own id, keys, and a clock.
// A save that gets no answer is sent again under the same id until it gets one, so it counts once however often it
// arrives. Everything here can also be done by the plain form.
{
  const form = document.getElementById("form");
  const $ = (id) => document.getElementById(id);
  const fields = [...form.querySelectorAll(".question")];
  const closed = "closed" in form.dataset;
  const api = form.dataset.api;
  const kept = `hoofbeat ${form.dataset.person} ${api}`; // what is on its way, for a reload of this tab
  const IDLE = 60_000;
  const PAUSE = 700;
  const LONGEST_WAIT = 30_000;

  let version = Number(form.dataset.version);
  let state = form.dataset.state;
  let finished = "finished" in form.dataset; // this item was done before: as a draft it does not count
  let dirty = false; // the form differs from what was sent last
  let sending = null; // the save on its way: {body, then}
  let shut = false; // the last save was refused because nobody was signed in
  let leaving = false; // this page is about to be left for the next
  let timer = 0;
  let retry = 0;
  let wait = 1000;
  document.documentElement.classList.add("scripted");

  // Values

  const inputs = (field) => [...field.querySelectorAll("input, textarea")];
  const nameOf = (field) => field.dataset.field;

  function valueOf(field) {
    if (field.dataset.kind === "text") return field.querySelector("textarea").value;
    const chosen = inputs(field).filter((input) => input.checked).map((input) => input.value);
    return field.dataset.kind === "options" ? chosen : (chosen[0] ?? "");
  }

  function asked(field, values) {
    if (!field.dataset.when) return true;
    return Object.entries(JSON.parse(field.dataset.when)).some(([name, wanted]) => wanted.includes(values[name]));
  }

  function collect() {
    const all = Object.fromEntries(fields.map((field) => [nameOf(field), valueOf(field)]));
    return Object.fromEntries(
      fields.filter((field) => asked(field, all) && all[nameOf(field)].length).map((field) => [nameOf(field), all[nameOf(field)]]),
    );
  }

  function fill(values) {
    for (const field of fields) {
      const value = values[nameOf(field)] ?? "";
      for (const input of inputs(field)) {
        if (input.type === "radio") input.checked = input.value === value;
        else if (input.type === "checkbox") input.checked = value.includes(input.value);
        else input.value = value;
      }
    }
    show();
  }

  function show() {
    const all = Object.fromEntries(fields.map((field) => [nameOf(field), valueOf(field)]));
    for (const field of fields) field.hidden = !asked(field, all);
  }

  // Time: seconds in which the page is seen and somebody does something

  let seconds = Number(form.dataset.seconds);
  let lastDeed = performance.now(); // which goes on evenly, whatever becomes of the machine's clock
  let lastTick = lastDeed;
  const seen = () => { lastDeed = performance.now(); };
  for (const deed of ["pointerdown", "pointermove", "keydown", "wheel", "scroll"]) addEventListener(deed, seen, { passive: true, capture: true });
  function tick() {
    const now = performance.now();
    if (!document.hidden && now - lastDeed < IDLE) seconds += Math.min(now - lastTick, 2000) / 1000;
    lastTick = now;
  }
  setInterval(tick, 1000);

  // Saying how things stand

  const clock = (at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

  function say(text, wrong = false) {
    const line = $("saved");
    if (line.textContent !== text) line.textContent = text;
    line.classList.toggle("wrong", wrong);
  }

  function sayState(label) {
    finished ||= label.state === "done";
    const draft = finished ? "Changed and kept as a draft. Save it to make it count again" : "Draft saved";
    const words = { done: "Done. Saved", draft, skipped: "Skipped. Saved" }[label.state];
    say(label.version ? `${words} ${clock(label.changed)}` : "Nothing saved yet.");
  }

  function sayProgress(progress) {
    $("done-words").textContent = progress.words;
    document.querySelector(".task-head progress").value = progress.done + progress.skipped;
  }

  // Saving

  function requestId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function remember() {
    const unsent = sending?.undo ? null : (sending?.body ?? (dirty ? { values: collect(), base: version } : null));
    try {
      if (unsent) sessionStorage.setItem(kept, JSON.stringify({ ...unsent, latest: collect() }));
      else sessionStorage.removeItem(kept);
    } catch { /* without storage, a reload in these seconds loses what was not sent */ }
  }

  function changed() {
    if (closed) return;
    dirty = true;
    leaving = false;
    remember();
    say(sending ? "Saving …" : "Not saved yet …");
    clearTimeout(timer);
    timer = setTimeout(() => push("draft"), PAUSE);
  }

  // Send what the form holds; while another save is on its way, it goes afterwards.
  function push(wanted, reason = "", then = null) {
    clearTimeout(timer);
    if (closed) return;
    if (sending) {
      sending.after = () => (then || dirty ? push(wanted, reason, then) : null);
      if (wait > 1000) { clearTimeout(retry); send(); }
      return;
    }
    dirty = false;
    tick();
    const body = { values: collect(), state: wanted, reason, seconds, base: version, request: requestId() };
    sending = { url: api, body, then };
    remember();
    send();
  }

  async function send() {
    const mine = sending;
    if (!mine || mine.busy) return;
    mine.busy = true;
    say("Saving …");
    let problem = null;
    const answer = await hoofbeat.post(mine.url, mine.body).catch((error) => { problem = error; });
    mine.busy = false;
    if (answer) return accept(mine, answer);
    const status = problem.status ?? 0;
    if (status === 409 && problem.data?.conflict) return clash(mine, problem.data);
    if (status && status !== 429 && status < 500) return refused(mine, status, problem);
    say(`Not saved: no connection. Trying again in ${Math.round(wait / 1000)} s.`, true);
    retry = setTimeout(send, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }

  function accept(mine, answer) {
    sending = null;
    wait = 1000;
    if (mine.restored && mine.restored.version > answer.label.version) { // it had arrived, and a later one after it
      remember();
      return say("Saved.");
    }
    version = answer.label.version;
    state = answer.label.state;
    if (mine.restored && !dirty && JSON.stringify(mine.restored.latest) !== JSON.stringify(mine.body.values)) {
      fill(mine.restored.latest); // written while this save was on its way, and not sent before the reload
      dirty = true;
    }
    form.elements.base.value = version;
    $("undo").disabled = !version;
    if ($("was-skipped")) $("was-skipped").hidden = state !== "skipped";
    if (mine.undo && !dirty) fill(answer.label.values);
    remember();
    sayState(answer.label);
    sayProgress(answer.progress);
    if (mine.after) return mine.after();
    if (mine.then && !dirty) return mine.then(answer);
    if (dirty) push("draft");
  }

  function refused(mine, status, problem) {
    sending = null;
    leaving = false;
    dirty ||= !mine.undo;
    shut = status === 401 || status === 403;
    const out = shut ? ". Ask the person who invited you for a new link, open it in another tab, then come back here: what you wrote is kept" : "";
    say(`${mine.undo ? "Not undone" : "Not saved"}: ${problem.message}${out}.`, true);
    remember();
  }

  // Two versions

  let theirs = null;
  const words = (field, value) => {
    const said = (one) => inputs(field).find((input) => input.value === one && input.type !== "textarea")?.parentElement.querySelector(".name")?.textContent ?? one;
    if (Array.isArray(value)) return value.map(said).join(", ") || "nothing";
    return value ? said(value) : "nothing";
  };

  function clash(mine, data) {
    sending = null;
    clearTimeout(timer);
    leaving = false;
    dirty = true;
    theirs = data.label;
    if (mine.restored) fill(mine.restored.latest);
    const here = collect();
    const rows = $("conflict-rows");
    rows.replaceChildren();
    for (const field of fields) {
      const [a, b] = [words(field, here[nameOf(field)]), words(field, theirs.values[nameOf(field)])];
      if (a === b) continue;
      const row = rows.insertRow();
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = field.querySelector("legend, label").firstChild.textContent.trim();
      row.append(head);
      row.insertCell().textContent = a;
      row.insertCell().textContent = b;
    }
    if (!rows.rows.length) { // both say the same: nothing to choose
      version = theirs.version;
      dirty = false;
      sayState(theirs);
      sayProgress(data.progress);
      remember();
      if (mine.then) push(mine.body.state, mine.body.reason, mine.then);
      return;
    }
    $("conflict").hidden = false;
    $("keep-mine").onclick = (event) => {
      event.preventDefault();
      version = theirs.version;
      settle();
      push(mine.body.state ?? "draft", mine.body.reason, mine.then);
    };
    $("take-theirs").onclick = (event) => {
      event.preventDefault();
      version = theirs.version;
      state = theirs.state;
      seconds = Math.max(seconds, theirs.seconds);
      fill(theirs.values);
      dirty = false;
      settle();
      remember();
      sayState(theirs);
      sayProgress(data.progress);
    };
    say("Not saved: this item was changed elsewhere. Choose a version above.", true);
    $("conflict").scrollIntoView({ block: "nearest" });
    $("conflict-title").focus();
  }

  function settle() {
    $("conflict").hidden = true;
    form.elements.base.value = version;
  }

  // Acts

  let current = null; // the question that keys answer
  const visible = () => fields.filter((field) => !field.hidden);

  function mark(field, focus = false) {
    for (const each of fields) each.classList.toggle("current", each === field);
    current = field;
    if (focus && field) {
      (field.dataset.kind === "text" ? field.querySelector("textarea") : field).focus({ preventScroll: true });
      field.scrollIntoView({ block: "nearest" });
    }
  }
  form.addEventListener("focusin", (event) => {
    const field = event.target.closest(".question");
    if (field) mark(field);
  });

  function missing() {
    const values = collect();
    let first = null;
    for (const field of fields) {
      const note = field.querySelector(".missing");
      const lacks = !field.hidden && "required" in field.dataset && !(values[nameOf(field)] ?? "").toString().trim();
      note.hidden = !lacks;
      note.textContent = lacks ? "Still to be answered" : "";
      if (lacks) first ??= field;
    }
    if (first) mark(first, true);
    return first;
  }

  function finish() {
    if (!$("conflict").hidden) return $("conflict-title").focus();
    if (missing()) return say("Not finished: answer the marked questions, or skip the item.", true);
    leaving = true;
    push("done", "", (answer) => { if (leaving) location.assign(answer.next); });
  }

  function skip() {
    const reason = $("reason").value;
    const more = $("more").value.trim();
    const last = $("reason").options[$("reason").options.length - 1].value;
    const told = reason && reason !== last ? (more ? `${reason}: ${more}` : reason) : more;
    if (!told) {
      say("Choose a reason, or write it in a few words.", true);
      return (reason ? $("more") : $("reason")).focus();
    }
    leaving = true;
    push("skipped", told, (answer) => { if (leaving) location.assign(answer.next); });
  }

  function undo() {
    if (closed || $("undo").disabled) return;
    clearTimeout(timer);
    const go = () => {
      sending = { url: `${api}/undo`, body: { request: requestId(), base: version }, undo: true };
      send();
    };
    if (sending) sending.after = undo;
    else if (dirty) push("draft", "", go);
    else go();
  }

  function openSkip(open = $("skip").hidden) {
    $("skip").hidden = !open;
    $("open-skip").setAttribute("aria-expanded", String(open));
    if (open) {
      $("reason").focus({ preventScroll: true });
      $("skip").scrollIntoView({ block: "nearest" });
    }
  }

  form.addEventListener("input", (event) => {
    if (!event.target.name?.startsWith("v:")) return;
    const field = event.target.closest(".question");
    field.querySelector(".missing").hidden = true;
    show();
    changed();
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.id === "keep-mine" && !theirs) return; // the server showed the two versions: plain post
    event.preventDefault();
    const act = event.submitter?.value ?? "save";
    if (document.activeElement === $("more")) skip();
    else if (act === "undo") undo();
    else if (act === "skip") skip();
    else finish();
  });
  $("open-skip").addEventListener("click", () => openSkip());
  addEventListener("visibilitychange", () => {
    if (document.hidden) return flush();
    if (shut && dirty) push("draft");
    shut = false;
  });
  addEventListener("pagehide", flush);
  addEventListener("online", () => { if (sending) { clearTimeout(retry); wait = 1000; send(); } });
  $("problem")?.scrollIntoView({ block: "nearest" });

  // The page goes away, or is out of sight.
  function flush() {
    if (dirty && !sending && !shut && $("conflict").hidden) push("draft");
  }

  // Begin

  $("skip").hidden = true;
  $("open-skip").hidden = false;
  for (const id of ["save", "undo", "open-skip"]) if (closed) $(id).disabled = true;
  show();
  mark(visible().find((field) => !valueOf(field).length) ?? visible()[0]);
  if (Number(form.dataset.changed)) sayState({ state, version, changed: Number(form.dataset.changed) });
  if (closed) for (const field of fields) for (const input of inputs(field)) input.disabled = true;

  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // What this tab had not got an answer for before a reload goes first, under the id it had. Where the server has moved
  // on since, that is either this very save, and then all is well, or another one, and then there are two versions.
  try {
    const unsent = JSON.parse(sessionStorage.getItem(kept) ?? "null");
    if (unsent && !closed) {
      const { latest, ...body } = unsent;
      const moved = body.base !== version;
      if (!moved || !body.request) fill(latest);
      if (body.request) {
        dirty = !moved && JSON.stringify(latest) !== JSON.stringify(body.values);
        sending = { url: api, body, restored: moved ? { latest, version } : null };
        send();
      } else {
        version = body.base;
        changed();
      }
    }
  } catch { sessionStorage.removeItem(kept); }

  // For the keys, which are a script of their own.
  hoofbeat.review = { visible, inputs, valueOf, mark, current: () => current, say, finish, skip, undo, openSkip };
}
