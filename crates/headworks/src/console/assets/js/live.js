// The stream of what is looked at. Read by fetch and not by EventSource, which can neither send a token nor tell why it was refused.

import { ask, has, onChange, openDialog } from "./token.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
// Events come each second; on a controller with a million buckets less often.
const SILENCE = 70_000;
// The longest that a timer takes: nothing changes until somebody gives a token.
const FOREVER = 2 ** 31 - 1;

class NoToken extends Error {}

/** A stream that goes on until `stop()`: `told(event)` for each event, `lost(reason)` when there is none for now. */
export function follow(query, told, lost) {
  const stopped = new AbortController();
  run(query, told, lost, stopped.signal);
  return { stop: () => stopped.abort() };
}

async function run(query, told, lost, signal) {
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    try {
      await read(query, signal, (event) => {
        wait = FIRST_WAIT;
        show(event, told, lost);
      });
    } catch (error) {
      if (!signal.aborted) lost(error.message);
      if (error instanceof NoToken) wait = FOREVER;
    }
    await pause(wait, signal);
    wait = wait === FOREVER ? FIRST_WAIT : Math.min(2 * wait, LONGEST_WAIT);
  }
}

/** A fault of this page is told as what it is, and does not end the stream. */
function show(event, told, lost) {
  try {
    told(event);
  } catch (error) {
    reportError(error);
    lost(`this page cannot show what came: ${error.message}`);
  }
}

/** What comes of asking the controller; it does not answer where that fails by the network. */
async function answer(promise, own) {
  try {
    return await promise;
  } catch (error) {
    if (own.aborted) throw own.reason;
    throw error instanceof TypeError ? new Error("the controller does not answer") : error;
  }
}

/** Reads one stream to its end: a controller ends each after some minutes, so that a token that was replaced opens it no longer. */
async function read(query, signal, told) {
  const own = new AbortController();
  const end = () => own.abort(new Error("the page is closed"));
  const tire = () => own.abort(new Error("the controller has been silent for a minute"));
  signal.addEventListener("abort", end);
  let watchdog = setTimeout(tire, SILENCE);
  try {
    const response = await answer(ask(`/console/events?${query}`, { signal: own.signal }), own.signal);
    if (!response.ok) await refused(response);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await answer(reader.read(), own.signal);
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(tire, SILENCE);
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        if (event.startsWith("data: ") && !signal.aborted) told(JSON.parse(event.slice(6)));
      }
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", end);
    // Whatever ended the reading, nothing of it goes on.
    end();
  }
}

async function refused(response) {
  const text = (await response.text()).trim();
  if (response.status !== 401 && response.status !== 403) throw new Error(text || `the controller answered ${response.status}`);
  const reason = has() ? "The controller does not take this token." : "This controller tells its figures only to whoever has its token.";
  if (response.status === 401) openDialog(reason);
  throw new NoToken(response.status === 401 ? "needs the admin token" : text);
}

let wake = () => {};
onChange(() => wake());

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
  });
}
