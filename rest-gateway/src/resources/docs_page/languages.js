// Code in one of several languages: a choice that all such blocks of the page share.

import { code, element } from "./dom.js";

let chosen = null;
let groups = 0;

/** A group of radio buttons over a block of code. `write` returns the code in a language. */
export function languages(names, label, write) {
  groups += 1;
  const name = `language-${groups}`;
  const current = () => (names.includes(chosen) ? chosen : names[0]);
  const shown = element("div", {});
  const inputs = names.map((language) => {
    const input = element("input", { type: "radio", name, value: language });
    input.addEventListener("change", () => {
      chosen = language;
      document.dispatchEvent(new CustomEvent("language"));
    });
    return input;
  });
  const render = async () => {
    for (const input of inputs) input.checked = input.value === current();
    const language = current();
    const text = await write(language);
    if (language === current()) shown.replaceChildren(code(text, `${label}, ${language}`, language));
  };
  document.addEventListener("language", render);
  render();
  const choices = names.map((language, index) => element("label", {}, inputs[index], element("span", {}, language)));
  const group = element(
    "fieldset",
    { className: "languages" },
    element("legend", {}, label),
    element("div", { className: "tabs" }, ...choices),
    shown,
  );
  return { group, render };
}
