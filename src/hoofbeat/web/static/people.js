"use strict";
// The invitation link: a button that copies it, where the browser can.
const copy = document.getElementById("copy");
const link = document.getElementById("link");
if (copy && link && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(link.value);
      hoofbeat.say("The link is copied.");
    } catch {
      link.select();
      hoofbeat.say("The link is selected: copy it with your keyboard.");
    }
  });
}
