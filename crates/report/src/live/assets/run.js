// One run: how it stands, what failed, and its parts under tabs with addresses of their own.

import { h, jobPath, link, replace, runPath, say } from './dom.js';
import { api, get, now, repeating } from './server.js';
import { BLAME, badge, bytes, commitWords, counted, duration, ending, environmentWords, finished, legend, metricWords, moment, number, parameterWords, plural, readingShare, readingWords, shown, stack, stateName, STATES, took } from './words.js';
import { insideTable } from './runs.js';
import { table } from './table.js';
import { graph } from './graph.js';
import { cells } from './cells.js';
import { gantt } from './gantt.js';
import { usage } from './chart.js';
import { search } from './search.js';

const TABS = [['', 'Overview'], ['timeline', 'Timeline'], ['usage', 'Usage'], ['jobs', 'Jobs'], ['search', 'Search'], ['data', 'Data'], ['site', 'Site'], ['advice', 'Advice']];
const PARTS = { '': overview, timeline, usage: usagePart, jobs, search, data, site, advice };

export function run(main, name, tab) {
  let seen = null;
  let part = null;
  let partTab = null;
  let left = null;
  const head = h('div');
  const tabs = h('nav', { class: 'tabs', 'aria-label': 'Parts of the run' });
  const body = h('div');
  replace(main, head, tabs, body);

  const ask = repeating(async () => {
    seen = await get(api(name));
    draw();
    if (seen.standing === 'running') foresee();
  }, 1000, (error) => seen ?? replace(body, h('p', { class: 'note' }, error.message)));
  ask();

  function draw() {
    headline(head, seen, left);
    if (seen.reading != null) {
      part?.leave?.();
      part = null;
      replace(tabs);
      replace(body, h('p', { class: 'soft', role: 'status' }, readingShare(seen)));
      ask();
      return;
    }
    replace(tabs, TABS.filter(([path]) => path !== 'search' || seen.searches > 0).map(([path, title]) => h('a', { href: path ? runPath(name, path) : runPath(name), 'aria-current': path === tab ? 'page' : null }, title)));
    if (partTab !== tab || !part) {
      part?.leave?.();
      body.replaceChildren();
      part = (PARTS[tab] ?? overview)(body, seen);
      partTab = tab;
    } else part.update?.(seen);
  }

  // How long it will still take is worked out by playing it through: not at every change.
  const foresee = repeating(async () => {
    left = seen?.standing === 'running' ? (await get(api(name, 'left'))).left_us : null;
  }, 10000);
  const clock = setInterval(() => {
    const element = head.querySelector('[data-took]');
    if (element && seen?.standing === 'running') say(element, took(seen, now()));
  }, 1000);

  return {
    move(_, next) {
      tab = next;
      if (seen) draw();
    },
    news(news) {
      if (news.again || news.runs.some((run) => run.run === name || run.parent === name)) ask();
      if (news.gone?.includes(name)) replace(body, h('p', { class: 'note' }, 'This run was removed.'));
    },
    leave() {
      clearInterval(clock);
      ask.end();
      foresee.end();
      part?.leave?.();
    },
  };
}

function headline(head, run, left) {
  const counts = counted(run.states, run.reused, run);
  const done = finished(counts);
  const share = run.tasks > 0 ? Math.floor((100 * done) / run.tasks) : 0;
  const fact = (title, words, attributes) => words ? h('div', null, h('dt', null, title), h('dd', attributes, words)) : null;
  replace(head,
    h('h1', null, run.run, badge(run.standing), run.simulated && h('span', { class: 'state soft' }, 'simulated: nothing of it really ran')),
    stack(counts, true),
    legend(counts, (state) => `${runPath(run.run, 'jobs')}?state=${state}`),
    h('dl', { class: 'facts' },
      fact('done', `${share} %, ${number(done)} of ${plural(run.tasks, 'task')}`),
      fact(run.standing === 'running' ? 'runs for' : 'took', took(run, now()), { 'data-took': run.run }),
      run.standing === 'running' && left != null && fact('left', `about ${duration(left)}`),
      fact('started', run.simulated ? '' : moment(run.started)),
      fact('inside', run.parent && link(runPath(run.parent), run.parent)),
      fact('workflow', run.workflow_name, { title: run.workflow_file }),
      fact('parameters', parameterWords(run)),
      fact('commit', commitWords(run), { title: run.provenance.code && `${run.provenance.code.commit}${run.provenance.code.dirty ? ', with changes' : ''}` }),
      fact('environments', environmentWords(run)),
      fact('metrics', metricWords(run)),
      fact('site', run.site.name),
      fact('mode', run.mode),
      fact('resumed', run.resumed > 0 && plural(run.resumed, 'time')),
    ),
    run.standing === 'stopped' && h('p', { class: 'note' }, 'Its driver is gone (killed, or the machine went down). Go on with ', h('code', null, `tulpar resume ${run.run}`), '.'),
    run.bad_lines > 0 && h('p', { class: 'note' }, `${plural(run.bad_lines, 'line')} of its journal could not be read; this is how things stood before.`),
  );
}

