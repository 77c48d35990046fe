// The limits in force as a file, and the last file that was refused.

import { pager } from "./controls.js";
import { el, fill, say } from "./dom.js";
import { count, moment, several } from "./format.js";
import { json } from "./token.js";

const PAGE = 500;

/** The page. */
export function open(root) {
  const about = el("p");
  const lines = el("pre", { class: "lines", tabindex: 0, "aria-label": "Limits in force" });
  const refused = el("section", { class: "card wide", hidden: true });
  let from = 0;
  let shown = "";
  let reads = 0;
  const pages = pager((page) => {
    from = page * PAGE;
    read();
  });
  const running = el("section", { class: "card wide" }, el("header", {}, el("h2", {}, "Limits in force"), about, pages.node), lines);
  root.append(el("h1", { class: "visually-hidden" }, "Limits file"), el("div", { class: "cards" }, refused, running));

  async function read() {
    // What was asked for later may come first.
    const own = ++reads;
    try {
      const [file, last] = await Promise.all([json(`/console/file/running?from=${from}`), json("/console/file/refused")]);
      if (own !== reads) return;
      from = file.from;
      say(about, `generation ${count(file.generation)}, ${several(file.limits, "limit")}, digest ${file.digest.slice(0, 12)}; as the controller reads it, without comments`);
      pages.set(Math.floor(file.from / PAGE), Math.max(1, Math.ceil(file.total / PAGE)));
      fill(lines, file.lines.map((text, index) => el("span", { "data-number": file.from + index + 1 }, text || " ")));
      showRefused(refused, last);
    } catch (error) {
      if (own !== reads) return;
      say(about, error.message);
      shown = "";
    }
  }
  return {
    settings: () => ({}),
    query: () => new URLSearchParams({ view: "head" }),
    told({ head }) {
      const next = JSON.stringify([head.digest, head.generation, head.refused]);
      if (next !== shown) {
        shown = next;
        read();
      }
    },
    end() {},
  };
}

function showRefused(card, refused) {
  card.hidden = refused === null;
  if (refused === null) return;
  const state = refused.over ? "a good file has come since" : "the limits in force are those of an earlier file";
  const faults = refused.faults.length > 0 ? refused.faults.map(fault) : [el("pre", { class: "lines" }, refused.said.map((line) => el("span", {}, line)))];
  fill(card, el("header", {}, el("h2", { class: refused.over ? "" : "over-text" }, "The last file that was refused"), el("p", {}, `at ${moment(refused.at)}; ${state}`)), faults);
}

function fault(fault) {
  const lines = fault.lines.map((text, index) => el("span", { "data-number": fault.first + index, class: fault.first + index === fault.line ? "faulty" : "" }, text || " "));
  return el("div", { class: "fault" },
    el("p", {}, el("code", {}, `${fault.file}:${fault.line}:${fault.column}`), fault.path ? ` ${fault.path}: ` : " ", el("strong", {}, fault.message)),
    el("pre", { class: "lines" }, lines));
}
