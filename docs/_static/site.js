// A button that copies a block of commands, without the prompts.
document.addEventListener("DOMContentLoaded", () => {
  const blocks = "div.highlight-console, div.highlight-sh, div.highlight-python, div.highlight-toml, div.highlight-bash";
  for (const block of document.querySelectorAll(blocks)) {
    const box = block.querySelector("div.highlight");
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const text = box.querySelector("pre").textContent.replace(/^\$ /gm, "");
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  }
});
