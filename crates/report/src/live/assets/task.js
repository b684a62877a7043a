// One task: its state and why, its attempts, what it used, what it wrote, its files, and how to run it by hand.

import { h, link, replace, runPath, say } from './dom.js';
import { api, get, now, repeating } from './server.js';
import { BLAME, badge, bytes, duration, ending, marked, moment, number, plural, readingWords, shown } from './words.js';
import { chart } from './chart.js';
import { insideTable } from './runs.js';

export function task(main, name, job) {
  let seen = null;
  let charts = [];
  let attempt = null;
  const head = h('div');
  const inner = h('section');
  const why = h('section');
  const failed = h('section');
  const logs = h('section');
  const attempts = h('section');
  const samples = h('section');
  const hand = h('section');
  const files = h('section');
  const story = h('section');
  replace(why, h('p', { class: 'soft' }, 'asking the engine why …'));
  replace(main, head, failed, inner, why, attempts, logs, samples, hand, files, story);

  const ask = repeating(async () => {
    seen = await get(api(name, 'jobs', job));
    attempt ??= seen.attempts.at(-1)?.n ?? null;
    draw();
    read();
    explain();
  }, 1000, (error) => seen ?? replace(head, h('p', { class: 'note' }, error.message)));

  function draw() {
    const { line, run } = seen;
    document.title = `${line.name ?? job} · ${name} · Tulpar`;
    const state = line.reused_from ? 'reused' : shown(line.state, run);
    const last = seen.attempts.at(-1);
    const fact = (title, words) => words ? h('div', null, h('dt', null, title), h('dd', null, words)) : null;
    replace(head, h('h1', null, line.name ?? `job ${job}`, badge(state)),
      h('dl', { class: 'facts' },
        fact('run', link(runPath(name), name)), fact('task set', line.set && link(`${runPath(name, 'jobs')}?set=${encodeURIComponent(line.set)}`, line.set)),
        fact('since', !run.simulated && moment(line.since)), fact('attempts', line.attempts > 0 && String(line.attempts)), fact('node', line.node), fact('ending', line.ending && ending(line)),
        fact('time', last?.started && duration((last.ended ?? (run.standing === 'running' ? now() : run.until)) - last.started)),
        fact('CPU', last?.usage?.wall_us && `${Math.round((100 * (last.usage.user_us + last.usage.system_us)) / last.usage.wall_us)} %`),
        fact('peak memory', last?.usage?.peak_rss && bytes(last.usage.peak_rss)), fact('reused from', line.reused_from && link(runPath(line.reused_from), line.reused_from))));
    replace(inner, seen.inner.length > 0 && [h('h2', null, 'Its workflow'), insideTable(seen.inner)]);
    replace(failed, (line.state === 'failed' || line.state === 'held') && h('article', { class: 'failure' },
      h('p', null, h('strong', null, line.state === 'held' ? `held by the site: ${line.held ?? ''}` : ending(line)), line.blame && ['. To blame is ', BLAME[line.blame] ?? line.blame, '.']),
      last?.stderr_tail && h('pre', { 'aria-label': 'the last lines of stderr' }, last.stderr_tail.trimEnd())));
    table();
    figures();
  }

  function table() {
    if (seen.attempts.length === 0) {
      replace(attempts);
      return;
    }
    const usage = (one, key, words) => (one.usage ? words(one.usage[key]) : '');
    const rows = [...seen.attempts].reverse().map((one) => h('tr', { class: one.n === attempt ? 'at' : null },
      h('td', null, h('button', { type: 'button', 'aria-pressed': String(one.n === attempt), onclick: () => { attempt = one.n; draw(); read(); } }, String(one.n))),
      h('td', null, one.ending ? ending(one) : one.started ? 'runs' : 'submitted'), h('td', { class: 'no' }, one.node ?? ''),
      h('td', { class: 'n' }, one.usage ? duration(one.usage.wall_us) : ''), h('td', { class: 'n late' }, one.usage?.wall_us ? `${Math.round((100 * (one.usage.user_us + one.usage.system_us)) / one.usage.wall_us)} %` : ''),
      h('td', { class: 'n late' }, usage(one, 'peak_rss', bytes)), h('td', { class: 'n late' }, usage(one, 'read_bytes', bytes)), h('td', { class: 'n late' }, usage(one, 'write_bytes', bytes)), h('td', { class: 'late' }, one.asked ?? '')));
    replace(attempts, h('h2', null, 'Attempts'), h('div', { class: 'wide' }, h('table', null,
      h('thead', null, h('tr', null, [['attempt'], ['ending'], ['node'], ['time', 'n'], ['CPU', 'n late'], ['memory', 'n late'], ['read', 'n late'], ['written', 'n late'], ['asked for', 'late']].map(([title, kind]) => h('th', { class: kind }, title)))), h('tbody', null, rows))),
    record());
  }

  function record() {
    const one = seen.attempts.find((one) => one.n === attempt);
    if (!one?.usage) return null;
    const use = one.usage;
    const rows = [['user and system CPU', `${duration(use.user_us)} and ${duration(use.system_us)}`], ['read, written', `${bytes(use.read_bytes)}, ${bytes(use.write_bytes)}`], ['calls', `${number(use.read_calls)} reads, ${number(use.write_calls)} writes`],
      ['from and to devices', `${bytes(use.device_read_bytes)}, ${bytes(use.device_write_bytes)}`], ['switches', `${number(use.voluntary_switches)} voluntary, ${number(use.involuntary_switches)} not`], ['page faults', `${number(use.minor_faults)} minor, ${number(use.major_faults)} major`],
      one.input_files != null && ['inputs', `${plural(one.input_files, 'file')}, ${bytes(one.input_bytes)}`], use.peak_gpu_memory > 0 && ['GPU', `${use.gpu_utilisation / 100} % in the mean, ${bytes(use.peak_gpu_memory)} at most`], one.host && ['host', one.host]];
    return h('details', null, h('summary', null, 'Everything that was measured'), h('dl', { class: 'facts' }, rows.filter(Boolean).map(([title, words]) => h('div', null, h('dt', null, title), h('dd', null, words)))));
  }

  let drawn = '';
  function figures() {
    const one = seen.attempts.find((one) => one.n === attempt);
    const list = one?.samples ?? [];
    const now = `${attempt} ${list.length} ${list.at(-1)?.ms}`;
    if (now === drawn) return;
    drawn = now;
    for (const old of charts) old.leave();
    charts = [];
    if (list.length < 2) {
      replace(samples);
      return;
    }
    // Before the first look nothing had been used.
    const all = [{ ms: 0, rss: 0, cpu_us: 0, read_bytes: 0, write_bytes: 0 }, ...list];
    const times = list.map((sample) => sample.ms * 1000);
    const common = { from: 0, to: times.at(-1) };
    const rate = (key, scale) => {
      const at = [];
      const values = [];
      for (let index = 1; index < all.length; index += 1) {
        const ms = all[index].ms - all[index - 1].ms;
        if (ms <= 0) continue;
        const value = Math.max(0, ((all[index][key] - all[index - 1][key]) * scale) / ms);
        at.push(all[index - 1].ms * 1000, all[index].ms * 1000);
        values.push(value, value);
      }
      return { times: at, values };
    };
    charts = [
      chart({ ...common, title: 'CPU (cores)', unit: 'cores', series: [{ name: 'used', colour: 'k0', fill: true, ...rate('cpu_us', 0.001) }] }),
      chart({ ...common, title: 'Memory (bytes)', unit: 'bytes', series: [{ name: 'resident', colour: 'k0', fill: true, times, values: list.map((sample) => sample.rss) }] }),
      chart({ ...common, title: 'Read and written (bytes a second)', unit: 'rate', series: [{ name: 'read', colour: 'k0', ...rate('read_bytes', 1000) }, { name: 'written', colour: 'k1', ...rate('write_bytes', 1000) }] }),
    ];
    // Of a GPU nothing is known before the first reading.
    const readings = (key) => {
      const known = list.filter((sample) => sample[key] != null);
      return { times: known.map((sample) => sample.ms * 1000), values: known.map((sample) => sample[key]) };
    };
    if (readings('gpu_percent').values.length > 0) {
      charts.push(chart({ ...common, title: 'GPU (percent)', unit: 'percent', series: [{ name: 'busy', colour: 'k2', fill: true, ...readings('gpu_percent') }] }),
        chart({ ...common, title: 'GPU memory (bytes)', unit: 'bytes', series: [{ name: 'in use', colour: 'k2', fill: true, ...readings('gpu_memory') }] }));
    }
    replace(samples, h('h2', null, `Attempt ${attempt} over time`), h('div', { class: 'charts' }, charts.map((one) => one.element)));
  }

  // The ends of stdout and stderr, followed while it runs.
  const streams = ['stderr', 'stdout'].map((stream) => ({ stream, title: h('h2'), text: h('pre', { tabindex: '0', 'aria-label': stream }), size: -1 }));
  replace(logs, h('div', { class: 'two' }, streams.map((one) => h('div', null, one.title, one.text))));
  const read = repeating(async () => {
    logs.classList.toggle('hidden', attempt === null);
    if (attempt === null) return;
    const answer = await get(api(name, 'jobs', job, 'logs'), { attempt });
    for (const one of streams) {
      const part = answer[one.stream];
      const end = one.text.scrollTop + one.text.clientHeight >= one.text.scrollHeight - 20;
      say(one.title, part.bytes > part.text.length * 4 && part.cut ? `${one.stream}: the end of ${bytes(part.bytes)}` : one.stream);
      say(one.text, part.text || 'nothing was written');
      one.text.classList.toggle('soft', !part.text);
      if (end) one.text.scrollTop = one.text.scrollHeight;
    }
  });

  let again = null;
  // What the box above says already.
  const above = /^(It failed:|To blame is|The last lines of stderr:| +\|)/;
  const explain = repeating(async () => {
    const answer = await get(api(name, 'jobs', job, 'why'));
    clearTimeout(again);
    if (answer.reading) again = setTimeout(explain, 1000);
    const plainly = answer.words.filter((line) => line.trim() && !(seen.line.state === 'failed' && above.test(line)));
    replace(why, (plainly.length > 0 || answer.reading) && [h('h2', null, 'Why'), h('div', { class: 'note' }, answer.reading && h('p', { class: 'soft', role: 'status' }, `${readingWords(answer)} More is known then: reasons, inputs, how to run it by hand.`), plainly.map((line) => h('p', { class: line.startsWith(' ') ? 'soft' : null, style: { 'padding-left': line.startsWith(' ') ? '16px' : '0' } }, marked(line))))]);
    replace(story, answer.story.length > 0 && [h('h2', null, 'Story'), h('div', { class: 'wide' }, h('table', { class: 'story' }, h('tbody', null, answer.story.map((event) => h('tr', null, h('td', { class: 'n' }, `+${duration(event.after_us)}`), h('td', null, event.words))))))]);
    byHand(answer.by_hand);
    list(answer.inputs);
  }, 1500, (error) => replace(why, h('p', { class: 'note' }, error.message)));

  function byHand(command) {
    if (!command) {
      replace(hand);
      return;
    }
    const text = command.lines.join('\n');
    if (hand.dataset.text === text) return;
    hand.dataset.text = text;
    const copy = h('button', { type: 'button', onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        say(copy, 'Copied');
      } catch {
        getSelection().selectAllChildren(lines);
        say(copy, 'Selected: press Ctrl-C');
      }
      setTimeout(() => say(copy, 'Copy'), 2000);
    } }, 'Copy');
    const lines = h('pre', { tabindex: '0', 'aria-label': 'the command' }, text);
    replace(hand, h('h2', null, 'Run it by hand'), h('p', { class: 'soft' }, command.note), h('div', { class: 'bar-of-tools' }, copy, h('a', { href: `${api(name, 'jobs', job, 'by-hand.sh')}`, download: `${name}-${job}.sh` }, 'as a file')), lines);
  }

  const MOST = 200;
  function list(inputs) {
    const outputs = seen.outputs;
    const rows = (all) => all.slice(0, MOST).map((file) => h('tr', null, h('td', null, file.name && h('span', { class: 'soft' }, `${file.name}: `), h('span', { class: 'mono small' }, file.path)), h('td', { class: 'n' }, bytes(file.size)), h('td', { class: 'mono small late' }, file.digest.slice(0, 16))));
    const part = (title, all, total) => total > 0 && h('div', null, h('h2', null, `${title} (${number(total)})`), h('div', { class: 'wide' }, h('table', null, h('thead', null, h('tr', null, h('th', null, 'file'), h('th', { class: 'n' }, 'size'), h('th', { class: 'late' }, 'digest'))), h('tbody', null, rows(all)))), total > Math.min(all.length, MOST) && h('p', { class: 'soft small' }, `and ${number(total - Math.min(all.length, MOST))} more`));
    replace(files, h('div', { class: 'two' }, part('Inputs', inputs.files, inputs.total), part('Outputs', outputs, seen.all_outputs)));
  }

  ask();
  const clock = setInterval(() => seen && shown(seen.line.state, seen.run) === 'running' && !document.hidden && (read(), ask()), 2000);
  return {
    news(news) {
      const run = news.runs?.find((run) => run.run === name);
      // Only what can still change is asked again.
      if (news.again || (run && !['done', 'failed', 'skipped', 'cancelled'].includes(seen?.line.state)) || (run && run.standing !== seen?.run.standing)) ask();
    },
    leave() {
      clearInterval(clock);
      clearTimeout(again);
      ask.end();
      read.end();
      explain.end();
      for (const one of charts) one.leave();
    },
  };
}
