"use strict";
// Why this reward: what one assert came to on one program, and every term of both seats' rewards with its numbers. What
// the assert has a part in is marked.

function outcomeOf(each) {
  if (each.verdict === "fail") return "The program returns another value than the reference.";
  if (each.verdict === "error") return "The program raises, or does not load.";
  if (each.verdict === "timeout") return "The program takes too long, or has hung too often.";
  if (each.verdict === "crash") return "The program's process dies.";
  if (each.verdict === "pass") return each.returned ? "The program returns another right value." : "The program returns what the reference returns.";
  return "It was not run on the program.";
}

function meaningOf(each) {
  const [name, meaning] = STATUSES[each.status];
  const sentence = (name === "not judged" ? "It was not judged: " + meaning : "The assert " + meaning) + ".";
  const corrected = each.status === "wrong_expected" && each.verdict ? " It ran with the reference's value instead, and counts." : "";
  return sentence + (each.reason ? " Reason: " + oneLine(each.reason, 60) + "." : "") + corrected;
}

// What decides which value is right: the reference, unless the game was judged by another oracle.
function oracleOf(game) {
  const oracle = game.config?.oracle ?? "reference";
  return oracle === "reference" ? "the reference" : "the oracle (" + oracle + ")";
}

// The facts of a test: [name, node].
function factsOf(each, game) {
  const source = (text, missing) => (text === null || text === undefined || text === "" ? make("span", { class: "note" }, missing) : codeInline(text, 1000));
  const facts = [["call", source(each.call, "no readable call")]];
  if (each.stated !== null) facts.push(["the test states", source(each.stated, "nothing")]);
  const isSame = each.verdict === "pass" && !each.returned;
  facts.push([oracleOf(game) + " returns", source(each.expected, each.reason ? "nothing: " + oneLine(each.reason, 60) : "not asked")]);
  const unknown = each.verdict === null ? "not run" : each.verdict === "timeout" ? "nothing in time" : "not in this file";
  facts.push(["the program returns", isSame ? codeInline(each.expected ?? "", 1000) : source(each.returned, unknown)]);
  return make("dl", { class: "facts" }, facts.map(([name, node]) => [make("dt", {}, name), make("dd", {}, node)]));
}

// Numbers among texts, as one text.
function written(parts) {
  return parts.map((part) => (typeof part === "string" ? part : number(part))).join("");
}

// A table of terms. `own`: names of the counts that the assert is in.
function termsTable(caption, lines, own) {
  const rows = lines.map(([name, formula, numbers, value, counts]) =>
    make("tr", { class: counts.some((each) => own.has(each)) ? "own" : null },
      make("th", { scope: "row" }, symbol(name)),
      make("td", {}, make("span", { class: "formula" }, formula), numbers.length ? make("span", { class: "numbers" }, "= " + written(numbers)) : null),
      make("td", { class: "value" }, number(value))));
  return make("table", { class: "terms" }, make("caption", {}, caption), make("tbody", {}, rows));
}

// What the assert adds to each count, in words.
function partsOf(own, sums) {
  const parts = [];
  if (own.has("v")) parts.push("one of v = " + sums.v + " valid tests");
  if (own.has("invalid")) parts.push("one of " + sums.invalid + " invalid asserts");
  if (own.has("broken")) parts.push("one of " + sums.broken + " that break the program: 1/" + sums.size + " of f_new");
  if (own.has("passed")) parts.push("one of " + sums.passed + " that the program passes");
  return parts.length ? "It counts as " + parts.join(", and as ") + "." : "It does not count.";
}

function differenceOf(tester, coder) {
  const list = [["the tester's reward", tester], ["the coder's reward from this suite", coder]].map(([name, [after, before, change]]) =>
    make("li", {}, make("b", {}, signed(change)), " in " + name + ": " + number(after) + " with it, " + number(before) + " without it"));
  return [make("ul", { class: "difference" }, list), make("p", { class: "note part" }, "The marked terms include this assert.")];
}

// Of a suite that was written against another program.
function sharedOf(suite) {
  return "This suite was written against program " + (suite.against + 1) + ", and its reward is explained there. All programs of the question ran on it.";
}

// Every number here stands in `suite.account`: nothing is computed on the page.
function accountOf(duel, place) {
  const { suite } = duel;
  if (isOthers(suite)) return [make("p", { class: "note" }, sharedOf(suite))];
  if (!suite.terms) return [make("p", { class: "note" }, suite.error ? "No reward: " + oneLine(suite.error, 200) : "The terms are not in this file.")];
  const { title, lines, coder, note, sums, tests } = suite.account;
  const nodes = [];
  const part = place === null || !sums ? null : tests[place];
  const own = new Set(part ? part[0] : []);
  if (part) nodes.push(make("p", {}, partsOf(own, sums)), ...differenceOf(part[1], part[2]));
  const pay = place === null || sums ? null : suite.tests[place].pay;
  if (typeof pay === "number" && !note) nodes.push(make("p", {}, "By itself this assert earns " + number(pay) + "."));
  if (note) nodes.push(make("p", { class: "note" }, note));
  nodes.push(termsTable(written(title), lines, own), termsTable("Coder", coder, own));
  return nodes;
}

// The panel about one assert.
function whyTest(duel, place) {
  const each = duel.suite.tests[place];
  return [
    make("p", { class: "verdict is-" + face(each) }, make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[face(each)]), outcomeOf(each)),
    codeInline(each.source, 1000),
    make("p", {}, meaningOf(each)),
    factsOf(each, duel.game),
    make("h3", {}, "Why this reward"),
    ...accountOf(duel, place),
  ];
}

// The panel about one replayed test.
function whyReplay(duel, place) {
  const [call, expected] = duel.game.replays[place];
  const verdict = duel.suite.replays[place];
  const each = { status: "kept", verdict, call, stated: null, expected, returned: null, reason: "" };
  return [
    make("p", { class: "verdict is-" + verdict }, make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[verdict]), outcomeOf(each)),
    make("p", {}, "A test of the Mistake Book, replayed on every program of the question. It is one of " + duel.suite.replays.length + " tests in f_hist and p_hist."),
    factsOf(each, duel.game),
    make("h3", {}, "Why this reward"),
    ...accountOf(duel, null),
  ];
}
