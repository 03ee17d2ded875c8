"use strict";
// Which duels are shown, and in which order. A duel is found where one of its asserts fits every choice at once, and its
// texts hold every word of the search. Does not draw anything.

const ORDERS = {
  "as played": null,
  "tester's reward, highest": (duel) => -rewardOf(duel.suite),
  "tester's reward, lowest": (duel) => rewardOf(duel.suite, Infinity),
  "coder's reward, highest": (duel) => -rewardOf(duel.program),
  "coder's reward, lowest": (duel) => rewardOf(duel.program, Infinity),
  "most failures": (duel) => -testsOf(duel).filter((each) => each.verdict && each.verdict !== "pass").length,
  "most invalid asserts": (duel) => -testsOf(duel).filter((each) => !["kept", "surplus", "unknown"].includes(each.status)).length,
};

function rewardOf(side, missing = -Infinity) {
  return side?.reward ?? missing;
}

function noChoice() {
  return { text: "", order: "as played", statuses: new Set(), verdicts: new Set(), reason: "" };
}

function howManyChosen(choice) {
  return choice.statuses.size + choice.verdicts.size + (choice.reason ? 1 : 0);
}

// How many asserts of each status, verdict and reason there are.
function tally(duels) {
  const found = { statuses: new Map(), verdicts: new Map(), reasons: new Map() };
  const add = (map, name) => map.set(name, (map.get(name) || 0) + 1);
  for (const duel of duels) {
    for (const each of testsOf(duel)) {
      add(found.statuses, each.status);
      if (each.verdict) add(found.verdicts, each.verdict);
      if (each.reason) add(found.reasons, each.status + " · " + each.reason);
    }
  }
  return found;
}

function searchable(duel) {
  if (duel.searchable === undefined) {
    const { game, program } = duel;
    const texts = testsOf(duel).map((each) => each.source);
    duel.searchable = [game.id, game.from, game.question, program.source, ...texts].join("\n").toLowerCase();
  }
  return duel.searchable;
}

function fits(each, choice) {
  if (choice.statuses.size && !choice.statuses.has(each.status)) return false;
  if (choice.verdicts.size && !choice.verdicts.has(each.verdict)) return false;
  return !choice.reason || choice.reason === each.status + " · " + each.reason;
}

function select(duels, choice) {
  const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
  const isOpen = howManyChosen(choice) === 0;
  const found = duels.filter(
    (duel) =>
      (isOpen || testsOf(duel).some((each) => fits(each, choice))) &&
      (!words.length || words.every((word) => searchable(duel).includes(word))),
  );
  const key = ORDERS[choice.order];
  if (!key) return found;
  const keyed = found.map((duel) => [key(duel), duel]);
  return keyed.sort((one, other) => (one[0] === other[0] ? 0 : one[0] < other[0] ? -1 : 1)).map((pair) => pair[1]);
}
