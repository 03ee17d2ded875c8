"use strict";
// One duel in full: both rewards, the question, the matrix of its game, the program and the suite, and the panel that
// says why. Keeps the matrix while the duel stays within one game.

class Detail {
  // `choose(duel, cell, takesFocus)`: another duel or cell was picked here. `back()`: to the list, where there is room for one.
  constructor(main, choose, back) {
    this.main = main;
    this.choose = choose;
    this.back = back;
    this.game = null;
  }

  // `cell`: {place} of an assert, {replay} of a replayed test, or null.
  show(duel, cell, takesFocus = false) {
    const isOther = this.game !== duel.game;
    if (isOther) this.begin(duel.game);
    if (isOther || this.duel !== duel) this.fill(duel);
    this.duel = duel;
    const replay = cell?.replay;
    const suite = replay === undefined ? duel.suitePlace : null;
    if (this.matrix) this.matrix.select(duel.programPlace, suite, replay ?? cell?.place ?? 0, Boolean(cell), takesFocus);
    this.explain(duel, cell);
  }

  // Something else in the place of a duel.
  instead(...nodes) {
    this.game = this.duel = null;
    this.main.replaceChildren(make("button", { type: "button", class: "back", onclick: () => this.back() }, "← All duels"), ...nodes);
    this.main.scrollTop = 0;
  }

  // There is no such duel: say so, and show none in its place.
  absent(words) {
    this.instead(make("p", { class: "empty", role: "alert" }, words));
  }

  // The duel that is shown has no such assert.
  absentAssert(number) {
    this.why.querySelector(".note").textContent = "This suite has no assert " + number + ". Pick a cell, or an assert, to see what it is worth.";
  }

  // What stays the same within a game.
  begin(game) {
    this.game = game;
    prepare(game);
    this.head = make("header", { class: "duel-head" });
    this.program = make("section", { class: "program", "aria-labelledby": "program-title" });
    this.suite = make("section", { class: "suite", "aria-labelledby": "suite-title" });
    this.why = make("section", { class: "why", "aria-labelledby": "why-title" });
    this.matrix = columnsOf(game).length ? new Matrix(game, (...picked) => this.picked(...picked)) : null;
    const board = this.matrix ? [this.matrix.element, legend()] : [make("p", { class: "note" }, "No suite was written against these programs.")];
    this.main.replaceChildren(
      this.head,
      make("section", { class: "question", "aria-labelledby": "question-title" },
        make("h3", { id: "question-title" }, "Question"), make("div", { class: "prose" }, prose(game.question || "not in this file")), reference(game)),
      make("section", { class: "board", "aria-labelledby": "board-title" }, make("h3", { id: "board-title" }, "Programs × tests"), board),
      this.why, this.program, this.suite,
    );
    this.main.scrollTop = 0;
    if (this.matrix) this.matrix.begin();
  }

  fill(duel) {
    const { game, program, suite } = duel;
    const back = make("button", { type: "button", class: "back", onclick: () => this.back() }, "← All duels");
    const seats = [seat("coder", program.reward, "R_C"), suite ? seat("tester", suite.reward, "R_T") : null];
    this.head.replaceChildren(back, make("div", { class: "duel-name" }, make("h2", {}, shown(game.id, 200)), make("p", {}, whereabouts(duel))),
      make("div", { class: "seats" }, seats));
    const state = program.refused ? "refused: " + oneLine(program.refused, 200) : program.executes === false ? "does not load" : program.executes === null ? "not run" : "";
    const denied = program.denied ? make("span", { class: "state" }, "the sandbox denied: " + oneLine(program.denied, 200)) : null;
    const source = program.source ? codeBlock(program.source, "Source of program " + (duel.programPlace + 1)) : make("p", { class: "note" }, missingProgram(program));
    this.program.replaceChildren(
      make("h3", { id: "program-title" }, "Program " + (duel.programPlace + 1), state ? make("span", { class: "state" }, state) : null, denied), source);
    const against = suite && isOthers(suite) ? make("span", { class: "state" }, "written against program " + (suite.against + 1)) : null;
    this.suite.replaceChildren(make("h3", { id: "suite-title" }, "Suite " + (duel.suitePlace + 1), against), ...this.suiteRows(duel));
  }

