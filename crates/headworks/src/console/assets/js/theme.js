// Light, dark, or as the system has it.

const NAMES = ["system", "light", "dark"];
const root = document.documentElement;

function kept() {
  const name = localStorage.getItem("theme");
  return NAMES.includes(name) ? name : "system";
}

function apply(name) {
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
}

/** The button that goes from one to the next; `changed` is called when colours are others. */
export function start(button, changed) {
  const show = () => {
    button.textContent = `Theme: ${kept()}`;
    button.setAttribute("aria-label", `Theme: ${kept()}. Change it`);
  };
  button.addEventListener("click", () => {
    const next = NAMES[(NAMES.indexOf(kept()) + 1) % NAMES.length];
    localStorage.setItem("theme", next);
    apply(next);
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  show();
}

// At once, so that nothing is drawn in other colours first.
apply(kept());
