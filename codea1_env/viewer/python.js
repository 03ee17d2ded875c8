"use strict";
// Python source to coloured lines. Reads from left to right once, so that no text takes more than linear time; what it
// does not know is left plain. Colours only: it does not promise that the source is Python.

const KEYWORDS = new Set(
  ("False None True and as assert async await break case class continue def del elif else except finally for from " +
    "global if import in is lambda match nonlocal not or pass raise return try while with yield").split(" "),
);
const BUILTIN_NAMES = new Set(
  ("abs all any bool bytes chr complex dict divmod enumerate filter float frozenset hash hex int isinstance iter len " +
    "list map max min next object ord pow print range repr reversed round set sorted str sum tuple type zip").split(" "),
);
const NAME = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const NUMBER = /(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?|\.\d[\d_]*(?:[eE][+-]?\d+)?)[jJ]?/y;
const QUOTE = /(?:[rRbBuUfF]{0,2})("""|'''|"|')/y;
const BLANK = /[ \t\n\f]+/y;
const MOST_COLOURED = 30000;
const MOST_LINES = 1500;
const MOST_ON_A_LINE = 2000;

function matched(pattern, source, at) {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

// The end of a string that begins at `at`: behind its closing quote, or the end of its line or of the source.
function stringEnd(source, at, quote) {
  const isLong = quote.length === 3;
  for (let place = at; place < source.length; place += 1) {
    if (source[place] === "\\") place += 1;
    else if (!isLong && source[place] === "\n") return place;
    else if (source.startsWith(quote, place)) return place + quote.length;
  }
  return source.length;
}

// [[kind, text], …]; the texts make up the source.
function tokens(source) {
  const found = [];
  let at = 0;
  let before = "";
  while (at < source.length) {
    let end;
    let kind = "";
    const quote = matched(QUOTE, source, at);
    const name = quote ? null : matched(NAME, source, at);
    if (quote) {
      end = stringEnd(source, at + quote[0].length, quote[1]);
      kind = "string";
    } else if (name) {
      end = at + name[0].length;
      if (before === "def" || before === "class") kind = "defined";
      else if (KEYWORDS.has(name[0])) kind = "keyword";
      else if (BUILTIN_NAMES.has(name[0])) kind = "builtin";
      before = name[0];
    } else if (source[at] === "#") {
      end = source.indexOf("\n", at);
      if (end < 0) end = source.length;
      kind = "comment";
    } else if (matched(NUMBER, source, at)) {
      end = NUMBER.lastIndex;
      kind = "number";
    } else if (matched(BLANK, source, at)) {
      end = BLANK.lastIndex;
    } else {
      end = at + 1;
      before = "";
    }
    if (kind === "" && found.length && found.at(-1)[0] === "") found.at(-1)[1] += source.slice(at, end);
    else found.push([kind, source.slice(at, end)]);
    at = end;
  }
  return found;
}

// The source as a block of numbered lines.
function codeBlock(source, label) {
  const block = make("pre", { class: "code", tabindex: "0", role: "region", "aria-label": label });
  const coloured = tokens(source.slice(0, MOST_COLOURED).replace(/\n$/, ""));
  if (source.length > MOST_COLOURED) coloured.push(["", source.slice(MOST_COLOURED)]);
  let line = null;
  let lines = 0;
  let length = 0;
  const begin = () => {
    line = make("code", { class: "line" });
    lines += 1;
    length = 0;
    if (lines <= MOST_LINES) block.append(line);
  };
  begin();
  for (const [kind, text] of coloured) {
    text.split("\n").forEach((piece, index) => {
      if (index) begin();
      if (!piece || lines > MOST_LINES || length > MOST_ON_A_LINE) return;
      const part = shown(piece, Math.max(MOST_ON_A_LINE - length, 1));
      length += piece.length;
      line.append(kind ? make("span", { class: "py-" + kind }, part) : part);
    });
  }
  if (lines > MOST_LINES) block.append(make("span", { class: "cut" }, count(lines - MOST_LINES, "line") + " more"));
  return block;
}

// A piece of source within a sentence or a cell.
function codeInline(source, most = 400) {
  const inline = make("code", { class: "inline" });
  const part = source.slice(0, most);
  for (const [kind, text] of tokens(part)) inline.append(kind ? make("span", { class: "py-" + kind }, shown(text)) : shown(text));
  if (source.length > most) inline.append(make("span", { class: "cut" }, "… " + count(source.length - most, "character") + " more"));
  return inline;
}
