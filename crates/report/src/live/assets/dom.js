// Elements from words: everything that is shown goes in as text, never as markup.

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, part] of Object.entries(value)) element.style.setProperty(key, part);
    else element.setAttribute(name, value === true ? '' : value);
  }
  put(element, children);
  return element;
}

export function put(element, children) {
  for (const child of [children].flat(9)) {
    if (child === null || child === undefined || child === false || child === '') continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return put(element, children);
}

// Changes the text only where it differs, so that a selection and the reader's place stay.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function link(path, ...children) {
  return h('a', { href: path }, ...children);
}

export const runPath = (run, ...more) => ['', 'runs', run, ...more].map(encodeURIComponent).join('/');
export const jobPath = (run, job) => runPath(run, 'jobs', job);

let tipElement;
export function tip(x, y, text) {
  tipElement ??= document.body.appendChild(h('div', { id: 'tip' }));
  if (!text) {
    tipElement.style.display = 'none';
    return;
  }
  say(tipElement, text);
  tipElement.style.display = 'block';
  const box = tipElement.getBoundingClientRect();
  tipElement.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tipElement.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// A canvas that is as sharp as the screen; draw is called with its size in CSS pixels.
export function sharpen(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

// Draws again when the box gets another size or the colours change, until what it gives is called.
export function redrawing(box, draw) {
  const watch = new ResizeObserver(draw);
  watch.observe(box);
  document.addEventListener('tulpar-theme', draw);
  return () => {
    watch.disconnect();
    document.removeEventListener('tulpar-theme', draw);
  };
}
