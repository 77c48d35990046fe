// One limit: the last minutes, its zones and buckets, and what it did in the last 24 hours.

import { rates, ratios } from "./charts.js";
import { key, pager, searchBox } from "./controls.js";
import { el, rested, say, update } from "./dom.js";
import { bucket, count, percent, rate, several, state } from "./format.js";
import { rateOf } from "./limits.js";
import { pageOf } from "./route.js";
import { zoneTable } from "./fleet.js";
import * as trial from "./trial.js";

/** The page of the limit with this name. */
export function open(root, { name, settings }, again) {
  const asked = { search: settings.get("search") ?? "", page: pageOf(settings) };
  const change = (settings) => {
    Object.assign(asked, settings);
    again();
  };
  const word = el("span");
  const facts = el("dl", { class: "facts" });
  const body = el("div", { class: "cards" });
  const empty = el("p", { class: "empty", hidden: true }, `No limit in force is called “${name}”. It may have been removed or renamed.`);
  root.append(
    el("p", { class: "crumb" }, el("a", { href: "#/limits" }, "Limits"), " /"),
    el("div", { class: "title" }, el("h1", {}, name), word), facts, empty, body);
  const now = nowCard();
  const busiest = busiestCard();
  const zones = zoneCard();
  const buckets = bucketCard(asked, change);
  const past = trial.card(name);
  body.append(now.node, el("div", { class: "stack" }, busiest.node, past.node), el("div", { class: "stack" }, zones.node, buckets.node));

  return {
    search: buckets.search,
    settings: () => asked,
    query: () => new URLSearchParams({ view: "limit", limit: name, ...asked }),
    told(event) {
      const { row } = event;
      body.hidden = row === null;
      empty.hidden = row !== null;
      if (row === null) return;
      word.className = `state ${row.state}`;
      say(word, state(row.state));
      update(facts, factsOf(row, event.facts).map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, text))));
      now.set(event);
      busiest.set(event);
      zones.set(event);
      buckets.set(event);
      past.follow();
    },
    end() {
      now.end();
      busiest.end();
      past.end();
    },
  };
}

function factsOf(row, facts) {
  return [
    ["rate", rateOf(row)],
    ["mode", row.mode],
    ["concerns", facts.matches.length > 0 ? facts.matches.join(", ") : "every request"],
    facts.overrides > 0 && ["overrides", count(facts.overrides)],
    facts.rollout && ["rollout", "differs by zone"],
    row.tokens !== null && ["budget", row.tokens < 0 ? `${count(-row.tokens)} units owed` : `${count(row.tokens)} units left`],
    row.per.length > 0 && ["buckets", `${count(row.buckets)} of at most ${count(facts.max_buckets)}`],
    row.untracked > 0 && ["untracked", `${count(row.untracked)} units found no bucket of their own`],
  ].filter(Boolean);
}

function big(name, colour) {
  const value = el("b");
  return { node: el("div", { class: "big" }, value, el("span", {}, el("i", { class: colour }), name)), set: (text) => say(value, text) };
}

/** Demand, and what becomes of it. */
function nowCard() {
  const figures = [big("offered", "offered"), big("admitted", "admitted"), big("limit", "line"), big("dropped", "none"), big("drop ratio", "ratio")];
  const why = el("p", { class: "note" });
  const main = el("div", { class: "plot", role: "img", "aria-label": "Offered, admitted and limit in the last five minutes" });
  const ratio = el("div", { class: "plot", role: "img", "aria-label": "Drop ratio in the last five minutes" });
  const node = el("section", { class: "card wide" }, el("header", {}, el("h2", {}, "The last five minutes"), el("p", {}, "cost units a second")),
    el("div", { class: "bigs" }, figures.map((figure) => figure.node)), why, main, ratio);
  let charts = null;
  return {
    node,
    set({ row, times }) {
      const counted = row.state !== "exact" && row.state !== "off";
      const [offered, admitted, line, dropped, part] = figures;
      offered.set(rate(row.offered));
      admitted.set(rate(row.admitted));
      line.set(row.line === null ? "–" : rate(row.line));
      dropped.set(row.would_drop > row.dropped ? `${rate(row.would_drop)} (shadow)` : rate(row.dropped));
      part.set(percent(row.ratio));
      say(why, whyNot(row));
      why.hidden = why.textContent === "";
      main.hidden = ratio.hidden = !counted;
      if (!counted) return;
      charts ??= [rates(main, ["offered", "admitted", "line"], "now"), ratios(ratio, "now")];
      // The line comes and goes with what the limits file says: where there is none it is drawn nowhere.
      charts[0].set([times, row.curves.offered, row.curves.admitted, times.map(() => row.line)]);
      charts[1].set([times, row.curves.ratio]);
    },
    end: () => charts?.forEach((chart) => chart.end()),
  };
}

