// Elements. Text from the server becomes text nodes, and never anything else.

/** An element with these properties, and children that are elements or texts. */
export function el(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Puts these in place of what is in a node. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined));
}

/** Makes what is in a node like these, which listen to nothing. What is so already is left alone: what somebody marks stays marked. */
export function update(node, ...children) {
  const wanted = document.createElement("template").content;
  wanted.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  align(node, wanted);
}

function align(node, wanted) {
  const olds = [...node.childNodes];
  const news = [...wanted.childNodes];
  news.forEach((next, index) => {
    const old = olds[index];
    if (!old) node.append(next);
    else if (old.nodeName !== next.nodeName) old.replaceWith(next);
    else if (next.nodeType === Node.TEXT_NODE) say(old, next.data);
    else {
      for (const { name } of [...old.attributes]) if (!next.hasAttribute(name)) old.removeAttribute(name);
      for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      align(old, next);
    }
  });
  for (const gone of olds.slice(news.length)) gone.remove();
}

/** Sets a text, if it is another. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Brings the children of a node into this order. What has the focus keeps it. */
export function order(parent, nodes) {
  const focused = document.activeElement;
  let next = parent.firstChild;
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** Calls back when nothing was asked for so many milliseconds. */
export function rested(callback, milliseconds) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...args), milliseconds);
  };
}
