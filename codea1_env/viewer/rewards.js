"use strict";
// The formulas of codea1_env/rewards.py once more, with the numbers of one duel: what each term is and what one assert
// adds to it. The reward that is shown is the one that was paid; `agrees` says whether these terms come to it.

const METHODS = {
  "code-a1": "Code-A1",
  utrl: "UTRL",
  cure: "CURE",
  skill: "the skill write-up",
};
const INVALID = new Set(["wrong_expected", "duplicate", "raises", "flaky", "rejected"]);
const CLOSE = 1e-9;

function ratio(part, whole) {
  return part + "/" + whole;
}

// What a test counts for. It was run on the program exactly where it counts as valid.
function countsOf(each, place, size) {
  const isValid = each.verdict !== null && each.status !== "unknown";
  return {
    valid: isValid,
    invalid: INVALID.has(each.status),
    passes: isValid && each.verdict === "pass",
    breaks: isValid && each.verdict !== "pass" && place < size,
  };
}

// The terms of Code-A1 from counts, as `rewards.suite_terms` has them.
function termsFrom({ v, invalid, breaking, passed }, fixed) {
  const { size, alpha, history, executes, nonprintable } = fixed;
  const validity = Math.min(Math.max(Math.min(v / size, 1 - invalid / size), 0), 1);
  const fresh = breaking / size;
  const adversarial = history === null ? fresh : v ? (fresh - history + 1) / 2 : 0;
  const earned = executes ? alpha * validity + (1 - alpha) * adversarial : 0;
  const shares = [history === null ? null : 1 - history, v ? passed / v : null].filter((share) => share !== null);
  const share = shares.length ? shares.reduce((sum, each) => sum + each, 0) / shares.length : 0;
  return { v, invalid, breaking, passed, validity, fresh, adversarial, share, reward: earned - nonprintable };
}

// A duel's terms, and those that it would have without the assert at `place` (null: none is left out).
function accounted(suite, place = null) {
  const { terms } = suite;
  const fixed = {
    size: terms.suite_size,
    alpha: terms.alpha,
    history: terms.f_hist,
    executes: terms.executes,
    nonprintable: terms.nonprintable,
  };
  const sums = { v: 0, invalid: 0, breaking: 0, passed: 0 };
  suite.tests.forEach((each, index) => {
    if (index === place) return;
    const counts = countsOf(each, index, fixed.size);
    sums.v += counts.valid;
    sums.invalid += counts.invalid;
    sums.breaking += counts.breaks;
    sums.passed += counts.passes;
  });
  return { ...termsFrom(sums, fixed), ...fixed };
}

function methodOf(game) {
  return game.config?.tester_reward ?? "code-a1";
}

function agrees(suite, mine) {
  return Math.abs(mine.reward - suite.reward) < CLOSE && Math.abs(mine.validity - suite.terms.validity) < CLOSE;
}

// What a program's suite pays the coder: the mean of p_new and p_hist where both are there.
function shareOf(terms) {
  const parts = [terms.p_hist, terms.p_new].filter((part) => part !== null);
  return parts.length ? parts.reduce((sum, part) => sum + part, 0) / parts.length : 0;
}

// Lines of the tester's reward: [name, formula, numbers, value, names of counts in it].
function testerLines(suite, mine) {
  const { terms } = suite;
  const replayed = suite.replays.length;
  const failed = suite.replays.filter((verdict) => verdict !== "pass").length;
  const lines = [
    ["R_val", "min(v / K, 1 − invalid / K)", "min(" + ratio(mine.v, mine.size) + ", 1 − " + ratio(mine.invalid, mine.size) + ")",
      terms.validity, ["v", "invalid"]],
    ["f_new", "valid tests that the program fails / K", ratio(mine.breaking, mine.size), terms.f_new, ["breaking"]],
  ];
  if (terms.f_hist === null) {
    lines.push(["R_adv", "f_new, as nothing was replayed", number(terms.f_new), terms.adversarial, ["breaking"]]);
  } else {
    lines.push(["f_hist", "replayed tests that it fails / replayed", ratio(failed, replayed), terms.f_hist, []]);
    const isEmpty = mine.v === 0;
    lines.push(["R_adv", isEmpty ? "0 without a valid test" : "(f_new − f_hist + 1) / 2",
      isEmpty ? "0" : "(" + number(terms.f_new) + " − " + number(terms.f_hist) + " + 1) / 2", terms.adversarial, ["v", "breaking"]]);
  }
  const weighed = number(mine.alpha) + " · " + number(terms.validity) + " + " + number(1 - mine.alpha) + " · " + number(terms.adversarial);
  const unreadable = terms.nonprintable ? " − " + number(terms.nonprintable) : "";
  lines.push(["R_T", "α R_val + (1 − α) R_adv" + (terms.executes ? "" : ", times 0: the program does not load") + " − unprintable",
    (terms.executes ? weighed : "0 · (" + weighed + ")") + (unreadable || " − 0"), suite.reward, ["v", "invalid", "breaking"]]);
  return lines;
}

// Lines of another method: what its reward is made of.
function otherLines(method, suite) {
  const { terms } = suite;
  const size = terms.suite_size;
  if (method === "utrl") {
    return [
      ["V", "kept tests / max(τ, asserts without repeats)", "", terms.validity, []],
      ["D", "programs of the question that a kept test catches / programs", "", terms.adversarial, []],
      ["R_T", "(0.85 D + 0.05 V) / 0.9", "(0.85 · " + number(terms.adversarial) + " + 0.05 · " + number(terms.validity) + ") / 0.9",
        suite.reward, []],
    ];
  }
  const pays = suite.tests.map((each) => each.pay);
  const known = pays.every((pay) => typeof pay === "number");
  const sum = known ? pays.slice(0, size).map(number).join(" + ").replaceAll("+ −", "− ") : "";
  const missing = method === "skill" ? Math.max(size - suite.tests.length, 0) : 0;
  const lack = missing ? " − " + missing + " · 0.5 for missing asserts" : "";
  return [["R_T", "what the first K asserts earn / K", known ? "(" + sum + lack + ") / " + size : "", suite.reward, []]];
}

// Lines of the coder's reward for the program of this duel.
function coderLines(duel, mine) {
  const { program, suite, game } = duel;
  const { terms } = suite;
  const lines = [["p_new", "valid tests passed / v", terms.p_new === null ? "no valid test" : ratio(terms.passed, terms.v), terms.p_new, ["passed", "v"]]];
  if (terms.p_hist !== null) lines.push(["p_hist", "1 − f_hist", "1 − " + number(terms.f_hist), terms.p_hist, []]);
  const both = terms.p_hist !== null && terms.p_new !== null;
  lines.push(["share", both ? "(p_hist + p_new) / 2" : "the one that is there, else 0",
    both ? "(" + number(terms.p_hist) + " + " + number(terms.p_new) + ") / 2" : number(shareOf(terms)), shareOf(terms), ["passed", "v"]]);
  if (game.config && (game.config.coder_tests !== "own" || methodOf(game) === "skill")) {
    lines.push(["R_C", "the tests of all suites of the question decide", "", program.reward, []]);
    return lines;
  }
  const shares = program.suites.map((each) => (each.terms ? shareOf(each.terms) : null));
  const listed = shares.length <= 8 ? "(" + shares.map(number).join(" + ") + ") / " + shares.length : "";
  lines.push(["R_C", "mean of the shares of its " + count(shares.length, "suite"), listed, program.reward, ["passed", "v"]]);
  return lines;
}
