// Figures over time, with units on both axes; the value under the pointer in words.

import { h, replace, svg, tip } from './dom.js';
import { api, get, repeating } from './server.js';
import { bytes, duration, number, tickWords, timeStep } from './words.js';

const LEFT = 62;
const BOTTOM = 24;
const TOP = 8;
const RIGHT = 10;
const TALL = 190;

export const UNITS = {
  cores: (value) => (value >= 10 ? number(value) : String(Number(value.toPrecision(2)))),
  bytes,
  rate: (value) => `${bytes(value)}/s`,
  percent: (value) => `${Number(value.toPrecision(3))} %`,
  count: (value) => String(Number(value.toPrecision(3))),
};

// series: {name, colour, times, values}; times in microseconds. limit: {name, value}.
export function chart({ title, unit, series, limit, from, to, note }) {
  const figure = h('figure', null, h('figcaption', null, title));
  const place = h('div', { class: 'chart' });
  const words = UNITS[unit];
  const used = series.filter((one) => one.values.length > 0);
  if (used.length === 0) {
    figure.append(h('p', { class: 'soft small' }, note ?? 'nothing was measured yet'));
    return { element: figure, leave() {} };
  }
  figure.append(h('div', { class: 'legend' }, used.map((one) => h('span', null, h('i', { class: 'swatch', style: { background: `var(--${one.colour})` } }), one.name)), limit && h('span', { class: 'soft' }, `- - ${limit.name}`)), place);
  // A loop, not a spread: there may be more values than a call takes arguments.
  let most = limit && limit.value > 0 ? limit.value : 0;
  for (const one of used) for (const value of one.values) if (value > most) most = value;
  const top = nice(Math.max(most, unit === 'bytes' || unit === 'rate' ? 1000 : 0) || 1, unit);

  function draw() {
    const width = Math.max(220, place.clientWidth || 420);
    const x = (time) => LEFT + ((time - from) / Math.max(1, to - from)) * (width - LEFT - RIGHT);
    const y = (value) => TALL - BOTTOM - (value / top) * (TALL - BOTTOM - TOP);
    const parts = [];
    for (let share = 0; share <= 4; share += 1) {
      const value = (top * share) / 4;
      parts.push(svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }), svg('text', { class: 'soft', x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' }, words(value)));
    }
    const step = timeStep(to - from, (width - LEFT) / 78);
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const anchor = x(time) > width - RIGHT - 24 ? 'end' : 'middle';
      parts.push(svg('line', { class: 'axis', x1: x(time), x2: x(time), y1: y(0), y2: y(0) + 4 }), svg('text', { class: 'soft', x: x(time), y: TALL - 6, 'text-anchor': anchor }, tickWords(time, step)));
    }
    parts.push(svg('line', { class: 'axis', x1: LEFT, x2: width - RIGHT, y1: y(0), y2: y(0) }));
    if (limit && limit.value > 0) parts.push(svg('line', { class: 'limit', x1: LEFT, x2: width - RIGHT, y1: y(limit.value), y2: y(limit.value) }));
    used.forEach((one, index) => {
      const points = one.values.map((value, at) => `${x(one.times[at]).toFixed(1)} ${y(value).toFixed(1)}`);
      if (index === 0 && one.fill) parts.push(svg('path', { d: `M${x(one.times[0])} ${y(0)}L${points.join('L')}L${x(one.times.at(-1))} ${y(0)}z`, style: { fill: `var(--${one.colour})`, opacity: '.18' } }));
      // More than one line is told apart by dashes too.
      parts.push(svg('path', { class: 'line', d: `M${points.join('L')}`, style: { stroke: `var(--${one.colour})`, 'stroke-dasharray': ['none', '7 4', '2 3', '9 3 2 3'][index % 4] } }));
      if (points.length === 1) parts.push(svg('circle', { cx: x(one.times[0]), cy: y(one.values[0]), r: 3, style: { fill: `var(--${one.colour})` } }));
    });
    const drawing = svg('svg', { width, height: TALL, role: 'img', 'aria-label': `${title}, at most ${words(most)}` }, parts);
    drawing.addEventListener('pointermove', (event) => {
      const time = from + ((event.offsetX - LEFT) / (width - LEFT - RIGHT)) * (to - from);
      tip(event.clientX, event.clientY, [`after ${duration(Math.max(0, time))}`, ...used.map((one) => `${one.name}: ${words(nearest(one, time))}`)].join('\n'));
    });
    drawing.addEventListener('pointerleave', () => tip(0, 0, ''));
    replace(place, drawing);
  }
  const watch = new ResizeObserver(draw);
  watch.observe(place);
  return { element: figure, leave: () => watch.disconnect() };
}

function nearest(one, time) {
  let low = 0;
  let high = one.times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (one.times[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return one.values[low] ?? 0;
}

// A round number that is not below.
function nice(value, unit) {
  if (unit === 'percent' && value <= 100) return 100;
  const base = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].find((step) => step * base >= value * 0.999) * base;
}

// What the tasks of a run used together.
export function usage(first) {
  let run = first;
  let drawn = [];
  const element = h('section');
  const ask = repeating(async () => {
    const answer = await get(api(run.run, 'usage'));
    for (const one of drawn) one.leave();
    const columns = answer.columns;
    // A column is as wide as the time that it stands for.
    const times = columns.flatMap((column) => [column.from - answer.from, column.to - answer.from]);
    const line = (name, colour, key, fill) => ({ name, colour, times, values: columns.flatMap((column) => [column[key], column[key]]), fill });
    const common = { from: 0, to: columns.length > 0 ? columns.at(-1).to - answer.from : 1 };
    const limit = (value) => value > 0 && { name: `there are ${UNITS.count(value)}`, value };
    drawn = [
      chart({ ...common, title: 'CPU (cores)', unit: 'cores', series: [line('busy', 'k0', 'cpus', true)], limit: limit(answer.cores) }),
      chart({ ...common, title: 'Memory (bytes)', unit: 'bytes', series: [line('in use', 'k0', 'memory', true)] }),
      chart({ ...common, title: 'Read and written (bytes a second)', unit: 'rate', series: [line('read', 'k0', 'read_rate'), line('written', 'k1', 'write_rate')] }),
      chart({ ...common, title: 'Tasks (running at once)', unit: 'count', series: [line('running', 'k2', 'running', true)] }),
      ...(answer.gpus > 0 || columns.some((column) => column.gpus > 0 || column.gpu_memory > 0)
        ? [chart({ ...common, title: 'GPUs (devices)', unit: 'cores', series: [line('busy', 'k0', 'gpus', true)], limit: limit(answer.gpus) }),
          chart({ ...common, title: 'GPU memory (bytes)', unit: 'bytes', series: [line('in use', 'k0', 'gpu_memory', true)] })]
        : []),
    ];
    replace(element, h('h2', null, 'Use over time'), h('p', { class: 'soft small' }, 'From the samples of every attempt, on average over each column; of attempts that nobody looked at, what they used is spread over their time.'), h('div', { class: 'charts' }, drawn.map((one) => one.element)));
  }, 2000);
  ask();
  return {
    element,
    update(next) {
      run = next;
      ask();
    },
    leave() {
      ask.end();
      for (const one of drawn) one.leave();
    },
  };
}
