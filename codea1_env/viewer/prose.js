"use strict";
// A question's text with its code shown as code: `inline` and fenced blocks, as Markdown marks them. Everything else of
// Markdown stays as it is written. Reads the text once, and puts nothing but text into nodes.

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)$/;

// The text as nodes.
function prose(text) {
  const fragment = document.createDocumentFragment();
  let plain = [];
  let block = null; // {fence, lines} while one is open
  const flush = () => {
    if (plain.length) fragment.append(withCode(plain.join("\n")));
    plain = [];
  };
  const close = () => {
    fragment.append(make("pre", { class: "fenced", tabindex: "0" }, codeInline(block.lines.join("\n"), MOST_SHOWN)));
    block = null;
  };
  for (const line of text.slice(0, MOST_SHOWN).split("\n")) {
    const found = FENCE.exec(line);
    if (block) {
      if (found && found[1].startsWith(block.fence) && !found[2].trim()) close();
      else block.lines.push(line);
    } else if (found && !(found[1][0] === "`" && found[2].includes("`"))) {
      flush();
      block = { fence: found[1], lines: [] };
    } else plain.push(line);
  }
  flush();
  if (block) close();
  if (text.length > MOST_SHOWN) fragment.append(make("span", { class: "cut" }, " … " + count(text.length - MOST_SHOWN, "character") + " more"));
  return fragment;
}

// Code between two equal runs of backticks of one paragraph. A run without a partner stays as it is.
function withCode(text) {
  const fragment = document.createDocumentFragment();
  text.split(/(\n[ \t]*\n)/).forEach((part) => {
    const runs = [...part.matchAll(/`+/g)].map((found) => ({ from: found.index, to: found.index + found[0].length }));
    const latest = new Map();
    for (const run of runs.toReversed()) { // each run's partner: the next one of its length
      run.partner = latest.get(run.to - run.from);
      latest.set(run.to - run.from, run);
    }
    let end = 0;
    for (const run of runs) {
      if (run.from < end || !run.partner) continue;
      const code = part.slice(run.to, run.partner.from).replaceAll("\n", " ");
      const bare = /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code;
      fragment.append(shown(part.slice(end, run.from)), codeInline(bare, MOST_SHOWN));
      end = run.partner.to;
    }
    fragment.append(shown(part.slice(end)));
  });
  return fragment;
}
