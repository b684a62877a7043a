// Numbers, times and states in words.

import { h, link } from './dom.js';

// What a run was started with, and what its tasks reported, in words.
export const parameterWords = (run) => Object.entries(run.provenance?.parameters ?? {}).map(([name, value]) => `${name}=${value}`).join(' ');
export const commitWords = (run) => (run.provenance?.code ? `${run.provenance.code.commit.slice(0, 12)}${run.provenance.code.dirty ? '+' : ''}` : '');
const figure = (value) => String(Number(value.toPrecision(6)));
export const metricWords = (run) => (run.metrics ?? []).map((metric) => `${metric.set} ${metric.name}=${metric.tasks === 1 ? figure(metric.max) : `${figure(metric.min)}…${figure(metric.max)} (${metric.tasks} tasks)`}`).join(', ');
export const environmentWords = (run) => Object.entries(run.provenance?.environments ?? {}).map(([name, digest]) => `${name} ${digest.slice(0, 12)}`).join(', ');

export const STATES = ['done', 'reused', 'running', 'submitted', 'ready', 'looking', 'backoff', 'paused', 'held', 'interrupted', 'failed', 'cancelled', 'skipped', 'waiting', 'unknown'];

const MARKS = {
  waiting: '·', looking: '⌕', ready: '○', submitted: '◔', running: '▶', held: '‖', backoff: '↻', paused: '◌', done: '✓', reused: '≡', failed: '✕', skipped: '–',
  cancelled: '⊘', interrupted: '!', stopped: '!', starting: '…', unknown: '?',
};
const LETTERS = {
  w: 'waiting', l: 'looking', y: 'ready', q: 'submitted', r: 'running', h: 'held', b: 'backoff', p: 'paused', d: 'done', u: 'reused', f: 'failed', s: 'skipped', c: 'cancelled',
  '?': 'unknown',
};
const NAMES = { backoff: 'pausing', starting: 'not started' };

export const mark = (state) => MARKS[state] ?? '?';
export const stateName = (state) => NAMES[state] ?? state;
export const stateOf = (letter) => LETTERS[letter] ?? 'waiting';

// Without a driver nothing runs, whatever the last event said.
export function shown(state, run) {
  return (state === 'running' || state === 'submitted') && run && run.standing !== 'running' ? 'interrupted' : state;
}

export function badge(state, text) {
  return h('span', { class: 'state' }, h('span', { class: `dot s-${state}`, 'aria-hidden': 'true' }, mark(state)), text ?? stateName(state));
}

// Counts by state as the reader should see them: reused apart from done, interrupted instead of running.
export function counted(states, reused, run) {
  const out = {};
  for (const [state, count] of Object.entries(states ?? {})) {
    const name = shown(state, run);
    out[name] = (out[name] ?? 0) + count;
  }
  if (reused) {
    out.done = (out.done ?? 0) - reused;
    out.reused = reused;
  }
  return STATES.filter((state) => out[state] > 0).map((state) => [state, out[state]]);
}

export function stack(counts, tall) {
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const words = counts.map(([state, count]) => `${number(count)} ${stateName(state)}`).join(', ');
  const parts = counts.map(([state, count]) => {
    const part = h('i', { class: `s-${state}`, title: `${number(count)} ${stateName(state)}` });
    part.style.width = `${(100 * count) / total}%`;
    return part;
  });
  return h('div', { class: tall ? 'stack tall' : 'stack', role: 'img', 'aria-label': words || 'no tasks yet' }, parts);
}

export function legend(counts, to) {
  return h('ul', { class: 'counts' }, counts.map(([state, count]) => {
    const words = badge(state, `${number(count)} ${stateName(state)}`);
    return h('li', null, to ? link(to(state), words) : words);
  }));
}

// Tasks that are done, made here or reused.
export const finished = (counts) => counts.filter(([state]) => state === 'done' || state === 'reused').reduce((sum, [, count]) => sum + count, 0);

// Text with `commands` in it.
export const marked = (text) => text.split('`').map((part, place) => (place % 2 === 1 ? h('code', null, part) : part));

