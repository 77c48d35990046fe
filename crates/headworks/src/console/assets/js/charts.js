// Charts, drawn by uPlot. Colours are those of the style sheet, read anew when the theme changes.

import { clock, percent, rate, second, short } from "./format.js";

const uPlot = window.uPlot;
const all = new Set();
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);
const colours = new Map();

function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}

/** Draws all charts again, in other colours. */
export function recolour() {
  colours.clear();
  for (const chart of all) chart.redraw();
}

const stroke = (name, more = {}) => ({ stroke: () => colour(name), width: 1.5, points: { show: false }, ...more });
const LINE = { dash: [5, 4], width: 1.25 };
const steady = (times, value) => times.map(() => value);
const solid = (curves) => curves.map((curve) => curve ?? null);

/** From zero to a little above the highest, so that the limit is always in view. */
function above(lowest) {
  return (chart, low, high) => [0, Math.max(high ?? 0, lowest) * 1.12 || 1];
}

/** A chart in a node; `set(data)` shows other data. Its size is that of the node. */
function make(node, height, options, data) {
  const width = () => Math.max(node.clientWidth, 40);
  const chart = new uPlot({ width: width(), height, legend: { show: false }, ...options }, data, node);
  all.add(chart);
  const sizes = new ResizeObserver(() => chart.setSize({ width: width(), height }));
  sizes.observe(node);
  return {
    set: (next) => chart.setData(next),
    end() {
      sizes.disconnect();
      all.delete(chart);
      chart.destroy();
    },
  };
}

const bare = {
  axes: [{ show: false }, { show: false }],
  cursor: { show: false },
  padding: [2, 0, 2, 0],
  scales: { x: { time: false } },
};

/** Offered, admitted and limit, without words. */
export function spark(node) {
  const series = [{}, stroke("offered", { width: 1, fill: () => colour("offered-fill") }), stroke("admitted"), stroke("line", { ...LINE, width: 1 })];
  const chart = make(node, 34, { ...bare, series, scales: { ...bare.scales, y: { range: above(0) } } }, [[], [], [], []]);
  return {
    set: (times, row) => chart.set(solid([times, row.curves.offered, row.curves.admitted, steady(times, row.line)])),
    end: chart.end,
  };
}

/** The drop ratio, without words. */
export function ratioSpark(node) {
  const series = [{}, stroke("ratio", { width: 1, fill: () => colour("ratio-fill") })];
  const chart = make(node, 34, { ...bare, series, scales: { ...bare.scales, y: { range: [0, 1.02] } } }, [[], []]);
  return { set: (times, row) => chart.set([times, row.curves.ratio]), end: chart.end };
}

const axis = (more) => ({
  stroke: () => colour("soft"),
  grid: { stroke: () => colour("faint"), width: 1 },
  ticks: { show: false },
  font: "12px system-ui, sans-serif",
  ...more,
});
const seconds = (chart, ticks) => ticks.map(second);
const minutes = (chart, ticks) => ticks.map(clock);
const time = (more = {}) => axis({ values: seconds, space: 90, size: 28, ...more });
const cursor = (key) => ({ sync: { key }, points: { size: 6 }, drag: { x: false, y: false } });
const legend = { show: true, live: true };
const value = (say) => (chart, number) => (number === null ? "–" : say(number));
const when = { label: "at", value: (chart, at) => (at === null ? "–" : second(at)) };

/** Rates by the second, with the limit: `names` are those of the curves, in the colours of the same name. */
export function rates(node, names, key) {
  const looks = { offered: { fill: () => colour("offered-fill") }, line: LINE };
  const labels = { line: "limit" };
  const series = [when, ...names.map((name) => stroke(name, { label: labels[name] ?? name, value: value(rate), ...looks[name] }))];
  const options = {
    series,
    legend,
    cursor: cursor(key),
    scales: { y: { range: above(0) } },
    axes: [time(), axis({ values: (chart, ticks) => ticks.map(short), size: 62 })],
  };
  return make(node, 230, options, [[], ...names.map(() => [])]);
}

/** The drop ratio by the second. */
export function ratios(node, key) {
  const series = [when, stroke("ratio", { label: "drop ratio", value: value(percent), fill: () => colour("ratio-fill") })];
  const options = {
    series,
    legend,
    cursor: cursor(key),
    scales: { y: { range: [0, 1] } },
    axes: [time(), axis({ values: (chart, ticks) => ticks.map((tick) => `${tick * 100} %`), splits: () => [0, 0.5, 1], size: 62 })],
  };
  return make(node, 110, options, [[], []]);
}

/** Peak rates and what was over the limit, hour by hour. */
export function hours(node) {
  const bars = uPlot.paths.bars({ size: [0.8, 40] });
  const series = [
    { ...when, label: "hour from" },
    stroke("admitted", { label: "peak", paths: bars, fill: () => colour("admitted"), width: 0, value: value(rate) }),
    stroke("offered", { label: "over, on average", paths: bars, fill: () => colour("offered"), width: 0, value: value(rate) }),
  ];
  const options = {
    series,
    legend,
    cursor: cursor("hours"),
    scales: { y: { range: above(0) } },
    axes: [axis({ values: minutes, space: 60, size: 28 }), axis({ values: (chart, ticks) => ticks.map(short), size: 62 })],
  };
  return make(node, 150, options, [[], [], []]);
}
