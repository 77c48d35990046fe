// Zones, the nodes that are attached, and the fleet's switch.

import { pager, searchBox } from "./controls.js";
import { el, rested, say, update } from "./dom.js";
import { count, lasted, rate, several, state } from "./format.js";
import { throwSwitch } from "./head.js";
import { pageOf } from "./route.js";
import * as token from "./token.js";

/** The page. */
export function open(root, { settings }, again) {
  const asked = { search: settings.get("search") ?? "", page: pageOf(settings) };
  const change = (settings) => {
    Object.assign(asked, settings);
    again();
  };
  const zones = zoneTable(false);
  const search = searchBox("Search nodes by id or zone", asked.search, rested((text) => change({ search: text, page: 0 }), 150));
  const pages = pager((page) => change({ page }));
  const found = el("span", { class: "count", role: "status" });
  const body = el("tbody");
  const titles = ["Node", "State", "Tier", "Zone", "Agents", "Buckets", "Last report"];
  const head = titles.map((title, index) => el("th", { scope: "col", class: index > 1 ? "num" : "" }, title));
  const onOff = switchCard();
  root.append(el("h1", { class: "visually-hidden" }, "Fleet"), el("div", { class: "cards" },
    el("section", { class: "card" }, el("header", {}, el("h2", {}, "Zones")), zones.node),
    onOff.node,
    el("section", { class: "card wide" }, el("header", {}, el("h2", {}, "Attached to this controller"), el("p", {}, "aggregators report for the agents below them")),
      el("div", { class: "controls" }, search, found, pages.node), el("table", { class: "folds" }, el("thead", {}, el("tr", {}, head)), body))));
  return {
    search,
    settings: () => asked,
    query: () => new URLSearchParams({ view: "fleet", ...asked }),
    told(event) {
      zones.set(event.zones);
      onOff.set(event.head);
      pages.set(event.page, event.pages);
      say(found, event.found === 0 ? "none" : several(event.found, "node"));
      update(body, event.children.map(nodeRow));
    },
    end() {},
  };
}

function nodeRow(child) {
  const name = child.silent ? "stale" : "fresh";
  const figure = (label, text) => el("td", { class: "num", "data-label": label }, text);
  return el("tr", {},
    el("td", { class: "name" }, child.node),
    el("td", { class: "is" }, el("span", { class: `state ${name}` }, state(name))),
    figure("tier", child.tier), figure("zone", child.zone), figure("agents", count(child.agents)),
    figure("buckets", count(child.buckets)), figure("last report", `${lasted(child.report_age_ms / 1000)} ago`));
}

// What a word means that somebody should do something about.
const MEANING = {
  partly: "some do not report: their plans grow old",
  stale: "attached, but silent: their plans grow old",
  away: "nobody is attached: it was taken down, or its nodes go on alone by their last plans until the hold is over",
};

/** Zones in a table; with the demand of a limit where one is looked at. */
export function zoneTable(withDemand) {
  const titles = withDemand ? ["Zone", "State", "Offered", "Dropped", "Agents"] : ["Zone", "State", "Aggregators", "Agents", "Last report"];
  const body = el("tbody");
  const head = titles.map((title, index) => el("th", { scope: "col", class: index > 1 ? "num" : "" }, title));
  const table = el("table", {}, el("thead", {}, el("tr", {}, head)), body);
  const none = el("p", { class: "note", hidden: true }, "No node is attached. Start an aggregator with --controllers, and agents below it.");
  return {
    node: el("div", {}, table, none),
    set(zones) {
      table.hidden = zones.length === 0;
      none.hidden = zones.length > 0;
      update(body, zones.map((zone) => {
        const last = zone.away === null ? (zone.report_age_ms === null ? "–" : `${lasted(zone.report_age_ms / 1000)} ago`) : `${lasted(zone.away)} ago`;
        const dropped = zone.would_drop > zone.dropped ? `${rate(zone.would_drop)} (shadow)` : rate(zone.dropped);
        const figures = withDemand ? [rate(zone.offered), dropped, count(zone.agents)] : [count(zone.aggregators), count(zone.agents), last];
        return el("tr", {},
          el("td", { class: "name" }, zone.zone, MEANING[zone.state] ? el("small", {}, MEANING[zone.state]) : null),
          el("td", {}, el("span", { class: `state ${zone.state}` }, state(zone.state))),
          figures.map((figure) => el("td", { class: "num" }, figure)));
      }));
    },
  };
}

function switchCard() {
  const said = el("p", { class: "said" });
  const hint = el("p", { class: "note" });
  const button = el("button", { type: "button" });
  let on = false;
  button.addEventListener("click", () => (token.has() ? throwSwitch(!on) : token.openDialog()));
  const node = el("section", { class: "card" }, el("header", {}, el("h2", {}, "Shadow-all")), said, button, hint);
  return {
    node,
    set(head) {
      on = head.shadow_all;
      say(said, on ? "On: every limit counts what it would drop, and nothing is dropped." : "Off: each limit is in its own mode.");
      say(button, on ? "Enforce again…" : "Turn every limit to shadow…");
      say(hint, token.has() ? "" : "Needs the admin token.");
    },
  };
}
