"use strict";
// Unpacks the page's duels and ties its parts together: choice, list, detail, keys, theme and address.

const KEYS = [
  ["/", "search"],
  ["j, k", "next, previous duel; in the list the arrows, Page, Home and End as well"],
  ["arrows", "in the matrix: another cell"],
  ["Enter", "in the matrix: explain the cell"],
  ["f", "filters"],
  ["b", "the Mistake Book, where there is one"],
  ["d", "dark, light, or as the system has it"],
  ["Esc", "back to the list"],
  ["?", "this"],
];
const THEMES = ["system", "light", "dark"];

const state = { duels: [], choice: noChoice(), list: null, detail: null, duel: null, note: "", book: null };
const byId = (id) => document.getElementById(id);

// The duel there; also of a program with a suite that was written against another one, which is not in the list.
function found(game, programPlace, suitePlace) {
  const listed = state.duels.find((duel) => duel.game === game && duel.programPlace === programPlace && duel.suitePlace === suitePlace);
  if (listed) return listed;
  const program = game?.programs[programPlace];
  const suite = program?.suites[suitePlace];
  return suite && { game, program, suite, programPlace, suitePlace, place: -1 };
}

// Show a duel. `at`: it, or its game and places. `isOpened`: the reader asked for it, so a narrow page turns to it.
function choose(at, cell = null, takesFocus = false, isOpened = true) {
  const duel = found(at.game, at.programPlace, Math.max(at.suitePlace, 0));
  if (!duel) return;
  state.duel = duel;
  if (isOpened) document.body.classList.add("reading");
  state.list.mark(duel);
  state.detail.show(duel, cell, takesFocus);
  setAddress(addressOf(duel) + (cell?.place === undefined ? "" : "." + (cell.place + 1)));
}

function setAddress(text) {
  try { // inside a notebook the page has no address of its own
    history.replaceState(null, "", "#" + text);
  } catch {
    return;
  }
}

// The Mistake Book in the place of a duel. One of its replayed tests leads to the game that it was replayed in.
function openBook() {
  if (!state.book) return;
  state.duel = null;
  state.list.mark(null);
  state.detail.instead(...bookOf(state.book, (number, replay) => {
    const duels = state.duels.filter((each) => each.game.number === number);
    const met = duels.find((each) => each.suite?.replays[replay]); // a program without suites has no word of it
    if (duels.length) choose(met ?? duels[0], met ? { replay } : null);
  }));
  document.body.classList.add("reading");
  setAddress("book");
}

function refresh() {
  const selected = select(state.duels, state.choice);
  state.list.reset(selected);
  byId("count").textContent = selected.length === state.duels.length ? count(selected.length, "duel") : count(selected.length, "duel") + " of " + state.duels.length.toLocaleString("en");
  const chosen = howManyChosen(state.choice);
  byId("chosen").textContent = chosen ? "(" + chosen + ")" : "";
}

function chips(legend, names, counts, chosen, label) {
  const boxes = names.filter((name) => counts.get(name)).map((name) => {
    const box = make("input", { type: "checkbox", value: name, onchange: () => {
      if (box.checked) chosen.add(name);
      else chosen.delete(name);
      refresh();
    } });
    return make("label", { class: "chip" }, box, make("span", { class: "sign is-" + name, "aria-hidden": "true" }, SIGNS[name]),
      label(name), make("small", {}, counts.get(name).toLocaleString("en")));
  });
  return boxes.length ? make("fieldset", {}, make("legend", {}, legend), boxes) : null;
}

function buildFilters() {
  const counts = tally(state.duels);
  const { choice } = state;
  choice.statuses.clear();
  choice.verdicts.clear();
  choice.reason = "";
  const reasons = [...counts.reasons].sort((one, other) => other[1] - one[1]);
  const reason = make("select", { id: "reason", onchange: () => { choice.reason = reason.value; refresh(); } },
    make("option", { value: "" }, "any reason"), reasons.map(([name, times]) => make("option", { value: name }, oneLine(name, 60) + " (" + times.toLocaleString("en") + ")")));
  const parts = [
    chips("What became of the assert", Object.keys(STATUSES), counts.statuses, choice.statuses, (name) => STATUSES[name][0]),
    chips("What the program made of it", Object.keys(VERDICTS), counts.verdicts, choice.verdicts, (name) => VERDICTS[name]),
    reasons.length ? make("p", { class: "reason" }, make("label", { for: "reason" }, "Why"), reason) : null,
    make("button", { type: "button", onclick: () => { buildFilters(); refresh(); } }, "Clear the filter"),
  ];
  byId("choices").replaceChildren(...parts.filter(Boolean));
}