export function failure(run, line) {
  const why = line.state === 'held' ? `held by the site: ${line.held ?? ''}` : ending(line);
  return h('article', { class: 'failure' },
    h('h3', null, badge(line.state, ''), link(jobPath(run.run, line.job), line.name ?? `job ${line.job}`), h('span', { class: 'soft small' }, [line.node && `on ${line.node}`, line.attempts > 1 && `${line.attempts} attempts`].filter(Boolean).join(', '))),
    h('p', null, h('strong', null, why), line.blame && '.', line.blame && [' To blame is ', BLAME[line.blame] ?? line.blame, '.']),
    line.stderr_tail && h('pre', { 'aria-label': 'the last lines of stderr' }, line.stderr_tail.trimEnd()),
  );
}

function overview(body, first) {
  let run = first;
  const failures = h('section', { id: 'failures' });
  const picture = h('section');
  const open = h('section', { class: 'hidden' });
  const sets = h('section');
  const inner = h('section');
  const busy = running();
  replace(body, failures, picture, open, sets, inner, busy.element);
  const drawing = graph((set) => choose(set));
  replace(picture, h('h2', null, 'Task sets'), drawing.element);
  const rows = table({
    label: 'Task sets',
    columns: [
      { title: 'task set', cell: (set) => link(`${runPath(run.run, 'jobs')}?set=${encodeURIComponent(set.name)}`, set.name) },
      { title: 'tasks', number: true, cell: (set) => number(total(set)) },
      { title: 'progress', cell: (set) => stack(counted(set.states, set.reused, run)) },
      { title: 'mean time', number: true, cell: (set) => (set.attempts ? duration(set.wall_us / set.attempts) : '') },
      { title: 'longest', number: true, late: true, cell: (set) => (set.attempts ? duration(set.longest_us) : '') },
      { title: 'CPU', number: true, late: true, cell: (set) => (set.wall_us ? `${Math.round((100 * set.cpu_us) / set.wall_us)} %` : '') },
      { title: 'peak memory', number: true, late: true, cell: (set) => (set.peak_rss ? bytes(set.peak_rss) : '') },
      { title: 'read', number: true, late: true, cell: (set) => (set.read_bytes ? bytes(set.read_bytes) : '') },
      { title: 'written', number: true, late: true, cell: (set) => (set.write_bytes ? bytes(set.write_bytes) : '') },
    ],
  });
  replace(sets, rows.element);
  let grid = null;
  let chosen = null;

  function choose(place) {
    chosen = chosen === place ? null : place;
    grid?.leave();
    grid = null;
    open.classList.toggle('hidden', chosen === null);
    drawing.mark(chosen);
    if (chosen === null) return;
    const set = run.sets[chosen];
    grid = cells(run, chosen);
    replace(open, h('h2', null, set.name, h('span', { class: 'soft small' }, `  ${plural(total(set), 'task')}; choose one`)), grid.element);
    open.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
  }

  function update(next) {
    run = next;
    replace(failures, run.all_failures > 0 && [
      h('h2', null, run.all_failures === 1 ? 'What went wrong' : `What went wrong (${number(run.all_failures)})`),
      run.failures.map((line) => failure(run, line)),
      run.all_failures > run.failures.length && h('p', null, link(`${runPath(run.run, 'jobs')}?state=failed`, `all ${number(run.all_failures)}`)),
    ]);
    drawing.update(run);
    rows.show(run.sets.filter((set) => !set.unwanted).map((set) => ({ ...set, key: set.name })));
    replace(inner, run.inner.length > 0 && [h('h2', null, 'Workflows inside'), insideTable(run.inner)]);
    grid?.update(run);
    busy.update(run);
  }
  update(first);
  return { update, leave() { grid?.leave(); rows.leave(); drawing.leave(); busy.leave(); } };
}

