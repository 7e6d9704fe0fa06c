"use strict";
// An exam: the time left, what is marked kept as it is marked, keys for options. The server's clock decides.
(() => {
  const clock = document.querySelector("[data-remaining]");
  const form = document.querySelector("[data-answer]");
  const COME_IN = "Ask the person who invited you for a new link, open it in another tab, then come back here and answer.";
  const calls = [[600, "10 minutes left"], [300, "5 minutes left"], [60, "1 minute left"], [15, "15 seconds left"]];

  // The time left
  let ends = clock ? performance.now() + 1000 * Number(clock.dataset.remaining) : null;
  let told = clock ? Number(clock.dataset.remaining) : 0;
  const quiet = () => setTimeout(() => hoofbeat.say(""), 6000);
  const tick = () => {
    const left = Math.max(0, (ends - performance.now()) / 1000);
    const whole = Math.ceil(left);
    clock.querySelector("[data-clock]").textContent = `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
    clock.classList.toggle("short", left <= 60);
    for (const [at, words] of calls) {
      if (told > at && left <= at) {
        hoofbeat.say(words);
        quiet();
      }
    }
    if (told > 2 && left <= 2) flush();
    told = left;
    if (left > 0) return setTimeout(tick, 250);
    hoofbeat.say("The time is up.");
    return finish();
  };
  const finish = async () => {
    await Promise.race([saving, new Promise((go) => setTimeout(go, 3000))]);
    location.assign(`/exam/${encodeURIComponent(clock.dataset.exam)}`);
  };
  const heard = (state) => {
    if (clock && state.remaining !== null) ends = performance.now() + 1000 * state.remaining;
  };

  // The draft: what is chosen or written and not saved yet
  let saving = Promise.resolve();
  let flush = () => {};
  if (form) {
    const kept = form.querySelector("[data-kept]");
    const before = Number(form.dataset.spent);
    let seen = 0;
    let since = document.hidden ? null : performance.now();
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && since !== null) {
        seen += performance.now() - since;
        since = null;
      } else if (!document.hidden && since === null) {
        since = performance.now();
      }
    });
    const spent = () => before + (seen + (since === null ? 0 : performance.now() - since)) / 1000;
    const marked = () => (form.elements.choice ? form.elements.choice.value : form.elements.text.value);
    let wanted = 0;
    let done = false;
    let last = null; // the answer that the server has
    let shut = false; // nobody is signed in: to send the form would lose what is in it

    const keep = async (turn) => {
      for (let wait = 1000; turn === wanted && !done; wait = Math.min(10000, wait * 2)) {
        try {
          const body = { answer: marked(), stage: Number(form.elements.stage.value), seconds: Number(spent().toFixed(1)) };
          heard(await hoofbeat.post(form.dataset.draft, body));
          shut = false;
          last = body.answer;
          kept.textContent = "Draft kept. It is not saved as your answer yet.";
          return;
        } catch (error) {
          if (error.status) {
            shut = error.status === 401 || error.status === 403;
            kept.textContent = shut ? `Not kept: ${error.message}. ${COME_IN}` : error.message;
            return;
          }
          kept.textContent = "Not kept: the server can't be reached. Trying again.";
          await new Promise((go) => setTimeout(go, wait));
        }
      }
    };
    const mark = () => {
      wanted += 1;
      const turn = wanted;
      saving = saving.then(() => (turn === wanted ? keep(turn) : undefined));
    };
    let later = 0;
    flush = () => {
      if (later) mark();
      clearTimeout(later);
    };
    form.addEventListener("change", mark);
    form.addEventListener("input", (event) => {
      if (event.target.name !== "text") return;
      clearTimeout(later);
      later = setTimeout(() => {
        later = 0;
        mark();
      }, 800);
    });

    form.addEventListener("submit", async (event) => {
      if (done) return;
      event.preventDefault();
      clearTimeout(later);
      if (shut || marked() !== last) {
        mark();
        await Promise.race([saving, new Promise((go) => setTimeout(go, 3000))]);
        if (shut || done) return;
      }
      done = true;
      form.querySelector("[data-seconds]").value = spent().toFixed(1);
      form.querySelector(".acts button").disabled = true;
      form.submit();
    });
    addEventListener("pageshow", (event) => {
      if (event.persisted) location.reload();
    });

    const radios = [...form.querySelectorAll("input[type=radio]")];
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      if (event.target.matches("textarea, input[type=text], select")) return;
      const radio = radios.find((each) => each.value === event.key.toUpperCase());
      if (radio) {
        radio.click();
        radio.focus();
        event.preventDefault();
      }
    });
  }
  if (clock) tick();
})();
