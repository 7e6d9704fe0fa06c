"use strict";
// What every page shares: telling the reader what happened, posting with the token against forged requests, also after
// the same person came in again in another tab, asking before a sign-out, sending no form twice,
// fields that are full, and the arrow keys that lead to the previous and the next thing of a list.
const hoofbeat = {
  csrf: document.querySelector('meta[name="csrf"]')?.content ?? "",

  say(text) {
    const place = document.getElementById("status");
    if (place) place.textContent = text;
  },

  async post(url, body, again = false) {
    const text = JSON.stringify(body);
    const answer = await fetch(url, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": hoofbeat.csrf },
      body: text,
      keepalive: text.length < 15_000, // short ones, which is nearly all, outlive the page
    });
    if ([401, 403].includes(answer.status) && !again && (await hoofbeat.renew())) return hoofbeat.post(url, body, true);
    const data = await answer.json().catch(() => ({}));
    if (!answer.ok) throw Object.assign(new Error(data.error || `error ${answer.status}`), { status: answer.status, data });
    return data;
  },

  // The token of this page, made anew where the very person it is for has come in again; whether there is a new one.
  async renew() {
    const mine = document.querySelector("[data-person]")?.dataset.person;
    const answer = mine ? await fetch(location.href, { credentials: "same-origin" }).catch(() => null) : null;
    if (!answer?.ok) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const token = page.querySelector('meta[name="csrf"]')?.content ?? "";
    if (page.querySelector("[data-person]")?.dataset.person !== mine || token === hoofbeat.csrf) return false;
    hoofbeat.csrf = token;
    for (const input of document.querySelectorAll('input[name="csrf"]')) input.value = token;
    return true;
  },
};

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent || (form.dataset.ask && !confirm(form.dataset.ask))) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, 5000); // whoever stopped the page can send it again
});
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

document.addEventListener("input", ({ target: field }) => {
  if (!(field.maxLength > 0) || field.value.length < field.maxLength) return;
  hoofbeat.say(`This field is full: it takes ${field.maxLength.toLocaleString("en")} characters, and longer text is cut off.`);
});

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (![document.body, document.getElementById("main")].includes(document.activeElement)) return;
  const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const link = rel && document.querySelector(`:is(.steps, .shelf-nav, .pages) a[rel=${rel}]`);
  if (link) link.click();
});
