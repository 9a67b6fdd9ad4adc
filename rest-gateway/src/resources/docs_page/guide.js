// Gives the code of a guide its colours and buttons for copying; blocks that follow each other in different
// languages become tabs.

import { code } from "./dom.js";
import { languages } from "./languages.js";

const NAMES = { sh: "Bash", mjs: "JavaScript", php: "PHP", py: "Python", go: "Go", rs: "Rust" };

for (const first of document.querySelectorAll("main pre")) {
  if (!first.isConnected) continue; // a tab beside an earlier block
  const texts = {};
  const blocks = [];
  const nameOf = ({ dataset: { language } }) => NAMES[language] ?? language;
  for (let block = first; block?.matches("pre") && !(nameOf(block) in texts); block = block.nextElementSibling) {
    texts[nameOf(block)] = block.textContent.trimEnd();
    blocks.push(block);
  }
  const names = Object.keys(texts);
  const tabs = names.length > 1 && languages(names, "Code", (name) => texts[name]).group;
  first.replaceWith(tabs || code(texts[names[0]], "Code", names[0]));
  for (const block of blocks) block.remove();
}
