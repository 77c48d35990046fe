// What stands above every page: figures of the whole, and what somebody should know at once.

import { el, fill, say } from "./dom.js";
import { count, moment, several } from "./format.js";
import * as token from "./token.js";

const summary = document.getElementById("summary");
const notices = document.getElementById("notices");
const node = document.getElementById("node");
const figures = new Map();
let noticed = "";

function figure(name, number, look = "") {
  if (!figures.has(name)) {
    const value = el("b");
    const whole = el("div", { class: "figure" }, value, el("span", {}, name));
    figures.set(name, { whole, value });
    summary.append(whole);
  }
  const { whole, value } = figures.get(name);
  say(value, count(number));
  whole.className = number > 0 && look ? `figure ${look}` : "figure";
}

/** Shows what an event says of the whole. */
export function tell(head) {
  figure("dropping", head.states.dropping ?? 0, "over");
  figure("would drop", head.states.would_drop ?? 0);
  figure("within limit", head.states.within ?? 0);
  figure("idle", (head.states.idle ?? 0) + (head.states.off ?? 0) + (head.states.exact ?? 0));
  figure("agents", head.agents);
  figure("aggregators", head.aggregators);
  figure("zones", head.zones);
  figure("generation", head.generation);
  say(node, `${head.node}  Headworks ${head.version}  limits ${(head.digest ?? "").slice(0, 12)}`);
  document.title = head.states.dropping ? `(${head.states.dropping}) Headworks` : "Headworks";
  const next = JSON.stringify([head.held?.digest, head.refused, head.shadow_all, head.learning, head.twins, head.silent, token.has()]);
  if (next !== noticed) {
    noticed = next;
    fill(notices, noticesOf(head));
  }
}

function notice(look, ...what) {
  return el("div", { class: `notice ${look}` }, what);
}

function noticesOf(head) {
  return [
    head.held && held(head),
    head.refused.stands && notice("over",
      el("div", {}, el("b", {}, "A limits file was refused"), ` at ${moment(head.refused.at)}; the limits of generation ${head.generation} stay in force.`),
      el("a", { href: "#/file" }, "See its faults")),
    head.shadow_all && notice("",
      el("div", {}, el("b", {}, "Shadow-all is on."), " Every limit counts what it would drop; nothing is dropped."),
      token.has() && el("button", { type: "button", onclick: () => throwSwitch(false) }, "Turn it off")),
    head.silent > 0 && notice("over",
      el("div", {}, el("b", {}, `${several(head.silent, "child is", "children are")} stale.`), " What they were offered no longer counts here."),
      el("a", { href: "#/fleet" }, "See which")),
    head.twins > 0 && notice("over", el("div", {}, el("b", {}, "Children share their ids."), " Give each node its own --id.")),
    head.learning && notice("", el("div", {}, el("b", {}, "Learning."), " This controller has just started, and goes by what its children say was in force.")),
  ].filter(Boolean);
}

function held({ held, at }) {
  const causes = held.causes.map((cause) => el("li", {}, cause));
  if (held.more > 0) causes.push(el("li", {}, `and ${several(held.more, "limit")} more`));
  const apply = () => token.confirm("Put these limits in force?",
    `They were held back, since at the present demand they would newly drop much. Digest ${held.digest.slice(0, 12)}.`,
    "Put them in force", () => token.json("/limits/apply", { method: "POST", body: JSON.stringify({ digest: held.digest }) }));
  return notice("over",
    el("div", {}, el("b", {}, "New limits are held back"), ` since ${moment(at - held.age_ms / 1000)}, until somebody confirms them:`, el("ul", {}, causes)),
    token.has() ? el("button", { type: "button", class: "firm", onclick: apply }, "Confirm…") : el("code", {}, "headworks limits apply"));
}

/** Turns every limit of the fleet to shadow, or back, if it is meant. */
export function throwSwitch(on) {
  token.confirm(on ? "Turn every limit to shadow?" : "Enforce limits again?",
    on ? "Within a second nothing is dropped any more in the whole fleet, bans included, until somebody turns it back."
      : "Each limit goes back to its own mode, in the whole fleet, within a second.",
    on ? "Turn all to shadow" : "Enforce again",
    () => token.json("/shadow-all", { method: "PUT", body: JSON.stringify({ on }) }));
}
