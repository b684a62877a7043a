// The tasks of one set as a grid of cells: only what is on the screen is drawn, so that 100,000 are as quick as 100.

import { colour, h, jobPath, redrawing, replace, say, sharpen, tip } from './dom.js';
import { api, get, repeating } from './server.js';
import { legend, mark, shown, STATES, stateName, stateOf } from './words.js';

// The state of every job of a run, and of which set it is; kept up to date by asking for what changed.
export function states(run) {
  let seq = null;
  let letters = [];
  let kinds = new Int32Array(0);
  const self = {
    async update() {
      const answer = await get(api(run, 'cells'), { after: seq, known: letters.length });
      seq = answer.seq;
      const jobs = answer.jobs;
      const highest = jobs ? jobs.reduce((most, job) => Math.max(most, job), -1) + 1 : answer.states.length;
      if (highest > kinds.length) {
        const larger = new Int32Array(highest).fill(-1);
        larger.set(kinds);
        kinds = larger;
      }
      let index = 0;
      for (const [kind, count] of answer.kinds) {
        for (let times = 0; times < count; times += 1, index += 1) {
          const job = jobs ? jobs[index] : index;
          letters[job] = answer.states[index];
          kinds[job] = kind;
        }
      }
    },
    of(kind) {
      const found = [];
      for (let job = 0; job < kinds.length; job += 1) if (kinds[job] === kind) found.push(job);
      return found;
    },
    letter: (job) => letters[job],
  };
  return self;
}

export function cells(first, kind) {
  let run = first;
  let jobs = [];
  let at = -1;
  const data = states(run.run);
  const canvas = h('canvas', { tabindex: '0', role: 'application', 'aria-label': 'Tasks of the set; arrows move, Enter opens' });
  const spacer = h('div');
  const box = h('div', { class: 'drawing cells' }, canvas, spacer);
  const words = h('p', { class: 'small soft', role: 'status' }, ' ');
  const key = h('div');
  const element = h('div', null, key, box, words);
  box.style.maxHeight = '56vh';
  canvas.style.position = 'sticky';
  canvas.style.top = '0';

  const size = () => (jobs.length > 20000 ? 7 : jobs.length > 2000 ? 11 : 18);
  const columns = () => Math.max(1, Math.floor((box.clientWidth - 12) / size()));

  function draw() {
    const step = size();
    const wide = box.clientWidth;
    const rows = Math.ceil(jobs.length / columns());
    const whole = rows * step + 12;
    const tall = Math.min(whole, Math.max(60, innerHeight * 0.55));
    const pen = sharpen(canvas, wide, tall);
    spacer.style.height = `${Math.max(0, whole - tall)}px`;
    const colours = Object.fromEntries(STATES.map((state) => [state, colour(state)]));
    const paper = colour('paper');
    pen.clearRect(0, 0, wide, tall);
    const top = box.scrollTop;
    const from = Math.max(0, Math.floor((top - 6) / step)) * columns();
    const to = Math.min(jobs.length, (Math.ceil((top + tall) / step) + 1) * columns());
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.font = `${Math.round(step * 0.62)}px system-ui`;
    for (let index = from; index < to; index += 1) {
      const x = 6 + (index % columns()) * step;
      const y = 6 + Math.floor(index / columns()) * step - top;
      const state = shown(stateOf(data.letter(jobs[index])), run);
      pen.fillStyle = colours[state];
      pen.fillRect(x, y, step - 1.5, step - 1.5);
      // A mark says it too; where cells are small, only for what went wrong.
      if (step >= 18 || (step >= 11 && state !== 'done' && state !== 'waiting')) {
        pen.fillStyle = state === 'waiting' || state === 'looking' || state === 'unknown' || state === 'ready' || state === 'submitted' || state === 'reused' || state === 'interrupted' ? '#10202c' : paper;
        pen.fillText(mark(state), x + step / 2 - 0.7, y + step / 2);
      } else if (state === 'failed' || state === 'held') {
        pen.strokeStyle = paper;
        pen.beginPath();
        pen.moveTo(x + 1, y + 1);
        pen.lineTo(x + step - 2.5, y + step - 2.5);
        pen.stroke();
      }
      if (index === at) {
        pen.strokeStyle = colour('focus');
        pen.lineWidth = 2.5;
        pen.strokeRect(x - 1, y - 1, step + 0.5, step + 0.5);
        pen.lineWidth = 1;
      }
    }
  }

  const place = (event) => {
    const rect = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - rect.left - 6) / size());
    const index = Math.floor((event.clientY - rect.top - 6 + box.scrollTop) / size()) * columns() + column;
    return column >= 0 && column < columns() && index >= 0 && index < jobs.length ? index : -1;
  };
  const names = new Map();
  const about = (index) => {
    const job = jobs[index];
    return `${names.get(job) ?? `job ${job}`}: ${stateName(shown(stateOf(data.letter(job)), run))}`;
  };
  let asking = null;
  function name(job, then) {
    if (names.has(job)) return;
    clearTimeout(asking);
    asking = setTimeout(async () => {
      const { line } = await get(api(run.run, 'jobs', job));
      names.set(job, line.name);
      then();
    }, 60);
  }

  canvas.addEventListener('mousemove', (event) => {
    const index = place(event);
    canvas.style.cursor = index >= 0 ? 'pointer' : '';
    if (index < 0) {
      tip(0, 0, '');
      return;
    }
    const show = () => tip(event.clientX, event.clientY, about(index));
    show();
    name(jobs[index], show);
  });
  canvas.addEventListener('mouseleave', () => tip(0, 0, ''));
  canvas.addEventListener('click', (event) => open(place(event)));
  canvas.addEventListener('keydown', (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns(), ArrowDown: columns() }[event.key];
    if (move) {
      at = Math.max(0, Math.min(jobs.length - 1, at + (at < 0 ? 1 : move)));
      const y = Math.floor(at / columns()) * size();
      if (y < box.scrollTop) box.scrollTop = y;
      if (y + size() * 2 > box.scrollTop + canvas.clientHeight) box.scrollTop = y + size() * 2 - canvas.clientHeight;
      draw();
      say(words, about(at));
      name(jobs[at], () => say(words, about(at)));
    } else if (event.key === 'Enter' && at >= 0) open(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  function open(index) {
    if (index >= 0) document.dispatchEvent(new CustomEvent('tulpar-go', { detail: jobPath(run.run, jobs[index]) }));
  }

  function show() {
    const counts = {};
    for (const job of jobs) {
      const state = shown(stateOf(data.letter(job)), run);
      counts[state] = (counts[state] ?? 0) + 1;
    }
    replace(key, legend(STATES.filter((state) => counts[state]).map((state) => [state, counts[state]])));
    draw();
  }

  const ask = repeating(async () => {
    await data.update();
    jobs = data.of(kind);
    show();
  });
  box.addEventListener('scroll', () => requestAnimationFrame(draw));
  const end = redrawing(box, draw);
  ask();
  return {
    element,
    update(next) {
      run = next;
      ask();
    },
    leave() {
      ask.end();
      end();
    },
  };
}