  suiteRows(duel) {
    if (!duel.suite) return [make("p", { class: "note" }, "No suite was written against this program.")];
    const unread = unreadOf(duel.suite);
    if (!duel.suite.tests.length) return [make("p", { class: "note" }, duel.suite.error ? oneLine(duel.suite.error, 300) : "It holds no assert."), ...unread];
    const rows = duel.suite.tests.map((each, place) => {
      const sign = make("span", { class: "sign is-" + face(each), "aria-hidden": "true" }, SIGNS[face(each)]);
      const words = summaryOf(each) + (each.reason ? " · " + oneLine(each.reason, 40) : "");
      return make("li", {}, make("button", { type: "button", "data-place": place, onclick: () => this.choose(duel, { place }, false) },
        sign, codeInline(each.source, 240), make("span", { class: "status" }, words)));
    });
    return [make("ol", { class: "asserts" }, rows), ...unread];
  }

  picked(programPlace, suitePlace, place) {
    const suite = suitePlace ?? Math.min(this.duel.suitePlace, this.game.programs[programPlace].suites.length - 1);
    this.choose({ game: this.game, programPlace, suitePlace: suite }, suitePlace === null ? { replay: place } : { place }, true);
  }

  explain(duel, cell) {
    const title = make("h3", { id: "why-title" }, cell ? nameOf(duel, cell) : "Why this reward");
    let content = [make("p", { class: "note" }, "Pick a cell, or an assert, to see what it is worth.")];
    if (cell?.replay !== undefined) content = whyReplay(duel, cell.replay);
    else if (cell && duel.suite?.tests[cell.place]) content = whyTest(duel, cell.place);
    else if (duel.suite) content.push(...accountOf(duel, null));
    this.why.replaceChildren(title, make("div", { class: "why-body", "aria-live": "polite" }, content));
    this.suite.querySelectorAll("button").forEach((button) => {
      const isIt = cell && cell.replay === undefined && Number(button.dataset.place) === cell.place;
      if (isIt) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  }
}

// What of the response was not read, by reason.
function unreadOf(suite) {
  const reasons = Object.entries(suite.ignored || {}).map(([reason, count]) => oneLine(reason.replaceAll("_", " "), 40) + " (" + count + ")");
  return reasons.length ? [make("p", { class: "note" }, "Not read: " + reasons.join(", ") + ".")] : [];
}

function nameOf(duel, cell) {
  const program = "Program " + (duel.programPlace + 1);
  if (cell.replay !== undefined) return program + ", replayed test " + (cell.replay + 1);
  return program + ", suite " + (duel.suitePlace + 1) + ", assert " + (cell.place + 1);
}

function seat(name, reward, term) {
  return make("p", { class: "seat of-" + name }, make("span", { class: "seat-name" }, name + " ", symbol(term)), make("b", {}, number(reward)));
}

function missingProgram(program) {
  return program.source === null ? "This file does not hold the program. codea1 score --details writes it." : "The response holds no program.";
}

function reference(game) {
  if (!game.reference) return null;
  return make("details", { class: "reference" }, make("summary", {}, "Reference solution"), codeBlock(game.reference, "Source of the reference"));
}

function legend() {
  const entries = [...Object.entries(VERDICTS).map(([name, words]) => [name, "program " + words]),
    ...Object.entries(STATUSES).filter(([name]) => !["kept", "unknown", "wrong_expected"].includes(name)).map(([name, [words]]) => [name, words]),
    ["wrong_expected", "wrong value; with the reference's the program passes"]];
  const items = entries.map(([name, words]) => make("li", {}, make("span", { class: "cell is-" + name, "aria-hidden": "true" }, SIGNS[name]), words));
  items.push(make("li", {}, make("span", { class: "cell is-fail corrected", "aria-hidden": "true" }, SIGNS.fail), "wrong value; with the reference's the program fails"));
  return make("details", { class: "legend" }, make("summary", {}, "What the signs mean"), make("ul", {}, items));
}