// What runs now, with what it used when it was last looked at.
function running() {
  let run = null;
  const element = h('section');
  const rows = table({
    label: 'Running now',
    open: (line) => jobPath(run.run, line.job),
    columns: [
      { title: 'job', cell: (line) => link(jobPath(run.run, line.job), line.name ?? `job ${line.job}`) },
      { title: 'for', number: true, cell: (line) => (line.started ? duration(now() - line.started) : '') },
      { title: 'CPU', number: true, cell: (line) => (line.cpus == null ? '' : `${Math.round(line.cpus * 100)} %`) },
      { title: 'memory', number: true, cell: (line) => (line.sample ? bytes(line.sample.rss) : '') },
      { title: 'GPU', number: true, late: true, cell: (line) => (line.sample?.gpu_percent == null ? '' : `${line.sample.gpu_percent} %`) },
      { title: 'reads', number: true, late: true, cell: (line) => (line.read_rate == null ? '' : `${bytes(line.read_rate)}/s`) },
      { title: 'writes', number: true, late: true, cell: (line) => (line.write_rate == null ? '' : `${bytes(line.write_rate)}/s`) },
      { title: 'processes', number: true, late: true, cell: (line) => line.sample?.processes ?? '' },
    ],
  });
  const ask = repeating(async () => {
    if (run.standing !== 'running' || !run.states.running) {
      element.replaceChildren();
      return;
    }
    const answer = await get(api(run.run, 'running'));
    if (!rows.element.isConnected) replace(element, h('h2', null, 'Running now'), rows.element);
    rows.show(answer.running.map((line) => ({ ...line, key: String(line.job) })));
  }, 1500);
  const clock = setInterval(() => run?.standing === 'running' && !document.hidden && ask(), 2000);
  return { element, update(next) { run = next; ask(); }, leave() { clearInterval(clock); ask.end(); rows.leave(); } };
}

const total = (set) => Object.values(set.states).reduce((sum, count) => sum + count, 0);

function timeline(body, run) {
  const drawing = gantt(run);
  replace(body, drawing.element);
  return drawing;
}

function usagePart(body, run) {
  const drawing = usage(run);
  replace(body, drawing.element);
  return drawing;
}

const LIMIT = 100;

