// The limits, searched and sorted by the server, page by page.

import { ratioSpark, spark } from "./charts.js";
import { el, order, rested, say } from "./dom.js";
import { percent, rate, several, state } from "./format.js";
import { address, pageOf } from "./route.js";
import { key, pager, searchBox } from "./controls.js";

const COLUMNS = [
  ["", "State", ""],
  ["name", "Limit", ""],
  ["pipeline", "Rate", ""],
  ["offered", "Offered", "num"],
  ["admitted", "Admitted", "num"],
  ["over", "Dropped", "num"],
  ["ratio", "Ratio", "num"],
];
/** What comes first when a column is chosen: the least of these, the most of the others. */
const RISING = new Set(["name", "pipeline"]);

/** The page. `again` asks the server anew, by other settings. */
export function open(root, { settings }, again) {
  const asked = {
    search: settings.get("search") ?? "",
    sort: COLUMNS.some(([sort]) => sort && sort === settings.get("sort")) ? settings.get("sort") : "over",
    reverse: settings.get("reverse") === "true",
    page: pageOf(settings),
  };
  const rows = new Map();
  const found = el("span", { class: "count", role: "status" });
  const search = searchBox("Search limits by name", asked.search, rested((text) => change({ search: text, page: 0 }), 150));
  const pages = pager((page) => change({ page }));
  const heads = COLUMNS.map(([sort, title, look]) => el("th", { class: look, scope: "col" },
    sort ? el("button", { type: "button", title: sort === "pipeline" ? "By the order in which requests meet them" : undefined, onclick: () => sortBy(sort) }, title) : title));
  const body = el("tbody");
  const table = el("table", { class: "folds" },
    el("caption", { class: "visually-hidden" }, "Limits in force"),
    el("thead", {}, el("tr", {}, heads, 
      el("th", { scope: "col" }, "Last minute", key("offered"), key("admitted"), key("line", "limit")), el("th", { scope: "col" }, "Ratio"))),
    body);
  const empty = el("p", { class: "empty", hidden: true });
  root.append(el("h1", { class: "visually-hidden" }, "Limits"), el("div", { class: "controls" }, search, found, pages.node), table, empty);

  function change(settings) {
    Object.assign(asked, settings);
    showSort();
    again();
  }
  function sortBy(sort) {
    change({ sort, reverse: asked.sort === sort ? !asked.reverse : false, page: 0 });
  }
  function showSort() {
    COLUMNS.forEach(([sort], index) => {
      const rises = RISING.has(sort) !== asked.reverse;
      if (sort === asked.sort) heads[index].setAttribute("aria-sort", rises ? "ascending" : "descending");
      else heads[index].removeAttribute("aria-sort");
    });
  }
  showSort();

  return {
    search,
    settings: () => ({ ...asked, sort: asked.sort === "over" ? "" : asked.sort }),
    query: () => new URLSearchParams({ view: "limits", ...asked }),
    told(event) {
      const shown = event.rows.map((row) => {
        if (!rows.has(row.name)) rows.set(row.name, newRow(row.name));
        rows.get(row.name).set(event.times, row);
        return row.name;
      });
      order(body, shown.map((name) => rows.get(name).node));
      for (const [name, row] of rows) {
        if (!shown.includes(name)) {
          row.end();
          rows.delete(name);
        } else row.draw(event.times);
      }
      say(found, asked.search ? `${several(event.found, "limit")} of ${several(event.head.limits, "limit")}` : several(event.found, "limit"));
      pages.set(event.page, event.pages);
      table.hidden = event.found === 0;
      empty.hidden = event.found > 0;
      say(empty, event.head.limits === 0 ? "No limits are in force: the limits file has none." : `No limit has “${asked.search}” in its name.`);
    },
    end: () => rows.forEach((row) => row.end()),
  };
}

function newRow(name) {
  const cells = {
    state: el("span"),
    note: el("small"),
    rate: el("span"),
    offered: el("td", { class: "num", "data-label": "offered" }),
    admitted: el("td", { class: "num", "data-label": "admitted" }),
    dropped: el("td", { class: "num", "data-label": "dropped" }),
    ratio: el("td", { class: "num", "data-label": "ratio" }),
    spark: el("div", { class: "spark" }),
    second: el("div", { class: "spark narrow" }),
  };
  const link = el("a", { href: address("limit", name) }, name);
  const node = el("tr", { class: "open", "data-limit": name },
    el("td", { class: "is" }, cells.state), el("td", { class: "name" }, link, cells.note), el("td", { class: "rate" }, cells.rate),
    cells.offered, cells.admitted, cells.dropped, cells.ratio,
    el("td", { class: "chart" }, cells.spark), el("td", { class: "chart second" }, cells.second));
  node.addEventListener("click", (event) => {
    if (!event.target.closest("a") && !getSelection().toString()) link.click();
  });
  let charts = null;
  let last = null;
  return {
    node,
    set(times, row) {
      last = row;
      cells.state.className = `state ${row.state}`;
      say(cells.state, state(row.state));
      say(cells.note, noteOf(row));
      cells.note.hidden = cells.note.textContent === "";
      say(cells.rate, rateOf(row));
      const counted = row.state !== "exact" && row.state !== "off";
      say(cells.offered, counted ? rate(row.offered) : "–");
      say(cells.admitted, counted ? rate(row.admitted) : "–");
      say(cells.dropped, counted ? rate(row.would_drop > row.dropped ? row.would_drop : row.dropped) : "–");
      cells.dropped.dataset.label = row.would_drop > row.dropped ? "would drop" : "dropped";
      cells.dropped.title = row.would_drop > row.dropped ? "would be dropped; it passes, in shadow" : "";
      say(cells.ratio, counted ? percent(row.ratio) : "–");
      node.classList.toggle("quiet", row.state === "idle" || !counted);
    },
    // Only once it is in the page, since a chart is as wide as its place.
    draw(times) {
      charts ??= [spark(cells.spark), ratioSpark(cells.second)];
      for (const chart of charts) chart.set(times, last);
    },
    end: () => charts?.forEach((chart) => chart.end()),
  };
}

/** The rate as the limits file has it, and for what it holds. */
export function rateOf(row) {
  const keys = row.per.length > 0 ? ` for each ${row.per.join(" and ")}` : "";
  const place = row.scope === "global" ? "" : keys ? ` in each ${row.scope}` : ` for each ${row.scope}`;
  return `${row.rate}${keys}${place}`;
}

function noteOf(row) {
  const notes = [];
  if (row.mode === "shadow") notes.push("shadow");
  if (row.per.length > 0 || row.scope !== "global") notes.push(several(row.buckets, "bucket"));
  if (row.tokens !== null) notes.push(row.tokens < 0 ? `${several(Math.ceil(-row.tokens), "unit")} owed` : `${several(Math.floor(row.tokens), "unit")} left`);
  return notes.join(" · ");
}
