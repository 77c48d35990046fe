// Where in the console one is: it stands behind the # of the address, so that it can be kept and sent.

/** The page and its settings. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const [, page = "limits", name = ""] = path.split("/");
  return { page: page || "limits", name: decoded(name), settings: new URLSearchParams(query) };
}

// What somebody wrote by hand may be no encoding.
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** The page of a list that settings ask for, from 0. */
export function pageOf(settings) {
  const page = Number(settings.get("page") ?? 0);
  return Number.isSafeInteger(page) && page >= 0 ? page : 0;
}

/** The address of a page. */
export function address(page, name = "", settings = {}) {
  const given = Object.entries(settings).filter(([, value]) => value !== "" && value !== null && value !== false && value !== 0);
  const query = new URLSearchParams(given).toString();
  return `#/${page}${name ? `/${encodeURIComponent(name)}` : ""}${query ? `?${query}` : ""}`;
}

/** Changes settings of the present page, without a step back for each letter that is typed. */
export function settle(settings) {
  const { page, name } = here();
  history.replaceState(null, "", address(page, name, settings));
}
