"use strict";
// What every page shares: telling the reader what happened, and posting with the token against forged requests.
const hoofbeat = {
  csrf: document.querySelector('meta[name="csrf"]')?.content ?? "",

  say(text) {
    const place = document.getElementById("status");
    if (place) place.textContent = text;
  },

  async post(url, body) {
    const answer = await fetch(url, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": hoofbeat.csrf },
      body: JSON.stringify(body),
    });
    const data = await answer.json().catch(() => ({}));
    if (!answer.ok) throw Object.assign(new Error(data.error || `error ${answer.status}`), { status: answer.status, data });
    return data;
  },
};
