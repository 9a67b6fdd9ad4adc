// The search field, its results, and the texts of the guides and of the codes of errors.

import { element } from "./dom.js";
import { find } from "./search.js";

const SHOWN = 20;

/** Searches the entries of the document, and once it is used, the guides and codes too. */
export function searchBox(documentEntries) {
  const [input, results, count, contents] = ["search", "results", "count", "contents"].map((id) =>
    document.getElementById(id),
  );
  let all = documentEntries;
  const show = () => {
    const isSearching = input.value.trim() !== "";
    const found = find(all, input.value);
    contents.hidden = isSearching;
    results.replaceChildren(...found.slice(0, SHOWN).map(result));
    count.textContent = isSearching ? `${found.length} found` : "";
  };
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    const first = results.querySelector("a");
    if (event.key === "Enter" && first) first.click();
  });
  addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select, textarea");
    if ((event.key === "/" && !isTyping) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      input.focus();
    }
  });
  // They are read when they are first needed.
  input.addEventListener(
    "focus",
    async () => {
      const found = await Promise.all([codes(), ...[...document.querySelectorAll("#guides a")].map(guide)]);
      all = documentEntries.concat(found.flat());
      show();
    },
    { once: true },
  );
}

function result({ href, kind, title, detail }) {
  const link = element("a", { href }, element("span", { className: "kind" }, kind), element("span", {}, title));
  return element("li", {}, link, detail ? element("span", { className: "detail" }, detail) : null);
}

async function read(url) {
  const response = await fetch(url, { credentials: "omit" });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** The codes of errors, violations and warnings. */
async function codes() {
  const page = await read(new URL("../errors", document.baseURI));
  return [...page.querySelectorAll("li")].map((item) => {
    const link = item.querySelector("a");
    return { href: `../${link.getAttribute("href")}`, kind: "Code", title: link.textContent, text: item.textContent };
  });
}

/** The sections of a guide. */
async function guide(link) {
  const page = await read(link.href);
  return [...page.querySelectorAll("main h1, main h2")].map((heading) => {
    let text = "";
    for (let next = heading.nextElementSibling; next && !/^H[12]$/.test(next.tagName); ) {
      text += ` ${next.textContent}`;
      next = next.nextElementSibling;
    }
    const href = heading.id ? `${link.href}#${heading.id}` : link.href;
    return { href, kind: "Guide", title: heading.textContent, detail: link.textContent, text };
  });
}
