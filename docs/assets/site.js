// Wide tables scroll sideways: let the keyboard reach them, too. The theme wraps them when the page is there.
addEventListener("load", () => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    wrap.tabIndex = 0;
  }
});