function jobs(body, first) {
  let run = first;
  let total = 0;
  const query = () => new URLSearchParams(location.search);
  const text = h('input', { type: 'search', placeholder: 'part of a name', 'aria-label': 'Filter by name', value: query().get('text'), oninput: () => set({ text: text.value, from: null }) });
  const state = h('select', { 'aria-label': 'State', onchange: () => set({ state: state.value, from: null }) }, h('option', { value: '' }, 'every state'), STATES.map((one) => h('option', { value: one }, stateName(one))));
  const kind = h('select', { 'aria-label': 'Task set', onchange: () => set({ set: kind.value, from: null }) }, h('option', { value: '' }, 'every task set'), run.sets.map((one) => h('option', { value: one.name }, one.name)));
  const back = h('button', { type: 'button', onclick: () => set({ from: Math.max(0, from() - LIMIT) || null }) }, '← earlier');
  const on = h('button', { type: 'button', onclick: () => set({ from: from() + LIMIT }) }, 'more →');
  const where = h('span', { class: 'soft small', role: 'status' });
  const rows = table({
    label: 'Jobs',
    empty: 'No job is like that.',
    open: (line) => jobPath(run.run, line.job),
    onsort: (sort) => set({ sort: sort.by, down: sort.down ? '1' : null, from: null }),
    columns: [
      { title: 'job', sort: 'name', cell: (line) => link(jobPath(run.run, line.job), line.name ?? `job ${line.job}`) },
      { title: 'state', sort: 'state', nowrap: true, cell: (line) => badge(line.reused_from ? 'reused' : shown(line.state, run)) },
      { title: 'tries', sort: 'attempts', number: true, late: true, cell: (line) => line.attempts || '' },
      { title: 'time', sort: 'wall', number: true, cell: (line) => (line.state === 'running' && line.started && run.standing === 'running' ? duration(now() - line.started) : duration(line.wall_us)) },
      { title: 'CPU', sort: 'cpu', number: true, late: true, cell: (line) => (line.wall_us ? `${Math.round((100 * line.cpu_us) / line.wall_us)} %` : '') },
      { title: 'memory', sort: 'memory', number: true, late: true, cell: (line) => (line.peak_rss ? bytes(line.peak_rss) : '') },
      { title: 'read', number: true, late: true, cell: (line) => bytes(line.read_bytes) },
      { title: 'written', number: true, late: true, cell: (line) => bytes(line.write_bytes) },
      { title: 'node', late: true, cell: (line) => line.node ?? '' },
      { title: 'ending', late: true, cell: ending },
    ],
  });
  const from = () => Number(query().get('from') ?? 0);

  // What is asked for is in the address, so that it can be sent to somebody.
  function set(changes) {
    const words = query();
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === '' || value === undefined) words.delete(name);
      else words.set(name, value);
    }
    const path = words.size > 0 ? `${location.pathname}?${words}` : location.pathname;
    if ('from' in changes && changes.from) history.pushState(null, '', path);
    else history.replaceState(null, '', path);
    ask.now();
  }

  const sent = { interrupted: ['running', 'submitted'], reused: ['done'] };
  const ask = repeating(async () => {
    const words = query();
    if (document.activeElement !== text) text.value = words.get('text') ?? '';
    state.value = words.get('state') ?? '';
    kind.value = words.get('set') ?? '';
    const wanted = words.get('state');
    const answer = await get(api(run.run, 'jobs'), { state: wanted ? sent[wanted] ?? wanted : null, set: words.get('set'), text: words.get('text'), sort: words.get('sort'), down: Boolean(words.get('down')), offset: from(), limit: LIMIT });
    total = answer.total;
    rows.show(answer.jobs.map((line) => ({ ...line, key: String(line.job) })), { by: words.get('sort'), down: Boolean(words.get('down')) });
    const last = answer.offset + answer.jobs.length;
    say(where, total === 0 ? '' : `${number(answer.offset + 1)}–${number(last)} of ${number(total)}`);
    back.disabled = answer.offset === 0;
    on.disabled = last >= total;
  });
  ask.now = ask;
  replace(body, h('div', { class: 'bar-of-tools' }, text, state, kind, h('span', { class: 'grow' }), where, back, on), rows.element);
  ask();
  return { update(next) { run = next; ask(); }, leave() { ask.end(); rows.leave(); } };
}

// A table of plain cells; the first column is text, the others are figures.
function plain(titles, rows) {
  const kind = (place) => (place > 0 ? 'n' : null);
  return h('div', { class: 'wide' }, h('table', null, h('thead', null, h('tr', null, titles.map((title, place) => h('th', { class: kind(place), scope: 'col' }, title)))),
    h('tbody', null, rows.map((row) => h('tr', null, row.map((cell, place) => h('td', { class: kind(place) }, cell)))))));
}

// What needs the whole journal: made by the server when it is asked for.
function reported(body, first, draw) {
  let run = first;
  const place = h('section', null, h('p', { class: 'soft' }, 'reading the journal …'));
  replace(body, place);
  let again = null;
  const show = async () => {
    const answer = await get(api(run.run, 'report'));
    if (!answer.reading) return replace(place, draw(answer, run));
    replace(place, h('p', { class: 'soft', role: 'status' }, readingWords(answer)));
    again = setTimeout(show, 1000);
  };
  const ask = repeating(() => { clearTimeout(again); return show(); }, 5000, (error) => replace(place, h('p', { class: 'note' }, error.message)));
  ask();
  return { update(next) { const news = next.events !== run.events; run = next; if (news) ask(); }, leave() { clearTimeout(again); ask.end(); } };
}

const seconds = (value) => duration(value * 1e6);
const rate = (value) => (value ? `${bytes(value)}/s` : '');

function data(body, run) {
  return reported(body, run, (report) => {
    const moved = report.characterisation?.transfers ?? { pairs: [], longest: [], count: 0 };
    const share = report.characterisation?.workflow ?? {};
    if (moved.count === 0) return [h('h2', null, 'Transfers'), h('p', { class: 'soft' }, 'Nothing was moved: tasks read and write where the files are.')];
    return [h('h2', null, 'Between places'),
      share.waiting_for_data_percent != null && h('p', null, `${share.waiting_for_data_percent.toFixed(1)} % of the time files moved and no task computed.`),
      plain(['from', 'to', 'transfers', 'files', 'bytes', 'time of all', 'rate', 'tried again'], moved.pairs.map((pair) => [pair.from, pair.to, number(pair.transfers), pair.files ? number(pair.files) : '', bytes(pair.bytes), seconds(pair.seconds), rate(pair.bytes_per_second), pair.retries || ''])),
      h('h2', null, 'The longest'),
      plain(['job', 'from', 'to', 'files', 'bytes', 'time', 'rate', 'tried again'], moved.longest.slice(0, 50).map((one) => [one.job, one.from, one.to, one.files ? number(one.files) : '', bytes(one.bytes), seconds(one.seconds), rate(one.bytes_per_second), one.retries || '']))];
  });
}

