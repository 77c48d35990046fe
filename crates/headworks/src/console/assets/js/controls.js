// What several pages have: a box to search in, and a way from page to page.

import { el, say } from "./dom.js";
import { count } from "./format.js";

/** A box to search in; `changed(text)` is called while somebody types. */
export function searchBox(label, text, changed) {
  const box = el("input", { type: "search", "aria-label": label, placeholder: `${label}  ( / )`, maxlength: 200, autocomplete: "off", spellcheck: "false", "data-search": true });
  box.value = text;
  box.addEventListener("input", () => changed(box.value));
  return box;
}

/** What a colour of a chart stands for. */
export function key(colour, text = colour) {
  return [el("i", { class: `key ${colour}` }), text];
}

/** Buttons to the page before and after; `go(page)` is called with its number, from 0. */
export function pager(go) {
  let page = 0;
  const before = el("button", { type: "button", "aria-label": "Page before", onclick: () => go(page - 1) }, "←");
  const after = el("button", { type: "button", "aria-label": "Next page", onclick: () => go(page + 1) }, "→");
  const where = el("span");
  const node = el("div", { class: "pager", role: "group", "aria-label": "Pages of the list", hidden: true }, before, where, after);
  return {
    node,
    set(number, pages) {
      page = number;
      say(where, `page ${count(number + 1)} of ${count(pages)}`);
      before.disabled = number === 0;
      after.disabled = number + 1 >= pages;
      node.hidden = pages < 2;
    },
  };
}
