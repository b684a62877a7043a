// The server: questions as JSON, and news as they happen. It tries again by itself.

import { say } from './dom.js';

let offset = 0;
// The time at the server, in microseconds.
export const now = () => Date.now() * 1000 + offset;

export async function get(path, query, signal) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === null || value === undefined || value === '' || value === false) continue;
    for (const one of [value].flat()) words.append(name, one === true ? '' : one);
  }
  const url = words.size > 0 ? `${path}?${words}` : path;
  let answer;
  try {
    answer = await fetch(url, { signal, headers: { Accept: 'application/json' } });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    status(false);
    throw new Error('the server does not answer');
  }
  const type = answer.headers.get('content-type') ?? '';
  if (!type.startsWith('application/json')) throw new Error((await answer.text()).trim() || `the server answered ${answer.status}`);
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error);
  if (json.now) offset = json.now - Date.now() * 1000;
  return json;
}

export const api = (run, ...more) => ['/api/runs', ...[run, ...more].map(encodeURIComponent)].join('/');

const readers = new Set();
let source = null;

// Calls with {runs, gone}, or with {again: true} when something may have been missed.
export function listen(reader) {
  readers.add(reader);
  return () => readers.delete(reader);
}

function tell(news) {
  for (const reader of [...readers]) reader(news);
}

let lost = null;
function status(well) {
  const element = document.getElementById('link');
  if (well) lost = null;
  else lost ??= new Date();
  element.className = well ? '' : 'bad';
  say(element, well ? 'live' : `no connection since ${lost.toTimeString().slice(0, 8)}; trying again`);
}

function connect() {
  source?.close();
  source = new EventSource('/api/events');
  source.addEventListener('hello', () => {
    status(true);
    // What is shown may be older than this stream: asked for before it began, or before a pause or a restart of the server.
    tell({ again: true });
  });
  source.onmessage = (message) => tell(JSON.parse(message.data));
  const mine = source;
  source.onerror = () => {
    if (mine !== source) return;
    status(false);
    mine.close();
    setTimeout(() => mine === source && !document.hidden && connect(), 1000);
  };
}

// A browser has few connections to one server: pages that nobody sees give theirs back.
export function begin() {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) connect();
  });
  connect();
}

// Runs a question again and again, but never twice at once and not more often than the pace.
export function repeating(question, pace = 1000, failed = null) {
  let busy = false;
  let wanted = false;
  let ended = false;
  let last = 0;
  async function go() {
    if (ended) return;
    if (busy) {
      wanted = true;
      return;
    }
    busy = true;
    const wait = last + pace - Date.now();
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    wanted = false;
    const began = Date.now();
    try {
      if (!ended) await question();
    } catch (error) {
      // A mistake of this page is no trouble of the server's.
      if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) console.error(error);
      if (error.name !== 'AbortError') failed?.(error);
    }
    // A question that takes long is asked less often.
    last = Date.now() + Math.min(5000, Date.now() - began);
    busy = false;
    if (wanted) go();
  }
  go.end = () => { ended = true; };
  return go;
}
