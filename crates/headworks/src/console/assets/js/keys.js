// The keyboard: / searches, arrows go from row to row, Enter opens (links do that by themselves), Esc goes back.

const PAGES = { l: "#/limits", f: "#/fleet", y: "#/file" };
let after = "";

const links = () => [...document.querySelectorAll("main tr.open a")];

function step(by) {
  const all = links();
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by));
  all[next]?.focus();
  all[next]?.closest("tr").scrollIntoView({ block: "nearest" });
  return all.length > 0;
}

function leave(search) {
  if (document.activeElement === search && search.value !== "") {
    search.value = "";
    search.dispatchEvent(new Event("input"));
  } else if (document.activeElement === search) search.blur();
  else if (location.hash.startsWith("#/limit/")) history.length > 1 ? history.back() : (location.hash = "#/limits");
}

/** Listens until the page is closed. */
export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const search = document.querySelector("main input[data-search]");
    const typing = document.activeElement instanceof HTMLInputElement;
    const before = after;
    after = "";
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (step(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    } else if (event.key === "Escape") leave(search);
    else if (event.key === "Enter" && typing) step(1);
    else if (typing) return;
    else if (event.key === "/") {
      search?.focus();
      search?.select();
      event.preventDefault();
    } else if (event.key === "g") after = "g";
    else if (before === "g" && PAGES[event.key]) location.hash = PAGES[event.key];
  });
}
