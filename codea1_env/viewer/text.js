"use strict";
// Makes every element of the page. Text goes in as text nodes and nothing else: there is no way to put markup in.
// What has no shape of its own, or turns its neighbours around, is spelt out where a reader can see it.

const HIDDEN = /([\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}])\1*/gu;
const PLAIN = new Set(["\n", "\t"]);
const MOST_SHOWN = 20000;

// make("p", {class: "note", "aria-label": "…", onclick: f}, "text", element, …)
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function spelt(character) {
  const code = character.codePointAt(0);
  const known = { 0: "\\0", 13: "\\r", 27: "\\x1b" }[code];
  if (known) return known;
  if (code < 256) return "\\x" + code.toString(16).padStart(2, "0");
  return code < 65536 ? "\\u" + code.toString(16).padStart(4, "0") : "\\u{" + code.toString(16) + "}";
}

// The text as nodes: hidden characters spelt out, a run of one as its count, the rest of what is too long as a note.
function shown(text, most = MOST_SHOWN) {
  const fragment = document.createDocumentFragment();
  const part = text.length > most ? text.slice(0, most) : text;
  let end = 0;
  for (const found of part.matchAll(HIDDEN)) {
    if (PLAIN.has(found[1])) continue;
    fragment.append(part.slice(end, found.index));
    const times = found[0].length / found[1].length;
    fragment.append(make("span", { class: "hidden" }, spelt(found[1]) + (times > 1 ? " ×" + times : "")));
    end = found.index + found[0].length;
  }
  fragment.append(part.slice(end));
  if (part.length < text.length) {
    fragment.append(make("span", { class: "cut" }, " … " + count(text.length - part.length, "character") + " more"));
  }
  return fragment;
}

// One line of plain text, for labels and titles.
function oneLine(text, most = 120) {
  const line = text.slice(0, most + 1).replace(HIDDEN, (run, character) => (run.trim() ? spelt(character) : " "));
  return line.length > most ? line.slice(0, most) + "…" : line;
}

function count(number, what) {
  return number.toLocaleString("en") + " " + what + (number === 1 ? "" : "s");
}

// A reward or a term: exact where it is short, else four significant places. None: infrastructure failed.
function number(value) {
  if (value === null || value === undefined) return "–";
  const exact = String(value);
  const text = exact.length <= 7 ? exact : String(Number(value.toPrecision(4)));
  return text.replace("-", "−");
}

// A reward in a column of rewards.
function short(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2).replace("-", "−");
}

// "R_T" as R with a small T.
function symbol(name) {
  const [letter, index] = name.split("_");
  return index ? make("span", { class: "symbol" }, letter, make("sub", {}, index)) : make("span", {}, name);
}

function signed(value) {
  return value > 0 ? "+" + number(value) : value < 0 ? number(value) : "±0";
}
