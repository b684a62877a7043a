// All runs of the folder, the latest first.

import { h, link, replace, runPath, say } from './dom.js';
import { get, now, repeating } from './server.js';
import { badge, commitWords, counted, finished, metricWords, number, parameterWords, plural, readingShare, stack, started, stateName, took } from './words.js';
import { table } from './table.js';

const MOST = 4;
// Of the workflows inside a run, so many are listed; all of them are on its own page.
const MOST_INSIDE = 5;

const depth = (run) => run.run.split('/sub/').length - 1;
const nested = (run) => (run.parent ? h('span', { style: { 'padding-left': `${depth(run) * 18}px` } }, h('span', { class: 'soft', 'aria-hidden': 'true' }, '└ '), link(runPath(run.run), run.run.split('/sub/').at(-1))) : link(runPath(run.run), run.run));

// The latest first, and below each the workflows inside it.
function inTurn(runs, few) {
  const here = new Set(runs.map((run) => run.run));
  const inside = new Map();
  for (const run of [...runs].sort((one, other) => one.created - other.created)) {
    const place = here.has(run.parent) ? run.parent : null;
    inside.set(place, [...(inside.get(place) ?? []), run]);
  }
  const under = (run) => [run, ...(inside.get(run.run) ?? []).slice(0, few ? MOST_INSIDE : undefined).flatMap(under)];
  return (inside.get(null) ?? []).reverse().flatMap(under);
}

export function insideTable(runs) {
  return h('div', { class: 'wide' }, h('table', { 'aria-label': 'Workflows inside' }, h('thead', null, h('tr', null, ['run', 'state', 'progress', 'took', 'tasks'].map((title, place) => h('th', { class: place > 2 ? 'n' : null, scope: 'col' }, title)))),
    h('tbody', null, runs.map((run) => h('tr', null, h('td', null, link(runPath(run.run), run.run.split('/sub/').at(-1))), h('td', { class: 'no' }, badge(run.standing)), h('td', null, stack(counted(run.states, run.reused, run))), h('td', { class: 'n' }, took(run, now())), h('td', { class: 'n' }, number(run.tasks)))))));
}

export function runs(main) {
  let all = new Map();
  let folder = '';
  let again = null;
  const chosen = new Set();
  const filter = h('input', { type: 'search', placeholder: 'filter by name, state or parameter', 'aria-label': 'Filter', oninput: draw });
  const together = h('button', { type: 'button', disabled: true, onclick: () => {
    const query = [...chosen].map((run) => `run=${encodeURIComponent(run)}`).join('&');
    document.dispatchEvent(new CustomEvent('tulpar-go', { detail: `/compare?${query}` }));
  } }, 'Compare');
  const where = h('p', { class: 'soft small' });

  const failures = (run) => (run.states.failed ?? 0) + (run.states.held ?? 0);
  const rows = table({
    label: 'Runs',
    empty: 'There is no run here yet; `tulpar run` starts one.',
    open: (run) => runPath(run.run),
    columns: [
      { title: '', late: true, cell: (run) => h('input', { type: 'checkbox', 'aria-label': `compare ${run.run}`, checked: chosen.has(run.run), onchange: (event) => choose(run.run, event.target) }) },
      { title: 'run', cell: (run) => nested(run) },
      { title: 'state', nowrap: true, cell: (run) => badge(run.standing) },
      { title: 'progress', cell: progress },
      { title: 'failed', number: true, cell: (run) => (failures(run) > 0 ? link(runPath(run.run), badge(run.states.failed ? 'failed' : 'held', number(failures(run)))) : '') },
      { title: 'workflow', late: true, cell: (run) => run.workflow },
      { title: 'parameters', late: true, cell: parameterWords },
      { title: 'metrics', late: true, cell: metricWords },
      { title: 'commit', late: true, nowrap: true, cell: commitWords },
      { title: 'started', late: true, nowrap: true, cell: started },
      { title: 'took', number: true, late: true, cell: (run) => h('span', { 'data-took': run.run }, took(run, now())) },
      { title: 'tasks', number: true, late: true, cell: (run) => number(run.tasks) },
    ],
  });

  function progress(run) {
    if (run.reading != null) return h('span', { class: 'soft small' }, readingShare(run));
    const counts = counted(run.states, run.reused, run);
    const done = finished(counts);
    const share = run.tasks > 0 ? Math.floor((100 * done) / run.tasks) : 0;
    return [stack(counts), h('span', { class: 'soft small' }, `${share} %`, h('span', { class: 'early' }, ' · ', h('span', { 'data-took': run.run }, took(run, now()))))];
  }

  function choose(run, box) {
    if (box.checked && chosen.size >= MOST) {
      box.checked = false;
      return;
    }
    if (box.checked) chosen.add(run);
    else chosen.delete(run);
    together.disabled = chosen.size < 2;
    say(together, chosen.size >= 2 ? `Compare ${chosen.size} runs` : 'Compare');
  }

  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (run) => words.every((word) => `${run.run} ${parameterWords(run)} ${stateName(run.standing)} ${run.simulated ? 'simulated' : ''}`.toLowerCase().includes(word));
    const shown = inTurn([...all.values()].filter(fits), words.length === 0);
    rows.show(shown.map((run) => ({ ...run, key: run.run })));
    const live = [...all.values()].filter((run) => run.standing === 'running').length;
    replace(where, `${plural([...all.values()].filter((run) => !run.parent).length, 'run')} of `, h('code', null, folder), live > 0 ? `, ${live} running` : '');
  }

  const ask = repeating(async () => {
    const answer = await get('/api/runs');
    folder = answer.folder;
    all = new Map(answer.runs.map((run) => [run.run, run]));
    draw();
    const read = answer.runs.some((run) => run.reading != null);
    if (read) again = setTimeout(ask, 1000);
  }, 0);

  // A clock for what runs, without asking.
  const clock = setInterval(() => {
    for (const element of main.querySelectorAll('[data-took]')) {
      const run = all.get(element.dataset.took);
      if (run?.standing === 'running') say(element, took(run, now()));
    }
  }, 1000);

  replace(main, h('h1', null, 'Runs'), where, h('div', { class: 'bar-of-tools' }, filter, together), rows.element);
  ask();
  return {
    news(news) {
      if (news.again) {
        ask();
        return;
      }
      for (const run of news.runs) all.set(run.run, run);
      for (const run of news.gone ?? []) all.delete(run);
      draw();
    },
    leave() {
      clearInterval(clock);
      clearTimeout(again);
      ask.end();
      rows.leave();
    },
  };
}