function whyNot(row) {
  if (row.state === "exact") return "An exact limit is counted by agents and their store; a controller does not see its traffic.";
  if (row.state === "off") return "This limit is switched off: it is matched with nothing, and counts nothing.";
  if (row.budget) return "A budget: its amount may be used at once, so for a while more may pass than the limit gives each second.";
  if (row.line === null && row.rate !== "unlimited") return "All buckets together. Each has the limit for itself, so there is no one line for their sum.";
  return "";
}

/** The bucket that is offered most, against its own limit. */
function busiestCard() {
  const what = el("p");
  const plot = el("div", { class: "plot", role: "img", "aria-label": "The busiest bucket in the last five minutes" });
  const node = el("section", { class: "card", hidden: true }, el("header", {}, el("h2", {}, "The busiest bucket"), what),
    el("p", { class: "note" }, key("offered"), key("line", "limit")), plot);
  let chart = null;
  return {
    node,
    set({ row, busiest, times }) {
      node.hidden = busiest === null;
      if (busiest === null) return;
      say(what, `${bucket(busiest.scope, busiest.values)}: ${rate(busiest.offered)} of ${busiest.rate}, drop ratio ${percent(busiest.ratio)}`);
      chart ??= rates(plot, ["offered", "line"], "now");
      chart.set([times, row.curves.busiest, times.map(() => busiest.line)]);
    },
    end: () => chart?.end(),
  };
}

function zoneCard() {
  const table = zoneTable(true);
  const node = el("section", { class: "card" }, el("header", {}, el("h2", {}, "By zone"), el("p", {}, "and what the plans of its nodes are worth")), table.node);
  return { node, set: ({ zones }) => table.set(zones) };
}

function bucketCard(asked, change) {
  const search = searchBox("Search buckets by value", asked.search, rested((text) => change({ search: text, page: 0 }), 150));
  const pages = pager((page) => change({ page }));
  const note = el("p", { class: "note" });
  const body = el("tbody");
  const head = ["Bucket", "Rate", "Offered", "Ratio"].map((title, index) => el("th", { scope: "col", class: index > 1 ? "num" : "" }, title));
  const node = el("section", { class: "card", hidden: true }, el("header", {}, el("h2", {}, "By bucket value"), note),
    el("div", { class: "controls" }, search, pages.node), el("table", {}, el("thead", {}, el("tr", {}, head)), body));
  return {
    node,
    search,
    set({ row, buckets }) {
      node.hidden = row.per.length === 0 && row.scope === "global";
      if (buckets === null) {
        say(note, "being read");
        return;
      }
      const of = buckets.searched < buckets.known ? ` of the ${count(buckets.searched)} with most demand` : "";
      say(note, asked.search ? `${several(buckets.found, "fits", "fit")}${of}` : `${several(buckets.known, "bucket")}, those with most demand first`);
      pages.set(buckets.page, buckets.pages);
      update(body, buckets.rows.map((of) => el("tr", {},
        el("td", { class: "name" }, bucket(of.scope, of.values)),
        el("td", { class: "rate" }, of.rate),
        el("td", { class: "num" }, rate(of.offered)),
        el("td", { class: "num" }, percent(of.ratio)))));
    },
  };
}
