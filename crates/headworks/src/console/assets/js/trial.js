// What a limit did in the last 24 hours, or would have done in shadow.

import { hours } from "./charts.js";
import { key } from "./controls.js";
import { el, say, update } from "./dom.js";
import { clock, count, lasted, moment, percent, rate, several } from "./format.js";
import { json } from "./token.js";

const ANEW = 10_000;

/** The card of a limit's trial; `follow()` reads it anew if that is due, so that nobody asks for what nobody looks at. */
export function card(name) {
  const title = el("h2", {}, "The last 24 hours");
  const since = el("p");
  const said = el("div");
  const plot = el("div", { class: "plot", role: "img", "aria-label": "Peak rate and what was over the limit, hour by hour" });
  const more = el("div");
  const keys = el("p", { class: "note" }, key("admitted", "peak"), key("offered", "over, on average"));
  const node = el("section", { class: "card", "data-trial": true }, el("header", {}, title, since), said, keys, plot, more);
  let chart = null;
  let due = 0;
  const read = async () => {
    try {
      const trial = await json(`/trial?limit=${encodeURIComponent(name)}`);
      say(since, `known for ${lasted(trial.until - trial.since)}${trial.changed === null ? "" : `, changed at ${moment(trial.changed)}`}`);
      update(said, summary(trial));
      update(more, hardest(trial), worst(trial));
      plot.hidden = keys.hidden = trial.minutes === 0;
      if (trial.minutes > 0) {
        chart ??= hours(plot);
        chart.set(byHour(trial));
      }
    } catch (error) {
      plot.hidden = keys.hidden = true;
      update(said, el("p", { class: "note" }, error.message));
    }
  };
  return {
    node,
    follow() {
      if (Date.now() < due) return;
      due = Date.now() + ANEW;
      read();
    },
    end: () => chart?.end(),
  };
}

function summary(trial) {
  if (trial.minutes === 0) return el("p", { class: "note" }, "No traffic in this time.");
  const shadow = trial.would_drop > 0 || trial.mode === "shadow";
  const over = trial.would_drop + trial.dropped;
  return [
    el("p", { class: "said" }, el("strong", {}, shadow ? "Would have been dropped: " : "Dropped: "),
      el("strong", { class: over > 0 ? "over-text" : "", "data-part-over": trial.part_over }, percent(trial.part_over)),
      `, ${count(over)} of ${count(trial.offered)} units, in ${count(trial.minutes_over)} of ${several(trial.minutes, "minute")} with traffic`),
    el("p", { class: "said" }, el("strong", {}, "Offered: "),
      `${rate(trial.median_rate)} in half of the minutes, up to ${rate(trial.p95_rate)} in 95 % of them; peak ${rate(trial.peak_rate)}`),
    trial.overrides ? el("p", { class: "said note" }, "Overrides give some buckets other rates or modes.") : null,
    trial.full ? el("p", { class: "said note" }, "More limits have traffic than a controller follows.") : null,
  ];
}

function byHour(trial) {
  const last = trial.until - 3600;
  const times = trial.hours.map((_, index) => last - 3600 * (trial.hours.length - 1 - index));
  return [times, trial.hours.map((hour) => hour.peak_rate), trial.hours.map((hour) => hour.over / 3600)];
}

function table(titles, rows) {
  const head = titles.map((title, index) => el("th", { scope: "col", class: index > 0 ? "num" : "" }, title));
  return el("table", {}, el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text, index) => el("td", { class: index > 0 ? "num" : "name" }, text))))));
}

function hardest(trial) {
  const hits = trial.hardest_hit.slice(0, 5);
  if (hits.length === 0) return null;
  const name = (hit) => (hit.values === null ? "(all others)" : hit.values.join(", "));
  return table(["Hit hardest", "units over"], hits.map((hit) => [name(hit), count(hit.over)]));
}

function worst(trial) {
  const minutes = trial.worst_minutes.slice(0, 3);
  if (minutes.length === 0) return null;
  return table(["Worst minutes", "offered", "over", "peak"],
    minutes.map((minute) => [clock(minute.at), count(minute.offered), count(minute.over), rate(minute.peak_rate)]));
}
