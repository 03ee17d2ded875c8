"use strict";
// The Mistake Book: by question its tests, how often each failed, and how it fared where the shown duels replayed it. The
// tests of a question are drawn when it is opened. Every number stands in the page's `book`.

const MOST_OPEN = 3;

// `open(number, place)`: show the game of that number, and in it the replayed test at that place.
function bookOf(book, open) {
  const source = book.source ? "From " + oneLine(book.source, 200) + "." : "These duels have no book of their own. The tests are those that they replayed.";
  const words = "Tests that programs failed. They are replayed on later programs of the question. By default each later pass lowers the number of failures by 1.";
  const head = make("section", { class: "book", "aria-labelledby": "book-title" },
    make("h2", { id: "book-title" }, "Mistake Book"), make("p", {}, words), make("p", { class: "note" }, source),
    book.note ? make("p", { class: "note" }, book.note) : null,
    book.questions.length ? null : make("p", { class: "note" }, "It holds no test."));
  return [head, ...book.questions.map(([name, tests], index) => shelfOf(name, tests, index < MOST_OPEN, open))];
}

function shelfOf(name, tests, isOpen, open) {
  const shelf = make("details", { open: isOpen },
    make("summary", {}, make("b", {}, shown(name, 200)), " ", make("small", {}, count(tests.length, "test"))));
  const draw = () => {
    if (shelf.open && !shelf.querySelector("table")) shelf.append(shelfTable(name, tests, open));
  };
  shelf.addEventListener("toggle", draw);
  draw();
  return make("section", { class: "book" }, shelf);
}

function shelfTable(name, tests, open) {
  const heads = ["call", "expected", "failures", "in the shown duels", "where"];
  const rows = tests.map(([call, expected, failures, verdicts, games]) => make("tr", {},
    make("td", {}, codeInline(call, 1000)),
    make("td", {}, codeInline(expected, 1000)),
    make("td", { class: "value" }, number(failures)),
    make("td", {}, faredOf(verdicts, games.length)),
    make("td", {}, games.map(([game, place]) => make("button", { type: "button", onclick: () => open(game, place) }, "game " + game)))));
  return make("div", { class: "shelf", tabindex: "0", role: "group", "aria-label": "Tests of " + oneLine(name, 80) }, make("table", { class: "terms" },
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)));
}

// How programs fared in a replayed test: a sign for each verdict, with the number of programs.
function faredOf(verdicts, games) {
  const met = Object.keys(VERDICTS).filter((verdict) => Object.hasOwn(verdicts, verdict));
  if (!met.length) return make("span", { class: "note" }, games ? "replayed; verdicts are not in this file" : "not replayed");
  return met.map((verdict) => make("span", { class: "fared", role: "img", "aria-label": VERDICTS[verdict] + ": " + verdicts[verdict] },
    make("span", { class: "sign is-" + verdict }, SIGNS[verdict]), String(verdicts[verdict])));
}
