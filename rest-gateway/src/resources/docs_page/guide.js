// Gives the code of a guide its buttons for copying.

import { code } from "./dom.js";

for (const block of document.querySelectorAll("main pre")) {
  block.replaceWith(code(block.textContent.trimEnd(), "Code"));
}
