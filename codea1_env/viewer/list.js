"use strict";
// The list of duels that were found, one option each; the current one is told to screen readers by its id.

const ROW_HEIGHT = 62;
const MOST_MARKS = 16;

class DuelList {
  // `choose(duel)`: told of the one that is picked.
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.found = [];
    this.current = null;
    this.rows = new Rows(element, ROW_HEIGHT, (index) => this.row(index), "presentation");
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) choose(this.found[Number(row.dataset.index)]);
    });
    element.addEventListener("keydown", (event) => this.pressed(event));
  }

  reset(found) {
    this.found = found;
    this.element.scrollTop = 0;
    this.rows.reset(found.length);
    this.mark(this.current);
  }

  // Show which duel is the current one.
  mark(duel) {
    this.current = duel;
    const index = duel ? this.found.indexOf(duel) : -1;
    this.rows.drawn.forEach((row, place) => row.setAttribute("aria-selected", String(place === index)));
    if (index < 0) return this.element.removeAttribute("aria-activedescendant");
    this.rows.reveal(index);
    this.element.setAttribute("aria-activedescendant", "option-" + duel.place);
  }

  // The duel `steps` further in the list; the first or last one beyond its ends.
  step(steps) {
    if (!this.found.length) return;
    const index = this.found.indexOf(this.current);
    const next = Math.min(Math.max(index < 0 ? 0 : index + steps, 0), this.found.length - 1);
    this.choose(this.found[next]);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (steps === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.step(steps);
  }

  row(index) {
    const duel = this.found[index];
    const { game, program, suite } = duel;
    const marks = testsOf(duel).slice(0, MOST_MARKS).map((each) => make("i", { class: "mark is-" + face(each) }));
    const name = oneLine(game.id, 80);
    return make(
      "div",
      {
        class: "row", id: "option-" + duel.place, role: "option", "data-index": index,
        "aria-selected": String(duel === this.current), "aria-setsize": this.found.length, "aria-posinset": index + 1,
        "aria-label": name + ", " + whereabouts(duel) + ", coder " + number(program.reward) +
          (suite ? ", tester " + number(suite.reward) : ""),
      },
      make("span", { class: "row-id" }, name),
      make("span", { class: "row-rewards" }, "C " + short(program.reward) + "  T " + short(suite?.reward)),
      make("span", { class: "row-where" }, whereabouts(duel, true)),
      make("span", { class: "row-marks" }, marks),
    );
  }
}
