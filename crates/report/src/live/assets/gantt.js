// Who ran where and when: a lane a slot of each node. Drawn on a canvas, what is too thin to be seen once a pixel. Of very
// many attempts the server packs the lanes, and only what can be seen is asked for.

import { colour, h, jobPath, redrawing, replace, say, sharpen, tip } from './dom.js';
import { api, get, now, repeating } from './server.js';
import { duration, number, plural, stateOf, stateName, shown, tickWords, timeStep } from './words.js';

const KINDS = 10;
const HEAD = 26;
const LEFT = 8;
const TITLE = 18;
// More attempts than this are not sent all at once.
const MANY = 20000;

export const kindColour = (kind) => (kind >= 0 && kind < KINDS ? `k${kind}` : 'other');

export function gantt(first) {
  let run = first;
  let seq = null;
  let from = run.started ?? 0;
  // By job and attempt, so that what changed takes the place of what was.
  const bars = new Map();
  let lanes = [];
  let ends = 0;
  // What is seen, in microseconds since the start, and the first lane.
  let left = 0;
  let span = 0;
  let top = 0;
  let by = 'kind';
  let at = null;
  // Where not all is here: which part is, and what is known of the whole.
  let part = null;

  const canvas = h('canvas', { tabindex: '0', role: 'application', 'aria-label': 'Timeline: arrows move, plus and minus zoom, Enter opens' });
  const box = h('div', { class: 'drawing' }, canvas);
  const words = h('span', { class: 'soft small', role: 'status' });
  const key = h('div', { class: 'legend' });
  const press = (text, label, act) => h('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, text);
  const colours = h('select', { 'aria-label': 'Colours', onchange: () => { by = colours.value; legend(); draw(); } }, h('option', { value: 'kind' }, 'coloured by task set'), h('option', { value: 'state' }, 'coloured by ending'));
  const element = h('section', null, h('div', { class: 'bar-of-tools' }, press('+', 'zoom in', () => zoom(0.5)), press('−', 'zoom out', () => zoom(2)), press('all', 'show all', all), colours, h('span', { class: 'grow' }), words), key, box, h('p', { class: 'soft small' }, 'Drag to move, Ctrl and wheel or two fingers to zoom; a bar opens its task.'));
  box.style.overflow = 'hidden';

  const until = () => (run.standing === 'running' ? now() - from : Math.max(ends, (run.until ?? 0) - from));
  const whole = () => Math.max(1000, until());
  const seen = () => (span > 0 ? span : whole());
  const rowHeight = () => (lanes.length > 220 ? 5 : lanes.length > 60 ? 9 : 16);
  const height = () => Math.min(HEAD + 6 + lanes.length * rowHeight() + gaps() * TITLE, Math.max(240, innerHeight * 0.66));
  const gaps = () => lanes.filter((lane) => lane.title).length;

  // Each attempt takes the first slot of its node that is free.
  function pack() {
    const places = new Map();
    const sorted = [...bars.values()].sort((one, other) => one.start - other.start || one.job - other.job);
    ends = 0;
    for (const bar of sorted) {
      const slots = places.get(bar.place) ?? places.set(bar.place, []).get(bar.place);
      const end = bar.end < 0 ? Infinity : bar.end;
      ends = Math.max(ends, bar.end < 0 ? bar.start : bar.end);
      let slot = slots.find((one) => one.free <= bar.start);
      if (!slot) slots.push(slot = { free: 0, bars: [] });
      slot.free = end;
      slot.bars.push(bar);
    }
    lanes = [];
    for (const place of [...places.keys()].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))) {
      places.get(place).forEach((slot, index) => lanes.push({ bars: slot.bars, title: index === 0 ? place : null }));
    }
  }

  const x = (time, width) => LEFT + ((time - left) / seen()) * (width - LEFT * 2);

  function draw() {
    const width = box.clientWidth;
    if (width === 0) return;
    const tall = height();
    const pen = sharpen(canvas, width, tall);
    const row = rowHeight();
    const ink = colour('ink');
    const soft = colour('soft');
    const failed = colour('failed');
    const paints = new Map();
    const paint = (name) => paints.get(name) ?? paints.set(name, colour(name)).get(name);
    pen.clearRect(0, 0, width, tall);
    ticks(pen, width, tall, soft, colour('faint'));
    pen.save();
    pen.beginPath();
    pen.rect(0, HEAD, width, tall - HEAD);
    pen.clip();
    let y = HEAD + 4 - top;
    const right = left + seen();
    const end = until();
    for (const lane of lanes) {
      if (lane.title) {
        pen.fillStyle = soft;
        pen.font = '12px system-ui';
        pen.textBaseline = 'middle';
        pen.fillText(lane.title, LEFT, y + 9);
        y += TITLE;
      }
      lane.y = y;
      y += row;
      if (lane.y + row < HEAD || lane.y > tall) continue;
      let drawn = -1;
      const list = lane.bars;
      for (let index = firstAfter(list, left); index < list.length && list[index].start <= right; index += 1) {
        const bar = list[index];
        const x1 = x(bar.start, width);
        const x2 = x(bar.end < 0 ? end : bar.end, width);
        if (x2 < drawn && bar.state !== 'f') continue;
        const from = Math.max(x1, -5);
        const thick = Math.max(1, Math.min(x2, width + 5) - from - (x2 - x1 > 4 ? 0.6 : 0));
        pen.fillStyle = by === 'state' ? paint(shown(stateOf(bar.state), run)) : paint(kindColour(bar.kind));
        pen.fillRect(from, lane.y, thick, row - 1.5);
        if (bar.state === 'f') {
          pen.fillStyle = failed;
          pen.fillRect(from, lane.y, Math.max(thick, 2), Math.max(2.5, row * 0.28));
          pen.fillRect(from + thick - 2, lane.y, 2, row - 1.5);
        } else if (bar.state === 'r' && run.standing === 'running' && thick > 6) {
          pen.fillStyle = ink;
          pen.fillRect(from + thick - 2, lane.y, 2, row - 1.5);
        }
        if (bar === at) {
          pen.strokeStyle = colour('focus');
          pen.lineWidth = 2;
          pen.strokeRect(from - 1, lane.y - 1, thick + 2, row + 0.5);
        }
        drawn = Math.floor(x2 + 0.999);
      }
    }
    pen.restore();
    bottom = y + top - tall;
    if (part && lacking(width, tall)) more();
    if (bottom > 0) {
      const track = tall - HEAD;
      pen.fillStyle = soft;
      pen.globalAlpha = 0.5;
      pen.fillRect(width - 5, HEAD + (track * top) / (tall + bottom), 3, (track * tall) / (tall + bottom));
      pen.globalAlpha = 1;
    }
  }
  let bottom = 0;

  // The first bar that ends after a time: bars of a lane do not overlap.
  function firstAfter(list, time) {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle].end >= 0 && list[middle].end < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function ticks(pen, width, tall, soft, faint) {
    const step = timeStep(seen(), width / 88);
    pen.font = '12px system-ui';
    pen.textBaseline = 'middle';
    pen.fillStyle = soft;
    for (let time = Math.ceil(left / step) * step; time <= left + seen(); time += step) {
      const place = x(time, width);
      pen.strokeStyle = faint;
      pen.beginPath();
      pen.moveTo(place, HEAD - 4);
      pen.lineTo(place, tall);
      pen.stroke();
      const text = tickWords(time, step);
      pen.fillText(text, Math.min(place + 3, width - pen.measureText(text).width - 2), 12);
    }
    pen.strokeStyle = soft;
    pen.beginPath();
    pen.moveTo(0, HEAD - 3.5);
    pen.lineTo(width, HEAD - 3.5);
    pen.stroke();
  }

  function legend() {
    const used = new Set(part && by === 'kind' ? part.all_kinds : [...bars.values()].map((bar) => (by === 'kind' ? bar.kind : bar.state)));
    const swatch = (name, text) => h('span', null, h('i', { class: 'swatch', style: { background: `var(--${name})` } }), text);
    if (by === 'kind') {
      const shownKinds = [...used].filter((kind) => kind >= 0 && kind < KINDS).sort((one, other) => one - other);
      replace(key, shownKinds.map((kind) => swatch(kindColour(kind), run.sets[kind]?.name ?? '')), [...used].some((kind) => kind < 0 || kind >= KINDS) && swatch('other', 'other'), (part ? part.any_failed : [...bars.values()].some((bar) => bar.state === 'f')) && swatch('failed', 'with an edge: did not end well'));
    } else replace(key, [...used].map((letter) => stateOf(letter)).map((state) => swatch(shown(state, run), stateName(shown(state, run)))));
  }

  function zoom(factor, around = 0.5) {
    const middle = left + seen() * around;
    const next = Math.min(whole(), Math.max(2000, seen() * factor));
    span = next >= whole() * 0.999 ? 0 : next;
    pan(middle - seen() * around);
  }
  function pan(to) {
    left = Math.max(0, Math.min(to, whole() - seen()));
    draw();
  }
  function all() {
    span = 0;
    left = 0;
    top = 0;
    draw();
  }
  function scroll(by) {
    const before = top;
    top = Math.max(0, Math.min(top + by, Math.max(0, bottom + 8)));
    if (top !== before) draw();
    return top !== before;
  }

  function find(event) {
    const rect = canvas.getBoundingClientRect();
    const y = event.clientY - rect.top;
    const time = left + ((event.clientX - rect.left - LEFT) / (rect.width - LEFT * 2)) * seen();
    const slack = seen() / rect.width;
    const lane = lanes.find((one) => y >= one.y && y < one.y + rowHeight());
    const list = lane?.bars ?? [];
    return list.slice(firstAfter(list, time - slack), firstAfter(list, time - slack) + 1).find((bar) => bar.start <= time + slack) ?? null;
  }
  const about = (bar) => {
    const state = shown(stateOf(bar.state), run);
    const end = bar.end < 0 ? until() : bar.end;
    return `${run.sets[bar.kind]?.name ?? 'job'} (job ${bar.job}${bar.n > 1 ? `, attempt ${bar.n}` : ''})\n${stateName(state)} · ${duration(end - bar.start)} · from ${duration(bar.start)}\n${bar.place}`;
  };
  const open = (bar) => bar && document.dispatchEvent(new CustomEvent('tulpar-go', { detail: jobPath(run.run, bar.job) }));

  // Mouse and fingers: drag to move, wheel or two fingers to zoom.
  const fingers = new Map();
  let dragged = false;
  canvas.addEventListener('pointerdown', (event) => {
    fingers.set(event.pointerId, event);
    dragged = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      const bar = find(event);
      canvas.style.cursor = bar ? 'pointer' : 'grab';
      tip(event.clientX, event.clientY, bar ? about(bar) : '');
      return;
    }
    const others = [...fingers.values()].filter((one) => one.pointerId !== event.pointerId);
    const scale = seen() / canvas.clientWidth;
    if (others.length === 1) {
      const apart = (one) => Math.max(20, Math.abs(one.clientX - others[0].clientX));
      const rect = canvas.getBoundingClientRect();
      zoom(apart(before) / apart(event), ((event.clientX + others[0].clientX) / 2 - rect.left) / rect.width);
      dragged = true;
    } else if (dragged || Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) > 4) {
      dragged = true;
      pan(left - (event.clientX - before.clientX) * scale);
      scroll(before.clientY - event.clientY);
    } else return;
    fingers.set(event.pointerId, event);
    tip(0, 0, '');
  });
  const up = (event) => {
    if (fingers.delete(event.pointerId) && !dragged && event.type === 'pointerup') open(find(event));
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => tip(0, 0, ''));
  canvas.addEventListener('wheel', (event) => {
    const rect = canvas.getBoundingClientRect();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(left + ((event.deltaX || event.deltaY) * seen()) / rect.width);
    else if (event.ctrlKey || event.altKey) zoom(Math.exp(event.deltaY * 0.004), (event.clientX - rect.left) / rect.width);
    else if (!scroll(event.deltaY)) return;
    event.preventDefault();
  }, { passive: false });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: () => pan(left - seen() / 8), ArrowRight: () => pan(left + seen() / 8), ArrowUp: () => scroll(-60), ArrowDown: () => scroll(60), '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: all, Enter: () => open(at), n: () => next(1), p: () => next(-1) }[event.key];
    if (!step) return;
    step();
    event.preventDefault();
    event.stopPropagation();
  });
  // From bar to bar, in the order of their starts.
  function next(by) {
    const sorted = [...bars.values()].sort((one, other) => one.start - other.start || one.job - other.job);
    const place = at ? sorted.indexOf(at) + by : 0;
    at = sorted[Math.max(0, Math.min(place, sorted.length - 1))] ?? null;
    if (at) say(words, about(at).replaceAll('\n', ', '));
    draw();
  }

  const keyOf = (job, n) => job * 4096 + n;
  const barAt = (answer, index) => ({ job: answer.jobs[index], n: answer.n[index], start: answer.start[index], end: answer.end[index], state: answer.states[index], kind: answer.kinds[index], place: '' });

  async function askAll() {
    const answer = await get(api(run.run, 'timeline'), { after: seq });
    seq = answer.seq;
    from = answer.from;
    answer.jobs.forEach((job, index) => bars.set(keyOf(job, answer.n[index]), { ...barAt(answer, index), place: answer.places[answer.place[index]] }));
    if (answer.jobs.length > 0) pack();
  }

  // The lanes that can be seen, as far as that is known.
  function visible(tall) {
    let y = HEAD + 4 - top;
    let from = lanes.length;
    let to = 0;
    lanes.forEach((lane, index) => {
      y += (lane.title ? TITLE : 0) + rowHeight();
      if (y >= HEAD && y - rowHeight() <= tall) {
        from = Math.min(from, index);
        to = index + 1;
      }
    });
    return lanes.length > 0 ? { from: Math.min(from, to), to } : { from: 0, to: Math.ceil(innerHeight / 5) };
  }
  function lacking(width, tall) {
    const seen = visible(tall);
    const end = Math.min(left + span, whole());
    return seen.from < part.lane || Math.min(seen.to, lanes.length) > part.lane + part.count || (span > 0 && (left < part.from || end > part.to)) || (span === 0 && part.scale > (whole() / width) * 1.6) || (span > 0 && part.scale > (span / width) * 1.6);
  }
  async function askPart() {
    const width = Math.max(200, box.clientWidth);
    const rows = visible(height());
    const margin = 40;
    const lane = Math.max(0, rows.from - margin);
    const count = Math.min(400, rows.to + margin - lane);
    const window = span > 0 ? { from: Math.max(0, Math.floor(left - span / 2)), to: Math.ceil(left + span * 1.5) } : { from: 0, to: null };
    const long = span > 0 ? window.to - window.from : whole();
    const columns = Math.min(4096, Math.round((width * long) / seen()));
    const answer = await get(api(run.run, 'timeline'), { ...window, width: columns, lane, lanes: count });
    from = answer.from;
    ends = answer.ends;
    part = { from: window.from, to: window.to ?? Infinity, lane, count, scale: long / columns, attempts: answer.attempts, all_kinds: answer.all_kinds, any_failed: answer.any_failed };
    lanes = answer.lanes.map((place, index) => ({ bars: [], title: index === 0 || answer.lanes[index - 1] !== place ? answer.places[place] : null }));
    bars.clear();
    answer.jobs.forEach((job, index) => {
      const bar = { ...barAt(answer, index), place: answer.places[answer.lanes[answer.lane[index]]] };
      bars.set(keyOf(job, bar.n), bar);
      lanes[answer.lane[index]].bars.push(bar);
    });
    at = at && (bars.get(keyOf(at.job, at.n)) ?? at);
  }
  const more = repeating(async () => {
    await askPart();
    legend();
    draw();
  }, 150);

  const ask = repeating(async () => {
    const began = performance.now();
    const many = part || run.sets.reduce((sum, set) => sum + set.attempts, 0) > MANY;
    await (many ? askPart() : askAll());
    legend();
    draw();
    const count = part?.attempts ?? bars.size;
    say(words, count === 0 ? 'nothing has started yet' : `${plural(count, 'attempt')} in ${number(lanes.length)} slots`);
    canvas.dataset.drawn = `${count} ${Math.round(performance.now() - began)}`;
  });
  const clock = setInterval(() => run.standing === 'running' && !document.hidden && draw(), 1000);
  const end = redrawing(box, draw);
  ask();
  return {
    element,
    update(next) {
      run = next;
      ask();
    },
    leave() {
      clearInterval(clock);
      ask.end();
      more.end();
      end();
      tip(0, 0, '');
    },
  };
}
