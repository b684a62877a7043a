// Two to four runs side by side: what differs in parameters, inputs and metrics; times by task set, and totals.

import { h, link, replace, runPath } from './dom.js';
import { get, repeating } from './server.js';
import { badge, bytes, duration, number } from './words.js';

export function compare(main) {
  const names = new URLSearchParams(location.search).getAll('run');
  const place = h('div');
  replace(main, h('h1', null, 'Compare'), place);
  if (names.length < 2) {
    replace(place, h('p', null, 'Choose two to four runs in the ', link('/', 'list of runs'), '.'));
    return {};
  }
  const ask = repeating(async () => {
    const { runs, differences } = await get('/api/compare', { run: names });
    const base = runs[0];
    // How a figure stands to that of the first run.
    const ratio = (value, first) => (first > 0 && value > 0 ? `${value / first < 100 ? (value / first).toFixed(2) : number(value / first)}×` : '');
    const cell = (words, beside) => h('td', { class: 'n' }, words, beside && h('span', { class: 'soft small' }, `  ${beside}`));
    const row = (title, figure, words) => h('tr', null, h('th', { scope: 'row' }, title), runs.map((run, index) => {
      const value = figure(run);
      return cell(value === null || value === undefined ? '' : words(value), index > 0 ? ratio(value, figure(base)) : '');
    }));
    const head = () => h('thead', null, h('tr', null, h('th', null, ''), runs.map((run) => h('th', { class: 'n', scope: 'col' }, link(runPath(run.run), run.run), run.simulated && h('span', { class: 'soft small' }, ' simulated')))));
    const sets = [...new Set(runs.flatMap((run) => run.sets.map((set) => set.name)))];
    const of = (run, name) => run.sets.find((set) => set.name === name);
    const differs = differences.length > 0
      ? h('div', { class: 'wide' }, h('table', null, head(), h('tbody', null, differences.map((row) => h('tr', null, h('th', { scope: 'row' }, h('span', { class: 'soft small' }, `${row.kind} `), row.name), row.values.map((value) => h('td', { class: 'n' }, value ?? '–')))))))
      : h('p', { class: 'soft' }, 'Parameters, commit, environments, inputs and metrics are the same.');
    replace(place,
      h('h2', null, 'What differs'),
      differs,
      h('h2', null, 'Totals'),
      h('div', { class: 'wide' }, h('table', null, head(), h('tbody', null,
        h('tr', null, h('th', { scope: 'row' }, 'state'), runs.map((run) => h('td', { class: 'n' }, badge(run.standing)))),
        row('took', (run) => run.took_us, duration), row('tasks', (run) => run.tasks, number), row('reused', (run) => run.reused, number), row('failed', (run) => run.failed, number),
        row('attempts', (run) => run.attempts, number), row('wall time of all', (run) => run.wall_us, duration), row('CPU time of all', (run) => run.cpu_us, duration), row('largest memory', (run) => run.peak_rss, bytes), row('read', (run) => run.read_bytes, bytes), row('written', (run) => run.write_bytes, bytes)))),
      h('h2', null, 'Mean time of a task, by task set'),
      h('div', { class: 'wide' }, h('table', null, head(), h('tbody', null, sets.map((name) => row(name, (run) => {
        const set = of(run, name);
        return set?.timed ? set.wall_us / set.timed : null;
      }, duration))))),
      h('p', { class: 'soft small' }, `Times ${base.run} = 1×.`));
  }, 1000, (error) => replace(place, h('p', { class: 'note' }, error.message)));
  ask();
  return { news: (news) => (news.again || news.runs.some((run) => names.includes(run.run))) && ask(), leave: ask.end };
}