function advice(body, run) {
  return reported(body, run, (report) => {
    const sets = report.efficiency ?? [];
    const traced = (report.io ?? []).slice(0, 100);
    const io = traced.length === 0 ? [] : [h('h2', null, 'I/O of tasks'),
      plain(['task', 'found', 'run time', 'in I/O', 'read', 'written', 'requests'], traced.map((task) => [task.task, task.findings.map((one) => h('div', null, `${one.code} ${one.title}`)), seconds(task.run_seconds), task.io_seconds == null ? '' : seconds(task.io_seconds), bytes(task.bytes_read), bytes(task.bytes_written), number(task.requests)])),
      h('p', { class: 'soft small' }, 'Each moment in I/O counts once; ', h('code', null, 'tulpar io report'), ' on the log of a task says more: io.darshan, beside what the attempt printed.')];
    if (sets.length === 0 && io.length === 0) return [h('h2', null, 'Asked for and used'), h('p', { class: 'soft' }, 'Nothing has ended yet.')];
    const pair = (asked, used, words) => (used == null ? (asked == null ? '' : `${words(asked)} asked`) : asked == null ? words(used) : `${words(used)} of ${words(asked)}`);
    const some = (value) => String(Number(value.toPrecision(2)));
    return [h('h2', null, 'Asked for and used'),
      plain(['task set', 'write next time', 'cores', 'memory at most', 'GPUs', 'longest', 'tasks'], sets.map((set) => [set.task_set, set.next?.length ? h('code', null, set.next.join(', ')) : h('span', { class: 'soft' }, 'as it is'), pair(set.cpus_asked, set.cpus_used, some), pair(set.memory_asked, set.memory_used, bytes), set.gpus_asked > 0 ? pair(set.gpus_asked, set.gpus_used, some) : '', pair(set.time_asked, set.time_used, seconds), number(set.tasks)])),
      h('p', { class: 'soft small' }, 'From this run alone, with a margin; ', h('code', null, `tulpar report ${run.run}`), ' says more.'), ...io];
  });
}

function site(body, first) {
  const place = h('div');
  replace(body, place);
  let run = first;
  const ask = repeating(async () => {
    const answer = await get(api(run.run, 'nodes'));
    const busy = new Map(answer.nodes.map((node) => [node.name, node]));
    const nodes = [...run.site.nodes, ...answer.nodes.filter((node) => !run.site.nodes.some((one) => one.name === node.name))];
    const work = (node) => busy.get(node.name) ?? {};
    const own = (node) => node.kind && node.kind !== 'queue';
    // What no node has is no column.
    const columns = [
      ['running', (node) => (run.standing === 'running' && work(node).running) || ''],
      ['ran', (node) => (work(node).ran ? number(work(node).ran) : '')],
      ['failed', (node) => work(node).failed || ''],
      ['busy', (node) => (work(node).busy_us ? duration(work(node).busy_us) : '')],
      ['cores', (node) => (own(node) ? node.cpus : '')],
      ['GPUs', (node) => node.gpus || ''],
      ['memory', (node) => (own(node) && node.memory ? bytes(node.memory) : '')],
    ].filter(([, cell]) => nodes.some((node) => cell(node) !== ''));
    const name = (node) => [node.name, node.kind && node.kind !== 'node' && h('span', { class: 'soft small' }, ` ${node.kind}`)];
    replace(place, h('h2', null, run.site.name), h('p', { class: 'soft' }, plural(run.site.nodes.length + run.site.more_nodes, 'node')),
      plain(['node', ...columns.map(([title]) => title)], nodes.map((node) => [name(node), ...columns.map(([, cell]) => cell(node))])));
  });
  ask();
  return { update(next) { run = next; ask(); }, leave: ask.end };
}
