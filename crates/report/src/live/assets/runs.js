// All runs of the folder, the latest first.

import { h, link, replace, runPath, say } from './dom.js';
import { get, now, repeating } from './server.js';
import { badge, counted, finished, number, plural, stack, started, stateName, took } from './words.js';
import { table } from './table.js';

const MOST = 4;

export function runs(main) {
  let all = new Map();
  let folder = '';
  const chosen = new Set();
  const filter = h('input', { type: 'search', placeholder: 'filter by name or state', 'aria-label': 'Filter', oninput: draw });
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
      { title: 'run', cell: (run) => link(runPath(run.run), run.run) },
      { title: 'state', nowrap: true, cell: (run) => badge(run.standing) },
      { title: 'progress', cell: progress },
      { title: 'failed', number: true, cell: (run) => (failures(run) > 0 ? link(runPath(run.run), badge(run.states.failed ? 'failed' : 'held', number(failures(run)))) : '') },
      { title: 'workflow', late: true, cell: (run) => run.workflow },
      { title: 'started', late: true, nowrap: true, cell: started },
      { title: 'took', number: true, late: true, cell: (run) => h('span', { 'data-took': run.run }, took(run, now())) },
      { title: 'tasks', number: true, late: true, cell: (run) => number(run.tasks) },
    ],
  });

  function progress(run) {
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
    const fits = (run) => words.every((word) => `${run.run} ${stateName(run.standing)} ${run.simulated ? 'simulated' : ''}`.toLowerCase().includes(word));
    const shown = [...all.values()].filter(fits).sort((one, other) => other.created - one.created);
    rows.show(shown.map((run) => ({ ...run, key: run.run })));
    const live = [...all.values()].filter((run) => run.standing === 'running').length;
    replace(where, `${plural(all.size, 'run')} of `, h('code', null, folder), live > 0 ? `, ${live} running` : '');
  }

  const ask = repeating(async () => {
    const answer = await get('/api/runs');
    folder = answer.folder;
    all = new Map(answer.runs.map((run) => [run.run, run]));
    draw();
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
      ask.end();
      rows.leave();
    },
  };
}
