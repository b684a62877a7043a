// Which address shows what; the back button, keys, day and night.

import { h, link, put, replace, runPath, tip } from './dom.js';
import { begin, listen } from './server.js';
import { runs } from './runs.js';
import { run } from './run.js';
import { task } from './task.js';
import { compare } from './compare.js';

const main = document.getElementById('main');
let view = null;

function route() {
  const path = location.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  if (path[0] === 'compare') return { show: compare, trail: [['compare']] };
  if (path[0] === 'runs' && path.length >= 4 && path[2] === 'jobs') {
    return { show: task, arguments: [path[1], Number(path[3])], trail: [[path[1], runPath(path[1])], ['jobs', runPath(path[1], 'jobs')], [path[3]]] };
  }
  if (path[0] === 'runs' && path[1]) {
    return { show: run, arguments: [path[1], path[2] ?? ''], trail: path[2] ? [[path[1], runPath(path[1])], [path[2]]] : [[path[1]]] };
  }
  return { show: runs, trail: [] };
}

function crumbs(trail) {
  // A workflow inside a run: the runs around it first.
  const around = trail.flatMap(([name, path], place) => {
    if (place > 0 || !name.includes('/sub/')) return [[name, path]];
    const parts = name.split('/sub/');
    return parts.map((part, depth) => [part, depth < parts.length - 1 ? runPath(parts.slice(0, depth + 1).join('/sub/')) : path]);
  });
  const parts = [['runs', '/'], ...around].flatMap(([name, path], place, all) => [
    place > 0 && h('span', { class: 'sep', 'aria-hidden': 'true' }, '/'),
    place < all.length - 1 ? link(path, name) : h('span', { 'aria-current': 'page' }, name),
  ]);
  replace(document.getElementById('crumbs'), parts);
}

// Shows what the address says. Moving between parts of one page keeps its view, if it can change by itself.
export function show() {
  const { show: make, arguments: given = [], trail } = route();
  tip(0, 0, '');
  crumbs(trail);
  document.title = [...trail.map(([name]) => name).reverse(), 'Tulpar'].join(' · ');
  const key = `${make.name} ${given[0] ?? ''} ${make === task ? given[1] : ''}`;
  if (view?.key === key && view.move) {
    view.move(...given);
    return;
  }
  view?.leave?.();
  main.replaceChildren();
  view = make(main, ...given) ?? {};
  view.key = key;
}

export function go(path) {
  if (path !== location.pathname + location.search + location.hash) history.pushState(null, '', path);
  show();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

document.addEventListener('click', (event) => {
  const anchor = event.target.closest?.('a[href^="/"]');
  if (!anchor || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (anchor.target || anchor.hasAttribute('download')) return;
  event.preventDefault();
  go(anchor.getAttribute('href'));
});
addEventListener('popstate', show);
document.addEventListener('tulpar-go', (event) => go(event.detail));

// One level up: from a task to its run, from a run to the runs.
function up() {
  const path = location.pathname.split('/').filter(Boolean);
  if (path.length === 0) return;
  if (path[0] === 'runs' && path.length === 4) go(`/${path.slice(0, 2).join('/')}`);
  else go(path.length > 2 ? `/${path.slice(0, 2).join('/')}` : '/');
}

document.addEventListener('keydown', (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
  const typing = event.target.closest?.('input, select, textarea');
  if (event.key === 'Escape') {
    if (document.querySelector('dialog[open]')) return;
    if (typing) {
      if (typing.value && typing.type === 'search') {
        typing.value = '';
        typing.dispatchEvent(new Event('input', { bubbles: true }));
      } else typing.blur();
    } else up();
    event.preventDefault();
    return;
  }
  if (typing) return;
  if (event.key === '/') {
    const filter = document.querySelector('main input[type="search"]');
    if (filter) {
      filter.focus();
      filter.select();
      event.preventDefault();
    }
  } else if (event.key === '?') keys();
});

function keys() {
  const rows = [['/', 'filter'], ['j k ↑ ↓', 'move in a table'], ['Enter', 'open'], ['Esc', 'one level up'], ['Tab', 'next thing'], ['+ −', 'zoom a timeline'], ['← → ↑ ↓', 'move in a drawing'], ['?', 'these words']];
  const dialog = h('dialog', { onclose: () => dialog.remove() }, h('h2', null, 'Keys'),
    h('table', null, h('tbody', null, rows.map(([key, words]) => h('tr', null, h('td', { class: 'no' }, key.split(' ').map((one) => [h('kbd', null, one), ' '])), h('td', null, words))))),
    h('p', null, h('button', { onclick: () => dialog.close() }, 'Close')));
  document.body.append(dialog);
  dialog.showModal();
}
document.getElementById('keys').addEventListener('click', keys);

// Day and night: as the system says, unless the reader chose.
const night = matchMedia('(prefers-color-scheme: dark)');
const saved = () => {
  try { return localStorage.getItem('theme'); } catch { return null; }
};
function theme() {
  const dark = (saved() ?? (night.matches ? 'dark' : 'light')) === 'dark';
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  const button = document.getElementById('theme');
  button.textContent = dark ? '☀' : '☾';
  button.setAttribute('aria-label', dark ? 'Light' : 'Dark');
  document.dispatchEvent(new Event('tulpar-theme'));
}
document.getElementById('theme').addEventListener('click', () => {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try { localStorage.setItem('theme', next); } catch { /* then it is for this page only */ }
  document.documentElement.dataset.theme = next;
  theme();
});
night.addEventListener('change', theme);
theme();

listen((news) => view?.news?.(news));
begin();
show();
put(main, []);
