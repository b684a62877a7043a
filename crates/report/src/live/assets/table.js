// A table with rows that open, by mouse and by keyboard; columns may be sorted by who asks for them.

import { h, replace } from './dom.js';

// columns: {name, title, cell(row), number, late, sort}. open(row) gives an address.
export function table({ columns, open, sort, onsort, empty, label }) {
  const head = h('tr');
  const body = h('tbody');
  const element = h('div', { class: 'wide' }, h('table', { 'aria-label': label }, h('thead', null, head), body));
  let at = -1;
  let rows = [];
  const kind = (column) => [column.number && 'n', column.late && 'late', column.nowrap && 'no'].filter(Boolean).join(' ') || null;

  function heads(sorted) {
    replace(head, columns.map((column) => {
      const mine = sorted && sorted.by === column.sort;
      const order = mine ? (sorted.down ? 'descending' : 'ascending') : null;
      const arrow = mine ? (sorted.down ? ' ↓' : ' ↑') : '';
      const words = column.sort && onsort
        ? h('button', { onclick: () => onsort({ by: column.sort, down: mine ? !sorted.down : Boolean(column.number) }) }, column.title + arrow)
        : column.title;
      return h('th', { class: kind(column), scope: 'col', 'aria-sort': order }, words);
    }));
  }

  function mark(next, scroll) {
    body.children[at]?.classList.remove('at');
    at = Math.max(-1, Math.min(next, rows.length - 1));
    const row = body.children[at];
    row?.classList.add('at');
    if (scroll) row?.scrollIntoView({ block: 'nearest' });
    row?.querySelector('a')?.focus({ preventScroll: true });
  }

  function show(next, sorted) {
    const key = at >= 0 ? body.children[at]?.dataset.key : null;
    rows = next;
    heads(sorted ?? sort);
    if (rows.length === 0) {
      replace(body, h('tr', null, h('td', { colspan: columns.length, class: 'soft' }, empty ?? 'nothing')));
      at = -1;
      return;
    }
    const focused = document.activeElement && body.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
    replace(body, rows.map((row) => h('tr', { 'data-key': row.key ?? '' }, columns.map((column) => h('td', { class: kind(column) }, column.cell(row))))));
    if (key) {
      at = rows.findIndex((row) => row.key === key);
      body.children[at]?.classList.add('at');
    }
    if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  function press(event) {
    if (event.metaKey || event.ctrlKey || event.altKey || event.target.closest?.('input, select, textarea, canvas, dialog')) return;
    if (!element.isConnected || element.closest('.hidden')) return;
    const other = event.target.closest?.('.wide');
    if (other && other !== element) return;
    if (event.key === 'j' || (event.key === 'ArrowDown' && at >= 0)) mark(at + 1, true);
    else if (event.key === 'k' || (event.key === 'ArrowUp' && at > 0)) mark(at - 1, true);
    else if (event.key === 'Enter' && at >= 0 && open && !event.target.closest?.('a, button')) {
      document.dispatchEvent(new CustomEvent('tulpar-go', { detail: open(rows[at]) }));
    } else return;
    event.preventDefault();
  }
  document.addEventListener('keydown', press);
  heads(sort);
  return { element, show, leave: () => document.removeEventListener('keydown', press) };
}
