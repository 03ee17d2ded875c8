"use strict";
// From the packed text in the page to duels. A duel is one program against one suite; a game is a question with all its
// programs and suites. Where programs met all suites of their question, each has all of them, in one order: those that
// were written against others as well (`against`), of which it has the verdicts and no reward. Field names are those of
// viewer/games.py. Does not check what Python has written.

const STATUSES = {
  kept: ["kept", "is valid as written"],
  wrong_expected: ["wrong value", "states another value than the reference returns"],
  wrong_relation: ["wrong claim", "claims something that is not true of the reference's value"],
  vacuous: ["vacuous", "claims something that is true of too many other values"],
  duplicate: ["duplicate", "repeats a call of this suite and says nothing new"],
  raises: ["raises", "makes a call for which the reference returns no value"],
  flaky: ["flaky", "makes a call on which the reference does not repeat itself"],
  rejected: ["rejected", "is not a test in this grammar"],
  surplus: ["surplus", "comes after the first K asserts"],
  unknown: ["not judged", "the file holds no verdicts"],
};
const VERDICTS = { pass: "passes", fail: "fails", error: "raises", timeout: "times out", crash: "crashes" };
const SIGNS = {
  pass: "✓", fail: "✗", error: "!", timeout: "∞", crash: "†",
  kept: "·", wrong_expected: "≠", wrong_relation: "≢", vacuous: "∀", duplicate: "=", raises: "↯", flaky: "~", rejected: "∅", surplus: "+", unknown: "?",
};

// More would take seconds to draw: such a game has in each row what was written against that program.
const MOST_CELLS = 1 << 15;

async function unpack() {
  const packed = atob(document.getElementById("packed").content.textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let place = 0; place < packed.length; place += 1) bytes[place] = packed.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function test([source, status, reason, call, stated, expected, verdict, returned, pay, verdicts]) {
  return { source, status, reason, call, stated, expected, verdict, returned, pay, verdicts };
}

// Gives the tests of a game their names: not before somebody looks at it, since there may be a hundred thousand.
function prepare(game) {
  if (game.isPrepared) return;
  game.isPrepared = true;
  for (const suite of suitesOf(game)) suite.tests = suite.tests.map(test);
  game.programs.forEach((program, place) => {
    for (const suite of program.suites.filter(isOthers)) suite.tests = suite.origin.tests.map((each) => metBy(each, place));
  });
}

// The suites of a game, each once.
function suitesOf(game) {
  return game.programs.flatMap((program) => program.suites.filter((suite) => !isOthers(suite)));
}

function isOthers(suite) {
  return suite.against !== undefined;
}

// A test of a suite that was written against another program.
function metBy(each, programPlace) {
  return { ...each, verdict: each.verdicts?.[programPlace] ?? null, returned: null, pay: null };
}

// Gives every program all suites of its question, if the programs met them all and the matrix has room for that.
function share(game) {
  const tests = suitesOf(game).flatMap((suite) => suite.tests);
  if (!tests.some((each) => each[9]) || tests.length * game.programs.length > MOST_CELLS) return;
  const suites = game.programs.flatMap((program, against) => program.suites.map((origin) => ({ origin, against })));
  game.programs.forEach((program, place) => {
    const replays = program.suites[0]?.replays ?? program.replays ?? [];
    program.suites = suites.map(({ origin, against }) => against === place ? origin :
      { origin, against, reward: null, terms: null, error: origin.error, ignored: origin.ignored, replays, tests: [] });
  });
}

function testsOf(duel) {
  prepare(duel.game);
  return duel.suite ? duel.suite.tests : [];
}

// What a cell shows: the verdict if the test ran, else what became of the test. A test that states a wrong value gets no
// tick, although the program passes it with the right one.
function face(each) {
  return each.status === "wrong_expected" && each.verdict === "pass" ? each.status : each.verdict || each.status;
}

// What became of a test, in a few words.
function summaryOf(each) {
  const status = STATUSES[each.status][0];
  if (!each.verdict) return status;
  return each.status === "wrong_expected" ? status + "; with the right one the program " + VERDICTS[each.verdict] : VERDICTS[each.verdict] + ", " + status;
}

// The games with their duels in one list, in the order of the file.
function readGames(page) {
  const duels = [];
  page.games.forEach((game, place) => {
    game.number ??= place + 1;
    share(game);
    game.programs.forEach((program, programPlace) => {
      const add = (suite, suitePlace) => duels.push({ game, program, suite, programPlace, suitePlace, place: duels.length });
      program.suites.forEach((suite, suitePlace) => {
        if (!isOthers(suite)) add(suite, suitePlace);
      });
      if (!program.suites.some((suite) => !isOthers(suite))) add(program.suites[0] ?? null, 0);
    });
  });
  return duels;
}

// "3.1.2": game, program, suite, from 1, for links. Games are counted in the file, with those that are not on the page.
function addressOf(duel) {
  return [duel.game.number, duel.programPlace + 1, duel.suitePlace + 1].join(".");
}

// `isShort`: without the round that it was recorded in.
function whereabouts(duel, isShort = false) {
  const origin = isShort ? "" : duel.game.from;
  const suite = duel.suite ? "suite " + (duel.suitePlace + 1) + (isOthers(duel.suite) ? " (against program " + (duel.suite.against + 1) + ")" : "") : "";
  return ["game " + duel.game.number, origin, "program " + (duel.programPlace + 1), suite].filter(Boolean).join(" · ");
}

// The duel that a reader sees first, and the assert: a program that loads and returns a wrong value, attacked by the suite
// that earned most; else one that fails in another way; else one that ran at all; else the first.
function mostTelling(duels) {
  let best = null;
  for (const duel of duels) {
    const verdicts = (duel.suite?.tests ?? []).map((each) => (Array.isArray(each) ? each[6] : each.verdict));
    const loads = duel.program.executes !== false;
    const kill = loads ? [verdicts.indexOf("fail"), verdicts.findIndex((each) => each && each !== "pass")].find((place) => place >= 0) : undefined;
    const rank = kill === undefined ? Number(verdicts.some(Boolean)) : verdicts[kill] === "fail" ? 3 : 2;
    const reward = duel.suite?.reward ?? -Infinity;
    if (!best || rank > best.rank || (rank === best.rank && reward > best.reward)) best = { duel, rank, reward, cell: kill === undefined ? null : { place: kill } };
  }
  return best;
}
