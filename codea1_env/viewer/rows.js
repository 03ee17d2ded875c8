"use strict";
// A long list of rows of one height, of which only those near the view exist. Does not know what a row shows.

const SPARE_ROWS = 6;

class Rows {
  // `draw(index)` makes a row's element. `viewport` scrolls. `above`: pixels in it that stay on top of the rows.
  constructor(viewport, height, draw, role, above = 0) {
    this.viewport = viewport;
    this.height = height;
    this.draw = draw;
    this.above = above;
    this.total = 0;
    this.drawn = new Map();
    this.space = make("div", { class: "space", role });
    viewport.append(this.space);
    let waiting = false;
    const later = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.update();
      });
    };
    viewport.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(viewport);
  }

  // Other rows, or the same ones changed.
  reset(total) {
    this.total = total;
    this.space.style.height = total * this.height + "px";
    this.space.replaceChildren();
    this.drawn.clear();
    this.update();
  }

  update() {
    const top = this.viewport.scrollTop;
    const first = Math.max(0, Math.floor(top / this.height) - SPARE_ROWS);
    const last = Math.min(this.total, Math.ceil((top + this.viewport.clientHeight) / this.height) + SPARE_ROWS);
    for (const [index, element] of this.drawn) {
      if (index >= first && index < last) continue;
      element.remove();
      this.drawn.delete(index);
    }
    for (let index = first; index < last; index += 1) {
      if (this.drawn.has(index)) continue;
      const element = this.draw(index);
      element.style.transform = "translateY(" + index * this.height + "px)";
      this.drawn.set(index, element);
      this.space.append(element);
    }
  }

  // Scroll as little as it takes to have the row in view.
  reveal(index) {
    const top = index * this.height;
    const view = this.viewport;
    if (top < view.scrollTop) view.scrollTop = top;
    else view.scrollTop = Math.max(view.scrollTop, top + this.height + this.above - view.clientHeight);
    this.update();
  }
}