// "#3.1.2.4": game, program, suite, assert, from 1; "#book". Whether the address asked for anything; what is not there is said.
function openAddress() {
  const address = location.hash.slice(1);
  if (!address || address === "duel") return false; // "#duel" is the link that skips the list
  if (address === "book" && state.book) {
    openBook();
    return true;
  }
  const [game, program = 0, suite = 0, place] = address.split(".").map((part) => (/^\d+$/.test(part) ? Number(part) - 1 : NaN));
  const duel = found(state.duels.find((each) => each.game.number === game + 1)?.game, program, suite);
  if (!duel) {
    state.duel = null;
    state.list.mark(null);
    state.detail.absent("There is no duel #" + oneLine(address, 40) + " on this page." + (state.note ? " Not on it: " + state.note + "." : ""));
    document.body.classList.add("reading");
    return true;
  }
  const cell = testsOf(duel)[place] ? { place } : null;
  choose(duel, cell);
  if (place !== undefined && !cell) state.detail.absentAssert(oneLine(address.split(".")[3], 40));
  return true;
}

// The duel that a page without an address begins with.
function openMostTelling() {
  const { duel, cell } = mostTelling(state.duels);
  choose(duel, cell, false, false);
}

function remembered(name, value) {
  try { // a page from a file may have no storage
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function setTheme(name) {
  const theme = THEMES.includes(name) ? name : "system";
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = "Theme: " + theme;
  remembered("codea1-theme", theme);
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}

function back() {
  document.body.classList.remove("reading");
  byId("list").focus();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
  const isTyping = event.target.matches("input[type=search], select");
  if (event.key === "Escape") return isTyping ? event.target.blur() : back();
  if (isTyping) return;
  const actions = {
    "/": () => byId("search").focus(),
    j: () => state.list.step(1),
    k: () => state.list.step(-1),
    f: () => { byId("filters").open = !byId("filters").open; },
    b: openBook,
    d: nextTheme,
    "?": () => byId("keys").showModal(),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function buildHelp() {
  const rows = KEYS.map(([key, words]) => [make("dt", {}, key.split(", ").map((each) => make("kbd", {}, each))), make("dd", {}, words)]);
  const close = make("button", { type: "button", onclick: () => byId("keys").close() }, "Close");
  byId("keys").append(make("h2", { id: "keys-title" }, "Keys"), make("dl", {}, rows), close);
}

function mean(values) {
  const known = values.filter((value) => typeof value === "number");
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function summarise(page) {
  const programs = page.games.flatMap((game) => game.programs);
  const sides = [["coder", programs], ["tester", state.duels.map((duel) => duel.suite)]];
  const means = sides.map(([name, all]) => "mean " + name + " reward " + short(mean(all.map((side) => side?.reward))));
  const parts = [count(page.games.length, "game"), count(state.duels.length, "duel"), ...means];
  byId("title").replaceChildren(shown(page.title, 120));
  byId("summary").textContent = parts.concat(page.note || []).join(" · ");
}

async function begin() {
  setTheme(remembered("codea1-theme"));
  buildHelp();
  byId("theme").addEventListener("click", nextTheme);
  byId("help").addEventListener("click", () => byId("keys").showModal());
  document.addEventListener("keydown", pressed);
  const page = await unpack();
  state.duels = readGames(page);
  state.note = page.note;
  state.book = page.book;
  byId("book").hidden = !state.book;
  byId("book").addEventListener("click", openBook);
  summarise(page);
  byId("sort").append(...Object.keys(ORDERS).map((name) => make("option", {}, name)));
  byId("sort").addEventListener("change", (event) => { state.choice.order = event.target.value; refresh(); });
  byId("search").addEventListener("input", (event) => { state.choice.text = event.target.value; refresh(); });
  state.list = new DuelList(byId("list"), (duel) => choose(duel));
  state.detail = new Detail(byId("duel"), choose, back);
  byId("filters").addEventListener("toggle", buildFilters, { once: true });
  refresh();
  window.addEventListener("hashchange", openAddress);
  if (!state.duels.length && state.book) openBook();
  else if (!state.duels.length) byId("duel").replaceChildren(make("p", { class: "empty" }, "There are no duels in this file."));
  else if (!openAddress()) openMostTelling();
  document.documentElement.dataset.ready = "true";
}

begin().catch((error) => {
  byId("duel").replaceChildren(make("p", { class: "empty", role: "alert" }, "The page must be opened by a browser of 2024 or later, got: " + error));
});
