"use strict";
// All programs of a question against their tests: a row each, a block of columns for each suite, and one for the tests
// that the Mistake Book replayed. One cell at a time can be focused; arrows move it.

const CELL_HEIGHT = 30;
const HEAD_HEIGHT = 50;
const MOST_ROWS_HIGH = 13;

class Matrix {
  // `choose(program, suite, place)`: a cell was picked; of a replayed test, `suite` is null.
  constructor(game, choose) {
    this.game = game;
    this.choose = choose;
    this.columns = columnsOf(game);
    this.focused = { row: 0, column: 0 };
    const height = HEAD_HEIGHT + Math.min(game.programs.length, MOST_ROWS_HIGH) * CELL_HEIGHT + 16;
    this.element = make("div", {
      class: "matrix", role: "grid", "aria-label": "Programs and their tests",
      "aria-rowcount": game.programs.length + 1, "aria-colcount": this.columns.length + 1,
    });
    this.element.style.height = height + "px";
    this.element.append(this.head());
    this.rows = new Rows(this.element, CELL_HEIGHT, (index) => this.row(index), "rowgroup", HEAD_HEIGHT);
    this.element.addEventListener("click", (event) => this.clicked(event));
    this.element.addEventListener("keydown", (event) => this.pressed(event));
  }

  // To be called once the element is in the page.
  begin() {
    this.rows.reset(this.game.programs.length);
  }

  head() {
    const blocks = [];
    this.columns.forEach((column) => {
      if (column.place === 0) blocks.push({ ...column, width: 0 });
      blocks.at(-1).width += 1;
    });
    const cells = blocks.map((block) => {
      const title = block.suite === null ? "replayed" : (block.width > 2 ? "suite " : "s") + (block.suite + 1);
      const numbers = Array.from({ length: block.width }, (_, place) => make("i", {}, String(place + 1)));
      return make("span", { class: "block" + (block.suite === null ? " of-book" : ""), role: "columnheader", "aria-colspan": block.width },
        make("b", {}, title), make("span", { class: "numbers", "aria-hidden": "true" }, numbers));
    });
    return make("div", { class: "matrix-head", role: "row", "aria-rowindex": 1 },
      make("span", { class: "stub", role: "columnheader" }, "program", make("small", {}, symbol("R_C"))), cells);
  }

  row(index) {
    const program = this.game.programs[index];
    const cells = this.columns.map((column, place) => this.cell(program, index, column, place));
    const stub = make("span", { class: "stub", role: "rowheader" }, String(index + 1), make("small", {}, short(program.reward)));
    const isCurrent = this.current?.programPlace === index;
    return make("div", { class: "matrix-row" + (isCurrent ? " current" : ""), role: "row", "aria-rowindex": index + 2, "data-row": index },
      stub, cells);
  }

  cell(program, row, column, place) {
    const found = this.content(program, column);
    const isFocused = row === this.focused.row && place === this.focused.column;
    const begins = column.place === 0 ? " begins" : "";
    const properties = { role: "gridcell", "aria-colindex": place + 2, "data-column": place, tabindex: isFocused ? "0" : "-1" };
    if (!found) return make("span", { ...properties, class: "cell none" + begins, "aria-label": "no test" });
    const { sign, kind, words, isCorrected } = found;
    const chosen = isFocused && this.isChosen ? " chosen" : "";
    return make("span",
      { ...properties, class: "cell is-" + kind + begins + chosen + (isCorrected ? " corrected" : ""), "aria-label": this.label(row, column) + ": " + words },
      sign);
  }

  label(row, column) {
    const where = column.suite === null ? "replayed test " : "suite " + (column.suite + 1) + ", assert ";
    return "program " + (row + 1) + ", " + where + (column.place + 1);
  }

  // What a cell has to show; null where there is no such test.
  content(program, column) {
    if (column.suite === null) {
      const verdict = program.suites[0]?.replays[column.place];
      return verdict ? { sign: SIGNS[verdict], kind: verdict, words: VERDICTS[verdict] } : null;
    }
    const each = program.suites[column.suite]?.tests[column.place];
    if (!each) return null;
    const words = summaryOf(each) + (each.reason && !each.verdict ? ", " + each.reason : "");
    return { sign: SIGNS[face(each)], kind: face(each), words, isCorrected: each.status === "wrong_expected" && each.verdict };
  }

  // Make a cell the one that keys act on, and show whether it is the one explained.
  select(row, suite, place, isChosen, takesFocus) {
    const column = this.columns.findIndex((each) => each.suite === suite && each.place === place);
    this.current = { programPlace: row };
    this.isChosen = isChosen;
    this.focused = { row, column: Math.max(column, 0) };
    this.rows.drawn.clear();
    this.rows.space.replaceChildren();
    this.rows.reveal(row);
    const cell = this.element.querySelector('[data-row="' + row + '"] [data-column="' + this.focused.column + '"]');
    if (!cell) return;
    if (takesFocus) cell.focus({ preventScroll: true });
    const stub = this.element.querySelector(".stub").offsetWidth;
    const left = cell.offsetLeft - stub;
    const right = cell.offsetLeft + cell.offsetWidth;
    if (left < this.element.scrollLeft) this.element.scrollLeft = left;
    else if (right > this.element.scrollLeft + this.element.clientWidth) this.element.scrollLeft = right - this.element.clientWidth;
  }

  clicked(event) {
    const cell = event.target.closest(".cell");
    if (cell && !cell.classList.contains("none")) this.pick(Number(cell.parentElement.dataset.row), Number(cell.dataset.column));
  }

  pick(row, column) {
    const { suite, place } = this.columns[column];
    this.choose(row, suite, place);
  }

  pressed(event) {
    const { row, column } = this.focused;
    const moves = {
      ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -column], End: [0, this.columns.length],
    };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.content(this.game.programs[row], this.columns[column])) this.pick(row, column);
    } else if (moves[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const [down, right] = moves[event.key];
      const next = Math.min(Math.max(row + down, 0), this.game.programs.length - 1);
      const { suite, place } = this.columns[Math.min(Math.max(column + right, 0), this.columns.length - 1)];
      if (this.content(this.game.programs[next], { suite, place })) this.choose(next, suite, place);
      else this.select(next, suite, place, false, true);
    }
  }
}

// The columns: every place of every suite that some program has a test at, then the replayed tests.
function columnsOf(game) {
  const columns = [];
  const suites = Math.max(0, ...game.programs.map((program) => program.suites.length));
  for (let suite = 0; suite < suites; suite += 1) {
    const longest = Math.max(1, ...game.programs.map((program) => program.suites[suite]?.tests.length ?? 0));
    for (let place = 0; place < longest; place += 1) columns.push({ suite, place });
  }
  game.replays.forEach((_, place) => columns.push({ suite: null, place }));
  return columns;
}
