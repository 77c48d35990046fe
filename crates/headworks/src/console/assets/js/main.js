// The console: which page is open, and the stream that feeds it.

import { recolour } from "./charts.js";
import { say } from "./dom.js";
import * as file from "./file.js";
import * as fleet from "./fleet.js";
import { lasted } from "./format.js";
import * as head from "./head.js";
import * as keys from "./keys.js";
import * as limit from "./limit.js";
import * as limits from "./limits.js";
import { follow } from "./live.js";
import { here, settle } from "./route.js";
import * as theme from "./theme.js";
import * as token from "./token.js";

const PAGES = { limits, limit, fleet, file };
const root = document.getElementById("view");
const link = document.getElementById("link");
const linked = document.getElementById("linked");
let page = null;
let stream = null;
let heard = null;
let reason = "";
let version = null;
let hiding;
// A page that nobody sees gives its stream back after a while: a browser has few for one server, and a controller few for all.
const HIDDEN = 30_000;

function open() {
  stream?.stop();
  page?.end();
  root.replaceChildren();
  const place = here();
  const name = Object.hasOwn(PAGES, place.page) ? place.page : "limits";
  page = PAGES[name].open(root, place, () => {
    settle(page.settings());
    listen();
  });
  for (const anchor of document.querySelectorAll("#nav a")) {
    const current = anchor.getAttribute("href") === `#/${name === "limit" ? "limits" : name}`;
    if (current) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  listen();
}

function listen() {
  stream?.stop();
  const own = page;
  stream = follow(page.query(), (event) => {
    heard = Date.now();
    reason = "";
    stayWith(event.head.version);
    head.tell(event.head);
    own.told(event);
    showLink();
  }, (why) => {
    reason = why;
    showLink();
  });
}

/** Another page than before: whoever hears it rather than sees it is told so, and begins at its top. */
function turn() {
  open();
  const heading = root.querySelector("h1");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** A release that was installed meanwhile has other files. */
function stayWith(release) {
  version ??= release;
  if (version !== release) location.reload();
}

/** Whether the figures are those of now, in words. */
function showLink() {
  const age = heard === null ? 0 : (Date.now() - heard) / 1000;
  const lost = reason !== "" || age > 5;
  link.className = lost ? "link lost" : "link";
  link.title = reason;
  document.body.classList.toggle("stale", lost && heard !== null);
  if (heard === null) say(link, lost ? `not connected: ${reason}` : "connecting");
  else say(link, lost ? `not connected: figures are ${lasted(age)} old` : "live");
  // The age changes each second, and is not worth an interruption.
  say(linked, lost ? "not connected" : heard === null ? "connecting" : "live");
}

theme.start(document.getElementById("theme"), recolour);
token.start(document.getElementById("token"));
keys.start();
addEventListener("hashchange", turn);
// An address that begins with # would be another page.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  root.focus();
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => stream.stop(), HIDDEN);
  else listen();
});
setInterval(showLink, 1000);
open();
