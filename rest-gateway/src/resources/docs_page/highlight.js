// Finds what is coloured in code: comments, strings, numbers, names of members, and the keywords of the languages
// that the page shows. An approximation: a wrong colour is better than a library for each language.

const KEYWORDS = new Set(
  `and as async await break case catch class const continue curl def defer echo elif else except export false False
  finally fn for foreach from func function go if impl import in let match mod mut namespace new nil none None not null
  or package pub raise return self static struct throw true True try type use var void while with yield`.split(/\s+/),
);

// `#[` begins an attribute in Rust.
const COMMENT = String.raw`(?<=^|\s)(?:#(?!!?\[)|//)[^\n]*`;
const STRING = String.raw`"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|${"`[^`]*`"}`;
const TOKEN = new RegExp(
  String.raw`(?<comment>${COMMENT})|(?<name>"[^"\\\n]*"(?=\s*:))|(?<string>${STRING})|(?<number>\b\d[\w.]*)|(?<keyword>[A-Za-z_]\w*)`,
  "gm",
);

/** Splits a text into parts, in order; the `kind` of those without a colour is undefined. */
export function tokens(text) {
  const parts = [];
  let end = 0;
  for (const { index, groups, 0: token } of text.matchAll(TOKEN)) {
    const [kind] = Object.entries(groups).find(([, matched]) => matched !== undefined);
    if (kind === "keyword" && !KEYWORDS.has(token)) continue;
    parts.push({ text: text.slice(end, index) }, { kind, text: token });
    end = index + token.length;
  }
  return [...parts, { text: text.slice(end) }];
}
