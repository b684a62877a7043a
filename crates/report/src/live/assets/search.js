// The searches of a run: what they found, their charts as the server draws them, and the trials, the best first.

import { h, jobPath, link, replace } from './dom.js';
import { api, get, repeating } from './server.js';
import { duration, number, plural, readingWords } from './words.js';

const figure = (value) => (value == null ? '' : String(Number(Number(value).toPrecision(6))));

// The server drew it. Parsed apart from the page, it could run nothing even if its words were not escaped.
function drawn(chart) {
  const parsed = new DOMParser().parseFromString(chart.svg, 'text/html').body;
  const parts = [...parsed.childNodes].map((part) => document.importNode(part, true));
  return h('figure', { class: 'drawing' }, h('h3', null, chart.title), h('div', null, parts), h('figcaption', { class: 'soft small' }, chart.note));
}

function trials(run, one) {
  const head = ['trial', 'state', ...one.objectives, ...one.parameters, 'time', 'GPU hours'];
  const kind = (place) => (place > 1 ? 'n' : null);
  const name = (trial) => (trial.job == null ? trial.name : link(jobPath(run.run, trial.job), trial.name));
  const rows = one.trials.map((trial) => [name(trial), trial.reason ? h('span', { title: trial.reason }, trial.state) : trial.infeasible ? `${trial.state}, breaks a constraint` : trial.state,
    ...one.objectives.map((_, place) => figure(trial.values[place])),
    ...one.parameters.map((parameter) => { const value = trial.parameters[parameter]; return typeof value === 'number' ? figure(value) : String(value ?? ''); }),
    trial.seconds > 0 ? duration(trial.seconds * 1e6) : '', trial.gpu_hours > 0 ? figure(trial.gpu_hours) : '']);
  const chosen = (place) => one.trials[place].trial === one.best || one.front.includes(one.trials[place].trial);
  return [h('h3', null, 'Trials'), h('div', { class: 'wide' }, h('table', { 'aria-label': 'Trials' },
    h('thead', null, h('tr', null, head.map((title, place) => h('th', { class: kind(place), scope: 'col' }, title)))),
    h('tbody', null, rows.map((row, at) => h('tr', { class: chosen(at) ? 'chosen' : null }, row.map((cell, place) => h('td', { class: kind(place) }, cell))))))),
  one.more_trials > 0 && h('p', { class: 'soft' }, `and ${number(one.more_trials)} more; `, h('code', null, `tulpar report ${run.run} --csv DIR`), ' writes all of them.')];
}

export function search(body, first) {
  let run = first;
  let again = null;
  const place = h('section', null, h('p', { class: 'soft' }, 'reading the journal …'));
  replace(body, place);
  const ask = repeating(async () => {
    clearTimeout(again);
    const answer = await get(api(run.run, 'search'));
    if (answer.reading) {
      replace(place, h('p', { class: 'soft', role: 'status' }, readingWords(answer)));
      again = setTimeout(ask, 1000);
      return;
    }
    replace(place, answer.searches.length === 0 && h('p', { class: 'soft' }, 'This run searches nothing.'),
      answer.searches.map((one) => [h('h2', null, one.task, h('span', { class: 'soft small' }, `  ${plural(one.trials.length + one.more_trials, 'trial')}`)), one.said.map((words) => h('p', null, words)), one.charts.map(drawn), trials(run, one)]));
  }, 2000, (error) => replace(place, h('p', { class: 'note' }, error.message)));
  ask();
  return { update(next) { const news = next.events !== run.events; run = next; if (news) ask(); }, leave() { clearTimeout(again); ask.end(); } };
}
