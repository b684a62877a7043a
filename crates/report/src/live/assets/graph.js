// The graph of task sets: one box a set, with its tasks by state; from left to right, or down where the page is narrow.

import { h, replace, svg } from './dom.js';
import { counted, number, stateName } from './words.js';

const BOX = { width: 164, height: 62, along: 38, across: 16, margin: 14 };

export function graph(choose) {
  const element = h('div', { class: 'drawing graph', tabindex: '-1' });
  let run = null;
  let shape = '';
  let boxes = [];
  let marked = null;

  function update(next) {
    run = next;
    const now = JSON.stringify([run.sets.map((set) => set.name), run.edges, narrow()]);
    if (now !== shape) {
      shape = now;
      lay();
    }
    run.sets.forEach((set, place) => fill(boxes[place], set));
  }

  const narrow = () => (element.clientWidth || element.parentElement?.clientWidth || innerWidth) < 640;

  function lay() {
    const down = narrow();
    const ranks = [];
    run.sets.forEach((set, place) => {
      if (!set.unwanted) (ranks[set.rank] ??= []).push(place);
    });
    const rows = ranks.filter(Boolean);
    untangle(rows, run.edges);
    const step = down ? BOX.height + BOX.along * 0.7 : BOX.width + BOX.along;
    const side = down ? BOX.width + BOX.across : BOX.height + BOX.across;
    // A rank with very many sets goes on beside itself.
    const room = down ? Math.max(1, Math.floor((element.clientWidth || 360) / side)) : 12;
    const at = [];
    let along = BOX.margin;
    let across = 0;
    for (const row of rows) {
      const lanes = Math.ceil(row.length / room);
      row.forEach((place, index) => {
        at[place] = [along + Math.floor(index / room) * step, (index % room) * side, Math.min(room, row.length)];
      });
      across = Math.max(across, Math.min(room, row.length) * side);
      along += lanes * step;
    }
    const position = (place) => {
      const [one, other, many] = at[place];
      const middle = other + (across - many * side) / 2 + BOX.margin;
      return down ? [middle, one] : [one, middle];
    };
    const width = (down ? across - BOX.across + BOX.margin : along - BOX.along) + BOX.margin;
    const height = (down ? along - BOX.along * 0.7 : across - BOX.across + BOX.margin) + BOX.margin;
    const edges = run.edges.filter(([from, to]) => at[from] && at[to]).map(([from, to]) => {
      const [a, b] = position(from);
      const [c, d] = position(to);
      const [x1, y1, x2, y2] = down ? [a + BOX.width / 2, b + BOX.height, c + BOX.width / 2, d] : [a + BOX.width, b + BOX.height / 2, c, d + BOX.height / 2];
      const bend = Math.max(18, (down ? y2 - y1 : x2 - x1) / 2);
      const path = down ? `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 5}` : `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 5} ${y2}`;
      return svg('path', { class: 'edge', d: path, 'marker-end': 'url(#arrow)' });
    });
    boxes = run.sets.map((set, place) => {
      if (!at[place]) return null;
      const [x, y] = position(place);
      const box = svg('g', { class: 'node', transform: `translate(${x} ${y})`, tabindex: '0', role: 'button', onclick: () => choose(place), onkeydown: (event) => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          choose(place);
        }
      } },
      svg('title'), svg('rect', { class: 'box', width: BOX.width, height: BOX.height, rx: 7 }),
      svg('text', { x: 10, y: 21, 'font-weight': 600 }, fit(set.name, true)), svg('g', { class: 'parts', transform: 'translate(10 30)' }), svg('text', { class: 'soft words', x: 10, y: 54 }));
      return box;
    });
    const arrow = svg('defs', null, svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 5, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto' }, svg('path', { d: 'M0 0L8 4L0 8z', fill: 'context-stroke' })));
    const scale = Math.max(0.8, Math.min(1, (element.clientWidth || innerWidth) / width));
    replace(element, svg('svg', { viewBox: `0 0 ${width} ${height}`, width: Math.round(width * scale), height: Math.round(height * scale), 'aria-label': 'Task sets and which wait for which' }, arrow, edges, boxes.filter(Boolean)));
    mark(marked);
  }

  function fill(box, set) {
    if (!box) return;
    const counts = counted(set.states, set.reused, run);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    const width = BOX.width - 20;
    let x = 0;
    replace(box.querySelector('.parts'), counts.map(([state, count]) => {
      const part = Math.max(3, (width * count) / total);
      const rect = svg('rect', { x, y: 0, width: Math.max(0, Math.min(part, width - x)), height: 10, style: { fill: `var(--${state})` } });
      x += part;
      return rect;
    }));
    const words = total === 0 ? 'not known yet' : sentence(counts, total);
    box.querySelector('.words').textContent = fit(words, false);
    box.querySelector('title').textContent = `${set.name}: ${counts.map(([state, count]) => `${number(count)} ${stateName(state)}`).join(', ') || words}`;
    box.setAttribute('aria-label', box.querySelector('title').textContent);
    box.classList.toggle('bad', counts.some(([state]) => state === 'failed' || state === 'held'));
  }

  function sentence(counts, total) {
    const of = Object.fromEntries(counts);
    const done = (of.done ?? 0) + (of.reused ?? 0);
    const others = ['failed', 'held', 'running', 'skipped'].filter((state) => of[state]).map((state) => `${number(of[state])} ${stateName(state)}`);
    return [`${number(done)}/${number(total)} done`, ...others].join(', ');
  }

  function mark(place) {
    marked = place;
    boxes.forEach((box, index) => box?.classList.toggle('open', index === place));
  }

  let width = 0;
  const watch = new ResizeObserver(() => {
    if (run && Math.abs(element.clientWidth - width) > 30) {
      width = element.clientWidth;
      shape = '';
      update(run);
    }
  });
  watch.observe(element);
  return { element, update, mark, leave: () => watch.disconnect() };
}

// As much of a text as a box has room for. Long names of one workflow begin alike: their ends tell them apart.
const ruler = document.createElement('canvas').getContext('2d');
function fit(text, name) {
  ruler.font = name ? '600 13px system-ui, sans-serif' : '12px system-ui, sans-serif';
  const room = BOX.width - 20;
  if (ruler.measureText(text).width <= room) return text;
  let length = text.length;
  const cut = () => (name ? `…${text.slice(text.length - length)}` : `${text.slice(0, length)}…`);
  while (length > 1 && ruler.measureText(cut()).width > room) length -= 1;
  return cut();
}

// Orders each rank by where its neighbours are, a few times forth and back: fewer edges cross.
function untangle(rows, edges) {
  const place = new Map();
  const note = (row) => row.forEach((node, index) => place.set(node, (index + 0.5) / row.length));
  rows.forEach(note);
  const before = new Map();
  const after = new Map();
  for (const [from, to] of edges) {
    before.set(to, [...(before.get(to) ?? []), from]);
    after.set(from, [...(after.get(from) ?? []), to]);
  }
  const sort = (row, near) => {
    const weight = new Map(row.map((node) => {
      const all = (near.get(node) ?? []).filter((other) => place.has(other));
      return [node, all.length > 0 ? all.reduce((sum, other) => sum + place.get(other), 0) / all.length : place.get(node)];
    }));
    row.sort((one, other) => weight.get(one) - weight.get(other) || one - other);
    note(row);
  };
  for (let times = 0; times < 4; times += 1) {
    rows.forEach((row) => sort(row, before));
    [...rows].reverse().forEach((row) => sort(row, after));
  }
}
