// Figures and their units. Rates are cost units a second.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0, useGrouping: true });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A number with thin spaces between thousands. */
export function count(number) {
  return whole.format(number).replaceAll(",", "\u202f");
}

function figure(number) {
  if (number === 0) return "0";
  return Math.abs(number) < 100 ? tenth.format(number) : count(number);
}

/** A rate with its unit. */
export function rate(number) {
  return number === null || number === undefined ? "–" : `${figure(number)}/s`;
}

/** The same for the axis of a chart, where there is little room. */
export function short(number) {
  if (number >= 1e6) return `${+(number / 1e6).toPrecision(3)}M/s`;
  if (number >= 1e4) return `${+(number / 1e3).toPrecision(3)}k/s`;
  return `${+number.toPrecision(3)}/s`;
}

/** A part, from 0 to 1, in percent. */
export function percent(part) {
  if (part === null || part === undefined) return "–";
  return `${part > 0 && part < 0.1 ? (part * 100).toFixed(2) : (part * 100).toFixed(1)} %`;
}

/** A time that has passed, in seconds. */
export function lasted(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

const day = new Intl.DateTimeFormat([], { dateStyle: "medium" });
const minutes = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const seconds = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** The time of day of a moment, in seconds since 1970, by the clock of whoever looks. */
export const second = (at) => seconds.format(at * 1000);

/** Only its hours and minutes. */
export const clock = (at) => minutes.format(at * 1000);

/** The moment with its day. */
export const moment = (at) => `${day.format(at * 1000)}, ${second(at)}`;

/** One of something, or several. */
export function several(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

const STATES = {
  dropping: "dropping",
  would_drop: "would drop",
  within: "within limit",
  idle: "idle",
  exact: "exact",
  off: "off",
  fresh: "fresh",
  partly: "partly stale",
  stale: "stale",
  away: "away",
};

/** A state in words. */
export function state(name) {
  return STATES[name] ?? name;
}

/** What a bucket is of: its place and its values. */
export function bucket(scope, values) {
  const place = scope.filter((name) => name !== "").join("/");
  const told = values === null ? "(all others)" : values.map((value) => value || "(empty)").join(", ");
  if (!place) return told;
  return told ? `${place}: ${told}` : place;
}