export const number = (value) => Math.round(value).toLocaleString('en-US');
export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? '' : 's'}`;

export function bytes(value) {
  if (value === null || value === undefined) return '';
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toPrecision(3).replace(/\.?0+$/, '')} ${units[unit]}`;
}

export function duration(us) {
  if (us === null || us === undefined) return '';
  const seconds = us / 1e6;
  if (seconds < 0.0995) return `${Math.round(us / 1e3)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const rest = Math.round(seconds) % 60;
  if (minutes < 60) return rest && minutes < 20 ? `${minutes} min ${rest} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const pad = (value) => String(value).padStart(2, '0');
export function moment(us) {
  if (!us) return '';
  const date = new Date(us / 1e3);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

// When a run started: the day only where it is not today.
export function started(run) {
  if (run.simulated) return 'simulated';
  if (!run.started) return '';
  const words = moment(run.started);
  return words.slice(0, 10) === moment(Date.now() * 1e3).slice(0, 10) ? words.slice(11) : words.slice(0, 16);
}

export function took(run, now) {
  if (run.started === null || run.started === undefined) return '';
  const until = run.standing === 'running' ? now : run.until;
  return duration(Math.max(0, (until ?? run.started) - run.started));
}

export function ending(line) {
  switch (line.ending) {
    case null: case undefined: return '';
    case 'exit': return line.code === 0 ? 'ended well' : `exit code ${line.code}`;
    case 'signal': return `killed by signal ${line.code}${SIGNALS[line.code] ? ` (${SIGNALS[line.code]})` : ''}`;
    case 'walltime': return 'ran longer than its wall time';
    case 'memory': return 'used more memory than it asked for';
    case 'node_lost': return 'its node went away';
    case 'driver_lost': return 'lost with the driver of the run';
    case 'no_room': return `no room on its place: ${line.detail ?? ''}`;
    case 'incomplete': return `did not make ${list(line.detail)}`;
    case 'refused': return `could not start: ${line.detail ?? ''}`;
    default: return line.ending.replace('_', ' ');
  }
}

const SIGNALS = { 1: 'SIGHUP', 2: 'SIGINT', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 13: 'SIGPIPE', 15: 'SIGTERM' };

function list(json) {
  try {
    return JSON.parse(json).join(', ');
  } catch {
    return json ?? '';
  }
}

export const BLAME = {
  task: 'the task itself: its program, its inputs, or what the workflow says about it',
  resources: 'its resources: it asked for too little, and more tries are not allowed',
  too_much: 'its resources: it asks for more than any node here has',
  site: 'the site: its nodes, its network or its disk',
};

// How far a long journal was read, of which something is wanted.
// Of a run of which nothing can be said yet.
export const readingShare = ({ reading }) => `its journal is being read: ${reading} % …`;

export function readingWords({ reading, events }) {
  const share = events > 0 ? Math.min(100, Math.floor((100 * reading.read) / events)) : 0;
  return `reading the journal: ${share} % of ${plural(events, 'event')} …`;
}

// A round length of time, of which at most so many go into another.
const STEPS = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1.5e7, 3e7, 6e7, 1.2e8, 3e8, 6e8, 9e8, 1.8e9, 3.6e9, 7.2e9, 1.08e10, 2.16e10, 4.32e10, 8.64e10, 1.728e11, 4.32e11, 8.64e11];
export const timeStep = (span, most) => STEPS.find((one) => span / one <= most) ?? STEPS.at(-1);

// A time on an axis with such steps: as fine as they are.
export function tickWords(time, step) {
  if (time === 0) return '0 s';
  if (step >= 6e7 || (time < 6e7 && step >= 1e6)) return duration(time);
  const digits = step >= 1e6 ? 0 : step >= 1e5 ? 1 : step >= 1e4 ? 2 : 3;
  const minutes = Math.floor(time / 6e7);
  const seconds = ((time - minutes * 6e7) / 1e6).toFixed(digits);
  if (minutes === 0) return `${seconds} s`;
  const clock = `${minutes < 60 ? minutes : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}`}`;
  return `${clock}:${seconds.padStart(digits > 0 ? digits + 3 : 2, '0')}`;
}
