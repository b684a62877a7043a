//! How the page looks: by day, by night, on a phone and on paper.
//!
//! The colours of kinds can be told apart by people who see red and green, or blue and yellow, alike: seven of Okabe
//! and Ito, three of Tol; at night the dark ones are lighter. Shades from good to bad are viridis, which
//! a grey print keeps in order; at night they are turned round.

pub(super) const STYLE: &str = "\
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1d2329; --soft: #5b6670; --line: #d9dee3; --faint: #eef1f4; --wash: #f6f8fa;
  --k0: #0072b2; --k1: #e69f00; --k2: #009e73; --k3: #cc79a7; --k4: #56b4e9;
  --k5: #d55e00; --k6: #f0e442; --k7: #882255; --k8: #332288; --k9: #999933; --other: #9aa3ab;
  --q0: #440154; --q1: #443a83; --q2: #31688e; --q3: #21908c; --q4: #35b779; --q5: #8fd744; --q6: #fde725;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --ink: #e3e8ec; --soft: #9aa6b0; --line: #333c45; --faint: #242b32; --wash: #1b2127;
    --k0: #2079bd; --k4: #7fcdf5; --k7: #c2558c; --k8: #8a80e0; --k9: #b3b350; --other: #6f7a84;
    --q0: #fde725; --q1: #8fd744; --q2: #35b779; --q3: #21908c; --q4: #31688e; --q5: #443a83; --q6: #440154;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 28px 24px 48px; }
section { margin-top: 40px; }
main > section:first-child { margin-top: 0; }
section + section { margin-top: 56px; border-top: 1px solid var(--line); padding-top: 28px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 16px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 32px 0 10px; }
h3 { font-size: 14.5px; margin: 18px 0 6px; font-weight: 600; }
.state { font-size: 13px; font-weight: 500; color: var(--soft); border: 1px solid var(--line); border-radius: 999px;
  padding: 2px 10px; margin-left: 8px; vertical-align: middle; white-space: nowrap; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 14px 24px; margin: 0;
  background: var(--wash); border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px; }
dt { font-size: 12.5px; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 8px; padding: 0; font-size: 13.5px; }
.legend li { display: flex; align-items: center; gap: 7px; overflow-wrap: anywhere; }
.swatch { width: 14px; height: 14px; border-radius: 3px; flex: none; }
.chart { display: block; width: 100%; min-width: 620px; height: auto; margin: 0 0 10px; }
.chart text { font-family: system-ui, sans-serif; fill: var(--soft); font-variant-numeric: tabular-nums; }
.tick { font-size: 12px; }
.title { font-size: 12.5px; }
.grid { stroke: var(--faint); stroke-width: 1; fill: none; }
.axis { stroke: var(--soft); stroke-width: 1; fill: none; }
.capacity { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 5 4; fill: none; }
.band { fill: currentColor; stroke: var(--paper); stroke-width: 0.6; vector-effect: non-scaling-stroke; }
.bar { stroke: var(--ink); stroke-width: 0.8; vector-effect: non-scaling-stroke; fill: currentColor; }
.lines { stroke: #ffffff; stroke-opacity: 0.6; stroke-width: 14; fill: none; }
.bar.k1 { fill: url(#t1); } .bar.k2 { fill: url(#t2); } .bar.k3 { fill: url(#t3); } .bar.k4 { fill: url(#t4); }
.bar.k5 { fill: url(#t5); } .bar.k6 { fill: url(#t6); } .bar.k7 { fill: url(#t7); } .bar.k8 { fill: url(#t8); }
.bar.k9 { fill: url(#t9); } .bar.other { fill: url(#t10); }
.k1 .lines, .k4 .lines, .k6 .lines { stroke: #000000; stroke-opacity: 0.45; }
.error { stroke: var(--ink); stroke-width: 1.4; fill: none; }
.halo { stroke: var(--paper); stroke-width: 3.6; fill: none; stroke-opacity: 0.8; }
.k0 { color: var(--k0); } .k1 { color: var(--k1); } .k2 { color: var(--k2); } .k3 { color: var(--k3); }
.k4 { color: var(--k4); } .k5 { color: var(--k5); } .k6 { color: var(--k6); } .k7 { color: var(--k7); }
.k8 { color: var(--k8); } .k9 { color: var(--k9); } .other { color: var(--other); }
.fine { stroke: none; }
.flat { fill: currentColor; }
.dot { fill: currentColor; stroke: var(--paper); stroke-width: 0.8; }
.over { fill: var(--paper); stroke: var(--ink); stroke-width: 1.1; }
.cross { stroke: currentColor; stroke-width: 2; fill: none; }
.ring { stroke: var(--ink); stroke-width: 1.6; fill: none; }
.best { stroke: var(--k5); stroke-width: 1.8; fill: none; }
.failed { stroke: var(--k7); stroke-width: 2.4; fill: none; }
.curve { stroke: currentColor; stroke-width: 1.8; fill: none; }
.rest { color: var(--other); stroke-width: 0.8; }
.thread { stroke: currentColor; stroke-width: 1.1; fill: none; stroke-opacity: 0.75; }
.strong { stroke-width: 3; stroke-opacity: 1; }
.shade { fill: currentColor; }
.halo-text { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.q0 { color: var(--q0); } .q1 { color: var(--q1); } .q2 { color: var(--q2); } .q3 { color: var(--q3); }
.q4 { color: var(--q4); } .q5 { color: var(--q5); } .q6 { color: var(--q6); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px; text-align: left; border-bottom: 1px solid var(--line); font-weight: 400;
  white-space: normal; }
td.n { white-space: nowrap; }
.narrow { width: auto; }
thead th { vertical-align: bottom; font-size: 12.5px; color: var(--soft); border-bottom: 1px solid var(--soft); }
tbody th { font-weight: 550; white-space: normal; overflow-wrap: anywhere; min-width: 9em; }
.n { text-align: right; }
.notes { color: var(--soft); font-size: 13px; max-width: 80ch; margin-top: 18px; }
pre.notes { white-space: pre-wrap; }
@media print {
  :root {
    color-scheme: light;
    --paper: #ffffff; --ink: #1d2329; --soft: #5b6670; --line: #d9dee3; --faint: #eef1f4; --wash: #ffffff;
    --k0: #0072b2; --k4: #56b4e9; --k7: #882255; --k8: #332288; --k9: #999933; --other: #9aa3ab;
    --q0: #440154; --q1: #443a83; --q2: #31688e; --q3: #21908c; --q4: #35b779; --q5: #8fd744; --q6: #fde725;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  svg, tr { break-inside: avoid; }
  h1, h2, h3 { break-after: avoid; }
  main { max-width: none; padding: 0; }
  .wide { overflow: visible; }
  .chart { min-width: 0; }
  table, thead th { font-size: 9.5px; }
  th, td { white-space: normal; padding: 3px 5px; }
  .band.k1 { fill: url(#t1); } .band.k2 { fill: url(#t2); } .band.k3 { fill: url(#t3); } .band.k4 { fill: url(#t4); }
  .band.k5 { fill: url(#t5); } .band.k6 { fill: url(#t6); } .band.k7 { fill: url(#t7); } .band.k8 { fill: url(#t8); }
  .band.k9 { fill: url(#t9); } .band.other { fill: url(#t10); }
}
";
