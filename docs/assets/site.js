// Wide tables scroll sideways: let the keyboard reach them, too. The theme wraps them when the page is there. The theme's
// search is a dialog without a name: give it one.
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    wrap.tabIndex = 0;
  }
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
});
