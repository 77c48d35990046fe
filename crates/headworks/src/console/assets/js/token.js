// The admin token: whoever has it may change something. It is kept until the tab is closed.

import { el } from "./dom.js";

const KEY = "headworks-token";
const listeners = new Set();

export const has = () => sessionStorage.getItem(KEY) !== null;

/** Calls back when there is a token, or is none any more. */
export function onChange(callback) {
  listeners.add(callback);
}

function set(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
  for (const callback of listeners) callback();
}

/** Asks the server, with the token if there is one. */
export function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (has()) headers.Authorization = `Bearer ${sessionStorage.getItem(KEY)}`;
  return fetch(path, { ...options, headers, cache: "no-store" });
}

/** The answer as JSON; an error that says what the server said if it said no. */
export async function json(path, options) {
  const response = await ask(path, options);
  if (!response.ok) throw new Error((await response.text()).trim() || `the controller answered ${response.status}`);
  return response.json();
}

/** Lets whoever looks give a token, or take it back. */
export function openDialog(reason = "") {
  if (document.querySelector("dialog[open]")) return;
  const input = el("input", { type: "password", autocomplete: "off", "aria-label": "Admin token", placeholder: "what the file of --admin-token-file holds" });
  const submit = (event) => {
    event.preventDefault();
    done(input.value.trim());
  };
  const dialog = el("dialog", { "aria-label": "Admin token" }, el("form", { onsubmit: submit },
    el("h2", {}, "Admin token"),
    reason ? el("p", { class: "over-text" }, reason) : null,
    el("p", {}, "Without it this page only reads. With it, you can turn every limit to shadow and confirm limits that are held back. It is kept until this tab is closed."),
    input,
    el("div", { class: "choices" },
      has() ? el("button", { type: "button", onclick: () => done("") }, "Forget it") : null,
      el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      el("button", { type: "submit", class: "firm" }, "Use it"))));
  const done = (token) => {
    set(token);
    dialog.close();
  };
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** The button that tells whether there is one. */
export function start(button) {
  const show = () => {
    button.textContent = has() ? "Token given" : "Read only";
    button.title = has() ? "You can change things. Click to forget the token" : "Click to give the admin token";
  };
  button.addEventListener("click", () => openDialog());
  onChange(show);
  show();
}

/** Asks whether it is meant, and does it; `act` throws what went wrong. */
export function confirm(title, text, yes, act) {
  const said = el("p", { class: "over-text", role: "alert" });
  const button = el("button", { type: "button", class: "firm" }, yes);
  const dialog = el("dialog", { "aria-label": title },
    el("h2", {}, title), el("p", {}, text), said,
    el("div", { class: "choices" }, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), button));
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      said.textContent = error.message;
      button.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
